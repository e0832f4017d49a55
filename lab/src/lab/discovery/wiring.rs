//! From who hears whom to what joins them. A pure function.

use std::collections::BTreeSet;

/// A frame's way: from a port, to a port, each by its number.
pub type Way = (usize, usize);

/// What a port, or several, are joined by. Ports are in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joint {
    /// Two that hear each other, and nobody else. A switch that joins just these two looks the same.
    Cable([usize; 2]),
    /// More than two, or two of which one hears itself too: no cable does that.
    Switch(Vec<usize>),
    /// One hears the other, and not the other way.
    OneWay {
        /// Whose frames arrive.
        from: usize,
        /// Where.
        to: usize,
    },
    /// One that hears itself alone.
    Loop(usize),
    /// One that hears nobody, and that nobody hears.
    Alone(usize),
}

/// What joins ports, by the ways that frames took. Each port is in one joint; they are in the order of their first ports.
pub fn joints(ports: &BTreeSet<usize>, heard: &BTreeSet<Way>) -> Vec<Joint> {
    let mut left = ports.clone();
    let mut joints = Vec::new();
    while let Some(first) = left.pop_first() {
        let group = segment(first, ports, heard);
        left.retain(|port| !group.contains(port));
        let hears_itself = group.iter().any(|port| heard.contains(&(*port, *port)));
        let group: Vec<usize> = group.into_iter().collect();
        joints.push(match group[..] {
            [port] if hears_itself => Joint::Loop(port),
            [port] => Joint::Alone(port),
            [a, b] if !hears_itself => match (heard.contains(&(a, b)), heard.contains(&(b, a))) {
                (true, true) => Joint::Cable([a, b]),
                (true, false) => Joint::OneWay { from: a, to: b },
                _ => Joint::OneWay { from: b, to: a },
            },
            _ => Joint::Switch(group),
        });
    }
    joints
}

/// All ports that are joined to one, itself among them, whichever way frames went.
fn segment(first: usize, ports: &BTreeSet<usize>, heard: &BTreeSet<Way>) -> BTreeSet<usize> {
    let mut found = BTreeSet::from([first]);
    let mut next = vec![first];
    while let Some(at) = next.pop() {
        for port in ports {
            if (heard.contains(&(at, *port)) || heard.contains(&(*port, at))) && found.insert(*port) {
                next.push(*port);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(ports: usize, heard: &[Way]) -> Vec<Joint> {
        joints(&(0..ports).collect(), &heard.iter().copied().collect())
    }

    #[test]
    fn two_that_hear_each_other_alone_are_cabled() {
        let heard = [(0, 2), (2, 0), (1, 3), (3, 1)];
        assert_eq!(of(5, &heard), [Joint::Cable([0, 2]), Joint::Cable([1, 3]), Joint::Alone(4)]);
    }

    #[test]
    fn three_on_one_segment_are_no_cable_even_if_two_of_them_hear_one_each() {
        assert_eq!(of(3, &[(0, 1), (1, 0), (1, 2), (2, 1)]), [Joint::Switch(vec![0, 1, 2])]);
        assert_eq!(of(3, &[(0, 1), (1, 0), (2, 1)]), [Joint::Switch(vec![0, 1, 2])]);
    }

    #[test]
    fn one_way_is_no_cable() {
        assert_eq!(of(2, &[(0, 1)]), [Joint::OneWay { from: 0, to: 1 }]);
        assert_eq!(of(2, &[(1, 0)]), [Joint::OneWay { from: 1, to: 0 }]);
    }

    #[test]
    fn one_that_hears_itself_is_a_loop_and_with_another_a_switch() {
        assert_eq!(of(1, &[(0, 0)]), [Joint::Loop(0)]);
        assert_eq!(of(2, &[(0, 0), (0, 1), (1, 0)]), [Joint::Switch(vec![0, 1])]);
    }

    proptest! {
        #[test]
        fn each_port_is_in_one_joint_whose_ports_hear_no_other(
            heard in prop::collection::btree_set((0usize..8, 0usize..8), 0..12),
        ) {
            let found = joints(&(0..8).collect(), &heard);
            let groups: Vec<Vec<usize>> = found
                .iter()
                .map(|joint| match joint {
                    Joint::Cable(ends) => ends.to_vec(),
                    Joint::Switch(ports) => ports.clone(),
                    Joint::OneWay { from, to } => vec![*from, *to],
                    Joint::Loop(port) | Joint::Alone(port) => vec![*port],
                })
                .collect();
            let mut all: Vec<usize> = groups.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..8).collect::<Vec<_>>());
            for (from, to) in heard {
                prop_assert!(groups.iter().any(|group| group.contains(&from) && group.contains(&to)));
            }
        }
    }
}

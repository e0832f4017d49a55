//! Which cable of the host can stand for which cable of a topology. A pure function over the inventory.

use std::{collections::BTreeMap, fmt};

use super::nics::{Lent, Nic, Refusal};
use crate::topology::{HOST_FILE, HostFile, LinkKind, NicRequirement, Rings, Topology, did_you_mean};

/// A cable that a topology asks for. Driver and speed bind both of its NICs; PCI address and label each name one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The cable, such as `gen:tx0 -- dut:rx0`.
    pub cable: String,
    /// What is asked of its NICs.
    pub nic: NicRequirement,
    /// What the ports at its two ends ask of them.
    pub ends: [Demand; 2],
}

/// What a port asks of the NIC that is to be it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demand {
    /// The port, as `node:port`.
    pub port: String,
    /// Its receive and transmit queues.
    pub queues: u32,
    /// Its rings, in descriptors.
    pub rings: Option<Rings>,
}

/// By requirement, in order: the NICs (indices into the inventory) at the cable's first and second end.
pub type Assignment = Vec<[usize; 2]>;

/// Why a NIC can't be an end of a cable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misfit {
    /// No lab may take it.
    Refused(Refusal),
    /// It has another driver.
    Driver {
        /// The one asked for.
        wanted: String,
        /// Its own.
        has: String,
    },
    /// It is too slow, or its speed is not known.
    Speed {
        /// The least, in Mbit/s.
        least: u32,
        /// Its own, in Mbit/s.
        has: Option<u32>,
    },
    /// The host file knows no cable of it.
    NoCable,
    /// The port at the other end of its cable does not fit, or is not there.
    OtherEnd {
        /// That port.
        port: String,
        /// What it failed; `None`: it is not there.
        why: Option<Box<Misfit>>,
    },
    /// It can't have as many queues as the port that it would be.
    Queues {
        /// That port.
        port: String,
        /// Asked for.
        asked: u32,
        /// At most.
        most: u32,
    },
    /// It can't have as long a ring.
    Ring {
        /// The port that it would be.
        port: String,
        /// `rx` or `tx`.
        which: &'static str,
        /// Asked for, in descriptors.
        asked: u32,
        /// At most.
        most: u32,
    },
    /// Neither it nor the port at the other end of its cable is the one that is asked for.
    NotNamed {
        /// What is asked for: a label or a PCI address.
        wanted: String,
    },
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "may not be taken: {refusal}"),
            Self::Driver { wanted, has } if has.is_empty() => write!(f, "driver: {wanted} asked for, and it has none"),
            Self::Driver { wanted, has } => write!(f, "driver: {wanted} asked for, and it is {has}"),
            Self::Speed { least, has: Some(has) } => write!(f, "speed: {least} Mbit/s asked for, and it has {has}"),
            Self::Speed { least, has: None } => write!(f, "speed: {least} Mbit/s asked for, and its own is not known"),
            Self::NoCable => f.write_str("the host file knows no cable of it"),
            Self::OtherEnd { port, why: Some(why) } => {
                write!(f, "its cable leads to {port}, which does not fit: {why}")
            }
            Self::OtherEnd { port, why: None } => {
                write!(f, "its cable leads to {port} by the host file, and this host has no such NIC")
            }
            Self::Queues { port, asked, most } => {
                write!(f, "{port} asks for queues = {asked}, and it can have {most} at most")
            }
            Self::Ring { port, which, asked, most } => {
                write!(f, "{port} asks for rings.{which} = {asked}, and it can have {most} at most")
            }
            Self::NotNamed { wanted } => write!(f, "{wanted} asked for, which is at neither end of its cable"),
        }
    }
}

/// A cable of the topology that no cable of the host fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// The topology's cable.
    pub cable: String,
    /// By name of each NIC: the first requirement that it failed; `None`: it fits, but is needed elsewhere as well.
    pub candidates: Vec<(String, Option<Misfit>)>,
}

/// Nothing fits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct NoFit {
    /// The cables that nothing fits by itself; or, if each fits by itself, all that compete for too few.
    pub unfit: Vec<Unfit>,
    /// Whether each cable fits by itself, and only not all together.
    pub together: bool,
    /// What else is to be known, and to be done.
    pub hints: Vec<String>,
}

impl NoFit {
    /// Adds what labs have at the moment: it can't be among the candidates.
    pub fn add_lent(&mut self, lent: &[Lent]) {
        self.hints.extend(lent.iter().map(|lent| format!("{lent}: {}", lent.fix())));
    }
}

impl fmt::Display for NoFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.together {
            f.write_str("each cable fits NICs of this host, but there are too few for all at once")?;
        } else {
            f.write_str("no NICs of this host fit")?;
        }
        for unfit in &self.unfit {
            write!(f, "\n  {}:", unfit.cable)?;
            if unfit.candidates.is_empty() {
                f.write_str(" this host has no NIC")?;
            }
            for (name, misfit) in &unfit.candidates {
                match misfit {
                    Some(misfit) => write!(f, "\n    {name}: {misfit}")?,
                    None => write!(f, "\n    {name}: fits")?,
                }
            }
        }
        self.hints.iter().try_for_each(|hint| write!(f, "\n  {hint}"))
    }
}

/// The cables that a topology asks for, in its order.
pub fn requirements(topology: &Topology) -> Vec<Requirement> {
    let cable = |link: &crate::topology::Link| {
        let (LinkKind::Cable(nic), [a, b]) = (&link.kind, link.ends.as_slice()) else { return None };
        let ends = [*a, *b].map(|port| {
            let wanted = &topology.ports[port.0];
            Demand { port: topology.port_name(port), queues: wanted.queues, rings: wanted.rings }
        });
        Some(Requirement { cable: format!("{} -- {}", ends[0].port, ends[1].port), nic: nic.clone(), ends })
    };
    topology.links.iter().filter_map(cable).collect()
}

/// Gives each cable of a topology two NICs that a cable joins and that may be taken, no NIC twice. Among several ways, the
/// first by the order of the host file's cables; the end that the host file names first is the cable's first end.
///
/// # Errors
/// Where there is no way: each NIC with the requirement that it failed.
pub fn assign(requirements: &[Requirement], nics: &[Nic], host: &HostFile) -> Result<Assignment, NoFit> {
    let places: BTreeMap<&str, usize> =
        nics.iter().enumerate().filter_map(|(index, nic)| Some((nic.pci.as_deref()?, index))).collect();
    let cables: Vec<[usize; 2]> =
        host.cables.iter().filter_map(|[a, b]| Some([*places.get(a.as_str())?, *places.get(b.as_str())?])).collect();
    let candidates: Vec<Vec<[usize; 2]>> = requirements
        .iter()
        .map(|wanted| {
            let fits = |pair: &&[usize; 2]| pair.iter().all(|nic| misfit(wanted, *nic, nics, &places, host).is_none());
            cables.iter().filter(fits).copied().collect()
        })
        .collect();
    let explain = |wanted: &Requirement| Unfit {
        cable: wanted.cable.clone(),
        candidates: nics
            .iter()
            .enumerate()
            .filter(|(_, nic)| nic.pci.is_some())
            .map(|(index, nic)| (nic.name.clone(), misfit(wanted, index, nics, &places, host)))
            .collect(),
    };
    let alone: Vec<Unfit> = requirements
        .iter()
        .zip(&candidates)
        .filter(|(_, candidates)| candidates.is_empty())
        .map(|(wanted, _)| explain(wanted))
        .collect();
    if !alone.is_empty() {
        return Err(NoFit { unfit: alone, together: false, hints: hints(requirements, host) });
    }
    // The cable with the fewest candidates first: it fails soonest.
    let mut order: Vec<usize> = (0..requirements.len()).collect();
    order.sort_by_key(|index| candidates[*index].len());
    let mut chosen = vec![None; requirements.len()];
    if search(&order, &candidates, &mut vec![false; nics.len()], &mut chosen) {
        return Ok(chosen.into_iter().flatten().collect());
    }
    let hint = format!("{} asked for, and the host file names {}", cables_of(requirements.len()), cables.len());
    Err(NoFit { unfit: requirements.iter().map(explain).collect(), together: true, hints: vec![hint] })
}

fn cables_of(count: usize) -> String {
    format!("{count} cable{} {}", if count == 1 { "" } else { "s" }, if count == 1 { "is" } else { "are" })
}

/// What the host file lacks, with what to do.
fn hints(requirements: &[Requirement], host: &HostFile) -> Vec<String> {
    let path = if host.path.as_os_str().is_empty() { HOST_FILE.into() } else { host.path.display().to_string() };
    let mut hints: Vec<String> = requirements
        .iter()
        .filter_map(|wanted| wanted.nic.label.as_ref())
        .filter(|label| !host.labels.contains_key(*label))
        .map(|label| {
            let labels: Vec<&str> = host.labels.keys().map(String::as_str).collect();
            let help = did_you_mean(label, "its labels", labels).map(|help| format!(": {help}")).unwrap_or_default();
            format!("{path} gives no NIC the label \"{label}\"{help}")
        })
        .collect();
    if host.cables.is_empty() {
        let lacks = if host.path.as_os_str().is_empty() { "is not there" } else { "names no cable" };
        hints.push(format!(
            "{path} {lacks}: what is cabled together must stand there, and `xdplab nics --discover` finds it out"
        ));
    }
    hints.dedup();
    hints
}

/// Backtracking over the cables of `order`.
fn search(
    order: &[usize],
    candidates: &[Vec<[usize; 2]>],
    taken: &mut Vec<bool>,
    chosen: &mut Vec<Option<[usize; 2]>>,
) -> bool {
    let Some((first, rest)) = order.split_first() else { return true };
    for [a, b] in candidates[*first].iter().copied() {
        if taken[a] || taken[b] {
            continue;
        }
        (taken[a], taken[b]) = (true, true);
        chosen[*first] = Some([a, b]);
        if search(rest, candidates, taken, chosen) {
            return true;
        }
        (taken[a], taken[b]) = (false, false);
    }
    chosen[*first] = None;
    false
}

/// The first requirement that a NIC fails, as an end of the cable that it has.
fn misfit(
    requirement: &Requirement,
    index: usize,
    nics: &[Nic],
    places: &BTreeMap<&str, usize>,
    host: &HostFile,
) -> Option<Misfit> {
    let (wanted, nic) = (&requirement.nic, &nics[index]);
    if let Some(misfit) = misfit_alone(wanted, nic) {
        return Some(misfit);
    }
    let Some((pci, other)) = nic.pci.as_deref().and_then(|pci| Some((pci, host.other_end(pci)?))) else {
        return Some(Misfit::NoCable);
    };
    let at_other_end = |why: Option<Misfit>| Misfit::OtherEnd { port: host.name(other), why: why.map(Box::new) };
    let Some(there) = places.get(other).map(|there| &nics[*there]) else { return Some(at_other_end(None)) };
    if let Some(why) = misfit_alone(wanted, there) {
        return Some(at_other_end(Some(why)));
    }
    let label = wanted.label.as_ref().map(|label| (format!("label {label}"), host.labels.get(label).cloned()));
    let address = wanted.pci.as_ref().map(|pci| (format!("PCI address {pci}"), Some(pci.to_ascii_lowercase())));
    for (what, named) in [label, address].into_iter().flatten() {
        if named.is_none_or(|named| named != pci && named != other) {
            return Some(Misfit::NotNamed { wanted: what });
        }
    }
    // Which port of the topology it would be, the host file's order says.
    let is_second = host.cables.iter().any(|[_, second]| second == pci);
    let [own, others] = [usize::from(is_second), usize::from(!is_second)].map(|end| &requirement.ends[end]);
    undemanded(own, nic).or_else(|| undemanded(others, there).map(|why| at_other_end(Some(why))))
}

/// What a port asks for that a NIC can't have. One whose driver does not tell is tried.
fn undemanded(demand: &Demand, nic: &Nic) -> Option<Misfit> {
    let port = || demand.port.clone();
    if let Some(queues) = nic.queues.filter(|queues| demand.queues > queues.most.max(queues.now)) {
        return Some(Misfit::Queues { port: port(), asked: demand.queues, most: queues.most.max(queues.now) });
    }
    let Rings { rx, tx } = demand.rings?;
    [("rx", rx, nic.rx_ring), ("tx", tx, nic.tx_ring)].into_iter().find_map(|(which, asked, ring)| {
        let (asked, most) = (asked?, ring?.most);
        (asked > most).then(|| Misfit::Ring { port: port(), which, asked, most })
    })
}

/// The first requirement that a NIC fails by itself.
fn misfit_alone(wanted: &NicRequirement, nic: &Nic) -> Option<Misfit> {
    if let Some(driver) = wanted.driver.as_ref().filter(|driver| **driver != nic.driver) {
        return Some(Misfit::Driver { wanted: driver.clone(), has: nic.driver.clone() });
    }
    if let Some(refusal) = &nic.refusal {
        return Some(Misfit::Refused(refusal.clone()));
    }
    match wanted.speed {
        Some(least) if nic.speed.is_none_or(|speed| speed < least) => Some(Misfit::Speed { least, has: nic.speed }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};

    use super::*;
    use crate::host::nics::Setting;

    const DRIVERS: [&str; 2] = ["i40e", "mlx5_core"];

    fn address(index: usize) -> String {
        format!("0000:03:{index:02x}.0")
    }

    /// NICs 0 and 1, 2 and 3, … are cabled together, as far as `cables` goes.
    fn host(cables: usize) -> HostFile {
        HostFile {
            labels: (0..2 * cables).map(|index| (format!("p{index}"), address(index))).collect(),
            cables: (0..cables).map(|n| [address(2 * n), address(2 * n + 1)]).collect(),
            ..HostFile::default()
        }
    }

    fn nic(index: usize, driver: &str, speed: Option<u32>, refused: bool) -> Nic {
        Nic {
            name: format!("p{index}"),
            pci: Some(address(index)),
            driver: driver.to_owned(),
            speed,
            refusal: refused.then_some(Refusal::DefaultRoute { of: "IPv4" }),
            ..Nic::default()
        }
    }

    fn wanted(nic: NicRequirement) -> Requirement {
        let demand = |port: &str| Demand { port: port.to_owned(), queues: 1, rings: None };
        Requirement { cable: "gen:tx0 -- dut:rx0".to_owned(), nic, ends: ["gen:tx0", "dut:rx0"].map(demand) }
    }

    /// Whether a pair of NICs fits, said again in other words.
    fn pair_fits(wanted: &NicRequirement, pair: [usize; 2], nics: &[Nic], host: &HostFile) -> bool {
        let addresses = pair.map(address);
        host.cables.contains(&addresses)
            && pair.iter().all(|index| {
                let nic = &nics[*index];
                nic.refusal.is_none()
                    && wanted.driver.as_ref().is_none_or(|driver| nic.driver == *driver)
                    && wanted.speed.is_none_or(|least| nic.speed.is_some_and(|speed| speed >= least))
            })
            && wanted.pci.as_ref().is_none_or(|pci| addresses.contains(pci))
            && wanted.label.as_ref().is_none_or(|label| pair.iter().any(|index| format!("p{index}") == *label))
    }

    /// Every way of giving the requirements distinct pairs, tried one after the other.
    fn brute_force(requirements: &[Requirement], nics: &[Nic], host: &HostFile, used: &[usize]) -> bool {
        let Some((first, rest)) = requirements.split_first() else { return true };
        (0..nics.len()).any(|a| {
            (0..nics.len()).any(|b| {
                a != b
                    && !used.contains(&a)
                    && !used.contains(&b)
                    && pair_fits(&first.nic, [a, b], nics, host)
                    && brute_force(rest, nics, host, &[used, &[a, b]].concat())
            })
        })
    }

    fn requirement() -> impl Strategy<Value = Requirement> {
        (
            option::weighted(0.4, 0..2usize),
            option::weighted(0.2, 0..9usize),
            option::weighted(0.2, 0..9usize),
            option::weighted(0.3, 1..3u32),
        )
            .prop_map(|(driver, pci, label, speed)| {
                wanted(NicRequirement {
                    driver: driver.map(|n| DRIVERS[n].to_owned()),
                    pci: pci.map(address),
                    label: label.map(|n| format!("p{n}")),
                    speed,
                })
            })
    }

    proptest! {
        #[test]
        fn an_assignment_is_found_whenever_there_is_one_and_uses_no_nic_twice(
            made in vec((0..2usize, option::weighted(0.9, 1..3u32), prop::bool::weighted(0.1)), 0..9),
            requirements in vec(requirement(), 0..4),
            cables in 0..5usize,
        ) {
            let nics: Vec<Nic> =
                made.iter().enumerate().map(|(n, (d, speed, refused))| nic(n, DRIVERS[*d], *speed, *refused)).collect();
            let host = host(cables);
            let found = assign(&requirements, &nics, &host);
            prop_assert_eq!(found.is_ok(), brute_force(&requirements, &nics, &host, &[]));
            match found {
                Ok(assignment) => {
                    prop_assert_eq!(assignment.len(), requirements.len());
                    let mut used = assignment.concat();
                    used.sort_unstable();
                    let count = used.len();
                    used.dedup();
                    prop_assert_eq!(used.len(), count);
                    for (requirement, pair) in requirements.iter().zip(assignment) {
                        prop_assert!(pair_fits(&requirement.nic, pair, &nics, &host));
                    }
                }
                // What fits by itself is no reason; something else must be.
                Err(no_fit) => prop_assert!(!no_fit.unfit.is_empty()),
            }
        }
    }

    #[test]
    fn each_nic_says_what_it_failed() {
        let nics = [
            nic(0, "i40e", Some(40_000), false),
            nic(1, "i40e", Some(10_000), false),
            nic(2, "ice", Some(100_000), false),
            nic(3, "ice", None, false),
            nic(4, "i40e", Some(40_000), true),
            nic(9, "i40e", Some(40_000), false),
        ];
        let host = HostFile { cables: host(2).cables, ..HostFile::default() };
        let requirement =
            NicRequirement { driver: Some("i40e".to_owned()), speed: Some(25_000), ..NicRequirement::default() };
        let no_fit = assign(&[wanted(requirement)], &nics, &host).unwrap_err();
        insta::assert_snapshot!(no_fit);
    }

    #[test]
    fn queues_and_rings_that_a_nic_cannot_have_are_said_before_it_is_taken() {
        let most = |most| Some(Setting { now: 1, most });
        let nics = [0, 1].map(|n| Nic { queues: most(4), rx_ring: most(256), ..nic(n, "i40e", None, false) });
        let shown = |queues, rx| {
            let mut requirement = wanted(NicRequirement::default());
            requirement.ends[1] =
                Demand { queues, rings: Some(Rings { rx: Some(rx), tx: Some(9_999) }), ..requirement.ends[1].clone() };
            assign(&[requirement], &nics, &host(1)).map_err(|no_fit| no_fit.to_string())
        };
        assert_eq!(shown(4, 256), Ok(vec![[0, 1]]));
        insta::assert_snapshot!(shown(5, 256).unwrap_err());
        insta::assert_snapshot!(shown(4, 257).unwrap_err());
    }

    #[test]
    fn what_the_host_file_lacks_is_said_with_what_to_do() {
        let nics = [nic(0, "i40e", None, false), nic(1, "i40e", None, false)];
        let labelled = || NicRequirement { label: Some("p11".to_owned()), ..NicRequirement::default() };
        let shown = |host: &HostFile| assign(&[wanted(labelled())], &nics, host).unwrap_err().to_string();
        insta::assert_snapshot!(shown(&HostFile { path: "host.toml".into(), ..host(1) }));
        insta::assert_snapshot!(shown(&HostFile::default()));
    }

    #[test]
    fn what_only_fits_one_at_a_time_is_said_so() {
        let nics = [nic(0, "i40e", None, false), nic(1, "i40e", None, false)];
        let two = [wanted(NicRequirement::default()), wanted(NicRequirement::default())];
        let no_fit = assign(&two, &nics, &host(1)).unwrap_err();
        assert!(no_fit.together);
        assert!(no_fit.to_string().contains("too few for all at once"), "{no_fit}");
        assert!(no_fit.to_string().ends_with("2 cables are asked for, and the host file names 1"), "{no_fit}");
    }

    #[test]
    fn a_requirement_with_few_candidates_is_served_first() {
        // The first cable fits both pairs, and the second only the first pair.
        let nics: Vec<Nic> = (0..4).map(|n| nic(n, "i40e", None, false)).collect();
        let picky = NicRequirement { label: Some("p1".to_owned()), ..NicRequirement::default() };
        let two = [wanted(NicRequirement::default()), wanted(picky)];
        assert_eq!(assign(&two, &nics, &host(2)).unwrap(), [[2, 3], [0, 1]]);
    }
}

//! Frames that a NIC had no buffer for, since its receiver was too slow: they never reached the kernel.
//!
//! A driver may count the same frames in several places, each of which begins at another number and may lack some of them:
//! the largest increase is what was missed.

use crate::drivers::Counters;

/// Places in which one port's missed frames are counted, at most.
pub const PLACES: usize = 4;

/// Counts of missed frames, by place.
pub type Counts = [u64; PLACES];

/// What a device's counters say: `stats` are the driver's own, `missed` is `rx_missed_errors` of the device.
pub fn counts(stats: &[(String, u64)], missed: u64, known: Option<&Counters>) -> Counts {
    let mut counts = Counts::default();
    counts[0] = missed;
    let names = known.map(|counters| counters.missed).unwrap_or_default();
    for (count, name) in counts[1..].iter_mut().zip(names) {
        *count = stats.iter().filter(|(have, _)| is_named(have, name)).map(|(_, n)| n).sum();
    }
    counts
}

/// Whether a counter is the one of a name in which `N` stands for a queue's number. Some drivers indent theirs.
fn is_named(have: &str, name: &str) -> bool {
    let have = have.trim();
    match name.split_once('N') {
        Some((before, after)) => have
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|queue| !queue.is_empty() && queue.bytes().all(|byte| byte.is_ascii_digit())),
        None => have == name,
    }
}

/// The lab's own among the frames that its ports missed: a NIC misses the frames of others as well, so that no more are
/// booked than are lacking. By port, in order.
pub fn of_the_labs(missed: &[u64], lacking: u64) -> Vec<u64> {
    let mut left = lacking;
    let take = |missed: &u64| {
        let taken = left.min(*missed);
        left -= taken;
        taken
    };
    missed.iter().map(take).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::drivers;

    fn stats(stats: &[(&str, u64)]) -> Vec<(String, u64)> {
        stats.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
    }

    #[test]
    fn each_place_is_read_by_its_name() {
        let known = |driver: &str| drivers::known(driver).map(|driver| &driver.counters);
        let i40e = stats(&[("rx_missed_errors", 3), ("port.rx_discards", 40), ("port.rx_dropped", 5), ("rx_bytes", 9)]);
        assert_eq!(counts(&i40e, 7, known("i40e")), [7, 3, 40, 5]);
        let vmxnet3 = stats(&[("  pkts rx OOB", 2), ("  pkts rx err", 8), ("  pkts rx OOB", 3)]);
        assert_eq!(counts(&vmxnet3, 0, known("vmxnet3")), [0, 5, 0, 0]);
        assert_eq!(counts(&i40e, 7, None), [7, 0, 0, 0]);
        assert!(is_named("rx_queue_12_drops", "rx_queue_N_drops") && !is_named("rx_queue_x_drops", "rx_queue_N_drops"));
        assert!(!is_named("rx_queue__drops", "rx_queue_N_drops"));
    }

    #[test]
    fn every_drivers_places_have_room() {
        for driver in drivers::all() {
            assert!(driver.counters.missed.len() < PLACES, "{}", driver.name);
        }
    }

    proptest! {
        #[test]
        fn no_more_are_booked_than_are_lacking_and_none_where_none_was_missed(
            missed in prop::collection::vec(0u64..1000, 0..8), lacking in 0u64..4000,
        ) {
            let taken = of_the_labs(&missed, lacking);
            prop_assert_eq!(taken.len(), missed.len());
            prop_assert!(taken.iter().zip(&missed).all(|(taken, missed)| taken <= missed));
            prop_assert_eq!(taken.iter().sum::<u64>(), lacking.min(missed.iter().sum()));
        }
    }
}

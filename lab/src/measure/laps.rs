//! A window's cost from its laps: the kernel's clock, read once in 64 frames.
//!
//! A window of 2 ms meets interrupts, and on a shared machine stretches in which something else slows the core down. Its
//! mean takes all of that in. The median of its laps leaves out what lasts less than half of a window.

use xdplab_wire::records::{LAPS, Laps, STAMP_EVERY, Stamp};

use super::interval::median;

/// Laps at the start of a window that are left out: caches and the branch predictor are cold after a change of programs.
const WARM_UP: usize = 2;
/// Fewest laps of which a median is taken.
const FEWEST: usize = 5;

/// The durations of the laps between two stamps, in nanoseconds, the oldest first; those that were kept.
pub fn durations(laps: &Laps, first: Stamp, last: Stamp) -> Vec<u32> {
    let (from, to) = (first.frames.div_ceil(STAMP_EVERY), last.frames / STAMP_EVERY);
    // The slot of the newest stamp is where the oldest was: one lap less than there are slots.
    let from = from.max((to + 1).saturating_sub(LAPS as u64));
    let at = |lap: u64| laps.ns[(lap % LAPS as u64) as usize];
    (from..to).map(|lap| at(lap + 1).wrapping_sub(at(lap))).collect()
}

/// Nanoseconds a frame: the median of the laps, or what lies between two stamps where there are too few, or where frames
/// don't come in batches of one size (`None`). A batch that is longer than a lap is taken as a whole.
pub fn per_frame(laps: Option<&Laps>, first: Stamp, last: Stamp, batch: Option<u32>) -> Option<f64> {
    let batch = batch.map_or(0, u64::from);
    // Laps in which a whole number of batches lies.
    let whole = match batch {
        0 => None,
        _ if STAMP_EVERY.is_multiple_of(batch) => Some(1),
        _ if batch.is_multiple_of(STAMP_EVERY) => Some(batch / STAMP_EVERY),
        _ => None,
    };
    if let (Some(whole), Some(laps)) = (whole, laps) {
        let kept = durations(laps, first, last);
        let sums: Vec<f64> = kept[WARM_UP.min(kept.len())..]
            .chunks_exact(whole as usize)
            .map(|laps| laps.iter().copied().map(f64::from).sum())
            .collect();
        if sums.len() >= FEWEST {
            return median(&sums).map(|median| median.value / (whole * STAMP_EVERY) as f64);
        }
    }
    let frames = last.frames.checked_sub(first.frames).filter(|frames| *frames > 0)?;
    Some(last.ns.checked_sub(first.ns)? as f64 / frames as f64)
}

/// Nanoseconds between two frames of several senders at work at once, of which each has these between its own: their rates
/// add up. `None` where one of them has no cost.
pub fn together(each: &[Option<f64>]) -> Option<f64> {
    if let [one] = each {
        return *one;
    }
    let rates = each.iter().map(|ns| ns.filter(|ns| *ns > 0.0).map(|ns| 1.0 / ns)).sum::<Option<f64>>()?;
    (rates > 0.0).then(|| 1.0 / rates)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Laps of so many nanoseconds each, and the stamps at the ends; the first frame is number `start * STAMP_EVERY`.
    fn drive(start: u64, durations: &[u32]) -> (Laps, Stamp, Stamp) {
        let mut laps = Laps { ns: [0; LAPS] };
        // Behind a point at which 32 bits wrap.
        let mut ns = (1 << 40) + u64::from(u32::MAX) - 10_000;
        let mut frames = start * STAMP_EVERY;
        let first = Stamp { ns, frames };
        laps.note(frames, ns);
        for duration in durations {
            ns += u64::from(*duration);
            frames += STAMP_EVERY;
            laps.note(frames, ns);
        }
        (laps, first, Stamp { ns, frames })
    }

    #[test]
    fn a_spike_and_a_cold_start_do_not_count() {
        let mut all = vec![6400; 100];
        (all[0], all[1], all[40], all[41]) = (90_000, 20_000, 3_000_000, 50_000);
        let (laps, first, last) = drive(0, &all);
        assert_eq!(per_frame(Some(&laps), first, last, Some(64)), Some(100.0));
        assert!(per_frame(None, first, last, Some(64)).is_some_and(|mean| mean > 500.0), "the mean takes all of it in");
    }

    #[test]
    fn a_batch_of_several_laps_is_taken_as_a_whole() {
        // The first half of a batch passes in no time.
        let all: Vec<u32> = (0..100).map(|n| if n % 2 == 0 { 1_000 } else { 11_800 }).collect();
        let (laps, first, last) = drive(0, &all);
        assert_eq!(per_frame(Some(&laps), first, last, Some(128)), Some(100.0));
        assert_eq!(per_frame(Some(&laps), first, last, Some(16)), Some(100.0), "the median of two values lies between");
    }

    #[test]
    fn batches_that_fit_no_lap_and_few_laps_give_the_mean() {
        let (laps, first, last) = drive(3, &[6400, 6400, 6400, 6400, 9600, 9600]);
        let mean = Some((4.0 * 100.0 + 2.0 * 150.0) / 6.0);
        assert_eq!(
            per_frame(Some(&laps), first, last, Some(64)),
            mean,
            "two of six are left out, and four are too few"
        );
        let (laps, first, last) = drive(0, &[6400; 50]);
        assert_eq!(per_frame(Some(&laps), first, last, Some(48)), Some(100.0));
        assert_eq!(per_frame(Some(&laps), first, last, None), Some(100.0));
    }

    #[test]
    fn a_window_without_two_stamps_has_no_cost() {
        let (laps, first, _) = drive(0, &[]);
        assert_eq!(per_frame(Some(&laps), first, first, Some(64)), None);
        assert_eq!(per_frame(None, Stamp::default(), Stamp::default(), Some(64)), None);
    }

    proptest! {
        /// Whatever came before, and however many there are: the newest laps come out as they went in.
        #[test]
        fn the_newest_laps_are_kept(start in 0u64..10_000, all in prop::collection::vec(1u32..5_000_000, 1..700)) {
            let (laps, first, last) = drive(start, &all);
            let kept = durations(&laps, first, last);
            prop_assert_eq!(kept.len(), all.len().min(LAPS - 1));
            prop_assert_eq!(&kept[..], &all[all.len() - kept.len()..]);
        }
    }

    #[test]
    fn rates_of_several_senders_add_up() {
        assert_eq!(together(&[Some(200.0)]), Some(200.0));
        assert_eq!(together(&[Some(200.0), Some(200.0)]), Some(100.0));
        assert_eq!(together(&[Some(300.0), Some(150.0), Some(100.0)]), Some(50.0));
        assert_eq!(together(&[Some(200.0), None]), None);
        assert_eq!(together(&[]), None);
    }
}

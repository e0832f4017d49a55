//! The noise floor: what a machine can't see, now.

use super::hodges_lehmann::hodges_lehmann;

/// What an A/A comparison, of a program with itself, found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floor {
    /// The noise floor: half the width of the interval, in nanoseconds a packet. Infinite for fewer reloads than the level
    /// needs.
    pub ns: f64,
    /// Whether the interval excludes 0, where the true difference is. That has to happen as often as the level says
    /// (one time in ten at 90 %); where it happens again, the measurement favours one side.
    pub biased: bool,
    /// The reloads that it rests on.
    pub reloads: usize,
}

/// The noise floor from the `differences` of an A/A comparison's reloads, in nanoseconds a packet.
///
/// It is the floor of a comparison of as many reloads, and shrinks with the root of their number. `None` for no
/// differences, or where one is not finite.
pub fn noise_floor(differences: &[f64], level: f64) -> Option<Floor> {
    let interval = hodges_lehmann(differences, level)?;
    Some(Floor {
        ns: (interval.high - interval.low) / 2.0,
        biased: interval.low > 0.0 || interval.high < 0.0,
        reloads: differences.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::stats::noise::Noise;

    #[test]
    fn it_is_half_of_the_interval() {
        // Five values at 90 %: the interval goes from the smallest to the largest.
        let floor = noise_floor(&[-1.0, 0.5, 3.0, -0.5, 0.0], 0.90).unwrap();
        assert_eq!(floor, Floor { ns: 2.0, biased: false, reloads: 5 });
    }

    #[test]
    fn too_few_reloads_have_an_infinite_floor() {
        let floor = noise_floor(&[0.1, -0.1], 0.90).unwrap();
        assert!(floor.ns.is_infinite() && !floor.biased);
        assert_eq!(noise_floor(&[], 0.90), None);
        assert_eq!(noise_floor(&[f64::NAN; 9], 0.90), None);
    }

    #[test]
    fn a_side_that_is_favoured_is_seen() {
        assert!(noise_floor(&[1.0, 1.2, 0.9, 1.1, 1.3, 0.8], 0.90).unwrap().biased);
    }

    #[test]
    fn four_times_the_reloads_halve_it() {
        let mut noise = Noise::seeded(3);
        let mut mean = |n: usize| {
            let floors = (0..100).map(|_| noise_floor(&(0..n).map(|_| noise.normal()).collect::<Vec<_>>(), 0.90));
            floors.map(|floor| floor.unwrap().ns).sum::<f64>() / 100.0
        };
        let ratio = mean(12) / mean(48);
        assert!((1.8..2.4).contains(&ratio), "{ratio}");
    }
}

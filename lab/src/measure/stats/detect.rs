//! How long it takes to see a cost: planned from A/A differences, before anything is compared.

use super::hodges_lehmann::with_error;
use super::looks::Plan;

/// How often comparisons are drawn anew from the differences.
const RESAMPLES: usize = 200;

/// What so many reloads would give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sight {
    /// The reloads.
    pub reloads: usize,
    /// How long they take.
    pub seconds: f64,
    /// Half the width of the interval, in nanoseconds a packet: the median over comparisons. Infinite where so few
    /// reloads, or what the plan lets this look spend, claim nothing.
    pub half_width: f64,
    /// The smallest cost over the budget that is found at this look with the power asked for, in nanoseconds a packet.
    pub detectable: f64,
}

/// What each look of `plan` would see, on a machine whose A/A comparison had these `differences` a reload and took so
/// many `seconds` a reload.
///
/// `power` is how often a cost has to be found to count as detectable: 0.95 for 19 of 20. The differences are drawn from
/// with replacement (the bootstrap of Efron 1979), each with a sign of its own, since in A/A either side might have been
/// the candidate; a cost moves all alike, so that it is found where it lies above what the low end falls short by. The
/// same `seed` gives the same answer. Nothing for no differences, or where one is not finite.
///
/// It is a plan, not a promise: it knows no rarer disturbance than the differences saw, and from a few dozen of them the
/// detectable cost of the first looks, which hangs on the rarest, comes out too small.
pub fn sight(differences: &[f64], seconds: f64, plan: &Plan, power: f64, seed: u64) -> Vec<Sight> {
    if differences.is_empty() || !differences.iter().all(|difference| difference.is_finite()) {
        return Vec::new();
    }
    let mut generator = fastrand::Rng::with_seed(seed);
    let mut draw = || {
        let difference = differences[generator.usize(..differences.len())];
        if generator.bool() { difference } else { -difference }
    };
    let rows = plan.rows() as f64;
    let looks = plan.looks().iter();
    looks
        .map(|look| {
            let intervals = (0..RESAMPLES).filter_map(|_| {
                let resample: Vec<f64> = (0..look.reloads).map(|_| draw()).collect();
                with_error(&resample, look.one_sided / rows)
            });
            let (halves, shortfalls): (Vec<f64>, Vec<f64>) =
                intervals.map(|interval| ((interval.high - interval.low) / 2.0, -interval.low)).unzip();
            Sight {
                reloads: look.reloads,
                seconds: seconds * look.reloads as f64,
                half_width: quantile(halves, 0.5),
                detectable: quantile(shortfalls, power),
            }
        })
        .collect()
}

/// How long until a cost of `ns` over the budget is found: the first look that can. `None` where none can.
pub fn until_found(sights: &[Sight], ns: f64) -> Option<Sight> {
    sights.iter().copied().find(|sight| sight.detectable <= ns)
}

/// The smallest value that at least this share of `values` does not exceed; infinite for no values.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let index = (share * values.len() as f64).ceil() as usize;
    values.get(index.clamp(1, values.len().max(1)) - 1).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::stats::{
        decide::{Aim, Budget, Verdict, decide},
        noise::Noise,
    };

    fn of_normal(sd: f64) -> Vec<Sight> {
        let mut noise = Noise::seeded(5);
        let differences: Vec<f64> = (0..200).map(|_| sd * noise.normal()).collect();
        sight(&differences, 2.0, &Plan::new(0.10, &[4, 6, 8, 12, 16, 24], 1).unwrap(), 0.95, 1)
    }

    #[test]
    fn more_reloads_see_more_and_take_longer() {
        let sights = of_normal(0.5);
        assert!(sights[0].half_width.is_infinite() && sights[0].detectable.is_infinite(), "four reloads claim nothing");
        let finite = &sights[1..];
        assert!(finite.is_sorted_by(|a, b| a.seconds < b.seconds && a.detectable > b.detectable), "{sights:?}");
        assert!((sights[5].seconds - 48.0).abs() < 1e-9);
    }

    #[test]
    fn it_scales_with_the_noise() {
        for (small, large) in of_normal(0.5).iter().zip(of_normal(5.0)) {
            let same = small.detectable.is_infinite() && large.detectable.is_infinite();
            assert!(same || (10.0 * small.detectable - large.detectable).abs() < 1e-9, "{small:?} {large:?}");
        }
    }

    #[test]
    fn what_it_calls_detectable_is_found() {
        let sights = of_normal(0.5);
        let plan = Plan::new(0.10, &[4, 6, 8, 12, 16, 24], 1).unwrap();
        let mut noise = Noise::seeded(6);
        for sight in &sights[1..] {
            let found = (0..300).filter(|_| {
                let differences: Vec<f64> =
                    (0..sight.reloads).map(|_| sight.detectable + 0.5 * noise.normal()).collect();
                let budget = Budget::new(0.0, Aim::AtMost, None).unwrap();
                decide(&differences, budget, &plan).unwrap().verdict == Verdict::Regressed
            });
            let found = found.count();
            // 95 %, and looks before this one find some as well; the differences are only a sample of the noise.
            println!("{found} of 300 at {sight:?}");
            assert!(found >= 264, "{found} of 300 at {sight:?}");
        }
    }

    #[test]
    fn the_first_look_that_can_is_named() {
        let sights = of_normal(0.5);
        assert_eq!(until_found(&sights, 1e6).unwrap().reloads, 6);
        assert_eq!(until_found(&sights, sights[4].detectable).unwrap().reloads, 16);
        assert_eq!(until_found(&sights, 0.0), None);
    }

    #[test]
    fn nothing_is_planned_from_nothing() {
        let plan = Plan::standard(1).unwrap();
        assert_eq!(sight(&[], 1.0, &plan, 0.95, 1), []);
        assert_eq!(sight(&[f64::NAN], 1.0, &plan, 0.95, 1), []);
    }
}

//! Medians and their intervals, without a model of the noise.

use crate::record::Cost;

/// An estimate and the interval around it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The median of some values and its distribution-free 90 % interval.
///
/// The interval's ends are order statistics: the number of values below the true median is binomial (n, 1/2), so that
/// the k-th smallest and the k-th largest value enclose it with probability 1 - 2 P(B < k) (David and Nagaraja, Order
/// Statistics, 7.1). k is the largest that keeps 90 %; with fewer than five values that takes the extremes, and the
/// interval holds less.
///
/// `None` for no values. Values that are not finite are left out.
pub fn median(values: &[f64]) -> Option<Estimate> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    if sorted.is_empty() {
        return None;
    }
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let value = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
    let k = order_of_interval(n, 0.90);
    Some(Estimate { value, low: sorted[k - 1], high: sorted[n - k] })
}

/// The largest k, at least 1, with 1 - 2 P(B(n, 1/2) < k) >= level.
fn order_of_interval(n: usize, level: f64) -> usize {
    // P(B = 0) underflows past a thousand values; logarithms carry it.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    let mut k = 0;
    while k < n / 2 {
        below += log_term.exp();
        if 1.0 - 2.0 * below < level {
            break;
        }
        log_term += ((n - k) as f64).ln() - ((k + 1) as f64).ln();
        k += 1;
    }
    k.max(1)
}

/// A cost from its windows, each in nanoseconds a packet; `None` where no window was measured.
pub fn cost(windows: Vec<f64>) -> Option<Cost> {
    let estimate = median(&windows)?;
    Some(Cost { ns: estimate.value, ci: [estimate.low, estimate.high], mpps: 1000.0 / estimate.value, windows })
}

/// The ratio of two costs. Its interval takes the worst of both intervals, so it holds at least as often as both do.
pub fn ratio(cost: &Cost, of: &Cost) -> Estimate {
    Estimate { value: cost.ns / of.ns, low: cost.ci[0] / of.ci[1], high: cost.ci[1] / of.ci[0] }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn orders_agree_with_the_published_table() {
        // Conover, Practical Nonparametric Statistics, table of sign-test intervals: n = 10 at 90 % (exactly 97.9 %
        // at k = 2, 89.1 % at k = 3); n = 20 at k = 6 is 95.9 %, at k = 7 88.5 %.
        assert_eq!(order_of_interval(10, 0.90), 2);
        assert_eq!(order_of_interval(20, 0.90), 6);
        assert_eq!(order_of_interval(1, 0.90), 1);
        assert!(order_of_interval(100_000, 0.90) > 49_000);
    }

    #[test]
    fn no_values_have_no_median() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::NAN]), None);
    }

    #[test]
    fn ninety_percent_of_intervals_hold_the_true_median() {
        // A skewed distribution: the exponential, whose median is ln 2.
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let runs = 4000;
        let held = (0..runs)
            .filter(|_| {
                let values: Vec<f64> = (0..41).map(|_| -(1.0 - uniform()).ln()).collect();
                let e = median(&values).unwrap();
                (e.low..=e.high).contains(&std::f64::consts::LN_2)
            })
            .count();
        // The order statistics are discrete: at n = 41 and k = 15 the coverage is 94.0 %; the sampling error is 0.4 %.
        let share = held as f64 / f64::from(runs);
        assert!((0.925..0.955).contains(&share), "{share}");
    }

    proptest! {
        #[test]
        fn the_interval_encloses_the_median(values in prop::collection::vec(1.0f64..1e6, 1..200)) {
            let e = median(&values).unwrap();
            prop_assert!(e.low <= e.value && e.value <= e.high);
        }

        #[test]
        fn a_ratio_lies_in_its_interval(a in prop::collection::vec(1.0f64..1e3, 1..50), b in prop::collection::vec(1.0f64..1e3, 1..50)) {
            let r = ratio(&cost(a).unwrap(), &cost(b).unwrap());
            prop_assert!(r.low <= r.value && r.value <= r.high);
        }
    }
}

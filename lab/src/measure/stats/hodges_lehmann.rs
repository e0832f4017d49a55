//! The Hodges-Lehmann estimate of a centre, and its interval.
//!
//! The estimate is the median of the Walsh averages (Hodges and Lehmann 1963); the interval holds every x that the
//! signed-rank test does not reject, and its ends are order statistics of the Walsh averages (Hollander, Wolfe and
//! Chicken, Nonparametric Statistical Methods, 3.3). Exact for any distribution that is symmetric around its centre, as
//! the difference of two like-distributed measurements is. Skewed differences have no centre but a pseudomedian, which may
//! lie far from their mean: a jump of one load in five hardly moves it. The level then holds roughly (90 % are 85 to 92 in
//! simulation), and one end errs more often than the other.

use super::signed_rank::{critical, fewest};
use crate::measure::interval::Estimate;

/// The estimate of the centre of `values` with the interval that holds the centre at least as often as `level`
/// (0.90 for 90 %).
///
/// An interval of n values can't claim more than 1 - 2^(1 - n): below [`minimum_values`] both its ends are infinite.
/// Ties widen it. `None` for no values, or where one is not finite. Time and memory grow with n².
pub fn hodges_lehmann(values: &[f64], level: f64) -> Option<Estimate> {
    with_error(values, (1.0 - level) / 2.0)
}

/// As [`hodges_lehmann`], from the error of each end alone (0.05 for 90 %).
pub fn with_error(values: &[f64], one_sided: f64) -> Option<Estimate> {
    if values.is_empty() || !values.iter().all(|v| v.is_finite()) {
        return None;
    }
    let mut averages = walsh_averages(values);
    let count = averages.len();
    let middle = (count - 1) / 2;
    // Each selection leaves the smaller ones on its left and the larger on its right: the ends need look at one side only.
    let (below, median, above) = averages.select_nth_unstable_by(middle, f64::total_cmp);
    let next = if count.is_multiple_of(2) { above.iter().copied().fold(f64::INFINITY, f64::min) } else { *median };
    let value = f64::midpoint(*median, next);
    let (low, high) = match critical(values.len(), one_sided) {
        None => (f64::NEG_INFINITY, f64::INFINITY),
        Some(t) if t >= middle => (*median, next),
        Some(t) => (nth(below, t), nth(above, above.len() - 1 - t)),
    };
    Some(Estimate { value, low, high })
}

/// The fewest values whose interval of this level is finite: 5 for 90 %, 6 for 95 %, 8 for 99 %. `None` for a level of
/// 1 or more, that no number of values has.
pub fn minimum_values(level: f64) -> Option<usize> {
    (level < 1.0).then(|| fewest((1.0 - level) / 2.0))
}

fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (i, value) in values.iter().enumerate() {
        for other in &values[i..] {
            averages.push(f64::midpoint(*value, *other));
        }
    }
    averages
}

/// The `index`-th smallest.
fn nth(values: &mut [f64], index: usize) -> f64 {
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
    }

    #[test]
    fn a_textbook_example_has_its_estimate_and_interval() {
        // In hundredths. Hamilton depression scale, nine patients (Hollander, Wolfe and Chicken, table 3.1, after Salsburg 1970):
        // estimate -0.46, and (-0.786, -0.010) at 1 - 0.039 = 96.1 %.
        let before = [183.0, 50.0, 162.0, 248.0, 168.0, 188.0, 155.0, 306.0, 130.0];
        let after = [87.8, 64.7, 59.8, 205.0, 106.0, 129.0, 106.0, 314.0, 129.0];
        let differences: Vec<f64> = after.iter().zip(before).map(|(a, b)| a - b).collect();
        let estimate = hodges_lehmann(&differences, 0.96).unwrap();
        assert!((estimate.value + 46.0).abs() < 0.05, "{estimate:?}");
        assert!((estimate.low + 78.6).abs() < 0.05 && (estimate.high + 1.0).abs() < 0.05, "{estimate:?}");
    }

    #[test]
    fn a_small_sample_is_estimated_as_by_hand() {
        // Walsh averages of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6.
        let estimate = hodges_lehmann(&[6.0, 1.0, 2.0], 0.5).unwrap();
        assert!(near(estimate.value, 2.75) && near(estimate.low, 1.5) && near(estimate.high, 4.0), "{estimate:?}");
    }

    #[test]
    fn too_few_values_claim_nothing() {
        let four = hodges_lehmann(&[1.0, 2.0, 3.0, 4.0], 0.90).unwrap();
        assert!(near(four.value, 2.5) && four.low == f64::NEG_INFINITY && four.high == f64::INFINITY);
        let five = hodges_lehmann(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.90).unwrap();
        assert!(near(five.low, 1.0) && near(five.high, 5.0), "{five:?}");
        assert_eq!([0.90, 0.95, 0.99].map(minimum_values), [Some(5), Some(6), Some(8)]);
        assert_eq!(minimum_values(1.0), None);
    }

    #[test]
    fn what_is_no_number_is_not_estimated() {
        assert_eq!(hodges_lehmann(&[], 0.9), None);
        assert_eq!(hodges_lehmann(&[1.0, f64::NAN], 0.9), None);
        assert_eq!(hodges_lehmann(&[1.0, f64::INFINITY], 0.9), None);
    }

    #[test]
    fn equal_values_are_their_own_interval() {
        let estimate = hodges_lehmann(&[3.0; 10], 0.9).unwrap();
        assert!(near(estimate.low, 3.0) && near(estimate.value, 3.0) && near(estimate.high, 3.0));
    }

    #[test]
    fn a_few_wild_values_do_not_move_it_far() {
        let mut values: Vec<f64> = (0..20).map(|i| f64::from(i) / 20.0).collect();
        let calm = hodges_lehmann(&values, 0.9).unwrap();
        values[..4].fill(1e9);
        let disturbed = hodges_lehmann(&values, 0.9).unwrap();
        assert!((disturbed.value - calm.value).abs() < 0.4, "{disturbed:?}");
    }

    proptest! {
        #[test]
        fn it_moves_and_scales_with_the_values(
            values in prop::collection::vec(-1e3f64..1e3, 1..40), shift in -1e3f64..1e3, scale in 0.1f64..10.0,
        ) {
            let of = hodges_lehmann(&values, 0.9).unwrap();
            let moved: Vec<f64> = values.iter().map(|v| v * scale + shift).collect();
            let moved = hodges_lehmann(&moved, 0.9).unwrap();
            for (a, b) in [(of.value, moved.value), (of.low, moved.low), (of.high, moved.high)] {
                prop_assert!(a.is_infinite() && b.is_infinite() || (a * scale + shift - b).abs() < 1e-6);
            }
        }

        #[test]
        fn mirrored_values_have_the_mirrored_interval(values in prop::collection::vec(-1e3f64..1e3, 1..40)) {
            let of = hodges_lehmann(&values, 0.9).unwrap();
            let mirrored: Vec<f64> = values.iter().map(|v| -v).collect();
            let mirrored = hodges_lehmann(&mirrored, 0.9).unwrap();
            prop_assert!(near(of.value, -mirrored.value));
            prop_assert!(of.low.is_infinite() || near(of.low, -mirrored.high) && near(of.high, -mirrored.low));
        }

        #[test]
        fn order_does_not_matter(
            (values, shuffled) in prop::collection::vec(-1e3f64..1e3, 1..40)
                .prop_flat_map(|values| (Just(values.clone()), Just(values).prop_shuffle())),
        ) {
            prop_assert_eq!(hodges_lehmann(&values, 0.9), hodges_lehmann(&shuffled, 0.9));
        }

        #[test]
        fn the_interval_holds_the_estimate_and_grows_with_the_level(
            values in prop::collection::vec(-50i32..50, 1..80), levels in (0.01f64..0.999, 0.01f64..0.999),
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let narrow = hodges_lehmann(&values, levels.0.min(levels.1)).unwrap();
            let wide = hodges_lehmann(&values, levels.0.max(levels.1)).unwrap();
            prop_assert!(wide.low <= narrow.low && narrow.low <= narrow.value);
            prop_assert!(narrow.value <= narrow.high && narrow.high <= wide.high);
        }

        #[test]
        fn the_interval_excludes_what_the_test_rejects(values in prop::collection::vec(-9i32..9, 1..70), x in -9i32..9) {
            use crate::measure::stats::signed_rank::{p_above, p_below};
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let x = f64::from(x) / 2.0;
            let interval = hodges_lehmann(&values, 0.9).unwrap();
            prop_assert_eq!(interval.low > x, p_above(&values, x) <= 0.05);
            prop_assert_eq!(interval.high < x, p_below(&values, x) <= 0.05);
        }
    }
}

//! Holm's correction for several claims at once (Holm 1979): the probability that any of them is wrong stays within the
//! error, whatever the claims have to do with each other.

use super::signed_rank::ROUNDING;

/// The adjusted p-values, in the order given: a claim holds where its adjusted p-value is at most the error.
///
/// The i-th smallest of m is multiplied by m - i + 1, is at least the one before it and at most 1.
pub fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (step, index) in ascending(p_values).into_iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - step) as f64).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

/// The error at which each claim was tested, in the order given: error / (m - i + 1) for the i-th that holds; where the
/// procedure stopped, that step's error for it and all after it.
///
/// An interval of this error excludes the bound exactly where the claim holds.
pub fn levels(p_values: &[f64], error: f64) -> Vec<f64> {
    let mut levels = vec![error; p_values.len()];
    let mut stopped = None;
    for (step, index) in ascending(p_values).into_iter().enumerate() {
        let remaining = (p_values.len() - step) as f64;
        levels[index] = stopped.unwrap_or(error / remaining);
        if !holds(p_values[index] * remaining, error) {
            stopped = Some(levels[index]);
        }
    }
    levels
}

/// Whether a claim of this p-value holds at this error, give or take the rounding.
pub(super) fn holds(p: f64, error: f64) -> bool {
    p <= error * ROUNDING
}

fn ascending(p_values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}, not {expected:?}");
    }

    #[test]
    fn a_known_example_is_adjusted() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
        assert_near(&adjusted(&[0.01, 0.04, 0.03, 0.005]), &[0.03, 0.06, 0.06, 0.02]);
        assert_near(&adjusted(&[0.2]), &[0.2]);
        assert_near(&adjusted(&[0.9, 0.8]), &[1.0, 1.0]);
        assert_near(&adjusted(&[]), &[]);
    }

    #[test]
    fn levels_stop_where_the_procedure_stops() {
        // 0.005 <= 0.05/4, 0.01 <= 0.05/3, 0.03 > 0.05/2: there it stops.
        assert_near(&levels(&[0.01, 0.04, 0.03, 0.005], 0.05), &[0.05 / 3.0, 0.025, 0.025, 0.0125]);
        assert_near(&levels(&[0.001, 0.9], 0.05), &[0.025, 0.05]);
        assert_near(&levels(&[0.5, 0.9], 0.05), &[0.025, 0.025]);
    }

    proptest! {
        #[test]
        fn it_lies_between_no_correction_and_bonferroni(p_values in prop::collection::vec(0.0f64..1.0, 1..12)) {
            let m = p_values.len() as f64;
            for (p, adjusted) in p_values.iter().zip(adjusted(&p_values)) {
                prop_assert!(*p <= adjusted && adjusted <= (p * m).min(1.0));
            }
        }

        #[test]
        fn both_readings_agree(p_values in prop::collection::vec(0.0f64..0.1, 1..12)) {
            let levels = levels(&p_values, 0.05);
            for ((p, adjusted), level) in p_values.iter().zip(adjusted(&p_values)).zip(levels) {
                prop_assert_eq!(holds(adjusted, 0.05), holds(*p, level));
            }
        }

        #[test]
        fn order_does_not_matter(p_values in prop::collection::vec(0.0f64..1.0, 1..12)) {
            let mut reversed: Vec<f64> = p_values.iter().rev().copied().collect();
            reversed = adjusted(&reversed);
            reversed.reverse();
            prop_assert_eq!(adjusted(&p_values), reversed);
        }
    }
}

//! Wilcoxon's signed-rank statistic: its distribution where there is no effect, and the tests that follow from it.
//!
//! The statistic T is counted over Walsh averages, the (`d_i` + `d_j`) / 2 with i <= j: as many of them lie above x as
//! the positive ranks of the `d_i` - x sum to (Tukey 1949; Hollander, Wolfe and Chicken, Nonparametric Statistical Methods,
//! 3.1). Tests and intervals are then two readings of one count and never contradict each other.
//!
//! An average that is equal to x counts against the claim. Moving tied values apart at random would give a sample
//! without ties, whose T is no larger; so with ties and zeros a p-value is an upper bound, and none need be dropped.

use std::sync::LazyLock;

/// The largest number of values whose distribution is computed exactly; above it, the normal approximation with
/// continuity correction.
pub const EXACT_UP_TO: usize = 64;

/// Slack for the rounding of sums and products of probabilities.
pub(super) const ROUNDING: f64 = 1.0 + 1e-12;

/// `[n][t]`: P(T <= t) for n values.
static AT_MOST: LazyLock<Vec<Vec<f64>>> = LazyLock::new(|| {
    let mut all = vec![vec![1.0]];
    let mut density = vec![1.0];
    for rank in 1..=EXACT_UP_TO {
        // Rank r is in the sum or is not, each with probability 1/2.
        let mut next = vec![0.0; density.len() + rank];
        for (t, p) in density.iter().enumerate() {
            next[t] += p / 2.0;
            next[t + rank] += p / 2.0;
        }
        density = next;
        all.push(
            density
                .iter()
                .scan(0.0, |sum, p| {
                    *sum += p;
                    Some(*sum)
                })
                .collect(),
        );
    }
    all
});

/// P(T <= t) for `n` values that are symmetric around 0.
pub fn at_most(n: usize, t: usize) -> f64 {
    if t >= n * (n + 1) / 2 {
        return 1.0;
    }
    AT_MOST.get(n).map_or_else(|| approximately_at_most(n, t), |of_n| of_n[t].min(1.0))
}

/// The normal approximation of [`at_most`], with continuity correction.
fn approximately_at_most(n: usize, t: usize) -> f64 {
    let n = n as f64;
    let mean = n * (n + 1.0) / 4.0;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
    let z = (t as f64 + 0.5 - mean) / variance.sqrt();
    libm::erfc(-z / std::f64::consts::SQRT_2) / 2.0
}

/// The largest t with P(T <= t) <= `error`, a one-sided error; `None` where even T = 0 is likelier than that.
pub fn critical(n: usize, error: f64) -> Option<usize> {
    let (mut low, mut high) = (0, n * (n + 1) / 2 + 1);
    // Invariant: all below `low` are within the error, none from `high` on.
    while low < high {
        let t = usize::midpoint(low, high);
        if at_most(n, t) <= error * ROUNDING {
            low = t + 1;
        } else {
            high = t;
        }
    }
    low.checked_sub(1)
}

/// The fewest values that can show anything at this one-sided error: n with 2^-n <= `error`.
pub fn fewest(error: f64) -> usize {
    // Just below a whole number, rounding made it so.
    (-error.log2() - 1e-9).ceil().max(1.0) as usize
}

/// The p-value of the claim that the centre lies above `x`: how likely so many Walsh averages above `x` are where the
/// centre is `x` or less. 1 for no values.
pub fn p_above(values: &[f64], x: f64) -> f64 {
    Sorted::of(values).p_above(x)
}

/// The p-value of the claim that the centre lies below `x`. 1 for no values.
pub fn p_below(values: &[f64], x: f64) -> f64 {
    Sorted::of(values).p_below(x)
}

/// Values in rising order, for several tests of them.
pub(super) struct Sorted(Vec<f64>);

impl Sorted {
    pub(super) fn of(values: &[f64]) -> Self {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        Self(values)
    }

    /// As [`p_above`].
    pub(super) fn p_above(&self, x: f64) -> f64 {
        at_most(self.0.len(), self.averages(|average| average <= x))
    }

    /// As [`p_below`].
    pub(super) fn p_below(&self, x: f64) -> f64 {
        let n = self.0.len();
        at_most(n, n * (n + 1) / 2 - self.averages(|average| average < x))
    }

    /// How many Walsh averages are `small`, which must hold for all below one for which it holds.
    fn averages(&self, small: impl Fn(f64) -> bool) -> usize {
        let mut count = 0;
        let mut partners = self.0.len();
        for (i, value) in self.0.iter().enumerate() {
            // The larger the one, the smaller the other may be: `partners` only falls.
            while partners > i && !small(f64::midpoint(*value, self.0[partners - 1])) {
                partners -= 1;
            }
            if partners <= i {
                break;
            }
            count += partners - i;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn near(a: f64, b: f64, within: f64) -> bool {
        (a - b).abs() <= within
    }

    #[test]
    fn critical_values_agree_with_the_published_table() {
        // Wilcoxon and Wilcox, Some Rapid Approximate Statistical Procedures (1964): the largest T that is significant,
        // one-sided, at 5, 2.5, 1 and 0.5 %.
        let table: &[(usize, [Option<usize>; 4])] = &[
            (4, [None, None, None, None]),
            (5, [Some(0), None, None, None]),
            (6, [Some(2), Some(0), None, None]),
            (7, [Some(3), Some(2), Some(0), None]),
            (8, [Some(5), Some(3), Some(1), Some(0)]),
            (9, [Some(8), Some(5), Some(3), Some(1)]),
            (10, [Some(10), Some(8), Some(5), Some(3)]),
            (11, [Some(13), Some(10), Some(7), Some(5)]),
            (12, [Some(17), Some(13), Some(9), Some(7)]),
            (13, [Some(21), Some(17), Some(12), Some(9)]),
            (14, [Some(25), Some(21), Some(15), Some(12)]),
            (15, [Some(30), Some(25), Some(19), Some(15)]),
            (20, [Some(60), Some(52), Some(43), Some(37)]),
            (25, [Some(100), Some(89), Some(76), Some(68)]),
        ];
        for (n, expected) in table {
            let found = [0.05, 0.025, 0.01, 0.005].map(|error| critical(*n, error));
            assert_eq!(&found, expected, "n = {n}");
        }
    }

    #[test]
    fn small_distributions_agree_with_counting_by_hand() {
        // n = 3: the sums of subsets of {1, 2, 3} are 0, 1, 2, 3, 3, 4, 5, 6.
        let expected = [1.0, 2.0, 3.0, 5.0, 6.0, 7.0, 8.0].map(|count| count / 8.0);
        for (t, p) in expected.into_iter().enumerate() {
            assert!(near(at_most(3, t), p, 1e-15), "t = {t}");
        }
        assert!(near(at_most(0, 0), 1.0, 0.0));
    }

    #[test]
    fn the_approximation_meets_the_exact_distribution_where_it_takes_over() {
        let n = EXACT_UP_TO;
        for t in 0..=n * (n + 1) / 2 {
            let (exact, approximate) = (at_most(n, t), approximately_at_most(n, t));
            assert!(near(exact, approximate, 1.5e-3), "t = {t}: {exact} and {approximate}");
            // What decides a verdict are tails: there it errs to the safe side.
            assert!(exact > 0.01 || approximate >= exact * 0.999, "t = {t}: {exact} and {approximate}");
        }
        assert!(critical(65, 0.05) > critical(64, 0.05));
    }

    #[test]
    fn a_published_example_has_its_p_value() {
        // Darwin's 15 pairs of maize (The Effects of Cross and Self Fertilisation, 1876), in eighths of an inch: T- = 24,
        // one-sided p = 0.0206 by exact enumeration.
        let differences = [49., -67., 8., 16., 6., 23., 28., 41., 14., 29., 56., 24., 75., 60., -48.];
        let p = p_above(&differences, 0.0);
        assert!(near(p, 0.0206, 5e-5), "{p}");
        assert!(p_below(&differences, 0.0) > 0.97);
    }

    #[test]
    fn zeros_and_ties_weaken_a_claim() {
        let clear = p_above(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.0);
        let with_zeros = p_above(&[0.0, 0.0, 3.0, 4.0, 5.0, 6.0], 0.0);
        assert!(near(clear, 1.0 / 64.0, 1e-15));
        assert!(with_zeros > clear);
        assert!(near(p_above(&[0.0; 8], 0.0), 1.0, 0.0), "nothing but zeros says nothing");
        assert!(near(p_above(&[], 0.0), 1.0, 0.0));
    }

    proptest! {
        #[test]
        fn averages_are_counted_as_one_by_one(values in prop::collection::vec(-4i32..4, 0..20), x in -4i32..4) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let x = f64::from(x) / 2.0;
            let pairs = (0..values.len()).flat_map(|i| (i..values.len()).map(move |j| (i, j)));
            let expected = pairs.filter(|(i, j)| f64::midpoint(values[*i], values[*j]) <= x).count();
            prop_assert_eq!(Sorted::of(&values).averages(|average| average <= x), expected);
        }

        #[test]
        fn a_critical_value_is_the_largest_within_the_error(n in 0usize..80, error in 1e-6f64..0.5) {
            match critical(n, error) {
                Some(t) => prop_assert!(at_most(n, t) <= error * ROUNDING && at_most(n, t + 1) > error),
                None => prop_assert!(at_most(n, 0) > error),
            }
            prop_assert_eq!(critical(n, error).is_some(), n >= fewest(error));
        }
    }
}

//! Planned looks at a comparison that goes on: when to look, and what each look may cost.
//!
//! Whoever looks again and again until an interval excludes a bound is wrong far more often than the interval says. Here
//! the looks are planned, and the error is split between them: the probability that any look is wrong is at most the sum
//! of their errors (Boole), whatever they have to do with each other. So the intervals of all looks together hold the
//! true value with 1 - error: repeated confidence intervals (Jennison and Turnbull, Group Sequential Methods, ch. 9),
//! and each statement that is read from one of them is as sure.
//!
//! How it is split:
//!
//! 1. The first look that can exclude anything for a small share of the error gets just what that takes: n reloads
//!    that all lie on one side have a one-sided error of 2^-n. A difference of several times the noise is found there.
//! 2. The rest is spent evenly over the reloads (the linear spending function: Lan and `DeMets` 1983): a look may spend the
//!    share of the reloads made since the last. Functions that keep more for the end find a cost of half the noise no
//!    sooner and one of twice the noise later; those that keep less miss more of the small ones.
//! 3. The signed-rank statistic has steps: what a look can't use up is passed on to the next.
//!
//! Spending functions are commonly solved for the joint distribution of the looks, which gives narrower intervals. The
//! sum is used instead since it needs no assumption on that distribution.

use super::signed_rank::{at_most, critical, fewest};

/// The numbers of reloads after which a comparison is looked at, if nothing else is asked for.
pub const STANDARD: [usize; 8] = [6, 8, 12, 16, 24, 32, 48, 64];

/// The largest share of the error that the first look may take.
const FIRST_SHARE: f64 = 0.35;

/// One look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// After how many reloads.
    pub reloads: usize,
    /// The error of each one-sided claim at this look, over all rows.
    pub one_sided: f64,
}

/// Why there is no such plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// An error that is no probability.
    #[error("an error of {0} for a comparison: it must lie between 0 and 1, as 0.1 for intervals of 90 %")]
    Error(f64),
    /// No looks, or not in rising order.
    #[error("looks after {0:?} reloads: name at least one, each after more reloads than the one before it")]
    Order(Vec<usize>),
    /// A comparison of nothing.
    #[error("a comparison of no rows: name at least one")]
    NoRows,
    /// Too few reloads for any verdict.
    #[error("{reloads} reloads can't show anything at an error of {error} over {rows} rows: allow at least {needed}")]
    TooFew {
        /// The reloads at the last look.
        reloads: usize,
        /// The error, two-sided.
        error: f64,
        /// The rows.
        rows: usize,
        /// The fewest that can.
        needed: usize,
    },
}

/// When a comparison is looked at, and the error of each look.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    looks: Vec<Look>,
    one_sided: f64,
    rows: usize,
}

impl Plan {
    /// Splits `error` between looks after so many `reloads`, for a comparison of `rows` rows.
    ///
    /// `error` is two-sided, as 0.1 for 90 %: each claim in one direction (above the budget, below it) is wrong with
    /// half of it at most, over all looks and rows.
    ///
    /// # Errors
    ///
    /// [`PlanError`] where that is no plan, or its last look could never exclude anything.
    pub fn new(error: f64, reloads: &[usize], rows: usize) -> Result<Self, PlanError> {
        if !(error > 0.0 && error < 1.0) {
            return Err(PlanError::Error(error));
        }
        let rising = reloads.is_sorted_by(|a, b| a < b) && reloads.first().is_some_and(|n| *n > 0);
        let Some(last) = reloads.last().copied().filter(|_| rising) else {
            return Err(PlanError::Order(reloads.to_vec()));
        };
        if rows == 0 {
            return Err(PlanError::NoRows);
        }
        let one_sided = error / 2.0;
        let each = one_sided / rows as f64;
        let needed = fewest(each);
        if last < needed {
            return Err(PlanError::TooFew { reloads: last, error, rows, needed });
        }
        let first = reloads.iter().copied().find(|n| rows as f64 * at_most(*n, 0) <= FIRST_SHARE * one_sided);
        let reserved = first.map_or(0.0, |n| rows as f64 * at_most(n, 0));
        let mut spent = 0.0;
        let mut looks = Vec::with_capacity(reloads.len());
        for n in reloads.iter().copied() {
            let reserved_now = if first.is_some_and(|first| n >= first) { reserved } else { 0.0 };
            let allowed = reserved_now + (one_sided - reserved) * n as f64 / last as f64 - spent;
            let used = usable(n, if n == last { one_sided - spent } else { allowed }, rows);
            spent += used;
            looks.push(Look { reloads: n, one_sided: used });
        }
        Ok(Self { looks, one_sided, rows })
    }

    /// A plan of the looks [`STANDARD`] at 90 %.
    ///
    /// # Errors
    ///
    /// As [`Plan::new`].
    pub fn standard(rows: usize) -> Result<Self, PlanError> {
        Self::new(0.10, &STANDARD, rows)
    }

    /// The looks, the earliest first.
    pub fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// The error of each one-sided claim over all looks and rows.
    pub fn one_sided(&self) -> f64 {
        self.one_sided
    }

    /// How many rows it is for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of reloads at the last look.
    pub fn last(&self) -> usize {
        self.looks.last().map_or(0, |look| look.reloads)
    }

    /// The plan of a comparison that has to end after so many `reloads`: earlier looks stay as they were, and what later
    /// ones would have spent goes to a look at the end.
    ///
    /// It holds its error only where the end had nothing to do with the differences seen: a limit of time, not a wish.
    #[must_use]
    pub fn ended_at(&self, reloads: usize) -> Self {
        let mut looks: Vec<Look> = self.looks.iter().copied().filter(|look| look.reloads < reloads).collect();
        let spent: f64 = looks.iter().map(|look| look.one_sided).sum();
        looks.push(Look { reloads, one_sided: usable(reloads, self.one_sided - spent, self.rows) });
        Self { looks, ..*self }
    }
}

/// The part of an allowed one-sided error that a look after `reloads` can use, given the steps of the statistic.
fn usable(reloads: usize, allowed: f64, rows: usize) -> f64 {
    let rows = rows as f64;
    critical(reloads, allowed / rows).map_or(0.0, |t| rows * at_most(reloads, t))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_plan_spends_its_error_and_no_more() {
        for (error, rows) in [(0.1, 1), (0.05, 1), (0.1, 4), (0.2, 1), (0.01, 20)] {
            let plan = Plan::new(error, &STANDARD, rows).unwrap();
            let spent: f64 = plan.looks().iter().map(|look| look.one_sided).sum();
            assert!(spent <= error / 2.0 * (1.0 + 1e-9), "{spent} of {error}");
            assert!(spent > error / 2.0 * 0.95, "{spent} of {error}");
        }
    }

    #[test]
    fn the_first_look_can_stop_a_clear_case() {
        let plan = Plan::standard(1).unwrap();
        assert_eq!(plan.looks()[0], Look { reloads: 6, one_sided: 1.0 / 64.0 });
        // Four rows need 8 reloads: 4 / 2^6 is more than the whole error.
        let of_four = Plan::standard(4).unwrap();
        assert!(of_four.looks()[0].one_sided <= 0.0);
        assert_eq!(of_four.looks()[1], Look { reloads: 8, one_sided: 4.0 / 256.0 });
    }

    #[test]
    fn the_end_has_enough_left() {
        // A last look at less than a tenth of the error would need more reloads than it saves.
        let plan = Plan::standard(1).unwrap();
        assert!(plan.looks()[7].one_sided > 0.1 * plan.one_sided(), "{plan:?}");
    }

    #[test]
    fn a_plan_that_ends_early_spends_the_rest_at_its_end() {
        let plan = Plan::standard(1).unwrap();
        let ended = plan.ended_at(20);
        assert_eq!(ended.looks()[..4], plan.looks()[..4]);
        assert_eq!(ended.last(), 20);
        let spent: f64 = ended.looks().iter().map(|look| look.one_sided).sum();
        assert!(spent <= plan.one_sided() * (1.0 + 1e-9) && spent > plan.one_sided() * 0.9, "{spent}");
        assert_eq!(plan.ended_at(64).last(), 64);
        assert!(plan.ended_at(3).looks()[0].one_sided <= 0.0, "three reloads say nothing");
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        assert_eq!(Plan::new(0.0, &STANDARD, 1), Err(PlanError::Error(0.0)));
        assert!(matches!(Plan::new(f64::NAN, &STANDARD, 1), Err(PlanError::Error(_))));
        assert_eq!(Plan::new(0.1, &[], 1), Err(PlanError::Order(vec![])));
        assert_eq!(Plan::new(0.1, &[8, 8], 1), Err(PlanError::Order(vec![8, 8])));
        assert_eq!(Plan::new(0.1, &[0, 8], 1), Err(PlanError::Order(vec![0, 8])));
        assert_eq!(Plan::new(0.1, &STANDARD, 0), Err(PlanError::NoRows));
        let too_few = PlanError::TooFew { reloads: 4, error: 0.1, rows: 1, needed: 5 };
        assert_eq!(Plan::new(0.1, &[2, 4], 1), Err(too_few));
    }

    proptest! {
        #[test]
        fn no_plan_spends_more_than_its_error(
            error in 0.001f64..0.5, steps in prop::collection::vec(1usize..30, 1..12), rows in 1usize..10, end in 1usize..100,
        ) {
            let reloads: Vec<usize> = steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum) }).collect();
            if let Ok(plan) = Plan::new(error, &reloads, rows) {
                for plan in [plan.ended_at(end), plan] {
                    let spent: f64 = plan.looks().iter().map(|look| look.one_sided).sum();
                    prop_assert!(spent <= error / 2.0 * (1.0 + 1e-9));
                    prop_assert!(plan.looks().iter().all(|look| look.one_sided >= 0.0));
                }
            }
        }
    }
}

//! The verdict on a candidate against a budget: what it may cost more than its baseline.
//!
//! A test of non-inferiority, on request of equivalence, read from the interval of each planned look: `regressed` where
//! it lies above the budget, `ok` where below, else more reloads, and after the last look `inconclusive`. Several rows
//! are tested together by Holm's procedure, for each kind of claim on its own.

use super::{
    hodges_lehmann::with_error,
    holm::{self, holds},
    looks::Plan,
    signed_rank::Sorted,
};
use crate::measure::interval::Estimate;

/// What a budget bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aim {
    /// The candidate may be faster by any amount, slower by the budget: non-inferiority.
    AtMost,
    /// The candidate may be neither slower nor faster by more than the budget: equivalence.
    Within,
}

/// What a candidate may cost more than its baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    ns: f64,
    aim: Aim,
}

/// Why a budget is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// No amount.
    #[error("a budget of {0} ns: it must be a finite number that is not negative")]
    Amount(f64),
    /// Equivalence within nothing.
    #[error("equivalence within 0 ns can't be shown: name a budget above the noise floor")]
    NothingWide,
    /// Less than can be seen.
    #[error(
        "a budget of {budget} ns is below the noise floor of {floor:.2} ns: no verdict could keep it here. \
         Raise the budget, or calibrate on a quieter machine"
    )]
    BelowFloor {
        /// The budget, in nanoseconds a packet.
        budget: f64,
        /// The noise floor, in nanoseconds a packet.
        floor: f64,
    },
}

impl Budget {
    /// A budget of `ns` nanoseconds a packet; `floor` is the machine's noise floor, where it is known.
    ///
    /// # Errors
    ///
    /// [`BudgetError`] for a negative or infinite budget, and one below the floor.
    pub fn new(ns: f64, aim: Aim, floor: Option<f64>) -> Result<Self, BudgetError> {
        if !ns.is_finite() || ns < 0.0 {
            return Err(BudgetError::Amount(ns));
        }
        if let Some(floor) = floor.filter(|floor| ns < *floor) {
            return Err(BudgetError::BelowFloor { budget: ns, floor });
        }
        if aim == Aim::Within && ns <= 0.0 {
            return Err(BudgetError::NothingWide);
        }
        Ok(Self { ns, aim })
    }

    /// The budget in nanoseconds a packet.
    pub fn ns(&self) -> f64 {
        self.ns
    }

    /// What it bounds.
    pub fn aim(&self) -> Aim {
        self.aim
    }
}

/// One comparison: a row of a report.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// Candidate minus baseline of each reload, in nanoseconds a packet and in the order measured.
    pub differences: &'a [f64],
    /// What is allowed.
    pub budget: Budget,
}

/// What is concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The cost is within the budget.
    Ok,
    /// The cost is above the budget.
    Regressed,
    /// Equivalence was asked for, and the candidate is faster by more than the budget.
    Different,
    /// Not yet known: measure until there are so many reloads in all.
    More {
        /// The reloads at the next look.
        until: usize,
    },
    /// Not known after the last look.
    Inconclusive,
}

/// A verdict and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// Whether the candidate is faster than its baseline, by any amount. No failure, and no reason to stop early.
    pub improved: bool,
    /// The estimate and its interval in nanoseconds a packet, at the look that decided, or else the last one reached.
    /// An end is infinite where that look claims nothing. `None` before the first look.
    pub estimate: Option<Estimate>,
    /// The level of the interval: 0.97 for 97 %. It is above that of the whole plan, whose error the looks share.
    pub level: f64,
    /// The reloads that it rests on.
    pub reloads: usize,
}

/// Why nothing can be decided.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// A difference that is no number.
    #[error("the difference of reload {reload} in row {row} is {value}: measure that reload again")]
    NotFinite {
        /// The row, from 0.
        row: usize,
        /// The reload, from 0.
        reload: usize,
        /// What stood there.
        value: f64,
    },
    /// The plan splits its error between another number of rows.
    #[error("{found} rows for a plan of {planned}: plan for as many rows as are compared")]
    Rows {
        /// The rows given.
        found: usize,
        /// The rows of the plan.
        planned: usize,
    },
    /// Rows that were not measured alike.
    #[error("row {row} has {found} reloads and row 0 has {expected}: every reload measures every row")]
    Lengths {
        /// The row, from 0.
        row: usize,
        /// Its reloads.
        found: usize,
        /// Those of the first row.
        expected: usize,
    },
}

/// Decides on one comparison from the `differences` of its reloads so far, in the order measured.
///
/// All looks of the plan that are reached are gone through from the first, and the first that decides counts: what was
/// measured after it, or since the last look, changes nothing.
///
/// # Errors
///
/// [`DecideError`] where a difference is not finite or the plan is for several rows.
pub fn decide(differences: &[f64], budget: Budget, plan: &Plan) -> Result<Decision, DecideError> {
    let mut decisions = decide_rows(&[Row { differences, budget }], plan)?;
    decisions.pop().ok_or(DecideError::Rows { found: 0, planned: plan.rows() })
}

/// Decides on several comparisons that were measured in the same reloads: as [`decide`], where the error holds for all
/// rows together. A row that has its verdict keeps it, while others need more.
///
/// # Errors
///
/// [`DecideError`] where a difference is not finite, or the rows don't fit the plan or each other.
pub fn decide_rows(rows: &[Row<'_>], plan: &Plan) -> Result<Vec<Decision>, DecideError> {
    check(rows, plan)?;
    let measured = rows.first().map_or(0, |row| row.differences.len());
    let undecided = Decision { verdict: next(plan, measured), improved: false, estimate: None, level: 0.0, reloads: 0 };
    let mut errors = vec![plan.one_sided(); rows.len()];
    let mut decisions = vec![undecided; rows.len()];
    let open = |decision: &Decision| matches!(decision.verdict, Verdict::More { .. } | Verdict::Inconclusive);
    for look in plan.looks().iter().filter(|look| look.reloads <= measured) {
        if !decisions.iter().any(open) {
            break;
        }
        let claims: Vec<Claims> = rows.iter().map(|row| Claims::of(row, look.reloads)).collect();
        let tested = Tested::of(&claims, look.one_sided);
        for (index, decision) in decisions.iter_mut().enumerate().filter(|(_, decision)| open(decision)) {
            let (verdict, one_sided) = tested.verdict(index, rows[index].budget.aim);
            *decision = Decision {
                verdict: verdict.unwrap_or(undecided.verdict),
                improved: tested.improved.holds[index],
                reloads: look.reloads,
                ..*decision
            };
            errors[index] = one_sided;
        }
    }
    for ((decision, row), one_sided) in decisions.iter_mut().zip(rows).zip(errors) {
        decision.estimate = with_error(&row.differences[..decision.reloads], one_sided);
        decision.level = 1.0 - 2.0 * one_sided;
    }
    Ok(decisions)
}

fn check(rows: &[Row<'_>], plan: &Plan) -> Result<(), DecideError> {
    if rows.len() != plan.rows() {
        return Err(DecideError::Rows { found: rows.len(), planned: plan.rows() });
    }
    let expected = rows.first().map_or(0, |row| row.differences.len());
    for (row, of) in rows.iter().enumerate() {
        if of.differences.len() != expected {
            return Err(DecideError::Lengths { row, found: of.differences.len(), expected });
        }
        if let Some((reload, value)) = of.differences.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            return Err(DecideError::NotFinite { row, reload, value: *value });
        }
    }
    Ok(())
}

/// What a comparison is that no look has decided.
fn next(plan: &Plan, measured: usize) -> Verdict {
    let look = plan.looks().iter().find(|look| look.reloads > measured);
    look.map_or(Verdict::Inconclusive, |look| Verdict::More { until: look.reloads })
}

/// The p-values of what could be said of a row.
struct Claims {
    regressed: f64,
    ok: f64,
    different: f64,
    improved: f64,
}

impl Claims {
    fn of(row: &Row<'_>, reloads: usize) -> Self {
        let differences = Sorted::of(&row.differences[..reloads]);
        let Budget { ns, aim } = row.budget;
        let below = differences.p_below(ns);
        let (ok, different) = match aim {
            Aim::AtMost => (below, 1.0),
            // Two one-sided tests (Schuirmann 1987): both must hold, each at the full error.
            Aim::Within => (below.max(differences.p_above(-ns)), differences.p_below(-ns)),
        };
        Self { regressed: differences.p_above(ns), ok, different, improved: differences.p_below(0.0) }
    }
}

/// One kind of claim over all rows.
struct Family {
    holds: Vec<bool>,
    levels: Vec<f64>,
}

impl Family {
    fn of(p_values: &[f64], one_sided: f64) -> Self {
        Self {
            // A look that has no error to spend claims nothing, not even what is certain.
            holds: holm::adjusted(p_values).into_iter().map(|p| one_sided > 0.0 && holds(p, one_sided)).collect(),
            levels: holm::levels(p_values, one_sided),
        }
    }
}

/// What a look says of all rows.
struct Tested {
    regressed: Family,
    ok: Family,
    different: Family,
    improved: Family,
}

impl Tested {
    fn of(claims: &[Claims], one_sided: f64) -> Self {
        let family = |of: fn(&Claims) -> f64| Family::of(&claims.iter().map(of).collect::<Vec<_>>(), one_sided);
        Self {
            regressed: family(|claims| claims.regressed),
            ok: family(|claims| claims.ok),
            different: family(|claims| claims.different),
            improved: family(|claims| claims.improved),
        }
    }

    /// The verdict on a row, and the one-sided error of the interval that shows it.
    fn verdict(&self, row: usize, aim: Aim) -> (Option<Verdict>, f64) {
        let families =
            [(Verdict::Regressed, &self.regressed), (Verdict::Ok, &self.ok), (Verdict::Different, &self.different)];
        let possible = if aim == Aim::AtMost { &families[..2] } else { &families[..] };
        if let Some((verdict, family)) = possible.iter().find(|(_, family)| family.holds[row]) {
            return (Some(*verdict), family.levels[row]);
        }
        let widest = possible.iter().map(|(_, family)| family.levels[row]).fold(f64::INFINITY, f64::min);
        (None, widest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at_most(ns: f64) -> Budget {
        Budget::new(ns, Aim::AtMost, None).unwrap()
    }

    fn within(ns: f64) -> Budget {
        Budget::new(ns, Aim::Within, None).unwrap()
    }

    /// So many differences around `centre`, evenly spread over `spread` on each side, in a mixed order.
    fn around(centre: f64, spread: f64, reloads: usize) -> Vec<f64> {
        let n = reloads as f64;
        (0..reloads).map(|i| centre + spread * (2.0 * ((i * 7 % reloads) as f64 + 0.5) / n - 1.0)).collect()
    }

    fn verdict(differences: &[f64], budget: Budget) -> Verdict {
        decide(differences, budget, &Plan::standard(1).unwrap()).unwrap().verdict
    }

    #[test]
    fn clear_cases_are_decided_at_the_first_look() {
        assert_eq!(verdict(&around(3.0, 0.5, 6), at_most(1.0)), Verdict::Regressed);
        assert_eq!(verdict(&around(0.0, 0.5, 6), at_most(1.0)), Verdict::Ok);
        assert_eq!(verdict(&around(-3.0, 0.5, 6), at_most(1.0)), Verdict::Ok);
    }

    #[test]
    fn what_is_not_clear_asks_for_more_until_the_last_look() {
        let near = around(1.0, 0.5, 64);
        assert_eq!(verdict(&near[..0], at_most(1.0)), Verdict::More { until: 6 });
        assert_eq!(verdict(&near[..6], at_most(1.0)), Verdict::More { until: 8 });
        assert_eq!(verdict(&near[..47], at_most(1.0)), Verdict::More { until: 48 });
        assert_eq!(verdict(&near, at_most(1.0)), Verdict::Inconclusive);
    }

    #[test]
    fn an_improvement_is_noted_and_no_failure() {
        let plan = Plan::standard(1).unwrap();
        let faster = decide(&around(-3.0, 0.5, 8), at_most(1.0), &plan).unwrap();
        assert!(faster.improved && faster.verdict == Verdict::Ok, "{faster:?}");
        let same = decide(&around(0.0, 0.5, 8), at_most(1.0), &plan).unwrap();
        assert!(!same.improved, "{same:?}");
    }

    #[test]
    fn equivalence_is_bounded_on_both_sides() {
        assert_eq!(verdict(&around(0.0, 0.5, 8), within(1.0)), Verdict::Ok);
        assert_eq!(verdict(&around(3.0, 0.5, 8), within(1.0)), Verdict::Regressed);
        assert_eq!(verdict(&around(-3.0, 0.5, 8), within(1.0)), Verdict::Different);
        assert_eq!(verdict(&around(-1.0, 0.5, 8), within(1.0)), Verdict::More { until: 12 });
        assert_eq!(verdict(&around(-1.0, 0.5, 8), at_most(1.0)), Verdict::Ok);
    }

    #[test]
    fn budgets_that_can_not_be_kept_are_refused() {
        let below = BudgetError::BelowFloor { budget: 0.5, floor: 0.8 };
        assert_eq!(Budget::new(0.5, Aim::AtMost, Some(0.8)), Err(below));
        assert!(Budget::new(0.8, Aim::AtMost, Some(0.8)).is_ok());
        assert!(Budget::new(0.0, Aim::AtMost, None).is_ok());
        assert_eq!(Budget::new(0.0, Aim::Within, None), Err(BudgetError::NothingWide));
        assert_eq!(Budget::new(-1.0, Aim::AtMost, None), Err(BudgetError::Amount(-1.0)));
        assert!(matches!(Budget::new(f64::NAN, Aim::AtMost, None), Err(BudgetError::Amount(_))));
        // A floor that nothing is known of is infinite.
        assert!(Budget::new(5.0, Aim::AtMost, Some(f64::INFINITY)).is_err());
    }

    #[test]
    fn input_that_does_not_fit_is_refused() {
        let plan = Plan::standard(2).unwrap();
        let row = |differences| Row { differences, budget: at_most(1.0) };
        let error = decide_rows(&[row(&[1.0])], &plan).unwrap_err();
        assert_eq!(error, DecideError::Rows { found: 1, planned: 2 });
        let error = decide_rows(&[row(&[1.0]), row(&[])], &plan).unwrap_err();
        assert_eq!(error, DecideError::Lengths { row: 1, found: 0, expected: 1 });
        let error = decide_rows(&[row(&[1.0, 2.0]), row(&[1.0, f64::INFINITY])], &plan).unwrap_err();
        assert_eq!(error, DecideError::NotFinite { row: 1, reload: 1, value: f64::INFINITY });
    }

    #[test]
    fn a_verdict_stays_whatever_comes_after_it() {
        let mut differences = around(3.0, 0.5, 6);
        let first = decide(&differences, at_most(1.0), &Plan::standard(1).unwrap()).unwrap();
        differences.extend(around(-30.0, 0.5, 58));
        assert_eq!(decide(&differences, at_most(1.0), &Plan::standard(1).unwrap()).unwrap(), first);
        assert_eq!(first.reloads, 6);
    }

    #[test]
    fn rows_get_verdicts_of_their_own() {
        let plan = Plan::standard(3).unwrap();
        let (slow, same, near) = (around(4.0, 0.5, 16), around(0.0, 0.5, 16), around(1.0, 0.5, 16));
        let rows = [&slow, &same, &near].map(|differences| Row { differences, budget: at_most(1.0) });
        let verdicts: Vec<Verdict> = decide_rows(&rows, &plan).unwrap().iter().map(|d| d.verdict).collect();
        assert_eq!(verdicts, [Verdict::Regressed, Verdict::Ok, Verdict::More { until: 24 }]);
    }

    #[test]
    fn many_rows_need_more_than_one() {
        // All six above the budget: enough for one row, not where it is one of ten.
        let slow = around(3.0, 0.5, 6);
        let rows = [Row { differences: &slow, budget: at_most(1.0) }; 10];
        let decisions = decide_rows(&rows, &Plan::standard(10).unwrap()).unwrap();
        assert!(decisions.iter().all(|d| d.verdict == Verdict::More { until: 8 }), "{decisions:?}");
    }

    proptest! {
        #[test]
        fn the_interval_shows_the_verdict(
            rows in prop::collection::vec((prop::collection::vec(-20i32..20, 64), -10i32..10, any::<bool>()), 1..5),
            reloads in 6usize..64,
        ) {
            let budget = [at_most(1.0), within(1.0)];
            let of: Vec<(Vec<f64>, Budget)> = rows
                .iter()
                .map(|(values, centre, equivalence)| {
                    let centre = f64::from(*centre) / 2.0;
                    let values = values[..reloads].iter().map(|v| centre + f64::from(*v) / 16.0).collect();
                    (values, budget[usize::from(*equivalence)])
                })
                .collect();
            let rows: Vec<Row<'_>> = of.iter().map(|(differences, budget)| Row { differences, budget: *budget }).collect();
            for (row, found) in rows.iter().zip(decide_rows(&rows, &Plan::standard(rows.len()).unwrap()).unwrap()) {
                let Estimate { low, high, .. } = found.estimate.unwrap();
                let equivalence = row.budget.aim() == Aim::Within;
                match found.verdict {
                    Verdict::Regressed => prop_assert!(low > 1.0, "{:?}", found),
                    Verdict::Ok => prop_assert!(high < 1.0 && (!equivalence || low > -1.0), "{:?}", found),
                    Verdict::Different => prop_assert!(equivalence && high < -1.0, "{:?}", found),
                    _ => prop_assert!(low <= 1.0 && high >= if equivalence { -1.0 } else { 1.0 }, "{:?}", found),
                }
            }
        }
    }
}

//! Two kernels: the same file, run under each of them, boot by boot in turns.
//!
//! A boot is to a kernel what a reload is to a program: it decides where code and data lie. So boots are taken in pairs,
//! one of each kernel in random order, a pair gives one difference, and the interval is over the pairs.

use super::{CompareError, ERROR, numbers::Numbers, of_both, verdict_of};
use crate::{
    measure::{
        fingerprint,
        interval::median,
        stats::{
            decide::{Aim, Budget, Decision, Row, decide_rows},
            hodges_lehmann::hodges_lehmann,
            looks::Plan,
        },
    },
    record::{
        compare::{COMPARE_SCHEMA, CompareReport, CompareRow},
        stored::Stored,
    },
    xdp::XdpMode,
};

/// Fewest pairs of boots of which anything can be said.
pub const FEWEST_PAIRS: usize = super::FEWEST_RELOADS;

/// What a caller may choose.
#[derive(Debug, Clone)]
pub struct KernelOptions {
    /// What `b` may cost more, in nanoseconds a packet; `None`: the comparison only reports.
    pub budget: Option<f64>,
    /// Whether `b` may not be faster by more than the budget either.
    pub within: bool,
    /// The seed of the order in which kernels were booted.
    pub seed: u64,
    /// Whether the machines were emulated, so that their nanoseconds are none of a processor.
    pub emulated: bool,
}

/// One boot of each kernel: what the run under it reported, and how long both took, in seconds.
#[derive(Debug, Clone)]
pub struct PairOfBoots {
    /// Of the first kernel.
    pub a: Vec<Stored>,
    /// Of the second.
    pub b: Vec<Stored>,
    /// Seconds.
    pub seconds: f64,
}

/// The orders of so many pairs: whether the second kernel is booted first. As many of the one as of the other.
pub fn orders(pairs: usize, seed: u64) -> Vec<bool> {
    let mut orders: Vec<bool> = (0..pairs).map(|n| n % 2 == 1).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut orders);
    orders
}

/// Compares two kernels by the reports of their boots.
///
/// # Errors
/// Where a report is of another verb, nothing was priced under both kernels, or there are too few pairs.
pub fn of_kernels(
    (a_name, b_name): (&str, &str),
    pairs: &[PairOfBoots],
    options: &KernelOptions,
) -> Result<CompareReport, CompareError> {
    if pairs.len() < FEWEST_PAIRS {
        return Err(CompareError::TooFewBoots { found: pairs.len() });
    }
    let numbers = |stored: &[Stored]| Numbers::of(stored).map_err(|verb| CompareError::NotARun { verb });
    let booted: Vec<(Numbers, Numbers)> =
        pairs.iter().map(|pair| Ok((numbers(&pair.a)?, numbers(&pair.b)?))).collect::<Result<_, CompareError>>()?;
    let rows = rows(&booted);
    let seconds = pairs.iter().map(|pair| pair.seconds).sum();
    let aim = if options.within { Aim::Within } else { Aim::AtMost };
    let budget = options.budget.map(|ns| Budget::new(ns, aim, None)).transpose()?;
    let whole: Vec<&Measured> = rows.iter().filter(|row| row.differences.len() == pairs.len()).collect();
    let (Some(first), false) = (booted.first(), whole.is_empty()) else { return Err(CompareError::NothingPriced) };
    let mut notes = vec![format!("the unit is a boot: {} of each kernel, in turns", pairs.len())];
    for (name, numbers) in [(a_name, &first.0), (b_name, &first.1)] {
        notes.extend(numbers.notes.iter().map(|note| format!("{name}: {note}")));
    }
    if options.emulated {
        notes.push(
            "the machines were emulated: what a packet costs is what the emulator takes for it, and tells of more or \
             less work, not of a processor"
                .to_owned(),
        );
    }
    let left_out = rows.iter().filter(|row| row.differences.len() != pairs.len());
    notes.extend(
        left_out.map(|row| format!("\"{}\" ({}) was not priced in every boot, and is left out", row.name, row.mode)),
    );
    let mut decisions = None;
    if let Some(budget) = budget {
        let plan = Plan::new(ERROR, &[pairs.len()], whole.len())?;
        let rows: Vec<Row<'_>> = whole.iter().map(|row| Row { differences: &row.differences, budget }).collect();
        decisions = Some(decide_rows(&rows, &plan)?);
    } else {
        notes.push("no budget was given: the comparison reports, and judges nothing slower".to_owned());
    }
    let decision = |n: usize| decisions.as_ref().and_then(|decisions| decisions.get(n));
    Ok(CompareReport {
        schema: COMPARE_SCHEMA.to_owned(),
        started: first.0.started.clone(),
        fingerprint: first.1.fingerprint.clone(),
        a: a_name.to_owned(),
        b: b_name.to_owned(),
        links: of_both([first.0.links.clone(), first.1.links.clone()]),
        differs: fingerprint::differences(&first.0.fingerprint, &first.1.fingerprint),
        interleaved: true,
        seed: options.seed,
        rows: whole.iter().enumerate().map(|(n, row)| row.record(decision(n), options.budget, seconds)).collect(),
        floor_ns: None,
        lead_ms: None,
        notes,
    })
}

/// One scenario in one mode, over all boots.
struct Measured {
    of: String,
    name: String,
    mode: XdpMode,
    a: Vec<f64>,
    b: Vec<f64>,
    differences: Vec<f64>,
}

/// What both kernels priced.
fn rows(booted: &[(Numbers, Numbers)]) -> Vec<Measured> {
    let mut rows: Vec<Measured> = Vec::new();
    for (a, b) in booted {
        for x in &a.rows {
            let Some(y) = b.rows.iter().find(|y| (&y.of, &y.name, y.mode) == (&x.of, &x.name, x.mode)) else {
                continue;
            };
            let at = rows.iter().position(|row| (&row.of, &row.name, row.mode) == (&x.of, &x.name, x.mode));
            let at = at.unwrap_or_else(|| {
                let (of, name) = (x.of.clone(), x.name.clone());
                rows.push(Measured { of, name, mode: x.mode, a: Vec::new(), b: Vec::new(), differences: Vec::new() });
                rows.len() - 1
            });
            rows[at].a.push(x.ns);
            rows[at].b.push(y.ns);
            rows[at].differences.push(y.ns - x.ns);
        }
    }
    rows
}

impl Measured {
    fn record(&self, decision: Option<&Decision>, budget_ns: Option<f64>, seconds: f64) -> CompareRow {
        let estimate =
            decision.and_then(|decision| decision.estimate).or_else(|| hodges_lehmann(&self.differences, 1.0 - ERROR));
        let ci = estimate.map_or([None; 2], |e| [e.low, e.high].map(|end| Some(end).filter(|end| end.is_finite())));
        let middle = |values: &[f64]| median(values).map_or(f64::NAN, |estimate| estimate.value);
        CompareRow {
            name: self.name.clone(),
            mode: self.mode,
            a_ns: middle(&self.a),
            b_ns: middle(&self.b),
            delta_ns: estimate.map_or(f64::NAN, |estimate| estimate.value),
            ci,
            budget_ns,
            verdict: verdict_of(decision, ci, budget_ns),
            blocks: 0,
            redrawn: 0,
            reloads: self.differences.len() as u64,
            seconds,
            differences: self.differences.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::{Cost, Report, compare::CompareVerdict},
        report::sample,
    };

    fn report(ns: f64) -> Vec<Stored> {
        let mut report: Report = sample::passing();
        for scenario in &mut report.scenarios {
            scenario.cost = Some(Cost { ns, ci: [ns - 1.0, ns + 1.0], mpps: 1000.0 / ns, windows: vec![ns] });
        }
        vec![Stored::Run(Box::new(report))]
    }

    fn pairs(costs: &[(f64, f64)]) -> Vec<PairOfBoots> {
        costs.iter().map(|(a, b)| PairOfBoots { a: report(*a), b: report(*b), seconds: 2.0 }).collect()
    }

    fn options(budget: Option<f64>) -> KernelOptions {
        KernelOptions { budget, within: false, seed: 1, emulated: true }
    }

    #[test]
    fn a_slower_kernel_is_found_by_its_boots() {
        let slower = pairs(&[(90.0, 99.0), (80.0, 91.0), (95.0, 105.5), (88.0, 97.0), (91.0, 100.0), (92.0, 103.0)]);
        let report = of_kernels(("6.1", "6.12"), &slower, &options(Some(2.0))).unwrap();
        assert!(
            report.rows.iter().all(|row| row.verdict == CompareVerdict::Regressed && row.reloads == 6),
            "{report:#?}"
        );
        assert!((report.rows[0].delta_ns - 9.75).abs() < 1.0 && report.rows[0].seconds > 11.0, "{report:#?}");
        let free = of_kernels(("6.1", "6.12"), &slower, &options(None)).unwrap();
        assert!(free.rows.iter().all(|row| row.verdict == CompareVerdict::Ok), "nothing is judged: {free:#?}");
        let faster: Vec<(f64, f64)> = (0..6).map(|n| (100.0 + f64::from(n), 80.0)).collect();
        let faster = of_kernels(("6.1", "6.12"), &pairs(&faster), &options(Some(2.0))).unwrap();
        assert!(faster.rows.iter().all(|row| row.verdict == CompareVerdict::Improved), "{faster:#?}");
    }

    #[test]
    fn too_few_boots_and_boots_without_a_price_are_refused() {
        let few = of_kernels(("a", "b"), &pairs(&[(1.0, 1.0); 5]), &options(None)).unwrap_err();
        insta::assert_snapshot!(few, @"5 boots of each kernel are too few: an interval of 90 % takes 6 at least");
        let none = PairOfBoots { a: Vec::new(), b: Vec::new(), seconds: 1.0 };
        let nothing = of_kernels(("a", "b"), &vec![none; 6], &options(None)).unwrap_err();
        insta::assert_snapshot!(nothing, @"nothing was priced under both kernels: give a scenario `perf`, such as `perf = { }`");
        assert!(few.is_of_the_input() && nothing.is_of_the_input());
    }

    #[test]
    fn both_orders_are_as_many() {
        for seed in 0..20 {
            assert_eq!(orders(8, seed).into_iter().filter(|second| *second).count(), 4);
        }
        assert_ne!(orders(16, 1), orders(16, 2));
    }
}

//! `budget-ns`: the accepted baseline's programs are run again, turn by turn with this topology's.

use super::{
    Case, Progress, RunOptions,
    checks::{BUDGET, EMULATED, over_baseline},
};
use crate::{
    baseline::{self, Baseline},
    compare::{self, CompareError, CompareOptions, pairing::Pairing},
    host::hypervisor,
    lab::{Cabling, LabError},
    record::{
        Check, Fingerprint,
        compare::{CompareRow, CompareVerdict},
    },
    topology::Topology,
    traffic::Stop,
};

/// Longest comparison of all scenarios with one budget, in seconds.
const SECONDS: f64 = 60.0;

/// Checks every case that was priced and has a budget.
pub(super) fn check(
    topology: &Topology,
    cases: &mut [Case],
    fingerprint: &Fingerprint,
    (options, cabling): (&RunOptions, &Cabling),
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<(), LabError> {
    let budget_of = |case: &Case| {
        let perf = topology.scenarios[case.scenario.0].perf.as_ref();
        perf.and_then(|perf| perf.budget_ns).filter(|_| case.cost.is_some())
    };
    let mut budgets: Vec<f64> = cases.iter().filter_map(budget_of).collect();
    budgets.sort_by(f64::total_cmp);
    budgets.dedup();
    if budgets.is_empty() {
        return Ok(());
    }
    let Some(dir) = &options.baselines else { return Ok(()) };
    if hypervisor::is_emulated() {
        undecided(cases, &budget_of, EMULATED);
        return Ok(());
    }
    let baseline = match baseline::find(dir, &topology.name, fingerprint, options.across) {
        Ok(Some(baseline)) => baseline,
        Ok(None) => {
            let note = format!(
                "budget-ns binds against nothing yet: no baseline of this fingerprint in {} (xdplab accept REPORT)",
                dir.display()
            );
            note_all(cases, &budget_of, &note);
            return Ok(());
        }
        Err(error) => {
            let why = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            undecided(cases, &budget_of, &format!("{error}{why}"));
            return Ok(());
        }
    };
    let Baseline { path, topology: before } = baseline;
    let pairing = Pairing::new(before, topology.clone(), path.display().to_string(), "this topology".to_owned());
    if !pairing.differs_in.is_empty() {
        // A baseline of the same lab stands for the same path: another structure is to be accepted first.
        let (differs, path) = (pairing.differs_in.join(", "), path.display());
        undecided(cases, &budget_of, &format!("the baseline {path} differs in {differs}: accept a report of this one"));
        return Ok(());
    }
    for budget in budgets {
        let names = cases.iter().filter(|case| budget_of(case) == Some(budget));
        let only: Vec<String> = names.map(|case| topology.scenarios[case.scenario.0].name.clone()).collect();
        progress.step(&format!("beside the baseline, budget {budget} ns"));
        let wanted = CompareOptions {
            budget: Some(budget),
            only,
            seconds: SECONDS,
            cabling: cabling.clone(),
            ..CompareOptions::default()
        };
        let is_of = |case: &Case| budget_of(case).filter(|of| (of - budget).abs() < f64::EPSILON);
        match compare::run(&pairing, &wanted, stop, progress) {
            Ok(report) => {
                for case in cases.iter_mut().filter(|case| is_of(case).is_some()) {
                    let name = &topology.scenarios[case.scenario.0].name;
                    let row = report.rows.iter().find(|row| row.name == *name && row.mode == case.mode);
                    case.checks.extend(row.map(|row| of_row(row, budget)));
                    case.notes.push(format!("budget-ns: against {}, run again by turns", path.display()));
                }
            }
            // The floor is the machine's, and no fault of the file.
            Err(CompareError::Lab(error)) => return Err(error),
            Err(error) => undecided(cases, &is_of, &error.to_string()),
        }
    }
    Ok(())
}

fn of_row(row: &CompareRow, budget: f64) -> Check {
    let interval = match row.ci {
        [Some(low), Some(high)] => format!("{low:+.2} to {high:+.2}"),
        _ => "no interval".to_owned(),
    };
    Check {
        what: BUDGET.to_owned(),
        limit: over_baseline(budget),
        measured: format!("{:+.2} ns ({interval})", row.delta_ns),
        ok: matches!(row.verdict, CompareVerdict::Ok | CompareVerdict::Improved),
        undecided: row.verdict == CompareVerdict::Inconclusive,
    }
}

fn note_all(cases: &mut [Case], budget_of: &dyn Fn(&Case) -> Option<f64>, note: &str) {
    for case in cases.iter_mut().filter(|case| budget_of(case).is_some()) {
        case.notes.push(note.to_owned());
    }
}

fn undecided(cases: &mut [Case], budget_of: &dyn Fn(&Case) -> Option<f64>, why: &str) {
    for case in cases.iter_mut() {
        let Some(budget) = budget_of(case) else { continue };
        case.checks.push(Check {
            what: BUDGET.to_owned(),
            limit: over_baseline(budget),
            measured: why.to_owned(),
            ok: false,
            undecided: true,
        });
    }
}

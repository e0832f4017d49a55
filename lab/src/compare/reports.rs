//! Two reports: numbers of two runs. They are shown beside each other, and never judged: the same program moves by a tenth
//! from one session to the next.

use super::{
    numbers::{Numbers, Priced},
    of_both,
};
use crate::{
    measure::fingerprint,
    record::{
        compare::{COMPARE_SCHEMA, CompareReport, CompareRow, CompareVerdict},
        stored::Stored,
    },
};

/// Why two reports don't stand beside each other.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportsError {
    /// They were measured on different machines, kernels or settings.
    #[error(
        "the reports' fingerprints differ ({list}): their costs are not comparable. `--across` compares them all the same, and says so in every line"
    )]
    Across {
        /// What differs.
        list: String,
    },
    /// A report without prices of its own.
    #[error("{report} is of `xdplab {verb}`: compare reports of `xdplab run` or `xdplab bench`")]
    Kind {
        /// The report.
        report: String,
        /// What made it.
        verb: &'static str,
    },
    /// No priced scenario is in both.
    #[error("no priced scenario is in both reports: {a} has {in_a}, {b} has {in_b}")]
    NoRow {
        /// The first.
        a: String,
        /// Its priced scenarios.
        in_a: String,
        /// The second.
        b: String,
        /// Its priced scenarios.
        in_b: String,
    },
}

/// Compares the costs of two reports, or lists of reports, of `run` or `bench`.
///
/// # Errors
/// Where they are of another kind, their fingerprints differ and that was not allowed, or nothing was priced in both.
pub fn of_reports(
    (a_name, a): (&str, &[Stored]),
    (b_name, b): (&str, &[Stored]),
    budget: Option<f64>,
    across: bool,
) -> Result<CompareReport, ReportsError> {
    let kind = |report: &str, verb| ReportsError::Kind { report: report.to_owned(), verb };
    let a = Numbers::of(a).map_err(|verb| kind(a_name, verb))?;
    let b = Numbers::of(b).map_err(|verb| kind(b_name, verb))?;
    let differs = fingerprint::differences(&a.fingerprint, &b.fingerprint);
    if !differs.is_empty() && !across {
        let list: Vec<String> = differs.iter().map(|(name, a, b)| format!("{name}: {a} and {b}")).collect();
        return Err(ReportsError::Across { list: list.join("; ") });
    }
    let like = |x: &Priced| b.rows.iter().find(|y| (&y.of, &y.name, y.mode) == (&x.of, &x.name, x.mode));
    let rows: Vec<CompareRow> = a.rows.iter().filter_map(|x| Some(row(x, like(x)?, budget))).collect();
    if rows.is_empty() {
        let list = |rows: &[Priced]| match rows {
            [] => "none".to_owned(),
            rows => rows.iter().map(|row| format!("\"{}\" ({})", row.name, row.mode)).collect::<Vec<_>>().join(", "),
        };
        return Err(ReportsError::NoRow {
            a: a_name.to_owned(),
            in_a: list(&a.rows),
            b: b_name.to_owned(),
            in_b: list(&b.rows),
        });
    }
    let mut notes = vec![
        "numbers of two runs: the same program moves by a tenth from one session to the next, so nothing follows from \
         them. Compare the topologies for a verdict: xdplab compare A.toml B.toml"
            .to_owned(),
    ];
    for (name, numbers) in [(a_name, &a), (b_name, &b)] {
        notes.extend(numbers.notes.iter().map(|note| format!("{name}: {note}")));
    }
    Ok(CompareReport {
        schema: COMPARE_SCHEMA.to_owned(),
        started: b.started,
        fingerprint: b.fingerprint,
        a: a_name.to_owned(),
        b: b_name.to_owned(),
        links: of_both([a.links, b.links]),
        differs,
        interleaved: false,
        seed: 0,
        rows,
        floor_ns: None,
        lead_ms: None,
        notes,
    })
}

fn row(a: &Priced, b: &Priced, budget: Option<f64>) -> CompareRow {
    CompareRow {
        name: a.name.clone(),
        mode: a.mode,
        a_ns: a.ns,
        b_ns: b.ns,
        delta_ns: b.ns - a.ns,
        // The worst of both intervals.
        ci: [Some(b.ci[0] - a.ci[1]), Some(b.ci[1] - a.ci[0])],
        budget_ns: budget,
        verdict: CompareVerdict::Inconclusive,
        blocks: 0,
        redrawn: 0,
        reloads: 0,
        seconds: 0.0,
        differences: Vec::new(),
    }
}

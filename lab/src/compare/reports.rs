//! Two reports: numbers of two runs. They are shown beside each other, and never judged: the same program moves by a tenth
//! from one session to the next.

use crate::{
    measure::fingerprint,
    record::{
        Report,
        compare::{COMPARE_SCHEMA, CompareReport, CompareRow, CompareVerdict},
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

/// Compares the costs of two reports.
///
/// # Errors
/// Where their fingerprints differ and that was not allowed, or no scenario was priced in both.
pub fn of_reports(
    (a_name, a): (&str, &[Report]),
    (b_name, b): (&str, &[Report]),
    budget: Option<f64>,
    across: bool,
) -> Result<CompareReport, ReportsError> {
    let mut differs = Vec::new();
    if let (Some(a), Some(b)) = (a.first(), b.first()) {
        differs = fingerprint::differences(&a.fingerprint, &b.fingerprint);
    }
    if !differs.is_empty() && !across {
        let list: Vec<String> = differs.iter().map(|(name, a, b)| format!("{name}: {a} and {b}")).collect();
        return Err(ReportsError::Across { list: list.join("; ") });
    }
    let priced = |reports: &[Report]| -> Vec<(String, crate::record::ScenarioRecord)> {
        let all = reports.iter().flat_map(|report| report.scenarios.iter().map(|s| (report.lab.clone(), s.clone())));
        all.filter(|(_, s)| s.cost.is_some()).collect()
    };
    let (of_a, of_b) = (priced(a), priced(b));
    let mut rows = Vec::new();
    for (lab, x) in &of_a {
        let like = of_b.iter().find(|(other, y)| other == lab && y.name == x.name && y.mode == x.mode);
        let (Some(cost_a), Some(cost_b)) = (&x.cost, like.and_then(|(_, y)| y.cost.as_ref())) else { continue };
        rows.push(CompareRow {
            name: x.name.clone(),
            mode: x.mode,
            a_ns: cost_a.ns,
            b_ns: cost_b.ns,
            delta_ns: cost_b.ns - cost_a.ns,
            // The worst of both intervals.
            ci: [Some(cost_b.ci[0] - cost_a.ci[1]), Some(cost_b.ci[1] - cost_a.ci[0])],
            budget_ns: budget,
            verdict: CompareVerdict::Inconclusive,
            blocks: 0,
            redrawn: 0,
            reloads: 0,
            seconds: 0.0,
            differences: Vec::new(),
        });
    }
    if rows.is_empty() {
        let list = |of: &[(String, crate::record::ScenarioRecord)]| match of {
            [] => "none".to_owned(),
            of => of.iter().map(|(_, s)| format!("\"{}\" ({})", s.name, s.mode)).collect::<Vec<_>>().join(", "),
        };
        return Err(ReportsError::NoRow {
            a: a_name.to_owned(),
            in_a: list(&of_a),
            b: b_name.to_owned(),
            in_b: list(&of_b),
        });
    }
    Ok(CompareReport {
        schema: COMPARE_SCHEMA.to_owned(),
        started: b.first().map(|report| report.started.clone()).unwrap_or_default(),
        fingerprint: b.first().map(|report| report.fingerprint.clone()).unwrap_or_default(),
        a: a_name.to_owned(),
        b: b_name.to_owned(),
        differs,
        interleaved: false,
        seed: 0,
        rows,
        floor_ns: None,
        lead_ms: None,
        notes: vec![
            "numbers of two runs: the same program moves by a tenth from one session to the next, so nothing follows from \
             them. Compare the topologies for a verdict: xdplab compare A.toml B.toml"
                .to_owned(),
        ],
    })
}

//! The prices that a stored report holds, whichever verb made it.

use crate::{
    measure::interval::median,
    record::{
        Fingerprint, LinkRecord, Report,
        bench::{Bench, BenchReport, DispatcherFindings, DispatcherRow, MatrixRow, Nanoseconds},
        stored::Stored,
    },
    xdp::XdpMode,
};

/// One price.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Priced {
    /// Of which lab or benchmark.
    pub(super) of: String,
    /// Of which scenario or row.
    pub(super) name: String,
    /// The mode; a benchmark that has none runs native programs.
    pub(super) mode: XdpMode,
    /// Nanoseconds.
    pub(super) ns: f64,
    /// Their 90 % interval.
    pub(super) ci: [f64; 2],
}

/// All prices of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    /// When the first report started.
    pub(super) started: String,
    /// What must be equal for two results to be comparable: the first report's.
    pub(super) fingerprint: Fingerprint,
    /// The prices.
    pub(super) rows: Vec<Priced>,
    /// The links of the runs that they are of.
    pub(super) links: Vec<LinkRecord>,
    /// What follows from them, and what the runs said of themselves.
    pub(super) notes: Vec<String>,
}

impl Numbers {
    /// The prices of some reports; of another kind of report: the verb that makes it.
    pub(super) fn of(stored: &[Stored]) -> Result<Self, &'static str> {
        let mut all = Self::default();
        for (n, stored) in stored.iter().enumerate() {
            let (started, fingerprint) = match stored {
                Stored::Run(report) => {
                    all.rows.extend(of_run(report));
                    all.links.extend(report.links.iter().cloned());
                    all.notes.extend(report.notes.iter().cloned());
                    (&report.started, &report.fingerprint)
                }
                Stored::Bench(report) => {
                    let (rows, notes) = of_bench(report);
                    all.rows.extend(rows);
                    all.notes.extend(notes);
                    (&report.started, &report.fingerprint)
                }
                other => return Err(other.verb()),
            };
            if n == 0 {
                (all.started, all.fingerprint) = (started.clone(), fingerprint.clone());
            }
        }
        Ok(all)
    }
}

fn of_run(report: &Report) -> Vec<Priced> {
    let priced = report.scenarios.iter().filter_map(|scenario| {
        let cost = scenario.cost.as_ref()?;
        let (of, name) = (report.lab.clone(), scenario.name.clone());
        Some(Priced { of, name, mode: scenario.mode, ns: cost.ns, ci: cost.ci })
    });
    priced.collect()
}

fn of_bench(report: &BenchReport) -> (Vec<Priced>, Vec<String>) {
    let row = |of: &str, name: String, mode: XdpMode, cost: Nanoseconds| Priced {
        of: of.to_owned(),
        name,
        mode,
        ns: cost.ns,
        ci: cost.ci,
    };
    let native = XdpMode::Native;
    match &report.bench {
        Bench::Dispatcher(rows) => {
            let few = dispatcher(&rows.rows, &rows.findings);
            (few.into_iter().map(|(name, cost)| row("dispatcher", name, native, cost)).collect(), cliff(&rows.findings))
        }
        Bench::Drop(rows) => {
            let name = |test: &str, detail: &str, queues: u32| format!("{test}, {detail}, queues: {queues}");
            let of = rows.rows.iter().map(|r| row("drop", name(&r.test, &r.detail, r.queues), r.mode, r.cost));
            (of.collect(), Vec::new())
        }
        Bench::Redirect(rows) => {
            let of = rows.rows.iter().map(|r| row("redirect", format!("{}, {}", r.test, r.detail), r.mode, r.cost));
            (of.collect(), Vec::new())
        }
        Bench::Broadcast(rows) => {
            (rows.rows.iter().map(|r| row("broadcast", matrix(r), r.mode, r.cost)).collect(), Vec::new())
        }
        Bench::Flow(rows) => {
            let of = rows.rows.iter().map(|r| {
                let found = if r.hit { "found" } else { "not found" };
                let name = format!("{} of {}, key of {} bytes, {found}, {}", r.map, r.flows, r.key_bytes, r.then);
                row("flow", name, native, r.cost)
            });
            (of.collect(), Vec::new())
        }
        Bench::Traits(rows) => {
            let of = rows.rows.iter().map(|r| row("traits", format!("{}, {}", r.operation, r.detail), native, r.cost));
            (of.collect(), Vec::new())
        }
    }
}

fn matrix(row: &MatrixRow) -> String {
    let MatrixRow { test, map, max_entries, targets, egress, inner, .. } = row;
    format!("{test} to {targets}, {map} of {max_entries}, egress: {egress}, inner: {inner}")
}

/// Of hundreds of rows, those that differ in kind: with an entry and without, by position and age.
fn dispatcher(rows: &[DispatcherRow], findings: &DispatcherFindings) -> Vec<(String, Nanoseconds)> {
    let room = findings.cliff.map_or(u32::MAX, |cliff| cliff.entries);
    let mut kinds: Vec<(String, Vec<f64>)> = Vec::new();
    for row in rows {
        // The first is in as long as there is a dispatcher.
        let holds = row.holds_entry.unwrap_or(row.attached == "first" || row.entries <= room);
        let entry = if holds { "with an entry" } else { "without an entry" };
        let name = format!("{} attached, code {}, {entry}", row.attached, row.position);
        match kinds.iter_mut().find(|(kind, _)| *kind == name) {
            Some((_, costs)) => costs.push(row.cost.ns),
            None => kinds.push((name, vec![row.cost.ns])),
        }
    }
    let middle = |(name, costs): (String, Vec<f64>)| {
        let of = median(&costs)?;
        Some((name, Nanoseconds { ns: of.value, ci: [of.low, of.high] }))
    };
    kinds.into_iter().filter_map(middle).collect()
}

fn cliff(findings: &DispatcherFindings) -> Vec<String> {
    let calls = if findings.retpolines { "indirect calls go by retpolines" } else { "indirect calls are plain" };
    vec![match findings.cliff {
        Some(of) => {
            let (before, after, step) = (of.before_ns, of.after_ns, of.step_ns);
            format!(
                "{calls}; behind {} programs a run costs {step:.1} ns more: {before:.1}, then {after:.1}",
                of.entries
            )
        }
        None => format!("{calls}; no step was found"),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_bench_is_held_against_another() {
        let report = sample::bench();
        let numbers = Numbers::of(&[Stored::Bench(Box::new(report.clone()))]).unwrap();
        assert!(!numbers.rows.is_empty() && numbers.fingerprint == report.fingerprint);
        assert_eq!(Numbers::of(&[Stored::Calibrate(Box::new(sample::calibration()))]).unwrap_err(), "calibrate");
    }

    #[test]
    fn a_dispatcher_has_a_row_a_kind() {
        let row = |entries, attached: &str, ns, holds_entry| DispatcherRow {
            entries,
            position: "below".to_owned(),
            attached: attached.to_owned(),
            cost: Nanoseconds { ns, ci: [ns, ns] },
            holds_entry,
            attach_ms: 1.0,
            detach_ms: 1.0,
            image_bytes_aligned: 0,
            image_bytes_unaligned: 0,
            image_bytes_read: None,
        };
        let rows: Vec<_> = (1..=50)
            .flat_map(|n| {
                [row(n, "first", 25.0, Some(true)), row(n, "last", if n > 48 { 31.0 } else { 25.0 }, Some(n <= 48))]
            })
            .collect();
        let findings = DispatcherFindings {
            others: Some(0),
            cliff: None,
            slope_ns: Nanoseconds { ns: 0.0, ci: [0.0, 0.0] },
            spread_ns: 0.0,
            mitigations: std::collections::BTreeMap::new(),
            retpolines: true,
        };
        let kinds: Vec<(String, f64)> =
            dispatcher(&rows, &findings).into_iter().map(|(name, cost)| (name, cost.ns)).collect();
        let expected = [
            ("first attached, code below, with an entry", 25.0),
            ("last attached, code below, with an entry", 25.0),
            ("last attached, code below, without an entry", 31.0),
        ];
        assert_eq!(kinds, expected.map(|(name, ns)| (name.to_owned(), ns)));
    }
}

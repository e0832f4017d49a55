//! Benchmarks as pictures: the dispatcher's curve, and the rows of the others with their intervals.

use crate::{
    record::bench::{Bench, BenchReport, DispatcherFindings, DispatcherPublished, DispatcherRow, Nanoseconds, Rows},
    report::plot::{Chart, Dot, Series, Whisker, Whiskers},
};

/// A benchmark's pictures, as SVG.
pub(in crate::report) fn pictures(report: &BenchReport) -> Vec<String> {
    let rows: Vec<(String, &Nanoseconds)> = match &report.bench {
        Bench::Dispatcher(rows) => return dispatcher(rows),
        Bench::Drop(Rows { rows, .. }) | Bench::Redirect(Rows { rows, .. }) => {
            rows.iter().map(|row| (format!("{} {} {}", row.mode, row.test, row.detail), &row.cost)).collect()
        }
        Bench::Broadcast(Rows { rows, .. }) => rows
            .iter()
            .map(|row| {
                (format!("{} {} to {} ({}), {}", row.mode, row.test, row.targets, row.map, row.inner), &row.cost)
            })
            .collect(),
        Bench::Flow(Rows { rows, .. }) => {
            rows.iter().map(|row| (format!("{} {} bytes, {}", row.map, row.key_bytes, row.then), &row.cost)).collect()
        }
        Bench::Traits(Rows { rows, .. }) => {
            rows.iter().map(|row| (format!("{} {}", row.operation, row.detail), &row.cost)).collect()
        }
    };
    if rows.is_empty() {
        return Vec::new();
    }
    let rows = rows.into_iter().map(|(name, cost)| Whisker {
        label: format!("{name}: {:.2} ns, between {:.2} and {:.2}", cost.ns, cost.ci[0], cost.ci[1]),
        name,
        value: cost.ns,
        ci: Some(cost.ci),
        ..Whisker::default()
    });
    let whiskers = Whiskers {
        title: "cost and its 90 % interval".to_owned(),
        x: "ns".to_owned(),
        rows: rows.collect(),
        ..Whiskers::default()
    };
    vec![whiskers.svg()]
}

fn dispatcher(rows: &Rows<DispatcherRow, DispatcherPublished, DispatcherFindings>) -> Vec<String> {
    let mitigations = if rows.findings.retpolines { "auto" } else { "off" };
    let measured = |position: &str| {
        let of = rows.rows.iter().filter(|row| row.position == position && row.attached == "last");
        let dots = of.map(|row| Dot {
            x: f64::from(row.entries),
            y: row.cost.ns,
            ci: Some(row.cost.ci),
            label: format!("{} programs: {:.2} ns", row.entries, row.cost.ns),
        });
        Series { name: "here".to_owned(), dots: dots.collect(), joined: true }
    };
    let published = |position: &str| {
        let of = rows.published.iter().filter(|row| {
            row.function_position == position && row.mitigations == mitigations && row.jump_targets == "aligned"
        });
        let dots = of.map(|row| Dot {
            x: f64::from(row.entries),
            y: row.ns_per_run,
            ci: None,
            label: format!("published, {} programs: {} ns", row.entries, row.ns_per_run),
        });
        Series { name: "published".to_owned(), dots: dots.collect(), joined: true }
    };
    let chart = |position: &&str| {
        let series = [measured(position), published(position)].into_iter().filter(|series| !series.dots.is_empty());
        Chart {
            title: format!("one run of the last program, code of the first {position} the others'"),
            y: "ns/run".to_owned(),
            x: "programs attached".to_owned(),
            series: series.collect(),
            levels: Vec::new(),
            marks: rows
                .findings
                .cliff
                .iter()
                .map(|cliff| {
                    let label = format!("{} programs found room: a step of {:.1} ns", cliff.entries, cliff.step_ns);
                    (f64::from(cliff.entries) + 0.5, label)
                })
                .collect(),
        }
    };
    let charts = ["below", "above"].iter().map(chart).filter(|chart| !chart.series.is_empty());
    charts.map(|chart| chart.svg()).collect()
}

//! Histories on a terminal, as Markdown and as a picture.

use std::collections::BTreeSet;

use super::{
    compare::machine,
    grid::Grid,
    markdown::cell,
    numbers::{difference, four, percent, sparkline},
    plot::{self, Chart, Dot, Series},
    verdict::word,
};
use crate::record::{
    Fingerprint,
    history::{HistoryChange, HistoryReport, HistorySeries},
};

const NEVER_A_GATE: &str = "A stored number is history, never a gate: the same program moves by several percent between \
                            sessions. Run both sides by turns to conclude anything.";

/// The history on a terminal.
pub fn text(report: &HistoryReport) -> String {
    let mut text = String::new();
    for series in &report.series {
        text += &format!("{}\n", grid(report, series).text());
        for sentence in sentences(series) {
            text += &format!("{sentence}\n");
        }
        text.push('\n');
    }
    for grid in fingerprints(report) {
        text += &format!("{}\n", grid.text());
    }
    text + NEVER_A_GATE + "\n"
}

/// The history as Markdown.
pub fn markdown(report: &HistoryReport) -> String {
    let mut md = "\n### history\n".to_owned();
    for series in &report.series {
        md += &grid(report, series).markdown();
        md.push('\n');
        for sentence in sentences(series) {
            md += &format!("- {}\n", cell(&sentence));
        }
    }
    for grid in fingerprints(report) {
        md += &grid.markdown();
    }
    md + "\n" + NEVER_A_GATE + "\n"
}

/// The history as a picture: for each series its results with their intervals, and the levels between changes.
pub fn svg(report: &HistoryReport) -> String {
    let charts: Vec<Chart> =
        report.series.iter().filter(|series| !series.results.is_empty()).map(|series| chart(report, series)).collect();
    plot::stack(&charts)
}

/// What a series is of; the fingerprint's number where there are several.
fn title(report: &HistoryReport, series: &HistorySeries) -> String {
    let of = match report.fingerprints.len() {
        0 | 1 => String::new(),
        _ => format!(", fingerprint {}", series.fingerprint + 1),
    };
    format!("{}: {} ({}){of}", series.lab, series.scenario, series.mode)
}

fn grid(report: &HistoryReport, series: &HistorySeries) -> Grid {
    let mut grid =
        Grid::new(title(report, series), &["started", "ns/packet", "90 % interval", "Mpps", "verdict", "", "file"]);
    for (n, result) in series.results.iter().enumerate() {
        let change = series.changes.iter().find(|change| change.at == n);
        grid.row([
            result.started.clone(),
            four(result.ns),
            format!("[{}, {}]", four(result.ci[0]), four(result.ci[1])),
            four(result.mpps),
            word(result.verdict).to_owned(),
            change.map(|change| format!("<- {}", step(change))).unwrap_or_default(),
            result.file.clone(),
        ]);
    }
    grid
}

/// `+5.00 ns`.
fn step(change: &HistoryChange) -> String {
    format!("{} ns", difference(change.after_ns - change.before_ns, change.before_ns))
}

fn sentences(series: &HistorySeries) -> Vec<String> {
    let mut sentences = Vec::new();
    let values: Vec<f64> = series.results.iter().map(|result| result.ns).collect();
    if let (Some(low), Some(high)) =
        (values.iter().copied().min_by(f64::total_cmp), values.iter().copied().max_by(f64::total_cmp))
    {
        sentences.push(format!("trend {} from {} to {} ns", sparkline(&values, 60), four(low), four(high)));
    }
    for change in &series.changes {
        sentences.push(format!(
            "changed at {}: from {} to {} ns, {} or {} % (p {:.3})",
            change.started,
            four(change.before_ns),
            four(change.after_ns),
            step(change),
            percent(change.after_ns - change.before_ns, change.before_ns),
            change.p
        ));
    }
    if series.changes.is_empty() {
        // Some five results on each side are the least that can be told from chance.
        let few = if series.results.len() < 10 { ": it takes some ten results to see one" } else { "" };
        sentences.push(format!("no change found{few}"));
    }
    if series.left_out > 0 {
        let runs = if series.left_out == 1 { "run" } else { "runs" };
        sentences.push(format!("{} {runs} left out: not priced, or frames were lost", series.left_out));
    }
    sentences
}

/// What the fingerprints are, and where there are several, what they differ in.
fn fingerprints(report: &HistoryReport) -> Vec<Grid> {
    let mut grids = Vec::new();
    let mut machines = Grid::new("fingerprints", &["fingerprint", "machine"]);
    for (n, fingerprint) in report.fingerprints.iter().enumerate() {
        machines.row([(n + 1).to_string(), machine(fingerprint).join("; ")]);
    }
    grids.push(machines);
    let names: BTreeSet<&String> = report.fingerprints.iter().flat_map(|fingerprint| fingerprint.0.keys()).collect();
    let mut differing = Grid::new("what the fingerprints differ in", &["entry", "fingerprint", "value"]);
    for name in names {
        let of =
            |fingerprint: &Fingerprint| fingerprint.0.get(name).cloned().unwrap_or_else(|| "not recorded".to_owned());
        let values: Vec<String> = report.fingerprints.iter().map(of).collect();
        let distinct: BTreeSet<&String> = values.iter().collect();
        if distinct.len() > 1 {
            for value in distinct {
                let who = values.iter().enumerate().filter(|(_, one)| *one == value).map(|(n, _)| (n + 1).to_string());
                differing.row([name.clone(), who.collect::<Vec<_>>().join(", "), value.clone()]);
            }
        }
    }
    if !differing.rows.is_empty() {
        grids.push(differing);
    }
    grids
}

fn chart(report: &HistoryReport, series: &HistorySeries) -> Chart {
    let dots = series.results.iter().enumerate().map(|(n, result)| Dot {
        x: (n + 1) as f64,
        y: result.ns,
        ci: Some(result.ci),
        label: format!("{}: {} ns, {}, {}", result.started, four(result.ns), word(result.verdict), result.file),
    });
    let place = |at: usize| at as f64 + 0.5;
    let starts: Vec<usize> = std::iter::once(0).chain(series.changes.iter().map(|change| change.at)).collect();
    let ends = starts.iter().skip(1).copied().chain(std::iter::once(series.results.len()));
    let first = series.changes.first().map(|change| change.before_ns);
    let heights = first.into_iter().chain(series.changes.iter().map(|change| change.after_ns));
    let levels = starts.iter().zip(ends).zip(heights).map(|((start, end), ns)| [place(*start), place(end), ns]);
    let day = |result: Option<&crate::record::history::HistoryResult>| {
        result.map(|result| result.started.clone()).unwrap_or_default()
    };
    Chart {
        title: title(report, series),
        y: "ns/packet".to_owned(),
        x: format!("runs from {} to {}", day(series.results.first()), day(series.results.last())),
        series: vec![Series { name: String::new(), dots: dots.collect(), joined: true }],
        levels: levels.collect(),
        marks: series
            .changes
            .iter()
            .map(|change| (place(change.at), format!("{}: {}, p {:.3}", change.started, step(change), change.p)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_history_on_a_terminal() {
        insta::assert_snapshot!(text(&sample::history()));
    }

    #[test]
    fn a_history_in_markdown() {
        insta::assert_snapshot!(markdown(&sample::history()));
    }

    #[test]
    fn a_history_as_a_picture() {
        insta::assert_snapshot!(svg(&sample::history()));
    }
}

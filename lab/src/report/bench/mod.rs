//! Micro-benchmarks on a terminal and as Markdown: the same tables, drawn twice.

mod broadcast;
mod dispatcher;
mod drop;
mod flow;
mod path;
mod picture;
mod redirect;
#[cfg(test)]
mod tests;
mod traits;

pub(super) use picture::pictures;

use super::{grid::Grid, markdown::cell, profile, table::Table, text::Style, verdict::word};
use crate::record::{
    Verdict,
    bench::{Bench, BenchReport, Nanoseconds, PathProfile},
};

/// What a benchmark has to show: tables, and sentences below them.
pub(super) struct Shown {
    pub(super) grids: Vec<Grid>,
    pub(super) sentences: Vec<String>,
}

pub(super) fn shown(report: &BenchReport) -> (&'static str, Shown) {
    let kernel = report.fingerprint.0.get("kernel").map_or("this kernel", String::as_str);
    match &report.bench {
        Bench::Dispatcher(rows) => {
            ("dispatcher: one run of a program by the number of programs attached", dispatcher::shown(rows))
        }
        Bench::Broadcast(rows) => {
            ("broadcast: redirect_map and broadcast to one port and to several", broadcast::shown(rows, kernel))
        }
        Bench::Drop(rows) => ("drop: dropping frames in the driver and in the stack", drop::shown(rows, kernel)),
        Bench::Flow(rows) => ("flow: looking a flow up, then dropping or redirecting its frame", flow::shown(rows)),
        Bench::Redirect(rows) => ("redirect: redirect_map to one port", redirect::shown(rows, kernel)),
        Bench::Traits(rows) => ("traits: a key-value store in a packet's metadata", traits::shown(rows)),
    }
}

/// The report on a terminal.
pub fn text(report: &BenchReport, style: Style) -> String {
    let (title, Shown { grids, sentences }) = shown(report);
    let mut text = format!("{title}\n");
    for grid in &grids {
        text += &format!("\n{}", grid.text());
    }
    text.push('\n');
    for sentence in &sentences {
        text += &format!("{sentence}\n");
    }
    let mut checks = Table::new(["check", "verdict", "limit", "measured"]);
    for check in &report.checks {
        let held = if check.ok {
            "pass"
        } else if check.undecided {
            "undecided"
        } else {
            "FAIL"
        };
        checks.row([&check.what, held, &check.limit, &check.measured]);
    }
    if !checks.is_empty() {
        text += &format!("\n{}", super::text::paint(&checks.to_string(), style));
    }
    text += &profiles(report);
    for note in &report.notes {
        text += &format!("\nnote: {note}");
    }
    text += &format!("\n{} in {:.1} s\n", word(report.verdict), report.seconds);
    text
}

/// The first symbols of each profile, and what the second has more or less of than the first.
fn profiles(report: &BenchReport) -> String {
    let mut text = String::new();
    for PathProfile { name, ns, profile: of } in &report.profiles {
        let ns = Some(*ns).filter(|ns| ns.is_finite());
        text += &format!("\nprofile of {name}: {}\n{}", profile::summary(of), profile::top(of, profile::TOP, ns));
    }
    if let [a, b] = report.profiles.as_slice() {
        let ns = Some((a.ns, b.ns)).filter(|(a, b)| a.is_finite() && b.is_finite());
        text += &format!("\nfrom {} to {}\n{}", a.name, b.name, profile::difference(&a.profile, &b.profile, ns));
    }
    text
}

/// The report as Markdown.
pub fn markdown(report: &BenchReport) -> String {
    let (title, Shown { grids, sentences }) = shown(report);
    let mut md = format!("\n### {}\n", cell(title));
    for grid in &grids {
        md += &grid.markdown();
    }
    md.push('\n');
    if !report.profiles.is_empty() {
        md += &format!("```\n{}```\n\n", profiles(report).trim_start());
    }
    for sentence in sentences.iter().chain(&report.notes) {
        md += &format!("- {}\n", cell(sentence));
    }
    for check in &report.checks {
        let held = if check.ok {
            "held"
        } else if check.undecided {
            "undecided"
        } else {
            "**failed**"
        };
        let [what, limit, measured] = [&check.what, &check.limit, &check.measured].map(|text| cell(text));
        md += &format!("- {what} {held}: limit {limit}, measured {measured}\n");
    }
    if report.verdict != Verdict::Pass {
        md += &format!("\nVerdict: {}\n", word(report.verdict));
    }
    md
}

/// `26.1 ± 0.2`.
fn ns(value: &Nanoseconds) -> String {
    let half = (value.ci[1] - value.ns).max(value.ns - value.ci[0]);
    format!("{:.1} ± {half:.1}", value.ns)
}

/// `+9.1 ± 0.4`.
fn more(value: &Nanoseconds) -> String {
    let half = (value.ci[1] - value.ns).max(value.ns - value.ci[0]);
    format!("{:+.1} ± {half:.1}", value.ns)
}

/// A ratio with two digits; nothing for a figure of which there is none.
fn ratio(ours: f64, theirs: Option<f64>) -> String {
    theirs.filter(|theirs| *theirs > 0.0).map_or_else(String::new, |theirs| format!("{:.2}", ours / theirs))
}

/// A number with so many decimals, or nothing.
fn maybe(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.decimals$}"))
}

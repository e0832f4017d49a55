//! Comparisons and calibrations on a terminal and as Markdown.

use super::{
    grid::Grid,
    markdown::cell,
    numbers::{difference, four, interval, percent, thousands},
    text::Style,
    verdict::word_of_comparison,
};
use crate::record::{
    Fingerprint,
    compare::{Additivity, CalibrateReport, CompareReport, CompareRow},
};

/// Stands at every row of a comparison whose sides are not alike.
pub(super) const MARK: &str = "*";

/// What both drawings of a report are made of.
pub(super) struct Shown {
    /// The title.
    pub(super) title: String,
    /// What was compared, a line each.
    pub(super) about: Vec<String>,
    /// The tables.
    pub(super) grids: Vec<Grid>,
    /// What else there is to say, a sentence each.
    pub(super) sentences: Vec<String>,
}

impl Shown {
    fn text(&self) -> String {
        let mut text = format!("{}\n", self.title);
        for line in &self.about {
            text += &format!("  {line}\n");
        }
        for grid in &self.grids {
            text += &format!("\n{}", grid.text());
        }
        text.push('\n');
        for sentence in &self.sentences {
            text += &format!("{sentence}\n");
        }
        text
    }

    fn markdown(&self) -> String {
        let mut md = format!("\n### {}\n\n", cell(&self.title));
        for line in &self.about {
            md += &format!("- {}\n", cell(line));
        }
        for grid in &self.grids {
            md += &grid.markdown();
        }
        md.push('\n');
        for sentence in &self.sentences {
            md += &format!("- {}\n", cell(sentence));
        }
        md
    }
}

/// A comparison on a terminal.
pub fn text(report: &CompareReport, style: Style) -> String {
    paint(&shown(report).text(), style)
}

/// A comparison as Markdown.
pub fn markdown(report: &CompareReport) -> String {
    shown(report).markdown()
}

/// A calibration on a terminal.
pub fn calibration_text(report: &CalibrateReport) -> String {
    calibration(report).text()
}

/// A calibration as Markdown.
pub fn calibration_markdown(report: &CalibrateReport) -> String {
    calibration(report).markdown()
}

pub(super) fn shown(report: &CompareReport) -> Shown {
    let mut rows = Grid::new(
        if report.interleaved { "a and b by turns" } else { "a and b in two runs" },
        &[
            "scenario",
            "mode",
            "a ns",
            "b ns",
            "b - a ns",
            "interval",
            "%",
            "budget ns",
            "verdict",
            "blocks",
            "redrawn",
            "reloads",
            "seconds",
        ],
    );
    for row in &report.rows {
        rows.row([
            row.name.clone(),
            row.mode.to_string(),
            four(row.a_ns),
            four(row.b_ns),
            difference(row.delta_ns, row.a_ns),
            interval(row.ci, row.a_ns),
            percent(row.delta_ns, row.a_ns),
            row.budget_ns.map(four).unwrap_or_default(),
            verdict(report, row),
            thousands(row.blocks),
            thousands(row.redrawn),
            thousands(row.reloads),
            format!("{:.1}", row.seconds),
        ]);
    }
    let mut grids = vec![rows];
    if !report.differs.is_empty() {
        let mut grid = Grid::new(format!("{MARK} the fingerprints of a and b differ"), &["what", "a", "b"]);
        for (what, a, b) in &report.differs {
            grid.row([what.clone(), a.clone(), b.clone()]);
        }
        grids.push(grid);
    }
    Shown {
        title: "compare: what b costs more than a".to_owned(),
        about: [format!("a: {}", report.a), format!("b: {}", report.b)]
            .into_iter()
            .chain(cables(report))
            .chain(machine(&report.fingerprint))
            .collect(),
        grids,
        sentences: [floor(report.floor_ns)].into_iter().chain(remarks(report)).collect(),
    }
}

/// What the cables were made of, a line each.
pub(super) fn cables(report: &CompareReport) -> Vec<String> {
    report.links.iter().filter(|link| link.kind == "cable").map(super::text::link).collect()
}

/// The verdict's word, marked where the sides are not alike.
pub(super) fn verdict(report: &CompareReport, row: &CompareRow) -> String {
    let word = word_of_comparison(row.verdict);
    if report.differs.is_empty() { word.to_owned() } else { format!("{word} {MARK}") }
}

/// The noise floor in words.
pub(super) fn floor(floor_ns: Option<f64>) -> String {
    match floor_ns {
        Some(ns) => format!(
            "noise floor: {} ns (half the 90 % interval of a against a, in the first row alone, as all of `--reloads` \
             would leave it)",
            four(ns)
        ),
        None => "noise floor: not measured".to_owned(),
    }
}

/// What follows from how a comparison was made, and its own remarks.
pub(super) fn remarks(report: &CompareReport) -> Vec<String> {
    let mut remarks = Vec::new();
    if !report.interleaved {
        remarks.push(
            "note: a and b are numbers of two runs, not taken by turns: the same program moves by several percent between \
             runs"
                .to_owned(),
        );
    }
    remarks.extend(
        report
            .notes
            .iter()
            .cloned()
            .chain(super::text::of_stand_ins(&report.links))
            .map(|note| format!("note: {note}")),
    );
    remarks.push(format!("seed {}", report.seed));
    remarks
}

/// The kernel and the CPU, a line each, as far as the fingerprint has them.
pub(super) fn machine(fingerprint: &Fingerprint) -> Vec<String> {
    let of = |name: &str| {
        let value = fingerprint.0.get(name).map(String::as_str);
        value.filter(|value| !["unknown", "none", ""].contains(value))
    };
    let line = |head: &str, first: Option<&str>, more: &[Option<String>]| {
        let words = std::iter::once(first?.to_owned()).chain(more.iter().flatten().cloned());
        Some(format!("{head}: {}", words.collect::<Vec<_>>().join(", ")))
    };
    let preemption = of("preemption").map(|preemption| format!("preemption {preemption}"));
    let hz = of("hz").map(|hz| format!("{hz} Hz"));
    let cpus = of("cpus").map(|cpus| format!("{cpus} CPUs"));
    let hypervisor = of("hypervisor").map(|hypervisor| format!("in a VM ({hypervisor})"));
    let governor = of("governor").map(|governor| format!("governor {governor}"));
    let lines = [
        line("kernel", of("kernel"), &[preemption, hz]),
        line("kernel debugging", of("config-debugging"), &[]),
        line("CPU", of("cpu"), &[cpus, hypervisor, governor]),
    ];
    lines.into_iter().flatten().collect()
}

pub(super) fn calibration(report: &CalibrateReport) -> Shown {
    let mut sight = Grid::new(
        "What can be seen in some time, by the A/A comparison's noise",
        &["seconds", "half-width ns", "found in 95 of 100 ns"],
    );
    for row in &report.sight {
        sight.row([format!("{:.1}", row.seconds), four(row.half_width_ns), four(row.detectable_ns)]);
    }
    let mut detect = Grid::new("Known slowdowns", &["extra ns", "estimated ns", "found", "after s"]);
    for row in &report.detect {
        let found = if row.found_in_s.is_some() { "yes" } else { "no" };
        let after = row.found_in_s.map(|seconds| format!("{seconds:.1}")).unwrap_or_default();
        detect.row([four(row.extra_ns), four(row.estimated_ns), found.to_owned(), after]);
    }
    let grids = [detect, sight].into_iter().filter(|grid| !grid.rows.is_empty()).collect();
    let mut sentences = vec![format!("{} blocks in {:.1} s", thousands(report.blocks), report.seconds)];
    sentences.extend(report.additivity.as_ref().map(hops));
    sentences.extend(report.notes.iter().map(|note| format!("note: {note}")));
    sentences.push(format!("seed {}", report.seed));
    Shown {
        title: format!("calibrate: the noise floor of this machine is {} ns", four(report.floor_ns)),
        about: machine(&report.fingerprint),
        grids,
        sentences,
    }
}

/// Whether hops are additive, in a sentence.
fn hops(of: &Additivity) -> String {
    let costs = of.hops_ns.iter().map(|ns| four(*ns)).collect::<Vec<_>>().join(", ");
    let said = match of.holds {
        Some(true) => "equal within 0.5 ns, so that differences of chains are prices",
        Some(false) => {
            "warning: they differ by more than 0.5 ns: a hop's price depends on where it is, and a difference of chains is \
             no price of a hop"
        }
        None => "too noisy to say whether they are equal within 0.5 ns",
    };
    format!("the second, third and fourth hop cost {costs} ns: {said}")
}

/// Colours the verdicts' words.
fn paint(text: &str, style: Style) -> String {
    let text = super::text::paint(text, style);
    if !style.colour {
        return text;
    }
    [(" improved", "\u{1b}[32m"), (" ok ", "\u{1b}[32m")]
        .iter()
        .fold(text, |text, (word, colour)| text.replace(word, &format!("{colour}{word}\u{1b}[0m")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_comparison_is_a_table_with_its_floor() {
        insta::assert_snapshot!(text(&sample::comparison(), Style::default()));
    }

    #[test]
    fn sides_that_differ_are_marked_in_every_row_and_listed_once() {
        insta::assert_snapshot!(text(&sample::across(), Style::default()));
        let md = markdown(&sample::across());
        assert_eq!(md.lines().filter(|line| line.contains("native") && line.contains(MARK)).count(), 2, "{md}");
    }

    #[test]
    fn a_comparison_in_markdown() {
        insta::assert_snapshot!(markdown(&sample::comparison()));
    }

    #[test]
    fn a_calibration_says_what_is_found_and_when() {
        insta::assert_snapshot!(calibration_text(&sample::calibration()));
    }

    #[test]
    fn a_calibration_in_markdown() {
        insta::assert_snapshot!(calibration_markdown(&sample::calibration()));
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let mut coloured = text(&sample::comparison(), Style { colour: true, verbose: false });
        for code in ["\u{1b}[32m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[0m"] {
            coloured = coloured.replace(code, "");
        }
        assert_eq!(text(&sample::comparison(), Style::default()), coloured);
    }
}

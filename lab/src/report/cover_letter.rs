//! Results as plain text for a patch's cover letter: at most 72 columns, and whole without the tool that made it.

use super::{
    compare::{MARK, cables, floor, machine, remarks},
    numbers::{difference, four, interval, percent, thousands},
    text::all_notes,
    verdict::{word, word_of_comparison},
    wrap::{COLUMNS, shorten, width, wrap},
};
use crate::{
    record::{
        Report, ScenarioRecord, Verdict,
        compare::{CompareReport, CompareRow},
    },
    xdp::XdpMode,
};

/// A comparison: a table for each mode, since a share of a native cost says nothing of a generic one.
pub fn comparison(report: &CompareReport) -> String {
    let mut letter = Letter::default();
    letter.words("What b costs more than a, by xdplab compare", "");
    letter.gap();
    letter.words(&report.a, "a: ");
    letter.words(&report.b, "b: ");
    for cable in cables(report) {
        letter.one_line(&cable);
    }
    letter.machine(machine(&report.fingerprint));
    for mode in MODES {
        let rows: Vec<&CompareRow> = report.rows.iter().filter(|row| row.mode == mode).collect();
        if !rows.is_empty() {
            letter.gap();
            letter.line(&format!(
                "{:<11}{:>9}{:>10}{:>10}  {:<20}{:>8}",
                mode.to_string(),
                "a",
                "b",
                "b - a",
                "interval",
                "%"
            ));
        }
        for row in rows {
            compared(&mut letter, report, row);
        }
    }
    letter.gap();
    letter.words(&floor(report.floor_ns), "");
    if !report.differs.is_empty() {
        letter.words("a and b differ in what must be equal for them to be comparable:", &format!("{MARK} "));
        for (what, a, b) in &report.differs {
            letter.words(&format!("{what}:"), "  ");
            letter.words(a, "    a: ");
            letter.words(b, "    b: ");
        }
    }
    for remark in remarks(report) {
        letter.words(&remark, "");
    }
    letter.text
}

/// A run: what each scenario costs, and where its frames went.
pub fn run(report: &Report) -> String {
    let mut letter = Letter::default();
    letter.words(&format!("{}, by xdplab run, {}", report.lab, report.started), "");
    if !report.about.is_empty() {
        letter.words(&report.about, "");
    }
    letter.gap();
    letter.machine(machine(&report.fingerprint));
    for link in report.links.iter().filter(|link| link.stands_in_for.is_some()) {
        let nic = link.stands_in_for.as_deref().unwrap_or_default();
        letter.one_line(&format!("stand-in: {} for {nic}: {}", link.made_of, link.ends.join(" -- ")));
    }
    for mode in MODES {
        let scenarios: Vec<&ScenarioRecord> = report.scenarios.iter().filter(|s| s.mode == mode).collect();
        if !scenarios.is_empty() {
            letter.gap();
            letter.line(&format!("{:<11}{:>9}  90 % interval", mode.to_string(), "median"));
        }
        for scenario in scenarios {
            of_run(&mut letter, scenario);
        }
    }
    letter.gap();
    for note in all_notes(report) {
        letter.words(&note, "- ");
    }
    letter.text
}

const MODES: [XdpMode; 2] = [XdpMode::Native, XdpMode::Generic];

/// One row: its name, nanoseconds, Mpps, and how it was measured.
fn compared(letter: &mut Letter, report: &CompareReport, row: &CompareRow) {
    let (mark, indent) = if report.differs.is_empty() { ("", "  ") } else { ("* ", "* ") };
    letter.name(&row.name, mark, word_of_comparison(row.verdict));
    let [a_mpps, b_mpps] = [row.a_ns, row.b_ns].map(|ns| 1000.0 / ns);
    let numbers = |what: &str, a: f64, b: f64, delta: &str| {
        format!("{:<11}{:>9} {:>9} {delta:>9}", format!("{indent}{what}"), four(a), four(b))
    };
    letter.line(&format!(
        "{}  {:<20}{:>8}",
        numbers("ns/pkt", row.a_ns, row.b_ns, &difference(row.delta_ns, row.a_ns)),
        interval(row.ci, row.a_ns),
        percent(row.delta_ns, row.a_ns),
    ));
    letter.line(&numbers("Mpps", a_mpps, b_mpps, &difference(b_mpps - a_mpps, a_mpps)));
    let budget = row.budget_ns.map_or_else(|| "no budget".to_owned(), |ns| format!("budget {} ns", four(ns)));
    let redrawn = if row.redrawn == 0 { String::new() } else { format!(" ({} redrawn)", thousands(row.redrawn)) };
    let [blocks, reloads] = [row.blocks, row.reloads].map(thousands);
    let how = format!("{budget}; {blocks} blocks{redrawn}, {reloads} reloads, {:.1} s", row.seconds);
    letter.words(&how, indent);
}

fn of_run(letter: &mut Letter, s: &ScenarioRecord) {
    letter.name(&s.name, "", word(s.verdict));
    if let Some(cost) = &s.cost {
        let [low, high] = cost.ci;
        for (what, value, ci) in [("ns/pkt", cost.ns, [low, high]), ("Mpps", cost.mpps, [1000.0 / high, 1000.0 / low])]
        {
            letter.line(&format!("  {what:<9}{:>9}  [{}, {}]", four(value), four(ci[0]), four(ci[1])));
        }
    }
    if s.verdict != Verdict::Skipped {
        let (delivered, dropped) = s.ledger.ends();
        let counts = [
            ("offered", s.ledger.offered),
            ("delivered", delivered),
            ("dropped", dropped),
            ("lost", s.ledger.lost()),
            ("clones", s.clones),
        ];
        // No drops and no clones go without saying; that nothing was lost does not.
        let told = |(what, n): &(&str, u64)| *n > 0 || !["dropped", "clones"].contains(what);
        let told = counts.into_iter().filter(told).map(|(what, n)| format!("{} {what}", thousands(n)));
        letter.words(&told.collect::<Vec<_>>().join(", "), "  ");
    }
    if let Some(reason) = s.reason.as_ref().filter(|_| s.verdict != Verdict::Pass) {
        letter.words(reason, "  ");
    }
}

/// A text whose lines all keep within the columns.
#[derive(Default)]
struct Letter {
    text: String,
}

impl Letter {
    /// An empty line, unless there is one.
    fn gap(&mut self) {
        if !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Words behind a head, broken where they don't fit; what follows stands below the first word.
    fn words(&mut self, text: &str, head: &str) {
        self.lines(wrap(text, head, &" ".repeat(width(head).max(2))));
    }

    /// Words that stand in one line, cut where they don't fit.
    fn one_line(&mut self, text: &str) {
        self.lines(vec![shorten(text, COLUMNS)]);
    }

    fn machine(&mut self, lines: Vec<String>) {
        for line in lines {
            self.one_line(&line);
        }
    }

    /// Aligned columns. They fit, unless a number is extravagant; then they are broken like words.
    fn line(&mut self, text: &str) {
        let text = text.trim_end();
        if width(text) <= COLUMNS {
            self.lines(vec![text.to_owned()]);
        } else {
            self.words(text, "");
        }
    }

    /// A name, and a verdict at the end of its last line.
    fn name(&mut self, name: &str, head: &str, verdict: &str) {
        let mut lines = wrap(name, head, if head.is_empty() { "  " } else { head });
        match lines.last_mut().filter(|last| width(last) + 2 + width(verdict) <= COLUMNS) {
            Some(last) => {
                let gap = COLUMNS - width(last) - width(verdict);
                *last += &format!("{}{verdict}", " ".repeat(gap));
            }
            None => lines.push(format!("{verdict:>COLUMNS$}")),
        }
        self.lines(lines);
    }

    fn lines(&mut self, lines: Vec<String>) {
        for line in lines {
            self.text += &line;
            self.text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::sample;

    #[test]
    fn a_comparison_for_a_cover_letter() {
        insta::assert_snapshot!(comparison(&sample::comparison()));
    }

    #[test]
    fn sides_that_differ_are_marked_in_every_line_and_listed_once() {
        insta::assert_snapshot!(comparison(&sample::across()));
    }

    #[test]
    fn a_run_for_a_cover_letter() {
        insta::assert_snapshot!(run(&sample::passing()));
    }

    #[test]
    fn a_run_that_failed_says_why() {
        insta::assert_snapshot!(run(&sample::failing()));
    }

    #[test]
    fn a_long_name_is_broken_and_keeps_its_verdict_and_numbers() {
        let mut report = sample::passing();
        report.scenarios[1].name =
            "redirect_map from an i40e port into a veth whose peer drops, and its counter".to_owned();
        let text = run(&report);
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().rposition(|line| line.starts_with("redirect_map from")).unwrap();
        assert!(lines[at + 1].starts_with("  counter ") && lines[at + 1].ends_with(" pass"), "{text}");
        assert!(lines[at + 2].contains("140.2"), "{text}");
    }

    fn fits(text: &str) -> bool {
        text.lines().all(|line| width(line) <= COLUMNS)
    }

    proptest! {
        #[test]
        fn no_line_of_a_comparison_is_too_long(
            name in "(\\PC|\\s){0,120}",
            (a, b) in ("\\PC{0,200}", "\\PC{0,200}"),
            numbers in prop::array::uniform4(any::<f64>()),
            counts in prop::array::uniform3(any::<u64>()),
            across: bool,
        ) {
            let mut report = if across { sample::across() } else { sample::comparison() };
            let row = &mut report.rows[0];
            (row.a_ns, row.b_ns, row.delta_ns, row.seconds) = (numbers[0], numbers[1], numbers[2], numbers[3]);
            (row.ci, row.budget_ns) = ([Some(numbers[3]), Some(numbers[2])], Some(numbers[1]));
            (row.blocks, row.redrawn, row.reloads) = (counts[0], counts[1], counts[2]);
            row.name = name.clone();
            report.floor_ns = Some(numbers[3]);
            report.fingerprint.0.insert("cpu".to_owned(), a.clone());
            report.differs.push((name, a.clone(), b.clone()));
            (report.a, report.b) = (a, b.clone());
            report.notes.push(b);
            let text = comparison(&report);
            prop_assert!(fits(&text), "{}", text);
        }

        #[test]
        fn no_line_of_a_run_is_too_long(
            name in "(\\PC|\\s){0,120}", words in "\\PC{0,200}", numbers in prop::array::uniform4(any::<f64>()), frames: u64,
        ) {
            let mut report = sample::failing();
            report.lab.clone_from(&name);
            report.about.clone_from(&words);
            report.links[0].ends.push(words.clone());
            let s = &mut report.scenarios[1];
            s.name = name;
            s.reason = Some(words.clone());
            s.notes.push(words);
            s.ledger.offered = frames;
            let cost = s.cost.as_mut().unwrap();
            (cost.ns, cost.ci, cost.mpps) = (numbers[0], [numbers[1], numbers[2]], numbers[3]);
            let text = run(&report);
            prop_assert!(fits(&text), "{}", text);
        }
    }
}

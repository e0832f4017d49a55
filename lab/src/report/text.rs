//! The report on a terminal.

use super::{
    numbers::{mpps, nanoseconds, sparkline, thousands},
    profile,
    table::Table,
    verdict::word,
};
use crate::record::{Ledger, LinkRecord, Report, ScenarioRecord, Verdict};

/// How a report is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// With ANSI colours.
    pub colour: bool,
    /// With the ledger, the checks and the windows of scenarios that passed, too.
    pub verbose: bool,
}

/// The whole report.
pub fn text(report: &Report, style: Style) -> String {
    let remarks: String = report.notes.iter().map(|note| format!("  note: {note}\n")).collect();
    let mut text = format!("{}\n{}{remarks}\n", title(&report.lab, &report.about), links(&report.links));
    let has_published = report.scenarios.iter().any(|s| s.published_mpps.is_some());
    let mut head =
        vec!["scenario", "mode", "verdict", "offered", "delivered", "dropped", "lost", "clones", "ns/packet", "Mpps"];
    if has_published {
        head.extend(["published", "ratio"]);
    }
    let mut table = Table::of(&head);
    for s in &report.scenarios {
        let (delivered, dropped) = s.ledger.ends();
        let (ns, rate) = s.cost.as_ref().map_or_else(Default::default, |cost| (nanoseconds(cost), mpps(cost)));
        let [offered, delivered, dropped, lost, clones] =
            [s.ledger.offered, delivered, dropped, s.ledger.lost(), s.clones].map(thousands);
        let mode = s.mode.to_string();
        let mut cells: Vec<String> =
            [&s.name, &mode, word(s.verdict), &offered, &delivered, &dropped, &lost, &clones, &ns, &rate]
                .map(str::to_owned)
                .into();
        if has_published {
            cells.extend(published(s));
        }
        table.cells(&cells);
    }
    text += &paint(&table.to_string(), style);
    for s in &report.scenarios {
        if style.verbose || s.verdict != Verdict::Pass {
            text += &details(s, style);
        }
    }
    for s in &report.scenarios {
        text += &profile_of(s);
    }
    // Those whose details are not shown have remarks too; each is said once, with whom it is about.
    for note in notes(report, |s| !style.verbose && s.verdict == Verdict::Pass) {
        text += &format!("\nnote: {note}");
    }
    for note in common_notes(report) {
        text += &format!("\nnote: {note}");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// What was published of a scenario, in Mpps, and ours as a ratio of it; nothing where nothing was.
pub(super) fn published(s: &ScenarioRecord) -> [String; 2] {
    let Some([low, high]) = s.published_mpps else { return Default::default() };
    let range = if high > low { format!("{low:.1} to {high:.1}") } else { format!("{low:.1}") };
    let ratio = s.cost.as_ref().map_or_else(String::new, |cost| format!("{:.2}", cost.mpps / f64::midpoint(low, high)));
    [range, ratio]
}

/// A lab's name, and what it is about where the file says so.
pub fn title(lab: &str, about: &str) -> String {
    if about.is_empty() { lab.to_owned() } else { format!("{lab}: {about}") }
}

/// The links, a line each; a stand-in is always said.
pub fn links(links: &[LinkRecord]) -> String {
    let mut text = String::new();
    let (shown, hidden) = links.split_at(links.len().min(8));
    for link in shown {
        text += &format!("  {}\n", self::link(link));
    }
    if !hidden.is_empty() {
        let stand_ins = hidden.iter().filter(|link| link.stands_in_for.is_some()).count();
        let also = if stand_ins > 0 { format!(", {stand_ins} of them stand-ins for NICs") } else { String::new() };
        text += &format!("  and {} links more{also}\n", hidden.len());
    }
    text
}

/// One link: its ends, and what it was made of.
pub(super) fn link(link: &LinkRecord) -> String {
    let what = match &link.stands_in_for {
        Some(nic) => format!("{}: a {} pair stands in for {nic}", link.kind, link.made_of),
        None if link.kind == link.made_of => link.kind.clone(),
        None => match &link.nics {
            Some(nics) => format!("{}: {}, {}", link.kind, link.made_of, nics.join(" -- ")),
            None => format!("{}: {}", link.kind, link.made_of),
        },
    };
    format!("{}  ({what})", link.ends.join(" -- "))
}

/// What costs are of where veth pairs stand in for NICs; `None` where none does.
pub(super) fn of_stand_ins(links: &[LinkRecord]) -> Option<String> {
    let stands_in = links.iter().any(|link| link.stands_in_for.is_some());
    stands_in.then(|| "veth pairs stand in for NICs: costs are of veth, and say nothing of the NIC's own".to_owned())
}

/// One scenario's ledger and checks.
fn details(s: &ScenarioRecord, style: Style) -> String {
    let mut text = format!("\n{} ({}): {}", s.name, s.mode, word(s.verdict));
    if let Some(reason) = &s.reason {
        text += &format!(": {reason}");
    }
    text.push('\n');
    if s.verdict != Verdict::Skipped {
        text += &indent(&ledger(&s.ledger, s.clones));
    }
    let mut checks = Table::new(["check", "limit", "measured", ""]);
    for c in s.checks.iter().filter(|c| style.verbose || !c.ok) {
        let held = match (c.ok, c.undecided) {
            (true, _) => "ok",
            (false, true) => "undecided",
            (false, false) => "FAIL",
        };
        checks.row([&c.what, &c.limit, &c.measured, held]);
    }
    if !checks.is_empty() {
        text += &indent(&paint(&checks.to_string(), style));
    }
    if let Some(cost) = s.cost.as_ref().filter(|_| style.verbose) {
        let windows = sparkline(&cost.windows, 60);
        text += &format!("  windows  {windows}  ({} of them, in the order of measuring)\n", cost.windows.len());
    }
    for note in &s.notes {
        text += &format!("  note: {note}\n");
    }
    text
}

/// Where a scenario's time went, where it was profiled.
fn profile_of(s: &ScenarioRecord) -> String {
    let Some(profile) = &s.profile else { return String::new() };
    let top = profile::top(profile, profile::TOP, s.cost.as_ref().map(|cost| cost.ns));
    format!("\n{} ({}): where the time goes, {}\n{}", s.name, s.mode, profile::summary(profile), indent(&top))
}

/// A ledger as a table: where frames ended, and what causes and mends each loss.
pub fn ledger(ledger: &Ledger, clones: u64) -> String {
    let mut table = Table::new(["where", "what", "frames"]);
    table.row(["", "offered", &thousands(ledger.offered)]);
    if clones > 0 {
        table.row(["", "clones", &thousands(clones)]);
    }
    for (port, frames) in &ledger.delivered {
        table.row([port, "delivered", &thousands(*frames)]);
    }
    for d in &ledger.dropped {
        let what = if d.by_verdict { format!("dropped by {}", d.reason) } else { format!("lost, {}", d.reason) };
        table.row([&d.at, &what, &thousands(d.frames)]);
    }
    for (what, frames) in [
        ("duplicated", ledger.duplicated),
        ("reordered", ledger.reordered),
        ("corrupted", ledger.corrupted),
        ("of other origin, not in the account", ledger.foreign),
    ] {
        if frames > 0 {
            table.row(["", what, &thousands(frames)]);
        }
    }
    table.row(["", "unaccounted", &thousands(ledger.unaccounted)]);
    let mut text = table.to_string();
    for d in ledger.dropped.iter().filter(|d| !d.by_verdict) {
        if let Some(cause) = &d.cause {
            text += &format!("{}: {cause}\n", d.at);
        }
        if let Some(fix) = &d.fix {
            text += &format!("  fix: {fix}\n");
        }
    }
    text
}

/// The remarks of the scenarios that `told` picks, each once, with those that it is about.
pub(super) fn notes(report: &Report, told: impl Fn(&ScenarioRecord) -> bool) -> Vec<String> {
    let mut noted: Vec<(&str, Vec<&ScenarioRecord>)> = Vec::new();
    for s in report.scenarios.iter().filter(|s| told(s)) {
        for note in &s.notes {
            match noted.iter_mut().find(|(text, _)| text == note) {
                Some((_, about)) => about.push(s),
                None => noted.push((note, vec![s])),
            }
        }
    }
    noted.into_iter().map(|(note, about)| format!("{}: {note}", whom(report, &about))).collect()
}

/// Some scenarios in as few words as will do.
fn whom(report: &Report, about: &[&ScenarioRecord]) -> String {
    let mode = about[0].mode;
    let of_mode = report.scenarios.iter().filter(|s| s.mode == mode).count();
    if about.len() > 1 && about.len() == report.scenarios.len() {
        "all scenarios".to_owned()
    } else if of_mode > 1 && about.len() == of_mode && about.iter().all(|s| s.mode == mode) {
        format!("all scenarios in {mode} mode")
    } else {
        about.iter().map(|s| format!("{} ({})", s.name, s.mode)).collect::<Vec<_>>().join(", ")
    }
}

/// All that is noted in a report: of the lab, of its scenarios, and of how it is to be read.
pub(super) fn all_notes(report: &Report) -> Vec<String> {
    let of_lab = report.notes.iter().cloned();
    of_lab.chain(notes(report, |_| true)).chain(common_notes(report)).collect()
}

/// What holds for every priced scenario is said once.
pub(super) fn common_notes(report: &Report) -> Vec<String> {
    let mut notes: Vec<String> = of_stand_ins(&report.links).into_iter().collect();
    for note in report.scenarios.iter().filter_map(|s| s.profile.as_ref()).flat_map(|profile| &profile.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    let priced: Vec<&ScenarioRecord> = report.scenarios.iter().filter(|s| s.cost.is_some()).collect();
    if !priced.is_empty() {
        let mut note = "ns/packet is the median of windows, with its 90 % interval".to_owned();
        // Over NICs the receiver has CPUs of its own, and its saturation is on record.
        let on_veth = priced.iter().any(|s| s.saturation.is_none());
        if on_veth && report.links.iter().any(|link| link.made_of == "veth") {
            note += ". On veth one CPU runs generator, hops and sink: it is the cost of all of them";
        }
        notes.push(note);
    }
    notes
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Colours the words of verdicts, which no other cell has.
pub(super) fn paint(text: &str, style: Style) -> String {
    if !style.colour {
        return text.to_owned();
    }
    let colours = [
        (" pass ", "\u{1b}[32m"),
        (" FAIL", "\u{1b}[31m"),
        (" REGRESSED", "\u{1b}[31m"),
        (" inconclusive", "\u{1b}[33m"),
        (" skipped", "\u{1b}[33m"),
    ];
    colours.iter().fold(text.to_owned(), |text, (word, colour)| text.replace(word, &format!("{colour}{word}\u{1b}[0m")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record::Saturation, report::sample};

    #[test]
    fn a_passing_report_is_one_table() {
        insta::assert_snapshot!(text(&sample::passing(), Style::default()));
    }

    #[test]
    fn a_failing_report_says_where_and_why() {
        insta::assert_snapshot!(text(&sample::failing(), Style::default()));
    }

    #[test]
    fn what_holds_on_veth_is_not_said_of_a_run_on_nics() {
        let on_veth = |report: &Report| common_notes(report).iter().any(|note| note.contains("On veth one CPU"));
        let mut report = sample::passing();
        assert!(on_veth(&report));
        for link in &mut report.links {
            (link.made_of, link.stands_in_for) = ("i40e".to_owned(), None);
        }
        insta::assert_snapshot!(common_notes(&report).join("\n"), @"ns/packet is the median of windows, with its 90 % interval");
        // Out of a NIC and into a veth pair: the sender's CPU is not the receiver's.
        report.links[1].made_of = "veth".to_owned();
        report.scenarios[1].saturation = Some(Saturation {
            proven: true,
            lacks: Vec::new(),
            received_mpps: 7.0,
            sent_mpps: 9.0,
            missed: 0,
            full_polls: 1.0,
            cpus: vec![1],
            idle: 0.0,
            line_mpps: None,
        });
        assert!(!on_veth(&report));
    }

    #[test]
    fn verbose_shows_everything() {
        insta::assert_snapshot!(text(&sample::passing(), Style { verbose: true, colour: false }));
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let plain = text(&sample::failing(), Style::default());
        let mut coloured = text(&sample::failing(), Style { colour: true, verbose: false });
        for code in ["\u{1b}[32m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[0m"] {
            coloured = coloured.replace(code, "");
        }
        assert_eq!(plain, coloured);
    }
}

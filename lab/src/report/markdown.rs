//! The report as Markdown, for a job's summary.

use super::{
    numbers::{mpps, nanoseconds, thousands},
    text,
    verdict::word,
};
use crate::record::{Report, Verdict};

/// One report: a table, and a folded ledger for each scenario that did not pass.
pub fn markdown(report: &Report) -> String {
    let mut md = format!("\n### {}\n\n{}\n\n", cell(&report.lab), cell(&report.about));
    for link in report.links.iter().filter(|link| link.stands_in_for.is_some()) {
        let nic = link.stands_in_for.as_deref().unwrap_or_default();
        md += &format!("- {}: a {} pair stands in for {}\n", cell(&link.ends.join(" -- ")), link.made_of, cell(nic));
    }
    let has_published = report.scenarios.iter().any(|s| s.published_mpps.is_some());
    let (more, line) = if has_published { (" published | ratio |", "--:|--:|") } else { ("", "") };
    md += &format!(
        "\n| scenario | mode | verdict | offered | delivered | dropped | lost | clones | ns/packet | Mpps |{more}\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|{line}\n"
    );
    for s in &report.scenarios {
        let (ns, rate) = s.cost.as_ref().map_or_else(Default::default, |cost| (nanoseconds(cost), mpps(cost)));
        let (delivered, dropped) = s.ledger.ends();
        let [offered, delivered, dropped, lost, clones] =
            [s.ledger.offered, delivered, dropped, s.ledger.lost(), s.clones].map(thousands);
        let published = match text::published(s) {
            [range, ratio] if has_published => format!(" {range} | {ratio} |"),
            _ => String::new(),
        };
        md += &format!(
            "| {} | {} | {} | {offered} | {delivered} | {dropped} | {lost} | {clones} | {ns} | {rate} |{published}\n",
            cell(&s.name),
            s.mode,
            word(s.verdict)
        );
    }
    md.push('\n');
    for note in text::all_notes(report) {
        md += &format!("- {}\n", cell(&note));
    }
    for s in report.scenarios.iter().filter(|s| s.verdict != Verdict::Pass) {
        let reason = s.reason.as_deref().unwrap_or("no reason given");
        md += &format!("\n<details><summary>{} ({}): {}</summary>\n\n", cell(&s.name), s.mode, cell(reason));
        if s.verdict != Verdict::Skipped {
            md += &format!("```\n{}```\n\n", text::ledger(&s.ledger, s.clones));
        }
        for check in s.checks.iter().filter(|check| !check.ok) {
            let held = if check.undecided { "undecided" } else { "failed" };
            md += &format!(
                "- {} {held}: limit {}, measured {}\n",
                cell(&check.what),
                cell(&check.limit),
                cell(&check.measured)
            );
        }
        md += "\n</details>\n";
    }
    md
}

/// A text that can't leave its cell.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use crate::report::sample;

    #[test]
    fn a_failing_report_folds_its_ledgers() {
        insta::assert_snapshot!(super::markdown(&sample::failing()));
    }
}

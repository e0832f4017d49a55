//! The dispatcher's table: a line for each number of entries, in the published shape.

use super::{Grid, Shown, maybe, ns, ratio};
use crate::{
    record::bench::{DispatcherFindings, DispatcherPublished, DispatcherRow, Rows},
    report::numbers::sparkline,
};

pub(super) fn shown(rows: &Rows<DispatcherRow, DispatcherPublished, DispatcherFindings>) -> Shown {
    let findings = &rows.findings;
    let mitigations = if findings.retpolines { "auto" } else { "off" };
    let mut grids = Vec::new();
    let mut sentences = Vec::new();
    for position in ["below", "above"] {
        let mut grid = Grid::new(
            format!(
                "code of the first program {position} the others'; published: 2019, aligned, mitigations={mitigations}"
            ),
            &[
                "entries",
                "first ns/run",
                "last ns/run",
                "published",
                "last/published",
                "attach ms",
                "detach ms",
                "bytes aligned",
                "unaligned",
                "in kernel",
            ],
        );
        let at = |entries: u32, attached: &str| {
            let is =
                |row: &&DispatcherRow| row.entries == entries && row.position == position && row.attached == attached;
            rows.rows.iter().find(is)
        };
        let most = rows.rows.iter().map(|row| row.entries).max().unwrap_or(0);
        let mut series = Vec::new();
        for entries in 1..=most {
            let (Some(first), Some(last)) = (at(entries, "first"), at(entries, "last")) else { continue };
            series.push(last.cost.ns);
            let published = rows.published.iter().find(|row| {
                row.entries == entries
                    && row.function_position == position
                    && row.mitigations == mitigations
                    && row.jump_targets == "aligned"
            });
            let published = published.map(|row| row.ns_per_run);
            grid.row([
                entries.to_string(),
                ns(&first.cost),
                ns(&last.cost),
                maybe(published, 0),
                ratio(last.cost.ns, published),
                format!("{:.1}", last.attach_ms),
                format!("{:.1}", last.detach_ms),
                last.image_bytes_aligned.to_string(),
                last.image_bytes_unaligned.to_string(),
                last.image_bytes_read.map(|bytes| bytes.to_string()).unwrap_or_default(),
            ]);
        }
        grids.push(grid);
        sentences.push(format!("last program, {position} first: {}", sparkline(&series, 80)));
    }
    sentences.push(match &findings.cliff {
        Some(cliff) => format!(
            "The cliff: {} programs found room{}; before it {:.1} ns a run, after it {:.1} ns: the indirect call costs {:.1} ns",
            cliff.entries,
            cliff.capacity.map(|c| format!(" of {c} entries")).unwrap_or_default(),
            cliff.before_ns,
            cliff.after_ns,
            cliff.step_ns
        ),
        None => "No cliff: no program became dearer to run by so much that it is no noise".to_owned(),
    });
    sentences.push(format!(
        "Indirect calls go {}; mitigations here:",
        if findings.retpolines { "by retpolines" } else { "without retpolines" }
    ));
    sentences.extend(findings.mitigations.iter().map(|(name, state)| format!("  {name}: {state}")));
    Shown { grids, sentences }
}

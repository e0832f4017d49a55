//! The drop table, in the published table's form and by touch level.

use super::{Grid, Shown, more, ns, path};
use crate::{
    record::bench::{DropFindings, PathPublished, PathRow, Rows},
    xdp::XdpMode,
};

pub(super) fn shown(rows: &Rows<PathRow, PathPublished, DropFindings>, kernel: &str) -> Shown {
    let mut grid = path::published_form("in the published table's form, Mpps");
    path::published(&mut grid, &rows.published, "");
    let mut queues: Vec<u32> = rows.rows.iter().map(|row| row.queues).collect();
    queues.dedup();
    queues.sort_unstable();
    queues.dedup();
    let rate = |queues: u32, mode: XdpMode| {
        let row = rows.rows.iter().find(|row| row.queues == queues && row.mode == mode && row.detail == "none");
        row.map(|row| format!("{:.3}", row.mpps)).unwrap_or_default()
    };
    for queues in queues {
        let plural = if queues == 1 { "queue" } else { "queues" };
        grid.row([
            kernel.to_owned(),
            format!("drop, veth, {queues} {plural}"),
            rate(queues, XdpMode::Generic),
            rate(queues, XdpMode::Native),
            String::new(),
            "generator included".to_owned(),
        ]);
    }
    let mut all =
        Grid::new("by mode, queues and touch level", &["test", "mode", "queues", "touch", "ns/packet", "Mpps"]);
    for row in &rows.rows {
        all.row([
            row.test.clone(),
            row.mode.to_string(),
            row.queues.to_string(),
            row.detail.clone(),
            ns(&row.cost),
            format!("{:.3}", row.mpps),
        ]);
    }
    let findings = &rows.findings;
    let sentences = vec![
        format!("reading the header adds {} ns, native", more(&findings.read_ns)),
        format!("swapping the addresses adds {} ns, native", more(&findings.swap_ns)),
        format!("generic mode adds {} ns", more(&findings.generic_ns)),
        format!("several queues reach {:.2} times the rate of one, native", findings.queues_gain),
    ];
    Shown { grids: vec![grid, all], sentences }
}

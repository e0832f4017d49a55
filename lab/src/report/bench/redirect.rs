//! The redirect table, in the published table's form and by map and egress program.

use super::{Grid, Shown, more, ns, path};
use crate::{
    record::bench::{PathPublished, PathRow, RedirectFindings, Rows},
    xdp::XdpMode,
};

pub(super) fn shown(rows: &Rows<PathRow, PathPublished, RedirectFindings>, kernel: &str) -> Shown {
    let mut grid = path::published_form("in the published table's form, Mpps");
    path::published(&mut grid, &rows.published, "drop");
    let rate = |detail: &str, mode: XdpMode| {
        let row = rows.rows.iter().find(|row| row.detail == detail && row.mode == mode);
        row.map(|row| format!("{:.3}", row.mpps)).unwrap_or_default()
    };
    let mut all = Grid::new("by mode, map and egress program", &["test", "mode", "map", "ns/packet", "Mpps"]);
    for row in &rows.rows {
        if row.mode == XdpMode::Native {
            grid.row([
                kernel.to_owned(),
                format!("{} veth->veth, {}", row.test, row.detail),
                rate(&row.detail, XdpMode::Generic),
                rate(&row.detail, XdpMode::Native),
                "drop".to_owned(),
                "generator included".to_owned(),
            ]);
        }
        all.row([
            row.test.clone(),
            row.mode.to_string(),
            row.detail.clone(),
            ns(&row.cost),
            format!("{:.3}", row.mpps),
        ]);
    }
    let hops = &rows.findings.hop_ns;
    let sentences = hops.iter().map(|(mode, hop)| format!("one further hop, {mode}: {} ns", more(hop))).collect();
    Shown { grids: vec![grid, all], sentences }
}

//! The broadcast matrix: first in the published table's form, then every cell, then what follows.

use super::{Grid, Shown, more, ns, path};
use crate::{
    record::bench::{BroadcastFindings, MatrixRow, PathPublished, Rows},
    report::thousands,
    xdp::XdpMode,
};

pub(super) fn shown(rows: &Rows<MatrixRow, PathPublished, BroadcastFindings>, kernel: &str) -> Shown {
    let findings = &rows.findings;
    let mut grids = vec![published_form(rows, kernel)];
    grids.extend(matrices(rows));
    grids.push(clones(findings));
    grids.push(sizes(findings));
    grids.push(skipped(findings));
    let mut sentences = Vec::new();
    for (mode, hop) in &findings.hop_ns {
        sentences.push(format!("one further hop, {mode}: {} ns (redirect and drop over drop alone)", more(hop)));
    }
    for (map, slot) in &findings.slot_ns {
        sentences.push(format!("one further slot of a {map}, which a broadcast walks: {:.2} ns", slot.ns));
    }
    sentences.extend(findings.clone_methods.iter().cloned());
    Shown { grids, sentences }
}

/// The rows that were published, beside ours: one target, and two.
fn published_form(rows: &Rows<MatrixRow, PathPublished, BroadcastFindings>, kernel: &str) -> Grid {
    let mut grid = path::published_form("in the published table's form, Mpps");
    path::published(&mut grid, &rows.published, "drop");
    let find = |test: &str, targets: u32, mode: XdpMode, inner: &str| {
        rows.rows
            .iter()
            .find(|row| {
                row.test == test
                    && row.targets == targets
                    && row.mode == mode
                    && row.inner == inner
                    && row.map == "devmap"
                    && row.egress == "none"
            })
            .map(|row| format!("{:.3}", row.mpps))
            .unwrap_or_default()
    };
    for inner in ["drop", "pass", "nothing"] {
        if !rows.rows.iter().any(|row| row.inner == inner) {
            continue;
        }
        for (test, targets, shown, remark) in [
            ("redirect_map", 1, "redirect_map veth->veth", ""),
            ("broadcast", 1, "redirect_map_multi veth->veth", "one target: the path that never clones"),
            ("broadcast", 2, "redirect_map_multi veth->veth+veth", "clones"),
        ] {
            grid.row([
                kernel.to_owned(),
                shown.to_owned(),
                find(test, targets, XdpMode::Generic, inner),
                find(test, targets, XdpMode::Native, inner),
                inner.to_owned(),
                remark.to_owned(),
            ]);
        }
    }
    grid
}

/// A table for each mode and inner program: a line a test, map and egress program, a column a number of targets.
fn matrices(rows: &Rows<MatrixRow, PathPublished, BroadcastFindings>) -> Vec<Grid> {
    const HEAD: [&str; 12] = ["test", "map", "egress", "1", "2", "3", "4", "5", "6", "7", "8", "clones a frame"];
    let mut grids = Vec::new();
    let mut seen: Vec<(XdpMode, &str)> = Vec::new();
    for row in &rows.rows {
        if !seen.contains(&(row.mode, &row.inner)) {
            seen.push((row.mode, &row.inner));
        }
    }
    for (mode, inner) in seen {
        let of: Vec<&MatrixRow> = rows.rows.iter().filter(|row| row.mode == mode && row.inner == inner).collect();
        let most = of.iter().map(|row| row.targets).max().unwrap_or(0) as usize;
        let mut head: Vec<&'static str> = HEAD[..3 + most.min(8)].to_vec();
        head.push(HEAD[11]);
        let mut grid = Grid::new(format!("ns/packet by number of targets, {mode}, {inner} behind them"), &head);
        let mut lines: Vec<(&str, &str, &str)> = Vec::new();
        for row in &of {
            let line = (row.test.as_str(), row.map.as_str(), row.egress.as_str());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        for (test, map, egress) in lines {
            let cells: Vec<&&MatrixRow> =
                of.iter().filter(|row| row.test == test && row.map == map && row.egress == egress).collect();
            let mut line = vec![test.to_owned(), map.to_owned(), egress.to_owned()];
            line.extend(cells.iter().map(|row| format!("{:.1}", row.cost.ns)));
            let per_frame =
                |row: &&&MatrixRow| row.clones.values().max().copied().unwrap_or(0) as f64 / row.offered.max(1) as f64;
            let range = cells.first().map(per_frame).zip(cells.last().map(per_frame));
            line.push(range.map_or_else(String::new, |(low, high)| {
                if low >= high { format!("{low}") } else { format!("{low} to {high}") }
            }));
            grid.rows.push(line);
        }
        grids.push(grid);
    }
    grids
}

fn clones(findings: &BroadcastFindings) -> Grid {
    let mut grid = Grid::new(
        "each further clone: the step from k to k+1 targets, less a hop and a map slot",
        &["mode", "inner", "targets", "step ns", "clone ns"],
    );
    for cost in &findings.clone_ns {
        grid.row([
            cost.mode.to_string(),
            cost.inner.clone(),
            format!("{} to {}", cost.from, cost.from + 1),
            more(&cost.step_ns),
            more(&cost.clone_ns),
        ]);
    }
    grid
}

fn sizes(findings: &BroadcastFindings) -> Grid {
    let mut grid = Grid::new(
        "a broadcast to one target by the size of its map, native: it walks the whole map, and never clones",
        &["map", "max_entries", "ns/packet", "over redirect_map ns"],
    );
    for row in &findings.sizes {
        grid.row([row.map.clone(), row.max_entries.to_string(), ns(&row.cost), more(&row.over_redirect_ns)]);
    }
    grid
}

fn skipped(findings: &BroadcastFindings) -> Grid {
    let mut grid = Grid::new(
        "a broadcast to three targets of which one takes nothing",
        &["the one", "mode", "offered", "clones", "ends", "lost", "unaccounted"],
    );
    for row in &findings.skipped {
        let drops = row.ledger.dropped.iter().map(|drop| (drop.by_verdict, &drop.at, &drop.reason, drop.frames));
        let mut ends: Vec<String> =
            row.ledger.delivered.iter().map(|(at, frames)| format!("{at} {}", thousands(*frames))).collect();
        let mut lost = Vec::new();
        for (by_verdict, at, reason, frames) in drops {
            if by_verdict {
                ends.push(format!("{at} {}", thousands(frames)));
            } else {
                lost.push(format!("{at} {}: {reason}", thousands(frames)));
            }
        }
        grid.row([
            row.target.clone(),
            row.mode.to_string(),
            thousands(row.ledger.offered),
            thousands(row.clones),
            ends.join(", "),
            lost.join(", "),
            row.ledger.unaccounted.to_string(),
        ]);
    }
    grid
}

//! Traits: what operations cost beside the published CPUs, how much room there is, and where they survive.

use super::{Grid, Shown, maybe, more, ns};
use crate::{
    record::bench::{Rows, TraitFindings, TraitPublished, TraitRow},
    report::thousands,
};

/// The published operation that one of ours stands beside.
fn published_name(operation: &str) -> Option<&'static str> {
    match operation {
        "get" => Some("xdp-trait-get"),
        "set" => Some("xdp-trait-set"),
        "move: a new key and its delete by turns, 8 bytes moved" => Some("xdp-trait-move"),
        "function call" => Some("function-call"),
        "call back by address" => Some("indirect-call"),
        _ => None,
    }
}

pub(super) fn shown(rows: &Rows<TraitRow, TraitPublished, TraitFindings>) -> Shown {
    let mut grids = vec![operations(rows)];
    let findings = &rows.findings;
    let mut redirect = Grid::new(
        "a redirect whose program writes traits first, native",
        &["traits", "bytes each", "ns/packet", "over redirect_map ns"],
    );
    for row in &findings.redirect {
        redirect.row([row.traits.to_string(), row.bytes.to_string(), ns(&row.cost), more(&row.over_redirect_ns)]);
    }
    grids.push(redirect);
    let mut capacity = Grid::new("room for metadata", &["path", "mode", "bytes"]);
    for row in &findings.capacity {
        capacity.row([row.path.clone(), row.mode.to_string(), row.bytes.to_string()]);
    }
    grids.push(capacity);
    let mut survival = Grid::new(
        "are the traits still there?",
        &["path, and who reads them", "mode", "survive", "seen", "intact", "changed", "absent", "broken"],
    );
    for row in &findings.survival {
        let survive = match (row.seen, row.intact) {
            (0, _) => "not seen",
            (seen, intact) if seen == intact => "yes",
            _ if row.changed == row.seen => "changed",
            (_, 0) => "no",
            _ => "some",
        };
        let [seen, intact, changed, absent, broken] =
            [row.seen, row.intact, row.changed, row.absent, row.broken].map(thousands);
        survival.row([
            row.path.clone(),
            row.mode.to_string(),
            survive.to_owned(),
            seen,
            intact,
            changed,
            absent,
            broken,
        ]);
    }
    grids.push(survival);
    let sentences = vec![format!("this machine's mitigations are those of the published {}", cpu(&findings.like))];
    Shown { grids, sentences }
}

/// A published CPU's column as people call it.
fn cpu(column: &str) -> &str {
    match column {
        "intel_e5_1650v4_ns" => "Intel E5-1650v4",
        "amd_9684x_ibpb_ns" => "AMD 9684X, IBPB",
        "amd_9684x_srso_ns" => "AMD 9684X, Safe RET",
        other => other,
    }
}

fn operations(rows: &Rows<TraitRow, TraitPublished, TraitFindings>) -> Grid {
    let mut grid = Grid::new(
        "operations, and the published CPUs (ns, and in parentheses function calls of the same CPU)",
        &["operation", "ns", "calls", "Intel E5-1650v4", "AMD 9684X, IBPB", "AMD 9684X, Safe RET"],
    );
    let of =
        |operation: &str, cpu: &str| rows.published.iter().find(|row| row.operation == operation)?.ns.get(cpu).copied();
    for row in &rows.rows {
        let theirs = |cpu: &str| {
            let ns = published_name(&row.operation).and_then(|name| of(name, cpu));
            ns.zip(of("function-call", cpu))
                .map_or_else(String::new, |(ns, call)| format!("{ns:.1} ({:.1})", ns / call))
        };
        grid.row([
            row.operation.clone(),
            ns(&row.cost),
            maybe(Some(row.calls), 2),
            theirs("intel_e5_1650v4_ns"),
            theirs("amd_9684x_ibpb_ns"),
            theirs("amd_9684x_srso_ns"),
        ]);
    }
    grid
}

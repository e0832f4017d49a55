//! The flow tables: by key length, by number of flows, and the published profile.

use super::{Grid, Shown, more, ns};
use crate::{
    record::bench::{FlowFindings, FlowPublished, FlowRow, Rows},
    report::thousands,
};

pub(super) fn shown(rows: &Rows<FlowRow, FlowPublished, FlowFindings>) -> Shown {
    let mut grid = Grid::new(
        "lookup, then drop or redirect",
        &["map", "key bytes", "flows", "max_entries", "found", "then", "ns/packet", "Mpps", "lookup ns"],
    );
    for row in &rows.rows {
        let is_lookup = row.map != "none";
        grid.row([
            row.map.clone(),
            if is_lookup { row.key_bytes.to_string() } else { String::new() },
            thousands(row.flows),
            if is_lookup { thousands(row.max_entries) } else { String::new() },
            if is_lookup { if row.hit { "yes" } else { "no" } } else { "" }.to_owned(),
            row.then.clone(),
            ns(&row.cost),
            format!("{:.3}", row.mpps),
            if is_lookup { more(&row.lookup_ns) } else { String::new() },
        ]);
    }
    let mut published = Grid::new(
        "published: i40e, hash lookup, share of samples (`xdplab run --profile` and `bench flow --profile` show ours)",
        &["prefetch", "long compare", "Mpps", "rank", "percent", "symbol"],
    );
    for row in &rows.published {
        published.row([
            row.prefetch.clone(),
            row.long_compare.clone(),
            format!("{:.1}", row.drop_mpps),
            row.rank.to_string(),
            format!("{:.2}", row.percent),
            row.symbol.clone(),
        ]);
    }
    let findings = &rows.findings;
    let mut sentences: Vec<String> = findings
        .per_8_bytes_ns
        .iter()
        .map(|(map, cost)| {
            format!(
                "8 further bytes of key cost {:+.2} ns in a {map} ({:.2} to {:.2})",
                cost.ns, cost.ci[0], cost.ci[1]
            )
        })
        .collect();
    sentences.push(format!("the largest map took {:.1} MiB", findings.largest_map_bytes as f64 / f64::from(1 << 20)));
    Shown { grids: vec![grid, published], sentences }
}

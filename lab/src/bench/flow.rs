//! Flow lookups: a key in a hash, an LRU hash or an array, then a drop or a redirect; by key length, by number of flows,
//! found and not found.

use std::collections::BTreeMap;

use xdplab_wire::flow;

use super::{
    Running, median,
    rig::{Against, PathSpec, Rig, RigSpec, builtin},
};
use crate::{
    host::lock::HostLock,
    lab::LabError,
    published,
    record::bench::{Bench, BenchReport, FlowFindings, FlowRow, Nanoseconds, Rows},
    run::Progress,
    topology::{Builtin, FlowMap, Lookup, Options, ProgramBody},
    traffic::Stop,
    xdp::XdpMode,
};

/// What a caller may choose.
#[derive(Debug, Clone)]
pub struct FlowOptions {
    /// Key lengths in bytes; those that the object has where empty.
    pub key_bytes: Vec<u32>,
    /// Most flows.
    pub flows: u32,
    /// Whether fewer rounds and windows will do.
    pub quick: bool,
    /// Whether a lookup in a hash, and the path without one, are profiled.
    pub profile: bool,
}

impl Default for FlowOptions {
    fn default() -> Self {
        Self { key_bytes: Vec::new(), flows: MOST_FLOWS, quick: false, profile: false }
    }
}

/// Most flows that the benchmark takes.
pub const MOST_FLOWS: u32 = 1_000_000;

/// Key lengths that the object has a program for, in bytes.
pub fn key_lengths() -> Vec<u32> {
    flow::LENGTHS.iter().map(|length| *length as u32).collect()
}

/// Flows of the rows that differ by key length.
const SOME_FLOWS: u32 = 1_000;
/// Key length of the rows that differ by the number of flows, in bytes.
const SOME_KEY: u32 = 16;
/// Frames of a window.
const WINDOW: u64 = 6_400;
/// Rounds and windows.
const ROUNDS: (usize, usize) = (4, 4);
/// Frames by which hits and misses are counted.
const FRAMES: u64 = 6_400;
/// Memory that the largest map may take.
const MOST_BYTES: u64 = 1 << 30;

#[derive(Debug, Clone, PartialEq)]
struct Case {
    lookup: Lookup,
    flows: u32,
    redirect: bool,
}

/// Runs the benchmark.
///
/// # Errors
/// Where the ports can't be made, or a program can't be loaded, filled or attached; a key length that the object does
/// not have among the reasons.
pub fn run(options: &FlowOptions, stop: &Stop, progress: &dyn Progress) -> Result<BenchReport, LabError> {
    let _alone = HostLock::exclusive(&mut |holder| progress.waiting(holder))?;
    let mut running = Running::start();
    let mut rig = Rig::new(&RigSpec { name: "flow", quick: options.quick, ..RigSpec::default() }, stop)?;
    running.made_of(&rig)?;
    let cases = cases(options);
    let paths: Vec<PathSpec> = cases.iter().map(|case| path(&rig, case)).collect();
    progress.step("hits and misses");
    let mut right = 0;
    let mut largest_map_bytes = 0;
    for (n, (case, path)) in cases.iter().zip(&paths).enumerate() {
        if stop.is_asked() {
            break;
        }
        progress.frames(n as u64, (cases.len() * (1 + ROUNDS.0)) as u64);
        let ledger = rig.settle(path, FRAMES)?.ledger;
        let Some(outer) = rig.outer() else { continue };
        let lookups = outer.lookups()?;
        let expected = if case.lookup.miss { (0, FRAMES) } else { (FRAMES, 0) };
        right += usize::from((lookups.hits, lookups.misses) == expected && ledger.is_balanced() && ledger.lost() == 0);
        if case.flows == options.flows {
            largest_map_bytes = largest_map_bytes.max(outer.largest_map_bytes());
        }
    }
    progress.step("price");
    let heard = |n: usize| progress.frames((cases.len() + n) as u64, (cases.len() * (1 + ROUNDS.0)) as u64);
    let pairs: Vec<(PathSpec, PathSpec)> =
        cases.iter().zip(&paths).map(|(case, path)| (path.clone(), paths[base(&cases, case)].clone())).collect();
    let measured = rig.rounds_against(&pairs, ROUNDS, WINDOW, &heard)?;
    if options.profile {
        // The published listing is of a hash whose frames are redirected.
        let is_hash = |case: &&Case| case.lookup.map == FlowMap::Hash && case.redirect;
        if let Some(n) = cases.iter().position(|case| is_hash(&case)) {
            let paths = [
                ("redirect without a lookup".to_owned(), pairs[n].1.clone(), median(&measured[n].base).ns),
                ("hash lookup, then redirect".to_owned(), pairs[n].0.clone(), measured[n].cost().ns),
            ];
            running.profile(&mut rig, &paths, progress)?;
        }
    }
    let rows: Vec<FlowRow> = cases.iter().zip(&measured).map(|(case, measured)| row(case, measured)).collect();
    let findings = FlowFindings { per_8_bytes_ns: slopes(&cases, &measured), largest_map_bytes };
    running.check(
        "every lookup ends as it must, and every frame",
        format!("{} rows", cases.len()),
        format!("{right} rows"),
        right == cases.len(),
    );
    if options.flows == MOST_FLOWS {
        running.check(
            "a million flows within 1 GiB",
            "1024 MiB",
            format!("{:.0} MiB", largest_map_bytes as f64 / f64::from(1 << 20)),
            largest_map_bytes > 0 && largest_map_bytes <= MOST_BYTES,
        );
    }
    running.note(format!(
        "rows by key length have {SOME_FLOWS} flows, rows by flows a key of {SOME_KEY} bytes; an array has no key but an index of 4"
    ));
    running.note("flows are taken in turn; in the hashes they were put in another order, so that neighbours in time are none in memory");
    Ok(running.finish(Bench::Flow(Rows { rows, published: published::flow(), findings })))
}

fn cases(options: &FlowOptions) -> Vec<Case> {
    let lengths = if options.key_bytes.is_empty() { key_lengths() } else { options.key_bytes.clone() };
    let case =
        |map, key_bytes, miss, flows, redirect| Case { lookup: Lookup { map, key_bytes, miss }, flows, redirect };
    let some = SOME_FLOWS.min(options.flows);
    let mut cases = vec![];
    for redirect in [false, true] {
        cases.push(case(FlowMap::None, SOME_KEY, false, some, redirect));
    }
    for map in [FlowMap::Hash, FlowMap::LruHash] {
        cases.extend(lengths.iter().map(|length| case(map, *length, false, some, false)));
    }
    cases.extend(lengths.iter().map(|length| case(FlowMap::Hash, *length, true, some, false)));
    let some_key = if lengths.contains(&SOME_KEY) { SOME_KEY } else { lengths[0] };
    let mut flows: Vec<u32> = [1, 10, 100, 1_000, 10_000, 100_000].into_iter().filter(|n| *n < options.flows).collect();
    flows.push(options.flows);
    for map in [FlowMap::Hash, FlowMap::LruHash, FlowMap::Array] {
        cases.extend(flows.iter().map(|flows| case(map, some_key, false, *flows, false)));
    }
    cases.extend(flows.iter().map(|flows| case(FlowMap::Hash, some_key, true, *flows, false)));
    for map in [FlowMap::Hash, FlowMap::LruHash, FlowMap::Array] {
        cases.push(case(map, some_key, false, some, true));
    }
    // Some rows stand in both series.
    let mut kept: Vec<Case> = Vec::new();
    for case in cases {
        if !kept.contains(&case) {
            kept.push(case);
        }
    }
    kept
}

fn path(rig: &Rig, case: &Case) -> PathSpec {
    let options = Options { lookup: case.lookup, ..Options::default() };
    let outer: ProgramBody =
        if case.redirect { rig.to_outs(Builtin::Flow, options, 1) } else { builtin(Builtin::Flow, options) };
    let mut path = PathSpec::new(outer, Some(builtin(Builtin::Drop, Options::default())), XdpMode::Native);
    path.flows = case.flows;
    path
}

/// The case without a lookup that a case is held against.
fn base(cases: &[Case], case: &Case) -> usize {
    cases.iter().position(|other| other.lookup.map == FlowMap::None && other.redirect == case.redirect).unwrap_or(0)
}

fn row(case: &Case, measured: &Against) -> FlowRow {
    let cost = measured.cost();
    let map = match case.lookup.map {
        FlowMap::Hash => "hash",
        FlowMap::LruHash => "lru_hash",
        FlowMap::Array => "array",
        FlowMap::None => "none",
    };
    FlowRow {
        map: map.to_owned(),
        key_bytes: match case.lookup.map {
            FlowMap::None => 0,
            FlowMap::Array => 4,
            _ => case.lookup.key_bytes,
        },
        flows: case.flows,
        max_entries: match case.lookup.map {
            FlowMap::None => 0,
            FlowMap::LruHash => (2 * case.flows).max(1024),
            _ => case.flows,
        },
        hit: !case.lookup.miss,
        then: if case.redirect { "redirect" } else { "drop" }.to_owned(),
        cost,
        mpps: cost.mpps(),
        lookup_ns: median(&measured.over()),
    }
}

/// What 8 further bytes of key cost: for each place in the rounds the slope of the line of least squares over the key
/// lengths, and of these the median.
fn slopes(cases: &[Case], measured: &[Against]) -> BTreeMap<String, Nanoseconds> {
    let mut slopes = BTreeMap::new();
    for (map, name) in [(FlowMap::Hash, "hash"), (FlowMap::LruHash, "lru_hash")] {
        let some = cases.iter().map(|case| case.flows).min_by_key(|flows| flows.abs_diff(SOME_FLOWS)).unwrap_or(0);
        let of: Vec<(f64, Vec<f64>)> = cases
            .iter()
            .zip(measured)
            .filter(|(c, _)| c.lookup.map == map && !c.lookup.miss && c.flows == some && !c.redirect)
            .map(|(case, measured)| (f64::from(case.lookup.key_bytes), measured.over()))
            .collect();
        let places = of.iter().map(|(_, windows)| windows.len()).min().unwrap_or(0);
        if of.len() < 2 || places == 0 {
            continue;
        }
        let at = |n: usize| slope(of.iter().map(|(length, windows)| (*length, windows[n])));
        slopes.insert(name.to_owned(), median(&(0..places).map(|n| 8.0 * at(n)).collect::<Vec<_>>()));
    }
    slopes
}

/// The slope of the line of least squares through some points.
fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let n = points.clone().count() as f64;
    let (x, y) = points.clone().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let (above, below) = points.fold((0.0, 0.0), |(above, below), point| {
        (above + (point.0 - x) * (point.1 - y), below + (point.0 - x) * (point.0 - x))
    });
    above / below
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_line_has_its_slope(slope_of in -5.0..5.0_f64, start in -100.0..100.0_f64) {
            let points = flow::LENGTHS.iter().map(|x| (*x as f64, start + slope_of * *x as f64));
            prop_assert!((slope(points) - slope_of).abs() < 1e-9);
        }
    }

    #[test]
    fn every_length_and_every_number_of_flows_has_its_rows() {
        let cases = cases(&FlowOptions::default());
        for length in key_lengths() {
            assert!(cases.iter().filter(|c| c.lookup.key_bytes == length && c.flows == SOME_FLOWS).count() >= 3);
        }
        assert_eq!(cases.iter().map(|case| case.flows).max(), Some(MOST_FLOWS));
        assert!(cases.iter().all(|case| cases[base(&cases, case)].redirect == case.redirect));
    }
}

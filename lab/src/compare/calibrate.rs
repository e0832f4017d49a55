//! The noise floor of this machine, from A/A comparisons, and proof that a known slowdown is found.

use std::{path::Path, time::Instant};

use super::{CompareError, CompareOptions, additivity, pairing::Pairing, run as compare};
use crate::{
    measure::stats::{detect, floor::noise_floor},
    record::compare::{CALIBRATE_SCHEMA, CalibrateReport, CompareVerdict, Detection, SightRow},
    run::Progress,
    topology::{self, Topology},
    traffic::Stop,
};

/// What a caller may choose.
#[derive(Debug, Clone)]
pub struct CalibrateOptions {
    /// Longest A/A comparison, in seconds.
    pub seconds: f64,
    /// Steps of extra work that slowdowns are made of.
    pub extra: Vec<u32>,
    /// Where all random orders and paddings start from.
    pub seed: Option<u64>,
}

impl Default for CalibrateOptions {
    fn default() -> Self {
        Self { seconds: 20.0, extra: vec![1, 2, 4, 8, 16, 32], seed: None }
    }
}

/// Reloads of the A/A comparison, and of each known slowdown's own measurement.
const RELOADS: usize = 64;
/// How long hops are held against each other, in seconds.
const HOPS_SECONDS: f64 = 5.0;
/// Longest search for a slowdown, in seconds.
const SEARCH: f64 = 15.0;

/// The path that is calibrated: a program that drops, on the port that the generator sends to.
fn path(extra: u32) -> Topology {
    let text = format!(
        "name = \"calibrate\"\n[nodes.gen]\n[nodes.dut]\n[[links]]\nkind = \"veth\"\nends = [\"gen:tx0\", \"dut:rx0\"]\n\
         [programs.dut]\nbuiltin = \"drop\"\nattach = [\"dut:rx0\"]\noptions.extra = {extra}\n\
         [[scenarios]]\nname = \"drop\"\ntraffic = {{ from = \"gen:tx0\", frame-bytes = 64, frames = 1000 }}\n\
         expect = {{ drop = [\"dut:rx0\"] }}\n"
    );
    match topology::parse(Path::new("calibrate.toml"), &text) {
        Ok(topology) => topology,
        Err(diagnostics) => unreachable!("the lab's own topology is sound: {diagnostics}"),
    }
}

/// Calibrates.
///
/// # Errors
/// Where the lab can't be brought up.
pub fn run(options: &CalibrateOptions, stop: &Stop, progress: &dyn Progress) -> Result<CalibrateReport, CompareError> {
    let started = jiff::Timestamp::now();
    let seed = options.seed.unwrap_or_else(|| started.as_nanosecond() as u64);
    let name =
        |extra: u32| if extra == 0 { "drop".to_owned() } else { format!("drop and {extra} steps of extra work") };
    let pairing = |extra: u32| Pairing::new(path(0), path(extra), name(0), name(extra));
    let base = CompareOptions {
        seed: Some(seed),
        reloads: RELOADS,
        seconds: options.seconds,
        floor: false,
        ..CompareOptions::default()
    };
    let began = Instant::now();
    let same = compare(&pairing(0), &base, stop, progress)?;
    let seconds = began.elapsed().as_secs_f64();
    let row = &same.rows[0];
    let floor_ns = noise_floor(&row.differences, 0.90).map_or(f64::NAN, |floor| floor.ns);
    let each = seconds / row.reloads.max(1) as f64;
    let plan = super::plan(RELOADS, 1)?;
    let sight = detect::sight(&row.differences, each, &plan, 0.95, seed)
        .into_iter()
        .filter(|sight| sight.half_width.is_finite() && sight.detectable.is_finite())
        .map(|sight| SightRow {
            seconds: sight.seconds,
            half_width_ns: sight.half_width,
            detectable_ns: sight.detectable,
        })
        .collect();
    let mut notes = vec![
        "the path is one hop of veth, a program that drops; the slowdowns are steps of work in that program".to_owned(),
    ];
    let hops = if stop.is_asked() { Ok(None) } else { additivity::run(HOPS_SECONDS, seed, stop, progress) };
    let hops = hops.unwrap_or_else(|error| {
        notes.push(format!("whether hops are additive could not be found out: {error}"));
        None
    });
    let mut detect = Vec::new();
    for extra in &options.extra {
        if stop.is_asked() {
            break;
        }
        progress.step(&format!("{extra} steps of extra work"));
        let pairing = pairing(*extra);
        // What it costs, by a measurement of its own that nothing cuts short.
        let known =
            compare(&pairing, &CompareOptions { seconds: SEARCH, reloads: 32, ..base.clone() }, stop, progress)?;
        let search = CompareOptions { budget: Some(0.0), seconds: SEARCH, ..base.clone() };
        let at = Instant::now();
        let found = compare(&pairing, &search, stop, progress)?;
        let took = at.elapsed().as_secs_f64();
        let row = &found.rows[0];
        detect.push(Detection {
            extra_ns: known.rows[0].delta_ns,
            found_in_s: (row.verdict == CompareVerdict::Regressed).then_some(took),
            estimated_ns: row.delta_ns,
        });
    }
    Ok(CalibrateReport {
        schema: CALIBRATE_SCHEMA.to_owned(),
        started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        fingerprint: same.fingerprint,
        seed,
        floor_ns,
        seconds,
        blocks: row_blocks(&same.rows),
        detect,
        sight,
        additivity: hops,
        notes,
    })
}

fn row_blocks(rows: &[crate::record::compare::CompareRow]) -> u64 {
    rows.iter().map(|row| row.blocks).sum()
}

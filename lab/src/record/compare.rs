//! What a comparison found: `xdplab.compare/1`, and what a calibration found: `xdplab.calibrate/1`.

use serde::{Deserialize, Serialize};

use super::{Fingerprint, LinkRecord};
use crate::xdp::XdpMode;

/// The `schema` of a [`CompareReport`].
pub const COMPARE_SCHEMA: &str = "xdplab.compare/1";
/// The `schema` of a [`CalibrateReport`].
pub const CALIBRATE_SCHEMA: &str = "xdplab.calibrate/1";

/// A comparison of `a`, the baseline, with `b`, the candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompareReport {
    /// [`COMPARE_SCHEMA`].
    pub schema: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// What must be equal for two results to be comparable: this machine's.
    pub fingerprint: Fingerprint,
    /// What `a` is: a file, a baseline, or a kernel.
    pub a: String,
    /// What `b` is.
    pub b: String,
    /// The links and what they were made of; those of `b` too where they differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkRecord>,
    /// Entries of the fingerprints that differ: name, value of `a`, value of `b`. Empty where both ran here, turn by
    /// turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<(String, String, String)>,
    /// Whether `a` and `b` ran interleaved in this run, or are numbers of two runs.
    pub interleaved: bool,
    /// The seed of all random orders and paddings.
    pub seed: u64,
    /// The rows, one a scenario and mode.
    pub rows: Vec<CompareRow>,
    /// The noise floor, in nanoseconds: half the width that the 90 % interval of `a` against `a` would have in the first
    /// row after as many reloads as were allowed, by the spread of a few here and now.
    pub floor_ns: Option<f64>,
    /// From when the host was free to the first timed window, in milliseconds: bringing up and loading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead_ms: Option<f64>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// One scenario in one mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompareRow {
    /// The scenario's name.
    pub name: String,
    /// The mode.
    pub mode: XdpMode,
    /// Cost of `a`, in nanoseconds a packet: the median of its windows.
    pub a_ns: f64,
    /// Cost of `b`.
    pub b_ns: f64,
    /// `b` less `a`: Hodges-Lehmann estimate over the reloads, in nanoseconds.
    pub delta_ns: f64,
    /// Its interval, at the level that the looks and the number of rows leave, in nanoseconds. Both ends are infinite,
    /// and `null`, with too few reloads.
    pub ci: [Option<f64>; 2],
    /// What `b` may cost more, in nanoseconds; `None`: the comparison only reports.
    pub budget_ns: Option<f64>,
    /// The verdict.
    pub verdict: CompareVerdict,
    /// Blocks that count, of four windows each.
    pub blocks: u64,
    /// Blocks that were drawn again: the thread migrated, the clock or the frequency changed, or time was stolen.
    pub redrawn: u64,
    /// Reloads.
    pub reloads: u64,
    /// Seconds of measuring.
    pub seconds: f64,
    /// The reloads' differences, in nanoseconds.
    pub differences: Vec<f64>,
}

/// The verdict on one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompareVerdict {
    /// Within the budget, or no budget was given and no difference was found.
    Ok,
    /// Faster: the interval lies below zero.
    Improved,
    /// Slower by more than the budget.
    Regressed,
    /// Neither can be said.
    Inconclusive,
}

/// This machine's noise floor, and proof that a known slowdown is found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrateReport {
    /// [`CALIBRATE_SCHEMA`].
    pub schema: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// This machine's fingerprint.
    pub fingerprint: Fingerprint,
    /// The seed of all random orders and paddings.
    pub seed: u64,
    /// The noise floor, in nanoseconds: half the width of the 90 % interval of an A/A comparison.
    pub floor_ns: f64,
    /// Seconds that the A/A comparison took.
    pub seconds: f64,
    /// Blocks of it.
    pub blocks: u64,
    /// Known slowdowns, and when they were found.
    pub detect: Vec<Detection>,
    /// What is the smallest cost that can be found in some time, by the A/A comparison's noise.
    pub sight: Vec<SightRow>,
    /// Whether hops are additive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additivity: Option<Additivity>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// Whether a hop costs the same behind one hop as behind three: without that, differences of chains are no prices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Additivity {
    /// Costs of the second, third and fourth hop, in nanoseconds.
    pub hops_ns: Vec<f64>,
    /// Their 90 % intervals; `null` with too few reloads.
    pub ci: Vec<[Option<f64>; 2]>,
    /// Whether they are equal within half a nanosecond; `None`: undecided.
    pub holds: Option<bool>,
    /// Reloads that it rests on.
    pub reloads: u64,
}

/// A known slowdown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// What the slower program costs more, in nanoseconds, by a long measurement of its own.
    pub extra_ns: f64,
    /// Seconds until it was found to be slower; `None`: it was not.
    pub found_in_s: Option<f64>,
    /// What was estimated then, in nanoseconds.
    pub estimated_ns: f64,
}

/// What can be seen in some time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SightRow {
    /// Seconds of measuring.
    pub seconds: f64,
    /// Half the interval's width by then, in nanoseconds.
    pub half_width_ns: f64,
    /// Smallest cost that is found in 95 of 100 comparisons of that length, in nanoseconds.
    pub detectable_ns: f64,
}

//! Results of many runs over time: `xdplab.history/1`. For reading only; no verdict rests on them.

use serde::{Deserialize, Serialize};

use super::{Fingerprint, Verdict};
use crate::xdp::XdpMode;

/// The `schema` of a [`HistoryReport`].
pub const HISTORY_SCHEMA: &str = "xdplab.history/1";

/// What the runs of a folder cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryReport {
    /// [`HISTORY_SCHEMA`].
    pub schema: String,
    /// The fingerprints that occur, of each what must be equal for results to be comparable.
    pub fingerprints: Vec<Fingerprint>,
    /// Results that may be held against each other, by lab, scenario, mode and fingerprint.
    pub series: Vec<HistorySeries>,
}

/// The results of one scenario in one mode on machines that are alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistorySeries {
    /// The lab's name.
    pub lab: String,
    /// The scenario's name.
    pub scenario: String,
    /// The mode.
    pub mode: XdpMode,
    /// Which of the fingerprints, from 0.
    pub fingerprint: usize,
    /// The results, the earliest first.
    pub results: Vec<HistoryResult>,
    /// Runs whose price says nothing, since frames were lost or nothing was priced: how many.
    pub left_out: usize,
    /// Where the cost changed, the earliest first.
    pub changes: Vec<HistoryChange>,
}

/// One run's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryResult {
    /// When the run started, RFC 3339.
    pub started: String,
    /// The file that has it.
    pub file: String,
    /// Its verdict then.
    pub verdict: Verdict,
    /// Nanoseconds a packet.
    pub ns: f64,
    /// The interval around it, 90 %.
    pub ci: [f64; 2],
    /// Million packets a second.
    pub mpps: f64,
}

/// A place where the cost changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryChange {
    /// The first result that is different, from 0.
    pub at: usize,
    /// When that run started.
    pub started: String,
    /// The median cost from the change before on, in nanoseconds.
    pub before_ns: f64,
    /// The median cost up to the next change, in nanoseconds.
    pub after_ns: f64,
    /// The p-value of the test that found it.
    pub p: f64,
}

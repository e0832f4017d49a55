//! Plain records of what was measured: what reports are made of and what other programs read.
//!
//! Field names are a contract (`xdplab.report/1`). Nothing here computes or prints.

pub mod bench;
pub mod compare;
pub mod discovery;
pub mod history;
pub mod profile;
pub mod stored;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::xdp::XdpMode;

/// The `schema` of a [`Report`].
pub const REPORT_SCHEMA: &str = "xdplab.report/1";

/// What one run of one topology found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`REPORT_SCHEMA`].
    pub schema: String,
    /// The lab's name.
    pub lab: String,
    /// What the lab is about, in one sentence.
    pub about: String,
    /// When the run started, RFC 3339 in UTC.
    pub started: String,
    /// What must be equal for two reports to be comparable.
    pub fingerprint: Fingerprint,
    /// The links and what they were made of.
    pub links: Vec<LinkRecord>,
    /// What there is to say of the run as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The scenarios, in the file's order, each mode of its own.
    pub scenarios: Vec<ScenarioRecord>,
    /// The topology that was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyRecord>,
}

/// The topology of a run, from which it can be run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopologyRecord {
    /// The file, as it was given.
    pub file: String,
    /// Its text.
    pub text: String,
    /// Objects that it names, as its text has them, each with a checksum of what was loaded (CRC-32).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub objects: BTreeMap<String, u32>,
}

/// What must be equal for two results to be comparable, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub BTreeMap<String, String>);

/// A link and what it was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Its ends, as `node:port`.
    pub ends: Vec<String>,
    /// What the file asks for: `veth`, `cable` or `bridge`.
    pub kind: String,
    /// What it was made of: `veth`, `bridge`, or a NIC's driver.
    pub made_of: String,
    /// The NICs at its ends, in their order: name and PCI address on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nics: Option<Vec<String>>,
    /// What it stands in for, where it does: the NIC that the file asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_in_for: Option<String>,
}

/// What one scenario found in one mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRecord {
    /// The scenario's name.
    pub name: String,
    /// The mode of the programs under test.
    pub mode: XdpMode,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, where the verdict needs a word: a skip's or a failure's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Remarks: helpers that ran in another mode than the scenario's, what timed the windows, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Where every frame of the correctness phase went.
    pub ledger: Ledger,
    /// Clones made.
    pub clones: u64,
    /// Cost, where the scenario was priced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Whether the receiver was saturated while it was priced: over NICs alone, since on veth the sender's own CPU receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturation: Option<Saturation>,
    /// Where the time went, where the scenario was profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<profile::Profile>,
    /// What was published of a scenario of this name, in Mpps: the lowest and the highest figure. Only where its cables are
    /// made of the NICs that it was published of, or of veth pairs that stand in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_mpps: Option<[f64; 2]>,
    /// The checks, in order.
    pub checks: Vec<Check>,
}

/// The outcome of a scenario or of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every check held.
    Pass,
    /// A check failed.
    Fail,
    /// Slower than the baseline by more than the budget.
    Regressed,
    /// The interval holds the threshold, or the machine was too noisy.
    Inconclusive,
    /// Not run; the reason says what the host lacks.
    Skipped,
}

/// Where every offered frame went.
///
/// offered + clones = delivered + dropped + unaccounted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Frames that the source made.
    pub offered: u64,
    /// Frames that arrived, by port.
    pub delivered: BTreeMap<String, u64>,
    /// Frames that ended elsewhere, by place and reason.
    pub dropped: Vec<Dropped>,
    /// Of the delivered, copies of a frame that its port had already got.
    pub duplicated: u64,
    /// Of the delivered, frames that came after a younger one of their flow.
    pub reordered: u64,
    /// Frames that arrived damaged.
    pub corrupted: u64,
    /// Frames of other origin that were seen and left out of the account.
    pub foreign: u64,
    /// Frames that nothing accounts for; negative where more arrived than was sent. 0 in a balanced ledger.
    pub unaccounted: i64,
}

/// Frames that ended at one place for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// The port, as `node:port`.
    pub at: String,
    /// Why: `verdict` for a program's own drop, else the kernel's reason, such as `redirect: EOPNOTSUPP`.
    pub reason: String,
    /// How many.
    pub frames: u64,
    /// Whether a program under test decided so; everything else is a loss.
    pub by_verdict: bool,
    /// What causes it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Ledger {
    /// Whether nothing is unaccounted.
    pub fn is_balanced(&self) -> bool {
        self.unaccounted == 0
    }

    /// Frames delivered, and frames dropped by verdicts, at all ports together.
    pub fn ends(&self) -> (u64, u64) {
        let dropped = self.dropped.iter().filter(|d| d.by_verdict).map(|d| d.frames).sum();
        (self.delivered.values().sum(), dropped)
    }

    /// Frames lost: kernel drops and unaccounted.
    pub fn lost(&self) -> u64 {
        let dropped: u64 = self.dropped.iter().filter(|d| !d.by_verdict).map(|d| d.frames).sum();
        dropped + self.unaccounted.unsigned_abs()
    }
}

/// Cost of a path, in nanoseconds a packet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Nanoseconds a packet: the windows' median.
    pub ns: f64,
    /// The interval around it, 90 %.
    pub ci: [f64; 2],
    /// Million packets a second: 1000 / ns.
    pub mpps: f64,
    /// Nanoseconds a packet of each window, in the order of measuring.
    pub windows: Vec<f64>,
}

/// Whether a receiver was saturated, and what shows it. Only then is its rate its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saturation {
    /// Whether it was.
    pub proven: bool,
    /// What is lacking for that.
    pub lacks: Vec<String>,
    /// Million packets a second that it received.
    pub received_mpps: f64,
    /// Million packets a second that the generator put on the line.
    pub sent_mpps: f64,
    /// Frames that its NIC had no buffer for.
    pub missed: u64,
    /// Share of its polls that used up their budget.
    pub full_polls: f64,
    /// The CPUs that received.
    pub cpus: Vec<u32>,
    /// Largest share of the time that one of them was idle.
    pub idle: f64,
    /// The most that the line carries of frames of this size, in million packets a second; `None`: it tells no speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_mpps: Option<f64>,
}

/// One check and what it found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked, such as `lost` or `min-mpps veth`.
    pub what: String,
    /// The limit.
    pub limit: String,
    /// What was measured.
    pub measured: String,
    /// Whether it held. `false` with a verdict `inconclusive` means that it could not be decided.
    pub ok: bool,
    /// Whether the interval holds the limit, so that neither can be said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
}

//! What a micro-benchmark found: `xdplab.bench/1`. Rows and findings differ by benchmark, the envelope does not.

use serde::{Deserialize, Serialize};

use super::{Check, Fingerprint, Ledger, Verdict, profile::Profile};
use crate::xdp::XdpMode;

/// The `schema` of a [`BenchReport`].
pub const BENCH_SCHEMA: &str = "xdplab.bench/1";

/// One benchmark's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchReport {
    /// [`BENCH_SCHEMA`].
    pub schema: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// What must be equal for two results to be comparable.
    pub fingerprint: Fingerprint,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Which benchmark, its rows, the published figures beside them, and what follows.
    #[serde(flatten)]
    pub bench: Bench,
    /// What must hold, and whether it did.
    pub checks: Vec<Check>,
    /// The checks' verdict.
    pub verdict: Verdict,
    /// Remarks: methods, stand-ins, what was left out and why.
    pub notes: Vec<String>,
    /// Where the time goes on some of the paths, where that was asked for. The second stands beside the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<PathProfile>,
}

/// A profile of one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathProfile {
    /// The path.
    pub name: String,
    /// What a frame costs on it, in nanoseconds, generator included.
    pub ns: f64,
    /// The samples.
    pub profile: Profile,
}

/// The benchmarks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "bench", rename_all = "lowercase")]
pub enum Bench {
    /// What one run costs, by the number of programs in the kernel's dispatcher.
    Dispatcher(Rows<DispatcherRow, DispatcherPublished, DispatcherFindings>),
    /// Dropping frames.
    Drop(Rows<PathRow, PathPublished, DropFindings>),
    /// `redirect_map` to one port.
    Redirect(Rows<PathRow, PathPublished, RedirectFindings>),
    /// `redirect_map` and broadcast to several ports.
    Broadcast(Rows<MatrixRow, PathPublished, BroadcastFindings>),
    /// Flow lookups.
    Flow(Rows<FlowRow, FlowPublished, FlowFindings>),
    /// The per-packet key-value store.
    Traits(Rows<TraitRow, TraitPublished, TraitFindings>),
}

/// Measured rows, published ones, and what follows from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rows<R, P, F> {
    /// What was measured.
    pub rows: Vec<R>,
    /// The published figures that stand beside.
    pub published: Vec<P>,
    /// What follows.
    pub findings: F,
}

/// A value in nanoseconds with its 90 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Nanoseconds {
    /// Nanoseconds: the median.
    pub ns: f64,
    /// The interval around it, 90 %.
    pub ci: [f64; 2],
}

impl Nanoseconds {
    /// Million a second.
    pub fn mpps(&self) -> f64 {
        1000.0 / self.ns
    }

    /// Half the interval's width.
    pub fn half_width(&self) -> f64 {
        (self.ci[1] - self.ci[0]) / 2.0
    }
}

/// One run of one program while so many programs are attached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DispatcherRow {
    /// Programs of this benchmark that are attached.
    pub entries: u32,
    /// Where the code of the first-attached program lies: `below` or `above` that of all others.
    pub position: String,
    /// Which program ran: the `first` attached or the `last`.
    pub attached: String,
    /// Cost of one run.
    #[serde(flatten)]
    pub cost: Nanoseconds,
    /// Whether the dispatcher holds it, where the kernel's code could be read.
    pub holds_entry: Option<bool>,
    /// Attaching the last one took so long, in milliseconds.
    pub attach_ms: f64,
    /// Detaching it took so long, in milliseconds.
    pub detach_ms: f64,
    /// The dispatcher's code for so many entries with aligned jump targets, in bytes: computed.
    pub image_bytes_aligned: u32,
    /// The same with unaligned ones: computed.
    pub image_bytes_unaligned: u32,
    /// The dispatcher's code, others' entries included, as it stands in this kernel, in bytes; where it could be read.
    pub image_bytes_read: Option<u32>,
}

/// A published dispatcher row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DispatcherPublished {
    /// `aligned` or `unaligned`.
    pub jump_targets: String,
    /// `below` or `above`.
    pub function_position: String,
    /// `auto` or `off`.
    pub mitigations: String,
    /// Programs in the dispatcher.
    pub entries: u32,
    /// Size of its code in bytes.
    pub image_bytes: u32,
    /// Nanoseconds of one run, a whole number.
    pub ns_per_run: f64,
}

/// What follows from the dispatcher's rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DispatcherFindings {
    /// Entries that others on this host held meanwhile; `None` where the kernel's code can't be read.
    pub others: Option<u32>,
    /// Where runs become dearer.
    pub cliff: Option<Cliff>,
    /// Within the capacity: nanoseconds a run that each further entry costs.
    pub slope_ns: Nanoseconds,
    /// Within the capacity: from the tenth to the ninetieth percentile of all rows, in nanoseconds.
    pub spread_ns: f64,
    /// What the kernel does against speculation, which is what the step costs: by vulnerability.
    pub mitigations: std::collections::BTreeMap<String, String>,
    /// Whether indirect calls go by retpolines.
    pub retpolines: bool,
}

/// Where the dispatcher ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cliff {
    /// Programs of this benchmark that found room.
    pub entries: u32,
    /// The same with the entries of others: the dispatcher's capacity. `None` where others' can't be counted.
    pub capacity: Option<u32>,
    /// One run of a program with an entry, in nanoseconds.
    pub before_ns: f64,
    /// One run of a program without, in nanoseconds.
    pub after_ns: f64,
    /// The difference: the price of the indirect call.
    pub step_ns: f64,
}

/// The cost of a path from the generator to where frames end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathRow {
    /// What the path is.
    pub test: String,
    /// How the program under test ran.
    pub mode: XdpMode,
    /// Number of receive queues that took part.
    pub queues: u32,
    /// What is done with a frame's bytes, or which map is asked.
    pub detail: String,
    /// Cost a frame, generator included. Over several queues: the time between two frames of all of them.
    #[serde(flatten)]
    pub cost: Nanoseconds,
    /// Million frames a second.
    pub mpps: f64,
}

/// A published row in Mpps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathPublished {
    /// Kernel or variant.
    pub version: String,
    /// The test.
    pub test: String,
    /// Generic mode, Mpps.
    pub generic_mpps: Option<f64>,
    /// Native mode, Mpps.
    pub native_mpps: Option<f64>,
    /// What the source says about it.
    pub note: String,
}

/// What follows from the drop rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DropFindings {
    /// What reading the header adds over not touching the frame, native.
    pub read_ns: Nanoseconds,
    /// What swapping the addresses adds, native.
    pub swap_ns: Nanoseconds,
    /// What generic mode adds, untouched.
    pub generic_ns: Nanoseconds,
    /// How often the rate of one queue several reach, native, untouched.
    pub queues_gain: f64,
}

/// What follows from the redirect rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedirectFindings {
    /// One further hop, redirect and drop over drop alone, by mode.
    pub hop_ns: std::collections::BTreeMap<XdpMode, Nanoseconds>,
}

/// One cell of the broadcast matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// `redirect_map`, `broadcast` or `broadcast, ingress excluded`.
    pub test: String,
    /// How the programs under test ran.
    pub mode: XdpMode,
    /// `devmap` or `devmap_hash`.
    pub map: String,
    /// The map's `max_entries`.
    pub max_entries: u32,
    /// Number of targets in the map.
    pub targets: u32,
    /// The egress program: `none` or `pass`.
    pub egress: String,
    /// What the ports behind the targets run: `nothing`, `pass` or `drop`.
    pub inner: String,
    /// Whether copies are made at all: a broadcast to one target never clones.
    pub clones_at_all: bool,
    /// Frames of the correctness phase.
    pub offered: u64,
    /// Copies that each target got.
    pub delivered: Vec<u64>,
    /// Clones made, by each way of counting that this host has.
    pub clones: std::collections::BTreeMap<String, u64>,
    /// Frames that nothing accounts for.
    pub unaccounted: i64,
    /// Cost a frame, generator included.
    #[serde(flatten)]
    pub cost: Nanoseconds,
    /// Million frames a second.
    pub mpps: f64,
}

/// What follows from the broadcast matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BroadcastFindings {
    /// How clones were counted, and how the ways agree.
    pub clone_methods: Vec<String>,
    /// One further hop: redirect and drop over drop alone, by mode.
    pub hop_ns: std::collections::BTreeMap<XdpMode, Nanoseconds>,
    /// One further slot of the map, which a broadcast walks: by kind of map, native.
    pub slot_ns: std::collections::BTreeMap<String, Nanoseconds>,
    /// Each further clone: the step from k to k + 1 targets, less a hop and a slot.
    pub clone_ns: Vec<CloneCost>,
    /// A broadcast to one target against the map's size: it walks the whole map.
    pub sizes: Vec<SizeRow>,
    /// Targets that the kernel skips, and what the ledger shows of them.
    pub skipped: Vec<SkippedRow>,
}

/// What a further clone costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CloneCost {
    /// How the programs under test ran.
    pub mode: XdpMode,
    /// What the ports behind the targets run.
    pub inner: String,
    /// From so many targets to one more.
    pub from: u32,
    /// The step.
    pub step_ns: Nanoseconds,
    /// The step less a hop and a slot.
    pub clone_ns: Nanoseconds,
}

/// A single-target broadcast in a map of some size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeRow {
    /// `devmap` or `devmap_hash`.
    pub map: String,
    /// The map's `max_entries`.
    pub max_entries: u32,
    /// Cost a frame, generator included.
    #[serde(flatten)]
    pub cost: Nanoseconds,
    /// What it adds over `redirect_map` to the same target.
    pub over_redirect_ns: Nanoseconds,
}

/// A target that can't take frames, in a broadcast to three.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkippedRow {
    /// Why one target can't.
    pub target: String,
    /// How the programs under test ran.
    pub mode: XdpMode,
    /// The account.
    pub ledger: Ledger,
    /// Clones made.
    pub clones: u64,
}

/// A flow lookup, then a drop or a redirect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowRow {
    /// `hash`, `lru_hash`, `array`, or `none` for the path without a lookup.
    pub map: String,
    /// Key length in bytes.
    pub key_bytes: u32,
    /// Flows in the map.
    pub flows: u32,
    /// The map's `max_entries`.
    pub max_entries: u32,
    /// Whether lookups find their flow.
    pub hit: bool,
    /// `drop` or `redirect`.
    pub then: String,
    /// Cost a frame, generator included.
    #[serde(flatten)]
    pub cost: Nanoseconds,
    /// Million frames a second.
    pub mpps: f64,
    /// What the lookup adds over the same path without.
    pub lookup_ns: Nanoseconds,
}

/// A published profile row of a flow lookup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowPublished {
    /// Whether the packet was prefetched.
    pub prefetch: String,
    /// Whether keys were compared by words.
    pub long_compare: String,
    /// Mpps.
    pub drop_mpps: f64,
    /// Rank in the profile.
    pub rank: u32,
    /// Share of samples.
    pub percent: f64,
    /// Symbol.
    pub symbol: String,
}

/// What follows from the flow rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowFindings {
    /// What 8 further bytes of key cost, by kind of map.
    pub per_8_bytes_ns: std::collections::BTreeMap<String, Nanoseconds>,
    /// Memory of the largest map, in bytes, as the kernel counts it.
    pub largest_map_bytes: u64,
}

/// A trait operation, or a call that it is held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitRow {
    /// The operation.
    pub operation: String,
    /// What it worked on.
    pub detail: String,
    /// Cost of one.
    #[serde(flatten)]
    pub cost: Nanoseconds,
    /// Multiple of a BPF-to-BPF call in the same run.
    pub calls: f64,
}

/// A published trait row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitPublished {
    /// The operation.
    pub operation: String,
    /// Nanoseconds by CPU.
    pub ns: std::collections::BTreeMap<String, f64>,
}

/// What follows from the trait rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitFindings {
    /// Whose mitigations this machine shares among the published CPUs.
    pub like: String,
    /// Largest metadata area by path, in bytes.
    pub capacity: Vec<TraitCapacity>,
    /// Where traits are still there.
    pub survival: Vec<TraitSurvival>,
    /// What traits add to a redirect, native.
    pub redirect: Vec<TraitRedirect>,
}

/// How large the metadata area may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitCapacity {
    /// Where.
    pub path: String,
    /// How the program ran.
    pub mode: XdpMode,
    /// Bytes.
    pub bytes: u32,
}

/// Whether traits survive a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitSurvival {
    /// The path, and who reads them.
    pub path: String,
    /// How the programs under test ran.
    pub mode: XdpMode,
    /// Frames that the reader had to see.
    pub offered: u64,
    /// Frames that it saw.
    pub seen: u64,
    /// Of these, frames with all traits intact.
    pub intact: u64,
    /// Of these, frames with traits of which one is missing or has another value.
    pub changed: u64,
    /// Of these, frames without metadata.
    pub absent: u64,
    /// Of these, frames with metadata that is no set of traits.
    pub broken: u64,
}

/// What traits add to a redirect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraitRedirect {
    /// Number of traits.
    pub traits: u32,
    /// Length of each, in bytes.
    pub bytes: u32,
    /// Cost a frame, generator included.
    #[serde(flatten)]
    pub cost: Nanoseconds,
    /// What it is over `redirect_map` to the same port.
    pub over_redirect_ns: Nanoseconds,
}

//! Where a CPU's time went: samples by symbol, and the calls that led there.

use serde::{Deserialize, Serialize};

/// What one CPU did while frames were sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// What the samples were taken by: `cycles`, or `cpu-clock` where the CPU has no counter for them.
    pub clock: String,
    /// Samples a second, as asked of the kernel.
    pub frequency_hz: u64,
    /// The CPU.
    pub cpu: usize,
    /// Samples of the profiled work: what `rows` and `stacks` are made of, and what percentages are of.
    pub samples: u64,
    /// Samples while the CPU was idle. No part of `samples`.
    pub idle: u64,
    /// Samples of other threads than those profiled. No part of `samples`.
    pub elsewhere: u64,
    /// Samples that found no room in the kernel's buffer.
    pub lost: u64,
    /// How often the kernel held sampling back.
    pub throttled: u64,
    /// The symbols, the one with the most samples first. A sample counts for the function that ran, not for its callers.
    pub rows: Vec<ProfileRow>,
    /// Stacks, the one with the most samples first.
    pub stacks: Vec<ProfileStack>,
    /// What to bear in mind when reading it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A symbol and its own samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileRow {
    /// The function; one of a BPF program ends in ` [bpf]`, one of a kernel module in its name, such as ` [veth]`.
    pub symbol: String,
    /// What kind of code it is.
    pub kind: SymbolKind,
    /// Its samples.
    pub samples: u64,
    /// Its share of the profile's samples, 0 to 100.
    pub percent: f64,
}

/// What kind of code a symbol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SymbolKind {
    /// The kernel, and its modules.
    Kernel,
    /// BPF programs, and what the kernel generates to call them.
    Bpf,
    /// User code, all of it together.
    User,
}

/// A stack and its samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileStack {
    /// The functions, the outermost caller first, each written as in [`ProfileRow::symbol`].
    pub stack: Vec<String>,
    /// How often it was met.
    pub samples: u64,
}

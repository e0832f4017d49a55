//! What must be equal for two results to be comparable, read from whatever of it this kernel shows.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | the whole, what differs between two, and what makes prices meaningless |
//! | `kernel` | the kernel's build: configuration, preemption |
//! | `cpu` | the processor: model, mitigations, power saving, hypervisor |
//! | `tracers` | what others trace, and what they attach |
//! | `port` | a NIC's or veth's driver and settings |

mod cpu;
mod kernel;
mod port;
mod tracers;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

pub use port::{of_port, of_ports};

use crate::record::Fingerprint;

/// What is put where the host does not tell.
pub const UNKNOWN: &str = "unknown";
/// What stands for an entry that one of two fingerprints lacks.
pub const NOT_RECORDED: &str = "not recorded";

/// Plain files that are taken as they are.
const FILES: &[(&str, &str)] = &[
    ("kernel", "/proc/sys/kernel/osrelease"),
    ("kernel-build", "/proc/sys/kernel/version"),
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("bpf-jit", "/proc/sys/net/core/bpf_jit_enable"),
    ("bpf-jit-harden", "/proc/sys/net/core/bpf_jit_harden"),
    ("bpf-stats", BPF_STATS),
    ("netdev-budget", "/proc/sys/net/core/netdev_budget"),
    ("netdev-budget-usecs", "/proc/sys/net/core/netdev_budget_usecs"),
];
const BPF_STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// Entries that are printed and not compared: they change from minute to minute, or say where a thing is and not what.
const VOLATILE: &[&str] = &["steal", "config-read-from"];
/// The same for a port's entries, by their last word.
const VOLATILE_OF_PORTS: &[&str] = &["bus"];

type Entries = BTreeMap<String, String>;

/// The machine's and the kernel's part of the fingerprint.
pub fn of_host() -> Fingerprint {
    let read_files = FILES.iter().map(|(name, path)| ((*name).to_owned(), read(path).unwrap_or_else(unknown)));
    let mut entries: Entries = read_files.collect();
    if let Ok(cpus) = std::thread::available_parallelism() {
        entries.insert("cpus".to_owned(), cpus.to_string());
    }
    entries.extend(kernel::entries());
    entries.extend(cpu::entries());
    entries.extend(tracers::entries());
    Fingerprint(entries)
}

/// What a run adds of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFacts<'a> {
    /// The scenario, where a report has several that differ.
    pub scenario: Option<&'a str>,
    /// The traffic engine, such as `live`.
    pub engine: &'a str,
    /// Frames of a batch, where the engine has batches.
    pub batch: Option<u32>,
    /// CPUs that send at once; one is not worth an entry.
    pub senders: u32,
    /// Maps of the programs under test: name, kind such as `devmap`, and `max_entries`.
    pub maps: &'a [(&'a str, &'a str, u32)],
}

/// A run's part of the fingerprint: engine, batch, and the maps' kinds and sizes.
pub fn of_run(facts: &RunFacts<'_>) -> Fingerprint {
    let of = facts.scenario.map_or_else(String::new, |scenario| format!(" of {scenario}"));
    let mut entries = Entries::from([(format!("engine{of}"), facts.engine.to_owned())]);
    if let Some(batch) = facts.batch {
        entries.insert(format!("batch{of}"), batch.to_string());
    }
    if facts.senders > 1 {
        entries.insert(format!("senders{of}"), facts.senders.to_string());
    }
    for (name, kind, size) in facts.maps {
        entries.insert(format!("map {name}{of}"), format!("{kind}, max_entries {size}"));
    }
    Fingerprint(entries)
}

/// A fingerprint as it concerns one scenario: its own entries without its name, and none of the other scenarios'.
pub fn concerning(fingerprint: &Fingerprint, scenario: &str) -> Fingerprint {
    let of = |(name, value): (&String, &String)| {
        let is_of_run = RUN.iter().any(|start| name.starts_with(start)) && name.contains(" of ");
        match name.strip_suffix(&format!(" of {scenario}")) {
            Some(own) if is_of_run => Some((own.to_owned(), value.clone())),
            _ if is_of_run => None,
            _ => Some((name.clone(), value.clone())),
        }
    };
    Fingerprint(fingerprint.0.iter().filter_map(of).collect())
}

/// What the entries of runs begin with.
const RUN: [&str; 4] = ["engine", "batch", "senders", "map "];

/// Whether an entry must be equal for two results to be comparable. The others are printed only.
pub fn is_identity(name: &str) -> bool {
    let of_port = name.strip_prefix(port::PREFIX).and_then(|rest| rest.rsplit(' ').next());
    !VOLATILE.contains(&name) && of_port.is_none_or(|last| !VOLATILE_OF_PORTS.contains(&last))
}

/// A short name for what is the same of one lab on one machine, from boot to boot: of the entries that must be equal, its
/// ports' with them, those that are not of a run, nor of what else runs on the host.
pub fn key(fingerprint: &Fingerprint) -> String {
    let passing = ["dispatcher-programs", "tracing-programs"];
    let is_of_run = |name: &str| RUN.iter().any(|start| name.starts_with(start));
    let mut crc = flate2::Crc::new();
    for (name, value) in &fingerprint.0 {
        if is_identity(name) && !is_of_run(name) && !passing.contains(&name.as_str()) {
            crc.update(format!("{name}={value}\n").as_bytes());
        }
    }
    let kernel: String = fingerprint
        .0
        .get("kernel")
        .map(|kernel| kernel.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect())
        .unwrap_or_default();
    format!("{kernel}-{:08x}", crc.sum())
}

/// The entries that must be equal and are not: name, value in `a`, value in `b`, by name. One that only one of both has
/// is [`NOT_RECORDED`] in the other.
pub fn differences(a: &Fingerprint, b: &Fingerprint) -> Vec<(String, String, String)> {
    let names: BTreeSet<&String> = a.0.keys().chain(b.0.keys()).filter(|name| is_identity(name)).collect();
    let of = |fingerprint: &Fingerprint, name: &str| {
        fingerprint.0.get(name).cloned().unwrap_or_else(|| NOT_RECORDED.to_owned())
    };
    let pairs = names.into_iter().map(|name| (name.clone(), of(a, name), of(b, name)));
    pairs.filter(|(_, in_a, in_b)| in_a != in_b).collect()
}

/// What makes every price taken here meaningless, each with its fix; empty where nothing does.
pub fn refusals() -> Vec<String> {
    refused(|name| read(name), kernel::debugging().as_deref().unwrap_or_default())
}

fn refused(read: impl Fn(&str) -> Option<String>, debugging: &[String]) -> Vec<String> {
    let mut reasons = Vec::new();
    if read(BPF_STATS).is_some_and(|on| on != "0") {
        reasons.push(
            "BPF statistics are on: the kernel reads the clock around every program run; fix: sysctl \
             kernel.bpf_stats_enabled=0"
                .to_owned(),
        );
    }
    if read("/proc/sys/net/core/bpf_jit_enable").is_some_and(|on| on == "0") {
        reasons.push("the BPF JIT is off: programs are interpreted; fix: sysctl net.core.bpf_jit_enable=1".to_owned());
    }
    let heavy: Vec<&str> = debugging.iter().map(String::as_str).filter(|name| kernel::HEAVY.contains(name)).collect();
    if !heavy.is_empty() {
        reasons.push(format!(
            "the kernel checks itself at every step ({}): costs are of the checks; fix: boot a kernel without them",
            heavy.join(", ")
        ));
    }
    if let Some(tracer) = tracers::current().filter(|tracer| tracer != "nop") {
        reasons.push(format!(
            "ftrace's {tracer} tracer is on: it is called in every function; fix: echo nop > \
             /sys/kernel/tracing/current_tracer"
        ));
    }
    reasons
}

/// The contents of a small file without white space around them; `None` where it is not there or empty.
fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn unknown() -> String {
    UNKNOWN.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fingerprint(entries: &[(&str, &str)]) -> Fingerprint {
        Fingerprint(entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn this_host_is_described() {
        let Fingerprint(entries) = of_host();
        for name in [
            "kernel",
            "preemption",
            "hz",
            "config-debugging",
            "config-mitigations",
            "cpus",
            "cpu",
            "cpu-idle",
            "governor",
            "hypervisor",
            "smt",
            "steal",
            "bpf-stats",
            "ftrace",
            "dispatcher-programs",
            "tracing-programs",
        ] {
            assert!(entries.get(name).is_some_and(|value| !value.is_empty()), "{name} of {entries:#?}");
        }
    }

    #[test]
    fn a_host_does_not_differ_from_itself() {
        // What others load meanwhile is theirs.
        let theirs = ["tracing-programs", "dispatcher-programs"];
        let mut found = differences(&of_host(), &of_host());
        found.retain(|(name, ..)| !theirs.contains(&name.as_str()));
        assert_eq!(found, []);
    }

    #[test]
    fn only_what_must_be_equal_is_compared_by_name() {
        let a = fingerprint(&[("smt", "on"), ("kernel", "6.1"), ("steal", "seen"), ("port dut:rx0 bus", "1")]);
        let b = fingerprint(&[("kernel", "6.2"), ("steal", "none seen"), ("port dut:rx0 bus", "2"), ("hz", "250")]);
        let own = |(name, a, b): (&str, &str, &str)| (name.to_owned(), a.to_owned(), b.to_owned());
        let expected = [("hz", NOT_RECORDED, "250"), ("kernel", "6.1", "6.2"), ("smt", "on", NOT_RECORDED)].map(own);
        assert_eq!(differences(&a, &b), expected);
        assert_eq!(differences(&a, &a), []);
    }

    #[test]
    fn a_run_says_its_engine_batch_and_maps() {
        let maps = [("tx_ports", "devmap", 4)];
        let facts = RunFacts { scenario: None, engine: "live", batch: Some(64), senders: 1, maps: &maps };
        let expected = [("batch", "64"), ("engine", "live"), ("map tx_ports", "devmap, max_entries 4")];
        assert_eq!(of_run(&facts), fingerprint(&expected));
        let several = RunFacts { scenario: Some("drop"), engine: "packet", batch: None, senders: 2, maps: &[] };
        let expected = [("engine of drop", "packet"), ("senders of drop", "2")];
        assert_eq!(of_run(&several), fingerprint(&expected));
    }

    #[test]
    fn another_scenarios_entries_do_not_concern_one() {
        let all = fingerprint(&[
            ("kernel", "6.18"),
            ("engine of drop", "live"),
            ("engine of drop of all", "xsk"),
            ("map tx_ports of drop", "devmap, max_entries 1"),
        ]);
        let drop = fingerprint(&[("kernel", "6.18"), ("engine", "live"), ("map tx_ports", "devmap, max_entries 1")]);
        assert_eq!(concerning(&all, "drop"), drop);
        assert_eq!(concerning(&all, "drop of all"), fingerprint(&[("kernel", "6.18"), ("engine", "xsk")]));
        assert_eq!(concerning(&drop, "drop"), drop);
    }

    #[test]
    fn the_key_has_a_ports_settings_and_not_where_it_sits() {
        let of = |offloads, bus| {
            let port =
                [("kernel", "6.18"), ("port * offloads", offloads), ("port dut:rx0 bus", bus), ("engine", "live")];
            key(&fingerprint(&port))
        };
        assert_eq!(of("rx-gro", "0000:01:00.0"), of("rx-gro", "0000:02:00.0"));
        assert_ne!(of("rx-gro", "0000:01:00.0"), of("none", "0000:01:00.0"));
    }

    #[test]
    fn what_makes_prices_meaningless_is_named_with_its_fix() {
        let on = |path: &str| Some(if path == BPF_STATS { "1" } else { "0" }.to_owned());
        let reasons = refused(on, &["KASAN".to_owned(), "DEBUG_LIST".to_owned()]);
        assert!(reasons.iter().any(|r| r.contains("kernel.bpf_stats_enabled=0")), "{reasons:?}");
        assert!(reasons.iter().any(|r| r.contains("net.core.bpf_jit_enable=1")), "{reasons:?}");
        assert!(reasons.iter().any(|r| r.contains("(KASAN)")), "{reasons:?}");
        let off = |path: &str| Some(if path == BPF_STATS { "0" } else { "1" }.to_owned());
        assert!(refused(off, &["DEBUG_LIST".to_owned()]).iter().all(|r| r.contains("ftrace")));
    }

    proptest! {
        #[test]
        fn differences_mirror_each_other(
            a in prop::collection::btree_map("[a-d]", "[xy]", 0..4), b in prop::collection::btree_map("[a-d]", "[xy]", 0..4),
        ) {
            let (a, b) = (Fingerprint(a), Fingerprint(b));
            let mirrored: Vec<_> = differences(&b, &a).into_iter().map(|(name, b, a)| (name, a, b)).collect();
            prop_assert_eq!(differences(&a, &b), mirrored);
            prop_assert_eq!(differences(&a, &b).is_empty(), a == b);
        }
    }
}

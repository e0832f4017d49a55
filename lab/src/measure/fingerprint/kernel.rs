//! The kernel's build: the options that a price depends on, and how it is preempted.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Read as _,
};

use flate2::read::GzDecoder;

use super::{Entries, UNKNOWN, read, unknown};

/// Options by which the kernel checks itself, that cost something while packets pass.
const DEBUGGING: &[&str] = &[
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_KMEMLEAK",
    "DEBUG_LIST",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_MUTEXES",
    "DEBUG_NET",
    "DEBUG_OBJECTS",
    "DEBUG_PAGEALLOC",
    "DEBUG_PER_CPU_MAPS",
    "DEBUG_PREEMPT",
    "DEBUG_SPINLOCK",
    "DEBUG_VM",
    "FAULT_INJECTION",
    "KASAN",
    "KCOV",
    "KCSAN",
    "KFENCE",
    "KMSAN",
    "LOCKDEP",
    "LOCK_STAT",
    "PAGE_OWNER",
    "PAGE_POISONING",
    "PROVE_LOCKING",
    "PROVE_RCU",
    "SLUB_DEBUG_ON",
    "UBSAN",
];

/// Of these, the ones with which costs are those of the checks.
pub(super) const HEAVY: &[&str] = &[
    "DEBUG_KMEMLEAK",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_SPINLOCK",
    "KASAN",
    "KCOV",
    "KCSAN",
    "KMSAN",
    "LOCKDEP",
    "PROVE_LOCKING",
    "SLUB_DEBUG_ON",
];

/// Options that harden the kernel at a cost.
const HARDENING: &[&str] = &[
    "CFI_CLANG",
    "FORTIFY_SOURCE",
    "HARDENED_USERCOPY",
    "INIT_ON_ALLOC_DEFAULT_ON",
    "INIT_ON_FREE_DEFAULT_ON",
    "RANDSTRUCT_FULL",
    "SLAB_FREELIST_HARDENED",
    "STACKPROTECTOR_STRONG",
];

/// Options whose value is an entry each.
const SINGLE: &[(&str, &str)] = &[
    ("hz", "HZ"),
    ("config-bpf-jit-always-on", "BPF_JIT_ALWAYS_ON"),
    ("config-net-rx-busy-poll", "NET_RX_BUSY_POLL"),
    ("config-no-hz-full", "NO_HZ_FULL"),
];

/// Whether an option belongs to an entry.
type IsOf = fn(&str) -> bool;

/// A kernel's configuration: the options that are set, without `CONFIG_`, with their values.
pub(super) type Config = BTreeMap<String, String>;

pub(super) fn entries() -> Entries {
    let (config, from) = config().map_or((None, unknown()), |(config, from)| (Some(config), from));
    let mut entries = of_config(config.as_ref());
    entries.insert("config-read-from".to_owned(), from);
    let version = read("/proc/sys/kernel/version").unwrap_or_default();
    let running = read("/sys/kernel/debug/sched/preempt");
    let command_line = read("/proc/cmdline").unwrap_or_default();
    entries.insert("preemption".to_owned(), preemption(&version, running.as_deref(), &command_line, config.as_ref()));
    entries
}

/// The options on by which the kernel checks itself; `None` where its configuration can't be read.
pub(super) fn debugging() -> Option<Vec<String>> {
    let (config, _) = config()?;
    Some(set(&config, |name| DEBUGGING.contains(&name)))
}

/// The running kernel's configuration and where it was read, which is where distributions put it.
fn config() -> Option<(Config, String)> {
    let packed = "/proc/config.gz";
    let mut text = String::new();
    if let Ok(file) = File::open(packed)
        && GzDecoder::new(file).read_to_string(&mut text).is_ok()
    {
        return Some((parse(&text), packed.to_owned()));
    }
    let release = read("/proc/sys/kernel/osrelease")?;
    let places = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
        format!("/lib/modules/{release}/build/.config"),
        format!("/usr/lib/kernel/config-{release}"),
    ];
    places.into_iter().find_map(|place| Some((parse(&fs::read_to_string(&place).ok()?), place)))
}

fn parse(text: &str) -> Config {
    let option = |line: &str| {
        let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
        Some((name.to_owned(), value.trim().trim_matches('"').to_owned()))
    };
    text.lines().filter_map(option).collect()
}

fn of_config(config: Option<&Config>) -> Entries {
    let value = |entry: &str, value: Option<String>| (entry.to_owned(), value.unwrap_or_else(unknown));
    let list = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let single = SINGLE.iter().map(|(entry, option)| {
        value(entry, config.map(|config| config.get(*option).map_or_else(|| "n".to_owned(), Clone::clone)))
    });
    let lists: [(&str, IsOf); 3] = [
        ("config-debugging", |name| DEBUGGING.contains(&name)),
        ("config-hardening", |name| HARDENING.contains(&name)),
        // Before 6.9 they had names without a common start.
        ("config-mitigations", |name| {
            name.strip_prefix("MITIGATION_").is_some()
                || ["RETPOLINE", "RETHUNK", "PAGE_TABLE_ISOLATION", "CPU_SRSO", "SLS"].contains(&name)
                || ["CPU_IBRS_ENTRY", "CPU_IBPB_ENTRY", "CPU_UNRET_ENTRY", "CALL_DEPTH_TRACKING"].contains(&name)
        }),
    ];
    let lists = lists.into_iter().map(|(entry, of)| value(entry, config.map(|config| list(set(config, of)))));
    single.chain(lists).collect()
}

/// The names of the options that are built in, by name.
fn set(config: &Config, of: impl Fn(&str) -> bool) -> Vec<String> {
    config.iter().filter(|(name, value)| *value == "y" && of(name)).map(|(name, _)| name.clone()).collect()
}

/// How the kernel is preempted: what the scheduler says, else the command line, else what it was built with.
fn preemption(version: &str, running: Option<&str>, command_line: &str, config: Option<&Config>) -> String {
    if version.contains("PREEMPT_RT") {
        return "real-time".to_owned();
    }
    let chosen = running.and_then(|text| text.split(['(', ')']).nth(1)).map(str::to_owned);
    let asked =
        || command_line.split_whitespace().rev().find_map(|word| word.strip_prefix("preempt=").map(str::to_owned));
    let built = || {
        let kinds = [
            ("PREEMPT_NONE", "none"),
            ("PREEMPT_VOLUNTARY", "voluntary"),
            ("PREEMPT_LAZY", "lazy"),
            ("PREEMPT", "full"),
        ];
        let is = |option: &str| config.is_some_and(|config| config.get(option).is_some_and(|value| value == "y"));
        kinds.into_iter().find(|(option, _)| is(option)).map(|(_, kind)| kind.to_owned())
    };
    if version.contains("PREEMPT_DYNAMIC") {
        let kind = chosen.or_else(asked).or_else(built).unwrap_or_else(unknown);
        return format!("dynamic: {kind}");
    }
    built().unwrap_or_else(|| if version.contains("PREEMPT") { "full" } else { UNKNOWN }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Automatically generated file; DO NOT EDIT.\nCONFIG_HZ=250\nCONFIG_PREEMPT_NONE=y\n\
        # CONFIG_KASAN is not set\nCONFIG_PROVE_LOCKING=y\nCONFIG_DEBUG_KMEMLEAK=y\nCONFIG_MITIGATION_RETPOLINE=y\n\
        CONFIG_MITIGATION_SRSO=y\nCONFIG_NET_RX_BUSY_POLL=y\nCONFIG_LOCALVERSION=\"-lab\"\n";

    #[test]
    fn options_become_entries() {
        let entries = of_config(Some(&parse(TEXT)));
        let of = |name: &str| entries[name].as_str();
        assert_eq!([of("hz"), of("config-net-rx-busy-poll"), of("config-bpf-jit-always-on")], ["250", "y", "n"]);
        assert_eq!(of("config-debugging"), "DEBUG_KMEMLEAK, PROVE_LOCKING");
        assert_eq!(of("config-mitigations"), "MITIGATION_RETPOLINE, MITIGATION_SRSO");
        assert_eq!(of("config-hardening"), "none");
        assert_eq!(parse(TEXT)["LOCALVERSION"], "-lab");
    }

    #[test]
    fn an_unreadable_configuration_is_unknown() {
        assert!(of_config(None).values().all(|value| value == UNKNOWN));
    }

    #[test]
    fn preemption_is_what_runs_not_what_was_built() {
        let config = parse(TEXT);
        let dynamic = "#1 SMP PREEMPT_DYNAMIC @0";
        let cases = [
            (preemption(dynamic, Some("none voluntary (full) lazy"), "preempt=none", Some(&config)), "dynamic: full"),
            (preemption(dynamic, None, "quiet preempt=voluntary", Some(&config)), "dynamic: voluntary"),
            (preemption(dynamic, None, "quiet", Some(&config)), "dynamic: none"),
            (preemption(dynamic, None, "", None), "dynamic: unknown"),
            (preemption("#1 SMP PREEMPT_RT", None, "", Some(&config)), "real-time"),
            (preemption("#1 SMP", None, "", Some(&config)), "none"),
            (preemption("#1 SMP PREEMPT", None, "", None), "full"),
            (preemption("#1 SMP", None, "", None), UNKNOWN),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }
}

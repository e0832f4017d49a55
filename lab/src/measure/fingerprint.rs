//! What must be equal for two results to be comparable: read from /proc and /sys, whatever of it this kernel has.

use std::{collections::BTreeMap, fs, path::Path};

use crate::record::Fingerprint;

/// Plain files that are taken as they are.
const FILES: &[(&str, &str)] = &[
    ("kernel", "/proc/sys/kernel/osrelease"),
    ("kernel-build", "/proc/sys/kernel/version"),
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("smt", "/sys/devices/system/cpu/smt/control"),
    ("governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    ("idle-driver", "/sys/devices/system/cpu/cpuidle/current_driver"),
    ("hypervisor", "/sys/hypervisor/type"),
    ("bpf-jit", "/proc/sys/net/core/bpf_jit_enable"),
    ("bpf-jit-harden", "/proc/sys/net/core/bpf_jit_harden"),
    ("bpf-stats", "/proc/sys/kernel/bpf_stats_enabled"),
    ("netdev-budget", "/proc/sys/net/core/netdev_budget"),
    ("netdev-budget-usecs", "/proc/sys/net/core/netdev_budget_usecs"),
];

/// The machine's and the kernel's part of the fingerprint.
pub fn of_host() -> Fingerprint {
    let mut entries: BTreeMap<String, String> =
        FILES.iter().filter_map(|(name, path)| Some(((*name).to_owned(), read(Path::new(path))?))).collect();
    if let Some(version) = entries.get("kernel-build") {
        let preemption = ["PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"].into_iter().find(|word| version.contains(word));
        entries.insert("preemption".to_owned(), preemption.unwrap_or("none").to_owned());
    }
    if let Some((model, hypervised)) = cpu() {
        entries.insert("cpu".to_owned(), model);
        entries.insert("virtual-machine".to_owned(), if hypervised { "yes" } else { "no" }.to_owned());
    }
    if let Ok(cpus) = std::thread::available_parallelism() {
        entries.insert("cpus".to_owned(), cpus.to_string());
    }
    entries.extend(mitigations());
    Fingerprint(entries)
}

/// The contents of a small file without white space around them; `None` where it is not there or empty.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn cpu() -> Option<(String, bool)> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    let model = field("model name").or_else(|| field("CPU part"))?;
    let hypervised = field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    Some((model, hypervised))
}

/// The mitigations that the CPU needs, each with what the kernel does about it.
fn mitigations() -> BTreeMap<String, String> {
    let Ok(folder) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else { return BTreeMap::new() };
    folder
        .flatten()
        .filter_map(|entry| {
            let state = read(&entry.path())?;
            let name = entry.file_name().into_string().ok()?;
            (state != "Not affected").then(|| (format!("mitigation-{name}"), state))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_and_the_cpu_are_named() {
        let Fingerprint(entries) = of_host();
        for name in ["kernel", "preemption", "cpus"] {
            assert!(entries.get(name).is_some_and(|value| !value.is_empty()), "{name} of {entries:?}");
        }
    }
}

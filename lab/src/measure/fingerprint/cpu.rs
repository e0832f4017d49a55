//! The processor: model and microcode, what it does against speculation, how it saves power, and whose it is.

use std::{collections::BTreeSet, fs, path::Path};

use super::{Entries, read, unknown};
use crate::host::hypervisor;

const CPUS: &str = "/sys/devices/system/cpu";

pub(super) fn entries() -> Entries {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut entries = of_cpuinfo(&info);
    let hypervised = has_flag(&info, "hypervisor");
    entries.insert("hypervisor".to_owned(), hypervisor(hypervised));
    let cpu = |name: &str| read(format!("{CPUS}/{name}"));
    entries.insert("smt".to_owned(), cpu("smt/control").unwrap_or_else(unknown));
    let governors = each_cpu("cpufreq/scaling_governor");
    entries.insert("governor".to_owned(), one_or_all(&governors, "none"));
    entries.insert("frequency-driver".to_owned(), one_or_all(&each_cpu("cpufreq/scaling_driver"), "none"));
    entries.insert("turbo".to_owned(), turbo(cpu("cpufreq/boost").as_deref(), cpu("intel_pstate/no_turbo").as_deref()));
    entries.insert("cpu-idle".to_owned(), idle(Path::new(CPUS)));
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    entries.insert("steal".to_owned(), steal(&stat).to_owned());
    entries.extend(mitigations());
    entries
}

/// The first value of a field of `/proc/cpuinfo`.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim()).filter(|value| !value.is_empty())
    })
}

fn has_flag(info: &str, flag: &str) -> bool {
    field(info, "flags").is_some_and(|flags| flags.split(' ').any(|one| one == flag))
}

fn of_cpuinfo(info: &str) -> Entries {
    let model = field(info, "model name").or_else(|| field(info, "CPU part")).map_or_else(unknown, str::to_owned);
    // A hypervisor may call every processor the same: the numbers tell them apart.
    let numbers = ["cpu family", "model", "stepping"].map(|name| field(info, name));
    let model = match numbers {
        [Some(family), Some(number), Some(stepping)] => format!("{model} ({family}/{number}/{stepping})"),
        _ => model,
    };
    let microcode = field(info, "microcode").map_or_else(unknown, str::to_owned);
    Entries::from([("cpu".to_owned(), model), ("microcode".to_owned(), microcode)])
}

/// The hypervisor's name: what Xen says, else the firmware's, else the processor's own signature.
fn hypervisor(hypervised: bool) -> String {
    if let Some(kind) = read("/sys/hypervisor/type") {
        return kind;
    }
    if !hypervised {
        return "none".to_owned();
    }
    let firmware = |name: &str| read(format!("/sys/class/dmi/id/{name}"));
    let machine = [firmware("sys_vendor"), firmware("product_name")].into_iter().flatten().collect::<Vec<_>>();
    let names: Vec<String> = hypervisor::signature().into_iter().chain(machine).collect();
    if names.is_empty() { unknown() } else { names.join(", ") }
}

/// A file of every CPU that has it, each value once.
fn each_cpu(file: &str) -> BTreeSet<String> {
    let Ok(folder) = fs::read_dir(CPUS) else { return BTreeSet::new() };
    let is_cpu = |name: &str| name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok());
    let cpus = folder.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_cpu));
    cpus.filter_map(|cpu| read(cpu.path().join(file))).collect()
}

fn one_or_all(values: &BTreeSet<String>, none: &str) -> String {
    if values.is_empty() { none.to_owned() } else { values.iter().cloned().collect::<Vec<_>>().join(", ") }
}

fn turbo(boost: Option<&str>, no_turbo: Option<&str>) -> String {
    match (boost, no_turbo) {
        (Some("1"), _) | (None, Some("0")) => "on".to_owned(),
        (Some(_), _) | (None, Some(_)) => "off".to_owned(),
        (None, None) => unknown(),
    }
}

/// The idle driver, and the deepest state that CPU 0 may sleep in.
fn idle(cpus: &Path) -> String {
    let Some(driver) = read(cpus.join("cpuidle/current_driver")) else { return unknown() };
    let states = cpus.join("cpu0/cpuidle");
    let state = |n: u32| {
        let folder = states.join(format!("state{n}"));
        Some((read(folder.join("name"))?, read(folder.join("disable")).is_none_or(|disabled| disabled == "0")))
    };
    let enabled = (0..).map_while(state).filter(|(_, enabled)| *enabled).map(|(name, _)| name);
    enabled.last().map_or_else(|| driver.clone(), |deepest| format!("{driver}, down to {deepest}"))
}

/// Whether the hypervisor took CPU time since the boot, in a word: the share changes from minute to minute.
fn steal(stat: &str) -> &'static str {
    let stolen = stat.lines().find(|line| line.starts_with("cpu ")).and_then(|line| line.split_whitespace().nth(8));
    match stolen.and_then(|ticks| ticks.parse::<u64>().ok()) {
        Some(0) => "none seen",
        Some(_) => "seen",
        None => super::UNKNOWN,
    }
}

/// The mitigations that the CPU needs, each with what the kernel does about it.
fn mitigations() -> Entries {
    let Ok(folder) = fs::read_dir(format!("{CPUS}/vulnerabilities")) else { return Entries::new() };
    folder
        .flatten()
        .filter_map(|entry| {
            let state = read(entry.path())?;
            let name = entry.file_name().into_string().ok()?;
            (state != "Not affected").then(|| (format!("mitigation-{name}"), state))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n\
        model name\t: AMD EPYC\nstepping\t: 1\nmicrocode\t: 0x1000065\nflags\t\t: fpu hypervisor lahf_lm\n\
        power management:\n\nprocessor\t: 1\nmodel name\t: other\n";

    #[test]
    fn a_processor_is_named_with_its_numbers() {
        let entries = of_cpuinfo(INFO);
        assert_eq!(entries["cpu"], "AMD EPYC (25/1/1)");
        assert_eq!(entries["microcode"], "0x1000065");
        assert!(has_flag(INFO, "hypervisor") && !has_flag(INFO, "hyper"));
        assert_eq!(of_cpuinfo("")["cpu"], super::super::UNKNOWN);
    }

    #[test]
    fn stolen_time_is_a_word() {
        assert_eq!(steal("cpu  1 2 3 4 5 6 7 0 0 0\ncpu0 1 2 3 4 5 6 7 9 0 0\n"), "none seen");
        assert_eq!(steal("cpu  1 2 3 4 5 6 7 812 0 0\n"), "seen");
        assert_eq!(steal("intr 1 2 3\n"), super::super::UNKNOWN);
    }

    #[test]
    fn turbo_is_on_where_one_of_both_drivers_says_so() {
        assert_eq!(turbo(Some("1"), None), "on");
        assert_eq!(turbo(None, Some("0")), "on");
        assert_eq!(turbo(None, Some("1")), "off");
        assert_eq!(turbo(None, None), super::super::UNKNOWN);
    }

    #[test]
    fn the_deepest_idle_state_is_the_last_that_is_not_disabled() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(idle(folder.path()), super::super::UNKNOWN);
        put("cpuidle/current_driver", "intel_idle\n");
        assert_eq!(idle(folder.path()), "intel_idle");
        for (n, name, disable) in [(0, "POLL", "0"), (1, "C1", "0"), (2, "C6", "1")] {
            put(&format!("cpu0/cpuidle/state{n}/name"), name);
            put(&format!("cpu0/cpuidle/state{n}/disable"), disable);
        }
        assert_eq!(idle(folder.path()), "intel_idle, down to C1");
    }
}

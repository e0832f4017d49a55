//! What this host can do for a lab, found out by trying where trying is cheap and harmless.

use std::{
    fs, io,
    os::fd::{FromRawFd as _, OwnedFd},
    path::Path,
};

use serde::Serialize;

use super::{bpffs::BpfFs, is_root, netns::Netns, thread::LabThread};

/// One ability of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ability {
    /// Its name.
    pub name: &'static str,
    /// Whether the host has it.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What it is needed for.
    pub needed_for: &'static str,
    /// The command that brings it, where one does.
    pub fix: Option<String>,
    /// Whether no lab can do without it.
    pub required: bool,
}

/// Whether the host has an ability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It has.
    Ok,
    /// It has not.
    Missing,
    /// It could not be found out.
    Unknown,
}

/// All abilities that a lab may need.
pub fn all() -> Vec<Ability> {
    let root = is_root();
    vec![
        ability("root", root, if root { "yes" } else { "no" }, "every lab", Some("run with sudo"), true),
        kernel(),
        file(
            "BTF",
            "/sys/kernel/btf/vmlinux",
            "accounting for losses",
            "a kernel built with CONFIG_DEBUG_INFO_BTF=y",
            true,
        ),
        tried("network namespaces", root, "every lab", true, || {
            let thread = LabThread::start("doctor").map_err(io::Error::other)?;
            thread.run(|inside| Netns::create(inside).map(drop)).map_err(io::Error::other)
        }),
        tried("XDP programs", root, "every lab", true, || load_xdp_pass().map(drop)),
        tried("own BPF file system", root, "pins", true, || BpfFs::detached().map(drop).map_err(io::Error::other)),
        setting(
            "BPF JIT",
            "/proc/sys/net/core/bpf_jit_enable",
            |v| v != "0",
            "prices that mean something",
            "sysctl net.core.bpf_jit_enable=1",
        ),
        setting(
            "BPF statistics off",
            "/proc/sys/kernel/bpf_stats_enabled",
            |v| v == "0",
            "prices: they cost time in every run",
            "sysctl kernel.bpf_stats_enabled=0",
        ),
        tried("AF_XDP sockets", true, "the xsk rows", false, af_xdp),
        module("pktgen", "the pktgen engine"),
        module("netdevsim", "tests of NIC settings"),
        mounted("/sys/fs/bpf", "other tools' pins: the lab mounts its own"),
        cpu(),
    ]
}

/// The abilities without which no lab can run, that this host lacks.
pub fn missing_for_labs() -> Vec<Ability> {
    all().into_iter().filter(|ability| ability.required && ability.state == State::Missing).collect()
}

fn ability(
    name: &'static str,
    ok: bool,
    detail: impl Into<String>,
    needed_for: &'static str,
    fix: Option<&str>,
    required: bool,
) -> Ability {
    let state = if ok { State::Ok } else { State::Missing };
    Ability { name, state, detail: detail.into(), needed_for, fix: fix.filter(|_| !ok).map(str::to_owned), required }
}

fn kernel() -> Ability {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    // Live frames came with 5.18; bpf_links for XDP with 5.9.
    ability("Linux 5.18 or newer", version >= (5, 18), release, "the live engine", Some("boot a newer kernel"), true)
}

fn file(name: &'static str, path: &str, needed_for: &'static str, fix: &str, required: bool) -> Ability {
    let there = Path::new(path).exists();
    ability(name, there, if there { path.to_owned() } else { format!("no {path}") }, needed_for, Some(fix), required)
}

fn setting(name: &'static str, path: &str, ok: fn(&str) -> bool, needed_for: &'static str, fix: &str) -> Ability {
    match read(path) {
        Some(value) => ability(name, ok(&value), format!("{path} is {value}"), needed_for, Some(fix), false),
        None => Ability {
            name,
            state: State::Unknown,
            detail: format!("no {path}"),
            needed_for,
            fix: None,
            required: false,
        },
    }
}

fn module(name: &'static str, needed_for: &'static str) -> Ability {
    let loaded = Path::new("/sys/module").join(name).exists();
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let listed = |list: &str| {
        read(&format!("/lib/modules/{release}/{list}")).is_some_and(|text| text.contains(&format!("/{name}.ko")))
    };
    let there = loaded || listed("modules.dep") || listed("modules.builtin");
    let detail = if loaded {
        "loaded"
    } else if there {
        "a module"
    } else {
        "not in this kernel"
    };
    let option = format!(
        "boot a kernel with CONFIG_{} (on Debian and Ubuntu: its modules package)",
        if name == "pktgen" { "NET_PKTGEN" } else { "NETDEVSIM" }
    );
    ability(name, there, detail, needed_for, Some(&option), false)
}

fn mounted(path: &'static str, needed_for: &'static str) -> Ability {
    let mounts = read("/proc/self/mounts").unwrap_or_default();
    let there = mounts.lines().any(|line| line.split(' ').nth(1) == Some(path));
    let fix = format!("mount -t bpf bpf {path}");
    ability(path, there, if there { "mounted" } else { "not mounted" }, needed_for, Some(&fix), false)
}

fn cpu() -> Ability {
    let read = |name: &str| read(&format!("/sys/devices/system/cpu/vulnerabilities/{name}"));
    let detail = ["spectre_v2", "spec_rstack_overflow", "retbleed"]
        .iter()
        .filter_map(|name| read(name).filter(|state| state != "Not affected").map(|state| format!("{name}: {state}")))
        .collect::<Vec<_>>()
        .join("; ");
    let detail = if detail.is_empty() { "none".to_owned() } else { detail };
    ability("mitigations", true, detail, "comparing prices: they set the price of an indirect call", None, false)
}

fn tried(
    name: &'static str,
    allowed: bool,
    needed_for: &'static str,
    required: bool,
    trial: impl FnOnce() -> io::Result<()>,
) -> Ability {
    if !allowed {
        let detail = "not tried: it takes root".to_owned();
        return Ability { name, state: State::Unknown, detail, needed_for, fix: None, required };
    }
    match trial() {
        Ok(()) => ability(name, true, "tried", needed_for, None, required),
        Err(error) => ability(name, false, error.to_string(), needed_for, None, required),
    }
}

fn af_xdp() -> io::Result<()> {
    // SAFETY: plain numbers only.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}

/// The start of union `bpf_attr` for this command; the kernel takes the rest as zeroes.
#[repr(C)]
struct Attributes {
    kind: u32,
    length: u32,
    instructions: u64,
    licence: u64,
    rest: [u64; 12],
}

/// Loads the smallest XDP program: `return XDP_PASS`.
fn load_xdp_pass() -> io::Result<OwnedFd> {
    const BPF_PROG_LOAD: libc::c_long = 5;
    const BPF_PROG_TYPE_XDP: u32 = 6;
    // r0 = 2 (XDP_PASS); exit
    let program: [u64; 2] = [0x0000_0002_0000_00b7, 0x0000_0000_0000_0095];
    let licence = c"GPL";
    let attributes = Attributes {
        kind: BPF_PROG_TYPE_XDP,
        length: program.len() as u32,
        instructions: program.as_ptr() as u64,
        licence: licence.as_ptr() as u64,
        rest: [0; 12],
    };
    // SAFETY: the attributes and what they point to outlive the call, and their size is given.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const attributes, size_of::<Attributes>()) };
    match i32::try_from(fd) {
        // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

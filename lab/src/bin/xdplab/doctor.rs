//! `xdplab doctor`: what this host can do for a lab.

use std::path::PathBuf;

use nix::errno::Errno;
use xdplab::{
    host::{
        ability::{self, Ability, State},
        kvm::{self, KvmError},
        nics,
    },
    report::table::Table,
    topology::{HOST_FILE, HostFile, HostFileError},
    vm::{self, VmError},
};

use crate::{
    cli::{Format, TableArgs},
    failure::{Failure, chain},
    output,
};

/// Shows the host's abilities.
pub(crate) fn doctor(args: &TableArgs) -> Result<u8, Failure> {
    let mut abilities = ability::all();
    abilities.extend([of_kvm(), of_tool("qemu", vm::qemu()), of_tool("vng", vm::vng()), of_host_file(), of_nics()]);
    match args.format {
        Format::Json => output::print_json(&abilities)?,
        Format::Text => {
            let mut long = String::new();
            let mut table = Table::new(["ability", "state", "detail", "needed for"]);
            for a in &abilities {
                let state = match a.state {
                    State::Ok => "ok",
                    State::Missing if a.required => "missing",
                    State::Missing => "no (optional)",
                    State::Unknown => "unknown",
                };
                if a.detail.len() > 60 {
                    table.row([a.name, state, "see below", a.needed_for]);
                    long += &format!("\n{}: {}", a.name, a.detail);
                } else {
                    table.row([a.name, state, &a.detail, a.needed_for]);
                }
            }
            let mut text = table.to_string() + &long;
            for a in abilities.iter().filter(|a| a.state == State::Missing) {
                if let Some(fix) = &a.fix {
                    text += &format!("\n{}: {fix}", a.name);
                }
            }
            output::print(&text)?;
        }
    }
    Ok(if ability::missing_for_labs().is_empty() { 0 } else { 5 })
}

/// What no lab on veth needs, and so no exit code tells of: what was found, or else what is lacking and what mends it.
fn beyond_veth(
    name: &'static str,
    needed_for: &'static str,
    found: Result<String, (String, Option<String>)>,
) -> Ability {
    let (state, detail, fix) = match found {
        Ok(detail) => (State::Ok, detail, None),
        Err((detail, fix)) => (State::Missing, detail, fix),
    };
    Ability { name, state, detail, needed_for, fix, required: false }
}

fn of_kvm() -> Ability {
    let found = kvm::probe().map(|()| "tried".to_owned()).map_err(|error| {
        let fix = match error {
            KvmError { errno: Errno::EACCES, .. } => "run with sudo",
            KvmError { errno: Errno::ENOENT, .. } => {
                "`modprobe kvm_intel` or `modprobe kvm_amd`; in a virtual machine, its host must allow nested ones first"
            }
            _ => "in a virtual machine, its host must allow nested ones",
        };
        let detail = format!("does not work ({error}): machines are emulated, and their prices mean nothing");
        (detail, Some(fix.to_owned()))
    });
    beyond_veth("KVM", "prices in `xdplab vm`", found)
}

fn of_tool(name: &'static str, found: Result<PathBuf, VmError>) -> Ability {
    let found = found.map(|path| path.display().to_string()).map_err(|error| match error {
        VmError::Tool { tool, install } => (format!("no {tool} on PATH"), Some(install.to_owned())),
        other => (chain(&other), None),
    });
    beyond_veth(name, "`xdplab vm`, `compare --kernel`", found)
}

fn of_host_file() -> Ability {
    let discover = || Some("`xdplab nics --discover` finds the cables, and says what to put there".to_owned());
    let found = match HostFile::load(None) {
        Ok(host) => match host.cables.len() {
            0 if host.path.as_os_str().is_empty() => Err((format!("no {HOST_FILE}"), discover())),
            0 => Err((format!("{HOST_FILE} has no cable"), discover())),
            1 => Ok(format!("{HOST_FILE}: 1 cable")),
            cables => Ok(format!("{HOST_FILE}: {cables} cables")),
        },
        Err(HostFileError::Invalid(_)) => {
            Err((format!("{HOST_FILE} is wrong"), Some("`xdplab nics` shows its errors, each with a fix".to_owned())))
        }
        Err(error) => Err((chain(&error), None)),
    };
    beyond_veth("host file", "cables made of NICs", found)
}

fn of_nics() -> Ability {
    let found = match nics::inventory() {
        Ok(inventory) => {
            let on_pci: Vec<_> = inventory.nics.iter().filter(|nic| nic.pci.is_some()).collect();
            let free = on_pci.iter().filter(|nic| nic.refusal.is_none()).count();
            let detail = format!("{} on PCI, {free} of them free for a lab", on_pci.len());
            match (on_pci.len(), free) {
                (0, _) => Err(("none on PCI".to_owned(), None)),
                (_, 0) => Err((detail, Some("`xdplab nics -v` says why, and what frees each".to_owned()))),
                _ => Ok(detail),
            }
        }
        Err(error) => Err((chain(&error), None)),
    };
    beyond_veth("NICs", "cables made of NICs", found)
}

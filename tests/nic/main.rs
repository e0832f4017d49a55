//! Tests on NICs: those that the host file offers, in pairs that are cabled together. `cargo nextest run --profile nic`
//! runs them, and nothing else does: they take NICs.
//!
//! A virtual machine has NICs for them: `ci/kernels` runs them there.

mod discovery;
mod faults;
mod kills;
mod lending;
mod refusals;
mod traffic;

use std::{
    process::{Command, Output},
    sync::LazyLock,
};

use xdplab::{
    host::{
        lend::Borrowed,
        nics::{self, Nic},
    },
    lab::{Cabling, NicChoice},
    topology::{self, HostFile, Topology},
};

/// What the host's owner offers.
static HOST: LazyLock<HostFile> = LazyLock::new(|| HostFile::load(None).unwrap_or_else(|error| panic!("{error}")));

/// The command under test.
fn xdplab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xdplab")).args(arguments).output().unwrap()
}

fn words(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// `ip`, as a user of the host has it.
fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", words(&output));
}

/// A cable between two NICs of a driver; `None`, and a skip on record, where the host offers none.
fn cable(driver: &str) -> Option<[Nic; 2]> {
    if !xdplab::testing::has("root") {
        return None;
    }
    let nics = nics::inventory().unwrap().nics;
    let find = |pci: &String| nics.iter().find(|nic| nic.pci.as_ref() == Some(pci) && nic.driver == driver).cloned();
    let found = HOST.cables.iter().find_map(|[a, b]| Some([find(a)?, find(b)?]));
    if found.is_none() {
        xdplab::testing::lacks(&format!("nic-{driver}"));
    }
    found
}

/// What a NIC is like now.
fn state(nic: &Nic) -> Borrowed {
    Borrowed::of(nic.pci.as_deref().unwrap()).unwrap().unwrap_or_else(|| panic!("{} is gone", nic.name))
}

/// Whether NICs are as they were, in every respect that is given back.
fn assert_as_before(before: &[Borrowed], nics: &[Nic]) {
    for (before, nic) in before.iter().zip(nics) {
        let now = state(nic);
        let differences = before.differences(&now);
        assert!(differences.is_empty(), "{}: {differences:#?}", nic.name);
        let found = nics::inventory().unwrap().nics.into_iter().find(|of| of.pci == nic.pci).unwrap();
        assert_eq!((found.native_program, found.other_program, found.leased_by), (None, None, None));
    }
}

/// `gen:tx0 == dut:rx0` by a cable of NICs of a driver, then `dut:out0 -- sink:in0` by veth.
fn text(name: &str, driver: &str, modes: &str, engine: &str) -> String {
    format!(
        "name = \"{name}\"\n[nodes.gen]\n[nodes.dut]\n[nodes.sink]\n\
         [[links]]\nkind = \"cable\"\nends = [\"gen:tx0\", \"dut:rx0\"]\nnic = {{ driver = \"{driver}\" }}\n\
         [[links]]\nkind = \"veth\"\nends = [\"dut:out0\", \"sink:in0\"]\n\
         [programs.redirect]\nbuiltin = \"redirect_map\"\nattach = [\"dut:rx0\"]\nmaps.tx_ports = [\"dut:out0\"]\n\
         [programs.sink]\nbuiltin = \"sink\"\nattach = [\"sink:in0\"]\n\
         [[scenarios]]\nname = \"redirect\"\nmodes = [{modes}]\n\
         traffic = {{ from = \"gen:tx0\", engine = \"{engine}\", frame-bytes = 64, frames = 2000 }}\n\
         expect = {{ deliver = [\"sink:in0\"], lost = 0, clones = 0 }}\n"
    )
}

fn parsed(text: &str) -> Topology {
    topology::parse("nic.toml".as_ref(), text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The topology on NICs.
fn on_nics(topology: &Topology, host: &HostFile) -> Cabling {
    Cabling::choose(topology, NicChoice::Physical, host).unwrap_or_else(|error| panic!("{error}"))
}

//! Which lab has which NIC: a file a NIC in the run directory, which holds the lab's name.

use std::{fmt, fs, path::PathBuf};

use serde::Serialize;

use crate::host::paths;

/// What the names of leases begin with.
const PREFIX: &str = "nic-";

/// The file that leases the NIC at a PCI address to the lab whose name it holds.
pub fn lease_path(pci: &str) -> PathBuf {
    folder().join(format!("{PREFIX}{}", pci.replace('/', "-")))
}

/// The files of all leases.
pub(in crate::host) fn lease_paths() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)))
        .map(|entry| entry.path())
}

fn folder() -> PathBuf {
    paths::run_dir().join(".locks")
}

/// A NIC that a lab has, and that is therefore not in the host's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lent {
    /// Its PCI address.
    pub pci: String,
    /// The lab.
    pub lab: String,
}

impl Lent {
    /// What gives it back.
    pub fn fix(&self) -> String {
        free(&self.lab)
    }
}

impl fmt::Display for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is lent to lab \"{}\"", self.pci, self.lab)
    }
}

/// What ends a lab's hold on its NICs: a lab of `run` has a tag behind its name, and ends by itself.
pub(super) fn free(lab: &str) -> String {
    if lab.contains('@') {
        "wait for the end of that run, or `xdplab gc` if it was killed".to_owned()
    } else {
        format!("xdplab down {lab}")
    }
}

/// All NICs that labs have.
pub(super) fn lent() -> Vec<Lent> {
    let mut lent: Vec<Lent> = lease_paths()
        .filter_map(|path| {
            // The number of a port stands behind a slash in its address, and can't in a file's name.
            let pci = path.file_name()?.to_str()?.strip_prefix(PREFIX)?.replace('-', "/");
            Some(Lent { lab: holder(&pci)?, pci })
        })
        .collect();
    lent.sort_by(|a, b| a.pci.cmp(&b.pci));
    lent
}

/// The lab that has the NIC at a PCI address, if that lab is still there.
pub(super) fn holder(pci: &str) -> Option<String> {
    let name = fs::read_to_string(lease_path(pci)).ok()?;
    let name = name.trim();
    (!name.is_empty() && paths::lab_dir(name).is_dir()).then(|| name.to_owned())
}

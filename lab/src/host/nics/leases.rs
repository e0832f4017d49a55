//! Which lab has which NIC: a file a NIC in the run directory, which holds the lab's name.

use std::{fs, path::PathBuf};

use crate::host::paths;

/// The file that leases the NIC at a PCI address to the lab whose name it holds.
pub fn lease_path(pci: &str) -> PathBuf {
    paths::run_dir().join(".locks").join(format!("nic-{}", pci.replace('/', "-")))
}

/// The lab that has the NIC at a PCI address, if that lab is still there.
pub(super) fn holder(pci: &str) -> Option<String> {
    let name = fs::read_to_string(lease_path(pci)).ok()?;
    let name = name.trim();
    (!name.is_empty() && paths::lab_dir(name).is_dir()).then(|| name.to_owned())
}

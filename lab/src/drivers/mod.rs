//! What is known of each NIC driver, as data.
//!
//! The records stand in `intel.rs`, `others.rs` and `virt.rs`, one a driver, each with the kernel's files that it was
//! taken from and how far it was checked: to correct one, change its line. What a device answers for itself
//! ([`crate::xdp::XdpFeatures`]) is worth more than what is known of its driver: [`Knowledge`] puts the two together.

mod intel;
mod knowledge;
mod others;
mod virt;

use std::fmt;

use serde::Serialize;

pub use knowledge::{Answer, Difference, From, Knowledge};

/// A kernel's version: major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kernel(pub u32, pub u32);

impl Kernel {
    /// That of the kernel that runs, where it tells.
    pub fn running() -> Option<Self> {
        std::fs::read_to_string("/proc/sys/kernel/osrelease").ok().and_then(|release| Self::of_release(&release))
    }

    /// The version that a release such as `6.18.5-amd64` begins with.
    pub fn of_release(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Some(Self(major, minor)),
            _ => None,
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Serialize for Kernel {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether frames can be redirected to a device (`ndo_xdp_xmit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Xmit {
    /// Never: every frame that is redirected to it in native mode is lost.
    Never,
    /// Only while the device itself has a native program.
    WithProgram,
    /// Only while its peer has a native program, or GRO.
    WithPeer,
    /// Always.
    Always,
}

/// How far a record was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checked {
    /// In the main on a device; the rest in the kernel's source.
    Tried,
    /// In the kernel's source, in the main.
    Source,
    /// Not: from what is generally known. Kernel versions especially may be off by one.
    No,
}

/// The driver's own counters (`ethtool -S`) that tell where frames went. An `N` stands for a queue's number. Kernels differ:
/// one that a device lacks is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Frames that the driver or its XDP path dropped.
    pub drops: &'static [&'static str],
    /// Frames that the NIC had no buffer for: the receiver was too slow.
    pub missed: &'static [&'static str],
    /// Pause frames.
    pub pause: &'static [&'static str],
}

/// A driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Driver {
    /// Its name, as ethtool gives it.
    pub name: &'static str,
    /// What it drives.
    pub devices: &'static str,
    /// The kernel since which it runs native programs; `None`: it doesn't.
    pub native: Option<Kernel>,
    /// Whether frames can be redirected to it.
    pub xmit: Xmit,
    /// The kernel since which native programs may get frames in several buffers.
    pub frags: Option<Kernel>,
    /// The kernel since which it has `AF_XDP` without copying.
    pub zero_copy: Option<Kernel>,
    /// Largest MTU, in bytes, with a native program that does not declare fragments, with pages of 4 KiB; `None`: no limit
    /// is known.
    pub native_mtu: Option<u32>,
    /// Whether redirects to it fail on a CPU whose number is not below its queue count.
    pub queue_per_cpu: bool,
    /// What it asks of queues, where it asks anything.
    pub channels: &'static str,
    /// Whether the link goes down for a while when a program is attached or detached.
    pub link_flaps: bool,
    /// Whether the ports of a card are devices of one PCI function: all but the first then have their number behind the
    /// address.
    pub shares_function: bool,
    /// Whether it has its own MAC address again, and not the one that it was given, once a program is attached.
    pub forgets_mac: bool,
    /// Whether LRO, or GRO in hardware, must be off, or is switched off, for a native program.
    pub lro_off: bool,
    /// Where frames are counted.
    pub counters: Counters,
    /// The kernel's files that say so.
    pub sources: &'static [&'static str],
    /// How far this was checked.
    pub checked: Checked,
}

/// What is known of a driver, by the name that ethtool gives it.
pub fn known(name: &str) -> Option<&'static Driver> {
    all().find(|driver| driver.name == name)
}

/// All drivers of which something is known.
pub fn all() -> impl Iterator<Item = &'static Driver> {
    intel::DRIVERS.iter().chain(others::DRIVERS).chain(virt::DRIVERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_driver_stands_once_and_names_its_sources() {
        let mut names: Vec<_> = all().map(|driver| driver.name).collect();
        for driver in all() {
            assert!(!driver.sources.is_empty(), "{}", driver.name);
            assert!(driver.native.is_some() || driver.frags.is_none() && driver.zero_copy.is_none(), "{}", driver.name);
            assert!(driver.frags.is_none_or(|frags| driver.native.is_some_and(|n| n <= frags)), "{}", driver.name);
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn what_the_published_figures_ran_on_is_known() {
        assert_eq!(known("i40e").map(|driver| driver.xmit), Some(Xmit::WithProgram));
        assert_eq!(known("mlx4_en").map(|driver| driver.xmit), Some(Xmit::Never));
        assert_eq!(known("e1000e").and_then(|driver| driver.native), None);
        assert_eq!(known("i40"), None);
    }

    #[test]
    fn a_release_is_read_up_to_its_minor_number() {
        assert_eq!(Kernel::of_release("6.18.5-amd64"), Some(Kernel(6, 18)));
        assert_eq!(Kernel::of_release("7.0-rc1"), Some(Kernel(7, 0)));
        assert_eq!(Kernel::of_release("next"), None);
        assert!(Kernel(6, 3) < Kernel(6, 18));
    }
}

//! What a NIC is like, to be put back: written into the journal before anything of it is changed.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv6Addr},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::Had;
use crate::{
    host::{
        HostError,
        ethtool::{Ethtool, Tuning},
        netlink::Netlink,
        nics::{self, Nic},
        thread::{Inside, LabThread},
    },
    topology::Mac,
};

/// Settings that are not put back: the MTU is the device's, and the secret is made anew with the device.
const NOT_OURS: [&str; 2] = ["mtu", "stable_secret"];

/// A NIC as the host had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Borrowed {
    /// Its PCI address, by which it is known.
    pub pci: String,
    /// Its driver.
    pub driver: String,
    /// The lab's instance that it is lent to.
    pub lab: String,
    /// Its name.
    pub name: String,
    /// Its other names.
    pub alt_names: Vec<String>,
    /// Its index.
    pub index: u32,
    /// Its MAC address.
    pub mac: String,
    /// The one that it was made with, by which it is told from another port of the same PCI device.
    #[serde(default)]
    pub permanent_mac: Option<String>,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Whether it was up.
    pub up: bool,
    /// Whether it was promiscuous.
    pub promiscuous: bool,
    /// Its addresses, but for those that the kernel makes by itself.
    pub addresses: Vec<Had>,
    /// Queues, rings, coalescing, pause, offloads, indirection.
    pub tuning: Tuning,
    /// CPUs of its interrupts, as `/proc/irq/N/smp_affinity_list` has them.
    pub irqs: BTreeMap<u32, String>,
    /// Settings of its IPv4, which each namespace gives anew.
    #[serde(default)]
    pub ipv4: BTreeMap<String, String>,
    /// Settings of its IPv6, likewise.
    pub ipv6: BTreeMap<String, String>,
}

impl Borrowed {
    /// What the NIC at a PCI address is like now; `None` where there is none in the caller's namespace.
    ///
    /// # Errors
    /// Where netlink or ethtool can't be used.
    pub fn of(pci: &str) -> Result<Option<Self>, HostError> {
        let inventory = nics::inventory()?;
        let Some(nic) = inventory.nics.iter().find(|nic| nic.pci.as_deref() == Some(pci)) else { return Ok(None) };
        LabThread::start("nic")?.run(|inside| Self::read(inside, nic, ""))
    }

    /// Reads what a NIC in the home namespace is like.
    ///
    /// # Errors
    /// Where netlink or ethtool can't be used.
    pub(super) fn read(inside: &Inside, nic: &Nic, lab: &str) -> Result<Option<Self>, HostError> {
        let netlink = Netlink::open_at_home(inside)?;
        let (links, addresses) =
            inside.block_on(async { Ok::<_, HostError>((netlink.links().await?, netlink.addresses().await?)) })?;
        let Some(link) = links.iter().find(|link| link.index == nic.index && link.name == nic.name) else {
            return Ok(None);
        };
        let ethtool = Ethtool::open()?;
        let ipv6 = settings("ipv6", &link.name);
        let makes_own = ipv6.get("addr_gen_mode").is_none_or(|mode| mode != "0");
        let made = |ip: &Ipv6Addr| ip.is_unicast_link_local() && (makes_own || *ip == link_local(&link.mac));
        let own = addresses
            .into_iter()
            .filter(|(index, ip, _)| *index == link.index && !matches!(ip, IpAddr::V6(ip) if made(ip)));
        Ok(Some(Self {
            pci: nic.pci.clone().unwrap_or_default(),
            driver: nic.driver.clone(),
            lab: lab.to_owned(),
            name: link.name.clone(),
            alt_names: link.alt_names.clone(),
            index: link.index,
            mac: link.mac_text(),
            permanent_mac: ethtool.permanent_mac(&link.name),
            mtu: link.mtu,
            up: link.up,
            promiscuous: link.promiscuous,
            addresses: own.map(|(_, ip, prefix)| (ip, prefix)).collect(),
            tuning: ethtool.tuning(&link.name),
            irqs: nic.irqs.iter().filter_map(|irq| Some((*irq, read(&affinity(*irq))?))).collect(),
            ipv4: settings("ipv4", &link.name),
            ipv6,
        }))
    }

    /// Its MAC address.
    pub(super) fn mac(&self) -> Option<Mac> {
        self.mac.parse().ok()
    }

    /// In what a NIC differs from what it was, in words: nothing, where it was given back as it was.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let mut all = Vec::new();
        let mut differ = |what: &str, was: String, is: String| {
            if was != is {
                all.push(format!("{what} was {was}, and is {is}"));
            }
        };
        differ("its name", self.name.clone(), now.name.clone());
        // The kernel lists them as they were added.
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names.join(", ")
        };
        differ("its other names", sorted(&self.alt_names), sorted(&now.alt_names));
        differ("its MAC address", self.mac.clone(), now.mac.clone());
        differ("its MTU", self.mtu.to_string(), now.mtu.to_string());
        differ("up", self.up.to_string(), now.up.to_string());
        differ("promiscuity", self.promiscuous.to_string(), now.promiscuous.to_string());
        differ("its addresses", format!("{:?}", self.addresses), format!("{:?}", now.addresses));
        differ("its queues", format!("{:?}", self.tuning.queues), format!("{:?}", now.tuning.queues));
        differ("its rings", format!("{:?}", self.tuning.rings), format!("{:?}", now.tuning.rings));
        differ("coalescing", format!("{:?}", self.tuning.coalescing), format!("{:?}", now.tuning.coalescing));
        differ("pause frames", format!("{:?}", self.tuning.pause), format!("{:?}", now.tuning.pause));
        for (name, was) in &self.tuning.offloads {
            if let Some(is) = now.tuning.offloads.get(name) {
                differ(name, was.to_string(), is.to_string());
            }
        }
        for (family, was, now) in [("IPv4", &self.ipv4, &now.ipv4), ("IPv6", &self.ipv6, &now.ipv6)] {
            for (name, was) in was {
                if let Some(is) = now.get(name) {
                    differ(&format!("its {family} setting {name}"), was.clone(), is.clone());
                }
            }
        }
        all
    }
}

/// Where an interrupt's CPUs stand.
pub(super) fn affinity(irq: u32) -> PathBuf {
    PathBuf::from(format!("/proc/irq/{irq}/smp_affinity_list"))
}

/// Where the settings of a device's IPv4 or IPv6 stand, in the namespace of the calling thread.
pub(super) fn settings_of(family: &str, device: &str) -> PathBuf {
    Path::new("/proc/sys/net").join(family).join("conf").join(device)
}

/// The settings of a device's IPv4 or IPv6, in the namespace of the calling thread.
fn settings(family: &str, device: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(settings_of(family, device)).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, read(&entry.path())?)))
        .filter(|(name, _)| !NOT_OURS.contains(&name.as_str()))
        .collect()
}

/// The link-local address that the kernel makes of a MAC address (RFC 4291, appendix A).
fn link_local(mac: &[u8]) -> Ipv6Addr {
    let (Some(maker), Some(own)) = (mac.first_chunk::<3>(), mac.get(3..6)) else { return Ipv6Addr::UNSPECIFIED };
    let mut address = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 0];
    address[8..11].copy_from_slice(maker);
    address[8] ^= 2;
    address[13..].copy_from_slice(own);
    Ipv6Addr::from(address)
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_link_local_address_is_known() {
        assert_eq!(link_local(&[0x52, 0x54, 0, 0x12, 0x34, 0x56]).to_string(), "fe80::5054:ff:fe12:3456");
    }
}

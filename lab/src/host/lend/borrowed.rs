//! What a NIC is like, to be put back: written into the journal before anything of it is changed.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::Had;
use crate::{
    host::{
        HostError,
        ethtool::{Ethtool, Tuning},
        netlink::{LinkInfo, Netlink},
        nics::{self, Nic},
        thread::{Inside, LabThread},
    },
    topology::Mac,
};

/// Settings of a device's IPv6 that a namespace gives anew.
const IPV6: [&str; 4] = ["addr_gen_mode", "disable_ipv6", "accept_ra", "autoconf"];

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
    /// Settings of its IPv6.
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
        let own = addresses.into_iter().filter(|(index, ip, _)| {
            let is_local = matches!(ip, std::net::IpAddr::V6(ip) if ip.is_unicast_link_local());
            *index == link.index && !is_local
        });
        let setting = |name: &&str| Some(((*name).to_owned(), read(&ipv6(&link.name, name))?));
        Ok(Some(Self {
            pci: nic.pci.clone().unwrap_or_default(),
            driver: nic.driver.clone(),
            lab: lab.to_owned(),
            name: link.name.clone(),
            alt_names: link.alt_names.clone(),
            index: link.index,
            mac: mac(link),
            mtu: link.mtu,
            up: link.up,
            promiscuous: link.promiscuous,
            addresses: own.map(|(_, ip, prefix)| (ip, prefix)).collect(),
            tuning: Ethtool::open()?.tuning(&link.name),
            irqs: nic.irqs.iter().filter_map(|irq| Some((*irq, read(&affinity(*irq))?))).collect(),
            ipv6: IPV6.iter().filter_map(setting).collect(),
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
        differ("its other names", self.alt_names.join(", "), now.alt_names.join(", "));
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
        differ("its IPv6 settings", format!("{:?}", self.ipv6), format!("{:?}", now.ipv6));
        all
    }
}

/// A device's MAC address as text.
pub(super) fn mac(link: &LinkInfo) -> String {
    link.mac.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// Where an interrupt's CPUs stand.
pub(super) fn affinity(irq: u32) -> PathBuf {
    PathBuf::from(format!("/proc/irq/{irq}/smp_affinity_list"))
}

/// Where a setting of a device's IPv6 stands, in the namespace of the calling thread.
pub(super) fn ipv6(device: &str, setting: &str) -> PathBuf {
    PathBuf::from("/proc/sys/net/ipv6/conf").join(device).join(setting)
}

fn read(path: &std::path::Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

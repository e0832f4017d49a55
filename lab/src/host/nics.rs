//! The host's NICs: what they are, who uses them, and whether a lab may take them. Nothing is changed here.
//!
//! Only devices of the namespace that the process was started in are seen, and of sysfs what was mounted there.

mod elsewhere;
mod leases;
mod read;
mod refusal;

use std::net::IpAddr;

use serde::Serialize;

pub use elsewhere::UpperElsewhere;
pub(in crate::host) use leases::lease_paths;
pub use leases::{Lent, lease_path};
pub use read::{Inventory, inventory, inventory_for};
pub(crate) use read::{device_of, irqs_of, receive_irqs_of};
pub use refusal::{Context, Refusal, may_take};

use crate::{
    drivers::{self, Kernel, Knowledge},
    xdp::XdpFeatures,
};

/// A setting as it is, and the most that it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Now.
    pub now: u32,
    /// At most.
    pub most: u32,
}

/// An address of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// The length of its network's prefix.
    pub prefix: u8,
}

/// A network device of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Nic {
    /// Its name.
    pub name: String,
    /// Its other names.
    pub alt_names: Vec<String>,
    /// Its index.
    pub index: u32,
    /// Its driver.
    pub driver: String,
    /// Its firmware's version.
    pub firmware: Option<String>,
    /// Its PCI address, such as `0000:03:00.0`; `None`: it is no NIC of its own.
    pub pci: Option<String>,
    /// Its PCI vendor and device ids, such as `8086:1572`.
    pub id: Option<String>,
    /// The NUMA node that it is near to, where the host has several.
    pub numa: Option<u32>,
    /// Numbers of its interrupts.
    pub irqs: Vec<u32>,
    /// Whether it is wireless, InfiniBand or the like.
    pub not_ethernet: bool,
    /// Its MAC address.
    pub mac: String,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Its speed in Mbit/s, where it has one: a link that is down has none.
    pub speed: Option<u32>,
    /// `full` or `half`.
    pub duplex: Option<String>,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether a cable with something at its other end is plugged in; not known of a device that is down.
    pub carrier: bool,
    /// Its queues: pairs where it has those, else receive queues.
    pub queues: Option<Setting>,
    /// Descriptors of its receive rings.
    pub rx_ring: Option<Setting>,
    /// Descriptors of its transmit rings.
    pub tx_ring: Option<Setting>,
    /// What it says that it can do with XDP as it is now; `None` before Linux 6.3.
    pub xdp_features: Option<XdpFeatures>,
    /// Most buffers of a frame in zero-copy `AF_XDP`.
    pub zero_copy_segments: Option<u32>,
    /// The id of its native program.
    pub native_program: Option<u32>,
    /// The id of its generic or offloaded program.
    pub other_program: Option<u32>,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// Whether a default route of IPv4 goes out by it.
    pub default_v4: bool,
    /// Whether a default route of IPv6 goes out by it.
    pub default_v6: bool,
    /// The device that it is a port of.
    pub master: Option<String>,
    /// Devices that stand on it, such as VLANs.
    pub uppers: Vec<String>,
    /// The same from other namespaces, such as a container's macvlan.
    pub uppers_elsewhere: Vec<UpperElsewhere>,
    /// Whether somebody set a route that goes out by it.
    pub routed: bool,
    /// The queueing disciplines that somebody set on it, by their kinds; filters stand on one, too.
    pub qdiscs: Vec<String>,
    /// Ids of programs that are attached to it for traffic control without a qdisc (TCX).
    pub tcx_programs: Vec<u32>,
    /// Packet sockets that are bound to it: captures, address clients, discovery daemons.
    pub listeners: u32,
    /// The lab that has leased it.
    pub leased_by: Option<String>,
    /// Why no lab may take it; `None`: one may.
    pub refusal: Option<Refusal>,
}

impl Nic {
    /// What is known of it on a kernel: by its driver, and by what it says itself.
    pub fn knowledge(&self, kernel: Option<Kernel>) -> Knowledge {
        Knowledge {
            driver: drivers::known(&self.driver),
            probe: self.xdp_features,
            kernel,
            has_program: self.native_program.is_some(),
        }
    }
}

//! What is done to a NIC that is lent: to another namespace and back, its name, its address.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use netlink_packet_route::link::{LinkAttribute, LinkFlags};

use super::{Netlink, change, error::checked};
use crate::{host::HostError, topology::Mac};

impl Netlink {
    /// Moves a device into a namespace, where it has this name, and this index if one is given.
    ///
    /// The kernel takes the index since Linux 5.13.
    ///
    /// # Errors
    /// Where the kernel refuses: `EEXIST` where the name is taken there, `EBUSY` where the index is.
    pub async fn move_device(
        &self,
        ifindex: u32,
        to: BorrowedFd<'_>,
        name: &str,
        index: Option<u32>,
    ) -> Result<(), HostError> {
        let mut message = change(ifindex);
        message.attributes = vec![LinkAttribute::NetNsFd(to.as_raw_fd()), LinkAttribute::IfName(name.to_owned())];
        message.attributes.extend(index.map(|index| LinkAttribute::NewIfIndex(index as i32)));
        self.change(message, || format!("move device {ifindex} to another namespace as {name}")).await
    }

    /// Gives a device another name.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn rename(&self, ifindex: u32, name: &str) -> Result<(), HostError> {
        let mut message = change(ifindex);
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.change(message, || format!("call device {ifindex} {name}")).await
    }

    /// Gives a device a further name.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn add_alt_name(&self, ifindex: u32, name: &str) -> Result<(), HostError> {
        let request = self.handle.link().property_add(ifindex).alt_ifname(&[name]);
        checked(request.execute().await, || format!("call device {ifindex} {name} as well"))
    }

    /// Takes one of its further names from a device.
    ///
    /// # Errors
    /// Where it does not have it.
    pub async fn remove_alt_name(&self, ifindex: u32, name: &str) -> Result<(), HostError> {
        let request = self.handle.link().property_del(ifindex).alt_ifname(&[name]);
        checked(request.execute().await, || format!("call device {ifindex} {name} no longer"))
    }

    /// Sets a device's MAC address.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub async fn set_mac(&self, ifindex: u32, mac: Mac) -> Result<(), HostError> {
        let mut message = change(ifindex);
        message.attributes.push(LinkAttribute::Address(mac.0.to_vec()));
        self.change(message, || format!("give device {ifindex} the MAC address {mac}")).await
    }

    /// Has a device take frames to any address, or no longer.
    ///
    /// # Errors
    /// Where the driver refuses.
    pub async fn set_promiscuous(&self, ifindex: u32, on: bool) -> Result<(), HostError> {
        let mut message = change(ifindex);
        message.header.flags = if on { LinkFlags::Promisc } else { LinkFlags::empty() };
        message.header.change_mask = LinkFlags::Promisc;
        self.change(message, || format!("switch promiscuity of device {ifindex}")).await
    }
}

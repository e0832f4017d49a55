//! Links, addresses and neighbours over rtnetlink. One socket in one namespace; any number of requests at once.

mod error;
mod lent;
mod links;
mod netdev;
mod nsid;
mod routes;
mod veth;

use std::net::IpAddr;

pub use links::{LinkInfo, LinkStats, mac_text};
pub use netdev::{DeviceFeatures, xdp_features};
use netlink_packet_route::{
    link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo as LinkKindInfo, LinkMessage},
    neighbour::{NeighbourFlags, NeighbourState},
};
use netlink_sys::AsyncSocket as _;
pub use routes::Routed;
use rtnetlink::Handle;
pub use veth::{VethEnd, VethSpec};

use self::error::checked;
use super::{HostError, netns::Netns, thread::Inside};
use crate::topology::Mac;

/// A netlink socket in one namespace.
#[derive(Clone)]
pub struct Netlink {
    handle: Handle,
}

impl std::fmt::Debug for Netlink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Netlink").finish_non_exhaustive()
    }
}

impl Netlink {
    /// Opens a socket in a namespace; the lab thread drives it whenever it waits for a future.
    ///
    /// # Errors
    /// Where the namespace can't be entered or the socket opened.
    pub fn open(inside: &Inside, netns: &Netns) -> Result<Self, HostError> {
        inside.enter(netns, || Self::open_at_home(inside))?
    }

    /// Opens a socket in the namespace that the thread is in, which takes no privilege.
    ///
    /// # Errors
    /// Where the socket can't be opened.
    pub fn open_at_home(inside: &Inside) -> Result<Self, HostError> {
        let (mut connection, handle, _) = inside
            .with_runtime(rtnetlink::new_connection)
            .map_err(|source| HostError::system("open a netlink socket", source))?;
        let socket = connection.socket_mut().socket_mut();
        // The kernel's own words in errors, and not the whole request beside them.
        socket
            .set_ext_ack(true)
            .and_then(|()| socket.set_cap_ack(true))
            .map_err(|source| HostError::system("ask netlink for extended errors", source))?;
        inside.spawn(connection);
        Ok(Self { handle })
    }

    /// Makes a veth pair, its two ends in namespaces of their own.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn add_veth(&self, spec: &VethSpec<'_>) -> Result<(), HostError> {
        let request = self.handle.link().add(veth::message(spec));
        checked(request.execute().await, || format!("make the veth pair {} -- {}", spec.a.name, spec.b.name))
    }

    /// Makes a bridge that sends no frames of its own and floods none to unknown addresses.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn add_bridge(&self, name: &str, ifindex: u32, mtu: u32) -> Result<(), HostError> {
        let mut message = change(ifindex);
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Mtu(mtu),
            LinkAttribute::LinkInfo(vec![
                LinkKindInfo::Kind(InfoKind::Bridge),
                LinkKindInfo::Data(netlink_packet_route::link::InfoData::Bridge(vec![
                    // Multicast snooping sends queries; the lab's frames alone are to cross.
                    netlink_packet_route::link::InfoBridge::MulticastSnooping(false),
                ])),
            ]),
        ];
        checked(self.handle.link().add(message).execute().await, || format!("make the bridge {name}"))
    }

    /// Tells a bridge behind which of its ports an address is.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn add_bridge_entry(&self, ifindex: u32, mac: Mac) -> Result<(), HostError> {
        let request = self.handle.neighbours().add_bridge(ifindex, &mac.0);
        let request = request.state(NeighbourState::Noarp).flags(NeighbourFlags::Controller);
        checked(request.execute().await, || format!("tell the bridge that {mac} is behind its port {ifindex}"))
    }

    /// Makes a device a bridge's port.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn set_master(&self, ifindex: u32, master: u32) -> Result<(), HostError> {
        let mut message = change(ifindex);
        message.attributes.push(LinkAttribute::Controller(master));
        self.change(message, || format!("put device {ifindex} into bridge {master}")).await
    }

    /// Brings a device up.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn set_up(&self, ifindex: u32) -> Result<(), HostError> {
        let mut message = change(ifindex);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.change(message, || format!("bring device {ifindex} up")).await
    }

    /// Takes a device down.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn set_down(&self, ifindex: u32) -> Result<(), HostError> {
        let mut message = change(ifindex);
        message.header.change_mask = LinkFlags::Up;
        self.change(message, || format!("take device {ifindex} down")).await
    }

    /// Sets a device's MTU in bytes.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn set_mtu(&self, ifindex: u32, mtu: u32) -> Result<(), HostError> {
        let mut message = change(ifindex);
        message.attributes.push(LinkAttribute::Mtu(mtu));
        self.change(message, || format!("set the MTU of device {ifindex} to {mtu}")).await
    }

    /// Names a device and brings it up in one request.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn set_alias_and_up(&self, ifindex: u32, alias: &str) -> Result<(), HostError> {
        let mut message = change(ifindex);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes.push(LinkAttribute::IfAlias(alias.to_owned()));
        self.change(message, || format!("set the alias of device {ifindex} and bring it up")).await
    }

    /// Removes a device.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn delete_link(&self, ifindex: u32) -> Result<(), HostError> {
        checked(self.handle.link().del(ifindex).execute().await, || format!("remove device {ifindex}"))
    }

    /// Gives a device an address.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn add_address(&self, ifindex: u32, address: IpAddr, prefix: u8) -> Result<(), HostError> {
        let request = self.handle.address().add(ifindex, address, prefix);
        checked(request.execute().await, || format!("give device {ifindex} the address {address}/{prefix}"))
    }

    /// Tells a device, for good, which MAC an address has: nobody needs to ask.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn add_neighbour(&self, ifindex: u32, address: IpAddr, mac: Mac) -> Result<(), HostError> {
        let request = self.handle.neighbours().add(ifindex, address).link_layer_address(&mac.0).replace();
        checked(request.execute().await, || format!("tell device {ifindex} that {address} is {mac}"))
    }

    /// All devices of the namespace.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn links(&self) -> Result<Vec<LinkInfo>, HostError> {
        links::all(&self.handle).await
    }

    /// The number by which the namespace calls another one; `None` where nothing in it needed one yet.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn id_of(&self, netns: &Netns) -> Result<Option<i32>, HostError> {
        nsid::id_of(&self.handle, netns).await
    }

    /// Addresses with their prefix lengths, each behind its device's index.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn addresses(&self) -> Result<Vec<(u32, IpAddr, u8)>, HostError> {
        routes::addresses(&self.handle).await
    }

    /// The devices that routes go out by.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn routed(&self) -> Result<Routed, HostError> {
        routes::routed(&self.handle).await
    }

    /// Queueing disciplines that somebody set, by their kinds, each behind its device's index.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub async fn qdiscs(&self) -> Result<Vec<(u32, String)>, HostError> {
        routes::qdiscs(&self.handle).await
    }

    async fn change(&self, message: LinkMessage, operation: impl FnOnce() -> String) -> Result<(), HostError> {
        checked(self.handle.link().change(message).execute().await, operation)
    }
}

/// A message about an existing, or a chosen, interface index.
fn change(ifindex: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = ifindex;
    message
}

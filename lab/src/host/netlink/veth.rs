//! Veth pairs: one request makes both ends, each in its namespace, with its index, name, MAC, MTU and queues.

use std::os::fd::{AsFd as _, AsRawFd as _};

use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};

use crate::{host::netns::Netns, topology::Mac};

/// One end of a veth pair, as it is to be made.
#[derive(Debug, Clone, Copy)]
pub struct VethEnd<'a> {
    /// The interface's name.
    pub name: &'a str,
    /// Its index, free in its namespace.
    pub ifindex: u32,
    /// Its MAC address.
    pub mac: Mac,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Number of receive and of transmit queues.
    pub queues: u32,
    /// The namespace that it is made in.
    pub netns: &'a Netns,
}

/// A veth pair, as it is to be made.
#[derive(Debug, Clone, Copy)]
pub struct VethSpec<'a> {
    /// One end.
    pub a: VethEnd<'a>,
    /// The other.
    pub b: VethEnd<'a>,
}

/// The request that makes a pair.
pub(super) fn message(spec: &VethSpec<'_>) -> LinkMessage {
    let mut message = end(&spec.a);
    let peer = InfoData::Veth(InfoVeth::Peer(end(&spec.b)));
    message.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(peer)]));
    message
}

fn end(end: &VethEnd<'_>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = end.ifindex;
    // No ARP: neighbours are told, and IPv6 then neither probes for duplicates nor joins solicited-node groups, so that
    // a port sends nothing of its own.
    message.header.flags = LinkFlags::Noarp;
    message.header.change_mask = LinkFlags::Noarp;
    message.attributes = vec![
        LinkAttribute::IfName(end.name.to_owned()),
        LinkAttribute::Address(end.mac.0.to_vec()),
        LinkAttribute::Mtu(end.mtu),
        LinkAttribute::NumTxQueues(end.queues),
        LinkAttribute::NumRxQueues(end.queues),
        LinkAttribute::NetNsFd(end.netns.as_fd().as_raw_fd()),
    ];
    message
}

//! What a namespace's devices are like now.

use futures_util::TryStreamExt as _;
use netlink_packet_route::link::{
    InfoKind, LinkAttribute, LinkFlags, LinkInfo as LinkKindInfo, LinkMessage, LinkXdp, Prop, State,
};
use rtnetlink::Handle;
use serde::Serialize;

use super::error::checked;
use crate::host::HostError;

/// A device as the kernel has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct LinkInfo {
    /// Its index.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Its other names.
    pub alt_names: Vec<String>,
    /// Its MAC address.
    pub mac: Vec<u8>,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it takes frames to any address, by how often it was asked to.
    pub promiscuity: u32,
    /// Whether a user switched that on.
    pub promiscuous: bool,
    /// Whether it has a carrier.
    pub carrier: bool,
    /// Whether it is operational: up, with a carrier, and the kernel has acted upon both.
    pub running: bool,
    /// Its alias.
    pub alias: Option<String>,
    /// The id of its native program.
    pub native_program: Option<u32>,
    /// The id of its generic program.
    pub generic_program: Option<u32>,
    /// The id of its program that runs on the device itself.
    pub offloaded_program: Option<u32>,
    /// Index of the bridge, bond or other device that it is a port of.
    pub master: Option<u32>,
    /// Index of the device of this namespace that it stands on, as a VLAN does.
    pub lower: Option<u32>,
    /// The same of another namespace: its index there, and what this namespace calls that one.
    pub lower_elsewhere: Option<(u32, i32)>,
    /// Number of receive queues.
    pub rx_queues: u32,
    /// Number of transmit queues.
    pub tx_queues: u32,
    /// Its counters.
    pub stats: LinkStats,
}

impl LinkInfo {
    /// Its MAC address as text.
    pub fn mac_text(&self) -> String {
        mac_text(&self.mac)
    }
}

/// A hardware address as text, of whatever length.
pub fn mac_text(address: &[u8]) -> String {
    address.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// A device's own counters, in frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LinkStats {
    /// Received.
    pub rx_packets: u64,
    /// Sent.
    pub tx_packets: u64,
    /// Dropped on reception.
    pub rx_dropped: u64,
    /// Dropped on transmission.
    pub tx_dropped: u64,
    /// Missed by the NIC, which had no buffer for them.
    pub rx_missed: u64,
}

/// All devices of a namespace.
pub(super) async fn all(handle: &Handle) -> Result<Vec<LinkInfo>, HostError> {
    let messages: Result<Vec<LinkMessage>, _> = handle.link().get().execute().try_collect().await;
    Ok(checked(messages, || "list devices".to_owned())?.into_iter().map(info).collect())
}

fn info(message: LinkMessage) -> LinkInfo {
    let mut link = LinkInfo {
        index: message.header.index,
        up: message.header.flags.contains(LinkFlags::Up),
        promiscuous: message.header.flags.contains(LinkFlags::Promisc),
        ..LinkInfo::default()
    };
    let (mut elsewhere, mut is_veth) = (None, false);
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name = name,
            LinkAttribute::Address(mac) => link.mac = mac,
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::Promiscuity(count) => link.promiscuity = count,
            LinkAttribute::OperState(state) => link.running = state == State::Up,
            LinkAttribute::Carrier(carrier) => link.carrier = carrier != 0,
            LinkAttribute::IfAlias(alias) => link.alias = Some(alias),
            LinkAttribute::Controller(index) => link.master = Some(index),
            LinkAttribute::Link(index) => link.lower = Some(index).filter(|index| *index != 0),
            LinkAttribute::LinkInfo(parts) => is_veth = parts.contains(&LinkKindInfo::Kind(InfoKind::Veth)),
            LinkAttribute::LinkNetNsId(id) => elsewhere = Some(id),
            LinkAttribute::PropList(names) => {
                link.alt_names = names
                    .into_iter()
                    .filter_map(|name| if let Prop::AltIfName(name) = name { Some(name) } else { None })
                    .collect();
            }
            LinkAttribute::NumRxQueues(queues) => link.rx_queues = queues,
            LinkAttribute::NumTxQueues(queues) => link.tx_queues = queues,
            LinkAttribute::Stats64(stats) => {
                link.stats = LinkStats {
                    rx_packets: stats.rx_packets,
                    tx_packets: stats.tx_packets,
                    rx_dropped: stats.rx_dropped,
                    tx_dropped: stats.tx_dropped,
                    rx_missed: stats.rx_missed_errors,
                };
            }
            LinkAttribute::Xdp(attributes) => {
                for attribute in attributes {
                    match attribute {
                        LinkXdp::DrvProgId(id) => link.native_program = Some(id),
                        LinkXdp::SkbProgId(id) => link.generic_program = Some(id),
                        LinkXdp::HwProgId(id) => link.offloaded_program = Some(id),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    // An index of another namespace means nothing in this one, and a veth does not stand on its peer.
    let lower = link.lower.filter(|_| !is_veth);
    (link.lower, link.lower_elsewhere) = (lower.filter(|_| elsewhere.is_none()), lower.zip(elsewhere));
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_an_index_of_another_namespace_nor_a_veths_peer_is_stood_on() {
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::Link(2)];
        assert_eq!(info(message.clone()).lower, Some(2));
        message.attributes.push(LinkAttribute::LinkNetNsId(0));
        let found = info(message.clone());
        assert_eq!((found.lower, found.lower_elsewhere), (None, Some((2, 0))));
        message.attributes.push(LinkAttribute::LinkInfo(vec![LinkKindInfo::Kind(InfoKind::Veth)]));
        let found = info(message.clone());
        assert_eq!((found.lower, found.lower_elsewhere), (None, None));
        message.attributes.remove(1);
        assert_eq!(info(message).lower, None);
    }
}

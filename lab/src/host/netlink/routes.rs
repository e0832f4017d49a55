//! Which devices carry addresses and default routes.

use std::net::IpAddr;

use futures_util::TryStreamExt as _;
use netlink_packet_route::{
    AddressFamily,
    address::AddressAttribute,
    route::{RouteAttribute, RouteMessage, RouteProtocol, RouteType},
    tc::{TcAttribute, TcHandle, TcMessage},
};
use rtnetlink::{Handle, RouteMessageBuilder};

use super::error::checked;
use crate::host::HostError;

/// Addresses with their prefix lengths, each behind its device's index.
pub(super) async fn addresses(handle: &Handle) -> Result<Vec<(u32, IpAddr, u8)>, HostError> {
    let messages: Result<Vec<_>, _> = handle.address().get().execute().try_collect().await;
    let messages = checked(messages, || "list addresses".to_owned())?;
    Ok(messages
        .into_iter()
        .filter_map(|message| {
            // Of a point-to-point device, the address is the peer's and the local one its own.
            let own = |a: &AddressAttribute| if let AddressAttribute::Local(ip) = a { Some(*ip) } else { None };
            let any = |a: &AddressAttribute| if let AddressAttribute::Address(ip) = a { Some(*ip) } else { None };
            let attributes = &message.attributes;
            let ip = attributes.iter().find_map(own).or_else(|| attributes.iter().find_map(any))?;
            Some((message.header.index, ip, message.header.prefix_len))
        })
        .collect())
}

/// Indices of the devices that routes go out by, of any table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routed {
    /// Default routes: of IPv4, and of IPv6.
    pub by_default: [Vec<u32>; 2],
    /// Routes that the kernel did not make by itself.
    pub by_a_user: Vec<u32>,
}

/// The devices that routes go out by.
pub(super) async fn routed(handle: &Handle) -> Result<Routed, HostError> {
    let mut found = Routed::default();
    for (family, defaults) in [AddressFamily::Inet, AddressFamily::Inet6].into_iter().zip(&mut found.by_default) {
        let mut request = RouteMessageBuilder::<IpAddr>::new().build();
        request.header.address_family = family;
        let messages: Result<Vec<_>, _> = handle.route().get(request).execute().try_collect().await;
        for message in checked(messages, || "list routes".to_owned())? {
            // IPv6 always has a default route that says "unreachable".
            if message.header.destination_prefix_length == 0 && message.header.kind == RouteType::Unicast {
                defaults.extend(ways_out(&message));
            }
            if message.header.protocol != RouteProtocol::Kernel {
                found.by_a_user.extend(ways_out(&message));
            }
        }
    }
    Ok(found)
}

/// Queueing disciplines that somebody set, each behind its device's index. Those of the kernel's own choice have no handle.
pub(super) async fn qdiscs(handle: &Handle) -> Result<Vec<(u32, String)>, HostError> {
    let messages: Result<Vec<TcMessage>, _> = handle.qdisc().get().execute().try_collect().await;
    let set = |message: TcMessage| {
        let kind = |a: &TcAttribute| if let TcAttribute::Kind(kind) = a { Some(kind.clone()) } else { None };
        let kind = message.attributes.iter().find_map(kind)?;
        let index = u32::try_from(message.header.index).ok()?;
        (message.header.handle != TcHandle::default()).then_some((index, kind))
    };
    Ok(checked(messages, || "list queueing disciplines".to_owned())?.into_iter().filter_map(set).collect())
}

/// The devices that a route goes out by: one, or one a next hop.
fn ways_out(message: &RouteMessage) -> Vec<u32> {
    let of = |attribute: &RouteAttribute| match attribute {
        RouteAttribute::Oif(index) => vec![*index],
        RouteAttribute::MultiPath(hops) => hops.iter().map(|hop| hop.interface_index).collect(),
        _ => Vec::new(),
    };
    message.attributes.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::route::RouteNextHop;

    use super::*;

    #[test]
    fn every_next_hop_of_a_route_is_a_way_out() {
        let mut hops = [RouteNextHop::default(), RouteNextHop::default()];
        (hops[0].interface_index, hops[1].interface_index) = (4, 7);
        let mut message = RouteMessage::default();
        message.attributes = vec![RouteAttribute::MultiPath(hops.to_vec())];
        assert_eq!(ways_out(&message), [4, 7]);
        message.attributes = vec![RouteAttribute::Priority(3), RouteAttribute::Oif(2)];
        assert_eq!(ways_out(&message), [2]);
    }
}

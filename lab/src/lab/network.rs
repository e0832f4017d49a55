//! Nodes and links: namespaces, veth pairs and bridges, made concurrently over netlink.
//!
//! Every interface index is chosen: port `n` has `IFINDEX_BASE + n` in its own namespace, so that programs attached in
//! many namespaces can tell their ports apart. Nothing is ever made in the initial namespace.

use std::net::IpAddr;

use futures_util::future::try_join_all;
use xdplab_wire::records::IFINDEX_BASE;

use super::{
    Instance, LabError,
    cabling::{self, Cabling, LentPort},
};
use crate::{
    host::{
        HostError,
        ethtool::Ethtool,
        journal::{Change, Journal},
        netlink::{Netlink, VethEnd, VethSpec},
        netns::Netns,
        sysctl,
        thread::Inside,
    },
    topology::{LinkId, LinkKind, Mac, NodeId, PortId, Topology},
};

/// The index of `lo` in every namespace.
pub(super) const LOOPBACK: u32 = 1;

/// A namespace and the lab's socket in it.
#[derive(Debug)]
pub struct Place {
    /// The namespace.
    pub netns: Netns,
    /// The netlink socket in it.
    pub netlink: Netlink,
}

impl Place {
    /// A new namespace in which IPv6 says nothing by itself.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub(super) fn quiet(inside: &Inside) -> Result<Self, HostError> {
        let netns = Netns::create(inside)?;
        let netlink = Netlink::open(inside, &netns)?;
        // Without link-local addresses IPv6 has nobody to solicit a router for, and reports no groups.
        inside.enter(&netns, || sysctl::write("net/ipv6/conf/default/addr_gen_mode", "1"))??;
        Ok(Self { netns, netlink })
    }
}

/// The namespaces of a lab: one a node, one a bridge.
#[derive(Debug)]
pub struct Network {
    /// By node.
    pub nodes: Vec<Place>,
    /// By bridge link, in the links' order.
    pub bridges: Vec<(LinkId, Place)>,
    /// The host's NICs that are ports.
    pub lent: Vec<LentPort>,
}

/// The interface index that the lab gives a port.
pub fn ifindex(port: PortId) -> u32 {
    IFINDEX_BASE + port.0 as u32
}

/// The name under which `ip netns` shows a node of a persistent lab.
pub fn netns_name(lab: &str, node: &str) -> String {
    // Neither name holds a dot, so that no two labs' names meet.
    format!("{lab}.{node}")
}

/// The same for a bridge. A node's name starts with a letter or a digit: it can't be meant.
pub fn bridge_netns_name(lab: &str, bridge: usize) -> String {
    format!("{lab}.-br{bridge}")
}

/// Builds nodes and links. Names of namespaces are journalled first where the lab is persistent.
pub(super) fn build(
    inside: &Inside,
    topology: &Topology,
    instance: &Instance,
    journal: &Journal,
    cabling: &Cabling,
) -> Result<Network, LabError> {
    let mut names = Vec::new();
    let mut place = |name: String| -> Result<Place, LabError> {
        if instance.tag.is_none() && Netns::exists_named(&name) {
            return Err(LabError::NamespaceTaken { name });
        }
        let place = Place::quiet(inside)?;
        names.push(name);
        Ok(place)
    };
    let nodes = topology
        .nodes
        .iter()
        .map(|node| place(netns_name(&instance.lab, &node.name)))
        .collect::<Result<Vec<_>, _>>()?;
    let bridges = (0..topology.links.len())
        .filter(|link| topology.links[*link].kind == LinkKind::Bridge)
        .map(|link| Ok((LinkId(link), place(bridge_netns_name(&instance.lab, link))?)))
        .collect::<Result<Vec<_>, LabError>>()?;
    let mut network = Network { nodes, bridges, lent: Vec::new() };

    let alias = instance.to_string();
    inside.block_on(async {
        // The alias is what `down` and `gc` know the namespace by: it has no name before it has that.
        try_join_all(network.places().map(|place| place.netlink.set_alias_and_up(LOOPBACK, &alias))).await?;
        Ok::<_, LabError>(())
    })?;
    if instance.tag.is_none() {
        Netns::prepare_names()?;
        for (name, place) in names.iter().zip(network.places()) {
            journal.record(&Change::Netns { name: name.clone() })?;
            place.netns.publish(name)?;
        }
    }
    inside.block_on(async {
        let made = (0..topology.links.len()).map(LinkId).filter(|link| !cabling.is_of_nics(*link));
        try_join_all(made.map(|link| network.wire(topology, link))).await
    })?;
    if !cabling.cables.is_empty() {
        cabling::lend(inside, topology, &mut network, instance, journal, cabling)?;
    }
    for node in 0..topology.nodes.len() {
        network.set_offloads(inside, topology, NodeId(node))?;
    }
    if !network.lent.is_empty() {
        cabling::open(inside, topology, &mut network, instance)?;
    }
    Ok(network)
}

impl Network {
    fn places(&self) -> impl Iterator<Item = &Place> {
        self.nodes.iter().chain(self.bridges.iter().map(|(_, place)| place))
    }

    /// What the host calls the NIC that is a port, with its PCI address.
    pub(super) fn lent_name(&self, port: PortId) -> String {
        let lent = self.lent.iter().find(|lent| lent.port == port);
        lent.map_or_else(
            || "a veth".to_owned(),
            |lent| format!("{} ({})", lent.loan.borrowed.name, lent.loan.borrowed.pci),
        )
    }

    /// The place of a port.
    pub fn at<'a>(&'a self, topology: &Topology, port: PortId) -> &'a Place {
        &self.nodes[topology.ports[port.0].node.0]
    }

    async fn wire(&self, topology: &Topology, link: LinkId) -> Result<(), HostError> {
        let spec = &topology.links[link.0];
        match (&spec.kind, spec.ends.as_slice()) {
            (LinkKind::Veth | LinkKind::Cable(_), &[a, b]) => {
                let ends = VethSpec { a: self.end(topology, a), b: self.end(topology, b) };
                self.at(topology, a).netlink.add_veth(&ends).await?;
            }
            _ => self.wire_bridge(topology, link).await?,
        }
        for port in &spec.ends {
            self.finish(topology, *port).await?;
        }
        Ok(())
    }

    async fn wire_bridge(&self, topology: &Topology, link: LinkId) -> Result<(), HostError> {
        let spec = &topology.links[link.0];
        let Some((_, place)) = self.bridges.iter().find(|(id, _)| *id == link) else { return Ok(()) };
        // Indices behind those of all ports: a bridge's own devices are no ports.
        let bridge = IFINDEX_BASE + topology.ports.len() as u32;
        place.netlink.add_bridge("br", bridge, spec.mtu).await?;
        place.netlink.set_up(bridge).await?;
        for (n, port) in (0u32..).zip(&spec.ends) {
            let name = format!("br{n}");
            let inner = VethEnd {
                name: &name,
                ifindex: bridge + 1 + n,
                mac: Mac([0x02, 0x78, 0x62, 0, (link.0 % 256) as u8, (n % 256) as u8]),
                mtu: topology.ports[port.0].mtu,
                queues: topology.ports[port.0].queues,
                netns: &place.netns,
            };
            let ends = VethSpec { a: self.end(topology, *port), b: inner };
            self.at(topology, *port).netlink.add_veth(&ends).await?;
            place.netlink.set_master(bridge + 1 + n, bridge).await?;
            place.netlink.set_up(bridge + 1 + n).await?;
            // The bridge would flood frames to an address that it has not seen yet, and every copy would be a riddle.
            place.netlink.add_bridge_entry(bridge + 1 + n, topology.ports[port.0].mac).await?;
        }
        Ok(())
    }

    fn end<'a>(&'a self, topology: &'a Topology, port: PortId) -> VethEnd<'a> {
        let spec = &topology.ports[port.0];
        VethEnd {
            name: &spec.name,
            ifindex: ifindex(port),
            mac: spec.mac,
            mtu: spec.mtu,
            queues: spec.queues,
            netns: &self.at(topology, port).netns,
        }
    }

    /// Addresses, the way up, and where the others are.
    pub(super) async fn finish(&self, topology: &Topology, port: PortId) -> Result<(), HostError> {
        let netlink = &self.at(topology, port).netlink;
        let spec = &topology.ports[port.0];
        let index = ifindex(port);
        netlink.set_up(index).await?;
        for (address, prefix) in &spec.addresses {
            netlink.add_address(index, *address, *prefix).await?;
        }
        let others = topology.links[spec.link.0].ends.iter().filter(|end| **end != port);
        let neighbours: Vec<(IpAddr, Mac)> = others
            .map(|end| &topology.ports[end.0])
            .flat_map(|other| other.addresses.iter().map(|(address, _)| (*address, other.mac)))
            .collect();
        for (address, mac) in neighbours {
            netlink.add_neighbour(index, address, mac).await?;
        }
        Ok(())
    }

    /// Sets GRO and offloads of a node's ports as the file has them. A bridge's ends poll by GRO, since no program can
    /// be attached to them, and without polling a veth takes no redirected frames.
    fn set_offloads(&self, inside: &Inside, topology: &Topology, node: NodeId) -> Result<(), LabError> {
        let wanted = |port: &PortId| {
            let port = &topology.ports[port.0];
            port.gro.is_some() || !port.offloads.is_empty()
        };
        let ports: Vec<PortId> = topology.ports_of(node).filter(wanted).collect();
        if !ports.is_empty() {
            inside.enter(&self.nodes[node.0].netns, || -> Result<(), HostError> {
                let ethtool = Ethtool::open()?;
                let of = |port: PortId| topology.port_name(port);
                for id in ports {
                    let port = &topology.ports[id.0];
                    if let Some(gro) = port.gro {
                        ethtool.set_gro(&port.name, gro)?;
                    }
                    for (feature, on) in &port.offloads {
                        ethtool.set_feature(&port.name, feature, *on).map_err(|error| error.at(&of(id)))?;
                    }
                }
                Ok(())
            })??;
        }
        Ok(())
    }

    /// Makes the bridges' own ends poll.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn set_bridge_gro(&self, inside: &Inside, topology: &Topology) -> Result<(), LabError> {
        for (link, place) in &self.bridges {
            inside.enter(&place.netns, || -> Result<(), HostError> {
                let ethtool = Ethtool::open()?;
                (0..topology.links[link.0].ends.len()).try_for_each(|n| ethtool.set_gro(&format!("br{n}"), true))
            })??;
        }
        Ok(())
    }
}

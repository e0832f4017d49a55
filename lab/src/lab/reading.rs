//! Reading a lab's counters: of its programs, its devices, and the kernel's events.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use xdplab_wire::records::{DeviceKey, PortCounters, SLOT_SOURCE};

use super::{
    Installed, LabError,
    network::{LOOPBACK, Network, ifindex},
    receiver::Receiver,
};
use crate::{
    drivers::{self, Kernel, Knowledge},
    host::{
        HostError,
        ethtool::Ethtool,
        netlink::{LinkInfo, xdp_features},
        thread::Inside,
        xsk::XskDrops,
    },
    observe::{
        missed,
        reading::{PortReading, Reading, SocketReading},
    },
    program::Watch,
    topology::{PortId, Topology},
    xdp::XdpMode,
};

/// Tells the watcher which devices are the lab's ports. A node's loopback is where a source's frames come in.
pub(super) fn register(watch: &mut Watch, topology: &Topology, network: &Network) -> Result<(), LabError> {
    for (slot, port) in (0u32..).zip(&topology.ports) {
        let netns = network.nodes[port.node.0].netns.inode();
        watch.watch_port(DeviceKey { netns, ifindex: ifindex(PortId(slot as usize)) }, slot)?;
    }
    for place in &network.nodes {
        watch.watch_port(DeviceKey { netns: place.netns.inode(), ifindex: LOOPBACK }, SLOT_SOURCE)?;
    }
    Ok(())
}

/// Reads everything once.
pub(super) fn read(
    inside: &Inside,
    topology: &Topology,
    network: &Network,
    installed: &[Installed],
    watch: Option<&Watch>,
) -> Result<Reading, LabError> {
    let mut ports = vec![PortReading::default(); topology.ports.len()];
    for have in installed {
        if let Some(counters) = have.program.counters()? {
            for (port, _) in &have.links {
                ports[port.0].counters = counters[port.0];
            }
        }
        if !have.receivers.is_empty() {
            let unclaimed = have.program.unclaimed()?;
            for (port, _) in &have.links {
                let sockets = have.receivers.iter().filter(|receiver| receiver.port == *port);
                let drops = sockets.map(Receiver::drops).collect::<Result<Vec<_>, _>>()?;
                let drops = drops.iter().fold(XskDrops::default(), |sum, drops| sum.plus(drops));
                ports[port.0].sockets = SocketReading {
                    received: received(have, *port),
                    unclaimed: unclaimed[port.0],
                    ring_full: drops.ring_full,
                    fill_empty: drops.fill_empty,
                    other: drops.other,
                };
            }
        }
        if have.wanted.body.egress.as_deref() == Some("drop") {
            for (port, seen) in ports.iter_mut().zip(have.program.egress_counters()?) {
                port.egress_dropped += seen.ours + seen.corrupted;
            }
        }
    }
    for (port, link) in ports.iter_mut().zip(port_states(inside, topology, network)?) {
        port.rx_packets = link.stats.rx_packets;
        port.tx_packets = link.stats.tx_packets;
        port.tx_dropped = link.stats.tx_dropped;
        port.missed[0] = link.stats.rx_missed;
    }
    read_drivers(inside, topology, network, installed, &mut ports)?;
    read_missed(inside, topology, network, &mut ports)?;
    let events = watch.map_or_else(|| Ok(BTreeMap::new()), Watch::read)?;
    Ok(Reading { ports, events })
}

/// What a port's sockets received, in place of what a program would have counted.
pub(super) fn received(have: &Installed, port: PortId) -> PortCounters {
    let sockets = have.receivers.iter().filter(|receiver| receiver.port == port);
    sockets.fold(PortCounters::default(), |sum, receiver| sum.plus(&receiver.counters()))
}

/// The devices of all ports as they are now, by slot. One that is gone is as if it were down and had done nothing.
pub(super) fn port_states(inside: &Inside, topology: &Topology, network: &Network) -> Result<Vec<LinkInfo>, LabError> {
    let nodes = inside.block_on(try_join_all(network.nodes.iter().map(|place| place.netlink.links())))?;
    let state = |(slot, port): (usize, &crate::topology::Port)| {
        let index = ifindex(PortId(slot));
        nodes[port.node.0].iter().find(|link| link.index == index).cloned().unwrap_or_default()
    };
    Ok(topology.ports.iter().enumerate().map(state).collect())
}

/// What is known of a port's device as it is now.
pub(super) fn knowledge(
    inside: &Inside,
    topology: &Topology,
    network: &Network,
    port: PortId,
) -> Result<Knowledge, LabError> {
    let name = &topology.ports[port.0].name;
    let place = network.at(topology, port);
    let links = inside.block_on(place.netlink.links())?;
    let index = ifindex(port);
    let (driver, features) = inside.enter(&place.netns, || -> Result<_, HostError> {
        // A device without ethtool may still tell its features.
        Ok((Ethtool::open()?.driver(name).unwrap_or_default().driver, xdp_features()?))
    })??;
    Ok(Knowledge {
        driver: drivers::known(&driver),
        probe: features.and_then(|features| features.get(&index).map(|device| device.features)),
        kernel: Kernel::running(),
        has_program: links.iter().any(|link| link.index == index && link.native_program.is_some()),
    })
}

/// The drivers' own counts, of ports with a native program.
fn read_drivers(
    inside: &Inside,
    topology: &Topology,
    network: &Network,
    installed: &[Installed],
    ports: &mut [PortReading],
) -> Result<(), LabError> {
    let native = installed.iter().filter(|have| have.wanted.mode == XdpMode::Native);
    for port in native.flat_map(|have| have.links.iter().map(|(port, _)| *port)) {
        let name = &topology.ports[port.0].name;
        let stats = inside
            .enter(&network.at(topology, port).netns, || -> Result<_, HostError> { Ethtool::open()?.stats(name) })??;
        // veth: `rx_queue_N_xdp_packets` and so on, one a queue.
        ports[port.0].driver_packets = of_queues(&stats, "_xdp_packets");
        ports[port.0].driver_drops = of_queues(&stats, "_xdp_drops");
    }
    Ok(())
}

/// A count that a driver has one of for each receive queue, of all of them.
pub(super) fn of_queues(stats: &[(String, u64)], suffix: &str) -> u64 {
    let counts = stats.iter().filter(|(name, _)| name.starts_with("rx_queue_") && name.ends_with(suffix));
    counts.map(|(_, n)| n).sum()
}

/// What the NICs among the ports had no buffer for.
fn read_missed(
    inside: &Inside,
    topology: &Topology,
    network: &Network,
    ports: &mut [PortReading],
) -> Result<(), LabError> {
    for lent in &network.lent {
        let name = &topology.ports[lent.port.0].name;
        let known = drivers::known(&lent.loan.borrowed.driver).map(|driver| &driver.counters);
        // A driver without counters of its own has those of the device.
        let stats = inside.enter(&network.at(topology, lent.port).netns, || -> Result<_, HostError> {
            Ok(Ethtool::open()?.stats(name).unwrap_or_default())
        })??;
        let reading = &mut ports[lent.port.0];
        reading.missed = missed::counts(&stats, reading.missed[0], known);
    }
    Ok(())
}

//! Traffic: the frames, and what sends them.

pub mod cpu;
pub mod frames;
pub mod live;
pub mod packet;
pub mod xsk;

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use frames::{FrameError, FrameSpec};

use crate::topology::{IpVersion, PortId, Topology, Traffic};

/// Asks a run to stop: it finishes the burst at hand, settles the account and takes the lab down.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that a signal handler may set.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Asks for the stop.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked for.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The frames of a scenario's traffic: from its port to the other end of the link. On a bridge, which has many other
/// ends, to `towards` if that is one of them.
///
/// # Errors
/// Where the sending port and its receiver have no addresses of the version asked for, of which a file that gives
/// addresses may leave one out.
pub fn frame_spec(
    topology: &Topology,
    traffic: &Traffic,
    towards: &[PortId],
    instance: u16,
) -> Result<FrameSpec, FrameError> {
    let ends = &topology.links[topology.ports[traffic.from.0].link.0].ends;
    let others = || ends.iter().filter(|end| **end != traffic.from);
    let to = others().find(|end| towards.contains(end)).or_else(|| others().next()).copied().unwrap_or(traffic.from);
    let address = |port: PortId| -> Result<IpAddr, FrameError> {
        let wanted = |address: &IpAddr| address.is_ipv4() == (traffic.ip == IpVersion::V4);
        let found = topology.ports[port.0].addresses.iter().map(|(address, _)| *address).find(wanted);
        found.ok_or_else(|| FrameError::NoAddress { port: topology.port_name(port), version: traffic.ip })
    };
    Ok(FrameSpec {
        source_mac: topology.ports[traffic.from.0].mac,
        destination_mac: topology.ports[to.0].mac,
        source: address(traffic.from)?,
        destination: address(to)?,
        frame_bytes: traffic.frame_bytes,
        instance,
    })
}

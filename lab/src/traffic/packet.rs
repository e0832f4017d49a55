//! Engine `packet`: `AF_PACKET` through pnet, one system call a frame, as a peer's stack would send.

use std::{
    io,
    time::{Duration, Instant},
};

use pnet::datalink::{
    Channel, NetworkInterface,
    linux::{self, Config},
};

use xdplab_wire::marker::{self, Marker};

use super::{Stop, cpu::Pinned, frames::FrameSpec};
use crate::{
    lab::{Lab, LabError, Pace, ifindex},
    topology::{Amount, PortId},
};

/// What an `AF_PACKET` or an `AF_XDP` run sends.
#[derive(Debug, Clone)]
pub struct PacketTraffic {
    /// The port.
    pub from: PortId,
    /// The frames.
    pub spec: FrameSpec,
    /// Number of flows, taken in turn.
    pub flows: u32,
    /// The sequence number of each flow's first frame.
    pub first_sequence: u32,
    /// Whether the frames differ: each has a marker of its own. Off, one frame is sent again and again.
    pub marker: bool,
}

/// Sends an amount of frames; returns how many the kernel took.
///
/// `pace`: who must have dealt with a chunk of frames before the next is sent.
///
/// # Errors
/// Where the socket can't be opened, or the kernel refuses a frame.
pub fn send(
    lab: &Lab,
    traffic: &PacketTraffic,
    amount: Amount,
    pace: Option<&Pace>,
    stop: &Stop,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<u64, LabError> {
    let port = lab.topology().port_name(traffic.from);
    let name = lab.topology().ports[traffic.from.0].name.clone();
    let failed = |source: io::Error| LabError::Send { port: port.clone(), source };
    wait_until_running(lab, traffic.from)?;
    // The socket stays in the namespace that it was opened in.
    let channel = lab.in_node(traffic.from, || linux::channel(&interface(name, ifindex(traffic.from)), config()))?;
    let Channel::Ethernet(mut sender, _receiver) = channel.map_err(failed)? else {
        return Err(failed(io::Error::from(io::ErrorKind::Unsupported)));
    };
    // One frame a flow; a marker is put into it without touching its checksums, which do not depend on it.
    let mut templates = (0..traffic.flows)
        .map(|flow| traffic.spec.frame(flow, traffic.first_sequence, 0))
        .collect::<Result<Vec<_>, _>>()?;
    lab.thread().run(|_| -> Result<u64, LabError> {
        let _pinned = Pinned::here().map_err(|errno| failed(errno.into()))?;
        let started = Instant::now();
        let mut sent = 0u64;
        loop {
            if sent.is_multiple_of(64) {
                progress(sent);
                let done = match amount {
                    Amount::Frames(_) => false,
                    Amount::Duration(time) => started.elapsed() >= time,
                };
                if done || stop.is_asked() {
                    return Ok(sent);
                }
            }
            if let Some(pace) = pace.filter(|pace| sent.is_multiple_of(u64::from(pace.chunk()))) {
                pace.wait(sent)?;
            }
            if amount == Amount::Frames(sent) {
                return Ok(sent);
            }
            let flow = (sent % u64::from(traffic.flows)) as u32;
            let sequence = traffic.first_sequence.wrapping_add((sent / u64::from(traffic.flows)) as u32);
            let frame = &mut templates[flow as usize];
            if traffic.marker {
                let at = frame.len() - marker::LEN;
                frame[at..].copy_from_slice(&Marker::seal(traffic.spec.instance, flow, sequence, 0).to_bytes());
            }
            match sender.send_to(frame, None) {
                Some(Ok(())) => sent += 1,
                // The device's queue was full: the frame was not taken, and goes again.
                Some(Err(error)) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Some(Err(error)) => return Err(failed(error)),
                None => return Err(failed(io::Error::from(io::ErrorKind::WriteZero))),
            }
        }
    })
}

/// A device that has just come up drops what is sent by it until the kernel has given it a queue, in its own time.
pub(super) fn wait_until_running(lab: &Lab, port: PortId) -> Result<(), LabError> {
    let deadline = Instant::now() + Duration::from_secs(1);
    while !lab.port_states()?[port.0].running && Instant::now() < deadline {
        std::thread::yield_now();
    }
    Ok(())
}

fn interface(name: String, index: u32) -> NetworkInterface {
    NetworkInterface { name, description: String::new(), index, mac: None, ips: Vec::new(), flags: 0 }
}

fn config() -> Config {
    Config { write_buffer_size: 65_536, ..Config::default() }
}

//! Engine `xsk`: the transmit ring of an `AF_XDP` socket at the port's queue 0, as a user-space stack would send.
//!
//! What was offered is what the kernel was done with: it took the frame from the ring and gave its memory back.

use std::{
    io,
    time::{Duration, Instant},
};

use xdplab_wire::marker::{self, Marker};

use super::{
    Stop,
    cpu::Pinned,
    packet::{PacketTraffic, wait_until_running},
};
use crate::{
    host::xsk::{BATCH, RING, XskSender, XskSpec},
    lab::{Lab, LabError, Pace, ifindex},
    topology::Amount,
};

/// How long the kernel may take over the frames that are in the ring.
const DRAIN: Duration = Duration::from_secs(5);

/// What was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Frames that the kernel took from the ring and was done with.
    pub frames: u64,
    /// From the first of them to the last; opening the socket takes as long as thousands of frames.
    pub time: Duration,
}

/// Sends an amount of frames.
///
/// `pace`: who must have dealt with a chunk of frames before the next is sent.
///
/// # Errors
/// Where the socket can't be opened, the queue having one already for instance, or the kernel refuses to send.
pub fn send(
    lab: &Lab,
    traffic: &PacketTraffic,
    amount: Amount,
    pace: Option<&Pace>,
    stop: &Stop,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Sent, LabError> {
    let port = lab.topology().port_name(traffic.from);
    let failed = |source: io::Error| LabError::Send { port: port.clone(), source };
    wait_until_running(lab, traffic.from)?;
    // One frame a flow; a marker is put into it without touching its checksums, which do not depend on it.
    let mut templates = (0..traffic.flows)
        .map(|flow| traffic.spec.frame(flow, traffic.first_sequence, 0))
        .collect::<Result<Vec<_>, _>>()?;
    let frame_bytes = templates.first().map_or(0, |frame| frame.len() as u32);
    let spec = XskSpec { ifindex: ifindex(traffic.from), queue: 0, ring: RING, frame_bytes };
    // The socket stays in the namespace that it was opened in.
    let mut socket = lab.in_node(traffic.from, || XskSender::open(spec))??;
    let chunk = pace.map_or(u64::MAX, |pace| u64::from(pace.chunk()));
    lab.thread().run(|_| -> Result<Sent, LabError> {
        let _pinned = Pinned::here().map_err(|errno| failed(errno.into()))?;
        let started = Instant::now();
        let mut pushed = 0u64;
        loop {
            progress(socket.completed());
            let left = match amount {
                Amount::Frames(frames) => frames - pushed,
                Amount::Duration(time) if started.elapsed() >= time => 0,
                Amount::Duration(_) => u64::MAX,
            };
            if left == 0 || stop.is_asked() {
                drain(&mut socket).map_err(failed)?;
                progress(socket.completed());
                return Ok(Sent { frames: socket.completed(), time: started.elapsed() });
            }
            let until_wait = chunk - pushed % chunk;
            let burst = left.min(until_wait).min(BATCH as u64);
            for _ in 0..burst {
                let flow = (pushed % u64::from(traffic.flows)) as u32;
                let sequence = traffic.first_sequence.wrapping_add((pushed / u64::from(traffic.flows)) as u32);
                let frame = &mut templates[flow as usize];
                if traffic.marker {
                    let at = frame.len() - marker::LEN;
                    frame[at..].copy_from_slice(&Marker::seal(traffic.spec.instance, flow, sequence, 0).to_bytes());
                }
                if !socket.push(frame).map_err(failed)? {
                    // The ring is full: the rest goes after some of it was sent.
                    break;
                }
                pushed += 1;
            }
            socket.flush().map_err(failed)?;
            if let Some(pace) = pace.filter(|_| pushed.is_multiple_of(chunk)) {
                drain(&mut socket).map_err(failed)?;
                pace.wait(pushed)?;
            }
        }
    })
}

/// Sends until the kernel is done with every frame.
fn drain(socket: &mut XskSender) -> io::Result<()> {
    let deadline = Instant::now() + DRAIN;
    while socket.outstanding() > 0 {
        if Instant::now() >= deadline {
            let left = socket.outstanding();
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("the device did not take {left} frames from the AF_XDP ring: is the queue stopped?"),
            ));
        }
        socket.flush()?;
    }
    Ok(())
}

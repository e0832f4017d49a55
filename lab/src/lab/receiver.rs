//! What receives from the sockets of the built-in `xsk`: a thread a socket, which counts as the sink does.

use std::{
    os::fd::{AsRawFd, RawFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};
use xdplab_wire::{
    marker::{self, Marker},
    records::{FlowWindow, PortCounters, Stamp},
    window::Arrival,
};

use crate::{
    host::{
        HostError,
        xsk::{XskDrops, XskReceiver, XskSocket, monotonic_ns},
    },
    topology::PortId,
};

/// How long a receiver sleeps without a frame before it looks whether it is to end.
const NAP: Duration = Duration::from_millis(10);

/// How frames are told apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Telling {
    /// The lab instance whose markers are ours.
    pub(super) instance: u16,
    /// Number of flows.
    pub(super) flows: u32,
    /// Whether markers are looked at; else all frames are taken for the lab's own.
    pub(super) counting: bool,
}

/// A socket and the thread that empties it. Ends when dropped.
#[derive(Debug)]
pub struct Receiver {
    /// The port.
    pub port: PortId,
    tap: Tap,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<XskReceiver>>,
}

/// What is seen of a receiver while it works.
#[derive(Debug, Clone)]
pub(super) struct Tap {
    socket: Arc<XskSocket>,
    counters: Arc<Mutex<PortCounters>>,
}

impl Tap {
    fn counters(&self) -> MutexGuard<'_, PortCounters> {
        // Counters are whole after each frame, whatever happens to who counted it.
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frames that came to an end here: taken, or dropped by the kernel.
    pub(super) fn ended(&self) -> Result<u64, HostError> {
        let dropped = self.socket.drops()?.total();
        let seen = self.counters();
        Ok(seen.ours + seen.corrupted + seen.foreign + dropped)
    }

    /// Descriptors of the ring.
    pub(super) fn ring(&self) -> u32 {
        self.socket.spec().ring
    }

    /// Whether no frame waits in the ring.
    pub(super) fn is_drained(&self) -> Result<bool, HostError> {
        let waits = self.socket.has_frames();
        waits.map(|waits| !waits).map_err(|source| HostError::system("look into an AF_XDP socket's ring", source))
    }
}

impl Receiver {
    /// Starts to receive. `nth` receivers run already: each takes another CPU, and none the sender's while there are
    /// others.
    pub(super) fn start(port: PortId, socket: XskReceiver, telling: Telling, nth: usize) -> Result<Self, HostError> {
        let tap = Tap { socket: Arc::clone(socket.socket()), counters: Arc::default() };
        let stop = Arc::new(AtomicBool::new(false));
        let (counters, ended) = (Arc::clone(&tap.counters), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name(format!("xsk {}/{}", port.0, tap.socket.spec().queue))
            .spawn(move || {
                stay_off_the_sender(nth);
                receive(socket, &counters, telling, &ended)
            })
            .map_err(|source| HostError::system("start a thread that receives by AF_XDP", source))?;
        Ok(Self { port, tap, stop, thread: Some(thread) })
    }

    /// What was received until now, in place of what a sink's program would have counted.
    pub fn counters(&self) -> PortCounters {
        *self.tap.counters()
    }

    /// Counts from zero again.
    pub fn reset(&self) {
        *self.tap.counters() = PortCounters::default();
    }

    /// What the kernel dropped at the socket since it was opened.
    ///
    /// # Errors
    /// Where the kernel refuses to tell.
    pub fn drops(&self) -> Result<XskDrops, HostError> {
        self.tap.socket.drops()
    }

    /// Whether NIC and socket share their memory, or the kernel copies each frame.
    pub fn zero_copy(&self) -> bool {
        self.tap.socket.zero_copy()
    }

    /// The queue.
    pub fn queue(&self) -> u32 {
        self.tap.socket.spec().queue
    }

    pub(super) fn tap(&self) -> Tap {
        self.tap.clone()
    }
}

impl AsRawFd for Receiver {
    fn as_raw_fd(&self) -> RawFd {
        self.tap.socket.as_raw_fd()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The socket goes with what the thread leaves. A panic of it has been printed.
            drop(thread.join());
        }
    }
}

/// Keeps the calling thread off the highest CPU, where the sender runs.
fn stay_off_the_sender(nth: usize) {
    let Ok(before) = sched_getaffinity(Pid::from_raw(0)) else { return };
    let usable = (0..CpuSet::count()).rev().filter(|cpu| before.is_set(*cpu).unwrap_or(false));
    let others: Vec<usize> = usable.skip(1).collect();
    let mut one = CpuSet::new();
    if let Some(cpu) = others.get(nth % others.len().max(1))
        && one.set(*cpu).is_ok()
    {
        // Where the kernel refuses, the scheduler has the choice.
        let _ = sched_setaffinity(Pid::from_raw(0), &one);
    }
}

fn receive(
    mut socket: XskReceiver,
    counters: &Mutex<PortCounters>,
    telling: Telling,
    ended: &AtomicBool,
) -> XskReceiver {
    let mut windows = vec![FlowWindow::EMPTY; telling.flows.max(1) as usize];
    while !ended.load(Ordering::Relaxed) {
        let mut seen = counters.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = if telling.counting {
            socket.receive(|frame| note(&mut seen, &mut windows, telling.instance, frame))
        } else {
            let taken = socket.receive(|_| {});
            seen.ours += taken as u64;
            taken
        };
        if taken > 0 {
            let now = Stamp { ns: monotonic_ns(), frames: seen.ours };
            if seen.first.ns == 0 {
                seen.first = now;
            }
            seen.last = now;
        }
        drop(seen);
        if taken == 0 && socket.socket().wait(NAP).is_err() {
            // The device is gone, and no frame comes any more.
            std::thread::sleep(NAP);
        }
    }
    socket
}

/// Counts a frame, as the sink's program does.
fn note(seen: &mut PortCounters, windows: &mut [FlowWindow], instance: u16, frame: &[u8]) {
    match Marker::at_end_of(frame).filter(Marker::is_sound) {
        Some(marker) if marker.instance == instance && !is_icmp(frame) => {
            seen.ours += 1;
            let flow = marker.flow as usize % windows.len();
            match windows[flow].note(marker.sequence) {
                Arrival::New => {}
                Arrival::Duplicate => seen.duplicated += 1,
                Arrival::Late => seen.reordered += 1,
            }
        }
        None if is_to_lab_port(frame) => seen.corrupted += 1,
        Some(_) | None => seen.foreign += 1,
    }
}

/// Whether a frame is ICMP or `ICMPv6`: a stack's complaint about a frame of ours quotes it, marker and all.
fn is_icmp(frame: &[u8]) -> bool {
    matches!(protocol(frame), Some((1 | 58, _)))
}

/// Whether a plain IPv4 or IPv6 frame is UDP to the lab's port.
fn is_to_lab_port(frame: &[u8]) -> bool {
    let Some((17, udp)) = protocol(frame) else { return false };
    frame.get(udp + 2..udp + 4) == Some(&marker::UDP_PORT.to_be_bytes())
}

/// The protocol of a plain IPv4 or IPv6 frame, and where its header begins.
fn protocol(frame: &[u8]) -> Option<(u8, usize)> {
    match frame.get(12..14)? {
        [0x08, 0x00] => Some((*frame.get(14 + 9)?, 34)),
        [0x86, 0xdd] => Some((*frame.get(14 + 6)?, 54)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(frames: &[Vec<u8>]) -> PortCounters {
        let (mut seen, mut windows) = (PortCounters::default(), vec![FlowWindow::EMPTY; 2]);
        for frame in frames {
            note(&mut seen, &mut windows, 7, frame);
        }
        seen
    }

    /// UDP over IPv4 to a port, with a marker at its end.
    fn frame(protocol: u8, port: u16, marker: Marker) -> Vec<u8> {
        let mut frame = vec![0; 44];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        frame[23] = protocol;
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        frame.extend(marker.to_bytes());
        frame
    }

    #[test]
    fn frames_are_told_apart_as_the_sink_does() {
        let ours = |flow, sequence| frame(17, marker::UDP_PORT, Marker::seal(7, flow, sequence, 0));
        let broken = Marker { check: 0, ..Marker::seal(7, 0, 9, 0) };
        let frames = [
            ours(0, 0),
            ours(0, 2),
            ours(1, 0),
            ours(0, 1),
            ours(0, 2),
            frame(17, marker::UDP_PORT, Marker::seal(8, 0, 3, 0)),
            frame(1, 0, Marker::seal(7, 0, 4, 0)),
            frame(17, 53, broken),
            frame(17, marker::UDP_PORT, broken),
            vec![0; 14],
            Vec::new(),
        ];
        let seen = seen(&frames);
        assert_eq!((seen.ours, seen.corrupted, seen.foreign), (5, 1, 5), "{seen:?}");
        assert_eq!((seen.duplicated, seen.reordered), (1, 1), "{seen:?}");
    }
}

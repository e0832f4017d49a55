//! The ledger: from what was observed at each port to where every frame went.
//!
//! A frame ends once: at a sink, in a program's verdict, in a stack, or in a loss that the kernel told of. Every such
//! end is counted in exactly one place, and this is where the choice is made: [`settle`] is a pure function.
//!
//! | end | counted by |
//! |---|---|
//! | sink, `drop`, `pass` of the lab | the program itself, frames with a sound marker |
//! | `AF_XDP` socket of the lab | its receiver, frames with a sound marker |
//! | drop at a socket | `XDP_STATISTICS`, less frames of other origin; not again as `xdp_redirect_err` |
//! | queue without a socket | the program itself |
//! | drop by a user's program, native | the driver's `xdp_drops`, less exceptions (the driver counts those as drops) |
//! | drop by a user's program, generic | `kfree_skb` with reason `XDP` or none, less redirect errors and exceptions |
//! | pass by a user's program; a port with no program | `netif_receive_skb` of marked frames |
//! | redirect that failed | `xdp_redirect_err`, by errno |
//! | target that did not take it | `xdp_devmap_xmit`, by errno, less what the egress program dropped |
//! | `XDP_TX` that failed | `xdp_bulk_tx` |
//! | a frame that another CPU's queue had no room for | `xdp_cpumap_enqueue`, native; generic mode tells it as a redirect error |
//! | `XDP_ABORTED` | `xdp_exception` |
//! | a NIC that had no buffer | the NIC's own counters, no more than are lacking otherwise: others' frames are missed as well |
//! | anything on a generic way out | `kfree_skb` of marked frames, any reason but `XDP`; where a native program may have
//!   dropped them, no more than the sending device's `tx_dropped` |

use std::collections::BTreeMap;

use xdplab_wire::records::{PortCounters, WatchKey, event};

use super::{
    causes::{Explanation, Loss, Target, explain},
    missed,
    reading::SocketReading,
    sockets,
};
use crate::{
    record::{Dropped, Ledger},
    xdp::XdpMode,
};

/// What runs at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The lab's sink.
    Sink,
    /// The lab's `drop`.
    Drop,
    /// The lab's `pass`.
    Pass,
    /// The lab's `xsk`; `passes`: a frame of a queue without a socket goes to the stack, else it is dropped.
    Xsk {
        /// Whether it goes to the stack.
        passes: bool,
    },
    /// A program of the lab that sends frames on: `tx`, `redirect_map`, `broadcast`. Not an end.
    Forward,
    /// A user's program.
    User(XdpMode),
    /// The lab's `cpumap`: what arrives goes to the stack on another CPU, unless a program there drops it.
    OtherCpu,
    /// No program: what arrives goes to the stack.
    Stack,
}

/// What was observed at one port between two readings.
#[derive(Debug, Clone)]
pub struct PortObservation {
    /// What runs there.
    pub role: Role,
    /// What the lab's program there counted.
    pub counters: PortCounters,
    /// What its `AF_XDP` sockets did.
    pub sockets: SocketReading,
    /// Frames that the driver's `xdp_drops` counted.
    pub driver_drops: u64,
    /// Frames that a native program saw, by the driver's count.
    pub driver_packets: u64,
    /// Whether what runs there is native.
    pub native: bool,
    /// Frames that this port failed to hand to its peer, by the device's count.
    pub tx_dropped: u64,
    /// Frames that left by this port, by the device's count.
    pub tx_packets: u64,
    /// Frames that arrived at this port, by the device's count.
    pub rx_packets: u64,
    /// Frames that its NIC had no buffer for, whosever they were.
    pub missed: u64,
    /// Frames that an egress program of the lab dropped here.
    pub egress_dropped: u64,
    /// The slot of the other end, where the link has two.
    pub peer: Option<u32>,
    /// Slots that the program here redirects to, by the index in its map.
    pub targets: Vec<u32>,
    /// Whether the program here sends to every target.
    pub broadcasts: bool,
    /// What is known of the port as a target.
    pub state: Target,
}

/// Everything that was observed between two readings, at rest before each.
#[derive(Debug, Clone)]
pub struct Observation {
    /// Frames that the source made.
    pub offered: u64,
    /// Slot of the port that the source sends from.
    pub from: u32,
    /// The ports, by slot.
    pub ports: Vec<PortObservation>,
    /// The kernel's events.
    pub events: BTreeMap<WatchKey, u64>,
}

/// Drop reasons of the running kernel that the ledger must know by number.
pub trait DropReasons {
    /// The number of `SKB_DROP_REASON_XDP`, where the kernel has it.
    fn xdp(&self) -> Option<u32>;
    /// The name of a reason, without its prefix.
    fn name(&self, number: u32) -> Option<String>;
}

/// A ledger and what goes beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The ledger.
    pub ledger: Ledger,
    /// Clones that were made.
    pub clones: u64,
    /// Remarks on what the kernel did silently.
    pub notes: Vec<String>,
}

impl Observation {
    fn sum(&self, event: u32, keep: impl Fn(&WatchKey) -> bool) -> u64 {
        self.events.iter().filter(|(key, _)| key.event == event && keep(key)).map(|(_, n)| n).sum()
    }

    fn at(&self, event: u32, slot: u32) -> u64 {
        self.sum(event, |key| key.slot == slot)
    }

    /// Copies handed to target `to` by the program at `from`, whether the target took them or not.
    fn copies(&self, from: u32, to: u32) -> u64 {
        let native = self.sum(event::DEVMAP_SENT, |k| k.slot == to && k.other == from)
            + self.sum(event::DEVMAP_DROP, |k| k.slot == to && k.other == from);
        if native > 0 {
            return native;
        }
        // Generic mode fires no devmap event: the frames that arrived behind the target, and those freed on the way.
        let Some(target) = self.ports.get(to as usize) else { return 0 };
        let arrived = target.peer.and_then(|peer| self.ports.get(peer as usize)).map_or(target.tx_packets, |peer| {
            if peer.driver_packets > 0 { peer.driver_packets } else { peer.rx_packets }
                .saturating_sub(peer.counters.foreign)
        });
        arrived + self.sum(event::FREE_TRANSMIT, |k| k.slot == to)
    }
}

/// Settles the account.
pub fn settle(seen: &Observation, reasons: &dyn DropReasons) -> Settled {
    let mut ledger = Ledger { offered: seen.offered, ..Ledger::default() };
    let mut clones = 0;
    let mut notes = Vec::new();
    let mut drops: BTreeMap<(String, bool, String), (u64, Explanation)> = BTreeMap::new();
    let mut add = |at: &str, by_verdict: bool, frames: u64, explanation: Explanation| {
        if frames > 0 {
            let key = (at.to_owned(), by_verdict, explanation.reason.clone());
            drops.entry(key).or_insert((0, explanation)).0 += frames;
        }
    };

    for (slot, port) in (0u32..).zip(&seen.ports) {
        let name = &port.state.port;
        let end = end_of(seen, slot, port, reasons);
        ledger.foreign += port.counters.foreign + end.foreign;
        if end.delivered > 0 || matches!(port.role, Role::Sink | Role::Xsk { .. }) {
            ledger.delivered.insert(name.clone(), end.delivered);
        }
        if port.role == Role::Sink {
            ledger.duplicated += port.counters.duplicated;
            ledger.reordered += port.counters.reordered;
        }
        if matches!(port.role, Role::Sink | Role::Drop | Role::Pass) {
            ledger.corrupted += port.counters.corrupted;
        }
        if let Role::Xsk { passes } = port.role {
            let received = &port.sockets.received;
            ledger.duplicated += received.duplicated;
            ledger.reordered += received.reordered;
            ledger.corrupted += received.corrupted;
            for (loss, frames) in sockets::losses(&port.counters, &port.sockets, passes) {
                add(name, false, frames, explain(loss, Some(&port.state), &|_| None));
            }
        }
        add(name, true, end.dropped, verdict("verdict"));
        add(name, true, port.egress_dropped, verdict("egress verdict"));

        if port.role == Role::OtherCpu && !port.native && end.delivered > 0 && port.egress_dropped > 0 {
            // kernel/bpf/cpumap.c, cpu_map_bpf_prog_run_skb: it returned at the first frame that it dropped or redirected.
            notes.push(format!(
                "{name}: in generic mode, kernels before 6.15 run a cpumap's program on no frame of a batch that comes \
                 after the first one that it drops: {} frames went to the stack unseen",
                end.delivered
            ));
        }
        let redirected = redirected(seen, slot, port);
        let copies: Vec<u64> = port.targets.iter().map(|to| seen.copies(slot, *to)).collect();
        let made: u64 = copies.iter().sum();
        clones += made.saturating_sub(redirected);
        if port.broadcasts {
            for (to, copies) in port.targets.iter().zip(&copies) {
                if *copies < redirected && *to != slot {
                    let target = seen.ports.get(*to as usize).map_or("a target", |t| t.state.port.as_str());
                    notes.push(format!(
                        "{name}: the kernel skipped {target} for {} of {redirected} frames",
                        redirected - copies
                    ));
                }
            }
            add(name, false, redirected.saturating_sub(made), explain(Loss::NoTarget, None, &|_| None));
        }
    }
    for (slot, loss, frames, target) in losses(seen, reasons) {
        let at = seen.ports.get(slot as usize).or_else(|| seen.ports.get(seen.from as usize));
        let at = at.map_or("the lab", |p| p.state.port.as_str());
        add(at, false, frames, explain(loss, target, &|n| reasons.name(n)));
    }
    let booked = |drops: &BTreeMap<_, (u64, Explanation)>| drops.values().map(|(frames, _)| frames).sum::<u64>();
    let ends = ledger.delivered.values().sum::<u64>() + booked(&drops);
    let missed: Vec<u64> = seen.ports.iter().map(|port| port.missed).collect();
    let of_the_labs = missed::of_the_labs(&missed, (ledger.offered + clones).saturating_sub(ends));
    for (port, frames) in seen.ports.iter().zip(of_the_labs).filter(|(_, frames)| *frames > 0) {
        let explanation = explain(Loss::Missed, Some(&port.state), &|_| None);
        drops.insert((port.state.port.clone(), false, explanation.reason.clone()), (frames, explanation));
    }
    ledger.dropped = drops
        .into_iter()
        .map(|((at, by_verdict, reason), (frames, e))| Dropped {
            at,
            reason,
            frames,
            by_verdict,
            cause: e.cause,
            fix: e.fix,
        })
        .collect();
    let ends: u64 = ledger.delivered.values().sum::<u64>() + ledger.dropped.iter().map(|d| d.frames).sum::<u64>();
    ledger.unaccounted = (ledger.offered + clones) as i64 - ends as i64;
    Settled { ledger, clones, notes }
}

/// Frames that the program at a port redirected, and the kernel did not refuse.
fn redirected(seen: &Observation, slot: u32, port: &PortObservation) -> u64 {
    match port.role {
        Role::User(_) => seen.at(event::REDIRECT, slot),
        Role::Forward if !port.targets.is_empty() => {
            let c = &port.counters;
            let refused = seen.at(event::REDIRECT_ERR, slot) + seen.at(event::EXCEPTION, slot);
            (c.ours + c.corrupted + c.foreign).saturating_sub(refused)
        }
        _ => 0,
    }
}

fn verdict(reason: &str) -> Explanation {
    Explanation { reason: reason.to_owned(), cause: None, fix: None }
}

/// How many frames ended at a port, by its program's verdict or in its stack.
struct End {
    delivered: u64,
    dropped: u64,
    foreign: u64,
}

fn end_of(seen: &Observation, slot: u32, port: &PortObservation, reasons: &dyn DropReasons) -> End {
    let own = port.counters.ours + port.counters.corrupted;
    let none = End { delivered: 0, dropped: 0, foreign: 0 };
    let exceptions = seen.at(event::EXCEPTION, slot);
    let received = seen.at(event::STACK_RECEIVE, slot);
    match port.role {
        Role::Sink | Role::Pass => End { delivered: own, ..none },
        Role::Drop => End { dropped: own, ..none },
        Role::Xsk { passes } => {
            let SocketReading { received, unclaimed, .. } = &port.sockets;
            let left = if passes { unclaimed.ours + unclaimed.corrupted } else { 0 };
            End { delivered: received.ours + received.corrupted + left, ..none }
        }
        Role::Forward => none,
        // A generic program's frames were received once before it ran.
        Role::OtherCpu if !port.native => End { delivered: received.saturating_sub(own), ..none },
        Role::Stack | Role::OtherCpu => End { delivered: received, ..none },
        Role::User(XdpMode::Native) => {
            let sent = port.peer.map_or(0, |peer| seen.at(event::DEVMAP_SENT, peer));
            let arrived = if port.peer == Some(seen.from) && sent == 0 { seen.offered } else { sent };
            let foreign = port.driver_packets.saturating_sub(arrived);
            // The driver can't tell whose frames it dropped; what came beyond the lab's own was not the lab's.
            let dropped = port.driver_drops.saturating_sub(exceptions).saturating_sub(foreign);
            End { delivered: received, dropped, foreign }
        }
        Role::User(XdpMode::Generic) => {
            // Kernels differ in whether a generic program's drop has a reason; the stack's own drops all have one.
            let by_program =
                |code: i32| matches!(reasons.name(code as u32).as_deref(), None | Some("XDP" | "NOT_SPECIFIED"));
            let freed = seen.sum(event::FREE_RECEIVE, |k| k.slot == slot && by_program(k.code));
            let failed = seen.at(event::REDIRECT_ERR, slot) + exceptions;
            // By XDP_TX, which fires no event in this mode: what arrives at the other end, and was not redirected there.
            let peer = port.peer.and_then(|peer| Some((peer, seen.ports.get(peer as usize)?)));
            let back = peer.map_or(0, |(peer, port)| match port.role {
                Role::Stack | Role::User(_) => seen.at(event::STACK_RECEIVE, peer),
                _ => port.counters.ours + port.counters.corrupted,
            });
            let sent_back = back.saturating_sub(seen.at(event::DEVMAP_SENT, slot));
            let gone = freed + seen.at(event::REDIRECT, slot) + sent_back;
            End { delivered: received.saturating_sub(gone), dropped: freed.saturating_sub(failed), foreign: 0 }
        }
    }
}

/// Losses that the kernel told of: where, how, how many, and what is known of the target.
fn losses<'a>(
    seen: &'a Observation,
    reasons: &'a dyn DropReasons,
) -> impl Iterator<Item = (u32, Loss, u64, Option<&'a Target>)> {
    let state = |slot: u32| seen.ports.get(slot as usize).map(|port| &port.state);
    let mut egress_left: BTreeMap<u32, u64> =
        (0u32..).zip(&seen.ports).map(|(slot, port)| (slot, port.egress_dropped)).collect();
    seen.events.iter().filter_map(move |(key, &frames)| {
        let slot = key.slot;
        match key.event {
            event::REDIRECT_ERR => {
                let program = seen.ports.get(slot as usize);
                // A socket counts what it drops itself; anything else went wrong before.
                let by_socket = matches!(-key.code, libc::ENOBUFS | libc::ENOMEM | libc::ENOSPC);
                if by_socket && program.is_some_and(|port| matches!(port.role, Role::Xsk { .. })) {
                    return None;
                }
                // The source's map has one target: the port that it sends from.
                let target = program
                    .map_or(Some(seen.from), |p| p.targets.get(key.other as usize).or(p.targets.first()).copied());
                Some((slot, Loss::Redirect(key.code), frames, target.and_then(state)))
            }
            event::EXCEPTION => Some((slot, Loss::Exception(key.code as u32), frames, None)),
            event::CPUMAP_DROP => {
                let native = seen.ports.get(slot as usize).is_some_and(|port| port.native);
                Some((slot, Loss::Cpumap, if native { frames } else { 0 }, None))
            }
            event::BULK_TX_DROP => Some((slot, Loss::BulkTx(key.code), frames, state(slot))),
            event::DEVMAP_DROP => {
                // The kernel counts what an egress program dropped among these, with errno 0.
                let egress = egress_left.get_mut(&slot).filter(|_| key.code == 0);
                let by_egress = egress.map_or(0, |left| {
                    let taken = frames.min(*left);
                    *left -= taken;
                    taken
                });
                Some((slot, Loss::Devmap(key.code), frames - by_egress, state(slot)))
            }
            event::FREE_TRANSMIT if reasons.xdp() != Some(key.code as u32) => {
                let port = seen.ports.get(slot as usize);
                // A native veth program frees the buffers that it drops like this too, before the stack has received
                // them. Only those that the sending device counts as well were lost on the way.
                let lost = match port.filter(|port| port.native) {
                    Some(port) => {
                        frames.min(port.peer.and_then(|p| seen.ports.get(p as usize)).map_or(0, |p| p.tx_dropped))
                    }
                    None => frames,
                };
                Some((slot, Loss::Freed(key.code as u32), lost, state(slot)))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoReasons;

    impl DropReasons for NoReasons {
        fn xdp(&self) -> Option<u32> {
            None
        }

        fn name(&self, _: u32) -> Option<String> {
            None
        }
    }

    fn port(name: &str, role: Role, ours: u64, missed: u64) -> PortObservation {
        PortObservation {
            role,
            counters: PortCounters { ours, ..PortCounters::default() },
            sockets: SocketReading::default(),
            driver_drops: 0,
            driver_packets: 0,
            native: true,
            tx_dropped: 0,
            tx_packets: 0,
            rx_packets: 0,
            missed,
            egress_dropped: 0,
            peer: None,
            targets: Vec::new(),
            broadcasts: false,
            state: Target { port: name.to_owned(), up: true, mtu: 1500, nic: true, peer: None },
        }
    }

    #[test]
    fn what_a_nic_missed_is_a_loss_of_its_own_and_no_more_than_is_lacking() {
        let settled = |arrived, missed| {
            let ports = vec![port("gen:tx0", Role::Stack, 0, 0), port("dut:rx0", Role::Drop, arrived, missed)];
            let seen = Observation { offered: 100, from: 0, ports, events: BTreeMap::new() };
            settle(&seen, &NoReasons).ledger
        };
        let ledger = settled(90, 25);
        assert_eq!((ledger.lost(), ledger.unaccounted), (10, 0));
        let row = ledger.dropped.iter().find(|row| !row.by_verdict).unwrap();
        assert_eq!((row.at.as_str(), row.reason.as_str(), row.frames), ("dut:rx0", "nic: missed", 10));
        assert!(row.cause.is_some() && row.fix.is_some());
        // Others' frames alone were missed.
        assert_eq!((settled(100, 25).lost(), settled(100, 25).unaccounted), (0, 0));
        // Fewer than are lacking: the rest stays without a name.
        assert_eq!((settled(90, 4).lost(), settled(90, 4).unaccounted), (10, 6));
    }
}

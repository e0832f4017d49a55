//! One reading of all counters, and the difference of two.
//!
//! Counters are read after traffic has come to rest: two counters read one after the other while it runs disagree.

use std::collections::BTreeMap;

use xdplab_wire::records::{PortCounters, WatchKey};

use super::missed::Counts;

/// The counters of one port at one moment; all of them only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortReading {
    /// What the lab's program there counted.
    pub counters: PortCounters,
    /// What the port's `AF_XDP` sockets did.
    pub sockets: SocketReading,
    /// Frames that an egress program of the lab dropped here.
    pub egress_dropped: u64,
    /// The driver's count of frames that its native program saw.
    pub driver_packets: u64,
    /// The driver's count of frames that its native program dropped.
    pub driver_drops: u64,
    /// The device's count of frames received.
    pub rx_packets: u64,
    /// The device's count of frames sent.
    pub tx_packets: u64,
    /// The device's count of frames that it failed to send.
    pub tx_dropped: u64,
    /// Frames that its NIC had no buffer for, by the place where they are counted.
    pub missed: Counts,
}

/// What became of the frames that a built-in `xsk` saw at one port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketReading {
    /// Frames taken from the sockets.
    pub received: PortCounters,
    /// Frames of queues without a socket.
    pub unclaimed: PortCounters,
    /// Frames that the kernel dropped since a receive ring was full, whosever they were.
    pub ring_full: u64,
    /// Frames that it dropped since a fill ring was empty, whosever they were.
    pub fill_empty: u64,
    /// Frames that it dropped at the sockets for any other reason.
    pub other: u64,
}

/// The counts of a program that were added; its stamps as they are.
fn counted(now: &PortCounters, then: &PortCounters) -> PortCounters {
    PortCounters {
        ours: less(now.ours, then.ours),
        corrupted: less(now.corrupted, then.corrupted),
        foreign: less(now.foreign, then.foreign),
        duplicated: less(now.duplicated, then.duplicated),
        reordered: less(now.reordered, then.reordered),
        first: now.first,
        last: now.last,
    }
}

/// What was added to a counter. One that was started anew in between counts from zero.
fn less(now: u64, then: u64) -> u64 {
    if now >= then { now - then } else { now }
}

impl PortReading {
    /// What was added since an earlier reading. A counter that was started anew in between counts from zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let (now, then) = (&self.sockets, &earlier.sockets);
        Self {
            counters: counted(&self.counters, &earlier.counters),
            sockets: SocketReading {
                received: counted(&now.received, &then.received),
                unclaimed: counted(&now.unclaimed, &then.unclaimed),
                ring_full: less(now.ring_full, then.ring_full),
                fill_empty: less(now.fill_empty, then.fill_empty),
                other: less(now.other, then.other),
            },
            egress_dropped: less(self.egress_dropped, earlier.egress_dropped),
            driver_packets: less(self.driver_packets, earlier.driver_packets),
            driver_drops: less(self.driver_drops, earlier.driver_drops),
            rx_packets: less(self.rx_packets, earlier.rx_packets),
            tx_packets: less(self.tx_packets, earlier.tx_packets),
            tx_dropped: less(self.tx_dropped, earlier.tx_dropped),
            missed: std::array::from_fn(|place| less(self.missed[place], earlier.missed[place])),
        }
    }
}

/// All counters of a lab at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// By slot.
    pub ports: Vec<PortReading>,
    /// The kernel's events.
    pub events: BTreeMap<WatchKey, u64>,
}

impl Reading {
    /// What was added since an earlier reading of the same lab.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let none = PortReading::default();
        let ports = self.ports.iter().enumerate();
        let ports = ports.map(|(n, now)| now.since(earlier.ports.get(n).unwrap_or(&none))).collect();
        let events = self.events.iter().map(|(key, now)| {
            let then = earlier.events.get(key).copied().unwrap_or(0);
            (*key, now.saturating_sub(then))
        });
        Self { ports, events: events.filter(|(_, n)| *n > 0).collect() }
    }
}

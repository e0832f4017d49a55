//! One reading of all counters, and the difference of two.
//!
//! Counters are read after traffic has come to rest: two counters read one after the other while it runs disagree.

use std::collections::BTreeMap;

use xdplab_wire::records::{PortCounters, WatchKey};

/// The counters of one port at one moment; all of them only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortReading {
    /// What the lab's program there counted.
    pub counters: PortCounters,
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
}

impl PortReading {
    /// What was added since an earlier reading. A counter that was started anew in between counts from zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: u64, then: u64| if now >= then { now - then } else { now };
        let (now, then) = (&self.counters, &earlier.counters);
        Self {
            counters: PortCounters {
                ours: less(now.ours, then.ours),
                corrupted: less(now.corrupted, then.corrupted),
                foreign: less(now.foreign, then.foreign),
                duplicated: less(now.duplicated, then.duplicated),
                reordered: less(now.reordered, then.reordered),
                first: now.first,
                last: now.last,
            },
            egress_dropped: less(self.egress_dropped, earlier.egress_dropped),
            driver_packets: less(self.driver_packets, earlier.driver_packets),
            driver_drops: less(self.driver_drops, earlier.driver_drops),
            rx_packets: less(self.rx_packets, earlier.rx_packets),
            tx_packets: less(self.tx_packets, earlier.tx_packets),
            tx_dropped: less(self.tx_dropped, earlier.tx_dropped),
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

//! A device's settings in numbers: queues, rings, coalescing, pause. Read only; `tuning` changes them.

use super::{Ethtool, Value};
use crate::host::HostError;

const GSET: u32 = 0x01;
const GCOALESCE: u32 = 0x0e;
const GRINGPARAM: u32 = 0x10;
const GPAUSEPARAM: u32 = 0x12;
const GCHANNELS: u32 = 0x3c;
const GPFLAGS: u32 = 0x27;

/// A device's settings; `None` where its driver has no such thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortSettings {
    /// Queues: receiving only, sending only, for both.
    pub queues: Option<[u32; 3]>,
    /// Most queues, in the same order.
    pub most_queues: Option<[u32; 3]>,
    /// Ring sizes: receiving, sending.
    pub rings: Option<[u32; 2]>,
    /// Largest ring sizes, in the same order.
    pub most_rings: Option<[u32; 2]>,
    /// Interrupt coalescing: microseconds and frames of receiving, the same of sending, adaptive receiving and sending.
    pub coalescing: Option<[u32; 6]>,
    /// Pause frames: negotiated, receiving, sending.
    pub pause: Option<[bool; 3]>,
    /// The driver's private flags, a bit each.
    pub private_flags: Option<u32>,
}

impl Ethtool {
    /// A device's settings. What its driver does not have is `None`, and so is everything where there is no such device.
    pub fn settings(&self, port: &str) -> PortSettings {
        // struct ethtool_channels: command, most rx, tx, other, combined, then the present ones.
        let channels = self.numbers::<9>(port, GCHANNELS, "read queues").ok();
        // struct ethtool_ringparam: command, most rx, mini, jumbo, tx, then the present ones.
        let rings = self.numbers::<9>(port, GRINGPARAM, "read rings").ok();
        PortSettings {
            queues: channels.map(|n| [n[5], n[6], n[8]]),
            most_queues: channels.map(|n| [n[1], n[2], n[4]]),
            rings: rings.map(|n| [n[5], n[8]]),
            most_rings: rings.map(|n| [n[1], n[4]]),
            // struct ethtool_coalesce: command, rx usecs, rx frames, both in interrupts, the same of tx, statistics,
            // adaptive rx and tx, and eleven for low and high rates.
            coalescing: self
                .numbers::<23>(port, GCOALESCE, "read coalescing")
                .ok()
                .map(|n| [n[1], n[2], n[5], n[6], n[10], n[11]]),
            // struct ethtool_pauseparam: command, autonegotiation, rx, tx.
            pause: self
                .numbers::<4>(port, GPAUSEPARAM, "read pause")
                .ok()
                .map(|n| [n[1], n[2], n[3]].map(|on| on != 0)),
            private_flags: self.private_flags(port).ok(),
        }
    }

    /// A device's speed in Mbit/s; `None` where it has none now, or its driver does not tell.
    pub fn speed(&self, port: &str) -> Option<u32> {
        // struct ethtool_cmd: command, supported, advertised, then 16 bits of speed; its upper 16 bits in the eighth word.
        let numbers = self.numbers::<11>(port, GSET, "read the speed").ok()?;
        let half = |word: u32| {
            let [a, b, ..] = word.to_ne_bytes();
            u32::from(u16::from_ne_bytes([a, b]))
        };
        let speed = half(numbers[7]) << 16 | half(numbers[3]);
        // SPEED_UNKNOWN, as 32 bits and as the 16 of old drivers.
        (speed != 0 && speed != u32::MAX && speed != u32::from(u16::MAX)).then_some(speed)
    }

    fn private_flags(&self, port: &str) -> Result<u32, HostError> {
        let mut value = Value { command: GPFLAGS, data: 0 };
        self.call(port, "read private flags", (&raw mut value).cast())?;
        Ok(value.data)
    }

    /// A structure of 32-bit numbers, of which the first is the command.
    pub(super) fn numbers<const N: usize>(
        &self,
        port: &str,
        command: u32,
        operation: &str,
    ) -> Result<[u32; N], HostError> {
        let mut numbers = [0; N];
        numbers[0] = command;
        self.call(port, operation, numbers.as_mut_ptr().cast())?;
        Ok(numbers)
    }
}

//! The records that BPF programs keep in maps and the lab reads. All are plain words in the host's order.
//!
//! A **slot** is a port's number within its lab. The lab gives its virtual ports the interface indices
//! [`IFINDEX_BASE`]` + slot`, so that one program attached in many namespaces can tell its ports apart by
//! `ingress_ifindex` alone.

/// Interface index of the lab's port 0. High enough that a namespace's own devices never reach it.
pub const IFINDEX_BASE: u32 = 1000;

/// Slot of a device that is watched but is no port: the generator's loopback, by which live frames come in.
pub const SLOT_SOURCE: u32 = 0xffff_0000;

/// Number of sequence numbers behind the newest that the sink's window remembers, per flow.
pub const WINDOW: u32 = 1024;

/// What `source` did: one record, written on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct SourceState {
    /// Frames made, ever.
    pub offered: u64,
    /// The flow of the next frame.
    pub flow: u32,
    /// The sequence number of the next frame.
    pub sequence: u32,
    /// The newest stamp, low 32 bits as written into markers.
    pub stamp: u32,
    /// Padding.
    pub pad: u32,
    /// Clock and frame count at the first stamp.
    pub first: Stamp,
    /// Clock and frame count at the newest stamp.
    pub last: Stamp,
}

/// A reading of the kernel's monotonic clock, with the number of frames counted before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Stamp {
    /// Nanoseconds.
    pub ns: u64,
    /// Frames.
    pub frames: u64,
}

/// What a counting program saw at one port, on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct PortCounters {
    /// Frames with a sound marker of this lab.
    pub ours: u64,
    /// Frames to the lab's UDP port, or with its instance, whose marker is broken.
    pub corrupted: u64,
    /// Frames of other origin.
    pub foreign: u64,
    /// Of `ours`, those already seen (sink only).
    pub duplicated: u64,
    /// Of `ours`, those that came after a younger one of their flow (sink only).
    pub reordered: u64,
    /// Clock and `ours` at the first stamp, one stamp every [`STAMP_EVERY`] frames (sink only).
    pub first: Stamp,
    /// Clock and `ours` at the newest stamp (sink only).
    pub last: Stamp,
}

/// The sink reads the clock once in this many frames.
pub const STAMP_EVERY: u64 = 64;

/// Laps that a source and a sink remember: one every [`STAMP_EVERY`] frames, the newest.
pub const LAPS: usize = 256;

/// When each of the last laps began: entry `n % LAPS` is that of lap `n`, which starts at frame `n * STAMP_EVERY`.
/// Low 32 bits of the kernel's monotonic clock in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Laps {
    /// The stamps.
    pub ns: [u32; LAPS],
}

impl Laps {
    /// The record's length in 64-bit words.
    pub const WORDS: usize = LAPS / 2;

    /// Notes that a lap begins. `frames` were counted before it.
    #[inline(always)]
    pub fn note(&mut self, frames: u64, ns: u64) {
        self.ns[(frames / STAMP_EVERY) as usize % LAPS] = ns as u32;
    }

    /// The stamps from the record's words.
    #[must_use]
    pub fn from_words(words: &[u64; Self::WORDS]) -> Self {
        let mut laps = Self { ns: [0; LAPS] };
        for (pair, word) in laps.ns.as_chunks_mut().0.iter_mut().zip(words) {
            let bytes = word.to_ne_bytes();
            *pair = [
                u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
                u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            ];
        }
        laps
    }
}

/// What the sink remembers of one flow at one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct FlowWindow {
    /// One more than the youngest sequence number seen; 0 before the first frame.
    pub next: u64,
    /// Which of the last [`WINDOW`] sequence numbers were seen: bit `n % 64` of word `n / 64 % 16`.
    pub seen: [u64; (WINDOW / 64) as usize],
}

/// How the lookups of `flow` ended, on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Lookups {
    /// Lookups that found an entry.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
}

/// Bytes that `peek` reads at once.
pub const PEEK: usize = 256;

/// What `watch` looks devices up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct DeviceKey {
    /// Inode number of the network namespace.
    pub netns: u32,
    /// Interface index in it.
    pub ifindex: u32,
}

/// What `watch` counts by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(C)]
pub struct WatchKey {
    /// One of the [`event`] numbers.
    pub event: u32,
    /// Slot of the port at which it happened.
    pub slot: u32,
    /// The event's code: an errno (negative), an XDP action, or a drop reason.
    pub code: i32,
    /// The event's second slot or detail, 0 where it has none.
    pub other: u32,
}

/// Events that `watch` counts.
pub mod event {
    /// `xdp_redirect_err`: slot: where the program ran; code: errno; other: index in the map.
    pub const REDIRECT_ERR: u32 = 1;
    /// `xdp_exception`: slot: where the program ran; code: the action.
    pub const EXCEPTION: u32 = 2;
    /// `xdp_devmap_xmit`, frames dropped: slot: target; code: errno, 0 where the ring was full or an egress program
    /// dropped; other: slot that they came from.
    pub const DEVMAP_DROP: u32 = 3;
    /// `xdp_devmap_xmit`, frames sent: slot: target; other: slot that they came from.
    pub const DEVMAP_SENT: u32 = 4;
    /// `xdp_redirect`: slot: where the program ran; other: index in the map.
    pub const REDIRECT: u32 = 5;
    /// `netif_receive_skb` of a frame with a sound marker: slot: where the stack got it.
    pub const STACK_RECEIVE: u32 = 6;
    /// `kfree_skb` of a frame with a sound marker on its way in (`skb_iif` is the device): code: the reason.
    pub const FREE_RECEIVE: u32 = 7;
    /// `kfree_skb` of a frame with a sound marker on its way out: code: the reason.
    pub const FREE_TRANSMIT: u32 = 8;
    /// `xdp_cpumap_enqueue`, frames dropped: slot: where the program runs that the map is of; code 0; other: CPU.
    pub const CPUMAP_DROP: u32 = 9;
    /// `xdp_bulk_tx`, frames dropped: slot: where the program ran; code: errno, 0 where the ring was full.
    pub const BULK_TX_DROP: u32 = 11;
    /// `napi_poll` that received something: slot: the device; other: what is counted.
    pub const POLL: u32 = 12;
    /// Of [`POLL`]: polls.
    pub const POLL_COUNT: u32 = 0;
    /// Of [`POLL`]: polls that used up their budget.
    pub const POLL_FULL: u32 = 1;
    /// Of [`POLL`]: frames.
    pub const POLL_FRAMES: u32 = 2;
}

impl PortCounters {
    /// The record's length in 64-bit words.
    pub const WORDS: usize = 9;

    /// The record from its words; missing ones are 0.
    #[must_use]
    pub fn from_words(words: &[u64]) -> Self {
        let word = |n: usize| words.get(n).copied().unwrap_or(0);
        Self {
            ours: word(0),
            corrupted: word(1),
            foreign: word(2),
            duplicated: word(3),
            reordered: word(4),
            first: Stamp { ns: word(5), frames: word(6) },
            last: Stamp { ns: word(7), frames: word(8) },
        }
    }

    /// The sum of two CPUs' records: the earliest of the first stamps, the latest of the last.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let first = match (self.first.ns, other.first.ns) {
            (0, _) => other.first,
            (_, 0) => self.first,
            (a, b) => {
                if a <= b {
                    self.first
                } else {
                    other.first
                }
            }
        };
        Self {
            ours: self.ours + other.ours,
            corrupted: self.corrupted + other.corrupted,
            foreign: self.foreign + other.foreign,
            duplicated: self.duplicated + other.duplicated,
            reordered: self.reordered + other.reordered,
            first,
            last: if self.last.ns >= other.last.ns { self.last } else { other.last },
        }
    }
}

impl SourceState {
    /// The record's length in 64-bit words.
    pub const WORDS: usize = 7;

    /// The record from its words.
    #[must_use]
    pub fn from_words(words: &[u64; Self::WORDS]) -> Self {
        Self {
            offered: words[0],
            flow: words[1].to_ne_bytes().first_chunk().map_or(0, |b| u32::from_ne_bytes(*b)),
            sequence: words[1].to_ne_bytes().last_chunk().map_or(0, |b| u32::from_ne_bytes(*b)),
            stamp: words[2].to_ne_bytes().first_chunk().map_or(0, |b| u32::from_ne_bytes(*b)),
            pad: 0,
            first: Stamp { ns: words[3], frames: words[4] },
            last: Stamp { ns: words[5], frames: words[6] },
        }
    }

    /// The record's words.
    #[must_use]
    pub fn to_words(&self) -> [u64; Self::WORDS] {
        let pair = |low: u32, high: u32| {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&low.to_ne_bytes());
            bytes[4..].copy_from_slice(&high.to_ne_bytes());
            u64::from_ne_bytes(bytes)
        };
        [
            self.offered,
            pair(self.flow, self.sequence),
            pair(self.stamp, 0),
            self.first.ns,
            self.first.frames,
            self.last.ns,
            self.last.frames,
        ]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn records_are_as_long_as_their_words() {
        assert_eq!(size_of::<PortCounters>(), PortCounters::WORDS * 8);
        assert_eq!(size_of::<SourceState>(), SourceState::WORDS * 8);
        assert_eq!(size_of::<FlowWindow>(), 8 + (WINDOW / 8) as usize);
        assert_eq!(size_of::<WatchKey>(), 16);
        assert_eq!(size_of::<Laps>(), Laps::WORDS * 8);
    }

    proptest! {
        #[test]
        fn laps_survive_their_words(ns in prop::collection::vec(any::<u32>(), LAPS)) {
            let laps = Laps { ns: ns.try_into().expect("as many as there are laps") };
            let pairs: Vec<u64> = laps
                .ns
                .chunks_exact(2)
                .map(|pair| {
                    let bytes = [pair[0].to_ne_bytes(), pair[1].to_ne_bytes()].concat();
                    u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
                })
                .collect();
            prop_assert_eq!(Laps::from_words(&pairs.try_into().expect("half as many words")), laps);
        }

        #[test]
        fn a_source_state_survives_its_words(offered: u64, flow: u32, sequence: u32, stamp: u32, ns: u64, frames: u64) {
            let first = Stamp { ns, frames };
            let state = SourceState { offered, flow, sequence, stamp, pad: 0, first, last: Stamp { ns: frames, frames: ns } };
            prop_assert_eq!(SourceState::from_words(&state.to_words()), state);
        }
    }
}

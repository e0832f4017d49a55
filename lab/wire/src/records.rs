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

/// What the sink remembers of one flow at one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct FlowWindow {
    /// One more than the youngest sequence number seen; 0 before the first frame.
    pub next: u64,
    /// Which of the last [`WINDOW`] sequence numbers were seen: bit `n % 64` of word `n / 64 % 16`.
    pub seen: [u64; (WINDOW / 64) as usize],
}

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
    /// `xdp_cpumap_enqueue`, frames dropped: slot 0; code 0; other: CPU.
    pub const CPUMAP_DROP: u32 = 9;
    /// `xdp_bulk_tx`, frames dropped: slot: where the program ran; code: errno, 0 where the ring was full.
    pub const BULK_TX_DROP: u32 = 11;
    /// `mm_page_alloc` on the pinned CPU with the clone's GFP value: slot 0.
    pub const CLONE_PAGE: u32 = 10;
}

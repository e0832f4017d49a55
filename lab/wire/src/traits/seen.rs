//! What the checking programs find, by place.

/// Ports that are told apart at each place.
pub const SLOTS: usize = 16;
/// Number of places.
pub const PLACES: usize = 6;

/// In the program that wrote the traits, read back at once.
pub const SET: usize = 0;
/// In an XDP program where the frame is received.
pub const XDP: usize = 1;
/// The same, in the program that then writes other values.
pub const WRITE: usize = 2;
/// In an egress program of a devmap; the slot is that of the device it leaves by.
pub const DEVMAP: usize = 3;
/// In a program of a cpumap; the slot is that of the device that it came by.
pub const CPUMAP: usize = 4;
/// At the traffic control hook.
pub const TC: usize = 5;

/// What was found at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Seen {
    /// All frames.
    pub frames: u64,
    /// Frames with the traits that were written.
    pub intact: u64,
    /// Frames with sound metadata in which a trait is missing, or has another value.
    pub changed: u64,
    /// Frames without metadata.
    pub absent: u64,
    /// Frames with metadata that is no set of traits.
    pub broken: u64,
}

impl Seen {
    /// The record's length in 64-bit words.
    pub const WORDS: usize = 5;

    /// The sum of the records of several CPUs, given as words.
    #[must_use]
    pub fn sum(words: &[u64]) -> Self {
        let field = |n: usize| words.iter().skip(n).step_by(Self::WORDS).sum();
        Self { frames: field(0), intact: field(1), changed: field(2), absent: field(3), broken: field(4) }
    }
}

//! How the measuring programs are told what to do, and what they note.

/// Operations of a round, an even number. The verifier walks through all of them.
pub const INNER: usize = 8;

/// The same where values are moved by bytes, which takes the verifier long: also an even number.
pub const INNER_BYTES: usize = 2;

/// Elements for which the kernel calls a function.
pub const ELEMENTS: usize = 4096;

/// A measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Timing {
    /// Rounds to run, of [`INNER`] operations each.
    pub rounds: u64,
    /// The key that is worked on; of a tail call, the index in the program array.
    pub key: u64,
    /// How many bytes are moved.
    pub length: u64,
    /// The clock at the start, where another program reads it at the end.
    pub start: u64,
    /// Nanoseconds that it took.
    pub ns: u64,
    /// Operations that were run in them.
    pub times: u64,
    /// What the operations gave, so that none is left out.
    pub sum: u64,
}

impl Timing {
    /// The record's length in 64-bit words.
    pub const WORDS: usize = 7;

    /// The record's words.
    #[must_use]
    pub fn to_words(&self) -> [u64; Self::WORDS] {
        [self.rounds, self.key, self.length, self.start, self.ns, self.times, self.sum]
    }

    /// The record from its words.
    #[must_use]
    pub fn from_words(words: &[u64; Self::WORDS]) -> Self {
        let [rounds, key, length, start, ns, times, sum] = *words;
        Self { rounds, key, length, start, ns, times, sum }
    }
}

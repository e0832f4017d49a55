//! What traits must do, as one would write it down: a map of keys to bytes. For the tests, of user space and of the
//! kernel alike.

use std::collections::BTreeMap;

use xdplab_wire::traits::{Error, GRAIN, Header};

/// An operation.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Op {
    /// Reads a value.
    Get { key: u8 },
    /// Gives a value.
    Set { key: u8, length: usize, bits: u64 },
    /// Takes a value away.
    Delete { key: u8 },
    /// Gives spare bytes back.
    Trim,
    /// Finds the first key from one on.
    Next { from: u8 },
}

/// An answer: a length and bits for a get, the spare bytes for a trim, whether there is a key and which for a next.
pub(crate) type Answer = Result<(usize, u64), Error>;

/// A set of traits in metadata that can grow up to a capacity.
#[derive(Debug)]
pub(crate) struct Model {
    values: BTreeMap<u8, Vec<u8>>,
    room: usize,
    capacity: usize,
}

impl Model {
    /// An empty set, right after it was made.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { values: BTreeMap::new(), room: Header::LEN, capacity }
    }

    /// Length of the metadata.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// The bytes that header and values must have.
    pub(crate) fn layout(&self) -> Vec<u8> {
        let (mut high, mut low) = (0u64, 0u64);
        for (key, value) in &self.values {
            let (h, l) = match value.len() {
                2 => (0, 1),
                4 => (1, 0),
                _ => (1, 1),
            };
            high |= h << key;
            low |= l << key;
        }
        let mut bytes = [high.to_le_bytes(), low.to_le_bytes()].concat();
        bytes.extend(self.values.values().flatten());
        bytes
    }

    /// Does an operation.
    pub(crate) fn run(&mut self, op: &Op) -> Answer {
        match *op {
            Op::Get { key } => {
                let value = self.values.get(&key).ok_or(Error::NoValue { key })?;
                let mut bits = [0; 8];
                bits[..value.len()].copy_from_slice(value);
                Ok((value.len(), u64::from_le_bytes(bits)))
            }
            Op::Set { key, length, bits } => {
                let old = self.values.get(&key).map_or(0, Vec::len);
                let asked = self.total() - old + length;
                if asked > self.room {
                    // The room is a multiple of the grain from the start.
                    let room = asked.next_multiple_of(GRAIN);
                    if room > self.capacity {
                        return Err(Error::NoRoom { asked, room: self.room });
                    }
                    self.room = room;
                }
                self.values.insert(key, bits.to_le_bytes()[..length].to_vec());
                Ok((0, 0))
            }
            Op::Delete { key } => self.values.remove(&key).map(|_| (0, 0)).ok_or(Error::NoValue { key }),
            Op::Trim => {
                let spare = (self.room - self.total()) / GRAIN * GRAIN;
                self.room -= spare;
                Ok((spare, 0))
            }
            Op::Next { from } => {
                Ok(self.values.keys().find(|key| **key >= from).map_or((0, 0), |key| (1, (*key).into())))
            }
        }
    }

    fn total(&self) -> usize {
        Header::LEN + self.values.values().map(Vec::len).sum::<usize>()
    }
}

/// A random sequence of operations (xorshift): a seed gives the same one everywhere.
pub(crate) fn sequence(seed: u64, length: usize) -> Vec<Op> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // A few keys often, so that they meet again; others where the sequence is of the other kind, so that it gets full.
    let (few, mostly_sets) = (next() >> 40 & 1 == 1, next() >> 40 & 1 == 1);
    let key = |random: u64| if few { [0, 1, 7, 31, 32, 62, 63][random as usize % 7] } else { (random % 64) as u8 };
    (0..length)
        .map(|_| {
            let (kind, key, random, bits) = (next() >> 40, key(next() >> 40), next() >> 40, next());
            match kind % if mostly_sets { 40 } else { 16 } {
                0..3 => Op::Get { key },
                3..6 => Op::Delete { key },
                6 => Op::Trim,
                7 => Op::Next { from: key },
                _ if mostly_sets && random & 8 != 0 => Op::Set { key, length: 8, bits },
                _ => Op::Set { key, length: [2, 4, 8][random as usize % 3], bits },
            }
        })
        .collect()
}

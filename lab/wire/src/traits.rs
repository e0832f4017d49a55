//! Traits: a key-value store of a packet, in the metadata in front of its data.
//!
//! ```text
//!   data_meta                                                      data
//!   | high (8) | low (8) | value of the lowest key | next | … | spare |
//! ```
//!
//! 64 keys, each with a value of 2, 4 or 8 bytes or none. Bit k of the two header words holds the length of key k:
//! `high:low` is 00 for none, 01 for 2 bytes, 10 for 4, 11 for 8. The values follow in the keys' order, without gaps.
//! Everything is little-endian. Metadata is as long as a multiple of 4 bytes, so that up to 3 bytes behind the values
//! are spare; what a shorter or deleted value leaves is spare as well, until [`trim`].
//!
//! The operations are written once, over a [`Store`]: bytes in user space, packet memory in a BPF program.

pub mod bench;
mod header;
#[cfg(test)]
mod model;
mod moving;
pub mod script;
pub mod seen;
mod slice;
#[cfg(test)]
mod tests;

use core::fmt;

pub use header::{Header, KEYS, Keys};
pub use moving::{Bytes, Mover, Words};
pub use slice::{Area, Word};

/// Metadata is as long as a multiple of this many bytes: `bpf_xdp_adjust_meta` takes nothing else.
pub const GRAIN: usize = 4;

/// Memory that holds traits. Offsets count from its first byte.
pub trait Store {
    /// The bits that lengths and offsets within the memory have. The BPF verifier can't follow all of the arithmetic:
    /// this is the bound that it sees.
    const MASK: usize = 0x3ff;

    /// The value itself. In BPF, hidden from the compiler: what it knows of a value it uses for arithmetic that the
    /// verifier can't follow, so that it sees no end to a loop.
    #[inline(always)]
    fn hidden(value: usize) -> usize {
        value
    }

    /// The memory's length in bytes.
    fn room(&self) -> usize;

    /// Reads at an offset; `None` where that reaches beyond the memory.
    fn load<T: Word>(&self, at: usize) -> Option<T>;

    /// Writes at an offset; `None` where that reaches beyond the memory.
    fn store<T: Word>(&mut self, at: usize, value: T) -> Option<()>;

    /// Makes the memory longer by some bytes, a multiple of [`GRAIN`], at its front: what was at offset 0 is then at
    /// `bytes`. `None` where there is no such room; nothing has changed then.
    fn grow(&mut self, bytes: usize) -> Option<()>;

    /// Takes some bytes, a multiple of [`GRAIN`], off its front. `None` where it has no such bytes.
    fn shrink(&mut self, bytes: usize) -> Option<()>;
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// Its length in bytes: 2, 4 or 8.
    pub length: usize,
    /// Its bits, the lowest `8 * length` of them.
    pub bits: u64,
}

/// Why an operation did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// There is no such key in the format: they end at 63.
    BadKey {
        /// The key.
        key: u8,
    },
    /// No value has this length: it is 2, 4 or 8 bytes.
    BadLength {
        /// The length asked for.
        length: usize,
    },
    /// The key has no value.
    NoValue {
        /// The key.
        key: u8,
    },
    /// The metadata can't grow as far.
    NoRoom {
        /// Bytes that header and values would take.
        asked: usize,
        /// Bytes that there are.
        room: usize,
    },
    /// There is no metadata.
    Absent,
    /// The metadata is shorter than its header, or than what its header says.
    Broken,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadKey { key } => write!(f, "key {key} is none of 0 to 63"),
            Self::BadLength { length } => write!(f, "a value has 2, 4 or 8 bytes, not {length}"),
            Self::NoValue { key } => write!(f, "key {key} has no value"),
            Self::NoRoom { asked, room } => write!(
                f,
                "the traits would take {asked} bytes, and the metadata has {room} and can't grow: delete some, or leave more headroom"
            ),
            Self::Absent => write!(f, "the packet has no metadata: make some first"),
            Self::Broken => write!(f, "the metadata holds no traits, or was cut: it is shorter than its header says"),
        }
    }
}

impl core::error::Error for Error {}

/// Makes an empty set of traits, whatever the metadata held.
///
/// # Errors
/// [`Error::NoRoom`] where there is no metadata, nor room for a header.
#[inline(always)]
pub fn init<S: Store>(store: &mut S) -> Result<(), Error> {
    let room = store.room();
    if room < Header::LEN {
        let missing = (Header::LEN - room) & 0x1f;
        store.grow(missing).ok_or(Error::NoRoom { asked: Header::LEN, room })?;
    }
    Header::default().write(store)
}

/// Looks whether the metadata holds what its header says: the header, where it does.
///
/// # Errors
/// [`Error::Absent`] and [`Error::Broken`].
#[inline(always)]
pub fn check<S: Store>(store: &S) -> Result<Header, Error> {
    let header = Header::read(store)?;
    if header.total() > store.room() {
        return Err(Error::Broken);
    }
    Ok(header)
}

/// Reads a key's value.
///
/// # Errors
/// [`Error::NoValue`] where it has none; [`Error::Broken`] where it would lie beyond the metadata.
#[inline(always)]
pub fn get<S: Store>(store: &S, key: u8) -> Result<Value, Error> {
    let header = read(store, key)?;
    let length = header.length(key);
    if length == 0 {
        return Err(Error::NoValue { key });
    }
    // The eight bytes up to the value's end: the header lies in front, so they are always there, whatever the length.
    let word: u64 = store.load(header.end(key) - 8).ok_or(Error::Broken)?;
    Ok(Value { length, bits: word >> (64 - 8 * length) })
}

/// Gives a key a value: a new one, or another in place of what it has, of the same or of another length. Of `bits`,
/// the lowest `8 * length` count.
///
/// # Errors
/// [`Error::NoRoom`] where the metadata is too short and can't grow; nothing has changed then.
#[inline(always)]
pub fn set<M: Mover, S: Store>(store: &mut S, key: u8, length: usize, bits: u64) -> Result<(), Error> {
    if !matches!(length, 2 | 4 | 8) {
        return Err(Error::BadLength { length });
    }
    let header = read(store, key)?;
    let old = header.length(key);
    let end = header.end(key);
    if old == length {
        return write_value(store, end - old, length, bits);
    }
    resize::<M, S>(store, header, key, old, length)?;
    write_value(store, end - old, length, bits)
}

/// Takes a key's value away. The metadata stays as long as it is.
///
/// # Errors
/// [`Error::NoValue`] where it has none.
#[inline(always)]
pub fn delete<M: Mover, S: Store>(store: &mut S, key: u8) -> Result<(), Error> {
    let header = read(store, key)?;
    let old = header.length(key);
    if old == 0 {
        return Err(Error::NoValue { key });
    }
    resize::<M, S>(store, header, key, old, 0)
}

/// Gives spare bytes back, as far as the metadata's grain lets: how many they were.
///
/// # Errors
/// [`Error::Absent`] and [`Error::Broken`].
#[inline(always)]
pub fn trim<M: Mover, S: Store>(store: &mut S) -> Result<usize, Error> {
    let header = check(store)?;
    let total = header.total();
    let spare = (store.room() - total) & (S::MASK & !(GRAIN - 1));
    if spare > 0 {
        M::up(store, 0, spare, total & S::MASK).ok_or(Error::Broken)?;
        store.shrink(spare).ok_or(Error::Broken)?;
    }
    Ok(spare)
}

/// The header, for an operation on a key.
#[inline(always)]
fn read<S: Store>(store: &S, key: u8) -> Result<Header, Error> {
    if usize::from(key) >= KEYS {
        return Err(Error::BadKey { key });
    }
    Header::read(store)
}

/// Writes a value. A branch over its length, which a program mostly knows beforehand: without one it would have to read
/// what lies in front, and wait for it where that was just moved there.
#[inline(always)]
fn write_value<S: Store>(store: &mut S, at: usize, length: usize, bits: u64) -> Result<(), Error> {
    let written = match length {
        2 => store.store(at, bits as u16),
        4 => store.store(at, bits as u32),
        _ => store.store(at, bits),
    };
    written.ok_or(Error::Broken)
}

/// Makes a key's place longer or shorter: moves what lies behind it, and what lies in front where the metadata grows.
#[inline(always)]
fn resize<M: Mover, S: Store>(store: &mut S, header: Header, key: u8, old: usize, length: usize) -> Result<(), Error> {
    let (total, end, room) = (header.total(), header.end(key), store.room());
    if total > room {
        return Err(Error::Broken);
    }
    let asked = total - old + length;
    let mut grown = 0;
    if asked > room {
        // At most 8 bytes are missing.
        grown = (asked - room).next_multiple_of(GRAIN) & 0xc;
        store.grow(grown).ok_or(Error::NoRoom { asked, room })?;
        M::down(store, grown, 0, (end - old) & S::MASK).ok_or(Error::Broken)?;
    }
    // What lies behind goes down by what the metadata grew, and up by what the value did.
    let (from, to, behind) = (grown + end, end - old + length, total.wrapping_sub(end) & S::MASK);
    if to > from { M::up(store, from, to, behind) } else { M::down(store, from, to, behind) }.ok_or(Error::Broken)?;
    header.with(key, length).write(store)
}

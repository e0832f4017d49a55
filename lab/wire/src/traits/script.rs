//! Operations and answers as 64-bit words in maps: how a script of operations reaches a BPF program and comes back.

use super::{Error, Mover, Store, Value, check, delete, get, set, trim};

/// Most operations of a script.
pub const MOST_STEPS: usize = 64;

/// An operation, in two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Step {
    /// One of the constants of [`op`] in bits 0 to 7, the key in bits 8 to 15, the length in bytes above.
    pub what: u64,
    /// The value's bits.
    pub bits: u64,
}

/// What a [`Step`] does.
pub mod op {
    /// Reads a key's value.
    pub const GET: u8 = 0;
    /// Gives a key a value.
    pub const SET: u8 = 1;
    /// Takes a key's value away.
    pub const DELETE: u8 = 2;
    /// Gives spare bytes back.
    pub const TRIM: u8 = 3;
    /// Finds the first key from one on.
    pub const NEXT: u8 = 4;
}

impl Step {
    /// A step that does `op`.
    #[must_use]
    pub const fn new(op: u8, key: u8, length: u16, bits: u64) -> Self {
        Self { what: op as u64 | (key as u64) << 8 | (length as u64) << 16, bits }
    }

    /// Runs the step on a store.
    #[inline(always)]
    pub fn run<M: Mover, S: Store>(self, store: &mut S) -> Answer {
        let (key, length) = ((self.what >> 8) as u8, (self.what >> 16) as u16 as usize);
        let answer = match self.what as u8 {
            op::GET => get(store, key).map(|Value { length, bits }| (length, bits)),
            op::SET => set::<M, S>(store, key, length, self.bits).map(|()| (0, 0)),
            op::DELETE => delete::<M, S>(store, key).map(|()| (0, 0)),
            op::TRIM => trim::<M, S>(store).map(|spare| (spare, 0)),
            _ => check(store).map(|header| header.next(key).map_or((0, 0), |key| (1, u64::from(key)))),
        };
        Answer::of(answer)
    }
}

/// An answer, in three words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Answer {
    /// 0 where it went well; else which error.
    pub status: u64,
    /// Of a get, the length; of a trim, the spare bytes; of a next, 1 where there is a key. Of an error, its first
    /// number.
    pub first: u64,
    /// Of a get, the bits; of a next, the key. Of [`Error::NoRoom`], the room.
    pub second: u64,
}

impl Answer {
    /// The words of an answer.
    #[inline(always)]
    #[must_use]
    pub fn of(answer: Result<(usize, u64), Error>) -> Self {
        let (status, first, second) = match answer {
            Ok((first, second)) => (0, first as u64, second),
            Err(Error::BadKey { key }) => (1, u64::from(key), 0),
            Err(Error::BadLength { length }) => (2, length as u64, 0),
            Err(Error::NoValue { key }) => (3, u64::from(key), 0),
            Err(Error::NoRoom { asked, room }) => (4, asked as u64, room as u64),
            Err(Error::Absent) => (5, 0, 0),
            Err(Error::Broken) => (6, 0, 0),
        };
        Self { status, first, second }
    }
}

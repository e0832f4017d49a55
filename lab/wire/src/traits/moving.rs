//! Moving values within the metadata, by bytes and by words.

use super::{Store, Word};

/// A way to move bytes within a store, also where source and destination overlap. Lengths are even but for [`Bytes`];
/// `None` where source or destination reaches beyond the store.
pub trait Mover {
    /// Moves `length` bytes to a lower offset.
    fn down<S: Store>(store: &mut S, from: usize, to: usize, length: usize) -> Option<()>;

    /// Moves `length` bytes to a higher offset.
    fn up<S: Store>(store: &mut S, from: usize, to: usize, length: usize) -> Option<()>;
}

/// Moves byte by byte.
#[derive(Debug, Clone, Copy)]
pub struct Bytes;

/// Moves by blocks of four 64-bit words. What is left over goes first, as two words of 128, 64 or 32 bits that overlap.
/// A block, and what is left over, is read as a whole before it is written, so that an overlap does no harm.
#[derive(Debug, Clone, Copy)]
pub struct Words;

/// Length of a block.
const BLOCK: usize = 32;

impl Mover for Bytes {
    #[inline(always)]
    fn down<S: Store>(store: &mut S, from: usize, to: usize, length: usize) -> Option<()> {
        let mut done = 0;
        while done < length {
            copy::<u8, S>(store, from + done, to + done)?;
            done = S::hidden(done + 1);
        }
        Some(())
    }

    #[inline(always)]
    fn up<S: Store>(store: &mut S, from: usize, to: usize, length: usize) -> Option<()> {
        let mut left = length;
        while left > 0 {
            left = S::hidden(left - 1);
            copy::<u8, S>(store, from + left, to + left)?;
        }
        Some(())
    }
}

impl Mover for Words {
    #[inline(always)]
    fn down<S: Store>(store: &mut S, from: usize, to: usize, length: usize) -> Option<()> {
        let mut done = length % BLOCK;
        small(store, from, to, done)?;
        let mut left = length - done;
        while left >= BLOCK {
            copy::<[u64; 4], S>(store, from + done, to + done)?;
            (done, left) = (done + BLOCK, S::hidden(left - BLOCK));
        }
        Some(())
    }

    #[inline(always)]
    fn up<S: Store>(store: &mut S, from: usize, to: usize, length: usize) -> Option<()> {
        let over = length % BLOCK;
        let mut left = length - over;
        small(store, from + left, to + left, over)?;
        while left >= BLOCK {
            left = S::hidden(left - BLOCK);
            copy::<[u64; 4], S>(store, from + left, to + left)?;
        }
        Some(())
    }
}

/// Moves less than a block. Few branches, and none of them one after the other: the verifier follows each way.
#[inline(always)]
fn small<S: Store>(store: &mut S, from: usize, to: usize, length: usize) -> Option<()> {
    if length >= 16 {
        both_ends::<[u64; 2], S>(store, from, to, length - 16)
    } else if length == 8 {
        // One value of the longest kind: most moves, and half the work.
        copy::<u64, S>(store, from, to)
    } else if length > 8 {
        both_ends::<u64, S>(store, from, to, length - 8)
    } else if length >= 4 {
        both_ends::<u32, S>(store, from, to, length - 4)
    } else if length >= 2 {
        copy::<u16, S>(store, from, to)
    } else {
        Some(())
    }
}

/// Moves a word, and another that lies `apart` bytes behind it.
#[inline(always)]
fn both_ends<T: Word, S: Store>(store: &mut S, from: usize, to: usize, apart: usize) -> Option<()> {
    let first: T = store.load(from)?;
    let last: T = store.load(from + apart)?;
    store.store(to, first)?;
    store.store(to + apart, last)
}

#[inline(always)]
fn copy<T: Word, S: Store>(store: &mut S, from: usize, to: usize) -> Option<()> {
    let value: T = store.load(from)?;
    store.store(to, value)
}

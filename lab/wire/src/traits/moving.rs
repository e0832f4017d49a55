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

/// Moves by blocks of four 64-bit words, and what is left by 16, 8, 4 and 2 bytes. A block is read as a whole before it
/// is written, so that an overlap within it does no harm.
#[derive(Debug, Clone, Copy)]
pub struct Words;

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
    fn down<S: Store>(store: &mut S, mut from: usize, mut to: usize, length: usize) -> Option<()> {
        let mut left = length;
        while left >= 32 {
            copy::<[u64; 4], S>(store, from, to)?;
            (from, to, left) = (from + 32, to + 32, S::hidden(left - 32));
        }
        if left & 16 != 0 {
            copy::<[u64; 2], S>(store, from, to)?;
            (from, to) = (from + 16, to + 16);
        }
        if left & 8 != 0 {
            copy::<u64, S>(store, from, to)?;
            (from, to) = (from + 8, to + 8);
        }
        if left & 4 != 0 {
            copy::<u32, S>(store, from, to)?;
            (from, to) = (from + 4, to + 4);
        }
        if left & 2 != 0 {
            copy::<u16, S>(store, from, to)?;
        }
        Some(())
    }

    #[inline(always)]
    fn up<S: Store>(store: &mut S, from: usize, to: usize, length: usize) -> Option<()> {
        let mut left = length;
        while left >= 32 {
            left = S::hidden(left - 32);
            copy::<[u64; 4], S>(store, from + left, to + left)?;
        }
        // The highest bytes first.
        if left & 16 != 0 {
            copy::<[u64; 2], S>(store, from + (left & 15), to + (left & 15))?;
        }
        if left & 8 != 0 {
            copy::<u64, S>(store, from + (left & 7), to + (left & 7))?;
        }
        if left & 4 != 0 {
            copy::<u32, S>(store, from + (left & 3), to + (left & 3))?;
        }
        if left & 2 != 0 {
            copy::<u16, S>(store, from, to)?;
        }
        Some(())
    }
}

#[inline(always)]
fn copy<T: Word, S: Store>(store: &mut S, from: usize, to: usize) -> Option<()> {
    let value: T = store.load(from)?;
    store.store(to, value)
}

//! Traits in user space: the words that a store takes, and a store on a slice.

use super::{GRAIN, Store};

/// What a store reads and writes at once. In memory all are little-endian, without alignment.
pub trait Word: Copy + sealed::Sealed {
    /// Reads from the front of some bytes.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// Writes to the front of some bytes.
    fn write(self, bytes: &mut [u8]) -> Option<()>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! word {
    ($($int:ty),*) => {$(
        impl sealed::Sealed for $int {}
        impl Word for $int {
            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|chunk| Self::from_le_bytes(*chunk))
            }
            fn write(self, bytes: &mut [u8]) -> Option<()> {
                *bytes.first_chunk_mut()? = self.to_le_bytes();
                Some(())
            }
        }
    )*};
}

word!(u8, u16, u32, u64);

impl<const N: usize> sealed::Sealed for [u64; N] {}
impl<const N: usize> Word for [u64; N] {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut words = [0; N];
        for (n, word) in words.iter_mut().enumerate() {
            *word = u64::read(bytes.get(8 * n..)?)?;
        }
        Some(words)
    }
    fn write(self, bytes: &mut [u8]) -> Option<()> {
        let bytes = bytes.get_mut(..8 * N)?;
        bytes.chunks_exact_mut(8).zip(self).try_for_each(|(chunk, word)| word.write(chunk))
    }
}

/// A store in the rear of a slice: it grows to the front, as metadata does into the headroom.
#[derive(Debug)]
pub struct Area<'a> {
    memory: &'a mut [u8],
    start: usize,
}

impl<'a> Area<'a> {
    /// The last `length` bytes of some memory; `None` where that is shorter.
    pub fn new(memory: &'a mut [u8], length: usize) -> Option<Self> {
        let start = memory.len().checked_sub(length)?;
        Some(Self { memory, start })
    }

    /// The metadata.
    pub fn bytes(&self) -> &[u8] {
        self.memory.get(self.start..).unwrap_or_default()
    }
}

impl Store for Area<'_> {
    fn room(&self) -> usize {
        self.memory.len() - self.start
    }

    fn load<T: Word>(&self, at: usize) -> Option<T> {
        T::read(self.bytes().get(at..)?)
    }

    fn store<T: Word>(&mut self, at: usize, value: T) -> Option<()> {
        value.write(self.memory.get_mut(self.start..)?.get_mut(at..)?)
    }

    fn grow(&mut self, bytes: usize) -> Option<()> {
        if !bytes.is_multiple_of(GRAIN) {
            return None;
        }
        self.start = self.start.checked_sub(bytes)?;
        Some(())
    }

    fn shrink(&mut self, bytes: usize) -> Option<()> {
        if !bytes.is_multiple_of(GRAIN) || bytes > self.room() {
            return None;
        }
        self.start += bytes;
        Some(())
    }
}

//! The header: which keys have values, how long, and where they lie.

use super::{Error, Store};

/// Number of keys: 0 to 63.
pub const KEYS: usize = 64;

/// The header: bit k of each word belongs to key k.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Header {
    /// The upper bits of the lengths' codes.
    pub high: u64,
    /// The lower bits.
    pub low: u64,
}

const PAIRS: u64 = 0x5555_5555_5555_5555;
const NIBBLES: u64 = 0x3333_3333_3333_3333;
const BYTES: u64 = 0x0f0f_0f0f_0f0f_0f0f;
const SUM: u64 = 0x0101_0101_0101_0101;

/// Bits set in each half-byte: the first two steps of counting bits within a register (Warren, Hacker's Delight, 5-1).
/// BPF has no instruction for it.
#[inline(always)]
const fn nibbles(bits: u64) -> u64 {
    let pairs = bits - ((bits >> 1) & PAIRS);
    (pairs & NIBBLES) + ((pairs >> 2) & NIBBLES)
}

/// Bytes that the values of a header's keys take: 2 for each low bit, 4 for each high bit, and 2 more for both. The
/// first and the last are counted as one: a half-byte has room for the sum.
#[inline(always)]
const fn bytes(high: u64, low: u64) -> usize {
    let twos = nibbles(low) + nibbles(high & low);
    let twos = (twos & BYTES) + ((twos >> 4) & BYTES);
    let fours = nibbles(high);
    let fours = (fours + (fours >> 4)) & BYTES;
    let sum = (twos.wrapping_mul(SUM) >> 56) + 2 * (fours.wrapping_mul(SUM) >> 56);
    2 * sum as usize
}

impl Header {
    /// Its length in bytes.
    pub const LEN: usize = 16;

    /// The length of a key's value in bytes, 0 for none. The key is below [`KEYS`].
    #[inline(always)]
    pub const fn length(self, key: u8) -> usize {
        let code = (((self.high >> key) & 1) << 1) | ((self.low >> key) & 1);
        // Codes 0 to 3 are 0, 2, 4 and 8 bytes.
        (1 << code) & 0xe
    }

    /// Offset of the first byte behind a key's value, or behind where it would be. The key is below [`KEYS`].
    #[inline(always)]
    pub const fn end(self, key: u8) -> usize {
        let above = 63 - key;
        Self::LEN + bytes(self.high << above, self.low << above)
    }

    /// Offset of a key's value, or of where it would be. The key is below [`KEYS`].
    #[inline(always)]
    pub const fn offset(self, key: u8) -> usize {
        self.end(key) - self.length(key)
    }

    /// Length of header and values in bytes.
    #[inline(always)]
    pub const fn total(self) -> usize {
        Self::LEN + bytes(self.high, self.low)
    }

    /// The header with another length of a key's value: 0, 2, 4 or 8 bytes.
    #[inline(always)]
    #[must_use]
    pub const fn with(self, key: u8, length: usize) -> Self {
        // 2, 4 and 8 bytes are the codes 1, 2 and 3.
        let code = ((length >> 1) - (length >> 3)) as u64;
        let others = !(1 << key);
        Self { high: (self.high & others) | ((code >> 1) << key), low: (self.low & others) | ((code & 1) << key) }
    }

    /// The first key with a value, from a key on.
    #[inline(always)]
    pub const fn next(self, from: u8) -> Option<u8> {
        if from as usize >= KEYS {
            return None;
        }
        let keys = (self.high | self.low) & (u64::MAX << from);
        if keys == 0 {
            return None;
        }
        // The number of zeros below the lowest bit.
        let below = nibbles((keys & keys.wrapping_neg()) - 1);
        let below = (below + (below >> 4)) & BYTES;
        Some((below.wrapping_mul(SUM) >> 56) as u8)
    }

    /// The keys that have values, in order.
    pub const fn keys(self) -> Keys {
        Keys { header: self, from: 0 }
    }

    /// Reads the header.
    ///
    /// # Errors
    /// [`Error::Absent`] where there is no metadata, [`Error::Broken`] where it is shorter than a header.
    #[inline(always)]
    pub fn read<S: Store>(store: &S) -> Result<Self, Error> {
        let Some([high, low]) = store.load::<[u64; 2]>(0) else {
            return Err(if store.room() == 0 { Error::Absent } else { Error::Broken });
        };
        Ok(Self { high, low })
    }

    /// Writes the header.
    ///
    /// # Errors
    /// [`Error::Broken`] where the metadata is shorter.
    #[inline(always)]
    pub fn write<S: Store>(self, store: &mut S) -> Result<(), Error> {
        store.store(0, [self.high, self.low]).ok_or(Error::Broken)
    }
}

/// The keys of a header that have values, in order.
#[derive(Debug, Clone)]
pub struct Keys {
    header: Header,
    from: u8,
}

impl Iterator for Keys {
    type Item = u8;

    #[inline(always)]
    fn next(&mut self) -> Option<u8> {
        let key = self.header.next(self.from)?;
        self.from = key + 1;
        Some(key)
    }
}

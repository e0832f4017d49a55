//! The marker: 16 bytes at the very end of a frame, by which the lab knows its own frames.
//!
//! ```text
//!  byte 0        2        4            8            12          16
//!       +--------+--------+------------+------------+------------+
//!       |instance| check  |    flow    |  sequence  |    time    |   little-endian
//!       +--------+--------+------------+------------+------------+
//! ```
//!
//! It stands at the end rather than behind the headers, so that a program under test may push or pop headers without
//! hiding it. `check` makes the one's complement sum of the marker's eight 16-bit words equal [`SUM`]: it guards the
//! marker, and since that sum is constant, a UDP checksum over the frame stays right whatever the sequence and the time.

/// Length of a marker in bytes.
pub const LEN: usize = 16;

/// One's complement sum of a sound marker's eight 16-bit words. An arbitrary value: ASCII "xL".
pub const SUM: u16 = 0x4c78;

/// UDP destination port of the lab's frames: discard (RFC 863), so that no stack answers them.
pub const UDP_PORT: u16 = 9;

/// First UDP source port of the lab's frames; flow `n` uses `FLOW_PORT + n`, wrapping within [`FLOW_PORTS`].
pub const FLOW_PORT: u16 = 1024;

/// Number of UDP source ports in use: beyond it, flows share ports (the marker still tells them apart).
pub const FLOW_PORTS: u32 = 65_536 - FLOW_PORT as u32;

/// A frame's marker, in host order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Marker {
    /// Which lab instance sent the frame.
    pub instance: u16,
    /// Makes the words' sum [`SUM`]; see [`Marker::seal`].
    pub check: u16,
    /// The flow, from 0.
    pub flow: u32,
    /// The frame's number within its flow, from 0.
    pub sequence: u32,
    /// When the frame's batch was made: the low 32 bits of the monotonic clock in nanoseconds; 0 where not stamped.
    pub time: u32,
}

/// The one's complement sum of two 64-bit words' eight 16-bit words, never 0 unless both are.
#[inline(always)]
#[must_use]
pub const fn fold(low: u64, high: u64) -> u16 {
    // 2^16 = 1 modulo 65,535, so that a sum of wider words folds down to the sum of their 16-bit words.
    let sum = (low & 0xffff_ffff) + (low >> 32) + (high & 0xffff_ffff) + (high >> 32);
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

impl Marker {
    /// The marker with its check filled in.
    #[inline(always)]
    #[must_use]
    pub const fn seal(instance: u16, flow: u32, sequence: u32, time: u32) -> Self {
        let mut marker = Self { instance, check: 0, flow, sequence, time };
        let (low, high) = marker.words();
        // check = SUM - sum, in one's complement arithmetic: adding the complement subtracts.
        let sum = SUM as u32 + !fold(low, high) as u32;
        marker.check = ((sum & 0xffff) + (sum >> 16)) as u16;
        marker
    }

    /// The marker as two words, the first byte on the wire being the lowest of the first.
    #[inline(always)]
    #[must_use]
    pub const fn words(&self) -> (u64, u64) {
        (
            self.instance as u64 | (self.check as u64) << 16 | (self.flow as u64) << 32,
            self.sequence as u64 | (self.time as u64) << 32,
        )
    }

    /// The marker that two words hold, sound or not.
    #[inline(always)]
    #[must_use]
    pub const fn from_words(low: u64, high: u64) -> Self {
        Self {
            instance: low as u16,
            check: (low >> 16) as u16,
            flow: (low >> 32) as u32,
            sequence: high as u32,
            time: (high >> 32) as u32,
        }
    }

    /// Whether the check holds.
    #[inline(always)]
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        let (low, high) = self.words();
        // Zero has two forms in one's complement; SUM is neither, so that equality is plain.
        fold(low, high) == SUM
    }

    /// The marker's bytes.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; LEN] {
        let (low, high) = self.words();
        let (low, high) = (low.to_le_bytes(), high.to_le_bytes());
        let mut bytes = [0; LEN];
        let mut i = 0;
        while i < 8 {
            bytes[i] = low[i];
            bytes[i + 8] = high[i];
            i += 1;
        }
        bytes
    }

    /// The marker at the end of a frame, sound or not; `None` where the frame is shorter than a marker.
    #[must_use]
    pub fn at_end_of(frame: &[u8]) -> Option<Self> {
        let tail: &[u8; LEN] = frame.last_chunk()?;
        let (low, high) = tail.split_at(8);
        let word = |half: &[u8]| half.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        Some(Self::from_words(word(low), word(high)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The sum as RFC 1071 writes it, one word at a time.
    fn slow_sum(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_le_bytes([pair[0], pair[1]]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    proptest! {
        #[test]
        fn a_sealed_marker_is_sound_and_survives_its_bytes(instance: u16, flow: u32, sequence: u32, time: u32) {
            let marker = Marker::seal(instance, flow, sequence, time);
            prop_assert!(marker.is_sound());
            let mut frame = vec![0xa5; 44];
            frame.extend(marker.to_bytes());
            prop_assert_eq!(Marker::at_end_of(&frame), Some(marker));
        }

        #[test]
        fn the_sum_of_a_sealed_marker_is_constant(instance: u16, flow: u32, sequence: u32, time: u32) {
            prop_assert_eq!(slow_sum(&Marker::seal(instance, flow, sequence, time).to_bytes()), SUM);
        }

        #[test]
        fn fold_is_the_internet_checksum_sum(low: u64, high: u64) {
            let mut bytes = low.to_le_bytes().to_vec();
            bytes.extend(high.to_le_bytes());
            // Both forms of zero stand for the same sum.
            prop_assert_eq!(fold(low, high) % 0xffff, slow_sum(&bytes) % 0xffff);
        }

        #[test]
        fn a_change_of_any_one_word_is_noticed(
            instance: u16, flow: u32, sequence: u32, time: u32, word in 0usize..8, change in 1u16..0xffff,
        ) {
            let mut bytes = Marker::seal(instance, flow, sequence, time).to_bytes();
            let old = u16::from_le_bytes([bytes[2 * word], bytes[2 * word + 1]]);
            let new = old ^ change;
            // 0 and 0xffff are one number to a one's complement sum: the one change that it can't see.
            prop_assume!(old % 0xffff != new % 0xffff);
            bytes[2 * word..2 * word + 2].copy_from_slice(&new.to_le_bytes());
            prop_assert!(!Marker::at_end_of(&bytes).unwrap().is_sound());
        }
    }

    #[test]
    fn a_frame_shorter_than_a_marker_has_none() {
        assert_eq!(Marker::at_end_of(&[0; LEN - 1]), None);
    }

    #[test]
    fn a_frame_of_zeroes_or_ones_is_not_sound() {
        assert!(!Marker::from_words(0, 0).is_sound());
        assert!(!Marker::from_words(u64::MAX, u64::MAX).is_sound());
    }
}

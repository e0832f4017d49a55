//! The keys of the built-in `flow`: made by the program and by whoever fills its maps, so that both agree.

/// The key lengths, in bytes, that the object has a program for.
pub const LENGTHS: [usize; 15] = [4, 6, 8, 12, 13, 16, 20, 24, 28, 32, 37, 40, 48, 56, 64];

/// The key of a flow: its number in the first four bytes, then bytes that all keys share, as the addresses and the
/// protocol of flows between two hosts are.
#[inline(always)]
#[must_use]
pub fn key<const N: usize>(flow: u32) -> [u8; N] {
    let mut key = [0x5a; N];
    let mut n = 0;
    let number = flow.to_ne_bytes();
    while n < N && n < number.len() {
        key[n] = number[n];
        n += 1;
    }
    key
}

/// The same for a length that is known only when it runs; shorter than four bytes, the number's first ones.
pub fn write_key(flow: u32, key: &mut [u8]) {
    key.fill(0x5a);
    for (to, from) in key.iter_mut().zip(flow.to_ne_bytes()) {
        *to = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_a_key_agree() {
        let mut bytes = [0; 13];
        write_key(0x0102_0304, &mut bytes);
        assert_eq!(bytes, key::<13>(0x0102_0304));
        assert_ne!(key::<64>(1), key::<64>(2));
    }
}

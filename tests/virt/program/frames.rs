//! Frames for the tests: UDP over IPv4 and IPv6 with a marker, and their checksums.

use xdplab_wire::marker::{self, Marker};

use super::net::INSTANCE;

/// One's complement sum of big-endian words.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let mut sum: u32 =
        bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | word.get(1).copied().map_or(0, u32::from)).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

/// Offset of the UDP header.
pub(super) fn udp_offset(frame: &[u8]) -> usize {
    if frame[12..14] == [0x08, 0x00] { 34 } else { 54 }
}

/// What a UDP checksum is the complement of; the sum over a frame with a right one is `0xffff`.
pub(super) fn udp_sum(frame: &[u8]) -> u32 {
    let udp = udp_offset(frame);
    let addresses = if udp == 34 { &frame[26..34] } else { &frame[22..54] };
    let length = frame.len() - udp;
    let mut bytes = addresses.to_vec();
    bytes.extend([0, 17]);
    bytes.extend((length as u16).to_be_bytes());
    bytes.extend(&frame[udp..]);
    sum(&bytes)
}

/// A frame of `length` bytes (without FCS) of flow 0 with sequence number 0.
pub(crate) fn template(ipv6: bool, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    if ipv6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((length as u16 - 54).to_be_bytes());
        frame.extend([17, 64]);
        frame.extend([0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        frame.extend([0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    } else {
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((length as u16 - 14).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        let checksum = !sum(&frame[14..34]) as u16;
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    }
    let udp = frame.len();
    frame.extend(marker::FLOW_PORT.to_be_bytes());
    frame.extend(marker::UDP_PORT.to_be_bytes());
    frame.extend((length as u16 - udp as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.resize(length - marker::LEN, 0xa5);
    frame.extend(Marker::seal(INSTANCE, 0, 0, 0).to_bytes());
    let checksum = !udp_sum(&frame) as u16;
    frame[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
    frame
}

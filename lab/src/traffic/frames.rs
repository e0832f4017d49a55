//! The frames that the lab sends: Ethernet, IPv4 or IPv6, UDP, and the marker at the end. Made and parsed with pnet.
//!
//! ```text
//! | Ethernet 14 | IPv4 20 or IPv6 40 | UDP 8 | payload, zeroes | marker 16 |
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pnet::packet::{
    Packet as _,
    ethernet::{EtherTypes, EthernetPacket, MutableEthernetPacket},
    ip::IpNextHeaderProtocols,
    ipv4::{self, Ipv4Packet, MutableIpv4Packet},
    ipv6::{Ipv6Packet, MutableIpv6Packet},
    udp::{self, MutableUdpPacket, UdpPacket},
};
use pnet::util::MacAddr;
use xdplab_wire::marker::{self, Marker};

use crate::topology::{IpVersion, Mac};

/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Bytes of the frame check sequence, which sizes of frames count and memory does not hold.
pub const FCS: usize = 4;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;

/// What a frame says: addresses, size, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameSpec {
    /// Sender's MAC.
    pub source_mac: Mac,
    /// Receiver's MAC.
    pub destination_mac: Mac,
    /// Sender's address.
    pub source: IpAddr,
    /// Receiver's address, of the same version.
    pub destination: IpAddr,
    /// Size in bytes with the 4-byte FCS.
    pub frame_bytes: u32,
    /// The lab instance that the marker names.
    pub instance: u16,
}

/// Why a frame can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame has no room for headers and marker.
    #[error("a frame of {frame_bytes} bytes has no room for its headers and the marker: at least {least} are needed")]
    TooShort {
        /// The size asked for, with FCS.
        frame_bytes: u32,
        /// The smallest size that holds them.
        least: u32,
    },
    /// A port has no address of the version that the frames are to have.
    #[error("{port} has no {} address: give it one, or leave `addresses` out to have both", match version {
        IpVersion::V4 => "IPv4", IpVersion::V6 => "IPv6",
    })]
    NoAddress {
        /// The port, as `node:port`.
        port: String,
        /// The version.
        version: IpVersion,
    },
    /// Source and destination are of different IP versions.
    #[error("the frame's addresses {source_address} and {destination} are of different IP versions")]
    MixedVersions {
        /// Sender's address.
        source_address: IpAddr,
        /// Receiver's address.
        destination: IpAddr,
    },
}

/// The smallest frame in bytes, with FCS, that holds headers and marker: 62 for IPv4, 82 for IPv6.
pub fn least_frame_bytes(version: IpVersion) -> u32 {
    (marker_headers(version) + marker::LEN + FCS) as u32
}

fn marker_headers(version: IpVersion) -> usize {
    ETHERNET + UDP + if version == IpVersion::V4 { IPV4 } else { IPV6 }
}

/// Offset of the UDP header in a frame of this version.
pub fn udp_offset(version: IpVersion) -> usize {
    marker_headers(version) - UDP
}

impl FrameSpec {
    /// The frame of a flow and a sequence number, its checksums right: `frame_bytes` less 4 bytes long.
    ///
    /// # Errors
    /// Where the frame has no room for the marker, or its addresses don't match.
    pub fn frame(&self, flow: u32, sequence: u32, time: u32) -> Result<Vec<u8>, FrameError> {
        let version = if self.source.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let least = least_frame_bytes(version);
        if self.frame_bytes < least {
            return Err(FrameError::TooShort { frame_bytes: self.frame_bytes, least });
        }
        let length = self.frame_bytes as usize - FCS;
        let mut frame = vec![0u8; length];
        frame[length - marker::LEN..].copy_from_slice(&Marker::seal(self.instance, flow, sequence, time).to_bytes());

        let mut ethernet = MutableEthernetPacket::new(&mut frame).expect("longer than an Ethernet header");
        ethernet.set_source(mac(self.source_mac));
        ethernet.set_destination(mac(self.destination_mac));
        ethernet.set_ethertype(if version == IpVersion::V4 { EtherTypes::Ipv4 } else { EtherTypes::Ipv6 });

        let port = marker::FLOW_PORT + (flow % marker::FLOW_PORTS) as u16;
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                ipv4_header(&mut frame[ETHERNET..], source, destination);
                let udp = udp_header(&mut frame[ETHERNET + IPV4..], port);
                let sum = udp::ipv4_checksum(&udp, &source, &destination);
                set_udp_checksum(&mut frame[ETHERNET + IPV4..], sum);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                ipv6_header(&mut frame[ETHERNET..], source, destination);
                let udp = udp_header(&mut frame[ETHERNET + IPV6..], port);
                let sum = udp::ipv6_checksum(&udp, &source, &destination);
                set_udp_checksum(&mut frame[ETHERNET + IPV6..], sum);
            }
            (source_address, destination) => {
                return Err(FrameError::MixedVersions { source_address, destination });
            }
        }
        Ok(frame)
    }
}

fn mac(mac: Mac) -> MacAddr {
    MacAddr::from(mac.0)
}

fn ipv4_header(packet: &mut [u8], source: Ipv4Addr, destination: Ipv4Addr) {
    let length = packet.len() as u16;
    let mut header = MutableIpv4Packet::new(packet).expect("room for an IPv4 header");
    header.set_version(4);
    header.set_header_length(5);
    header.set_total_length(length);
    header.set_flags(ipv4::Ipv4Flags::DontFragment);
    header.set_ttl(64);
    header.set_next_level_protocol(IpNextHeaderProtocols::Udp);
    header.set_source(source);
    header.set_destination(destination);
    let sum = ipv4::checksum(&header.to_immutable());
    header.set_checksum(sum);
}

fn ipv6_header(packet: &mut [u8], source: Ipv6Addr, destination: Ipv6Addr) {
    let length = (packet.len() - IPV6) as u16;
    let mut header = MutableIpv6Packet::new(packet).expect("room for an IPv6 header");
    header.set_version(6);
    header.set_payload_length(length);
    header.set_next_header(IpNextHeaderProtocols::Udp);
    header.set_hop_limit(64);
    header.set_source(source);
    header.set_destination(destination);
}

fn udp_header(datagram: &mut [u8], port: u16) -> UdpPacket<'_> {
    let length = datagram.len() as u16;
    let mut header = MutableUdpPacket::new(datagram).expect("room for a UDP header");
    header.set_source(port);
    header.set_destination(marker::UDP_PORT);
    header.set_length(length);
    header.set_checksum(0);
    header.consume_to_immutable()
}

fn set_udp_checksum(datagram: &mut [u8], sum: u16) {
    // A sum of zero means "no checksum" on the wire: its other form is sent (RFC 768).
    let sum = if sum == 0 { 0xffff } else { sum };
    MutableUdpPacket::new(datagram).expect("room for a UDP header").set_checksum(sum);
}

/// What a frame on the wire is, as far as the lab can tell without a program of its own in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parsed {
    /// A frame of some lab, its marker sound.
    Marked(Marker),
    /// A frame to the lab's UDP port whose marker is broken.
    Broken,
    /// Anything else.
    Foreign,
}

/// Tells the lab's frames from others.
pub fn parse(frame: &[u8]) -> Parsed {
    match Marker::at_end_of(frame) {
        Some(marker) if marker.is_sound() => Parsed::Marked(marker),
        _ if destination_port(frame) == Some(marker::UDP_PORT) => Parsed::Broken,
        _ => Parsed::Foreign,
    }
}

/// The UDP destination port of a plain IPv4 or IPv6 frame.
fn destination_port(frame: &[u8]) -> Option<u16> {
    let ethernet = EthernetPacket::new(frame)?;
    let (next, payload) = match ethernet.get_ethertype() {
        EtherTypes::Ipv4 => {
            let ip = Ipv4Packet::new(ethernet.payload())?;
            (ip.get_next_level_protocol(), ip.payload().to_vec())
        }
        EtherTypes::Ipv6 => {
            let ip = Ipv6Packet::new(ethernet.payload())?;
            (ip.get_next_header(), ip.payload().to_vec())
        }
        _ => return None,
    };
    (next == IpNextHeaderProtocols::Udp).then(|| UdpPacket::new(&payload).map(|udp| udp.get_destination()))?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec(version: IpVersion, frame_bytes: u32) -> FrameSpec {
        let (source, destination): (IpAddr, IpAddr) = match version {
            IpVersion::V4 => ("198.18.0.1".parse().unwrap(), "198.18.0.2".parse().unwrap()),
            IpVersion::V6 => ("2001:2::1".parse().unwrap(), "2001:2::2".parse().unwrap()),
        };
        FrameSpec {
            source_mac: Mac([2, 0x78, 0x64, 0, 0, 1]),
            destination_mac: Mac([2, 0x78, 0x64, 0, 0, 2]),
            source,
            destination,
            frame_bytes,
            instance: 7,
        }
    }

    fn checksum_holds(frame: &[u8]) -> bool {
        let ethernet = EthernetPacket::new(frame).unwrap();
        if let Some(ip) = Ipv4Packet::new(ethernet.payload()).filter(|ip| ip.get_version() == 4) {
            let udp = UdpPacket::new(ip.payload()).unwrap();
            ipv4::checksum(&ip) == ip.get_checksum()
                && udp::ipv4_checksum(&udp, &ip.get_source(), &ip.get_destination()) == udp.get_checksum()
        } else {
            let ip = Ipv6Packet::new(ethernet.payload()).unwrap();
            let udp = UdpPacket::new(ip.payload()).unwrap();
            udp::ipv6_checksum(&udp, &ip.get_source(), &ip.get_destination()) == udp.get_checksum()
        }
    }

    proptest! {
        #[test]
        fn a_frame_holds_its_marker_and_right_checksums(
            v6: bool, extra in 0u32..1400, flow: u32, sequence: u32, time: u32,
        ) {
            let version = if v6 { IpVersion::V6 } else { IpVersion::V4 };
            let spec = spec(version, least_frame_bytes(version) + extra);
            let frame = spec.frame(flow, sequence, time).unwrap();
            prop_assert_eq!(frame.len() + FCS, spec.frame_bytes as usize);
            prop_assert_eq!(parse(&frame), Parsed::Marked(Marker::seal(7, flow, sequence, time)));
            prop_assert!(checksum_holds(&frame));
        }

        #[test]
        fn the_udp_checksum_does_not_depend_on_sequence_and_time(sequence: u32, time: u32) {
            let spec = spec(IpVersion::V4, 64);
            let (a, b) = (spec.frame(3, 0, 0).unwrap(), spec.frame(3, sequence, time).unwrap());
            prop_assert_eq!(&a[..42], &b[..42]);
        }
    }

    #[test]
    fn the_smallest_ethernet_frame_holds_ipv4_and_not_ipv6() {
        assert_eq!(spec(IpVersion::V4, 64).frame(0, 0, 0).unwrap().len(), 60);
        assert_eq!(spec(IpVersion::V6, 64).frame(0, 0, 0), Err(FrameError::TooShort { frame_bytes: 64, least: 82 }));
    }

    #[test]
    fn frames_of_others_are_told_apart() {
        let mut frame = spec(IpVersion::V4, 64).frame(0, 1, 2).unwrap();
        *frame.last_mut().unwrap() ^= 1;
        assert_eq!(parse(&frame), Parsed::Broken);
        frame[36..38].copy_from_slice(&53u16.to_be_bytes());
        assert_eq!(parse(&frame), Parsed::Foreign);
        assert_eq!(parse(&[0xff; 60]), Parsed::Foreign);
        assert_eq!(parse(&[]), Parsed::Foreign);
    }
}

//! What devices say that they can do with XDP: the generic netlink family `netdev`, since Linux 6.3.
//!
//! One request and one answer of two levels: written here, since it takes less than a crate for generic netlink would.
//! Numbers are those of <linux/netlink.h>, <linux/genetlink.h> and <linux/netdev.h>.

use std::{collections::BTreeMap, io};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};

use crate::{host::HostError, xdp::XdpFeatures};

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_A_DEV_XDP_ZC_MAX_SEGS: u16 = 4;
/// The flags that a type of attribute may carry: nested, and big-endian.
const NLA_TYPE_MASK: u16 = 0x3fff;
/// Length of a message's header, and of that of generic netlink behind it.
const HEADER: usize = 16;
const GENERIC: usize = 4;

/// What a device says that it can do with XDP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceFeatures {
    /// Its features.
    pub features: XdpFeatures,
    /// Most buffers of a frame in zero-copy `AF_XDP`, where it has that.
    pub zero_copy_segments: Option<u32>,
}

/// What the devices of the calling thread's namespace say, by index; `None` where the kernel does not ask them.
///
/// # Errors
/// Where the kernel has no generic netlink, or an answer makes no sense.
pub fn xdp_features() -> Result<Option<BTreeMap<u32, DeviceFeatures>>, HostError> {
    let failed = |source| HostError::system("ask devices for their XDP features over generic netlink", source);
    let mut socket = Socket::new(NETLINK_GENERIC).map_err(failed)?;
    socket.bind_auto().map_err(failed)?;
    let name = attribute(CTRL_ATTR_FAMILY_NAME, b"netdev\0");
    let request = message(GENL_ID_CTRL, NLM_F_REQUEST | NLM_F_ACK, CTRL_CMD_GETFAMILY, &name);
    let answers = match ask(&socket, &request) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
        answers => answers.map_err(failed)?,
    };
    let family = answers.iter().find_map(|answer| {
        attributes(answer).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID).and_then(|(_, value)| number::<2>(value))
    });
    let Some(family) = family.map(u16::from_ne_bytes) else { return Ok(None) };
    let request = message(family, NLM_F_REQUEST | NLM_F_DUMP, NETDEV_CMD_DEV_GET, &[]);
    let answers = ask(&socket, &request).map_err(failed)?;
    Ok(Some(answers.iter().filter_map(|answer| device(answer)).collect()))
}

/// One device of an answer.
fn device(payload: &[u8]) -> Option<(u32, DeviceFeatures)> {
    let (mut index, mut device) = (None, DeviceFeatures::default());
    for (kind, value) in attributes(payload) {
        match kind {
            NETDEV_A_DEV_IFINDEX => index = number(value).map(u32::from_ne_bytes),
            NETDEV_A_DEV_XDP_FEATURES => {
                device.features = number(value).map(u64::from_ne_bytes).map(XdpFeatures).unwrap_or_default();
            }
            NETDEV_A_DEV_XDP_ZC_MAX_SEGS => device.zero_copy_segments = number(value).map(u32::from_ne_bytes),
            _ => {}
        }
    }
    Some((index?, device))
}

/// Sends a request, and collects what the answers carry behind the two headers, until an acknowledgement or the end.
fn ask(socket: &Socket, request: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    socket.send_to(request, &SocketAddr::new(0, 0), 0)?;
    let mut answers = Vec::new();
    loop {
        let (buffer, _) = socket.recv_from_full()?;
        if collect(&buffer, &mut answers)? {
            return Ok(answers);
        }
    }
}

/// Takes the messages of a buffer apart; `true` when the last one is there.
fn collect(buffer: &[u8], answers: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    let mut rest = buffer;
    while let [l0, l1, l2, l3, t0, t1, ..] = *rest {
        let length = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        let kind = u16::from_ne_bytes([t0, t1]);
        let Some(payload) = rest.get(HEADER..length) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is cut short"));
        };
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let errno = payload.get(..4).and_then(number).map_or(-libc::EPROTO, i32::from_ne_bytes);
                return if errno == 0 { Ok(true) } else { Err(io::Error::from_raw_os_error(-errno)) };
            }
            _ => answers.push(payload.get(GENERIC..).unwrap_or_default().to_vec()),
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

fn message(kind: u16, flags: u16, command: u8, attributes: &[u8]) -> Vec<u8> {
    let length = (HEADER + GENERIC + attributes.len()) as u32;
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Sequence and port: one request at a time, and the kernel fills in the port.
    bytes.extend([0; 8]);
    // Command, version 1, reserved.
    bytes.extend([command, 1, 0, 0]);
    bytes.extend(attributes);
    bytes
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Attributes of a payload, each with its type.
fn attributes(payload: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = payload;
    std::iter::from_fn(move || {
        let [l0, l1, t0, t1, ..] = *rest else { return None };
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([t0, t1]) & NLA_TYPE_MASK, value))
    })
}

fn number<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    value.try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_device_is_read_from_an_answer() {
        let mut payload = attribute(NETDEV_A_DEV_IFINDEX, &7u32.to_ne_bytes());
        payload.extend(attribute(NETDEV_A_DEV_XDP_FEATURES, &0b111u64.to_ne_bytes()));
        payload.extend(attribute(NETDEV_A_DEV_XDP_ZC_MAX_SEGS, &17u32.to_ne_bytes()));
        let mut answers = Vec::new();
        assert!(!collect(&message(0x20, 2, NETDEV_CMD_DEV_GET, &payload), &mut answers).unwrap());
        let (index, found) = device(&answers[0]).unwrap();
        assert_eq!((index, found.features.names()), (7, vec!["basic", "redirect", "ndo-xmit"]));
        assert_eq!(found.zero_copy_segments, Some(17));
    }

    #[test]
    fn loopback_is_among_the_devices_where_the_kernel_asks_them() {
        if let Some(devices) = xdp_features().unwrap() {
            // The loopback device has index 1 in every namespace, and no native XDP.
            assert_eq!(devices[&1].features, XdpFeatures::default());
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_the_parser_panic(buffer: Vec<u8>) {
            let mut answers = Vec::new();
            let _ = collect(&buffer, &mut answers);
            let _ = device(&buffer);
        }
    }
}

//! The kernel's own words in netlink errors.

use crate::host::HostError;

/// `NLMSGERR_ATTR_MSG` of <linux/netlink.h>.
const ATTR_MSG: u16 = 1;
/// The request's header that an error message repeats, with `NETLINK_CAP_ACK` all that it repeats.
const HEADER: usize = 16;

/// A result with its operation, and the kernel's words where it has some.
pub(super) fn checked<T>(
    result: Result<T, rtnetlink::Error>,
    operation: impl FnOnce() -> String,
) -> Result<T, HostError> {
    result.map_err(|error| match error {
        rtnetlink::Error::NetlinkError(message) => HostError::Netlink {
            operation: operation(),
            errno: message.raw_code().abs(),
            kernel: extended_ack(&message.header),
        },
        other => HostError::NetlinkProtocol { operation: operation(), reason: other.to_string() },
    })
}

/// The text of an extended ack, behind the repeated header: attributes of length, type and value, padded to 4 bytes.
fn extended_ack(payload: &[u8]) -> Option<String> {
    let mut rest = payload.get(HEADER..)?;
    while let [l0, l1, t0, t1, ..] = *rest {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let kind = u16::from_ne_bytes([t0, t1]);
        let value = rest.get(4..length)?;
        if kind == ATTR_MSG {
            let text = value.split(|byte| *byte == 0).next()?;
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn the_kernels_text_is_found_behind_other_attributes() {
        let mut payload = vec![0; HEADER];
        payload.extend(attribute(2, &7u32.to_ne_bytes()));
        payload.extend(attribute(ATTR_MSG, b"Peer MTU is too large to set XDP\0"));
        assert_eq!(extended_ack(&payload).as_deref(), Some("Peer MTU is too large to set XDP"));
    }

    proptest! {
        #[test]
        fn no_payload_makes_the_parser_panic(payload: Vec<u8>) {
            let _ = extended_ack(&payload);
        }
    }
}

//! Contents of maps and globals.

use std::net::IpAddr;

use super::Checker;
use crate::topology::{
    diagnostic::{Diagnostic, Span},
    mac::Mac,
    model::{Datum, MapContents, PortId},
    read::{At, RawValue},
};

/// Ports that a body's values name, each with its place.
pub(super) type Targets = Vec<(PortId, Span)>;

impl Checker<'_> {
    /// A map's contents, or `None`, reported.
    pub(super) fn map_contents(&mut self, at: &At<RawValue>, targets: &mut Targets) -> Option<MapContents> {
        match &at.value {
            RawValue::List(list) => {
                let values: Vec<_> = list.iter().map(|at| self.datum(at, targets)).collect();
                values.into_iter().collect::<Option<_>>().map(MapContents::List)
            }
            RawValue::Table(table) => {
                let entries: Vec<_> = table
                    .iter()
                    .map(|(key, value)| (self.key(key), self.datum(value, targets)))
                    .map(|(key, value)| Some((key?, value?)))
                    .collect();
                entries.into_iter().collect::<Option<_>>().map(MapContents::Table)
            }
            _ => {
                self.report(
                    Diagnostic::error(at.span.clone(), "a map takes a list or a table")
                        .label("a single value")
                        .help("put it in brackets: it becomes slot 0"),
                );
                None
            }
        }
    }

    /// A value, or `None`, reported.
    pub(super) fn datum(&mut self, at: &At<RawValue>, targets: &mut Targets) -> Option<Datum> {
        match &at.value {
            RawValue::Integer(integer) => Some(Datum::Integer(*integer)),
            RawValue::Float(number) => Some(Datum::Float(*number)),
            RawValue::Bool(truth) => Some(Datum::Bool(*truth)),
            RawValue::Text(text) => {
                if let Some(bytes) = bytes(text) {
                    return Some(Datum::Bytes(bytes));
                }
                let at = At { value: text.clone(), span: at.span.clone() };
                if text.contains(':') {
                    let port = self.port(&at)?;
                    targets.push((port, at.span));
                    return Some(Datum::Port(port));
                }
                self.report(not_a_value(&at));
                None
            }
            RawValue::List(list) => {
                let values: Vec<_> = list.iter().map(|at| self.datum(at, targets)).collect();
                values.into_iter().collect::<Option<_>>().map(Datum::List)
            }
            RawValue::Table(_) => {
                self.report(
                    Diagnostic::error(at.span.clone(), "a table can't be a value")
                        .label("a table")
                        .help("write the bytes as a list of numbers, or as a text 0x…"),
                );
                None
            }
        }
    }

    /// A map's key: an integer, or what a text can be.
    fn key(&mut self, at: &At<String>) -> Option<Datum> {
        let text = &at.value;
        let datum = text.parse().map(Datum::Integer).ok().or_else(|| bytes(text).map(Datum::Bytes));
        if datum.is_some() {
            return datum;
        }
        if text.contains(':') {
            return self.port(at).map(Datum::Port);
        }
        self.report(not_a_value(at));
        None
    }
}

fn not_a_value(at: &At<String>) -> Diagnostic {
    Diagnostic::error(at.span.clone(), format!("`{}` is no value for a map or a global", at.value))
        .label("not a value")
        .help("write a port (`node:port`), an IP or MAC address, or bytes as 0x0102")
}

/// The bytes that a text stands for: `0x…`, a MAC address or an IP address, in network order.
fn bytes(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("0x") {
        let digits = digits.as_bytes();
        let whole = !digits.is_empty() && digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
        return whole.then(|| digits.chunks(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])).collect());
    }
    if let Ok(mac) = text.parse::<Mac>() {
        return Some(mac.0.to_vec());
    }
    match text.parse().ok()? {
        IpAddr::V4(v4) => Some(v4.octets().to_vec()),
        IpAddr::V6(v6) => Some(v6.octets().to_vec()),
    }
}

/// A hexadecimal digit's value.
fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_bytes_in_network_order() {
        assert_eq!(bytes("0x01fF"), Some(vec![1, 255]));
        assert_eq!(bytes("0x1"), None);
        assert_eq!(bytes("192.0.2.1"), Some(vec![192, 0, 2, 1]));
        assert_eq!(bytes("02:00:00:00:00:07"), Some(vec![2, 0, 0, 0, 0, 7]));
        assert_eq!(bytes("::1").map(|bytes| bytes[15]), Some(1));
        assert_eq!(bytes("dut:rx0"), None);
    }
}

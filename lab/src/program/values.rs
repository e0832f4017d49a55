//! The bytes of map entries and globals: integers little-endian in as many bytes as the place has, addresses in network
//! order, ports as interface indices.

use super::ProgramError;
use crate::topology::{Datum, PortId};

/// The bytes of a value for a place of `size` bytes.
pub(super) fn bytes(
    value: &Datum,
    size: usize,
    ifindex: &dyn Fn(PortId) -> u32,
    place: &dyn Fn() -> String,
) -> Result<Vec<u8>, ProgramError> {
    let wrong = |reason: String| Err(ProgramError::Value { place: place(), reason });
    let found = match value {
        Datum::Port(port) => return integer(i64::from(ifindex(*port)), size, place),
        Datum::Integer(number) => return integer(*number, size, place),
        Datum::Bool(truth) => return integer(i64::from(*truth), size, place),
        Datum::Float(number) => match size {
            4 => (*number as f32).to_ne_bytes().to_vec(),
            8 => number.to_ne_bytes().to_vec(),
            _ => return wrong(format!("a number with a point takes 4 or 8 bytes, and the place has {size}")),
        },
        Datum::Bytes(bytes) => bytes.clone(),
        Datum::List(values) => {
            if values.is_empty() || !size.is_multiple_of(values.len()) {
                return wrong(format!("{} values do not share {size} bytes evenly", values.len()));
            }
            let each = size / values.len();
            let parts: Result<Vec<_>, _> = values.iter().map(|v| bytes(v, each, ifindex, place)).collect();
            parts?.concat()
        }
    };
    if found.len() == size {
        Ok(found)
    } else {
        wrong(format!("the value has {} bytes, and the place has {size}", found.len()))
    }
}

fn integer(number: i64, size: usize, place: &dyn Fn() -> String) -> Result<Vec<u8>, ProgramError> {
    let wide = i128::from(number);
    let bits = (size * 8).min(64) as u32;
    let fits = if bits == 64 { true } else { wide >= -(1i128 << (bits - 1)) && wide < (1i128 << bits) };
    if size == 0 || !fits {
        return Err(ProgramError::Value {
            place: place(),
            reason: format!("{number} does not fit into {size} byte{}", if size == 1 { "" } else { "s" }),
        });
    }
    // Longer places are filled up with the sign.
    let fill = if number < 0 { 0xff } else { 0 };
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(size, fill);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(value: &Datum, size: usize) -> Result<Vec<u8>, String> {
        bytes(value, size, &|port| 1000 + port.0 as u32, &|| "a place".to_owned()).map_err(|e| e.to_string())
    }

    #[test]
    fn values_take_the_form_of_their_place() {
        assert_eq!(encode(&Datum::Port(PortId(2)), 4), Ok(vec![0xea, 3, 0, 0]));
        assert_eq!(encode(&Datum::Integer(-1), 2), Ok(vec![0xff, 0xff]));
        assert_eq!(encode(&Datum::Integer(255), 1), Ok(vec![0xff]));
        assert_eq!(encode(&Datum::Integer(256), 1), Err("a place: 256 does not fit into 1 byte".to_owned()));
        assert_eq!(encode(&Datum::Bytes(vec![10, 0, 0, 1]), 4), Ok(vec![10, 0, 0, 1]));
        assert_eq!(
            encode(&Datum::Bytes(vec![1]), 4),
            Err("a place: the value has 1 bytes, and the place has 4".to_owned())
        );
        assert_eq!(encode(&Datum::List(vec![Datum::Integer(1), Datum::Bool(true)]), 4), Ok(vec![1, 0, 1, 0]));
        assert!(encode(&Datum::List(vec![]), 4).is_err());
    }

    proptest! {
        #[test]
        fn what_fits_comes_back(number: i64, size in 1usize..16) {
            if let Ok(encoded) = encode(&Datum::Integer(number), size) {
                prop_assert_eq!(encoded.len(), size);
                let mut wide = [if number < 0 { 0xff } else { 0 }; 8];
                let shared = size.min(8);
                wide[..shared].copy_from_slice(&encoded[..shared]);
                prop_assert_eq!(i64::from_le_bytes(wide), number);
            }
        }
    }
}

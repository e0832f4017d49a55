//! The running kernel's own types (BTF): where the fields are that the observer reads, and what drop reasons are called.
//!
//! The format is that of Documentation/bpf/btf.rst. aya's parser does not tell offsets of fields, so the little that is
//! needed is read here.

use std::{collections::BTreeMap, fs, sync::OnceLock};

use super::ProgramError;
use crate::observe::ledger::DropReasons;

const PATH: &str = "/sys/kernel/btf/vmlinux";

const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;

/// Offsets, in bytes, of the fields that `watch` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offsets {
    pub(super) dev_ifindex: u32,
    pub(super) dev_net: u32,
    pub(super) net_inum: u32,
    pub(super) skb_dev: u32,
    pub(super) skb_iif: u32,
    pub(super) skb_data_len: u32,
    pub(super) skb_head: u32,
    pub(super) skb_data: u32,
    pub(super) skb_tail: u32,
    pub(super) napi_dev: u32,
}

/// What the lab needs to know of the running kernel's types. Read once in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelReasons {
    names: BTreeMap<u32, String>,
    offsets: Offsets,
    clone_page_flags: Vec<u32>,
}

impl KernelReasons {
    /// Reads the kernel's types, the first time.
    ///
    /// # Errors
    /// Where the kernel does not show them, or they lack what is needed.
    pub fn get() -> Result<&'static Self, ProgramError> {
        static KERNEL: OnceLock<KernelReasons> = OnceLock::new();
        if let Some(kernel) = KERNEL.get() {
            return Ok(kernel);
        }
        let data = fs::read(PATH).map_err(|error| ProgramError::Btf(format!("can't be read ({error})")))?;
        let kernel = Self::parse(&data)?;
        Ok(KERNEL.get_or_init(|| kernel))
    }

    pub(super) fn offsets(&self) -> Offsets {
        self.offsets
    }

    /// The flags with which a clone's page is allocated: those of `dev_alloc_page` (`include/linux/skbuff.h`),
    /// `GFP_ATOMIC`, `__GFP_NOWARN`, `__GFP_COMP` and `__GFP_MEMALLOC`.
    pub(super) fn clone_page_flags(&self) -> Vec<u32> {
        self.clone_page_flags.clone()
    }

    fn parse(data: &[u8]) -> Result<Self, ProgramError> {
        let types = Types::parse(data).ok_or_else(|| ProgramError::Btf("is not in the known format".to_owned()))?;
        let offset = |structure: &str, path: &[&str]| {
            types
                .offset(structure, path)
                .ok_or_else(|| ProgramError::Btf(format!("has no {}.{}", structure, path.join("."))))
        };
        let offsets = Offsets {
            dev_ifindex: offset("net_device", &["ifindex"])?,
            dev_net: offset("net_device", &["nd_net"])?,
            net_inum: offset("net", &["ns", "inum"])?,
            skb_dev: offset("sk_buff", &["dev"])?,
            skb_iif: offset("sk_buff", &["skb_iif"])?,
            skb_data_len: offset("sk_buff", &["data_len"])?,
            skb_head: offset("sk_buff", &["head"])?,
            skb_data: offset("sk_buff", &["data"])?,
            skb_tail: offset("sk_buff", &["tail"])?,
            napi_dev: offset("napi_struct", &["dev"])?,
        };
        let prefix = "SKB_DROP_REASON_";
        let named = |(value, name): (u32, &str)| name.strip_prefix(prefix).map(|name| (value, name.to_owned()));
        // Kernels before 5.17 have no reasons: every number is then shown as it is.
        let names = types.enumerators("skb_drop_reason").into_iter().filter_map(named).collect();
        let bits = ["HIGH", "KSWAPD_RECLAIM", "NOWARN", "COMP", "MEMALLOC"];
        let bit = |name: &str| types.enumerator(&format!("___GFP_{name}_BIT")).and_then(|bit| 1u32.checked_shl(bit));
        let clone_page_flags = match bits.iter().map(|name| bit(name)).sum::<Option<u32>>() {
            Some(flags) => vec![flags],
            // Before 6.10 the bits had no types: with and without ___GFP_ATOMIC, which went with 6.4.
            None => vec![0x6_2820, 0x6_2a20],
        };
        Ok(Self { names, offsets, clone_page_flags })
    }
}

impl DropReasons for &KernelReasons {
    fn xdp(&self) -> Option<u32> {
        self.names.iter().find(|(_, name)| *name == "XDP").map(|(number, _)| *number)
    }

    fn name(&self, number: u32) -> Option<String> {
        self.names.get(&number).cloned()
    }
}

/// The types of a BTF blob: where each starts.
pub(super) struct Types<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    starts: Vec<usize>,
}

impl<'a> Types<'a> {
    pub(super) fn parse(data: &'a [u8]) -> Option<Self> {
        if u16::from_ne_bytes(data.first_chunk().copied()?) != 0xeb9f {
            return None;
        }
        let header = u32_at(data, 4)? as usize;
        let [type_at, type_length, string_at, string_length] =
            [8, 12, 16, 20].map(|at| u32_at(data, at).map(|v| v as usize));
        let types = data.get(header + type_at?..)?.get(..type_length?)?;
        let strings = data.get(header + string_at?..)?.get(..string_length?)?;
        // Type 0 is void, and has no record.
        let mut starts = vec![usize::MAX];
        let mut at = 0;
        while at < types.len() {
            starts.push(at);
            let info = u32_at(types, at + 4)?;
            let (members, kind) = ((info & 0xffff) as usize, info >> 24 & 0x1f);
            at += 12
                + match kind {
                    1 | 14 | 17 => 4,
                    3 => 12,
                    STRUCT | UNION | 15 | 19 => 12 * members,
                    ENUM | 13 => 8 * members,
                    2 | 7..=12 | 16 | 18 => 0,
                    _ => return None,
                };
        }
        Some(Self { types, strings, starts })
    }

    /// The name of a type, by its number.
    pub(super) fn name_of(&self, id: u32) -> Option<&'a str> {
        let at = *self.starts.get(id as usize).filter(|at| **at != usize::MAX)?;
        u32_at(self.types, at).map(|offset| self.name(offset))
    }

    fn name(&self, offset: u32) -> &'a str {
        let rest = self.strings.get(offset as usize..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        std::str::from_utf8(&rest[..end]).unwrap_or_default()
    }

    /// Whether a name is this one, without reading all of it: a kernel has a hundred thousand.
    fn is_named(&self, offset: u32, name: &str) -> bool {
        let rest = self.strings.get(offset as usize..).unwrap_or_default();
        rest.starts_with(name.as_bytes()) && rest.get(name.len()) == Some(&0)
    }

    fn find(&self, kind: u32, name: &str) -> Option<usize> {
        self.starts.iter().skip(1).copied().find(|&at| {
            u32_at(self.types, at + 4).is_some_and(|info| info >> 24 & 0x1f == kind)
                && u32_at(self.types, at).is_some_and(|offset| self.is_named(offset, name))
        })
    }

    /// The offset in bytes of a field, through named and unnamed structures and unions.
    fn offset(&self, structure: &str, path: &[&str]) -> Option<u32> {
        let mut at = self.find(STRUCT, structure)?;
        let mut bits = 0;
        for (n, field) in path.iter().enumerate() {
            let (offset, kind) = self.member(at, field, 0)?;
            bits += offset;
            if n + 1 < path.len() {
                at = self.structure(kind)?;
            }
        }
        Some(bits / 8)
    }

    /// The offset in bits, and the type, of a member of a structure or union.
    fn member(&self, at: usize, field: &str, depth: u32) -> Option<(u32, u32)> {
        let info = u32_at(self.types, at + 4)?;
        for n in 0..(info & 0xffff) as usize {
            let member = at + 12 + 12 * n;
            let name = self.name(u32_at(self.types, member)?);
            let kind = u32_at(self.types, member + 4)?;
            let raw = u32_at(self.types, member + 8)?;
            // With the flag, the upper byte is the size of a bit field.
            let offset = if info >> 31 == 1 { raw & 0x00ff_ffff } else { raw };
            if name == field {
                return Some((offset, kind));
            }
            if name.is_empty()
                && depth < 8
                && let Some(inner) = self.structure(kind)
                && let Some((further, kind)) = self.member(inner, field, depth + 1)
            {
                return Some((offset + further, kind));
            }
        }
        None
    }

    /// The structure or union behind a type, through typedefs and qualifiers.
    fn structure(&self, mut kind: u32) -> Option<usize> {
        for _ in 0..16 {
            let at = *self.starts.get(kind as usize).filter(|at| **at != usize::MAX)?;
            match u32_at(self.types, at + 4)? >> 24 & 0x1f {
                STRUCT | UNION => return Some(at),
                8..=11 | 18 => kind = u32_at(self.types, at + 8)?,
                _ => return None,
            }
        }
        None
    }

    /// The value of an enumerator of any enumeration, named or not.
    fn enumerator(&self, name: &str) -> Option<u32> {
        self.starts.iter().skip(1).find_map(|&at| {
            let info = u32_at(self.types, at + 4)?;
            if info >> 24 & 0x1f != ENUM {
                return None;
            }
            (0..(info & 0xffff) as usize).find_map(|n| {
                let member = at + 12 + 8 * n;
                self.is_named(u32_at(self.types, member)?, name).then(|| u32_at(self.types, member + 4))?
            })
        })
    }

    fn enumerators(&self, name: &str) -> Vec<(u32, &'a str)> {
        let Some(at) = self.find(ENUM, name) else { return Vec::new() };
        let members = u32_at(self.types, at + 4).unwrap_or(0) & 0xffff;
        let member = |n| {
            let at = at + 12 + 8 * n as usize;
            Some((u32_at(self.types, at + 4)?, self.name(u32_at(self.types, at)?)))
        };
        (0..members).filter_map(member).collect()
    }
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_running_kernel_has_what_the_ledger_needs() {
        let Ok(kernel) = KernelReasons::get() else { return assert!(!std::path::Path::new(PATH).exists()) };
        assert_ne!(kernel.offsets.skb_head, kernel.offsets.skb_tail);
        assert_eq!(kernel.xdp().and_then(|n| kernel.name(n)).as_deref(), Some("XDP"));
    }

    proptest! {
        #[test]
        fn no_blob_makes_the_reader_panic(mut data in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Some(magic) = data.first_chunk_mut() {
                *magic = 0xeb9f_u16.to_ne_bytes();
            }
            let _ = KernelReasons::parse(&data);
        }
    }
}

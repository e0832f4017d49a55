//! Names for addresses: the kernel's symbols, and the functions of the BPF programs that are loaded.

use std::{fs, io, path::PathBuf};

use crate::{
    host::HostError,
    program::{ProgramError, jited::JitedFunction},
    record::profile::SymbolKind,
};

const KALLSYMS: &str = "/proc/kallsyms";
/// `kallsyms` has no lengths: a symbol reaches to the next one, but no further than this. What is behind it, a module's
/// end or a gap between two, is nobody's.
const LONGEST: u64 = 1 << 20;
/// Trampolines and dispatchers have a page each.
const IMAGE: u64 = 4096;

/// A name for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The function; a BPF program's ends in ` [bpf]`, a module's in the module's name.
    pub name: &'a str,
    /// What it is.
    pub kind: SymbolKind,
}

/// The symbols of the running kernel at one moment.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// By start; they don't overlap.
    places: Vec<Place>,
    /// The same of BPF programs, whose exact ends the kernel tells.
    programs: Vec<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    start: u64,
    end: u64,
    name: String,
    kind: SymbolKind,
}

/// What code that has no symbol is called: without `net.core.bpf_jit_kallsyms` the kernel doesn't tell where its
/// trampolines and dispatchers are.
const UNNAMED: Symbol<'static> = Symbol { name: "generated code without a name [bpf]", kind: SymbolKind::Bpf };

/// Why there are no names.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SymbolError {
    /// The kernel's symbols can't be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The kernel hides its addresses.
    #[error("{KALLSYMS} shows no addresses: run as root, with kernel.kptr_restrict at 0 or 1")]
    Hidden,
    /// The programs' code can't be found.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

impl Symbols {
    /// Reads the symbols as they are now: take them while the programs that are of interest are loaded.
    ///
    /// # Errors
    /// Where the kernel does not show its addresses, or can't be asked for its BPF programs.
    pub fn now() -> Result<Self, SymbolError> {
        let text = fs::read(KALLSYMS).map_err(|source| HostError::File {
            operation: "read",
            path: PathBuf::from(KALLSYMS),
            source,
        })?;
        let text = String::from_utf8(text).map_err(|error| {
            HostError::system(format!("read {KALLSYMS}"), io::Error::new(io::ErrorKind::InvalidData, error))
        })?;
        Self::new(&text, &crate::program::jited::functions()?)
    }

    /// Symbols from the text of `/proc/kallsyms` and the functions of the BPF programs.
    ///
    /// # Errors
    /// Where every address is 0.
    pub fn new(kallsyms: &str, functions: &[JitedFunction]) -> Result<Self, SymbolError> {
        let mut found: Vec<(u64, bool, Place)> = kallsyms.lines().filter_map(line).collect();
        if found.is_empty() {
            return Err(SymbolError::Hidden);
        }
        // Of several names of one place a global one; it is what the kernel's own sources call it.
        found.sort_by_key(|(start, global, _)| (*start, !global));
        found.dedup_by_key(|(start, ..)| *start);
        let mut places: Vec<Place> = found.into_iter().map(|(.., place)| place).collect();
        for n in 1..places.len() {
            let next = places[n].start;
            places[n - 1].end = places[n - 1].end.min(next);
        }
        let mut programs: Vec<Place> = functions
            .iter()
            .map(|function| Place {
                start: function.addresses.start,
                end: function.addresses.end,
                name: format!("{} [bpf]", function.name),
                kind: SymbolKind::Bpf,
            })
            .collect();
        programs.sort_by_key(|place| place.start);
        Ok(Self { places, programs })
    }

    /// The name for an address in the kernel.
    pub fn at(&self, address: u64) -> Symbol<'_> {
        let place = find(&self.programs, address).or_else(|| find(&self.places, address));
        place.map_or(UNNAMED, |place| Symbol { name: &place.name, kind: place.kind })
    }
}

fn find(places: &[Place], address: u64) -> Option<&Place> {
    let after = places.partition_point(|place| place.start <= address);
    places[..after].last().filter(|place| address < place.end)
}

/// A line of `kallsyms` that names code: its address, whether it is global, and its place as far as it may reach.
fn line(line: &str) -> Option<(u64, bool, Place)> {
    let mut words = line.split_ascii_whitespace();
    let start = u64::from_str_radix(words.next()?, 16).ok().filter(|start| *start != 0)?;
    let kind = words.next()?;
    if !matches!(kind, "t" | "T" | "w" | "W") {
        return None;
    }
    let name = words.next()?;
    let module = words.next();
    let is_bpf = module == Some("[bpf]");
    let (name, longest) = match module {
        Some(_) if is_bpf => (format!("{} [bpf]", program(name)), if is_program(name) { LONGEST } else { IMAGE }),
        Some(module) => (format!("{name} {module}"), LONGEST),
        None => (name.to_owned(), LONGEST),
    };
    let kind_of = if is_bpf { SymbolKind::Bpf } else { SymbolKind::Kernel };
    let end = start.saturating_add(longest);
    Some((start, matches!(kind, "T" | "W"), Place { start, end, name, kind: kind_of }))
}

const PREFIX: &str = "bpf_prog_";
/// Digits of a program's tag.
const TAG: usize = 16;

fn is_program(symbol: &str) -> bool {
    symbol.starts_with(PREFIX)
}

/// The name in a program's symbol, `bpf_prog_TAG_NAME`; the symbol itself where there is none.
fn program(symbol: &str) -> &str {
    let name = symbol.strip_prefix(PREFIX).and_then(|rest| {
        let (tag, name) = rest.split_at_checked(TAG)?;
        tag.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(name)?.strip_prefix('_')
    });
    name.filter(|name| !name.is_empty()).unwrap_or(symbol)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 t local_of_the_same_place
ffffffff81000100 t veth_poll
ffffffff81000200 T xdp_do_redirect
ffffffff81000300 D some_data
ffffffff81000400 W weak_one
ffffffffc0200000 t veth_xdp_rcv\t[veth]
ffffffffc0300000 t bpf_prog_0123456789abcdef_xdp_cut_short\t[bpf]
ffffffffc0300800 t bpf_prog_0123456789abcdef\t[bpf]
ffffffffc0400000 t bpf_dispatcher_xdp\t[bpf]
";

    fn symbols() -> Symbols {
        let of_program = |name: &str, addresses| JitedFunction { name: name.to_owned(), addresses, program: 1 };
        let functions = [
            of_program("xdp_redirect_map", 0xffff_ffff_c030_0000..0xffff_ffff_c030_0100),
            of_program("xdp_sink", 0xffff_ffff_c050_0000..0xffff_ffff_c050_0010),
        ];
        Symbols::new(TEXT, &functions).unwrap()
    }

    #[test]
    fn every_address_has_the_name_of_what_is_there() {
        let symbols = symbols();
        let name = |address| symbols.at(address).name;
        assert_eq!(name(0xffff_ffff_8100_0000), "_stext");
        assert_eq!(name(0xffff_ffff_8100_01ff), "veth_poll");
        // Data is no end of code: compilers keep none between functions.
        assert_eq!(name(0xffff_ffff_8100_0300), "xdp_do_redirect");
        assert_eq!(name(0xffff_ffff_8100_0400), "weak_one");
        assert_eq!(name(0xffff_ffff_c020_0010), "veth_xdp_rcv [veth]");
        assert_eq!(symbols.at(0xffff_ffff_c020_0010).kind, SymbolKind::Kernel);
    }

    #[test]
    fn programs_have_their_whole_names_to_their_exact_ends() {
        let symbols = symbols();
        let name = |address| symbols.at(address).name;
        assert_eq!(name(0xffff_ffff_c030_00ff), "xdp_redirect_map [bpf]");
        // Of what only kallsyms knows, the name in the symbol.
        assert_eq!(name(0xffff_ffff_c030_0100), "xdp_cut_short [bpf]");
        assert_eq!(name(0xffff_ffff_c030_0800), "bpf_prog_0123456789abcdef [bpf]");
        assert_eq!(name(0xffff_ffff_c040_0fff), "bpf_dispatcher_xdp [bpf]");
        assert_eq!(name(0xffff_ffff_c040_1000), UNNAMED.name);
        assert_eq!(name(0xffff_ffff_c050_000f), "xdp_sink [bpf]");
        assert_eq!(symbols.at(0xffff_ffff_c050_0010), UNNAMED);
    }

    #[test]
    fn hidden_addresses_are_an_error_that_says_what_to_do() {
        let hidden = "0000000000000000 T _stext\n0000000000000000 t veth_poll\n";
        let error = Symbols::new(hidden, &[]).unwrap_err().to_string();
        insta::assert_snapshot!(error, @"/proc/kallsyms shows no addresses: run as root, with kernel.kptr_restrict at 0 or 1");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "([0-9a-f]{1,16} [tTD] [a-z_0-9]{1,40}( \\[bpf\\])?\n|\\PC{0,30}\n){0,20}", address: u64) {
            if let Ok(symbols) = Symbols::new(&text, &[]) {
                symbols.at(address);
                prop_assert!(symbols.places.windows(2).all(|pair| pair[0].end <= pair[1].start));
            }
        }
    }
}

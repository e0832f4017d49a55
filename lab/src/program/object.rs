//! What an ELF object holds, before the kernel sees it: programs, maps, globals, and what would keep it from loading.

use object::{Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind, read::elf::ElfFile64};

use super::ProgramError;

/// What an object holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// XDP programs by name.
    pub(super) xdp: Vec<String>,
    /// Programs that run on a devmap's way out.
    pub(super) devmap: Vec<String>,
    /// Other programs, with their sections.
    pub(super) others: Vec<String>,
    /// Maps.
    pub(super) maps: Vec<String>,
    /// Globals: name, size in bytes.
    pub(super) globals: Vec<(String, usize)>,
}

/// Sections that hold programs of other kinds, by the part before the first slash.
const KNOWN: &[&str] = &[
    "classifier",
    "tc",
    "tcx",
    "action",
    "socket",
    "kprobe",
    "kretprobe",
    "uprobe",
    "uretprobe",
    "tracepoint",
    "tp",
    "raw_tp",
    "raw_tracepoint",
    "tp_btf",
    "fentry",
    "fexit",
    "freplace",
    "lsm",
    "perf_event",
    "cgroup",
    "cgroup_skb",
    "sockops",
    "sk_skb",
    "sk_msg",
    "sk_lookup",
    "iter",
    "syscall",
    "lwt_in",
    "lwt_out",
    "lwt_xmit",
    "netkit",
    "flow_dissector",
];

/// Looks into an object.
pub(super) fn contents(name: &str, data: &[u8]) -> Result<Contents, ProgramError> {
    let not_bpf = |reason: String| ProgramError::NotBpf { object: name.to_owned(), reason };
    if !data.starts_with(b"\x7fELF") {
        return Err(not_bpf("it is no ELF file".to_owned()));
    }
    let elf = ElfFile64::<object::Endianness>::parse(data).map_err(|e| not_bpf(format!("it is damaged ({e})")))?;
    if elf.architecture() != Architecture::Bpf {
        return Err(not_bpf(format!("it is for {:?}", elf.architecture())));
    }
    let mut contents = Contents::default();
    for section in elf.sections() {
        // A section that the header places outside of the file shows here, and not as a riddle later.
        section.data().map_err(|e| not_bpf(format!("it is damaged ({e})")))?;
        if section.name() == Ok(".ksyms") {
            return Err(ProgramError::Kfunc { object: name.to_owned(), function: "section .ksyms".to_owned() });
        }
    }
    for symbol in elf.symbols() {
        // What an object leaves to be found elsewhere can only be the kernel's.
        if let Ok(function) = symbol.name()
            && symbol.is_undefined()
            && !function.is_empty()
        {
            return Err(ProgramError::Kfunc { object: name.to_owned(), function: function.to_owned() });
        }
        let (Ok(symbol_name), Some(index)) = (symbol.name(), symbol.section_index()) else { continue };
        let Ok(section) = elf.section_by_index(index) else { continue };
        let section_name = section.name().unwrap_or_default();
        match (symbol.kind(), section_name) {
            (SymbolKind::Text, ".text") => {}
            (SymbolKind::Text, _) if symbol.is_global() => {
                sort_program(&mut contents, name, symbol_name, section_name)?;
            }
            (_, ".maps" | "maps") => contents.maps.push(symbol_name.to_owned()),
            (SymbolKind::Data, _) if is_data(section_name) => {
                contents.globals.push((symbol_name.to_owned(), symbol.size() as usize));
            }
            _ => {}
        }
    }
    Ok(contents)
}

fn is_data(section: &str) -> bool {
    [".rodata", ".data", ".bss"].iter().any(|prefix| section.starts_with(prefix))
}

fn sort_program(contents: &mut Contents, object: &str, program: &str, section: &str) -> Result<(), ProgramError> {
    let list = match section {
        "xdp" | "xdp.frags" => &mut contents.xdp,
        "xdp/devmap" | "xdp.frags/devmap" => &mut contents.devmap,
        "xdp/cpumap" | "xdp.frags/cpumap" => &mut contents.others,
        // libbpf takes `SEC("xdp/anything")` as XDP, and so do many examples.
        _ if section.starts_with("xdp/") || section.starts_with("xdp_") => &mut contents.xdp,
        _ if KNOWN.contains(&section.split(['/', '.', '+']).next().unwrap_or_default()) => {
            contents.others.push(format!("{program} ({section})"));
            return Ok(());
        }
        _ => return Err(ProgramError::UnknownSection { object: object.to_owned(), section: section.to_owned() }),
    };
    list.push(program.to_owned());
    Ok(())
}

/// Chooses an XDP program.
pub(super) fn choose(object: &str, contents: &Contents, wanted: Option<&str>) -> Result<String, ProgramError> {
    let present = list(contents.xdp.iter());
    let object = object.to_owned();
    match (wanted, contents.xdp.as_slice()) {
        (_, []) => Err(ProgramError::NoXdp { object, present: list(contents.others.iter().chain(&contents.devmap)) }),
        (Some(program), names) if names.iter().any(|name| name == program) => Ok(program.to_owned()),
        (Some(program), _) => Err(ProgramError::NoProgram { object, program: program.to_owned(), present }),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(ProgramError::Ambiguous { object, present }),
    }
}

/// Names in a row, or a word for none.
pub(super) fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Sets a global in an object's bytes. Only for objects of the lab, whose globals all have bytes in the file.
pub(super) fn patch(data: &mut [u8], global: &str, value: &[u8]) -> Option<()> {
    let elf = ElfFile64::<object::Endianness>::parse(&*data).ok()?;
    let symbol = elf.symbols().find(|symbol| symbol.name() == Ok(global))?;
    let section = elf.section_by_index(symbol.section_index()?).ok()?;
    let (start, _) = section.file_range()?;
    let at = (start + symbol.address() - section.address()) as usize;
    let size = symbol.size() as usize;
    if size != value.len() {
        return None;
    }
    data.get_mut(at..at + size)?.copy_from_slice(value);
    Some(())
}

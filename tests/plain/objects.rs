//! The committed objects against freshly built ones, by structure: another compiler's code differs, what it offers must not.

use std::{collections::BTreeSet, fs, path::Path};

use aya_obj::btf::Btf;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind, read::elf::ElfFile64};

/// Programs, maps and globals of an object, each with its section and, for data, its size.
fn structure(data: &[u8]) -> BTreeSet<String> {
    let elf = ElfFile64::<object::Endianness>::parse(data).expect("an object");
    elf.symbols()
        .filter(|symbol| symbol.is_global() && !symbol.is_undefined())
        .filter_map(|symbol| {
            let section = elf.section_by_index(symbol.section_index()?).ok()?;
            let section = section.name().ok().filter(|name| *name != ".text")?;
            let size = if symbol.kind() == SymbolKind::Data { symbol.size() } else { 0 };
            Some(format!("{} in {section}, {size} bytes", symbol.name().ok()?))
        })
        .collect()
}

fn committed() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/objects");
    ["", "test"]
        .iter()
        .flat_map(|sub| fs::read_dir(folder.join(sub)).expect("the objects' folder").flatten())
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "o"))
        .map(|path| {
            let name = path.strip_prefix(&folder).expect("below the folder").display().to_string();
            (name, fs::read(path).expect("an object"))
        })
        .collect()
}

#[test]
fn built_objects_have_the_committed_structure() {
    // `ci/check-programs` names a folder of fresh objects where their bytes can't be compared; without it the committed
    // ones are compared with themselves, which shows that there are some and that they parse.
    let built = std::env::var_os("XDPLAB_BUILT_OBJECTS");
    let objects = committed();
    assert!(objects.len() >= 11, "{}", objects.len());
    for (name, committed) in objects {
        let fresh = built.as_ref().map(|dir| fs::read(Path::new(dir).join(&name)).expect("a fresh object"));
        let fresh = fresh.as_deref().unwrap_or(&committed);
        assert_eq!(structure(&committed), structure(fresh), "{name}");
    }
}

#[test]
fn a_program_or_a_global_that_is_gone_shows() {
    let objects = committed();
    let of = |name: &str| structure(&objects.iter().find(|(n, _)| n == name).expect("a committed object").1);
    assert!(of("sink.o").contains("xdp_sink in xdp, 0 bytes"), "{:?}", of("sink.o"));
    assert!(of("sink.o").contains("FLOWS in .rodata, 4 bytes"), "{:?}", of("sink.o"));
    assert_ne!(of("sink.o"), of("source.o"));
}

#[test]
fn objects_have_no_types_that_llvm_orders_by_chance() {
    // Structures that are only declared, as behind a pointer in `__sk_buff`: two of them are written in the order of
    // LLVM's pointers, and a fresh object would differ from the committed one now and then. See `UntypedSkb`.
    for (name, data) in committed() {
        let elf = ElfFile64::<object::Endianness>::parse(&*data).expect("an object");
        let section = elf.section_by_name(".BTF").expect("BTF");
        let btf = Btf::parse(section.data().expect("its bytes"), object::Endianness::Little).expect("BTF that parses");
        // aya-obj hands types out in its debug format alone.
        let types = format!("{btf:?}");
        assert!(types.contains("FuncProto("), "{name}: {types}");
        assert!(types.matches("Fwd(").count() <= 1, "{name}: {types}");
    }
}

//! Loading a program, and explaining why it did not load.

use std::{
    error::Error as _,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, PoisonError},
};

use aya::{
    Ebpf, EbpfError, EbpfLoader,
    programs::{Program, ProgramError as AyaProgramError},
};

use super::{ProgramError, XdpProgram, builtin, object, values, xdp::Parts};
use crate::topology::{Builtin, MapContents, PortId, ProgramBody, ProgramSource};

/// Lines of the verifier's log that stand in a message.
const TAIL: usize = 12;

/// What loading a program needs to know of its lab.
#[derive(Clone, Copy)]
pub struct LoadContext<'a> {
    /// The program's name in the file.
    pub name: &'a str,
    /// The number in the lab's markers.
    pub instance: u16,
    /// Number of the lab's ports.
    pub slots: u32,
    /// Number of flows that a sink can tell apart.
    pub flows: u32,
    /// Most receive queues of a port that it is attached to.
    pub queues: u32,
    /// Whether it counts marked frames, or is bare.
    pub counting: bool,
    /// Where maps that an object pins by name go; `None`: such an object is refused by the kernel.
    pub pin_dir: Option<&'a Path>,
    /// Where the verifier's whole log goes.
    pub log_dir: Option<&'a Path>,
    /// The interface index of a port.
    pub ifindex: &'a dyn Fn(PortId) -> u32,
}

/// The loader of the built-ins. One for the process: each new one parses the kernel's types, which takes longer than
/// everything else about loading.
static LOADER: LazyLock<Mutex<EbpfLoader<'static>>> = LazyLock::new(|| {
    let mut loader = EbpfLoader::new();
    loader.btf(None);
    Mutex::new(loader)
});

/// Loads a program of a topology.
///
/// # Errors
/// Where there is no such object or program, a value does not fit its place, or the verifier rejects it.
pub fn load(body: &ProgramBody, cx: &LoadContext<'_>) -> Result<XdpProgram, ProgramError> {
    match &body.source {
        ProgramSource::Builtin(builtin) => load_builtin(*builtin, body, cx),
        ProgramSource::Object { path, program } => load_object(path, program.as_deref(), body, cx),
    }
}

/// Loads one of the lab's own objects, with its map sizes.
pub(super) fn load_own(data: &[u8], max_entries: &[(&'static str, u32)]) -> Result<Ebpf, ProgramError> {
    // A panic of another thread in here left nothing half done: the loader is only settings.
    let mut loader = LOADER.lock().unwrap_or_else(PoisonError::into_inner);
    for (map, size) in max_entries {
        loader.map_max_entries(map, *size);
    }
    loader.load(data).map_err(|error| failed("a built-in", &error))
}

fn load_builtin(builtin: Builtin, body: &ProgramBody, cx: &LoadContext<'_>) -> Result<XdpProgram, ProgramError> {
    let prepared = builtin::prepare(builtin, body, cx)?;
    let mut ebpf = load_own(&prepared.data, &prepared.max_entries)?;
    for program in prepared.egress.iter().chain([&prepared.program]) {
        verify(&mut ebpf, builtin.name(), program, cx.log_dir)?;
    }
    let mut parts = Parts {
        ebpf,
        object: builtin.name().to_owned(),
        program: prepared.program.to_owned(),
        egress: prepared.egress.map(str::to_owned),
        slots: cx.slots,
        counts: true,
        maps: Vec::new(),
        filling: prepared.filling,
    };
    if let (Some(contents), Some(map)) = (body.maps.get("tx_ports"), prepared.targets) {
        parts.maps.push((map.to_owned(), resolve(contents, cx)));
    }
    Ok(XdpProgram::new(parts))
}

/// An object that holds what a topology asks of it, as far as can be told without the kernel.
struct Chosen {
    name: String,
    data: Vec<u8>,
    program: String,
    overrides: Vec<(String, Vec<u8>)>,
}

/// Looks whether an object holds the programs, maps and globals that a topology names. Needs no privilege.
///
/// # Errors
/// What is missing, with what is there.
pub fn examine(body: &ProgramBody) -> Result<(), ProgramError> {
    match &body.source {
        ProgramSource::Builtin(_) => Ok(()),
        ProgramSource::Object { path, program } => choose(path, program.as_deref(), body, &|_| 1).map(drop),
    }
}

/// Largest object that is read, in bytes.
const LARGEST_OBJECT: u64 = 64 << 20;

/// Reads an object: a regular file of sane size, since a device or a pipe may never end.
fn read_object(path: &Path) -> io::Result<Vec<u8>> {
    let file = fs::metadata(path)?;
    if !file.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    if file.len() > LARGEST_OBJECT {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 64 MiB"));
    }
    fs::read(path)
}

fn choose(
    path: &Path,
    program: Option<&str>,
    body: &ProgramBody,
    ifindex: &dyn Fn(PortId) -> u32,
) -> Result<Chosen, ProgramError> {
    let name = path.display().to_string();
    let data = read_object(path).map_err(|source| ProgramError::Unreadable { path: path.to_owned(), source })?;
    let contents = object::contents(&name, &data)?;
    let program = object::choose(&name, &contents, program)?;
    if let Some(map) = body.maps.keys().find(|map| !contents.maps.contains(map)) {
        let present = object::list(contents.maps.iter());
        return Err(ProgramError::NoMap { object: name, map: map.clone(), present });
    }
    let mut overrides = Vec::new();
    for (global, value) in &body.globals {
        let Some((_, size)) = contents.globals.iter().find(|(known, _)| known == global) else {
            let present = object::list(contents.globals.iter().map(|(known, _)| known));
            return Err(ProgramError::NoGlobal { object: name, global: global.clone(), present });
        };
        let place = || format!("global {global} of {name}");
        overrides.push((global.clone(), values::bytes(value, *size, ifindex, &place)?));
    }
    if let Some(egress) = &body.egress
        && !contents.devmap.contains(egress)
    {
        let present = object::list(contents.devmap.iter());
        return Err(ProgramError::NoProgram {
            object: name,
            program: format!("{egress} (section xdp/devmap)"),
            present,
        });
    }
    Ok(Chosen { name, data, program, overrides })
}

fn load_object(
    path: &Path,
    program: Option<&str>,
    body: &ProgramBody,
    cx: &LoadContext<'_>,
) -> Result<XdpProgram, ProgramError> {
    let Chosen { name, data, program, overrides } = choose(path, program, body, cx.ifindex)?;
    let mut loader = EbpfLoader::new();
    if let Some(dir) = cx.pin_dir {
        loader.default_map_pin_directory(dir);
    }
    for (global, value) in &overrides {
        loader.override_global(global.as_str(), value.as_slice(), true);
    }
    // The parser trusts an object more than can be made sure of above: on a damaged one it may panic.
    let parsed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| loader.load(&data)));
    let damaged = || ProgramError::NotBpf { object: name.clone(), reason: "it is damaged".to_owned() };
    let mut ebpf = parsed.map_err(|_| damaged())?.map_err(|error| failed(&name, &error))?;
    for program in body.egress.iter().chain([&program]) {
        verify(&mut ebpf, &name, program, cx.log_dir)?;
    }
    Ok(XdpProgram::new(Parts {
        ebpf,
        object: name,
        program,
        egress: body.egress.clone(),
        slots: cx.slots,
        counts: false,
        maps: body.maps.iter().map(|(map, contents)| (map.clone(), resolve(contents, cx))).collect(),
        filling: builtin::Filling::Nothing,
    }))
}

/// Map contents with the ports' indices in place of the ports.
fn resolve(contents: &MapContents, cx: &LoadContext<'_>) -> MapContents {
    use crate::topology::Datum;
    fn datum(value: &Datum, ifindex: &dyn Fn(PortId) -> u32) -> Datum {
        match value {
            Datum::Port(port) => Datum::Integer(i64::from(ifindex(*port))),
            Datum::List(values) => Datum::List(values.iter().map(|value| datum(value, ifindex)).collect()),
            other => other.clone(),
        }
    }
    match contents {
        MapContents::List(values) => MapContents::List(values.iter().map(|v| datum(v, cx.ifindex)).collect()),
        MapContents::Table(pairs) => {
            MapContents::Table(pairs.iter().map(|(k, v)| (datum(k, cx.ifindex), datum(v, cx.ifindex))).collect())
        }
    }
}

/// Hands a program to the verifier.
pub(super) fn verify(ebpf: &mut Ebpf, object: &str, program: &str, log_dir: Option<&Path>) -> Result<(), ProgramError> {
    let loaded = match ebpf.program_mut(program) {
        Some(Program::Xdp(xdp)) => xdp.load(),
        _ => Err(AyaProgramError::UnexpectedProgramType),
    };
    match loaded {
        Ok(()) => Ok(()),
        Err(AyaProgramError::LoadError { io_error, verifier_log }) => {
            Err(rejected(object, program, io_error, &verifier_log.to_string(), log_dir))
        }
        Err(error) => Err(failed(object, &error.into())),
    }
}

/// A rejection, with the end of the verifier's log, and all of it in a file.
pub(super) fn rejected(
    object: &str,
    program: &str,
    errno: std::io::Error,
    log: &str,
    log_dir: Option<&Path>,
) -> ProgramError {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = lines[lines.len().saturating_sub(TAIL)..].iter().map(|line| format!("  | {line}")).collect::<Vec<_>>();
    let tail = if tail.is_empty() {
        "  (the verifier said nothing: is this process root?)".to_owned()
    } else {
        tail.join("\n")
    };
    let path: Option<PathBuf> = log_dir.filter(|_| !lines.is_empty()).and_then(|dir| {
        // Never through a link that somebody else laid: the file must be new.
        (0..100).find_map(|n| {
            let path = dir.join(format!("xdplab-verifier-{program}-{}-{n}.log", std::process::id()));
            let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&path).ok()?;
            file.write_all(log.as_bytes()).ok().map(|()| path)
        })
    });
    ProgramError::Rejected { object: object.to_owned(), program: program.to_owned(), errno, tail, log: path }
}

/// Any other error of the loader, with all its causes.
pub(super) fn failed(object: &str, error: &EbpfError) -> ProgramError {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // The outer error often repeats the inner one.
        if !reason.contains(&text) {
            reason.push_str(": ");
            reason.push_str(&text);
        }
        source = cause.source();
    }
    ProgramError::Load { object: object.to_owned(), reason }
}

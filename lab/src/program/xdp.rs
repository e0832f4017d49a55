//! Loaded programs and their links.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd, OwnedFd, RawFd},
    path::Path,
    time::Duration,
};

use aya::{
    Ebpf,
    maps::{
        Map, MapData,
        xdp::{CpuMap, DevMap, DevMapHash, XskMap},
    },
    programs::{Program, ProgramFd, TestRun as _, TestRunAttrs, TestRunOptions, Xdp},
};
use nix::time::{ClockId, clock_gettime};
use xdplab_wire::{
    flow,
    records::{Laps, Lookups, PortCounters},
};

use super::{ProgramError, builtin::Filling, extack, sys, values};
use crate::{
    topology::{Datum, MapContents, PortId},
    xdp::XdpMode,
};

const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// A program that the verifier took. Dropping it unloads it, unless a link or a pin holds it.
#[derive(Debug)]
pub struct XdpProgram {
    parts: Parts,
}

/// What an [`XdpProgram`] is made of.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) ebpf: Ebpf,
    pub(super) object: String,
    pub(super) program: String,
    pub(super) egress: Option<String>,
    pub(super) slots: u32,
    pub(super) counts: bool,
    /// What the maps are filled with; ports are interface indices already.
    pub(super) maps: Vec<(String, MapContents)>,
    /// What else they are filled with.
    pub(super) filling: Filling,
}

impl XdpProgram {
    pub(super) fn new(parts: Parts) -> Self {
        Self { parts }
    }

    fn xdp(&self) -> &Xdp {
        match self.parts.ebpf.program(&self.parts.program) {
            Some(Program::Xdp(xdp)) => xdp,
            _ => unreachable!("loading has found it to be an XDP program"),
        }
    }

    fn fd(&self) -> Result<&ProgramFd, ProgramError> {
        self.xdp().fd().map_err(|error| ProgramError::system("use a program", io::Error::other(error)))
    }

    /// The kernel's id of the program; 0 where the kernel does not tell.
    pub fn id(&self) -> u32 {
        self.xdp().info().map_or(0, |info| info.id())
    }

    /// The kernel's tag of the program's code.
    pub fn tag(&self) -> u64 {
        self.xdp().info().map_or(0, |info| info.tag())
    }

    /// Where the kernel put the program's code; `None` where it does not tell, or runs it without translating it.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn address(&self) -> Result<Option<u64>, ProgramError> {
        let code =
            sys::jited_code(self.id()).map_err(|source| ProgramError::system("look at a program's code", source))?;
        Ok(code.addresses.first().copied().filter(|address| *address != 0))
    }

    /// Fills the maps as the topology has it. To be called in the namespace of the ports that a devmap names: the
    /// kernel looks them up in the caller's.
    ///
    /// # Errors
    /// Where a value does not fit, the map is too small, or there is no such port in this namespace.
    pub fn fill_maps(&mut self) -> Result<(), ProgramError> {
        let parts = &mut self.parts;
        let egress = match &parts.egress {
            Some(name) => match parts.ebpf.program(name) {
                Some(Program::Xdp(xdp)) => Some(
                    xdp.fd()
                        .and_then(|fd| Ok(fd.try_clone()?))
                        .map_err(|error| ProgramError::system("use an egress program", io::Error::other(error)))?,
                ),
                _ => None,
            },
            None => None,
        };
        for (name, contents) in &parts.maps {
            let object = &parts.object;
            let map = parts.ebpf.map_mut(name).ok_or_else(|| ProgramError::NoMap {
                object: object.clone(),
                map: name.clone(),
                present: "others".to_owned(),
            })?;
            fill(name, map, contents, egress.as_ref())?;
        }
        match parts.filling {
            Filling::Nothing => Ok(()),
            Filling::Flows { map, key_bytes, flows, targets } => {
                fill_flows(self.map_data(map)?, key_bytes as usize, flows, targets)
            }
            Filling::Cpu { cpu, queue } => {
                let failed = |error: &dyn std::error::Error| {
                    let what = format!("hand frames to CPU {cpu}, with a queue of {queue}");
                    ProgramError::system(what, io::Error::other(describe(error)))
                };
                let map =
                    parts.ebpf.map_mut("cpus").ok_or_else(|| failed(&io::Error::from(io::ErrorKind::NotFound)))?;
                let mut cpus: CpuMap<&mut MapData> = map.try_into().map_err(|e: aya::maps::MapError| failed(&e))?;
                cpus.set(cpu, queue, egress.as_ref(), 0).map_err(|e| failed(&e))
            }
        }
    }

    /// The kernel's id of the program's cpumap, where it has one.
    pub fn cpumap_id(&self) -> Option<u32> {
        match self.parts.ebpf.map("cpus") {
            Some(Map::CpuMap(data)) => data.info().ok().map(|info| info.id()),
            _ => None,
        }
    }

    /// Memory that the program's largest map takes, in bytes, as the kernel counts it; 0 where it does not tell.
    pub fn largest_map_bytes(&self) -> u64 {
        let bytes = |fd: RawFd| {
            let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).ok()?;
            text.lines().find_map(|line| line.strip_prefix("memlock:"))?.trim().parse::<u64>().ok()
        };
        let maps = self.parts.ebpf.maps().filter_map(|(_, map)| map_data(map));
        maps.filter_map(|data| bytes(data.fd().as_fd().as_raw_fd())).max().unwrap_or(0)
    }

    /// How the lookups of the built-in `flow` ended.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn lookups(&self) -> Result<Lookups, ProgramError> {
        let mut words = vec![0u64; 2 * possible_cpus()?];
        sys::map_lookup(self.map_data("lookups")?.fd(), 0, &mut words)
            .map_err(|source| ProgramError::system("read a program's lookups", source))?;
        let sum = |n: usize| words.iter().skip(n).step_by(2).sum();
        Ok(Lookups { hits: sum(0), misses: sum(1) })
    }

    /// Attaches the program by a link. To be called in the port's namespace.
    ///
    /// # Errors
    /// Where the kernel refuses; never falls back to another mode, nor to an attachment that outlives the link.
    pub fn attach(&self, ifindex: u32, mode: XdpMode) -> Result<XdpLink, ProgramError> {
        let flags = match mode {
            XdpMode::Native => XDP_FLAGS_DRV_MODE,
            XdpMode::Generic => XDP_FLAGS_SKB_MODE,
        };
        let fd = self.fd()?.as_fd();
        let create = || sys::link_create(fd, ifindex, flags);
        let (outcome, words) = match create() {
            Err(error) if error.raw_os_error() != Some(libc::EPERM) => extack::again(create),
            outcome => (outcome, None),
        };
        outcome.map(XdpLink::from).map_err(|source| {
            let words = words.map(|words| format!(" (the kernel says: {words})")).unwrap_or_default();
            ProgramError::Attach { explanation: format!("{}{words}", explain(&source, mode)), source }
        })
    }

    /// The program's name in its object.
    pub fn name(&self) -> &str {
        &self.parts.program
    }

    /// Runs the program once on a frame, by `BPF_PROG_RUN`: its verdict, and the frame as it left it.
    ///
    /// # Errors
    /// Where the kernel refuses, a frame shorter than an Ethernet header for one.
    pub fn run_once(&self, frame: &[u8]) -> Result<(u32, Vec<u8>), ProgramError> {
        let mut after = vec![0; frame.len() + 256];
        let options = TestRunOptions { data_in: Some(frame), data_out: Some(&mut after), ..TestRunOptions::new() };
        let result =
            self.xdp().test_run(options).map_err(|e| ProgramError::system("run a program", io::Error::other(e)))?;
        after.truncate(result.data_size_out as usize);
        Ok((result.return_value, after))
    }

    /// Runs the program on a frame so many times in a row, by `BPF_PROG_RUN`, and returns how much CPU time the call
    /// took: where another process had the CPU meanwhile, that does not count. The kernel's own figure is a whole number
    /// of nanoseconds a run.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn time_runs(&self, frame: &[u8], runs: u32) -> Result<Duration, ProgramError> {
        let options = TestRunOptions { data_in: Some(frame), repeat: runs, ..TestRunOptions::new() };
        let xdp = self.xdp();
        timed(|| xdp.test_run(options))
    }

    /// Runs the program on live frames, `batch` at a time, by `BPF_PROG_RUN`. To be called in the namespace that the
    /// frames leave from.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn run_live(&self, frame: &[u8], frames: u32, batch: u32) -> Result<(), ProgramError> {
        let options = TestRunOptions {
            data_in: Some(frame),
            repeat: frames,
            attrs: TestRunAttrs::new().xdp_live_frames(batch),
            ..TestRunOptions::new()
        };
        let run = self.xdp().test_run(options);
        run.map(drop).map_err(|error| ProgramError::system("run a program on live frames", io::Error::other(error)))
    }

    /// What the program counted, by slot, summed over CPUs; `None` for a user's program.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn counters(&self) -> Result<Option<Vec<PortCounters>>, ProgramError> {
        if !self.parts.counts {
            return Ok(None);
        }
        counters(self.map_data("ports")?, self.parts.slots).map(Some)
    }

    /// What the program counted at one slot.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn counters_at(&self, slot: u32) -> Result<PortCounters, ProgramError> {
        counters_at(self.map_data("ports")?, slot)
    }

    /// What the program counts at one slot, to be read while it is at work elsewhere; `None` for a user's program.
    ///
    /// # Errors
    /// Where no descriptor is left.
    pub fn port_counter(&self, slot: u32) -> Result<Option<PortCounter>, ProgramError> {
        if !self.parts.counts {
            return Ok(None);
        }
        let failed = |source| ProgramError::system("share a program's counters", source);
        let map = self.map_data("ports")?.fd().as_fd().try_clone_to_owned().map_err(failed)?;
        Ok(Some(PortCounter { map, slot }))
    }

    /// When the last laps at one slot began; `None` for a program that keeps none.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn laps_at(&self, slot: u32) -> Result<Option<Laps>, ProgramError> {
        let Ok(map) = self.map_data("laps") else { return Ok(None) };
        laps(map, slot).map(Some)
    }

    /// Sets the counters of one slot to zero.
    ///
    /// # Errors
    /// Where the map can't be written.
    pub fn reset_counters_at(&self, slot: u32) -> Result<(), ProgramError> {
        let zeroes = vec![0; PortCounters::WORDS * possible_cpus()?];
        sys::map_write(self.map_data("ports")?.fd(), slot, &zeroes)
            .map_err(|source| ProgramError::system("reset a program's counters", source))
    }

    /// Gives the frames of a slot's receive queue to an `AF_XDP` socket, which must be bound to it. `queues`: what the
    /// program was loaded with.
    ///
    /// # Errors
    /// Where the program is not the built-in `xsk`, or has no such slot or queue.
    pub fn set_socket(
        &mut self,
        slot: u32,
        queues: u32,
        queue: u32,
        socket: &impl AsRawFd,
    ) -> Result<(), ProgramError> {
        let failed = |error: &dyn std::error::Error| {
            ProgramError::system(
                format!("put the socket of slot {slot}, queue {queue}, into the map xsks"),
                io::Error::other(describe(error)),
            )
        };
        let map = self.parts.ebpf.map_mut("xsks").ok_or_else(|| ProgramError::NoMap {
            object: self.parts.object.clone(),
            map: "xsks".to_owned(),
            present: "others".to_owned(),
        })?;
        let mut sockets: XskMap<&mut MapData> = map.try_into().map_err(|error: aya::maps::MapError| failed(&error))?;
        sockets.set(slot * queues + queue, socket.as_raw_fd(), 0).map_err(|error| failed(&error))
    }

    /// Frames that the built-in `xsk` saw at queues without a socket, by slot.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn unclaimed(&self) -> Result<Vec<PortCounters>, ProgramError> {
        counters(self.map_data("unclaimed")?, self.parts.slots)
    }

    /// What the built-in egress program counted, by the target's slot.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn egress_counters(&self) -> Result<Vec<PortCounters>, ProgramError> {
        counters(self.map_data("egress")?, self.parts.slots)
    }

    /// Pins the maps into a directory of a BPF file system.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn pin(&self, dir: &Path) -> Result<(), ProgramError> {
        for (name, map) in self.parts.ebpf.maps() {
            // The compiler's own sections are maps as well; their names begin with a dot, which bpffs refuses.
            if let Some(data) = map_data(map)
                && !name.contains('.')
            {
                let path = dir.join(name);
                sys::pin(data.fd().as_fd(), &path)
                    .map_err(|source| ProgramError::system(format!("pin {}", path.display()), source))?;
            }
        }
        Ok(())
    }

    fn map_data(&self, name: &str) -> Result<&MapData, ProgramError> {
        self.parts.ebpf.map(name).and_then(map_data).ok_or_else(|| ProgramError::NoMap {
            object: self.parts.object.clone(),
            map: name.to_owned(),
            present: "others".to_owned(),
        })
    }
}

/// An attachment. Dropping it detaches the program, unless the link is pinned.
#[derive(Debug)]
pub struct XdpLink {
    fd: OwnedFd,
}

impl XdpLink {
    /// Puts another program in place, in the same mode: microseconds, and no frame passes without one.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn update(&self, program: &XdpProgram) -> Result<(), ProgramError> {
        sys::link_update(self.fd.as_fd(), program.fd()?.as_fd())
            .map_err(|source| ProgramError::system("put another program into a link", source))
    }

    /// Pins the link, so that it stays when this process ends.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn pin(&self, path: &Path) -> Result<(), ProgramError> {
        sys::pin(self.fd.as_fd(), path)
            .map_err(|source| ProgramError::system(format!("pin {}", path.display()), source))
    }
}

/// CPU time of this thread that a run took.
pub(super) fn timed<R>(run: impl FnOnce() -> Result<R, aya::programs::ProgramError>) -> Result<Duration, ProgramError> {
    let failed = |errno: nix::Error| ProgramError::system("read the thread's clock", errno);
    let started = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_err(failed)?;
    let outcome = run();
    let elapsed = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_err(failed)? - started;
    outcome.map_err(|e| ProgramError::system("run a program", io::Error::other(e)))?;
    Ok(Duration::from(elapsed))
}

/// What a refused attachment means.
fn explain(error: &io::Error, mode: XdpMode) -> String {
    let text = match error.raw_os_error() {
        Some(libc::ERANGE) => {
            "the MTU of this port's peer is too large for native XDP without fragments: lower it to 3506 or less, or attach generic"
        }
        Some(libc::ENOSPC) => {
            "the peer has more transmit queues than this port has receive queues: give both ends the same `queues`"
        }
        Some(libc::EBUSY | libc::EEXIST) => "another program is attached to this port already: detach it first",
        Some(libc::EOPNOTSUPP) if mode == XdpMode::Native => {
            "the driver has no native XDP: attach generic (mode = \"generic\")"
        }
        Some(libc::EOPNOTSUPP) => "the device takes no program in this mode",
        Some(libc::EINVAL) => {
            "the driver refuses the program on a port with these settings: on most, the MTU is too large, or LRO is on"
        }
        Some(libc::ENODEV) => "the port is gone",
        Some(libc::EPERM) => "it takes CAP_NET_ADMIN and CAP_BPF in the initial user namespace: run as root",
        _ => "the kernel refused",
    };
    text.to_owned()
}

fn fill(name: &str, map: &mut Map, contents: &MapContents, egress: Option<&ProgramFd>) -> Result<(), ProgramError> {
    let failed = |key: &dyn std::fmt::Display| {
        let operation = format!("fill map {name} at {key}");
        move |error: aya::maps::xdp::XdpMapError| ProgramError::system(operation, io::Error::other(describe(&error)))
    };
    let ports = |contents: &MapContents| -> Result<Vec<(u32, u32)>, ProgramError> {
        let number = |value: &Datum| match value {
            Datum::Integer(number) => u32::try_from(*number).ok(),
            _ => None,
        };
        let wrong = || ProgramError::Value {
            place: format!("map {name}"),
            reason: "a devmap takes ports, such as [\"dut:out0\"]".to_owned(),
        };
        match contents {
            MapContents::List(values) => {
                (0u32..).zip(values).map(|(key, value)| number(value).map(|v| (key, v)).ok_or_else(wrong)).collect()
            }
            MapContents::Table(pairs) => {
                pairs.iter().map(|(k, v)| number(k).zip(number(v)).ok_or_else(wrong)).collect()
            }
        }
    };
    match map {
        Map::DevMap(data) => {
            let size = data.info().map_or(u32::MAX, |info| info.max_entries());
            let targets = ports(contents)?;
            if let Some((key, _)) = targets.iter().find(|(key, _)| *key >= size) {
                return Err(ProgramError::Value {
                    place: format!("map {name}"),
                    reason: format!("slot {key} is beyond its {size} entries: fewer targets, or a larger map"),
                });
            }
            let mut devmap: DevMap<&mut MapData> =
                map.try_into().map_err(|e| ProgramError::system("open a devmap", io::Error::other(format!("{e}"))))?;
            targets.into_iter().try_for_each(|(key, ifindex)| devmap.set(key, ifindex, egress, 0).map_err(failed(&key)))
        }
        Map::DevMapHash(_) => {
            let targets = ports(contents)?;
            let mut devmap: DevMapHash<&mut MapData> =
                map.try_into().map_err(|e| ProgramError::system("open a devmap", io::Error::other(format!("{e}"))))?;
            targets
                .into_iter()
                .try_for_each(|(key, ifindex)| devmap.insert(key, ifindex, egress, 0).map_err(failed(&key)))
        }
        other => match map_data(other) {
            Some(data) => fill_plain(name, data, contents),
            None => Err(ProgramError::Value {
                place: format!("map {name}"),
                reason: "a map of this kind can't be filled from a topology".to_owned(),
            }),
        },
    }
}

/// Fills a map of plain values: as many bytes as the kernel says that key and value have.
fn fill_plain(name: &str, data: &MapData, contents: &MapContents) -> Result<(), ProgramError> {
    let info =
        data.info().map_err(|error| ProgramError::system(format!("look at map {name}"), io::Error::other(error)))?;
    let (key_size, value_size) = (info.key_size() as usize, info.value_size() as usize);
    let is_port = |_: PortId| 0;
    let entries: Vec<(Datum, &Datum)> = match contents {
        MapContents::List(values) => (0i64..).zip(values).map(|(key, value)| (Datum::Integer(key), value)).collect(),
        MapContents::Table(pairs) => pairs.iter().map(|(key, value)| (key.clone(), value)).collect(),
    };
    let most = info.max_entries() as usize;
    if entries.len() > most {
        let reason = format!("{} entries are given, and it holds {most}: give fewer, or make it larger", entries.len());
        return Err(ProgramError::Value { place: format!("map {name}"), reason });
    }
    for (n, (key, value)) in entries.iter().enumerate() {
        let key = values::bytes(key, key_size, &is_port, &|| format!("key {n} of map {name}"))?;
        let value = values::bytes(value, value_size, &is_port, &|| format!("value {n} of map {name}"))?;
        sys::map_update(data.fd(), &key, &value).map_err(|source| {
            ProgramError::system(format!("fill map {name} ({} entries) at entry {n}", info.max_entries()), source)
        })?;
    }
    Ok(())
}

/// Entries of a batch: large enough that the system call does not count.
const BATCH: u32 = 4096;

/// Fills a map of flows: keys by number, values the index of the target.
fn fill_flows(data: &MapData, key_bytes: usize, flows: u32, targets: u32) -> Result<(), ProgramError> {
    let mut first = 0;
    // Not in turn, as frames come: neighbours in time would be neighbours in memory. A step that has no factor in common
    // with the number of flows reaches each once.
    let near = u64::from(flows) * 618 / 1000;
    let step = (near..=near + u64::from(flows)).find(|step| gcd(*step, flows.into()) == 1).unwrap_or(1);
    let order = |n: u32| (u64::from(n) * step % u64::from(flows)) as u32;
    while first < flows {
        let count = (flows - first).min(BATCH);
        let mut keys = vec![0; key_bytes * count as usize];
        for (n, key) in (first..).zip(keys.chunks_exact_mut(key_bytes)) {
            flow::write_key(order(n), key);
        }
        let values: Vec<u8> = (first..first + count).flat_map(|n| (order(n) % targets).to_ne_bytes()).collect();
        sys::map_update_batch(data.fd(), &keys, &values, count).map_err(|source| {
            ProgramError::system(format!("fill a map with flow {first} and those after it"), source)
        })?;
        first += count;
    }
    Ok(())
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn describe(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", describe(source)),
        None => error.to_string(),
    }
}

/// What a program counts at one port, by a descriptor of its own.
#[derive(Debug)]
pub struct PortCounter {
    map: OwnedFd,
    slot: u32,
}

impl PortCounter {
    /// Frames with a sound marker of the lab until now.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn ours(&self) -> Result<u64, ProgramError> {
        let mut words = vec![0u64; PortCounters::WORDS * possible_cpus()?];
        sys::map_lookup(&self.map, self.slot, &mut words)
            .map_err(|source| ProgramError::system("read a program's counters", source))?;
        Ok(words.chunks_exact(PortCounters::WORDS).map(|cpu| PortCounters::from_words(cpu).ours).sum())
    }
}

/// The data of a map, of the kinds that hold plain values.
fn map_data(map: &Map) -> Option<&MapData> {
    match map {
        Map::Array(data)
        | Map::HashMap(data)
        | Map::LruHashMap(data)
        | Map::LpmTrie(data)
        | Map::PerCpuArray(data)
        | Map::PerCpuHashMap(data)
        | Map::PerCpuLruHashMap(data)
        | Map::DevMap(data)
        | Map::DevMapHash(data) => Some(data),
        _ => None,
    }
}

/// Number of CPUs for which a per-CPU map has values.
fn possible_cpus() -> Result<usize, ProgramError> {
    aya::util::nr_cpus().map_err(|(path, source)| ProgramError::system(format!("count the CPUs ({path})"), source))
}

fn counters(data: &MapData, slots: u32) -> Result<Vec<PortCounters>, ProgramError> {
    (0..slots).map(|slot| counters_at(data, slot)).collect()
}

/// A program's laps at one slot.
pub(super) fn laps(data: &MapData, slot: u32) -> Result<Laps, ProgramError> {
    let mut words = [0; Laps::WORDS];
    sys::map_lookup(data.fd(), slot, &mut words)
        .map_err(|source| ProgramError::system("read when a program's laps began", source))?;
    Ok(Laps::from_words(&words))
}

fn counters_at(data: &MapData, slot: u32) -> Result<PortCounters, ProgramError> {
    let mut words = vec![0u64; PortCounters::WORDS * possible_cpus()?];
    sys::map_lookup(data.fd(), slot, &mut words)
        .map_err(|source| ProgramError::system("read a program's counters", source))?;
    Ok(words
        .chunks_exact(PortCounters::WORDS)
        .fold(PortCounters::default(), |sum, cpu| sum.plus(&PortCounters::from_words(cpu))))
}

/// Reads the counters that a persistent lab's program keeps, by slot, from where its maps are pinned.
///
/// # Errors
/// Where nothing is pinned there, or it can't be read.
pub fn pinned_counters(pins: &Path) -> Result<Vec<PortCounters>, ProgramError> {
    let path = pins.join("ports");
    let failed = |error: aya::maps::MapError| {
        ProgramError::system(format!("open {}", path.display()), io::Error::other(describe(&error)))
    };
    let data = MapData::from_pin(&path).map_err(failed)?;
    let slots = data.info().map_err(failed)?.max_entries();
    counters(&data, slots)
}

impl From<OwnedFd> for XdpLink {
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}

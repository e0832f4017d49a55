//! The programs that write, read and exercise traits: a packet's key-value store in its metadata.

use std::{
    io,
    os::fd::{AsFd as _, BorrowedFd},
};

use aya::{
    Ebpf,
    maps::{
        Map, MapData,
        xdp::{CpuMap, DevMap},
    },
    programs::{
        LinkOrder, Program, ProgramError as AyaProgramError, TcAttachType, TestRun as _, TestRunOptions, Xdp,
        tc::{SchedClassifier, TcAttachOptions},
    },
};
use xdplab_wire::traits::{
    script::{Answer, MOST_STEPS, Step},
    seen::{SLOTS, Seen},
};

use super::{
    ProgramError, XdpLink,
    builtin::{objects, with_globals},
    load::{load_own, rejected},
    sys,
};
use crate::xdp::XdpMode;

/// Length of the frames that scripts run on, in bytes; what they hold does not matter.
const FRAME: usize = 64;
/// Most ports that traits are sent to.
const MOST_PORTS: u32 = 4;
/// More than any metadata is long.
const MOST_METADATA: usize = 256;

/// A program of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraitsProgram {
    /// Runs a script of operations on a frame's metadata.
    Script,
    /// Notes how far a frame's metadata can grow.
    Capacity,
    /// Writes traits, reads them back, and sends the frame on.
    Set,
    /// Reads the traits where a frame is received.
    Check,
    /// The same, and then writes other values.
    Write,
    /// Reads the traits on the way out of a devmap.
    CheckDevmap,
    /// The same, and then writes other values.
    WriteDevmap,
    /// Reads the traits on the CPU that a cpumap names.
    CheckCpumap,
}

impl TraitsProgram {
    /// Its name in the object.
    pub fn name(self) -> &'static str {
        match self {
            Self::Script => "xdp_traits_script",
            Self::Capacity => "xdp_traits_capacity",
            Self::Set => "xdp_traits_set",
            Self::Check => "xdp_traits_check",
            Self::Write => "xdp_traits_write",
            Self::CheckDevmap => "traits_check_devmap",
            Self::WriteDevmap => "traits_write_devmap",
            Self::CheckCpumap => "traits_check_cpumap",
        }
    }
}

/// The program at the traffic control hook.
const TC: &str = "traits_check_tc";

/// Where frames go that got their traits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraitsTarget {
    /// To the stack.
    Pass,
    /// Nowhere.
    Drop,
    /// To the port of [`Traits::set_port`].
    Port,
    /// To CPU 0, as [`Traits::set_cpu`] says.
    Cpu,
    /// To every port of [`Traits::set_ports`].
    Ports,
}

/// What the programs are made for.
#[derive(Debug, Clone, Copy)]
pub struct TraitsSpec<'a> {
    /// The number in the lab's markers.
    pub instance: u16,
    /// Number of the lab's ports.
    pub slots: u32,
    /// Key, length in bytes and bits of the traits that are written and checked: at most 8.
    pub traits: &'a [(u8, u8, u64)],
    /// Where frames go that got them.
    pub to: TraitsTarget,
    /// Whether the frame's head is moved by 8 bytes forth and back between writing and reading.
    pub move_head: bool,
    /// The verdict of [`TraitsProgram::Check`], [`TraitsProgram::Write`] and [`TraitsProgram::Capacity`]: an
    /// `enum xdp_action`.
    pub verdict: u32,
    /// Whether scripts move values by bytes, rather than by words.
    pub by_bytes: bool,
}

impl Default for TraitsSpec<'_> {
    /// Three traits of all lengths; everything passes.
    fn default() -> Self {
        Self {
            instance: 0,
            slots: SLOTS as u32,
            traits: &[(1, 8, 0x1122_3344_5566_7788), (5, 2, 0x99aa), (40, 4, 0xbbcc_ddee)],
            to: TraitsTarget::Pass,
            move_head: false,
            verdict: 2,
            by_bytes: false,
        }
    }
}

/// The programs, some of them loaded. Dropping it unloads what no link holds, and detaches from traffic control.
#[derive(Debug)]
pub struct Traits {
    ebpf: Ebpf,
}

impl Traits {
    /// Loads some of the programs, with maps of their own.
    ///
    /// # Errors
    /// Where there are more than 8 traits, or the kernel refuses.
    pub fn load(spec: &TraitsSpec<'_>, programs: &[TraitsProgram]) -> Result<Self, ProgramError> {
        let (mut keys, mut lengths, mut bits) = ([0; 8], [0; 8], [0; 64]);
        if spec.traits.len() > keys.len() {
            let reason = format!("{} traits are asked for, and the program writes at most 8", spec.traits.len());
            return Err(ProgramError::Value { place: "traits".to_owned(), reason });
        }
        for (n, (key, length, value)) in spec.traits.iter().enumerate() {
            (keys[n], lengths[n]) = (*key, *length);
            bits[8 * n..8 * n + 8].copy_from_slice(&value.to_ne_bytes());
        }
        let data = with_globals(
            objects::TRAITS,
            &[
                ("INSTANCE", &spec.instance.to_ne_bytes()),
                ("BY_BYTES", &[u8::from(spec.by_bytes)]),
                ("TRAITS", &(spec.traits.len() as u32).to_ne_bytes()),
                ("TRAIT_KEYS", &keys),
                ("TRAIT_LENGTHS", &lengths),
                ("TRAIT_BITS", &bits),
                ("TO", &[spec.to as u8]),
                ("MOVE_HEAD", &[u8::from(spec.move_head)]),
                ("VERDICT", &spec.verdict.to_ne_bytes()),
            ],
        )?;
        let mut ebpf = load_own(&data, &[("ports", spec.slots.max(1)), ("tx_ports", MOST_PORTS), ("cpus", 1)])?;
        for program in programs {
            load_xdp(&mut ebpf, "traits", program.name())?;
        }
        Ok(Self { ebpf })
    }

    /// Attaches a program to a port. To be called in the port's namespace.
    ///
    /// # Errors
    /// Where it is not loaded, is none for a port, or the kernel refuses.
    pub fn attach(&self, program: TraitsProgram, ifindex: u32, mode: XdpMode) -> Result<XdpLink, ProgramError> {
        // XDP_FLAGS_DRV_MODE and XDP_FLAGS_SKB_MODE
        let flags = match mode {
            XdpMode::Native => 1 << 2,
            XdpMode::Generic => 1 << 1,
        };
        let link = sys::link_create(fd(&self.ebpf, program.name())?, ifindex, flags)
            .map_err(|source| ProgramError::system(format!("attach {} to device {ifindex}", program.name()), source))?;
        Ok(XdpLink::from(link))
    }

    /// Reads the traits at the ingress hook of traffic control, until this is dropped. To be called in the port's
    /// namespace. Linux 6.6 or later.
    ///
    /// # Errors
    /// Where there is no such interface, or the kernel refuses.
    pub fn attach_tc(&mut self, interface: &str) -> Result<(), ProgramError> {
        let failed = |error: AyaProgramError| match error {
            AyaProgramError::LoadError { io_error, verifier_log } => {
                rejected("traits", TC, io_error, &verifier_log.to_string(), None)
            }
            other => {
                ProgramError::system(format!("attach {TC} to traffic control of {interface}"), io::Error::other(other))
            }
        };
        let program: &mut SchedClassifier = match self.ebpf.program_mut(TC) {
            Some(Program::SchedClassifier(program)) => program,
            _ => return Err(missing(TC)),
        };
        if program.fd().is_err() {
            program.load().map_err(failed)?;
        }
        // By a link, which goes with its descriptor; a filter by netlink would outlive us.
        let options = TcAttachOptions::TcxOrder(LinkOrder::default());
        program.attach_with_options(interface, TcAttachType::Ingress, options).map(drop).map_err(failed)
    }

    /// Has frames with traits go to a port, and through a program on the way out. To be called in the port's namespace.
    ///
    /// # Errors
    /// Where there is no such port, or the program is not loaded or is none for a devmap.
    pub fn set_port(&mut self, ifindex: u32, egress: Option<TraitsProgram>) -> Result<(), ProgramError> {
        self.set_ports(&[(ifindex, egress)])
    }

    /// The same for several ports, at most 4.
    ///
    /// # Errors
    /// Where there is no such port, or a program is not loaded or is none for a devmap.
    pub fn set_ports(&mut self, ports: &[(u32, Option<TraitsProgram>)]) -> Result<(), ProgramError> {
        for (slot, (ifindex, egress)) in (0..).zip(ports) {
            let failed = |error: &dyn std::error::Error| {
                ProgramError::system(format!("send traits to device {ifindex}"), io::Error::other(error.to_string()))
            };
            let egress = egress.map(|program| clone_fd(&self.ebpf, program.name())).transpose()?;
            let map = self.ebpf.map_mut("tx_ports").ok_or_else(|| missing("tx_ports"))?;
            let mut devmap: DevMap<&mut MapData> = map.try_into().map_err(|e: aya::maps::MapError| failed(&e))?;
            devmap.set(slot, *ifindex, egress.as_ref(), 0).map_err(|e| failed(&e))?;
        }
        Ok(())
    }

    /// Has frames with traits go to CPU 0, and through a program there.
    ///
    /// # Errors
    /// Where the kernel refuses, or the program is not loaded or is none for a cpumap.
    pub fn set_cpu(&mut self, queue_size: u32, program: Option<TraitsProgram>) -> Result<(), ProgramError> {
        let failed = |error: &dyn std::error::Error| {
            ProgramError::system("send traits to CPU 0", io::Error::other(error.to_string()))
        };
        let program = program.map(|program| clone_fd(&self.ebpf, program.name())).transpose()?;
        let map = self.ebpf.map_mut("cpus").ok_or_else(|| missing("cpus"))?;
        let mut cpumap: CpuMap<&mut MapData> = map.try_into().map_err(|e: aya::maps::MapError| failed(&e))?;
        cpumap.set(0, queue_size, program.as_ref(), 0).map_err(|e| failed(&e))
    }

    /// What was found at a place (see [`xdplab_wire::traits::seen`]), at the port of a slot, summed over CPUs.
    ///
    /// # Errors
    /// Where there is no such place or slot, or the map can't be read.
    pub fn seen(&self, place: usize, slot: usize) -> Result<Seen, ProgramError> {
        let cpus = aya::util::nr_cpus()
            .map_err(|(path, source)| ProgramError::system(format!("count the CPUs ({path})"), source))?;
        let mut words = vec![0; Seen::WORDS * cpus];
        let index = (place * SLOTS + slot) as u32;
        sys::map_lookup(map(&self.ebpf, "seen")?.fd(), index, &mut words)
            .map_err(|source| ProgramError::system(format!("read what was seen at {place}, slot {slot}"), source))?;
        Ok(Seen::sum(&words))
    }

    /// The largest metadata that a frame took, in bytes, and the number of frames that were asked by
    /// [`TraitsProgram::Capacity`].
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn capacity(&self) -> Result<(usize, u64), ProgramError> {
        let mut words = [0; 2];
        sys::map_lookup(map(&self.ebpf, "capacity")?.fd(), 0, &mut words)
            .map_err(|source| ProgramError::system("read the largest metadata", source))?;
        Ok((words[0] as usize, words[1]))
    }

    /// Asks how far the metadata of a frame of `BPF_PROG_RUN` can grow, in bytes.
    ///
    /// # Errors
    /// Where the program is not loaded, or the kernel refuses.
    pub fn probe_capacity(&self) -> Result<usize, ProgramError> {
        self.run(TraitsProgram::Capacity, &mut [0; FRAME + MOST_METADATA])?;
        self.capacity().map(|(largest, _)| largest)
    }

    /// Runs up to 64 steps in one run of the program, on an empty set of traits: the answers, and the metadata as they
    /// left it.
    ///
    /// # Errors
    /// Where there are more steps, the program is not loaded, or the kernel refuses.
    pub fn run_script(&self, steps: &[Step]) -> Result<(Vec<Answer>, Vec<u8>), ProgramError> {
        if steps.len() > MOST_STEPS {
            let reason = format!("{} steps are asked for, and it takes at most {MOST_STEPS}", steps.len());
            return Err(ProgramError::Value { place: "a script of traits".to_owned(), reason });
        }
        let mut words = [0; 1 + 2 * MOST_STEPS];
        words[0] = steps.len() as u64;
        for (pair, step) in words[1..].chunks_exact_mut(2).zip(steps) {
            pair.copy_from_slice(&[step.what, step.bits]);
        }
        sys::map_write(map(&self.ebpf, "script")?.fd(), 0, &words)
            .map_err(|source| ProgramError::system("write a script of traits", source))?;
        let mut after = [0; FRAME + MOST_METADATA];
        let metadata = self.run(TraitsProgram::Script, &mut after)?;
        let mut answers = [0; 3 * MOST_STEPS];
        sys::map_lookup(map(&self.ebpf, "answers")?.fd(), 0, &mut answers)
            .map_err(|source| ProgramError::system("read the answers to a script of traits", source))?;
        let answers = answers.chunks_exact(3).take(steps.len());
        let answers = answers.map(|words| Answer { status: words[0], first: words[1], second: words[2] }).collect();
        Ok((answers, after.get(..metadata).unwrap_or_default().to_vec()))
    }

    /// Runs a program once on a frame without metadata: the length of the metadata that it has then, which stands at
    /// the front of `after`.
    fn run(&self, program: TraitsProgram, after: &mut [u8; FRAME + MOST_METADATA]) -> Result<usize, ProgramError> {
        let mut context = [0; 24];
        // `data_end` of `struct xdp_md`. Without a context, the frame comes back without its metadata.
        context[4..8].copy_from_slice(&(FRAME as u32).to_ne_bytes());
        let options = TestRunOptions {
            data_in: Some(&[0; FRAME]),
            data_out: Some(after),
            ctx_in: Some(&context),
            ..TestRunOptions::new()
        };
        let result = xdp(&self.ebpf, program.name())?
            .test_run(options)
            .map_err(|e| ProgramError::system(format!("run {}", program.name()), io::Error::other(e)))?;
        if result.return_value == 0 {
            let refused = io::Error::other("it found no room for a header in the metadata");
            return Err(ProgramError::system(format!("run {}", program.name()), refused));
        }
        Ok((result.data_size_out as usize).saturating_sub(FRAME))
    }
}

/// Hands an XDP program to the verifier.
pub(super) fn load_xdp(ebpf: &mut Ebpf, object: &str, program: &str) -> Result<(), ProgramError> {
    match ebpf.program_mut(program) {
        Some(Program::Xdp(xdp)) => xdp.load().map_err(|error| match error {
            AyaProgramError::LoadError { io_error, verifier_log } => {
                rejected(object, program, io_error, &verifier_log.to_string(), None)
            }
            other => ProgramError::system(format!("load {program}"), io::Error::other(other)),
        }),
        _ => Err(missing(program)),
    }
}

/// An XDP program of an object.
pub(super) fn xdp<'a>(ebpf: &'a Ebpf, program: &str) -> Result<&'a Xdp, ProgramError> {
    match ebpf.program(program) {
        Some(Program::Xdp(xdp)) => Ok(xdp),
        _ => Err(missing(program)),
    }
}

/// A plain map of an object.
pub(super) fn map<'a>(ebpf: &'a Ebpf, name: &str) -> Result<&'a MapData, ProgramError> {
    match ebpf.map(name) {
        Some(Map::Array(data) | Map::PerCpuArray(data)) => Ok(data),
        _ => Err(missing(name)),
    }
}

fn fd<'a>(ebpf: &'a Ebpf, program: &str) -> Result<BorrowedFd<'a>, ProgramError> {
    let fd = xdp(ebpf, program)?.fd();
    fd.map(|fd| fd.as_fd()).map_err(|e| ProgramError::system(format!("use {program}"), io::Error::other(e)))
}

/// A program's descriptor once more, for a map that is borrowed for writing.
pub(super) fn clone_fd(ebpf: &Ebpf, program: &str) -> Result<aya::programs::ProgramFd, ProgramError> {
    let fd = xdp(ebpf, program)?.fd().and_then(|fd| Ok(fd.try_clone()?));
    fd.map_err(|e| ProgramError::system(format!("use {program}"), io::Error::other(e)))
}

/// Something that the lab's own object should have.
pub(super) fn missing(name: &str) -> ProgramError {
    ProgramError::system(
        format!("use {name} of a built-in: fixtures/objects and the library differ"),
        io::Error::from(io::ErrorKind::NotFound),
    )
}

//! Do traits survive? Written at a port, read where the frame got to, path by path and in both modes; and how much room
//! there is for them.

use std::time::{Duration, Instant};

use xdplab_wire::traits::seen::{self, Seen};

use super::rig::{PathSpec, Rig, RigSpec};
use crate::{
    host::{HostError, ethtool::Ethtool},
    lab::{LabError, ifindex},
    program::{Traits, TraitsProgram, TraitsSpec, TraitsTarget, XdpLink},
    record::bench::{TraitCapacity, TraitSurvival},
    topology::{Builtin, Options, PortId},
    traffic::Stop,
    xdp::XdpMode,
};

/// Frames of a path.
const FRAMES: u64 = 2_560;
/// Frames between two waits: a queue to another CPU would overflow without.
const CHUNK: u64 = 256;
/// How long a reader may take to see a chunk.
const DEADLINE: Duration = Duration::from_millis(200);
/// Targets of the broadcast.
const TARGETS: u32 = 3;

/// A path that traits may survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    /// Written, the head moved, and read by the same program.
    AdjustHead,
    /// Redirected, read by a program of the receiving port.
    Redirect,
    /// Redirected, read by an egress program.
    Egress,
    /// Broadcast, read at this target.
    Broadcast(u32),
    /// Broadcast, other values written by the first target's egress program, read at this target.
    BroadcastWritten(u32),
    /// To a cpumap, read by its program.
    Cpumap,
    /// To a cpumap without a program, read by a tc program behind it.
    CpumapTc,
    /// To a cpumap with a program, read by a tc program behind it.
    CpumapProgramTc,
    /// Passed to the stack, read by a tc program.
    PassTc,
}

impl Path {
    const ALL: [Self; 13] = [
        Self::AdjustHead,
        Self::Redirect,
        Self::Egress,
        Self::Broadcast(0),
        Self::Broadcast(1),
        Self::Broadcast(2),
        Self::BroadcastWritten(0),
        Self::BroadcastWritten(1),
        Self::BroadcastWritten(2),
        Self::Cpumap,
        Self::CpumapTc,
        Self::CpumapProgramTc,
        Self::PassTc,
    ];

    fn name(self) -> String {
        match self {
            Self::AdjustHead => "head moved by bpf_xdp_adjust_head, same program".to_owned(),
            Self::Redirect => "redirect to veth, program at its peer".to_owned(),
            Self::Egress => "redirect to veth, egress program".to_owned(),
            Self::Broadcast(n) => format!("broadcast to {TARGETS}, program at target {n}"),
            Self::BroadcastWritten(n) => {
                format!("broadcast to {TARGETS}, changed on the way out to target 0, program at target {n}")
            }
            Self::Cpumap => "cpumap, its program".to_owned(),
            Self::CpumapTc => "cpumap without a program, tc behind it".to_owned(),
            Self::CpumapProgramTc => "cpumap with a program, tc behind it".to_owned(),
            Self::PassTc => "pass to the stack, tc".to_owned(),
        }
    }

    fn target(self) -> TraitsTarget {
        match self {
            Self::AdjustHead => TraitsTarget::Drop,
            Self::Redirect | Self::Egress => TraitsTarget::Port,
            Self::Broadcast(_) | Self::BroadcastWritten(_) => TraitsTarget::Ports,
            Self::Cpumap | Self::CpumapTc | Self::CpumapProgramTc => TraitsTarget::Cpu,
            Self::PassTc => TraitsTarget::Pass,
        }
    }

    /// Where it is read: the place, and the port.
    fn reader(self) -> (usize, String) {
        match self {
            Self::AdjustHead => (seen::SET, "dut:rx0".to_owned()),
            Self::Redirect => (seen::XDP, "sink:in0".to_owned()),
            Self::Egress => (seen::DEVMAP, "dut:out0".to_owned()),
            Self::Broadcast(n) | Self::BroadcastWritten(n) => (seen::XDP, format!("sink:in{n}")),
            Self::Cpumap => (seen::CPUMAP, "dut:rx0".to_owned()),
            Self::CpumapTc | Self::CpumapProgramTc | Self::PassTc => (seen::TC, "dut:rx0".to_owned()),
        }
    }
}

/// All paths in both modes.
///
/// # Errors
/// Where the ports can't be made, or a program can't be loaded or attached.
pub(super) fn survival(stop: &Stop) -> Result<Vec<TraitSurvival>, LabError> {
    let mut rows = Vec::new();
    for mode in [XdpMode::Native, XdpMode::Generic] {
        for path in Path::ALL {
            if stop.is_asked() {
                return Ok(rows);
            }
            let Seen { frames, intact, changed, absent, broken } = walk(path, mode, stop)?;
            rows.push(TraitSurvival {
                path: path.name(),
                mode,
                offered: FRAMES,
                seen: frames,
                intact,
                changed,
                absent,
                broken,
            });
        }
    }
    Ok(rows)
}

/// Attaches a program in its port's node. A generic program sees live frames only where its port polls.
fn attach(
    rig: &Rig,
    traits: &Traits,
    program: TraitsProgram,
    port: PortId,
    mode: XdpMode,
) -> Result<XdpLink, LabError> {
    let name = rig.lab().topology().ports[port.0].name.clone();
    rig.lab().in_node(port, || -> Result<XdpLink, LabError> {
        Ethtool::open()?.set_gro(&name, mode == XdpMode::Generic)?;
        Ok(traits.attach(program, ifindex(port), mode)?)
    })?
}

fn walk(path: Path, mode: XdpMode, stop: &Stop) -> Result<Seen, LabError> {
    use TraitsProgram as Program;
    // A rig of its own: a port's settings would be left from the path before.
    let mut rig = Rig::new(&RigSpec { name: "traits", targets: TARGETS, ..RigSpec::default() }, stop)?;
    let spec = TraitsSpec {
        instance: rig.lab().instance().number,
        slots: rig.lab().topology().ports.len() as u32,
        to: path.target(),
        move_head: path == Path::AdjustHead,
        // What the readers saw ends there: XDP_DROP.
        verdict: 1,
        ..TraitsSpec::default()
    };
    let mut traits = Traits::load(
        &spec,
        &[Program::Set, Program::Check, Program::CheckDevmap, Program::WriteDevmap, Program::CheckCpumap],
    )?;
    let rx = rig.port("dut:rx0");
    let outs: Vec<PortId> = (0..TARGETS).map(|n| rig.port(&format!("dut:out{n}"))).collect();
    let egress = |n: usize| match path {
        Path::Egress => Some(Program::CheckDevmap),
        Path::BroadcastWritten(_) if n == 0 => Some(Program::WriteDevmap),
        _ => None,
    };
    let mut links = Vec::new();
    match path.target() {
        TraitsTarget::Port | TraitsTarget::Ports => {
            let many = path.target() == TraitsTarget::Ports;
            let ports: Vec<(u32, Option<Program>)> = outs
                .iter()
                .enumerate()
                .take(if many { outs.len() } else { 1 })
                .map(|(n, port)| (ifindex(*port), egress(n)))
                .collect();
            rig.lab().in_node(rx, || traits.set_ports(&ports))??;
            for n in 0..ports.len() {
                let port = rig.port(&format!("sink:in{n}"));
                links.push(attach(&rig, &traits, Program::Check, port, mode)?);
            }
        }
        TraitsTarget::Cpu => {
            traits.set_cpu(2048, (path != Path::CpumapTc).then_some(Program::CheckCpumap))?;
        }
        TraitsTarget::Pass | TraitsTarget::Drop => {}
    }
    if matches!(path, Path::CpumapTc | Path::CpumapProgramTc | Path::PassTc) {
        let name = rig.lab().topology().ports[rx.0].name.clone();
        rig.lab().in_node(rx, || traits.attach_tc(&name))??;
    }
    links.push(attach(&rig, &traits, Program::Set, rx, mode)?);
    let (place, port) = path.reader();
    let slot = rig.port(&port).0;
    let mut sent = 0;
    while sent < FRAMES && !stop.is_asked() {
        sent += rig.send(CHUNK.min(FRAMES - sent))?;
        let deadline = Instant::now() + DEADLINE;
        while traits.seen(place, slot)?.frames < sent && Instant::now() < deadline {
            std::thread::yield_now();
        }
    }
    Ok(traits.seen(place, slot)?)
}

/// The largest metadata on each path, in bytes.
///
/// # Errors
/// As [`survival`].
pub(super) fn capacity(stop: &Stop) -> Result<Vec<TraitCapacity>, LabError> {
    use TraitsProgram as Program;
    let spec = TraitsSpec { verdict: 1, ..TraitsSpec::default() };
    let bytes = Traits::load(&spec, &[Program::Capacity])?.probe_capacity()? as u32;
    let mut rows = vec![TraitCapacity { path: "BPF_PROG_RUN".to_owned(), mode: XdpMode::Native, bytes }];
    for mode in [XdpMode::Native, XdpMode::Generic] {
        for (path, redirect) in [("veth, first hop", false), ("veth, second hop", true)] {
            let mut rig = Rig::new(&RigSpec { name: "traits", inner: false, ..RigSpec::default() }, stop)?;
            let traits = Traits::load(&spec, &[Program::Capacity])?;
            let asked = if redirect {
                let body = rig.to_outs(Builtin::RedirectMap, Options::default(), 1);
                rig.install(&PathSpec::new(body, None, mode))?;
                "sink:in0"
            } else {
                "dut:rx0"
            };
            let _link = attach(&rig, &traits, Program::Capacity, rig.port(asked), mode)?;
            let sent = rig.send(CHUNK)?;
            let deadline = Instant::now() + DEADLINE;
            while traits.capacity()?.1 < sent && Instant::now() < deadline {
                std::thread::yield_now();
            }
            let (bytes, frames) = traits.capacity()?;
            if frames == 0 {
                return Err(HostError::system(
                    format!("probe the metadata of {path}, {mode}"),
                    std::io::Error::other("no frame was seen there"),
                )
                .into());
            }
            rows.push(TraitCapacity { path: path.to_owned(), mode, bytes: bytes as u32 });
        }
    }
    Ok(rows)
}

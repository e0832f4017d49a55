//! A lab for path prices: ports that are made once, and programs that are swapped under them.
//!
//! ```text
//! gen:tx0 -- dut:rx0   dut:out0 -- sink:in0   dut:out1 -- sink:in1   …
//! ```

use std::{collections::BTreeMap, panic::resume_unwind, path::Path, time::Duration};

use xdplab_wire::records::SourceState;

use super::median;
use crate::{
    host::{netns::Netns, thread::LabThread},
    lab::{Lab, LabError, SourceKey, Spare},
    measure::fingerprint::{self, RunFacts},
    observe::ledger::Settled,
    program::{Source, XdpProgram, watch::EventSet},
    record::{Fingerprint, bench::Nanoseconds, profile::Profile},
    run::{
        RunOptions, Silent,
        correctness::settle_scenario,
        facts,
        pricing::{Clock, Window},
        profiling::profile_scenario,
    },
    topology::{
        self, Amount, Builtin, Datum, Engine, Expect, IpVersion, MapContents, Options, PortId, ProgramBody, ProgramId,
        ProgramSource, Scenario, Topology, Traffic,
    },
    traffic::{
        Stop,
        cpu::Pinned,
        frame_spec,
        live::{self, Live},
    },
    xdp::XdpMode,
};

/// Frames that a rig's sources send at once.
const BATCH: u32 = 64;

/// What a rig is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct RigSpec {
    /// Name of the lab.
    pub(super) name: &'static str,
    /// Ports behind the device under test.
    pub(super) targets: u32,
    /// One more, behind which nothing runs and nothing polls: a veth that takes no native redirects.
    pub(super) deaf: bool,
    /// Whether a program runs at the ports behind the targets; else these poll by GRO, and their stack takes the frames.
    pub(super) inner: bool,
    /// Receive queues of the device under test.
    pub(super) queues: u32,
    /// Whether fewer rounds and windows will do.
    pub(super) quick: bool,
}

impl Default for RigSpec {
    fn default() -> Self {
        Self { name: "bench", targets: 1, deaf: false, inner: true, queues: 1, quick: false }
    }
}

/// A lab that is up, at whose ports programs are swapped.
pub(super) struct Rig {
    lab: Lab,
    watched: Option<EventSet>,
    stop: Stop,
    senders: Vec<Sender>,
    quick: bool,
}

/// One of several senders at work at the same time.
struct Sender {
    cpu: usize,
    source: Source,
    thread: LabThread,
    // Behind the source, which is attached to it.
    _spare: Spare,
}

impl Sender {
    /// Sends so many frames from its CPU; returns what its source did.
    fn window(&self, netns: &Netns, frames: u32) -> Result<SourceState, LabError> {
        let failed = |source: std::io::Error| LabError::Send { port: "gen:tx0".to_owned(), source };
        self.source.set_state(&SourceState::default())?;
        self.thread.run(|inside| -> Result<(), LabError> {
            inside.enter(netns, || {
                let _pinned = Pinned::to(self.cpu).map_err(|errno| failed(errno.into()))?;
                self.source.run(frames, BATCH).map_err(failed)
            })?
        })?;
        Ok(self.source.state()?)
    }
}

/// A path through a rig.
#[derive(Debug, Clone)]
pub(super) struct PathSpec {
    /// What runs at `dut:rx0`.
    pub(super) outer: ProgramBody,
    /// What runs at `sink:in0`, `sink:in1`, …; not used where the rig has no programs there.
    pub(super) inner: Option<ProgramBody>,
    /// The mode of both.
    pub(super) mode: XdpMode,
    /// Flows, taken in turn.
    pub(super) flows: u32,
    /// Frame size with FCS.
    pub(super) frame_bytes: u32,
}

impl PathSpec {
    pub(super) fn new(outer: ProgramBody, inner: Option<ProgramBody>, mode: XdpMode) -> Self {
        Self { outer, inner, mode, flows: 1, frame_bytes: 64 }
    }
}

/// A built-in with its options.
pub(super) fn builtin(builtin: Builtin, options: Options) -> ProgramBody {
    ProgramBody {
        source: ProgramSource::Builtin(builtin),
        maps: BTreeMap::new(),
        globals: BTreeMap::new(),
        egress: None,
        options,
    }
}

impl Rig {
    /// Brings the rig up.
    pub(super) fn new(spec: &RigSpec, stop: &Stop) -> Result<Self, LabError> {
        let topology = topology(spec);
        Ok(Self {
            lab: Lab::new(&topology)?,
            watched: None,
            stop: stop.clone(),
            senders: Vec::new(),
            quick: spec.quick,
        })
    }

    /// Its ports as they are before anything is attached, and how frames are sent.
    pub(super) fn fingerprint(&self) -> Result<Fingerprint, LabError> {
        let mut all = facts::of_ports(&self.lab)?;
        let sent = RunFacts { scenario: None, engine: "live", batch: Some(BATCH), senders: 1, maps: &[] };
        all.0.extend(fingerprint::of_run(&sent).0);
        Ok(all)
    }

    /// So many rounds and windows, or what a quick run takes of them.
    pub(super) fn effort(&self, rounds: usize, windows: usize) -> (usize, usize) {
        if self.quick { (rounds.min(2), windows.min(3)) } else { (rounds, windows) }
    }

    pub(super) fn lab(&self) -> &Lab {
        &self.lab
    }

    /// A port by its name.
    pub(super) fn port(&self, name: &str) -> PortId {
        self.lab.topology().find_port(name).expect("the rig's own topology names it")
    }

    /// `dut:out0` and those after it.
    pub(super) fn outs(&self, targets: u32) -> MapContents {
        let out = |n: u32| Datum::Port(self.port(&format!("dut:out{n}")));
        MapContents::List((0..targets).map(out).collect())
    }

    /// A built-in that redirects to the first so many targets.
    pub(super) fn to_outs(&self, which: Builtin, options: Options, targets: u32) -> ProgramBody {
        let mut body = builtin(which, options);
        body.maps.insert("tx_ports".to_owned(), self.outs(targets));
        body
    }

    fn scenario(&self, path: &PathSpec, frames: u64) -> Scenario {
        let topology = self.lab.topology();
        let mut programs = Vec::new();
        for (n, program) in topology.programs.iter().enumerate() {
            let body = if program.name == "outer" { Some(&path.outer) } else { path.inner.as_ref() };
            programs.extend(body.map(|body| (ProgramId(n), body.clone())));
        }
        Scenario {
            name: "bench".to_owned(),
            modes: vec![path.mode],
            programs,
            traffic: Traffic {
                from: self.port("gen:tx0"),
                engine: Engine::Live { batch: BATCH },
                ip: IpVersion::V4,
                flows: path.flows,
                senders: 1,
                frame_bytes: path.frame_bytes,
                amount: Amount::Frames(frames),
            },
            expect: Expect { deliver: Vec::new(), drop: Vec::new(), lost: 0, clones: None, skip_unable: false },
            perf: None,
        }
    }

    fn watch(&mut self, events: EventSet) -> Result<(), LabError> {
        if self.watched != Some(events) {
            self.lab.watch(events)?;
            self.watched = Some(events);
        }
        Ok(())
    }

    /// Sends so many frames along a path whose programs count, and settles the account.
    pub(super) fn settle(&mut self, path: &PathSpec, frames: u64) -> Result<Settled, LabError> {
        self.watch(EventSet::Own)?;
        let scenario = self.scenario(path, frames);
        let options = RunOptions::default();
        Ok(settle_scenario(&mut self.lab, &scenario, path.mode, &options, &self.stop, &Silent)?.settled)
    }

    /// Puts a path's bare programs in place, and measures so many windows of so many frames, by the source's clock: on
    /// veth everything that becomes of a frame happens before the next batch is made. In ns a frame.
    pub(super) fn windows(&mut self, path: &PathSpec, frames: u64, windows: usize) -> Result<Vec<f64>, LabError> {
        self.windows_by(path, Clock::Source, frames, windows)
    }

    /// The same by another clock.
    pub(super) fn windows_by(
        &mut self,
        path: &PathSpec,
        clock: Clock,
        frames: u64,
        windows: usize,
    ) -> Result<Vec<f64>, LabError> {
        self.watch(EventSet::Errors)?;
        let scenario = self.scenario(path, frames);
        self.lab.install(Some(&scenario), path.mode, false)?;
        let topology = self.lab.topology().clone();
        let window = Window::new(&self.lab, &topology, &scenario, &RunOptions::default())?.with(frames, clock);
        let mut measured = Vec::with_capacity(windows);
        // One more, which is thrown away: caches and the branch predictor are cold after a change of programs.
        for n in 0..=windows {
            let (ns, _) = window.measure(&mut self.lab, &self.stop)?;
            measured.extend(ns.filter(|_| n > 0));
        }
        Ok(measured)
    }

    /// The same for paths that are each held against another, which is measured anew beside each of them.
    pub(super) fn rounds_against(
        &mut self,
        paths: &[(PathSpec, PathSpec)],
        (rounds, windows): (usize, usize),
        frames: u64,
        progress: &dyn Fn(usize),
    ) -> Result<Vec<Against>, LabError> {
        let (rounds, windows) = self.effort(rounds, windows);
        let mut measured = vec![Against::default(); paths.len()];
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..paths.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for (n, index) in order.into_iter().enumerate() {
                if self.stop.is_asked() {
                    return Ok(measured);
                }
                progress(round * paths.len() + n);
                let (path, base) = &paths[index];
                // Now the one first, now the other.
                let pair =
                    if (round + n) % 2 == 0 { [(path, true), (base, false)] } else { [(base, false), (path, true)] };
                for (which, is_path) in pair {
                    let new = self.windows(which, frames, windows)?;
                    let into = &mut measured[index];
                    if is_path { into.windows.extend(new) } else { into.base.extend(new) }
                }
            }
        }
        Ok(measured)
    }

    /// One window with as many senders as CPUs are given, each on one of them and with a queue of its own: nanoseconds
    /// between two frames of all of them. The path's bare programs are in place already.
    pub(super) fn window_of_many(&mut self, path: &PathSpec, frames: u64, cpus: &[usize]) -> Result<f64, LabError> {
        let scenario = self.scenario(path, frames);
        let from = scenario.traffic.from;
        let spec = frame_spec(self.lab.topology(), &scenario.traffic, &[], self.lab.instance().number)?;
        let key = SourceKey::of(&scenario.traffic, &spec)?;
        if self.senders.len() != cpus.len() {
            self.senders.clear();
            for cpu in cpus {
                let thread = LabThread::start(&format!("sender {cpu}"))?;
                let (source, spare) = self.lab.another_source(&key)?;
                self.senders.push(Sender { cpu: *cpu, source, thread, _spare: spare });
            }
        }
        let netns = self.lab.netns_of(from);
        let states = std::thread::scope(|scope| -> Result<Vec<SourceState>, LabError> {
            let running: Vec<_> =
                self.senders.iter().map(|sender| scope.spawn(move || sender.window(netns, frames as u32))).collect();
            running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })?;
        // Frames a nanosecond add up.
        let rates = states.iter().map(|state| {
            let frames = state.last.frames.saturating_sub(state.first.frames);
            frames as f64 / state.last.ns.saturating_sub(state.first.ns).max(1) as f64
        });
        Ok(1.0 / rates.sum::<f64>().max(f64::MIN_POSITIVE))
    }

    /// Puts a path's bare programs in place.
    pub(super) fn install(&mut self, path: &PathSpec) -> Result<(), LabError> {
        self.watch(EventSet::Errors)?;
        let scenario = self.scenario(path, 1);
        self.lab.install(Some(&scenario), path.mode, false)
    }

    /// Sends so many frames to whatever is attached now.
    pub(super) fn send(&mut self, frames: u64) -> Result<u64, LabError> {
        let scenario =
            self.scenario(&PathSpec::new(builtin(Builtin::Drop, Options::default()), None, XdpMode::Native), frames);
        let spec = frame_spec(self.lab.topology(), &scenario.traffic, &[], self.lab.instance().number)?;
        let key = SourceKey::of(&scenario.traffic, &spec)?;
        self.lab.start_sources(&key)?;
        live::send(&mut self.lab, &Live::new(&key, Amount::Frames(frames), 64, &self.stop))
    }

    /// Samples the sender's CPU for a second while a path's bare programs are at work.
    pub(super) fn profile(&mut self, path: &PathSpec) -> Result<Profile, LabError> {
        self.watch(EventSet::Errors)?;
        let scenario = self.scenario(path, 1);
        profile_scenario(
            &mut self.lab,
            &scenario,
            path.mode,
            &RunOptions::default(),
            Duration::from_secs(1),
            &self.stop,
        )
    }

    /// What the program at `dut:rx0` is now.
    pub(super) fn outer(&self) -> Option<&XdpProgram> {
        let port = self.port("dut:rx0");
        self.lab.installed_at(port).map(|have| &have.program)
    }

    /// Prices paths turn by turn, in rounds forwards and backwards, so that a drift falls on all alike. Each gets its
    /// windows in the order of the rounds: those of two paths at the same place were measured near each other.
    pub(super) fn rounds(
        &mut self,
        paths: &[PathSpec],
        (rounds, windows): (usize, usize),
        frames: u64,
        progress: &dyn Fn(usize),
    ) -> Result<Vec<Vec<f64>>, LabError> {
        let (rounds, windows) = self.effort(rounds, windows);
        let mut measured = vec![Vec::new(); paths.len()];
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..paths.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for (n, path) in order.into_iter().enumerate() {
                if self.stop.is_asked() {
                    return Ok(measured);
                }
                progress(round * paths.len() + n);
                measured[path].extend(self.windows(&paths[path], frames, windows)?);
            }
        }
        Ok(measured)
    }
}

/// Windows of a path, and of the path that it is held against, measured next to each other.
#[derive(Debug, Clone, Default)]
pub(super) struct Against {
    pub(super) windows: Vec<f64>,
    pub(super) base: Vec<f64>,
}

impl Against {
    /// What the path costs.
    pub(super) fn cost(&self) -> Nanoseconds {
        median(&self.windows)
    }

    /// What it costs over the other, window by window.
    pub(super) fn over(&self) -> Vec<f64> {
        self.windows.iter().zip(&self.base).map(|(a, b)| a - b).collect()
    }
}

/// What `a` costs over `b`, window by window.
pub(super) fn over(a: &[f64], b: &[f64]) -> Nanoseconds {
    median(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// The difference of two estimates, with the worst of both intervals.
pub(super) fn less(a: Nanoseconds, b: Nanoseconds) -> Nanoseconds {
    Nanoseconds { ns: a.ns - b.ns, ci: [a.ci[0] - b.ci[1], a.ci[1] - b.ci[0]] }
}

fn topology(spec: &RigSpec) -> Topology {
    let &RigSpec { name, targets, deaf, inner, queues, quick: _ } = spec;
    let mut text = format!(
        "name = \"{name}\"\n[nodes.gen]\n[nodes.dut.ports.rx0]\nqueues = {queues}\n[nodes.gen.ports.tx0]\nqueues = {queues}\n\
         [[links]]\nkind = \"veth\"\nends = [\"gen:tx0\", \"dut:rx0\"]\n"
    );
    for n in 0..targets {
        if !inner {
            text += &format!("[nodes.sink.ports.in{n}]\ngro = true\n");
        }
        text += &format!("[[links]]\nkind = \"veth\"\nends = [\"dut:out{n}\", \"sink:in{n}\"]\n");
    }
    if deaf {
        text += "[[links]]\nkind = \"veth\"\nends = [\"dut:deaf\", \"sink:deaf\"]\n";
    }
    if inner && targets + u32::from(deaf) > 0 {
        let ports: Vec<String> = (0..targets).map(|n| format!("\"sink:in{n}\"")).collect();
        text += &format!("[programs.inner]\nbuiltin = \"drop\"\nattach = [{}]\n", ports.join(", "));
    }
    if targets > 0 {
        text += "[nodes.sink]\n";
    }
    text += "[programs.outer]\nbuiltin = \"drop\"\nattach = [\"dut:rx0\"]\n";
    match topology::parse(Path::new("bench.toml"), &text) {
        Ok(topology) => topology,
        Err(diagnostics) => unreachable!("the rig's own topology is sound: {diagnostics}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rig_is_a_sound_topology() {
        for targets in [0, 1, 8] {
            for (deaf, inner) in [(false, true), (true, true), (false, false)] {
                let spec = RigSpec { targets, deaf, inner, ..RigSpec::default() };
                let links = 1 + targets + u32::from(deaf);
                if targets > 0 {
                    assert_eq!(topology(&spec).links.len(), links as usize);
                }
            }
        }
    }
}

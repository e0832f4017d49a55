//! The pricing phase: bare programs, as fast as the source goes, in windows timed by the kernel's own clock.
//!
//! Cases take turns, forwards and backwards, so that a drift of the machine falls on all of them alike.

use std::time::{Duration, Instant};

use super::{Case, Progress, RunOptions, able, amount_and_engine, checks, stream::Stream};
use crate::{
    lab::{Lab, LabError, SourceKey, load::Load},
    measure::{
        interval, laps,
        saturation::{self, Evidence},
    },
    record::Saturation,
    topology::{Amount, Builtin, Engine, PortId, ProgramBody, Scenario, Topology},
    traffic::{
        Stop, frame_spec,
        live::{self, Live},
        packet::{self, PacketTraffic},
        xsk::{self, Sent},
    },
};

/// Frames of a window: 1 to 4 ms of traffic, short enough that most windows meet no disturbance.
const WINDOW: u64 = 12_800;
/// The same for the `packet` engine, which is an order of magnitude slower.
const PACKET_WINDOW: u64 = 2_048;
/// Rounds, each of which prices every case once.
const ROUNDS: usize = 4;
/// Windows of a case in a round.
const WINDOWS: usize = 10;
/// Windows of a round that are thrown away: caches and the branch predictor are cold after a change of programs.
const WARM_UP: usize = 2;
/// How long the last frames of a window may take to arrive.
const ARRIVAL: Duration = Duration::from_millis(50);

/// What times a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The sink's, or the receiver's of its `AF_XDP` socket, at this port.
    Sink(PortId),
    /// The source's own: no sink ends the path, or several share its frames.
    Source,
    /// The sender's: `AF_PACKET` or `AF_XDP` without a sink.
    Sender,
}

/// The cases to price: those with thresholds, and those that a ratio refers to.
pub(super) fn wanted(topology: &Topology, cases: &[Case]) -> Vec<usize> {
    let referred = |case: &Case| {
        cases.iter().filter(|other| other.mode == case.mode).any(|other| {
            let perf = topology.scenarios[other.scenario.0].perf.as_ref();
            perf.and_then(|perf| perf.max_ratio.as_ref()).is_some_and(|bound| bound.of == case.scenario)
        })
    };
    let priced = |case: &Case| topology.scenarios[case.scenario.0].perf.is_some() || referred(case);
    cases.iter().enumerate().filter(|(_, case)| priced(case)).map(|(n, _)| n).collect()
}

/// Prices the cases.
pub(super) fn run(
    lab: &mut Lab,
    cases: &mut [Case],
    wanted: &[usize],
    options: &RunOptions,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<(), LabError> {
    let topology = lab.topology().clone();
    let mut windows = vec![Vec::new(); cases.len()];
    let mut lost = vec![0; cases.len()];
    let mut evidence = vec![None; cases.len()];
    let mut told = vec![String::new(); cases.len()];
    for round in 0..ROUNDS {
        let mut order = wanted.to_vec();
        if round % 2 == 1 {
            order.reverse();
        }
        for (n, &case) in order.iter().enumerate() {
            if stop.is_asked() {
                return Ok(());
            }
            progress.frames((round * order.len() + n) as u64, (ROUNDS * order.len()) as u64);
            let (scenario, mode) = (&topology.scenarios[cases[case].scenario.0], cases[case].mode);
            lab.install(Some(scenario), mode, false)?;
            let scenario = &able::as_it_is(lab, scenario, mode)?;
            let window = Window::new(lab, &topology, scenario, options)?;
            told[case] = window.told(&topology, scenario);
            let proof = Proof::begin(lab, &topology, scenario)?;
            for n in 0..WARM_UP + WINDOWS {
                let (ns, missing) = window.measure(lab, stop)?;
                lost[case] += missing;
                if n >= WARM_UP {
                    windows[case].extend(ns);
                }
            }
            if let Some(proof) = proof {
                proof.end(lab, &window, &mut evidence[case])?;
            }
        }
    }
    for &n in wanted {
        let case = &mut cases[n];
        let scenario = &topology.scenarios[case.scenario.0];
        case.priced = true;
        case.cost = interval::cost(std::mem::take(&mut windows[n]));
        case.saturation = evidence[n].as_ref().map(|seen| saturation_of(lab, scenario, seen));
        case.notes.extend(case.saturation.as_ref().map(saturation::in_words));
        case.notes.push(std::mem::take(&mut told[n]));
        if lost[n] > 0 {
            case.notes.push(format!("{} frames did not arrive while pricing", lost[n]));
        }
    }
    Ok(())
}

/// Whether a scenario's receiver was saturated, by what was seen of it and what its link carries.
pub(crate) fn saturation_of(lab: &Lab, scenario: &Scenario, seen: &Evidence) -> Saturation {
    let receiver = lab.topology().peer(scenario.traffic.from);
    let speed = receiver.and_then(|port| lab.cabling().nic_at(lab.topology(), port)?.speed);
    saturation::judge(seen, speed.map(|speed| saturation::line_mpps(speed, scenario.traffic.frame_bytes)))
}

/// What is needed to show that a receiver behind a NIC was saturated between two moments.
pub(crate) struct Proof {
    from: PortId,
    to: PortId,
    begin: Load,
}

impl Proof {
    /// Begins. `None` where the scenario's frames cross no NIC: on veth the sender's own CPU receives.
    pub(crate) fn begin(lab: &Lab, topology: &Topology, scenario: &Scenario) -> Result<Option<Self>, LabError> {
        let from = scenario.traffic.from;
        match topology.peer(from).filter(|_| lab.is_nic(from)) {
            Some(to) => Ok(Some(Self { from, to, begin: lab.load(from, to)? })),
            None => Ok(None),
        }
    }

    /// Ends: adds what was seen since, and in all of a window's takes, to what was seen before.
    pub(crate) fn end(self, lab: &Lab, window: &Window, seen: &mut Option<Evidence>) -> Result<(), LabError> {
        let now = lab.load(self.from, self.to)?.since(&self.begin);
        let taken = window.stream.as_ref().map(Stream::seen).unwrap_or_default();
        *seen = Some(seen.take().unwrap_or_default().plus(&now).plus(&taken));
        Ok(())
    }
}

/// What times a scenario's windows.
pub(crate) fn clock(topology: &Topology, scenario: &Scenario) -> Clock {
    let body = |port: PortId| {
        let (id, _) = topology.program_at(port)?;
        Some(topology.body_in(scenario, id))
    };
    let is_sink =
        |port: &&PortId| body(**port).is_some_and(|b| matches!(b.builtin(), Some(Builtin::Sink | Builtin::Xsk)));
    let bodies = (0..topology.ports.len()).filter_map(|port| body(PortId(port)));
    let each = checks::each_gets_all(&scenario.expect, bodies);
    match scenario.expect.deliver.as_slice() {
        // Several CPUs reach a sink at once: each sender's clock tells of its own frames.
        _ if scenario.traffic.senders > 1 => Clock::Source,
        [first, rest @ ..] if is_sink(&first) && (rest.is_empty() || each) => Clock::Sink(*first),
        _ if matches!(scenario.traffic.engine, Engine::Packet | Engine::Xsk) => Clock::Sender,
        _ => Clock::Source,
    }
}

/// How a case's windows are made.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    engine: Engine,
    key: SourceKey,
    packets: PacketTraffic,
    clock: Clock,
    frames: u64,
    /// How frames are counted while they keep coming, over a NIC: no other clock tells the receiver's rate there.
    stream: Option<Stream>,
}

impl Window {
    /// Windows of a scenario, as long as pricing takes them, by the clock that fits it.
    pub(crate) fn new(
        lab: &Lab,
        topology: &Topology,
        scenario: &Scenario,
        options: &RunOptions,
    ) -> Result<Self, LabError> {
        let traffic = &scenario.traffic;
        let spec = frame_spec(topology, traffic, &scenario.expect.deliver, lab.instance().number)?;
        let (_, engine) = amount_and_engine(options, traffic.amount, traffic.engine);
        let over_a_nic = matches!(engine, Engine::Live { .. }) && lab.is_nic(traffic.from);
        Ok(Self {
            engine,
            key: SourceKey::of(traffic, &spec)?,
            packets: PacketTraffic { from: traffic.from, spec, flows: traffic.flows, first_sequence: 0, marker: true },
            clock: clock(topology, scenario),
            frames: WINDOW,
            stream: over_a_nic.then(|| Stream::of(topology, scenario)),
        })
    }

    /// The same with so many frames a window, by another clock.
    pub(crate) fn with(mut self, frames: u64, clock: Clock) -> Self {
        self.frames = frames;
        self.clock = clock;
        self
    }

    /// What times it, in words.
    fn told(&self, topology: &Topology, scenario: &Scenario) -> String {
        match self.clock {
            _ if self.stream.is_some() => "counted by the lab's clock while frames kept coming".to_owned(),
            Clock::Sink(port) => {
                let body = topology.program_at(port).map(|(id, _)| topology.body_in(scenario, id));
                let whose = if body.and_then(ProgramBody::builtin) == Some(Builtin::Xsk) { "receiver" } else { "sink" };
                format!("timed by the {whose}'s clock at {}", topology.port_name(port))
            }
            Clock::Source if scenario.traffic.senders > 1 => {
                format!("timed by the clocks of {} senders, whose rates add up", scenario.traffic.senders)
            }
            Clock::Source => "timed by the source's clock: no one sink sees every frame".to_owned(),
            Clock::Sender => "timed by the sender's clock: no sink ends the path".to_owned(),
        }
    }

    /// Frames that go out at once, where that is one number.
    fn batch(&self) -> Option<u32> {
        match self.engine {
            Engine::Live { batch } => Some(batch),
            Engine::Packet | Engine::Xsk => None,
        }
    }

    /// Sends frames as a window has them; returns how many, and how long it took.
    pub(super) fn send(&self, lab: &mut Lab, amount: Amount, stop: &Stop) -> Result<Sent, LabError> {
        let quiet = |_| {};
        if matches!(self.engine, Engine::Live { .. }) {
            lab.start_sources(&self.key)?;
        }
        let started = Instant::now();
        let frames = match self.engine {
            Engine::Live { batch } => live::send(lab, &Live::new(&self.key, amount, batch, stop))?,
            Engine::Packet => packet::send(lab, &self.packets, amount, None, stop, &quiet)?,
            // It knows by itself how long it took, without opening its socket.
            Engine::Xsk => return xsk::send(lab, &self.packets, amount, None, stop, &quiet),
        };
        Ok(Sent { frames, time: started.elapsed() })
    }

    /// One window: its nanoseconds a packet, where it could be timed, and the frames that did not arrive.
    pub(crate) fn measure(&self, lab: &mut Lab, stop: &Stop) -> Result<(Option<f64>, u64), LabError> {
        if let (Some(stream), Some(batch)) = (&self.stream, self.batch()) {
            return Ok((stream.measure(lab, &self.key, batch, stop)?, 0));
        }
        let mut dropped = 0;
        if let Clock::Sink(port) = self.clock {
            lab.reset_counters_at(port)?;
            dropped = lab.socket_drops_at(port)?;
        }
        let frames = if self.engine == Engine::Packet { PACKET_WINDOW } else { self.frames };
        let Sent { frames: made, time: sender } = self.send(lab, Amount::Frames(frames), stop)?;
        Ok(match self.clock {
            Clock::Sink(port) => {
                let deadline = Instant::now() + ARRIVAL;
                let mut seen = lab.counters_at(port)?;
                // What a socket dropped is not waited for.
                while seen.ours + (lab.socket_drops_at(port)? - dropped) < made && Instant::now() < deadline {
                    std::thread::yield_now();
                    seen = lab.counters_at(port)?;
                }
                let laps = lab.laps_at(port)?;
                (laps::per_frame(laps.as_ref(), seen.first, seen.last, self.batch()), made.saturating_sub(seen.ours))
            }
            Clock::Source => {
                let mut each = Vec::new();
                for source in &lab.sources(&self.key)?.each {
                    let (state, laps) = (source.state()?, source.laps()?);
                    each.push(laps::per_frame(Some(&laps), state.first, state.last, self.batch()));
                }
                (laps::together(&each), 0)
            }
            Clock::Sender => ((made > 0).then(|| sender.as_nanos() as f64 / made as f64), 0),
        })
    }
}

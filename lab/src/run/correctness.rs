//! The correctness phase: programs that count, frames that are paced, an account that must balance.

use std::time::{Duration, Instant};

use xdplab_wire::records::event;

use super::{
    Case, Progress, RunOptions,
    able::{self, Able},
    amount_and_engine, checks,
};
use crate::{
    lab::{Installed, Lab, LabError, SourceKey, WaitFor},
    observe::{
        causes::{Peer, Target},
        ledger::{DropReasons, Observation, PortObservation, Role, Settled, settle},
        reading::Reading,
    },
    program::kernel::KernelReasons,
    record::Check,
    topology::{Amount, Builtin, Engine, Expect, Fallback, PortId, ProgramSource, Scenario, ScenarioId},
    traffic::{
        Stop, frame_spec,
        live::{self, Live},
        packet::{self, PacketTraffic},
        xsk,
    },
    xdp::XdpMode,
};

/// Traffic is at rest when its ends have not changed for this long.
const AT_REST: Duration = Duration::from_millis(30);
/// A batch that a veth's ring holds several of.
const SMALL_BATCH: u32 = 64;
/// How long to wait for rest: a lab's frames stay on one machine.
const REST_DEADLINE: Duration = Duration::from_secs(2);

/// Runs one scenario in one mode.
pub(super) fn run(
    lab: &mut Lab,
    id: ScenarioId,
    mode: XdpMode,
    options: &RunOptions,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Case, LabError> {
    let scenario = lab.topology().scenarios[id.0].clone();
    let Outcome { settled, checks, notes } = settle_scenario(lab, &scenario, mode, options, stop, progress)?;
    Ok(Case { scenario: id, mode, settled, notes, checks, cost: None, saturation: None, priced: false, profile: None })
}

/// What the correctness phase of a scenario found.
pub(crate) struct Outcome {
    /// The account.
    pub(crate) settled: Settled,
    /// What the scenario expects of it.
    pub(crate) checks: Vec<Check>,
    /// Remarks.
    pub(crate) notes: Vec<String>,
}

/// Sends a scenario's frames, of the lab's topology or made up for it, and settles the account.
pub(crate) fn settle_scenario(
    lab: &mut Lab,
    scenario: &Scenario,
    mode: XdpMode,
    options: &RunOptions,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Outcome, LabError> {
    let topology = lab.topology().clone();
    lab.install(Some(scenario), mode, true)?;
    let Able { expect, left_out, notes: targets } = able::of_scenario(lab, scenario, mode)?;
    let scenario = &Scenario { expect, ..scenario.clone() };
    let before = lab.read()?;
    let offered = send(lab, scenario, options, stop, progress)?;
    let reasons = KernelReasons::get()?;
    let seen = come_to_rest(lab, scenario, offered, &before, &reasons)?;
    let settled = settle(&seen, &reasons);
    let bodies: Vec<_> = lab.installed().iter().map(|have| &have.wanted.body).collect();
    let expect = expected(scenario, options);
    let checks = checks::correctness(&checks::Correctness {
        topology: &topology,
        expect: &expect,
        left_out: &left_out,
        each: checks::each_gets_all(&scenario.expect, bodies),
        ledger: &settled.ledger,
        clones: settled.clones,
    });
    let mut notes = helpers_in_another_mode(lab, mode);
    notes.extend(sockets(lab));
    notes.extend(targets);
    if stop.is_asked() {
        notes.push("interrupted: what was sent until then is settled".to_owned());
    }
    Ok(Outcome { settled, checks, notes })
}

/// What the scenario expects of as many frames as are sent: the file counts the clones of its own number.
fn expected(scenario: &Scenario, options: &RunOptions) -> Expect {
    let mut expect = scenario.expect.clone();
    if let (Amount::Frames(of), Some(frames), Some(clones)) = (scenario.traffic.amount, options.frames, expect.clones) {
        expect.clones = Some((u128::from(clones) * u128::from(frames) / u128::from(of.max(1))) as u64);
    }
    expect
}

/// Sends the scenario's traffic; returns how many frames were offered.
fn send(
    lab: &mut Lab,
    scenario: &Scenario,
    options: &RunOptions,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<u64, LabError> {
    let traffic = &scenario.traffic;
    let (amount, engine) = amount_and_engine(options, traffic.amount, traffic.engine);
    let of = match amount {
        Amount::Frames(frames) => frames,
        Amount::Duration(_) => 0,
    };
    let spec = frame_spec(lab.topology(), traffic, &scenario.expect.deliver, lab.instance().number)?;
    let heard = |made: u64| progress.frames(made, of);
    // Where the file says that frames are lost, they may be sent faster than they are received: but for what an old kernel
    // leaves in veths' rings, which is not what the file is about unless its bursts are large.
    let small = matches!(engine, Engine::Live { batch } if batch <= SMALL_BATCH);
    let pace = match scenario.expect.lost {
        0 => lab.pace(scenario, WaitFor::All)?,
        _ if small => lab.pace(scenario, WaitFor::Deferred)?,
        _ => None,
    };
    let pace = pace.as_ref();
    match engine {
        Engine::Live { batch } => {
            let key = SourceKey::of(traffic, &spec)?;
            lab.start_sources(&key)?;
            let batches = live::unhurried_batches();
            let mut run = Live { batches, pace, progress: &heard, ..Live::new(&key, amount, batch, stop) };
            if traffic.senders > 1 && scenario.expect.lost == 0 {
                // What one CPU puts into a ring another one may have to take out: programs that don't count can't be waited for.
                run.chunk = batch;
            }
            let offered = live::send(lab, &run)?;
            lab.end_sources(&key)?;
            Ok(offered)
        }
        Engine::Packet | Engine::Xsk => {
            let first_sequence = lab.take_sequences(0);
            let packets =
                PacketTraffic { from: traffic.from, spec, flows: traffic.flows, first_sequence, marker: true };
            let offered = match engine {
                Engine::Xsk => xsk::send(lab, &packets, amount, pace, stop, &heard)?.frames,
                _ => packet::send(lab, &packets, amount, pace, stop, &heard)?,
            };
            lab.take_sequences((offered / u64::from(traffic.flows)) as u32 + 1);
            Ok(offered)
        }
    }
}

/// Reads until every frame has ended, or nothing changes any more.
fn come_to_rest(
    lab: &Lab,
    scenario: &Scenario,
    offered: u64,
    before: &Reading,
    reasons: &dyn DropReasons,
) -> Result<Observation, LabError> {
    let deadline = Instant::now() + REST_DEADLINE;
    let mut changed = Instant::now();
    let mut last = None;
    loop {
        // Before the counters are read: what a receiver took until now, they have.
        let taken = lab.sockets_are_empty()?;
        let now = lab.read()?.since(before);
        let seen = observe(lab, scenario, offered, &now)?;
        if settle(&seen, reasons).ledger.is_balanced() {
            return Ok(seen);
        }
        if Instant::now() >= deadline {
            return Ok(seen);
        }
        if !taken || last.as_ref() != Some(&now) {
            last = Some(now);
            changed = Instant::now();
        } else if changed.elapsed() >= AT_REST {
            return Ok(seen);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Puts a reading together with what is known of the ports.
fn observe(lab: &Lab, scenario: &Scenario, offered: u64, now: &Reading) -> Result<Observation, LabError> {
    let topology = lab.topology();
    let states = lab.port_states()?;
    let ports = (0..topology.ports.len())
        .map(PortId)
        .map(|port| {
            let have = lab.installed_at(port);
            let peer = topology.peer(port);
            let reading = &now.ports[port.0];
            let polls = |port: PortId| topology.ports[port.0].gro == Some(true) || lab.installed_at(port).is_some();
            let state = |port: PortId| &states[port.0];
            PortObservation {
                role: have.map_or(Role::Stack, role),
                counters: reading.counters,
                sockets: reading.sockets,
                driver_drops: reading.driver_drops,
                driver_packets: reading.driver_packets,
                native: have.is_some_and(|have| have.wanted.mode == XdpMode::Native),
                tx_packets: reading.tx_packets,
                tx_dropped: reading.tx_dropped,
                rx_packets: reading.rx_packets,
                missed: reading.missed.into_iter().max().unwrap_or(0),
                egress_dropped: reading.egress_dropped,
                peer: peer.map(|peer| peer.0 as u32),
                targets: have
                    .map(|have| have.wanted.body.ports())
                    .unwrap_or_default()
                    .iter()
                    .map(|p| p.0 as u32)
                    .collect(),
                broadcasts: have
                    .is_some_and(|have| have.wanted.body.source == ProgramSource::Builtin(Builtin::Broadcast)),
                state: Target {
                    port: topology.port_name(port),
                    up: state(port).up,
                    mtu: state(port).mtu,
                    nic: lab.is_nic(port),
                    peer: peer.map(|peer| Peer {
                        port: topology.port_name(peer),
                        up: state(peer).up,
                        polls: polls(peer),
                    }),
                },
            }
        })
        .collect();
    let mut events = now.events.clone();
    // Many drivers free what they have sent as if they had dropped it; what a NIC really drops, its counter has.
    for lent in lab.lent() {
        let dropped = now.ports[lent.port.0].tx_dropped;
        let slot = lent.port.0 as u32;
        for (_, count) in events.iter_mut().filter(|(key, _)| key.event == event::FREE_TRANSMIT && key.slot == slot) {
            *count = (*count).min(dropped);
        }
        events.retain(|_, count| *count > 0);
    }
    Ok(Observation { offered, from: scenario.traffic.from.0 as u32, ports, events })
}

fn role(have: &Installed) -> Role {
    match have.wanted.body.acts_as() {
        None => Role::User(have.wanted.mode),
        // What becomes of the frames shows on the other CPU.
        Some(_) if have.wanted.body.builtin() == Some(Builtin::Cpumap) => Role::OtherCpu,
        Some(Builtin::Sink) => Role::Sink,
        Some(Builtin::Xsk) => Role::Xsk { passes: have.wanted.body.options.xsk.fallback == Fallback::Pass },
        Some(Builtin::Drop) => Role::Drop,
        Some(Builtin::Pass) => Role::Pass,
        Some(_) => Role::Forward,
    }
}

/// How frames get into the sockets of `AF_XDP`, in words.
fn sockets(lab: &Lab) -> Vec<String> {
    lab.installed()
        .iter()
        .flat_map(|have| &have.receivers)
        .map(|receiver| {
            let how = if receiver.zero_copy() { "zero-copy" } else { "copied" };
            format!("{} queue {}: AF_XDP, {how}", lab.topology().port_name(receiver.port), receiver.queue())
        })
        .collect()
}

/// Sinks that stay native while the programs under test are generic, in words.
fn helpers_in_another_mode(lab: &Lab, mode: XdpMode) -> Vec<String> {
    lab.installed()
        .iter()
        .filter(|have| have.wanted.mode != mode)
        .map(|have| format!("{} is {}", lab.topology().program(have.wanted.program).name, have.wanted.mode))
        .collect()
}

//! One reload of one row: both sides' programs loaded anew, in random order and with padding of random size between
//! them, then blocks of windows in which they take turns.

use std::{fs, time::Instant};

use super::{
    CompareError, CompareOptions,
    pairing::{PairedRow, Pairing},
};
use crate::{
    lab::{Anchor, Held, Lab, LabError, Spare, Wanted, wanted},
    measure::{
        saturation::Evidence,
        stats::blocks::{self, Block, Order, Side},
    },
    program::Padding,
    record::Saturation,
    run::{
        RunOptions, able,
        pricing::{Clock, Proof, Window, clock, saturation_of},
    },
    topology::{Builtin, ProgramBody, ProgramId, Scenario, Topology},
    traffic::{Stop, cpu},
};

/// Frames of a window, at most and at least: 1 to 4 ms of traffic.
const FRAMES_MOST: u64 = 12_800;
const FRAMES_LEAST: u64 = 1_280;
/// Length of a window that is aimed at, in nanoseconds.
const WINDOW_NS: f64 = 1e6;
/// A block that was disturbed is drawn again so often at most.
const REDRAWS: u64 = 3;
/// Instructions of the padding, at most: some pages of machine code.
pub(super) const PADDING_MOST: usize = 2_000;

/// One row, ready to be measured.
pub(super) struct RowUnderTest {
    row: PairedRow,
    /// The baseline's scenario, with all bodies in place of the file's.
    scenario: Scenario,
    /// What is loaded for either side: by program.
    a: Vec<Wanted>,
    b: Vec<Wanted>,
    spare: Spare,
    clock: Clock,
    frames: Option<u64>,
    /// Whether both sides are the baseline's.
    same: bool,
    /// What is loaded for either side now.
    held: Option<Loaded>,
    /// What keeps the entries of the programs in whose place these are put.
    anchors: Vec<Anchor>,
    /// Whether this is the only row: nobody else installs other programs between two of its reloads.
    only: bool,
    /// What was seen of the receiver while it was measured, where frames cross a NIC.
    seen: Option<Evidence>,
}

/// Both sides' programs, held ready.
#[derive(Default)]
struct Loaded {
    a: Vec<Held>,
    b: Vec<Held>,
}

/// What one reload gave.
pub(super) struct Reloaded {
    /// When its first window began.
    pub(super) began: Instant,
    /// Candidate minus baseline, in nanoseconds a packet.
    pub(super) difference: f64,
    /// Windows of the baseline.
    pub(super) a: Vec<f64>,
    /// Windows of the candidate.
    pub(super) b: Vec<f64>,
    /// Blocks that count.
    pub(super) blocks: u64,
    /// Blocks that were drawn again.
    pub(super) redrawn: u64,
}

impl RowUnderTest {
    /// `only`: whether no other row is measured in this lab.
    pub(super) fn new(lab: &Lab, pairing: &Pairing, row: PairedRow, only: bool) -> Result<Self, CompareError> {
        let ids = || (0..pairing.a.programs.len()).map(ProgramId);
        let bodies = |topology: &Topology, scenario: &Scenario| -> Vec<ProgramBody> {
            ids().map(|id| topology.body_in(scenario, id).clone()).collect()
        };
        let (a, b) = (bodies(&pairing.a, &row.a), bodies(&pairing.b, &row.b));
        let differing: Vec<ProgramId> = ids().filter(|id| a[id.0] != b[id.0]).collect();
        // The same programs twice: everything on the way but the sinks, which the lab brought.
        let walk = pairing.a.walk(&row.a);
        let on_the_way: Vec<ProgramId> =
            ids().filter(|id| walk.programs.contains(id) && a[id.0].builtin() != Some(Builtin::Sink)).collect();
        let chosen = if differing.is_empty() { on_the_way } else { differing };
        let mut scenario = row.a.clone();
        scenario.programs = ids().zip(a.iter().cloned()).collect();
        let all = wanted(&pairing.a, Some(&scenario), row.mode, false);
        let of = |bodies: &[ProgramBody]| -> Vec<Wanted> {
            let chosen = all.iter().filter(|want| chosen.contains(&want.program));
            chosen.map(|want| Wanted { body: bodies[want.program.0].clone(), ..want.clone() }).collect()
        };
        let (a, b) = (of(&a), of(&b));
        // For both sides, and for what is installed.
        let spare = lab.spare_ports(3 * a.len().max(1) as u32)?;
        let clock = clock_of(&pairing.a, &scenario, &a);
        Ok(Self {
            row,
            scenario,
            a,
            b,
            spare,
            clock,
            frames: None,
            same: false,
            held: None,
            anchors: Vec::new(),
            only,
            seen: None,
        })
    }

    /// Whether the receiver was saturated until now; `None` where frames cross no NIC.
    pub(super) fn saturation(&self, lab: &Lab) -> Option<Saturation> {
        self.seen.as_ref().map(|seen| saturation_of(lab, &self.scenario, seen))
    }

    pub(super) fn name(&self) -> &str {
        &self.row.a.name
    }

    /// Has both sides be the baseline's, or each its own again.
    pub(super) fn same(&mut self, same: bool) {
        self.same = same;
        self.held = None;
    }

    /// Has the row expect what the devices can give, now that programs are attached, and be timed accordingly.
    fn reckon(&mut self, lab: &Lab) -> Result<(), LabError> {
        if self.scenario.expect.skip_unable {
            self.scenario = able::as_it_is(lab, &self.scenario, self.row.mode)?;
            self.clock = clock_of(lab.topology(), &self.scenario, &self.a);
        }
        Ok(())
    }

    /// Loads both sides, in random order, with padding of random size before each program.
    fn load(&mut self, lab: &Lab, dice: &mut fastrand::Rng) -> Result<(), LabError> {
        let Self { a, b, spare, .. } = self;
        let b = if self.same { &*a } else { b };
        let candidate_first = dice.bool();
        let mut padding = Vec::new();
        let mut side = |wanted: &[Wanted], held: &mut Vec<Held>, first: u32| -> Result<(), LabError> {
            for (n, want) in wanted.iter().enumerate() {
                padding.push(Padding::load(dice.usize(1..PADDING_MOST))?);
                match held.get_mut(n) {
                    Some(held) => lab.hold_instead(want, held)?,
                    None => held.push(lab.hold(want, spare, first + n as u32)?),
                }
            }
            Ok(())
        };
        let mut held = self.held.take().unwrap_or_default();
        let second = a.len() as u32;
        if candidate_first {
            side(b, &mut held.b, second)?;
            side(a, &mut held.a, 0)?;
        } else {
            side(a, &mut held.a, 0)?;
            side(b, &mut held.b, second)?;
        }
        self.held = Some(held);
        Ok(())
    }

    /// Makes what is installed ready to be swapped within microseconds.
    fn anchor(&mut self, lab: &Lab) -> Result<(), LabError> {
        if self.anchors.is_empty() {
            let programs: Vec<ProgramId> = self.a.iter().map(|want| want.program).collect();
            self.anchors = lab.anchor(&programs, &self.spare, 2 * programs.len() as u32)?;
        }
        // The programs of the last reload are still in their places.
        lab.restore()
    }
}

/// What times a row's windows: a sink that is itself compared can't.
fn clock_of(topology: &Topology, scenario: &Scenario, compared: &[Wanted]) -> Clock {
    match clock(topology, scenario) {
        Clock::Sink(port) if compared.iter().any(|want| topology.programs[want.program.0].attach.contains(&port)) => {
            Clock::Source
        }
        clock => clock,
    }
}

/// One reload: `None` where a stop was asked for.
pub(super) fn measure(
    lab: &mut Lab,
    row: &mut RowUnderTest,
    options: &CompareOptions,
    dice: &mut fastrand::Rng,
    stop: &Stop,
) -> Result<Option<Reloaded>, CompareError> {
    lab.install(Some(&row.scenario), row.row.mode, false)?;
    row.reckon(lab)?;
    let topology = lab.topology().clone();
    let window = Window::new(lab, &topology, &row.scenario, &RunOptions::default())?;
    if row.only {
        row.anchor(lab)?;
    }
    if options.reload || row.held.is_none() {
        row.load(lab, dice)?;
    }
    let began = Instant::now();
    let frames = match row.frames {
        Some(frames) => frames,
        None => *row.frames.insert(frames_of_a_window(lab, &row.row.a.name, row.clock, &window, stop)?),
    };
    let window = window.with(frames, row.clock);
    let held = row.held.take().unwrap_or_default();
    let put = |lab: &Lab, side: Side| -> Result<(), LabError> {
        let programs = if side == Side::Baseline { &held.a } else { &held.b };
        row.a.iter().zip(programs).try_for_each(|(want, held)| lab.put(want.program, held))
    };
    let proof = Proof::begin(lab, &topology, &row.scenario)?;
    let mut one = |side: Side| -> Result<Option<f64>, LabError> {
        put(lab, side)?;
        Ok(window.measure(lab, stop)?.0)
    };
    let outcome = take_turns(began, (row.name(), frames), options, dice, stop, &mut one);
    if let Some(proof) = proof {
        proof.end(lab, &window, &mut row.seen)?;
    }
    // Where other rows are measured in between, held programs would fill the dispatcher.
    if row.only || !options.reload {
        row.held = Some(held);
    }
    outcome
}

/// A reload's blocks, of windows that `one` takes of a side; the name and the frames of a window are for what is said
/// where none could be timed. `None` where a stop was asked for.
pub(super) fn take_turns(
    began: Instant,
    (name, frames): (&str, u64),
    options: &CompareOptions,
    dice: &mut fastrand::Rng,
    stop: &Stop,
    one: &mut dyn FnMut(Side) -> Result<Option<f64>, LabError>,
) -> Result<Option<Reloaded>, CompareError> {
    let mut orders = blocks::Orders::seeded(dice.u64(..));
    let mut all = Vec::new();
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut redrawn = 0;
    for order in orders.draw(options.blocks) {
        let mut block = take(order, one, stop)?;
        let mut again = 0;
        while block.as_ref().is_some_and(|block| block.difference().is_none()) && again < REDRAWS {
            again += 1;
            block = take(order, one, stop)?;
        }
        redrawn += again;
        let Some(block) = block else { return Ok(None) };
        for (window, side) in block.windows.iter().zip(order.sides()) {
            if side == Side::Baseline { a.push(window.ns) } else { b.push(window.ns) }
        }
        all.push(block);
    }
    let reloaded = blocks::reload(&all);
    let Some(difference) = reloaded.difference else {
        return Err(CompareError::Untimed { scenario: name.to_owned(), frames });
    };
    Ok(Some(Reloaded { began, difference, a, b, blocks: reloaded.used as u64, redrawn }))
}

/// One block; `None` where a stop was asked for.
fn take(
    order: Order,
    one: &mut dyn FnMut(Side) -> Result<Option<f64>, LabError>,
    stop: &Stop,
) -> Result<Option<Block>, LabError> {
    let mut windows = [blocks::Window { ns: f64::NAN, disturbed: false }; 4];
    // Once a block: reading them takes as long as a tenth of a window.
    let before = Surroundings::now();
    for (of, side) in windows.iter_mut().zip(order.sides()) {
        let ns = one(side)?;
        if stop.is_asked() {
            return Ok(None);
        }
        of.ns = ns.unwrap_or(f64::NAN);
    }
    let disturbed = Surroundings::now() != before;
    for window in &mut windows {
        window.disturbed = disturbed;
    }
    Ok(Some(Block { order, windows }))
}

/// As many frames as make a window of the length aimed at, whole batches.
pub(super) fn frames_of_a_window(
    lab: &mut Lab,
    name: &str,
    clock: Clock,
    window: &Window,
    stop: &Stop,
) -> Result<u64, CompareError> {
    let probe = window.clone().with(FRAMES_LEAST, clock);
    let mut ns = Vec::new();
    let mut lost = 0;
    for _ in 0..3 {
        let (of, missing) = probe.measure(lab, stop)?;
        ns.extend(of);
        lost += missing;
    }
    let Some(ns) = ns.into_iter().reduce(f64::min) else {
        return Err(CompareError::Untimed { scenario: name.to_owned(), frames: lost });
    };
    Ok(((WINDOW_NS / ns / 64.0) as u64 * 64).clamp(FRAMES_LEAST, FRAMES_MOST))
}

/// Frequencies that differ by less are the same, in kHz: what the kernel tells is measured.
const FREQUENCY_STEP: u64 = 100_000;

/// What must not change while a window is taken.
#[derive(Debug, PartialEq, Eq)]
struct Surroundings {
    /// Time that the hypervisor gave to others, in ticks of the kernel's accounting.
    steal: u64,
    /// The CPU's frequency as the kernel has it, where it tells.
    frequency: Option<u64>,
    /// The clock that the kernel tells time by.
    clock: Option<String>,
}

impl Surroundings {
    fn now() -> Self {
        let cpu = cpu::sender();
        let line = |text: &str| {
            let name = format!("cpu{cpu} ");
            text.lines().find(|line| line.starts_with(&name)).map(str::to_owned)
        };
        let stat = fs::read_to_string("/proc/stat").ok().and_then(|text| line(&text)).unwrap_or_default();
        // user, nice, system, idle, iowait, irq, softirq, steal
        let steal = stat.split_ascii_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).unwrap_or(0);
        let read = |path: &str| fs::read_to_string(path).ok();
        Self {
            steal,
            frequency: read(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"))
                .and_then(|khz| khz.trim().parse::<u64>().ok())
                .map(|khz| khz.div_ceil(FREQUENCY_STEP)),
            clock: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        }
    }
}

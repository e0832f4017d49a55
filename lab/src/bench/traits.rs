//! What operations on traits cost, in nanoseconds and in function calls of the same run; where traits survive, how much
//! room there is for them, and what they add to a redirect.

use std::{fmt, io};

use xdplab_wire::traits::{self, Area, Header, Words};

use super::{
    PathOptions, Running,
    rig::{PathSpec, Rig, RigSpec, builtin},
    survival,
};
use crate::{
    host::lock::HostLock,
    lab::LabError,
    measure::interval::{Estimate, median},
    program::{ProgramError, Traits, TraitsBench, TraitsProgram, TraitsSpec, TraitsWork},
    published,
    record::bench::{
        Bench, BenchReport, Nanoseconds, Rows, TraitFindings, TraitPublished, TraitRedirect, TraitRow, TraitSurvival,
    },
    run::Progress,
    topology::{Builtin, Options},
    traffic::{Stop, cpu::Pinned},
    xdp::XdpMode,
};

/// Lengths of what is moved, in bytes.
pub const LENGTHS: [usize; 7] = [8, 16, 32, 64, 96, 128, 192];

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct TraitsPlan {
    /// Rounds, each of which measures every operation once.
    pub rounds: u32,
    /// Runs of an operation in a round.
    pub times: u32,
}

impl Default for TraitsPlan {
    /// 61 rounds of 10,000: about three seconds.
    fn default() -> Self {
        Self { rounds: 61, times: 10_000 }
    }
}

/// An operation on traits, or what it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraitsOperation {
    /// What is done.
    pub work: TraitsWork,
    /// Length of what is moved, or for get and set of what stands in front of and behind the value together; 0 where
    /// there is no such thing. In bytes.
    pub length: usize,
}

impl fmt::Display for TraitsOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.length;
        match self.work {
            TraitsWork::Empty => write!(f, "nothing"),
            TraitsWork::EmptyByBytes => write!(f, "nothing, in the loop of moves by bytes"),
            TraitsWork::Get => write!(f, "get"),
            TraitsWork::Set => write!(f, "set"),
            TraitsWork::UpdateByWords => write!(f, "set another length, {length} bytes moved by words"),
            TraitsWork::UpdateByBytes => write!(f, "set another length, {length} bytes moved by bytes"),
            TraitsWork::Insert => write!(f, "set a new key, {length} bytes moved by words"),
            TraitsWork::Turns => write!(f, "move: a new key and its delete by turns, {length} bytes moved"),
            TraitsWork::Delete => write!(f, "delete, {length} bytes moved by words"),
            TraitsWork::MoveByWords => write!(f, "move {length} bytes by words"),
            TraitsWork::MoveByBytes => write!(f, "move {length} bytes by bytes"),
            TraitsWork::Call => write!(f, "function call"),
            TraitsWork::GlobalCall => write!(f, "global function call"),
            TraitsWork::TailCall => write!(f, "tail call"),
            TraitsWork::Callback => write!(f, "call back by address"),
        }
    }
}

/// What an operation costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraitsCost {
    /// The operation.
    pub operation: TraitsOperation,
    /// Nanoseconds: the median over the rounds and its 90 % interval, less what the empty loop took in the same round.
    pub ns: Estimate,
    /// The same in function calls of the same round.
    pub calls: Estimate,
}

/// What all operations cost.
#[derive(Debug, Clone, PartialEq)]
pub struct TraitCosts {
    /// The operations, in the order they were measured in.
    pub costs: Vec<TraitsCost>,
    /// Nanoseconds of a turn of the empty loop, which the others are less.
    pub empty: Estimate,
    /// The largest metadata that a frame of `BPF_PROG_RUN` takes here, in bytes.
    pub capacity: usize,
}

impl TraitCosts {
    /// The cost of an operation: of the shortest length, where there are several.
    pub fn of(&self, work: TraitsWork) -> Option<&TraitsCost> {
        self.costs.iter().find(|cost| cost.operation.work == work)
    }

    /// The cost of an operation at a length.
    pub fn at(&self, work: TraitsWork, length: usize) -> Option<&TraitsCost> {
        self.costs.iter().find(|cost| cost.operation == TraitsOperation { work, length })
    }
}

/// Runs the benchmark.
///
/// # Errors
/// Where the ports can't be made, or a program can't be loaded or attached.
pub fn run(options: &PathOptions, stop: &Stop, progress: &dyn Progress) -> Result<BenchReport, LabError> {
    let _alone = HostLock::exclusive(&mut |holder| progress.waiting(holder))?;
    let mut running = Running::start();
    progress.step("operations");
    let costs = {
        let _pinned =
            Pinned::here().map_err(|errno| LabError::Send { port: "a program".to_owned(), source: errno.into() })?;
        measure(&if options.quick { TraitsPlan { rounds: 9, times: 4_000 } } else { TraitsPlan::default() })?
    };
    if options.profile {
        let mut bench = TraitsBench::load()?;
        let operation = TraitsOperation { work: TraitsWork::Turns, length: 8 };
        let metadata =
            metadata(operation).map_err(|error| failed("prepare a profile".to_owned(), io::Error::other(error)))?;
        let ns = costs.at(TraitsWork::Turns, 8).map_or(f64::NAN, |cost| cost.ns.value);
        running.profile_loop("a new key and its delete by turns", ns, || {
            Ok(bench.run(operation.work, &metadata, (key(operation), operation.length), 200_000).map(drop)?)
        })?;
    }
    progress.step("redirects");
    let redirect = redirects(options.quick, stop, progress)?;
    progress.step("room");
    let capacity = survival::capacity(stop)?;
    progress.step("survival");
    let survival = survival::survival(stop)?;
    let published = published::traits();
    let like = like();
    check(&mut running, &costs, &published, like, &survival);
    running.note("every operation loops inside one program; a turn of the empty loop is taken off");
    running.note(
        "move: a new key in front of 8 bytes of values, which it moves, and its delete; the published lengths are not known",
    );
    running.note("a reader that saw frames without metadata is a fact of this kernel, not a failure");
    let rows = costs.costs.iter().map(row).collect();
    let findings = TraitFindings { like: like.to_owned(), capacity, survival, redirect };
    Ok(running.finish(Bench::Traits(Rows { rows, published, findings })))
}

fn row(cost: &TraitsCost) -> TraitRow {
    TraitRow {
        operation: cost.operation.to_string(),
        detail: if cost.operation.length == 0 { String::new() } else { format!("{} bytes", cost.operation.length) },
        cost: Nanoseconds { ns: cost.ns.value, ci: [cost.ns.low, cost.ns.high] },
        calls: cost.calls.value,
    }
}

/// The published CPU whose mitigations this one shares, by the kernel's word for its return thunks.
fn like() -> &'static str {
    let read = |name: &str| std::fs::read_to_string(format!("/sys/devices/system/cpu/vulnerabilities/{name}"));
    let has = |name: &str, word: &str| read(name).is_ok_and(|text| text.contains(word));
    if has("spec_rstack_overflow", "Safe RET") {
        "amd_9684x_srso_ns"
    } else if has("spec_rstack_overflow", "IBPB") || has("spec_rstack_overflow", "Mitigation") {
        "amd_9684x_ibpb_ns"
    } else {
        "intel_e5_1650v4_ns"
    }
}

/// Published costs as multiples of the published function call, by CPU.
fn published_calls(published: &[TraitPublished], operation: &str, cpu: &str) -> Option<f64> {
    let of = |operation: &str| published.iter().find(|row| row.operation == operation)?.ns.get(cpu).copied();
    Some(of(operation)? / of("function-call")?)
}

fn check(
    running: &mut Running,
    costs: &TraitCosts,
    published: &[TraitPublished],
    like: &str,
    survival: &[TraitSurvival],
) {
    for (name, published_name, ours) in [
        ("get", "xdp-trait-get", costs.of(TraitsWork::Get)),
        ("set", "xdp-trait-set", costs.of(TraitsWork::Set)),
        ("move", "xdp-trait-move", costs.at(TraitsWork::Turns, 8)),
    ] {
        let (Some(ours), Some(limit)) = (ours, published_calls(published, published_name, like)) else { continue };
        let Estimate { value, low, high } = ours.calls;
        running.checks.push(crate::record::Check {
            what: format!("{name}, in function calls"),
            limit: format!("at most {limit:.2}, as on {like}"),
            measured: format!("{value:.2} ({low:.2} to {high:.2})"),
            ok: high <= limit,
            undecided: low <= limit && limit < high,
        });
    }
    let mut slower = Vec::new();
    for length in LENGTHS {
        if let (Some(words), Some(bytes)) =
            (costs.at(TraitsWork::MoveByWords, length), costs.at(TraitsWork::MoveByBytes, length))
            && words.ns.value > bytes.ns.value
        {
            slower.push(length.to_string());
        }
    }
    running.check(
        "moving by words is as fast as by bytes",
        "at every length",
        if slower.is_empty() { "at every length".to_owned() } else { format!("not at {}", slower.join(", ")) },
        slower.is_empty(),
    );
    let unseen: Vec<&TraitSurvival> = survival.iter().filter(|row| row.seen != row.offered).collect();
    running.check(
        "every reader saw every frame",
        format!("{} paths", survival.len()),
        unseen.first().map_or_else(
            || "all".to_owned(),
            |row| format!("all but {}: {} ({}) saw {} of {}", unseen.len(), row.path, row.mode, row.seen, row.offered),
        ),
        unseen.is_empty() && !survival.is_empty(),
    );
}

/// A redirect whose program writes traits first, over one that does not.
fn redirects(quick: bool, stop: &Stop, progress: &dyn Progress) -> Result<Vec<TraitRedirect>, LabError> {
    let mut rig = Rig::new(&RigSpec { name: "traits", quick, ..RigSpec::default() }, stop)?;
    let drop = || Some(builtin(Builtin::Drop, Options::default()));
    let plain = PathSpec::new(rig.to_outs(Builtin::RedirectMap, Options::default(), 1), drop(), XdpMode::Native);
    let sizes = [(1, 4), (1, 8), (2, 8), (4, 8), (8, 8)];
    let pairs: Vec<(PathSpec, PathSpec)> = sizes
        .iter()
        .map(|traits| {
            let body = rig.to_outs(Builtin::Traits, Options { traits: *traits, ..Options::default() }, 1);
            (PathSpec::new(body, drop(), XdpMode::Native), plain.clone())
        })
        .collect();
    let heard = |n: usize| progress.frames(n as u64, 30);
    let measured = rig.rounds_against(&pairs, (6, 6), 6_400, &heard)?;
    Ok(sizes
        .iter()
        .zip(&measured)
        .map(|((traits, bytes), measured)| TraitRedirect {
            traits: *traits,
            bytes: *bytes,
            cost: measured.cost(),
            over_redirect_ns: super::median(&measured.over()),
        })
        .collect())
}

/// A key with keys in front of it and behind.
const KEY: u8 = 20;

/// Values of 8 bytes in front of the key: the offset has something to count.
const IN_FRONT: u8 = 3;

/// Measures what operations on traits cost, the operations in turn, round by round.
///
/// # Errors
/// Where the kernel refuses the programs, or metadata of 40 bytes.
pub fn measure(plan: &TraitsPlan) -> Result<TraitCosts, ProgramError> {
    let capacity = Traits::load(&TraitsSpec::default(), &[TraitsProgram::Capacity])?.probe_capacity()?;
    let mut bench = TraitsBench::load()?;
    let operations = operations(capacity);
    let mut prepared = Vec::new();
    for operation in &operations {
        let metadata = metadata(*operation)
            .map_err(|error| failed(format!("prepare \"{operation}\""), io::Error::other(error)))?;
        prepared.push((*operation, metadata));
    }
    let mut samples = vec![(Vec::new(), Vec::new()); operations.len()];
    let mut empties = Vec::new();
    // The first round warms up.
    for round in 0..=plan.rounds {
        for ((operation, metadata), (all_ns, all_calls)) in prepared.iter().zip(&mut samples) {
            let mut run = |work: TraitsWork| {
                bench.run(work, metadata, (key(*operation), operation.length), plan.times).map(|(ns, _)| ns)
            };
            // Next to each other: what else the machine does slows a call down less than it does plain code.
            let empty = run(TraitsWork::Empty)?;
            let call = run(TraitsWork::Call)? - empty;
            let ns = run(operation.work)?;
            let ns = match operation.work {
                // Those two have no loop of the program's around them.
                TraitsWork::TailCall | TraitsWork::Callback => ns,
                TraitsWork::UpdateByBytes | TraitsWork::MoveByBytes => ns - run(TraitsWork::EmptyByBytes)?,
                _ => ns - empty,
            };
            if round > 0 {
                empties.push(empty);
                all_ns.push(ns);
                all_calls.push(ns / call);
            }
        }
    }
    let none = || failed("measure traits".to_owned(), io::Error::other("no round was asked for"));
    let mut costs = Vec::new();
    for (operation, (ns, calls)) in operations.iter().zip(&samples) {
        let (ns, calls) = median(ns).zip(median(calls)).ok_or_else(none)?;
        costs.push(TraitsCost { operation: *operation, ns, calls });
    }
    Ok(TraitCosts { costs, empty: median(&empties).ok_or_else(none)?, capacity })
}

fn failed(operation: String, source: io::Error) -> ProgramError {
    ProgramError::System { operation, source }
}

/// The operations, as far as the metadata has room for what they move.
fn operations(capacity: usize) -> Vec<TraitsOperation> {
    let plain = |work| TraitsOperation { work, length: 0 };
    let mut operations = vec![plain(TraitsWork::Call), plain(TraitsWork::GlobalCall)];
    operations.extend([TraitsWork::TailCall, TraitsWork::Callback].map(plain));
    operations.extend([TraitsWork::Get, TraitsWork::Set].map(plain));
    for work in [
        TraitsWork::UpdateByWords,
        TraitsWork::UpdateByBytes,
        TraitsWork::Turns,
        TraitsWork::Insert,
        TraitsWork::Delete,
        TraitsWork::MoveByWords,
        TraitsWork::MoveByBytes,
    ] {
        // Header, what is moved, and 8 bytes by which it is.
        let room = |length: &&usize| Header::LEN + *length + 8 <= capacity;
        operations.extend(LENGTHS.iter().filter(room).map(|length| TraitsOperation { work, length: *length }));
    }
    operations
}

/// The key that an operation works on: what is moved lies behind it.
fn key(operation: TraitsOperation) -> u8 {
    match operation.work {
        TraitsWork::Get | TraitsWork::Set => KEY,
        _ => 0,
    }
}

/// The metadata that an operation finds.
fn metadata(operation: TraitsOperation) -> Result<Vec<u8>, traits::Error> {
    let mut memory = [0; 256];
    let mut area = Area::new(&mut memory, 0).ok_or(traits::Error::Broken)?;
    traits::init(&mut area)?;
    let behind = (operation.length / 8) as u8;
    // The last value is written with a longer one before it, so that there is spare room behind once it is gone.
    for key in (1..=behind).rev() {
        traits::set::<Words, _>(&mut area, key, 8, u64::from(key))?;
    }
    match operation.work {
        TraitsWork::Get | TraitsWork::Set => {
            for key in KEY - IN_FRONT..=KEY {
                traits::set::<Words, _>(&mut area, key, 8, u64::from(key))?;
            }
        }
        TraitsWork::Insert => {
            traits::set::<Words, _>(&mut area, 0, 8, 0)?;
            traits::delete::<Words, _>(&mut area, 0)?;
        }
        _ => traits::set::<Words, _>(&mut area, 0, 8, 0)?,
    }
    Ok(area.bytes().to_vec())
}

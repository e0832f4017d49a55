//! What one run of a program costs, by the number of programs that are attached on the host.
//!
//! The kernel calls the first few dozen XDP programs directly, through its dispatcher; one more, and that one is called
//! through a pointer, which costs what the machine's mitigations against speculation make of it. This benchmark attaches
//! one program after the other, each on a port of its own, times a run of the first and of the last, and finds where the
//! dispatcher ends.
//!
//! Two sweeps: in the one the program that is attached first has its code below that of all others in memory, in the
//! other above. The dispatcher searches by address, so that these are its outermost leaves.
//!
//! What is concluded stands on differences between windows that were taken turn by turn: the last program less the
//! first, and the first less a program that no dispatcher calls. A machine drifts by more than what is looked for.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{Running, layout, median};
use crate::{
    host::{
        lock::HostLock,
        thread::{Inside, LabThread},
    },
    lab::{LabError, Spare},
    measure::fingerprint,
    program::{ProgramError, Reference, XdpLink, XdpProgram, dispatcher::DispatcherReader, load_trivial},
    published,
    record::bench::{Bench, BenchReport, Cliff, DispatcherFindings, DispatcherRow, Nanoseconds, Rows},
    run::Progress,
    traffic::{Stop, cpu::Pinned},
    xdp::XdpMode,
};

/// What a caller may choose.
#[derive(Debug, Clone, Default)]
pub struct DispatcherOptions {
    /// Attach so many programs; `None`: two more than the dispatcher of this kernel is known to hold, others' included.
    pub entries: Option<u32>,
    /// Whether runs of one program are profiled.
    pub profile: bool,
}

/// More ports than this are not made.
pub const MOST_ENTRIES: u32 = 256;
/// Programs that are attached where nobody chose: two more than the largest capacity that a kernel ever had (64 with
/// unaligned jump targets, never merged; 48 in every release) would find room for.
const DEFAULT_ENTRIES: u32 = 50;
/// A sweep during which others attached or detached programs is made again, at most so often in all.
const ATTEMPTS: u32 = 3;
/// Runs of a window: one to three milliseconds.
const RUNS: u32 = 40_000;
/// Windows of a program at each step.
const WINDOWS: usize = 15;
/// The frame that programs are run on: none of them looks at it.
const FRAME: [u8; 60] = [0; 60];
/// A step of less than this is none, in nanoseconds: noise from window to window is a few tenths.
const LEAST_STEP: f64 = 3.0;
/// Steepest rise within the capacity, in nanoseconds an entry. A binary search of 48 leaves compares twice as often as
/// one of 8, which costs a few predicted branches in all.
const STEEPEST: f64 = 0.1;
/// Widest spread within the capacity, in nanoseconds: code placement moves a run by one or two.
const WIDEST: f64 = 4.0;

/// One program at one step.
#[derive(Debug, Clone)]
struct Reading {
    windows: Vec<f64>,
    holds_entry: Option<bool>,
}

/// A sweep from one program to all.
#[derive(Debug, Clone)]
struct Sweep {
    /// Where the code of the program that was attached first lies.
    position: &'static str,
    steps: Vec<Step>,
}

/// One step of a sweep: so many programs attached.
#[derive(Debug, Clone)]
struct Step {
    /// Entries that others hold.
    others: Option<u32>,
    attach: Duration,
    detach: Duration,
    first: Reading,
    last: Reading,
    /// Windows of the program that no dispatcher calls.
    reference: Vec<f64>,
    image_bytes: Option<u32>,
}

/// Runs the benchmark.
///
/// # Errors
/// Where a port can't be made, or a program can't be loaded or attached.
pub fn run(options: &DispatcherOptions, stop: &Stop, progress: &dyn Progress) -> Result<BenchReport, LabError> {
    let _alone = HostLock::exclusive(&mut |holder| progress.waiting(holder))?;
    let mut running = Running::start();
    let mut reader = match DispatcherReader::open() {
        Ok(Some(reader)) => Some(reader),
        Ok(None) => {
            running.note("the dispatcher's code is not known on this machine: others' entries are not counted");
            None
        }
        Err(error) => {
            running.note(format!("the dispatcher's code can't be read ({error}): others' entries are not counted"));
            None
        }
    };
    let entries = options.entries.unwrap_or(DEFAULT_ENTRIES);
    let thread = LabThread::start("bench dispatcher")?;
    let sweeps = thread.run(|inside| sweeps(inside, entries, reader.as_mut(), stop, progress))?;
    let retpolines = uses_retpolines();
    let rows = rows(&sweeps, retpolines);
    let findings = findings(&sweeps, retpolines);
    check(&mut running, &findings, &rows, entries);
    if sweeps.iter().any(Sweep::was_disturbed) {
        running.note("others attached or detached programs meanwhile, time after time: the cliff may stand where it did not stay");
    }
    running.note("sizes are computed from the layout's rule for the given number of entries; `in kernel` was read");
    if let Some(others) = findings.others.filter(|others| *others > 0) {
        running.note(format!("others on this host held {others} entries meanwhile"));
    }
    if options.profile {
        let program = load_trivial()?;
        let ns = findings.cliff.map_or(f64::NAN, |cliff| cliff.before_ns);
        running.profile_loop("runs of one program", ns, || Ok(program.time_runs(&FRAME, RUNS).map(drop)?))?;
    }
    let published = published::dispatcher();
    Ok(running.finish(Bench::Dispatcher(Rows { rows, published, findings })))
}

/// Both sweeps, by the position of the program that is attached first.
fn sweeps(
    inside: &Inside,
    entries: u32,
    mut reader: Option<&mut DispatcherReader>,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Sweep>, LabError> {
    let _pinned =
        Pinned::here().map_err(|errno| LabError::Send { port: "a program".to_owned(), source: errno.into() })?;
    progress.step("ports and programs");
    let spare = Spare::new(inside, entries)?;
    let reference = Reference::load()?;
    let mut programs = Vec::new();
    for _ in 0..entries {
        let program = load_trivial()?;
        programs.push((program.address()?.unwrap_or(0), program));
    }
    programs.sort_by_key(|(address, _)| *address);
    let mut sweeps = Vec::new();
    for (n, position) in [(0, "below"), (1, "above")] {
        progress.step(&format!("the first program's code lies {position} the others'"));
        let order: Vec<&(u64, XdpProgram)> =
            if n == 0 { programs.iter().collect() } else { programs.iter().rev().collect() };
        let heard = |step| progress.frames(u64::from(n * entries + step), u64::from(2 * entries));
        for attempt in 0..ATTEMPTS {
            let steps = sweep(inside, &spare, (&order, &reference), reader.as_deref_mut(), stop, &heard)?;
            let sweep = Sweep { position, steps };
            if attempt + 1 == ATTEMPTS || !sweep.was_disturbed() || stop.is_asked() {
                sweeps.push(sweep);
                break;
            }
        }
    }
    Ok(sweeps)
}

fn sweep(
    inside: &Inside,
    spare: &Spare,
    (programs, reference): (&[&(u64, XdpProgram)], &Reference),
    mut reader: Option<&mut DispatcherReader>,
    stop: &Stop,
    progress: &dyn Fn(u32),
) -> Result<Vec<Step>, LabError> {
    let mut links: Vec<XdpLink> = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    for (n, (address, program)) in (0..).zip(programs.iter().copied()) {
        if stop.is_asked() {
            break;
        }
        progress(n);
        let started = Instant::now();
        let link = inside.enter(spare.netns(), || program.attach(Spare::ifindex(n), XdpMode::Native))??;
        let attach = started.elapsed();
        links.push(link);
        let table = match &mut reader {
            Some(reader) => Some(reader.read()?),
            None => None,
        };
        let holds = |address: u64| table.as_ref().map(|table| table.programs.contains(&address));
        let ours = |address: &u64| programs.iter().any(|(ours, _)| ours == address);
        let others = table.as_ref().map(|table| table.programs.iter().filter(|address| !ours(address)).count() as u32);
        let (first_address, first) = programs[0];
        let [mut of_first, mut of_last, mut of_reference] = [const { Vec::new() }; 3];
        for _ in 0..WINDOWS {
            // Turn by turn, so that a drift of the machine falls on all alike.
            of_reference.push(window(|runs| reference.time_runs(&FRAME, runs))?);
            of_first.push(window(|runs| first.time_runs(&FRAME, runs))?);
            of_last.push(window(|runs| program.time_runs(&FRAME, runs))?);
        }
        steps.push(Step {
            others,
            attach,
            detach: Duration::ZERO,
            first: Reading { windows: of_first, holds_entry: holds(*first_address) },
            last: Reading { windows: of_last, holds_entry: holds(*address) },
            reference: of_reference,
            image_bytes: table.map(|table| table.bytes as u32),
        });
    }
    // The last that came is the first to go.
    for step in steps.iter_mut().rev() {
        let started = Instant::now();
        drop(links.pop());
        step.detach = started.elapsed();
    }
    Ok(steps)
}

/// Nanoseconds of one run: a long stretch of runs less a call of one run, which takes what the system call takes.
fn window(time: impl Fn(u32) -> Result<Duration, ProgramError>) -> Result<f64, LabError> {
    let call = time(1)?;
    let runs = time(RUNS + 1)?;
    Ok((runs.as_secs_f64() - call.as_secs_f64()) * 1e9 / f64::from(RUNS))
}

impl Sweep {
    /// Whether others attached or detached programs in the meantime.
    fn was_disturbed(&self) -> bool {
        self.steps.windows(2).any(|pair| pair[0].others != pair[1].others)
    }
}

fn rows(sweeps: &[Sweep], retpolines: bool) -> Vec<DispatcherRow> {
    let mut rows = Vec::new();
    for Sweep { position, steps } in sweeps {
        for (entries, step) in (1..).zip(steps) {
            for (attached, reading) in [("first", &step.first), ("last", &step.last)] {
                rows.push(DispatcherRow {
                    entries,
                    position: (*position).to_owned(),
                    attached: attached.to_owned(),
                    cost: median(&reading.windows),
                    holds_entry: reading.holds_entry,
                    attach_ms: step.attach.as_secs_f64() * 1e3,
                    detach_ms: step.detach.as_secs_f64() * 1e3,
                    image_bytes_aligned: layout::image_bytes(entries, true, retpolines),
                    image_bytes_unaligned: layout::image_bytes(entries, false, retpolines),
                    image_bytes_read: step.image_bytes,
                });
            }
        }
    }
    rows
}

/// Whether the kernel makes indirect calls by retpolines, by its own word.
fn uses_retpolines() -> bool {
    let path = "/sys/devices/system/cpu/vulnerabilities/spectre_v2";
    std::fs::read_to_string(path).is_ok_and(|text| text.contains("Retpoline"))
}

fn findings(sweeps: &[Sweep], retpolines: bool) -> DispatcherFindings {
    let steps = sweeps.iter().map(|sweep| sweep.steps.len()).min().unwrap_or(0);
    let differences = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
    // The windows of both sweeps together: the first program holds an entry at every step.
    let over_first: Vec<f64> = (0..steps)
        .map(|n| {
            let of = |sweep: &Sweep| differences(&sweep.steps[n].last.windows, &sweep.steps[n].first.windows);
            median(&sweeps.iter().flat_map(of).collect::<Vec<_>>()).ns
        })
        .collect();
    let others = sweeps.iter().flat_map(|sweep| sweep.steps.iter().map(|step| step.others)).max().flatten();
    let split = cliff(&over_first);
    let within = split.map_or(steps, |(entries, _, _)| entries as usize);
    let mut slopes = Vec::new();
    let mut all = Vec::new();
    for sweep in sweeps {
        for of in [|step: &Step| step.first.windows.clone(), |step: &Step| step.last.windows.clone()] {
            let over_reference = |step: &Step| median(&differences(&of(step), &step.reference)).ns;
            let series: Vec<f64> = sweep.steps.iter().take(within).map(over_reference).collect();
            slopes.extend(pairwise_slopes(&series));
            all.extend(series);
        }
    }
    all.sort_by(f64::total_cmp);
    let percentile = |share: f64| all.get(((all.len().max(1) - 1) as f64 * share).round() as usize).copied();
    let spread_ns = percentile(0.9).zip(percentile(0.1)).map_or(0.0, |(high, low)| high - low);
    let lasts = sweeps.iter().flat_map(|sweep| sweep.steps.iter().take(within).flat_map(|step| &step.last.windows));
    let before_ns = median(&lasts.copied().collect::<Vec<_>>()).ns;
    let cliff = split.map(|(entries, before, after)| Cliff {
        entries,
        capacity: others.map(|others| entries + others),
        before_ns,
        after_ns: before_ns + after - before,
        step_ns: after - before,
    });
    let mitigations: BTreeMap<String, String> = fingerprint::of_host()
        .0
        .into_iter()
        .filter_map(|(name, state)| Some((name.strip_prefix("mitigation-")?.to_owned(), state)))
        .collect();
    DispatcherFindings { others, cliff, slope_ns: median(&slopes), spread_ns, mitigations, retpolines }
}

/// The slopes between pairs of steps half a series apart: their median is the rise of the series, whatever single
/// steps do (Theil 1950, and Sen 1968, with the pairs of Theil's "incomplete method").
fn pairwise_slopes(series: &[f64]) -> impl Iterator<Item = f64> {
    let half = series.len() / 2;
    (0..series.len() - half).filter(move |_| half > 0).map(move |n| (series[n + half] - series[n]) / half as f64)
}

/// Where a series rises for good: the number of steps before, and the medians before and after. The split is the one
/// that leaves least absolute deviation from the two medians; it counts if it is a step of [`LEAST_STEP`].
fn cliff(series: &[f64]) -> Option<(u32, f64, f64)> {
    let middle = |values: &[f64]| median(values).ns;
    let deviation = |values: &[f64]| {
        let middle = middle(values);
        values.iter().map(|value| (value - middle).abs()).sum::<f64>()
    };
    let split = (1..series.len()).min_by(|a, b| {
        let cost = |n: usize| deviation(&series[..n]) + deviation(&series[n..]);
        cost(*a).total_cmp(&cost(*b))
    })?;
    let (before, after) = (middle(&series[..split]), middle(&series[split..]));
    (after - before >= LEAST_STEP).then_some((split as u32, before, after))
}

fn check(running: &mut Running, findings: &DispatcherFindings, rows: &[DispatcherRow], entries: u32) {
    let Nanoseconds { ns, ci } = findings.slope_ns;
    // Over a few entries the placement of a single program is a slope.
    let steepest = STEEPEST.max(WIDEST / f64::from(entries));
    running.check(
        "flat within the capacity",
        format!("at most {steepest:.2} ns an entry"),
        format!("{ns:.3} ns an entry ({:.3} to {:.3})", ci[0], ci[1]),
        ns <= steepest,
    );
    running.check(
        "spread within the capacity",
        format!("at most {WIDEST} ns"),
        format!("{:.1} ns from the 10th to the 90th percentile", findings.spread_ns),
        findings.spread_ns <= WIDEST,
    );
    // By the kernel's own code where that can be read: the last program that still holds an entry.
    let held: Vec<&DispatcherRow> = rows.iter().filter(|row| row.attached == "last").collect();
    let known = held.iter().all(|row| row.holds_entry.is_some());
    let room = held.iter().filter(|row| row.holds_entry == Some(true)).map(|row| row.entries).max().unwrap_or(0);
    let is_full = known && room < entries;
    let found = findings.cliff.map_or_else(
        || "none".to_owned(),
        |c| format!("after {} programs: {:.1} to {:.1} ns", c.entries, c.before_ns, c.after_ns),
    );
    if !findings.retpolines {
        running.check("no cliff without retpolines", "none", found, findings.cliff.is_none());
    } else if is_full {
        let ok = findings.cliff.is_some_and(|cliff| cliff.entries == room);
        running.check("one cliff where the dispatcher ends", format!("after {room} programs"), found, ok);
    } else if known {
        running.check("no cliff before the dispatcher ends", "none", found, findings.cliff.is_none());
    } else {
        running.check("one cliff where the dispatcher ends", "somewhere", found, findings.cliff.is_some());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cliff_is_found_where_it_is(
            noise in prop::collection::vec(-0.8..0.8_f64, 50), at in 1..50_usize, step in 5.0..20.0_f64,
        ) {
            let series: Vec<f64> =
                noise.iter().enumerate().map(|(n, noise)| 26.0 + noise + if n >= at { step } else { 0.0 }).collect();
            prop_assert_eq!(cliff(&series).map(|(n, _, _)| n), Some(at as u32));
        }

        #[test]
        fn noise_is_no_cliff(noise in prop::collection::vec(-0.8..0.8_f64, 2..80)) {
            prop_assert_eq!(cliff(&noise.iter().map(|noise| 26.0 + noise).collect::<Vec<_>>()), None);
        }

        #[test]
        fn a_straight_rise_has_its_slope(slope in -2.0..2.0_f64, length in 2..60_usize) {
            let series: Vec<f64> = (0..length).map(|n| 5.0 + slope * n as f64).collect();
            let slopes: Vec<f64> = pairwise_slopes(&series).collect();
            prop_assert!((median(&slopes).ns - slope).abs() < 1e-9);
        }
    }

    #[test]
    fn too_short_a_series_has_neither() {
        assert_eq!(cliff(&[]), None);
        assert_eq!(cliff(&[30.0]), None);
        assert_eq!(pairwise_slopes(&[1.0]).count(), 0);
    }
}

//! Dropping frames: in the driver and in the stack, by one queue and by several, untouched, read, and with their
//! addresses swapped.

use super::{
    PathOptions, Running, median,
    rig::{PathSpec, Rig, RigSpec, builtin, over},
};
use crate::{
    host::lock::HostLock,
    lab::LabError,
    published,
    record::bench::{Bench, BenchReport, DropFindings, Nanoseconds, PathRow, Rows},
    run::{Progress, pricing::Clock},
    topology::{Builtin, Options, Touch},
    traffic::{Stop, cpu},
    xdp::XdpMode,
};

/// Frames of a window.
const WINDOW: u64 = 12_800;
/// Rounds and windows.
const ROUNDS: (usize, usize) = (6, 10);
/// Windows with several senders.
const MANY: usize = 24;

/// Runs the benchmark; with profiles of the native and the generic path, if they are asked for.
///
/// # Errors
/// Where the ports can't be made, or a program can't be loaded or attached.
pub fn run(options: &PathOptions, stop: &Stop, progress: &dyn Progress) -> Result<BenchReport, LabError> {
    let _alone = HostLock::exclusive(&mut |holder| progress.waiting(holder))?;
    let mut running = Running::start();
    let cpus = cpu::usable();
    // No more than the kernel gives a veth without being asked twice.
    let senders = &cpus[..cpus.len().min(8)];
    let spec =
        RigSpec { name: "drop", targets: 0, queues: senders.len() as u32, quick: options.quick, ..RigSpec::default() };
    let mut rig = Rig::new(&spec, stop)?;
    running.made_of(&rig)?;
    let touches = [(Touch::None, "none"), (Touch::Read, "read"), (Touch::SwapMacs, "swap-macs")];
    let mut paths = Vec::new();
    for mode in [XdpMode::Native, XdpMode::Generic] {
        for (touch, name) in touches {
            let body = builtin(Builtin::Drop, Options { touch, ..Options::default() });
            paths.push((name, PathSpec::new(body, None, mode)));
        }
    }
    progress.step("one queue");
    let specs: Vec<PathSpec> = paths.iter().map(|(_, path)| path.clone()).collect();
    let total = (ROUNDS.0 * specs.len()) as u64;
    let windows = rig.rounds(&specs, ROUNDS, WINDOW, &|n| progress.frames(n as u64, total))?;
    let row = |name: &str, mode: XdpMode, queues: u32, cost: Nanoseconds| PathRow {
        test: "drop".to_owned(),
        mode,
        queues,
        detail: name.to_owned(),
        cost,
        mpps: cost.mpps(),
    };
    let mut rows: Vec<PathRow> =
        paths.iter().zip(&windows).map(|((name, path), w)| row(name, path.mode, 1, median(w))).collect();
    let mut queues_gain = 1.0;
    if senders.len() > 1 {
        progress.step(&format!("{} queues", senders.len()));
        for (name, path) in paths.iter().filter(|(name, _)| *name == "none") {
            rig.install(path)?;
            let mut single = Vec::new();
            let mut many = Vec::new();
            for n in 0..=rig.effort(1, MANY).1 {
                if stop.is_asked() {
                    break;
                }
                let all = rig.window_of_many(path, WINDOW, senders)?;
                let one = rig.windows(path, WINDOW, 1)?;
                // The first finds caches and predictors cold.
                if n > 0 {
                    many.push(all);
                    single.extend(one);
                }
            }
            let cost = median(&many);
            if path.mode == XdpMode::Native {
                queues_gain = median(&single).ns / cost.ns;
            }
            rows.push(row(name, path.mode, senders.len() as u32, cost));
        }
        running.note(format!("several queues: one sender on each of CPUs {senders:?}, each with a queue of its own"));
    } else {
        running.note("one CPU only: no row with several queues");
    }
    progress.step("AF_XDP");
    let rx = rig.port("dut:rx0");
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let path = PathSpec::new(builtin(Builtin::Xsk, Options::default()), None, mode);
        let received = rig.windows_by(&path, Clock::Sink(rx), WINDOW, rig.effort(1, MANY).1)?;
        if received.is_empty() {
            running.note(format!("no frame arrived at the AF_XDP socket, {mode}: no row"));
            continue;
        }
        rows.push(PathRow { test: "AF_XDP receive".to_owned(), ..row("none", mode, 1, median(&received)) });
    }
    running
        .note("AF_XDP: by the receiver's clock, in copy mode (a veth has no other), sent faster than it can receive");
    if options.profile {
        let of = |n: usize| (format!("drop, {}", specs[n].mode), specs[n].clone(), median(&windows[n]).ns);
        running.profile(&mut rig, &[of(0), of(3)], progress)?;
    }
    // A frame that is dropped must have been there: the same programs, counting.
    let mut balanced = 0;
    for path in &specs {
        let settled = rig.settle(path, 6_400)?;
        let (_, dropped) = settled.ledger.ends();
        balanced += usize::from(settled.ledger.is_balanced() && dropped == 6_400 && settled.ledger.lost() == 0);
    }
    running.check(
        "every frame is dropped by the program",
        format!("{} paths", specs.len()),
        format!("{balanced} paths"),
        balanced == specs.len(),
    );
    let at = |n: usize| windows.get(n).map_or(&[][..], Vec::as_slice);
    let findings = DropFindings {
        read_ns: over(at(1), at(0)),
        swap_ns: over(at(2), at(0)),
        generic_ns: over(at(3), at(0)),
        queues_gain,
    };
    running.note(
        "costs are of veth, generator included; the published rows were measured on i40e, by the receiver's rate",
    );
    Ok(running.finish(Bench::Drop(Rows { rows, published: published::drop(), findings })))
}

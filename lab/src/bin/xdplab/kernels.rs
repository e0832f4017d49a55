//! `xdplab compare --kernel A --kernel B FILE`: boots of two kernels in turns, and a verdict over the boots.

use std::{env, ffi::OsString, io, path::Path, time::Instant};

use xdplab::{
    compare::kernels::{self, FEWEST_PAIRS, KernelOptions, PairOfBoots},
    record::{
        compare::CompareReport,
        stored::{self, Stored},
    },
    report::verdict,
    run::Progress as _,
    traffic::Stop,
    vm::{self, Acceleration, Console, Image, Machine, Output, Task},
};

use crate::{
    cli::CompareArgs,
    failure::{Failure, chain},
    gc,
    progress::Bar,
    signals,
    vm::{acceleration, announce, environment},
};

/// Boots both kernels as often as asked for, and compares what a packet costs under them.
pub(crate) fn compare(args: &CompareArgs, a: &Path, b: &Path) -> Result<CompareReport, Failure> {
    if args.boots < FEWEST_PAIRS {
        return Err(Failure::Usage(format!(
            "--boots {}: an interval of 90 % takes {FEWEST_PAIRS} of each kernel at least",
            args.boots
        )));
    }
    gc::need_root()?;
    let (acceleration, note) = acceleration();
    let machine = |kernel: &Path, append: &[String]| -> Result<Machine, Failure> {
        let append = [&args.append, append].concat();
        Ok(Machine::new(Image::find(kernel)?, &args.nic, &append, &args.memory, args.cpus, acceleration)?)
    };
    let (first, second) = (machine(a, &args.append_a)?, machine(b, &args.append_b)?);
    let task = task(args)?;
    announce(note.as_deref(), &first)?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let stop = signals::stop_on_signals()?;
    let bar = Bar::new("compare");
    let mut pairs = Vec::with_capacity(args.boots);
    for (n, second_first) in kernels::orders(args.boots, seed).into_iter().enumerate() {
        bar.step(&format!("boots of pair {} of {}", n + 1, args.boots));
        bar.frames(n as u64, args.boots as u64);
        let began = Instant::now();
        let (a, b) = if second_first {
            let b = boot(&second, &task, b, &stop)?;
            (boot(&first, &task, a, &stop)?, b)
        } else {
            let a = boot(&first, &task, a, &stop)?;
            (a, boot(&second, &task, b, &stop)?)
        };
        pairs.push(PairOfBoots { a, b, seconds: began.elapsed().as_secs_f64() });
    }
    drop(bar);
    let options = KernelOptions {
        budget: args.budget,
        within: args.within,
        seed,
        emulated: acceleration == Acceleration::Emulated,
    };
    let name = |kernel: &Path, append: &[String]| {
        let words: Vec<String> = [kernel.display().to_string()].into_iter().chain(append.iter().cloned()).collect();
        words.join(" ")
    };
    let (a, b) = (name(a, &args.append_a), name(b, &args.append_b));
    kernels::of_kernels((&a, &b), &pairs, &options).map_err(super::compare::of_compare)
}

/// What is run under each kernel.
fn task(args: &CompareArgs) -> Result<Task, Failure> {
    let here = |error: io::Error| Failure::Host(format!("find out where this is: {error}"));
    let words = ["run", "--format", "json"].map(OsString::from).into_iter();
    let scenarios = args.scenarios.iter().flat_map(|name| [OsString::from("--scenario"), OsString::from(name)]);
    Ok(Task {
        program: env::current_exe().map_err(here)?,
        arguments: words.chain(scenarios).chain([args.a.clone().into_os_string()]).collect(),
        directory: env::current_dir().map_err(here)?,
        environment: environment(),
    })
}

/// One boot: what the run under it reported. A check that failed there has its price all the same.
fn boot(machine: &Machine, task: &Task, kernel: &Path, stop: &Stop) -> Result<Vec<Stored>, Failure> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = vm::boot(machine, task, Console::Kept, stop, &mut Output { out: &mut out, err: &mut err })?;
    let said = String::from_utf8_lossy(&err);
    let judged = [verdict::OK, verdict::FAILED, verdict::INCONCLUSIVE, verdict::REGRESSED];
    if !judged.contains(&code) {
        let text = format!("under {}: {}", kernel.display(), said.trim());
        return Err(if code == verdict::WRONG { Failure::Usage(text) } else { Failure::Host(text) });
    }
    let text = String::from_utf8_lossy(&out);
    stored::read(&text).map_err(|error| {
        Failure::Host(format!("the report of the run under {}: {}; {}", kernel.display(), chain(&error), said.trim()))
    })
}

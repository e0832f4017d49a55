//! `xdplab bench`: micro-benchmarks, beside the published figures.

use xdplab::{
    bench::{
        PathOptions,
        broadcast::{self, BroadcastOptions, Inner},
        dispatcher::{self, DispatcherOptions},
        drop as drop_bench,
        flow::{self, FlowOptions},
        redirect, traits,
    },
    lab::LabError,
    record::bench::BenchReport,
    report::{bench as rendered, text::Style, verdict},
    run::Progress,
    traffic::Stop,
};

use crate::{
    cli::{BenchArgs, BenchFormat, BenchName, BroadcastArgs, FlowArgs, InnerName},
    failure::Failure,
    gc, output, profiles,
    progress::Bar,
    signals,
};

/// Runs one benchmark.
pub(crate) fn bench(args: &BenchArgs) -> Result<u8, Failure> {
    if let BenchName::Flow(args) = &args.name {
        check_flow(args)?;
    }
    if let BenchName::Broadcast(args) = &args.name {
        check_broadcast(args)?;
    }
    let (format, directory) = match &args.name {
        BenchName::Dispatcher(args) => (args.format, args.profile.as_deref()),
        BenchName::Drop(args) | BenchName::Redirect(args) | BenchName::Traits(args) => {
            (args.format, args.profile.as_deref())
        }
        BenchName::Broadcast(args) => (args.format, args.profile.as_deref()),
        BenchName::Flow(args) => (args.format, args.profile.as_deref()),
    };
    gc::need_root()?;
    gc::quietly();
    if let Some(directory) = directory {
        profiles::prepare(directory)?;
    }
    let stop = signals::stop_on_signals()?;
    let bar = Bar::new("bench");
    let outcome = run(&args.name, &stop, &bar);
    drop(bar);
    // What an interrupted benchmark found is half of it.
    if stop.is_asked() {
        return Err(Failure::Interrupted);
    }
    let report = outcome?;
    print(&report, format)?;
    if let Some(directory) = directory {
        profiles::write_bench(directory, &report)?;
    }
    Ok(verdict::exit_code(&[report.verdict]))
}

fn run(name: &BenchName, stop: &Stop, bar: &dyn Progress) -> Result<BenchReport, LabError> {
    match name {
        BenchName::Dispatcher(args) => {
            dispatcher::run(&DispatcherOptions { entries: args.entries, profile: args.profile.is_some() }, stop, bar)
        }
        BenchName::Drop(args) => {
            drop_bench::run(&PathOptions { profile: args.profile.is_some(), quick: args.quick }, stop, bar)
        }
        BenchName::Redirect(args) => {
            redirect::run(&PathOptions { profile: args.profile.is_some(), quick: args.quick }, stop, bar)
        }
        BenchName::Traits(args) => {
            traits::run(&PathOptions { profile: args.profile.is_some(), quick: args.quick }, stop, bar)
        }
        BenchName::Flow(args) => {
            let options = FlowOptions {
                key_bytes: args.key_bytes.clone(),
                flows: args.flows,
                quick: args.quick,
                profile: args.profile.is_some(),
            };
            flow::run(&options, stop, bar)
        }
        BenchName::Broadcast(args) => {
            let inner = args.inner.iter().map(|inner| match inner {
                InnerName::Nothing => Inner::Nothing,
                InnerName::Pass => Inner::Pass,
                InnerName::Drop => Inner::Drop,
            });
            let options = BroadcastOptions {
                targets: args.targets,
                inner: inner.collect(),
                max_entries: args.max_entries,
                quick: args.quick,
                profile: args.profile.is_some(),
            };
            broadcast::run(&options, stop, bar)
        }
    }
}

/// A key length that the object does not have is the caller's mistake: said before anything is made.
fn check_flow(args: &FlowArgs) -> Result<(), Failure> {
    let lengths = flow::key_lengths();
    if let Some(unknown) = args.key_bytes.iter().find(|length| !lengths.contains(length)) {
        let list: Vec<String> = lengths.iter().map(ToString::to_string).collect();
        return Err(Failure::Usage(format!(
            "the built-in `flow` has no program for keys of {unknown} bytes: use one of {}",
            list.join(", ")
        )));
    }
    Ok(())
}

/// More targets than the map holds, too.
fn check_broadcast(args: &BroadcastArgs) -> Result<(), Failure> {
    match args.max_entries {
        Some(size) if size < args.targets => Err(Failure::Usage(format!(
            "{} targets don't fit a map of {size} entries: raise --max-entries, or lower --targets",
            args.targets
        ))),
        _ => Ok(()),
    }
}

/// Prints a benchmark's result.
pub(crate) fn print(report: &BenchReport, format: BenchFormat) -> Result<(), Failure> {
    match format {
        BenchFormat::Text => output::print(&rendered::text(report, Style { colour: output::colour(), verbose: false })),
        BenchFormat::Md => output::print(&rendered::markdown(report)),
        BenchFormat::Json => output::print_json(report),
    }
}

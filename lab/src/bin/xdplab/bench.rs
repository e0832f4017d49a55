//! `xdplab bench`: micro-benchmarks, beside the published figures.

use xdplab::{
    bench::{
        broadcast::{self, BroadcastOptions, Inner},
        dispatcher::{self, DispatcherOptions},
        drop as drop_bench,
        flow::{self, FlowOptions},
        redirect, traits,
    },
    record::bench::BenchReport,
    report::{bench as rendered, text::Style, verdict},
};

use crate::{
    cli::{BenchArgs, BenchFormat, BenchName, BroadcastArgs, FlowArgs, InnerName},
    failure::Failure,
    gc, output,
    progress::Bar,
    signals,
};

/// Runs one benchmark.
pub(crate) fn bench(args: &BenchArgs) -> Result<u8, Failure> {
    gc::need_root()?;
    gc::quietly();
    let stop = signals::stop_on_signals()?;
    let bar = Bar::new("bench");
    let (outcome, format) = match &args.name {
        BenchName::Dispatcher(args) => {
            (dispatcher::run(&DispatcherOptions { entries: args.entries }, &stop, &bar), args.format)
        }
        BenchName::Drop(args) => (drop_bench::run(&stop, &bar), args.format),
        BenchName::Redirect(args) => (redirect::run(&stop, &bar), args.format),
        BenchName::Traits(args) => (traits::run(&stop, &bar), args.format),
        BenchName::Flow(args) => (flow::run(&of_flow(args)?, &stop, &bar), args.format),
        BenchName::Broadcast(args) => (broadcast::run(&of_broadcast(args), &stop, &bar), args.format),
    };
    drop(bar);
    let report = outcome?;
    if stop.is_asked() {
        return Err(Failure::Interrupted);
    }
    print(&report, format)?;
    Ok(verdict::exit_code(&[report.verdict]))
}

/// A key length that the object does not have is the caller's mistake: said before anything is made.
fn of_flow(args: &FlowArgs) -> Result<FlowOptions, Failure> {
    let lengths = flow::key_lengths();
    if let Some(unknown) = args.key_bytes.iter().find(|length| !lengths.contains(length)) {
        let list: Vec<String> = lengths.iter().map(ToString::to_string).collect();
        return Err(Failure::Usage(format!(
            "the built-in `flow` has no program for keys of {unknown} bytes: use one of {}",
            list.join(", ")
        )));
    }
    Ok(FlowOptions { key_bytes: args.key_bytes.clone(), flows: args.flows })
}

fn of_broadcast(args: &BroadcastArgs) -> BroadcastOptions {
    let inner = args.inner.iter().map(|inner| match inner {
        InnerName::Nothing => Inner::Nothing,
        InnerName::Pass => Inner::Pass,
        InnerName::Drop => Inner::Drop,
    });
    BroadcastOptions { targets: args.targets, inner: inner.collect(), max_entries: args.max_entries }
}

/// Prints a benchmark's result.
pub(crate) fn print(report: &BenchReport, format: BenchFormat) -> Result<(), Failure> {
    match format {
        BenchFormat::Text => output::print(&rendered::text(report, Style { colour: output::colour(), verbose: false })),
        BenchFormat::Md => output::print(&rendered::markdown(report)),
        BenchFormat::Json => output::print_json(report),
    }
}

//! `xdplab bench`: micro-benchmarks, beside the published figures.

use xdplab::{
    bench::{
        broadcast::{self, BroadcastOptions, Inner},
        dispatcher::{self, DispatcherOptions},
    },
    record::bench::BenchReport,
    report::{bench as rendered, text::Style, verdict},
};

use crate::{
    cli::{BenchArgs, BenchFormat, BenchName, BroadcastArgs, InnerName},
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

//! `xdplab run`: builds, runs, reports, takes down.

use xdplab::{
    record::{Report, Verdict},
    report::{json, text, verdict},
    run::{RunOptions, run as run_topology},
    topology::{self, preflight},
};

use crate::{
    cli::{Format, RunArgs},
    failure::Failure,
    gc, nics, output, profiles,
    progress::Bar,
    signals,
};

/// Runs the files one after the other.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let host = nics::host_file(args.nics.host.as_deref())?;
    // All files are checked before any is run.
    let mut topologies = Vec::new();
    let mut wrong = None;
    for file in &args.files {
        match topology::load(file) {
            Ok(topology) => {
                let known: Vec<&str> = topology.scenarios.iter().map(|s| s.name.as_str()).collect();
                if known.is_empty() {
                    return Err(Failure::Usage(format!(
                        "{}: no scenario to run: add one under [[scenarios]]",
                        file.display()
                    )));
                }
                if let Some(unknown) = args.scenarios.iter().find(|name| !known.contains(&name.as_str())) {
                    let known = known.join("\", \"");
                    return Err(Failure::Usage(format!(
                        "{}: no scenario \"{unknown}\": it has \"{known}\"",
                        file.display()
                    )));
                }
                topologies.push(topology);
            }
            Err(error) => {
                if let Some(before) = wrong.replace(Failure::File(error)) {
                    before.print();
                }
            }
        }
    }
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    gc::need_root()?;
    gc::quietly();
    let stop = signals::stop_on_signals()?;
    let options = RunOptions {
        only: args.scenarios.clone(),
        frames: args.frames,
        batch: args.batch,
        no_pricing: args.no_pricing,
        profile: args.profile.is_some(),
        baselines: Some(args.baselines.clone()),
        across: args.across,
        nics: nics::choice(args.nics.nics),
        host,
    };
    if let Some(directory) = &args.profile {
        profiles::prepare(directory)?;
    }
    let mut reports = Vec::new();
    let mut failure = None;
    for topology in &topologies {
        if stop.is_asked() {
            break;
        }
        warn(topology);
        let bar = Bar::new(&topology.name);
        match run_topology(topology, &options, &stop, &bar) {
            Ok(report) => {
                drop(bar);
                if args.format == Format::Text {
                    let style = text::Style { colour: output::colour(), verbose: args.verbose };
                    output::print(&text::text(&report, style))?;
                }
                if let Some(directory) = &args.profile {
                    // The report has it all: it goes on.
                    if let Err(error) = profiles::write(directory, &report) {
                        error.print();
                        failure = Some(verdict::worse(failure.unwrap_or(0), error.exit_code()));
                    }
                }
                reports.push(report);
            }
            Err(error) => {
                drop(bar);
                // The other files still have their say.
                let error = Failure::from(error);
                if topologies.len() > 1 {
                    eprintln!("{}:", topology.path.display());
                }
                error.print();
                failure = Some(verdict::worse(failure.unwrap_or(0), error.exit_code()));
            }
        }
    }
    if args.format == Format::Json && !reports.is_empty() {
        output::print(&json::reports(&reports))?;
    }
    if stop.is_asked() {
        return Ok(130);
    }
    let verdicts: Vec<Verdict> =
        reports.iter().flat_map(|report: &Report| report.scenarios.iter().map(|s| s.verdict)).collect();
    Ok(verdict::worse(failure.unwrap_or(0), verdict::exit_code(&verdicts)))
}

/// What will go wrong is said before it does.
fn warn(topology: &topology::Topology) {
    let warnings = preflight::warnings(topology);
    if !warnings.is_empty() {
        eprintln!("{}", preflight::render(topology, &warnings));
    }
}

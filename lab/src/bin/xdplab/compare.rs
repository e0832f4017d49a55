//! `xdplab compare` and `xdplab calibrate`: verdicts in nanoseconds.

use std::path::Path;

use xdplab::{
    compare::{
        self, CompareError, CompareOptions,
        calibrate::{self, CalibrateOptions},
        of_reports,
        pairing::Pairing,
        source::{self, SourceError},
    },
    lab::Cabling,
    record::compare::{CompareReport, CompareVerdict},
    report::{compare as rendered, cover_letter, text::Style, verdict},
    topology::LoadError,
};

use crate::{
    cli::{BenchFormat, CalibrateArgs, CompareArgs, CompareFormat},
    failure::Failure,
    gc, kernels, nics, output,
    progress::Bar,
    report, signals,
};

/// What `git bisect run` takes for a commit that can't be judged.
const BISECT_SKIP: u8 = 125;

/// Compares two of a kind.
pub(crate) fn compare(args: &CompareArgs) -> Result<u8, Failure> {
    if args.bisect {
        // A commit that does not build a working object is none that can be judged.
        return Ok(match compared(args) {
            Ok(report) => {
                print(&report, args.format)?;
                match code(&report) {
                    0 => 0,
                    verdict::REGRESSED => 1,
                    _ => BISECT_SKIP,
                }
            }
            Err(Failure::BrokenPipe) => return Err(Failure::BrokenPipe),
            Err(failure) => {
                failure.print();
                BISECT_SKIP
            }
        });
    }
    let report = compared(args)?;
    print(&report, args.format)?;
    Ok(code(&report))
}

fn compared(args: &CompareArgs) -> Result<CompareReport, Failure> {
    let candidate = match (args.kernel.as_slice(), &args.b) {
        ([a, b], None) => return kernels::compare(args, a, b),
        ([], Some(candidate)) => candidate,
        (given, _) => {
            return Err(Failure::Usage(format!(
                "{} kernel given: name two, the baseline first, and one topology: xdplab compare --kernel A --kernel B lab.toml",
                given.len()
            )));
        }
    };
    let kind = |path: &Path| path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_owned();
    let kinds = (kind(&args.a), kind(candidate));
    let changes = !args.change_a.is_empty() || !args.change_b.is_empty();
    let pairing = match (kinds.0.as_str(), kinds.1.as_str()) {
        ("json", "json") => {
            if changes || args.topology.is_some() {
                return Err(Failure::Usage(
                    "--a, --b and --topology are for topologies and objects, not for reports".into(),
                ));
            }
            return reports(args, candidate);
        }
        ("toml", "toml") => {
            if let Some(topology) = &args.topology {
                let topology = topology.display();
                return Err(Failure::Usage(format!("--topology {topology} is for objects: two topologies are given")));
            }
            source::of_topologies((&args.a, &args.change_a), (candidate, &args.change_b))
        }
        (a, b) if a == "json" || b == "json" || a == "toml" || b == "toml" => {
            return Err(Failure::Usage(format!(
                "{} and {} are not of one kind: give two topologies (.toml), two reports (.json) or two objects",
                args.a.display(),
                candidate.display()
            )));
        }
        _ => {
            if changes {
                return Err(Failure::Usage("--a and --b change topologies: two objects are given".into()));
            }
            let within = match (&args.topology, &args.replace) {
                (Some(topology), Some(place)) => Some((topology.as_path(), place.as_str())),
                (None, None) => None,
                _ => return Err(Failure::Usage("--topology and --replace go together".into())),
            };
            source::of_objects(&args.a, candidate, within, args.program.as_deref())
        }
    };
    interleaved(&pairing.map_err(of_source)?, args)
}

fn interleaved(pairing: &Pairing, args: &CompareArgs) -> Result<CompareReport, Failure> {
    gc::need_root()?;
    gc::quietly();
    refuse_what_spoils_prices()?;
    let options = CompareOptions {
        budget: args.budget,
        within: args.within,
        only: args.scenarios.clone(),
        seconds: args.seconds,
        reloads: args.reloads,
        seed: args.seed,
        reload: !args.no_reload,
        floor: !args.no_floor,
        cabling: Cabling::choose(
            &pairing.a,
            nics::choice(args.nics.nics),
            &nics::host_file(args.nics.host.as_deref())?,
        )?,
        ..CompareOptions::default()
    };
    let stop = signals::stop_on_signals()?;
    let bar = Bar::new("compare");
    let outcome = compare::run(pairing, &options, &stop, &bar);
    drop(bar);
    if stop.is_asked() {
        return Err(Failure::Interrupted);
    }
    outcome.map_err(of_compare)
}

/// What makes prices meaningless is said before they are taken.
fn refuse_what_spoils_prices() -> Result<(), Failure> {
    match xdplab::measure::fingerprint::refusals().as_slice() {
        [] => Ok(()),
        refusals => Err(Failure::Host(refusals.join("\n"))),
    }
}

fn reports(args: &CompareArgs, candidate: &Path) -> Result<CompareReport, Failure> {
    let (a, b) = (report::read(&args.a)?, report::read(candidate)?);
    let names = (args.a.display().to_string(), candidate.display().to_string());
    of_reports((&names.0, &a), (&names.1, &b), args.budget, args.across)
        .map_err(|error| Failure::Usage(error.to_string()))
}

fn of_source(error: SourceError) -> Failure {
    match error {
        SourceError::Topology(diagnostics) => Failure::File(LoadError::Invalid(diagnostics)),
        other => Failure::Usage(other.to_string()),
    }
}

pub(crate) fn of_compare(error: CompareError) -> Failure {
    match error {
        CompareError::Lab(error) => Failure::Lab(error),
        error if error.is_of_the_input() => Failure::Usage(error.to_string()),
        error => Failure::Host(error.to_string()),
    }
}

/// The worst of the rows' verdicts.
fn code(report: &CompareReport) -> u8 {
    let of = |verdict: &CompareVerdict| match verdict {
        CompareVerdict::Ok | CompareVerdict::Improved => verdict::OK,
        CompareVerdict::Regressed => verdict::REGRESSED,
        CompareVerdict::Inconclusive => verdict::INCONCLUSIVE,
    };
    report.rows.iter().map(|row| of(&row.verdict)).fold(verdict::OK, verdict::worse)
}

fn print(report: &CompareReport, format: CompareFormat) -> Result<(), Failure> {
    match format {
        CompareFormat::Text => {
            output::print(&rendered::text(report, Style { colour: output::colour(), verbose: false }))
        }
        CompareFormat::Md => output::print(&rendered::markdown(report)),
        CompareFormat::CoverLetter => output::print(&cover_letter::comparison(report)),
        CompareFormat::Json => output::print_json(report),
    }
}

/// Finds this machine's noise floor.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<u8, Failure> {
    gc::need_root()?;
    gc::quietly();
    refuse_what_spoils_prices()?;
    let mut options = CalibrateOptions { seconds: args.seconds, seed: args.seed, ..CalibrateOptions::default() };
    if !args.extra.is_empty() {
        options.extra.clone_from(&args.extra);
    }
    let stop = signals::stop_on_signals()?;
    let bar = Bar::new("calibrate");
    let outcome = calibrate::run(&options, &stop, &bar);
    drop(bar);
    if stop.is_asked() {
        return Err(Failure::Interrupted);
    }
    let report = outcome.map_err(of_compare)?;
    match args.format {
        BenchFormat::Text => output::print(&rendered::calibration_text(&report))?,
        BenchFormat::Md => output::print(&rendered::calibration_markdown(&report))?,
        BenchFormat::Json => output::print_json(&report)?,
    }
    Ok(0)
}

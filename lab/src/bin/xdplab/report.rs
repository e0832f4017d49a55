//! `xdplab report`: renders a report that another verb wrote as JSON.

use std::{fs, path::Path};

use xdplab::{
    record::{
        Report,
        stored::{self, Stored},
    },
    report::{bench, compare, cover_letter, html, junit, markdown, text},
};

use crate::{
    cli::{ReportArgs, ReportFormat},
    failure::Failure,
    output,
};

/// Renders the report.
pub(crate) fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let reports = read(&args.file)?;
    let style = text::Style { colour: output::colour(), verbose: args.verbose };
    let each = |render: &dyn Fn(&Stored) -> Option<String>| -> Result<String, Failure> {
        reports.iter().map(|report| render(report).ok_or_else(|| unfit(report, args))).collect()
    };
    let rendered = match args.format {
        ReportFormat::Text => each(&|report| Some(as_text(report, style)))?,
        ReportFormat::Md => each(&|report| Some(as_markdown(report)))?,
        ReportFormat::CoverLetter => each(&as_cover_letter)?,
        ReportFormat::Html => html::page(&reports),
        ReportFormat::Junit => {
            let of_run = |report: &Stored| match report {
                Stored::Run(run) => Ok(Report::clone(run)),
                other => Err(unfit(other, args)),
            };
            junit::junit(&reports.iter().map(of_run).collect::<Result<Vec<_>, _>>()?)
        }
        ReportFormat::Json => {
            return match reports.as_slice() {
                [one] => output::print_json(one),
                several => output::print_json(&several),
            }
            .map(|()| 0);
        }
    };
    output::print(&rendered)?;
    Ok(0)
}

/// The reports of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<Stored>, Failure> {
    let file = path.display();
    // A device may never end.
    if fs::metadata(path).is_ok_and(|file| !file.is_file()) {
        return Err(Failure::Usage(format!("{file} is no regular file")));
    }
    let source = fs::read_to_string(path).map_err(|error| Failure::Usage(format!("read {file}: {error}")))?;
    stored::read(&source).map_err(|error| Failure::Usage(format!("{file}: {error}")))
}

/// A format that a kind of report does not have.
fn unfit(report: &Stored, args: &ReportArgs) -> Failure {
    let (what, of) = match args.format {
        ReportFormat::Junit => ("JUnit XML has cases that pass or fail: it is", "run"),
        _ => ("a cover letter tells what a change costs: it is", "run or compare"),
    };
    Failure::Usage(format!(
        "{} is a report of {}, and {what} made of reports of {of} only; text, md, html and json are made of all",
        args.file.display(),
        report.verb()
    ))
}

fn as_text(report: &Stored, style: text::Style) -> String {
    match report {
        Stored::Run(report) => text::text(report, style),
        Stored::Compare(report) => compare::text(report, style),
        Stored::Calibrate(report) => compare::calibration_text(report),
        Stored::Bench(report) => bench::text(report, style),
    }
}

fn as_markdown(report: &Stored) -> String {
    match report {
        Stored::Run(report) => markdown::markdown(report),
        Stored::Compare(report) => compare::markdown(report),
        Stored::Calibrate(report) => compare::calibration_markdown(report),
        Stored::Bench(report) => bench::markdown(report),
    }
}

fn as_cover_letter(report: &Stored) -> Option<String> {
    match report {
        Stored::Run(report) => Some(cover_letter::run(report)),
        Stored::Compare(report) => Some(cover_letter::comparison(report)),
        Stored::Calibrate(_) | Stored::Bench(_) => None,
    }
}

//! `xdplab accept`: stores a report as the baseline of its fingerprint.

use xdplab::{baseline, record::stored::Stored};

use crate::{cli::AcceptArgs, failure::Failure, output, report};

/// Stores every report of the file.
pub(crate) fn accept(args: &AcceptArgs) -> Result<u8, Failure> {
    let mut said = String::new();
    for stored in report::read(&args.report)? {
        let Stored::Run(report) = stored else {
            return Err(Failure::Usage(format!(
                "{} is no report of `xdplab run --format json`: only what was run can be run again",
                args.report.display()
            )));
        };
        let into = baseline::accept(&report, &args.baselines).map_err(|error| {
            let why = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            Failure::Usage(format!("{}: {error}{why}", args.report.display()))
        })?;
        said += &format!("{}: accepted as {}\n", report.lab, into.display());
    }
    output::print(&said)?;
    Ok(0)
}

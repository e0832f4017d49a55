//! `xdplab report`: renders a report that `run --format json` wrote.

use std::fs;

use xdplab::{
    record::{REPORT_SCHEMA, Report},
    report::{json, junit, markdown, text},
};

use crate::{
    cli::{ReportArgs, ReportFormat},
    failure::Failure,
    output,
};

/// Renders the report.
pub(crate) fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let file = args.file.display();
    // A device may never end.
    if fs::metadata(&args.file).is_ok_and(|file| !file.is_file()) {
        return Err(Failure::Usage(format!("{file} is no regular file")));
    }
    let source = fs::read_to_string(&args.file).map_err(|error| Failure::Usage(format!("read {file}: {error}")))?;
    let wrong = |error: serde_json::Error| {
        Failure::Usage(format!("{file} is no report of `xdplab run --format json`: {error}"))
    };
    let value: serde_json::Value = serde_json::from_str(&source).map_err(wrong)?;
    let values = match value {
        serde_json::Value::Array(values) => values,
        one => vec![one],
    };
    let mut reports = Vec::new();
    for value in values {
        let schema = value.get("schema").and_then(|s| s.as_str()).unwrap_or("none").to_owned();
        if schema != REPORT_SCHEMA {
            return Err(Failure::Usage(format!("{file} has schema {schema}, and this version reads {REPORT_SCHEMA}")));
        }
        reports.push(serde_json::from_value::<Report>(value).map_err(wrong)?);
    }
    if reports.is_empty() {
        return Err(Failure::Usage(format!("{file} holds no report")));
    }
    let style = text::Style { colour: output::colour(), verbose: args.verbose };
    let rendered = match args.format {
        ReportFormat::Text => reports.iter().map(|r| text::text(r, style)).collect(),
        ReportFormat::Md => reports.iter().map(markdown::markdown).collect(),
        ReportFormat::Junit => junit::junit(&reports),
        ReportFormat::Json => json::reports(&reports),
    };
    output::print(&rendered)?;
    Ok(0)
}

//! `xdplab history`: how costs changed over stored reports.

use std::{collections::BTreeSet, path::Path};

use xdplab::{
    history::{self, Folder, Selection},
    report::history as rendered,
};

use crate::{
    cli::{HistoryArgs, HistoryFormat},
    failure::Failure,
    output,
};

/// Prints the history. Whatever it shows, the exit code is 0: stored numbers decide nothing.
pub(crate) fn history(args: &HistoryArgs) -> Result<u8, Failure> {
    let (place, lab) = place(&args.place)?;
    let folder = history::read(place).map_err(|error| Failure::Usage(format!("read {}: {error}", place.display())))?;
    for (file, why) in &folder.passed_over {
        eprintln!("passed over {}: {why}", file.display());
    }
    let selection = Selection { lab, scenario: args.scenario.clone() };
    let report = history::of(&folder.found, &selection);
    if report.series.is_empty() {
        return Err(Failure::Usage(nothing(place, &folder, &selection)));
    }
    match args.format {
        HistoryFormat::Text => output::print(&rendered::text(&report)),
        HistoryFormat::Md => output::print(&rendered::markdown(&report)),
        HistoryFormat::Svg => output::print(&rendered::svg(&report)),
        HistoryFormat::Json => output::print_json(&report),
    }?;
    Ok(0)
}

/// The folder to read, and the lab where the argument is a name: what is there as a file or folder is no name.
fn place(argument: &Path) -> Result<(&Path, Option<String>), Failure> {
    if argument.exists() {
        return Ok((argument, None));
    }
    let name = argument.to_str().filter(|name| !name.contains('/') && !name.is_empty());
    match name {
        Some(name) => Ok((Path::new("."), Some(name.to_owned()))),
        None => Err(Failure::Usage(format!("there is no folder {}", argument.display()))),
    }
}

/// Why there is no history.
fn nothing(place: &Path, folder: &Folder, selection: &Selection) -> String {
    let place = place.display();
    if folder.found.is_empty() {
        let also = match folder.passed_over.len() {
            0 => String::new(),
            n => format!(", and {n} files that were passed over"),
        };
        return format!(
            "{place} holds no report of a run{also}; `xdplab run FILE --format json > {place}/NAME.json` makes one"
        );
    }
    let labs: BTreeSet<&str> = folder.found.iter().map(|found| found.report.lab.as_str()).collect();
    match &selection.lab {
        Some(lab) if !labs.contains(lab.as_str()) => {
            format!("{place} holds no report of lab {lab}, and no such folder is there; labs: {}", list(labs))
        }
        _ => {
            let of_lab =
                folder.found.iter().filter(|found| selection.lab.as_ref().is_none_or(|lab| *lab == found.report.lab));
            let names = of_lab.flat_map(|found| found.report.scenarios.iter().map(|s| s.name.as_str())).collect();
            let scenario = selection.scenario.as_deref().unwrap_or("any");
            format!("no report in {place} has scenario \"{scenario}\"; scenarios: {}", list(names))
        }
    }
}

fn list(names: BTreeSet<&str>) -> String {
    if names.is_empty() { "none".to_owned() } else { names.into_iter().collect::<Vec<_>>().join(", ") }
}

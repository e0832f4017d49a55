//! The history of results: stored reports, put in order, and where their costs changed.
//!
//! A stored number is history, never a gate: the same program moves by several percent between sessions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    measure::{
        fingerprint::{concerning, is_identity},
        stats::changes::{Point, changes},
    },
    record::{
        Fingerprint, Report, ScenarioRecord, Verdict,
        history::{HISTORY_SCHEMA, HistoryChange, HistoryReport, HistoryResult, HistorySeries},
        stored::{self, Stored},
    },
    xdp::XdpMode,
};

/// A report of a run, and the file that has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The file.
    pub file: String,
    /// The report.
    pub report: Report,
}

/// What a folder has.
#[derive(Debug, Default)]
pub struct Folder {
    /// Reports of runs, in the order of the files' names.
    pub found: Vec<Found>,
    /// Files that were passed over, and why.
    pub passed_over: Vec<(PathBuf, String)>,
}

/// Reads all reports of runs in a folder and the folders below, from files whose names end in `.json`. Hidden ones are
/// not looked at, and symbolic links not followed. A path to a file is read as that file.
///
/// # Errors
/// Where the folder itself can't be read. A file that can't is passed over.
pub fn read(path: &Path) -> io::Result<Folder> {
    let mut folder = Folder::default();
    let mut files = Vec::new();
    if path.is_dir() {
        fs::read_dir(path)?;
        files_below(path, &mut files, &mut folder.passed_over);
        files.sort();
    } else {
        fs::metadata(path)?;
        files.push(path.to_owned());
    }
    for file in files {
        match reports(&file) {
            Ok(reports) => {
                let name = file.display().to_string();
                folder.found.extend(reports.into_iter().map(|report| Found { file: name.clone(), report }));
            }
            Err(why) => folder.passed_over.push((file, why)),
        }
    }
    Ok(folder)
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>, passed_over: &mut Vec<(PathBuf, String)>) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return passed_over.push((folder.to_owned(), error.to_string())),
    };
    for entry in entries.flatten() {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !hidden => files_below(&path, files, passed_over),
            Ok(kind) if kind.is_file() && !hidden && path.extension().is_some_and(|e| e == "json") => files.push(path),
            _ => {}
        }
    }
}

/// The reports of runs in a file; or why there is none.
fn reports(file: &Path) -> Result<Vec<Report>, String> {
    if !file.is_file() {
        return Err("is no regular file".to_owned());
    }
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let all = stored::read(&text).map_err(|error| error.to_string())?;
    let kinds: BTreeSet<&str> = all.iter().map(Stored::verb).collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
    let of_runs: Vec<Report> = all
        .into_iter()
        .filter_map(|one| match one {
            Stored::Run(report) => Some(*report),
            _ => None,
        })
        .collect();
    if of_runs.is_empty() { Err(format!("is a report of {kinds}, and a history is made of runs")) } else { Ok(of_runs) }
}

/// Which results a history is of.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only of this lab.
    pub lab: Option<String>,
    /// Only of this scenario.
    pub scenario: Option<String>,
}

type Key = (String, String, XdpMode, usize);

/// Puts reports in order of their start, by lab, scenario, mode and fingerprint, and finds where costs changed. The same
/// result in two files counts once.
pub fn of(found: &[Found], selection: &Selection) -> HistoryReport {
    let mut ordered: Vec<&Found> = found.iter().collect();
    ordered.sort_by_key(|one| (instant(&one.report.started), one.report.started.as_str(), one.file.as_str()));
    let mut fingerprints: Vec<Fingerprint> = Vec::new();
    let mut series: BTreeMap<Key, HistorySeries> = BTreeMap::new();
    for Found { file, report } in ordered {
        if selection.lab.as_ref().is_some_and(|lab| *lab != report.lab) {
            continue;
        }
        let wanted = |s: &&ScenarioRecord| selection.scenario.as_ref().is_none_or(|name| *name == s.name);
        for scenario in report.scenarios.iter().filter(wanted) {
            let number = number(&mut fingerprints, &concerning(&report.fingerprint, &scenario.name));
            let key = (report.lab.clone(), scenario.name.clone(), scenario.mode, number);
            let one = series.entry(key).or_insert_with(|| HistorySeries {
                lab: report.lab.clone(),
                scenario: scenario.name.clone(),
                mode: scenario.mode,
                fingerprint: number,
                results: Vec::new(),
                left_out: 0,
                changes: Vec::new(),
            });
            match result(file, &report.started, scenario) {
                Some(result) if is_known(&one.results, &result) => {}
                Some(result) => one.results.push(result),
                None => one.left_out += 1,
            }
        }
    }
    let series = series.into_values().map(|series| HistorySeries { changes: changes_of(&series.results), ..series });
    HistoryReport { schema: HISTORY_SCHEMA.to_owned(), series: series.collect(), fingerprints }
}

/// The time that a text tells; what tells none comes first.
fn instant(started: &str) -> Option<jiff::Timestamp> {
    started.parse().ok()
}

/// The number of a fingerprint, by what of it must be equal.
fn number(known: &mut Vec<Fingerprint>, fingerprint: &Fingerprint) -> usize {
    let entries = fingerprint.0.iter().filter(|(name, _)| is_identity(name));
    let identity = Fingerprint(entries.map(|(name, value)| (name.clone(), value.clone())).collect());
    known.iter().position(|one| *one == identity).unwrap_or_else(|| {
        known.push(identity);
        known.len() - 1
    })
}

/// A scenario's price, where it is one: a path that loses frames is cheap, and what it costs is no news.
fn result(file: &str, started: &str, scenario: &ScenarioRecord) -> Option<HistoryResult> {
    const OF_PRICES: [&str; 3] = ["min-mpps", "max-ratio", "budget"];
    let cost = scenario.cost.as_ref().filter(|cost| cost.ns.is_finite() && cost.ns > 0.0)?;
    let is_of_price = |what: &str| OF_PRICES.iter().any(|of| what.starts_with(of));
    let is_wrong = scenario.checks.iter().any(|check| !check.ok && !check.undecided && !is_of_price(&check.what));
    if is_wrong || scenario.verdict == Verdict::Skipped || scenario.ledger.offered == 0 {
        return None;
    }
    Some(HistoryResult {
        started: started.to_owned(),
        file: file.to_owned(),
        verdict: scenario.verdict,
        ns: cost.ns,
        ci: cost.ci,
        mpps: cost.mpps,
    })
}

fn is_known(results: &[HistoryResult], new: &HistoryResult) -> bool {
    let is_same = |old: &HistoryResult| HistoryResult { file: new.file.clone(), ..old.clone() } == *new;
    results.iter().rev().take_while(|old| old.started == new.started).any(is_same)
}

fn changes_of(results: &[HistoryResult]) -> Vec<HistoryChange> {
    let half_width = |ci: [f64; 2]| (ci[1] - ci[0]) / 2.0;
    let points: Vec<Point> = results.iter().map(|r| Point { value: r.ns, half_width: half_width(r.ci) }).collect();
    let of = |change: crate::measure::stats::changes::Change| HistoryChange {
        at: change.at,
        started: results[change.at].started.clone(),
        before_ns: change.before,
        after_ns: change.after,
        p: change.p,
    };
    changes(&points).into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    /// A run of the sample lab on some day, which cost so much, on some kernel.
    fn run(day: usize, ns: f64, kernel: &str) -> Found {
        let mut report = sample::passing();
        report.started = format!("2026-01-{day:02}T00:00:00Z");
        report.fingerprint.0.insert("kernel".to_owned(), kernel.to_owned());
        report
            .fingerprint
            .0
            .insert("steal".to_owned(), if day.is_multiple_of(2) { "seen" } else { "none seen" }.to_owned());
        if let Some(cost) = &mut report.scenarios[1].cost {
            (cost.ns, cost.ci, cost.mpps) = (ns, [ns - 0.3, ns + 0.3], 1000.0 / ns);
        }
        Found { file: format!("{day}.json"), report }
    }

    fn native(history: &HistoryReport) -> Vec<&HistorySeries> {
        history.series.iter().filter(|series| series.mode == XdpMode::Native).collect()
    }

    #[test]
    fn a_step_is_found_where_it_is_whatever_the_order_of_files() {
        let wobble = |day: usize| [0.0, 0.1, -0.1][day % 3];
        let mut found: Vec<Found> =
            (1..=20).map(|day| run(day, if day <= 10 { 50.0 } else { 55.0 } + wobble(day), "6.18.0")).collect();
        found.reverse();
        let history = of(&found, &Selection::default());
        let series = native(&history)[0];
        assert_eq!(series.results.len(), 20);
        assert!(series.results.is_sorted_by_key(|result| result.started.clone()));
        assert_eq!(series.changes.len(), 1);
        assert_eq!((series.changes[0].at, series.changes[0].started.as_str()), (10, "2026-01-11T00:00:00Z"));
        assert!((series.changes[0].after_ns - series.changes[0].before_ns - 5.0).abs() < 0.2);
    }

    #[test]
    fn machines_that_are_not_alike_are_kept_apart_and_those_that_changed_in_passing_are_not() {
        let found = [run(1, 50.0, "6.18.0"), run(2, 50.0, "6.18.0"), run(3, 60.0, "6.19.0")];
        let history = of(&found, &Selection::default());
        assert_eq!(history.fingerprints.len(), 2);
        assert_eq!(native(&history).iter().map(|series| series.results.len()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_run_that_lost_frames_or_was_not_priced_is_no_result_and_a_slow_one_is() {
        let mut lossy = run(1, 1.0, "6.18.0");
        let check = &mut lossy.report.scenarios[1].checks[0];
        (check.ok, check.what) = (false, "lost".to_owned());
        let mut slow = run(2, 80.0, "6.18.0");
        slow.report.scenarios[1].verdict = Verdict::Fail;
        slow.report.scenarios[1].checks[1].ok = false;
        let mut empty = run(3, 0.0, "6.18.0");
        empty.report.scenarios[1].cost = None;
        let history = of(&[lossy, slow, empty], &Selection::default());
        let series = native(&history)[0];
        assert_eq!((series.results.len(), series.results[0].ns, series.left_out), (1, 80.0, 2));
    }

    #[test]
    fn a_copy_of_a_result_counts_once() {
        let copy = Found { file: "copy.json".to_owned(), ..run(1, 50.0, "6.18.0") };
        let history = of(&[run(1, 50.0, "6.18.0"), copy, run(1, 51.0, "6.18.0")], &Selection::default());
        assert_eq!(native(&history)[0].results.len(), 2);
    }

    #[test]
    fn a_selection_leaves_the_others_out() {
        let found = [run(1, 50.0, "6.18.0")];
        let of_lab = |lab: &str| of(&found, &Selection { lab: Some(lab.to_owned()), scenario: None }).series.len();
        let of_scenario =
            |name: &str| of(&found, &Selection { lab: None, scenario: Some(name.to_owned()) }).series.len();
        assert_eq!((of_lab("i40e-veth"), of_lab("other")), (2, 0));
        assert_eq!((of_scenario("redirect_map i40e->veth"), of_scenario("other")), (2, 0));
    }
}

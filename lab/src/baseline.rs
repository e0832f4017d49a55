//! Baselines: what a run's report was made of, stored so that it can be run again beside a candidate.
//!
//! A stored number is no gate: the same program moves by a tenth from one session to the next. So a baseline is programs and
//! topology, and the number beside them is history.
//!
//! ```text
//! DIR/LAB/KEY/topology.toml    its objects beside it
//!             report.json
//! ```
//!
//! KEY is of the fingerprint: what was accepted on one machine is no baseline for another.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    measure::fingerprint,
    record::{Fingerprint, Report, TopologyRecord, Verdict},
    topology::{self, LoadError, ProgramSource, Topology},
};

/// The folder of baselines where none is named.
pub const FOLDER: &str = "xdplab-baselines";

/// Why a report can't become a baseline, or a baseline can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// A scenario did not pass.
    #[error("\"{scenario}\" ({mode}) is {verdict}: a failed or inconclusive run never becomes a baseline")]
    NotPassed {
        /// The scenario.
        scenario: String,
        /// Its mode.
        mode: String,
        /// Its verdict.
        verdict: &'static str,
    },
    /// Nothing was priced.
    #[error("no scenario of \"{lab}\" was priced: give one `perf`, and run it without --no-pricing")]
    NothingPriced {
        /// The lab.
        lab: String,
    },
    /// The report does not say what was run.
    #[error("the report of \"{lab}\" does not hold its topology: run it again with this version")]
    NoTopology {
        /// The lab.
        lab: String,
    },
    /// An object is not what was run.
    #[error("{path} {reason} since the report was made: run it again")]
    Changed {
        /// The object.
        path: String,
        /// What is the matter with it.
        reason: &'static str,
    },
    /// A file can't be read or written.
    #[error("{operation} {}", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The stored topology is none that this version reads.
    #[error("the baseline {} can't be used: accept a report anew", path.display())]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: Box<LoadError>,
    },
}

/// A baseline that was found.
#[derive(Debug, Clone)]
pub struct Baseline {
    /// Its folder.
    pub path: PathBuf,
    /// What is run again.
    pub topology: Topology,
}

/// What a report keeps of the topology that was run.
pub fn record(topology: &Topology) -> TopologyRecord {
    let bodies = topology.programs.iter().map(|program| &program.body);
    let instead = topology.scenarios.iter().flat_map(|s| s.programs.iter().map(|(_, body)| body));
    let folder = topology.path.parent().unwrap_or_else(|| Path::new(""));
    let objects = bodies
        .chain(instead)
        .filter_map(|body| match &body.source {
            ProgramSource::Object { path, .. } => {
                let name = path.strip_prefix(folder).unwrap_or(path).display().to_string();
                Some((name, checksum(&fs::read(path).ok()?)))
            }
            ProgramSource::Builtin(_) => None,
        })
        .collect();
    TopologyRecord { file: topology.path.display().to_string(), text: topology.spans.text.clone(), objects }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// The folder of a lab's baseline for a fingerprint.
fn place(dir: &Path, lab: &str, of: &Fingerprint) -> PathBuf {
    dir.join(lab).join(fingerprint::key(of))
}

/// Stores a report, its topology and its objects as the baseline of its fingerprint, in place of an older one. Returns the
/// folder.
///
/// # Errors
/// Where a scenario did not pass, nothing was priced, an object changed, or a file can't be written.
pub fn accept(report: &Report, dir: &Path) -> Result<PathBuf, BaselineError> {
    let lab = report.lab.clone();
    for s in &report.scenarios {
        let verdict = match s.verdict {
            Verdict::Pass => continue,
            Verdict::Fail => "failed",
            Verdict::Regressed => "regressed",
            Verdict::Inconclusive => "inconclusive",
            Verdict::Skipped => "skipped",
        };
        return Err(BaselineError::NotPassed { scenario: s.name.clone(), mode: s.mode.to_string(), verdict });
    }
    if !report.scenarios.iter().any(|s| s.cost.is_some()) {
        return Err(BaselineError::NothingPriced { lab });
    }
    let Some(of) = &report.topology else { return Err(BaselineError::NoTopology { lab }) };
    let into = place(dir, &lab, &report.fingerprint);
    // Made beside its place and moved there whole: nobody finds half a baseline.
    let new = into.with_extension("new");
    let file = |operation, path: &Path| {
        let path = path.to_owned();
        move |source| BaselineError::File { operation, path, source }
    };
    if new.exists() {
        fs::remove_dir_all(&new).map_err(file("remove", &new))?;
    }
    fs::create_dir_all(&new).map_err(file("make the folder", &new))?;
    let stored = store(report, of, &new).and_then(|()| {
        if into.exists() {
            fs::remove_dir_all(&into).map_err(file("replace", &into))?;
        }
        fs::rename(&new, &into).map_err(file("move into place", &into))
    });
    if stored.is_err() {
        let _ = fs::remove_dir_all(&new);
    }
    stored.map(|()| into)
}

fn store(report: &Report, of: &TopologyRecord, new: &Path) -> Result<(), BaselineError> {
    let folder = Path::new(&of.file).parent().unwrap_or_else(|| Path::new("")).to_owned();
    let mut names = BTreeMap::new();
    for (n, (object, checked)) in of.objects.iter().enumerate() {
        let path = folder.join(object);
        let bytes = fs::read(&path)
            .map_err(|_| BaselineError::Changed { path: path.display().to_string(), reason: "went away" })?;
        if checksum(&bytes) != *checked {
            return Err(BaselineError::Changed { path: path.display().to_string(), reason: "changed" });
        }
        let name = format!("object-{n}.o");
        write(&new.join(&name), &bytes)?;
        names.insert(object.clone(), name);
    }
    write(&new.join("topology.toml"), renamed(&of.text, &names).as_bytes())?;
    let text = serde_json::to_string_pretty(report).unwrap_or_default();
    write(&new.join("report.json"), text.as_bytes())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), BaselineError> {
    fs::write(path, bytes).map_err(|source| BaselineError::File { operation: "write", path: path.to_owned(), source })
}

/// A topology's text with its objects by other names.
fn renamed(text: &str, names: &BTreeMap<String, String>) -> String {
    let Ok(mut document) = text.parse::<toml_edit::DocumentMut>() else { return text.to_owned() };
    rename(document.as_table_mut(), names);
    document.to_string()
}

fn rename(table: &mut dyn toml_edit::TableLike, names: &BTreeMap<String, String>) {
    for (key, item) in table.iter_mut() {
        let new = item.as_str().filter(|_| key.get() == "object").and_then(|object| names.get(object));
        if let (Some(new), Some(old)) = (new, item.as_value()) {
            // What stands around it stays: spaces, and a comment.
            let decor = old.decor().clone();
            let mut value = toml_edit::Value::from(new.as_str());
            *value.decor_mut() = decor;
            *item = toml_edit::Item::Value(value);
        } else if let Some(table) = item.as_table_like_mut() {
            rename(table, names);
        } else if let Some(tables) = item.as_array_of_tables_mut() {
            tables.iter_mut().for_each(|table| rename(table, names));
        }
    }
}

/// The baseline of a lab for a fingerprint; with `across`, of another fingerprint where there is none of this one.
///
/// # Errors
/// Where one is there and can't be read.
pub fn find(dir: &Path, lab: &str, of: &Fingerprint, across: bool) -> Result<Option<Baseline>, BaselineError> {
    let mut path = place(dir, lab, of);
    if !path.is_dir() && across {
        let mut others: Vec<PathBuf> = fs::read_dir(dir.join(lab))
            .map(|dir| dir.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
            .unwrap_or_default();
        others.sort();
        match others.pop() {
            Some(other) => path = other,
            None => return Ok(None),
        }
    }
    let file = path.join("topology.toml");
    if !file.is_file() {
        return Ok(None);
    }
    match topology::load(&file) {
        Ok(topology) => Ok(Some(Baseline { path, topology })),
        Err(source) => Err(BaselineError::Unusable { path, source: Box::new(source) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    const TEXT: &str = "name = \"x\"\n[programs.mine]\nobject = \"mine.o\" # kept\n[[scenarios]]\nprograms.mine = { object = \"mine.o\" }\n";

    #[test]
    fn objects_get_their_stored_names_wherever_they_stand() {
        let names = BTreeMap::from([("mine.o".to_owned(), "object-0.o".to_owned())]);
        let text = renamed(TEXT, &names);
        assert_eq!(text.matches("object-0.o").count(), 2, "{text}");
        assert!(text.contains("# kept"));
    }

    #[test]
    fn only_a_run_that_passed_becomes_a_baseline_and_is_found_by_its_fingerprint() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("lab.toml");
        fs::write(dir.path().join("mine.o"), b"object").unwrap();
        let mut report = sample::passing();
        let error = accept(&report, dir.path()).unwrap_err();
        assert!(matches!(error, BaselineError::NoTopology { .. }), "{error}");
        let text = format!("{TEXT}traffic = {{ from = \"gen:tx0\" }}\n");
        report.topology = Some(TopologyRecord {
            file: file.display().to_string(),
            text,
            objects: [("mine.o".to_owned(), checksum(b"object"))].into(),
        });
        let into = accept(&report, &dir.path().join("baselines")).unwrap();
        assert_eq!(fs::read(into.join("object-0.o")).unwrap(), b"object");
        assert!(fs::read_to_string(into.join("topology.toml")).unwrap().contains("object-0.o"));
        // Again, in place of the first.
        assert_eq!(accept(&report, &dir.path().join("baselines")).unwrap(), into);
        let mut other = report.fingerprint.clone();
        other.0.insert("kernel".to_owned(), "another".to_owned());
        let found = |of: &Fingerprint| find(&dir.path().join("baselines"), &report.lab, of, false);
        assert!(found(&other).unwrap().is_none());
        // This text is no whole topology: it is found, and said to be of no use.
        assert!(matches!(found(&report.fingerprint), Err(BaselineError::Unusable { .. })));
        fs::write(dir.path().join("mine.o"), b"changed").unwrap();
        insta::assert_snapshot!(
            accept(&report, &dir.path().join("baselines")).unwrap_err().to_string().rsplit('/').next().unwrap(),
            @"mine.o changed since the report was made: run it again"
        );
        let error = accept(&sample::failing(), dir.path()).unwrap_err();
        assert!(matches!(error, BaselineError::NotPassed { .. }), "{error}");
        assert!(error.to_string().ends_with("a failed or inconclusive run never becomes a baseline"), "{error}");
    }
}

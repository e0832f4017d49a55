//! Which labs there are, and what is left of dead ones.

use std::{fs, path::PathBuf};

use serde::Serialize;

use super::{
    Journal, JournalError, boot, open, path_of,
    record::{self, Kind, State},
    remove,
};
use crate::host::{lock, paths};

/// A lab that the run directory knows of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its name, `NAME` or `NAME@ID`.
    pub name: String,
    /// Whether it outlives its command; `None` where its journal has no header.
    pub kind: Option<Kind>,
    /// Whether it is whole, and to stay.
    pub ready: bool,
    /// Whether a process works on it now.
    pub at_work: bool,
    /// Where its files are.
    pub dir: PathBuf,
}

/// What was removed of one dead lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Collected {
    /// The lab.
    pub name: String,
    /// What was removed.
    pub removed: Vec<String>,
    /// What was left, and why.
    pub errors: Vec<String>,
}

/// The labs of this boot, by name.
///
/// # Errors
/// Where the run directory can't be read.
pub fn list() -> Result<Vec<Entry>, JournalError> {
    let mut entries = Vec::new();
    for name in names()? {
        let text = fs::read_to_string(path_of(&name)).unwrap_or_default();
        let parsed = record::parse(&text);
        // Without access to it nothing can be said of it but that it is there: not that it is dead.
        let at_work = open(&name, false).is_err();
        let boot = boot();
        if let Some(header) = parsed.header_of(&name, &boot).filter(|header| header.boot == boot) {
            entries.push(Entry {
                kind: Some(header.kind),
                ready: parsed.state == Some(State::Ready),
                at_work,
                dir: paths::lab_dir(&name),
                name,
            });
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Removes what dead labs left. A lab that is whole, and one that a process works on, are let be.
///
/// # Errors
/// Where the run directory can't be read.
pub fn gc() -> Result<Vec<Collected>, JournalError> {
    let mut all = Vec::new();
    for name in names()? {
        let (file, text) = match open(&name, false) {
            Ok(Some(locked)) => locked,
            // A directory without a journal: its maker died in between, or is about to write one, and makes it again.
            Ok(None) => {
                let _ = fs::remove_dir(paths::lab_dir(&name));
                continue;
            }
            Err(JournalError::Busy { .. }) => continue,
            Err(error) => {
                all.push(Collected { name, removed: Vec::new(), errors: vec![error.to_string()] });
                continue;
            }
        };
        let parsed = record::parse(&text);
        let boot = boot();
        let Some(header) = parsed.header_of(&name, &boot).filter(|header| header.boot == boot) else {
            // Nothing was made yet, or a reboot took it away.
            remove_files(&parsed.changes);
            remove(&name);
            all.push(Collected { name, removed: vec!["a journal without a lab".to_owned()], errors: Vec::new() });
            continue;
        };
        if parsed.state == Some(State::Ready) {
            continue;
        }
        let journal = Journal { path: path_of(&name), name: name.clone(), file, header };
        all.push(match journal.undo() {
            Ok(mut undone) => {
                undone.removed.append(&mut undone.said);
                undone.removed.push("its journal".to_owned());
                Collected { name, removed: undone.removed, errors: Vec::new() }
            }
            Err(JournalError::Left { left, .. }) => Collected { name, removed: Vec::new(), errors: left },
            Err(error) => Collected { name, removed: Vec::new(), errors: vec![error.to_string()] },
        });
    }
    lock::tidy();
    Ok(all)
}

/// A journal of another boot is only unlinked, with the files beside it: mounts and namespaces went with that boot.
fn remove_files(changes: &[record::Change]) {
    for change in changes {
        if let record::Change::File { path } = change {
            let _ = fs::remove_file(path);
        }
    }
}

/// The names in the run directory.
fn names() -> Result<Vec<String>, JournalError> {
    let dir = paths::run_dir();
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(JournalError::File { operation: "list", path: dir, source }),
    };
    Ok(entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !name.starts_with('.'))
        .collect())
}

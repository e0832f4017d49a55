//! What is compared: topology files, with changes that one side gets; objects on a path of the lab's, or in a topology.

use std::{fs, path::Path};

use super::pairing::{Pairing, PairingError};
use crate::topology::{self, Diagnostics, LARGEST_FILE, Topology};

/// Why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A file can't be read.
    #[error("read {path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A change is none.
    #[error("the change \"{change}\" {reason}; write it as in programs.mine.globals.LIMIT=100")]
    Change {
        /// The change.
        change: String,
        /// What is wrong.
        reason: String,
    },
    /// A file is no topology, or the changes made it a wrong one.
    #[error("{0}")]
    Topology(Box<Diagnostics>),
    /// The two don't stand beside each other.
    #[error(transparent)]
    Pairing(#[from] PairingError),
    /// The topology has no such program.
    #[error("{path} has no program \"{program}\" to put the objects into: it has {present}")]
    NoProgram {
        /// The file.
        path: String,
        /// The name.
        program: String,
        /// The programs that it has.
        present: String,
    },
}

/// The path that objects are compared on where no topology is given: one port, on which they run, and one that a map
/// `tx_ports` would lead to.
const OBJECT_PATH: &str = r#"
name = "objects"
[nodes.gen]
[nodes.dut]
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[programs.object]
object = ""
attach = ["dut:rx0"]
[[scenarios]]
name = "the object's program"
traffic = { from = "gen:tx0", frame-bytes = 64, frames = 1000 }
expect = { lost = 1000 }
"#;

/// Two topology files, or one file twice, each with changes: `path.to.key=VALUE`, VALUE in TOML's notation.
///
/// # Errors
/// Where a file can't be read, a change is wrong, or the two don't stand beside each other.
pub fn of_topologies(a: (&Path, &[String]), b: (&Path, &[String])) -> Result<Pairing, SourceError> {
    let name = |(path, changes): (&Path, &[String])| match changes {
        [] => path.display().to_string(),
        changes => format!("{} with {}", path.display(), changes.join(", ")),
    };
    let (x, y) = (changed(a.0, &read(a.0)?, a.1)?, changed(b.0, &read(b.0)?, b.1)?);
    Ok(Pairing::new(x, y, name(a), name(b)))
}

/// Two objects: in place of a program of a topology, or on a path of the lab's.
///
/// # Errors
/// As [`of_topologies`], and where the topology has no such program.
pub fn of_objects(
    a: &Path,
    b: &Path,
    within: Option<(&Path, &str)>,
    program: Option<&str>,
) -> Result<Pairing, SourceError> {
    let (path, text, place) = match within {
        Some((path, place)) => (path.to_owned(), read(path)?, place.to_owned()),
        None => ("objects.toml".into(), OBJECT_PATH.to_owned(), "object".to_owned()),
    };
    let side = |object: &Path| -> Result<Topology, SourceError> {
        // Relative paths are the caller's, and not the topology's.
        let object = std::path::absolute(object).unwrap_or_else(|_| object.to_owned());
        let mut document = document(&path, &text)?;
        let programs = document.get("programs").and_then(toml_edit::Item::as_table_like);
        let present =
            || programs.map(|p| p.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()).unwrap_or_default();
        if !present().contains(&place) {
            return Err(SourceError::NoProgram {
                path: path.display().to_string(),
                program: place.clone(),
                present: present().join(", "),
            });
        }
        if let Some(of) = document["programs"][&place].as_table_like_mut() {
            for key in ["builtin", "options", "object", "program"] {
                of.remove(key);
            }
            of.insert("object", toml_edit::value(object.display().to_string()));
            if let Some(program) = program {
                of.insert("program", toml_edit::value(program));
            }
        }
        topology::parse(&path, &document.to_string()).map_err(|error| SourceError::Topology(Box::new(error)))
    };
    Ok(Pairing::new(side(a)?, side(b)?, a.display().to_string(), b.display().to_string()))
}

fn read(path: &Path) -> Result<String, SourceError> {
    let failed = |source| SourceError::Unreadable { path: path.display().to_string(), source };
    let file = fs::metadata(path).map_err(failed)?;
    if !file.is_file() || file.len() > LARGEST_FILE {
        return Err(failed(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "it is no regular file of sane size",
        )));
    }
    fs::read_to_string(path).map_err(failed)
}

fn document(path: &Path, text: &str) -> Result<toml_edit::DocumentMut, SourceError> {
    // The topology's own reader says better what is wrong with a file.
    text.parse().map_err(|error: toml_edit::TomlError| match topology::parse(path, text) {
        Err(diagnostics) => SourceError::Topology(Box::new(diagnostics)),
        Ok(_) => SourceError::Change { change: path.display().to_string(), reason: error.to_string() },
    })
}

/// A topology's text with some changes.
fn changed(path: &Path, text: &str, changes: &[String]) -> Result<Topology, SourceError> {
    let wrong = |error| SourceError::Topology(Box::new(error));
    if changes.is_empty() {
        return topology::parse(path, text).map_err(wrong);
    }
    let mut document = document(path, text)?;
    for change in changes {
        let failed = |reason: String| SourceError::Change { change: change.clone(), reason };
        let (key, value) = change.split_once('=').ok_or_else(|| failed("has no `=`".to_owned()))?;
        let value: toml_edit::Value = value
            .trim()
            .parse()
            // A bare word is meant as a text.
            .unwrap_or_else(|_| toml_edit::Value::from(value.trim()));
        let keys: Vec<&str> = key.trim().split('.').map(str::trim).collect();
        let Some((last, tables)) = keys.split_last() else { continue };
        let mut at = document.as_item_mut();
        for table in tables {
            let Some(of) = at.as_table_like_mut() else {
                return Err(failed(format!("goes through `{table}`, which is no table")));
            };
            at = of.entry(table).or_insert(toml_edit::Item::Value(toml_edit::InlineTable::new().into()));
        }
        let Some(of) = at.as_table_like_mut() else {
            return Err(failed(format!("sets `{last}` in what is no table")));
        };
        of.insert(last, toml_edit::Item::Value(value));
    }
    topology::parse(path, &document.to_string()).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
name = "x"
[nodes.gen]
[nodes.dut]
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[programs.mine]
builtin = "drop"
attach = ["dut:rx0"]
[[scenarios]]
name = "s"
traffic = { from = "gen:tx0", frames = 10 }
expect = { drop = ["dut:rx0"] }
"#;

    fn change(changes: &[&str]) -> Result<Topology, SourceError> {
        let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
        changed("x.toml".as_ref(), TEXT, &changes)
    }

    #[test]
    fn a_change_sets_a_key_deep_down() {
        assert_eq!(change(&[]).unwrap().programs[0].body.options.extra, 0);
        assert_eq!(change(&["programs.mine.options.extra=7"]).unwrap().programs[0].body.options.extra, 7);
        let touched = change(&["programs.mine.options.touch = swap-macs"]).unwrap();
        assert_eq!(touched.programs[0].body.options.touch, crate::topology::Touch::SwapMacs);
    }

    #[test]
    fn what_is_no_change_says_so() {
        insta::assert_snapshot!(change(&["programs.mine"]).unwrap_err(), @r#"the change "programs.mine" has no `=`; write it as in programs.mine.globals.LIMIT=100"#);
        insta::assert_snapshot!(change(&["name.x=1"]).unwrap_err(), @r#"the change "name.x=1" sets `x` in what is no table; write it as in programs.mine.globals.LIMIT=100"#);
        assert!(change(&["programs.mine.nonsense=1"]).unwrap_err().to_string().contains("nonsense"));
    }
}

//! What stands in a journal, and reading it back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::host::lend::Borrowed;

/// A change that outlives its process unless it is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Change {
    /// A named network namespace.
    Netns {
        /// Its name.
        name: String,
    },
    /// A mounted file system, on a directory that was made for it.
    Mount {
        /// Where.
        path: PathBuf,
    },
    /// A NIC that is lent, as it was before.
    Nic(Box<Borrowed>),
    /// A file.
    File {
        /// Which.
        path: PathBuf,
    },
}

/// Whether a lab outlives its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It does: `up`.
    Persistent,
    /// It does not: `run`, tests.
    Ephemeral,
}

/// How far a lab is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Whole, and to stay.
    Ready,
    /// On its way out.
    Down,
}

/// A journal's first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// The id of the boot that it was written in.
    pub(super) boot: String,
    /// The instance, which the `lo` of each of its namespaces has as alias.
    pub(super) instance: String,
    pub(super) kind: Kind,
    /// Who made it, for people.
    pub(super) pid: u32,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Record {
    Header(Header),
    Change(Change),
    State(State),
}

/// A journal as it was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) header: Option<Header>,
    pub(super) changes: Vec<Change>,
    pub(super) state: Option<State>,
}

/// Reads a journal. A line that is not whole was never acted upon: what stands behind it can't be either.
pub(super) fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    for line in text.split_inclusive('\n') {
        let Some(record) = line.strip_suffix('\n').and_then(|line| serde_json::from_str(line).ok()) else { break };
        match record {
            Record::Header(header) => parsed.header = Some(header),
            Record::Change(change) => parsed.changes.push(change),
            Record::State(state) => parsed.state = Some(state),
        }
    }
    parsed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn journal() -> (Vec<Record>, String) {
        let header = Header { boot: "b".into(), instance: "i".into(), kind: Kind::Persistent, pid: 1 };
        let records = vec![
            Record::Header(header),
            Record::Change(Change::Mount { path: "/run/xdplab/i/bpf".into() }),
            Record::Change(Change::Netns { name: "i.gen".into() }),
            Record::State(State::Ready),
        ];
        let lines = records.iter().map(|r| serde_json::to_string(r).unwrap() + "\n").collect();
        (records, lines)
    }

    #[test]
    fn a_journal_reads_as_it_was_written() {
        let parsed = parse(&journal().1);
        assert_eq!((parsed.changes.len(), parsed.state), (2, Some(State::Ready)));
        insta::assert_snapshot!(journal().1);
    }

    proptest! {
        #[test]
        fn a_journal_cut_anywhere_holds_its_whole_lines(cut in 0usize..400) {
            let (records, text) = journal();
            let cut = cut.min(text.len());
            let whole = text[..cut].matches('\n').count();
            let parsed = parse(&text[..cut]);
            let found = usize::from(parsed.header.is_some()) + parsed.changes.len() + usize::from(parsed.state.is_some());
            prop_assert_eq!(found, whole.min(records.len()));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text: String) {
            let _ = parse(&text);
        }
    }
}

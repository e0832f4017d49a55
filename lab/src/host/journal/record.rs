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
    /// Lines that are no record, though whole: somebody else's doing.
    pub(super) unreadable: usize,
}

impl Parsed {
    /// The header; one made up where it can't be read and something was changed, since what the other lines say has to be
    /// undone all the same. A lab's instance is called as its folder.
    pub(super) fn header_of(&self, name: &str, boot: &str) -> Option<Header> {
        let unknown = || Header { boot: boot.to_owned(), instance: name.to_owned(), kind: Kind::Persistent, pid: 0 };
        self.header.clone().or_else(|| (!self.changes.is_empty()).then(unknown))
    }
}

/// Reads a journal. A last line that is not whole was never acted upon; of others that can't be read, the rest counts.
pub(super) fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    for line in text.split_inclusive('\n') {
        let Some(line) = line.strip_suffix('\n') else { break };
        let Ok(record) = serde_json::from_str(line) else {
            parsed.unreadable += 1;
            continue;
        };
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

    #[test]
    fn garbage_hides_none_of_the_lines_around_it() {
        let (_, text) = journal();
        let lines: Vec<&str> = text.lines().collect();
        let parsed = parse(&format!("gar\0bage\n{}\n{{\"change\":\n{}\n", lines[1], lines[2]));
        assert_eq!((parsed.changes.len(), parsed.unreadable, &parsed.header), (2, 2, &None));
        assert_eq!(parsed.header_of("i", "b").map(|header| header.instance), Some("i".to_owned()));
        assert_eq!(parse("garbage\n").header_of("i", "b"), None);
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

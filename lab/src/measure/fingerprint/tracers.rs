//! What others do to every packet: programs that trace, ftrace, and entries in the XDP dispatcher.

use super::{Entries, read, unknown};
use crate::program::{dispatcher::DispatcherReader, kinds};

pub(super) fn entries() -> Entries {
    let tracing = kinds::of_others().map_or_else(|_| unknown(), |kinds| counted(&kinds));
    Entries::from([
        ("tracing-programs".to_owned(), tracing),
        ("ftrace".to_owned(), current().unwrap_or_else(unknown)),
        ("dispatcher-programs".to_owned(), dispatcher().map_or_else(unknown, |programs| programs.to_string())),
    ])
}

/// ftrace's tracer, where tracefs is mounted.
pub(super) fn current() -> Option<String> {
    ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .iter()
        .find_map(|folder| read(format!("{folder}/current_tracer")))
}

/// How many programs the XDP dispatcher holds, where its code can be read.
fn dispatcher() -> Option<usize> {
    Some(DispatcherReader::open().ok()??.read().ok()?.programs.len())
}

/// `kprobe: 2, tracepoint: 1`.
fn counted<'a>(kinds: impl IntoIterator<Item = (&'a &'static str, &'a usize)>) -> String {
    let words: Vec<String> = kinds.into_iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn tracing_programs_are_counted_by_kind() {
        assert_eq!(counted(&BTreeMap::new()), "none");
        assert_eq!(counted(&BTreeMap::from([("tracepoint", 1), ("kprobe", 2)])), "kprobe: 2, tracepoint: 1");
    }
}

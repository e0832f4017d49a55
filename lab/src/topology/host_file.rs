//! The host's inventory: which NIC has which label, and which ports a cable joins. It is of one machine, and stands in
//! `/etc/xdplab/host.toml`; a topology only asks.
//!
//! ```toml
//! [nics]
//! east = "0000:03:00.0"
//! west = "0000:03:00.1"
//!
//! [[cables]]
//! ends = ["east", "west"]     # labels or PCI addresses
//! ```

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use toml_spanner::Arena;

use super::{
    check::is_pci_address,
    diagnostic::{Diagnostic, Diagnostics, Span},
    load::{LARGEST_FILE, first_few, syntax_error},
    read::{At, List, Names, Read as _, Reader, table},
    suggest,
};

/// Where a host's inventory stands unless one is named.
pub const HOST_FILE: &str = "/etc/xdplab/host.toml";

/// Longest label, in characters.
const LABEL_MOST: usize = 32;

table! {
    /// A host's inventory: labels of its NICs, and the cables between them.
    struct RawHost as "Host"("the host file") needs [] {
        /// PCI addresses by label.
        nics: Names<String>,
        /// The cables.
        cables: List<RawCable>,
    }
}

table! {
    /// A cable between two ports.
    struct RawCable as "Cable"("a cable") needs ["ends"] {
        /// The two ports: labels or PCI addresses.
        ends: List<String>,
    }
}

/// A host's inventory that passed every check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFile {
    /// The file; empty where there is none.
    pub path: PathBuf,
    /// PCI addresses by label.
    pub labels: BTreeMap<String, String>,
    /// Cables, each by the PCI addresses of the ports that it joins, in the file's order.
    pub cables: Vec<[String; 2]>,
}

/// Why a host file can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostFileError {
    /// It can't be read.
    #[error("read host file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is larger than any inventory.
    #[error("host file {} is larger than {LARGEST_FILE} bytes: this is no inventory of a host", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// Its contents are wrong.
    #[error(transparent)]
    Invalid(Box<Diagnostics>),
}

impl HostFileError {
    /// What to do about it, where the error itself does not say.
    pub fn fix(&self) -> Option<&'static str> {
        match self {
            Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound => Some(
                "correct the path, or write the file: [nics] with lines such as east = \"0000:03:00.0\" (`xdplab nics` \
                 shows this host's PCI addresses), and [[cables]] with ends = [\"east\", \"west\"]",
            ),
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("make the file readable for whom xdplab runs as")
            }
            Self::Read { source, .. } if source.kind() == io::ErrorKind::InvalidData => Some("save it as UTF-8"),
            Self::Read { .. } => Some("name a file, in TOML"),
            Self::TooLarge { .. } => Some("name the host's inventory, in TOML"),
            Self::Invalid(_) => None,
        }
    }
}

impl HostFile {
    /// Reads the file that is named, or else [`HOST_FILE`], which need not be there.
    ///
    /// # Errors
    /// If it can't be read, or its contents are wrong.
    pub fn load(named: Option<&Path>) -> Result<Self, HostFileError> {
        let path = named.unwrap_or(Path::new(HOST_FILE));
        let mut text = String::new();
        // The limit guards against a path that never ends, such as a device.
        let read = File::open(path).and_then(|file| file.take(LARGEST_FILE + 1).read_to_string(&mut text));
        match read {
            Ok(bytes) if bytes as u64 > LARGEST_FILE => Err(HostFileError::TooLarge { path: path.to_owned() }),
            Ok(_) => Self::parse(path, &text).map_err(|diagnostics| HostFileError::Invalid(Box::new(diagnostics))),
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(HostFileError::Read { path: path.to_owned(), source }),
        }
    }

    /// Checks a host file's text.
    ///
    /// # Errors
    /// Everything that is wrong with it, at once.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Diagnostics> {
        let arena = Arena::new();
        let document = toml_spanner::parse_recoverable(text, &arena);
        let syntax: Vec<Diagnostic> = document.errors().iter().map(syntax_error).collect();
        let mut reader = Reader::new(!syntax.is_empty());
        let raw = RawHost::read(document.table().as_item(), &mut reader).unwrap_or_default();
        let mut file = Self { path: path.to_owned(), ..Self::default() };
        let mut found = reader.found;
        file.take_labels(&raw, &mut found);
        // A label that could not be read may be what a cable names.
        if syntax.is_empty() && !raw.nics.is_bad() {
            file.take_cables(&raw, &mut found);
        }
        found.extend(first_few(syntax));
        if found.is_empty() { Ok(file) } else { Err(Diagnostics::new(path, text, found)) }
    }

    /// The label of the NIC at a PCI address.
    pub fn label_of(&self, pci: &str) -> Option<&str> {
        self.labels.iter().find(|(_, at)| *at == pci).map(|(label, _)| label.as_str())
    }

    /// The PCI address at the other end of a port's cable.
    pub fn other_end(&self, pci: &str) -> Option<&str> {
        self.cables.iter().find_map(|[a, b]| match pci {
            _ if pci == a => Some(b.as_str()),
            _ if pci == b => Some(a.as_str()),
            _ => None,
        })
    }

    /// A PCI address with its label, where it has one.
    pub fn name(&self, pci: &str) -> String {
        self.label_of(pci).map_or_else(|| pci.to_owned(), |label| format!("{label} ({pci})"))
    }

    fn take_labels(&mut self, raw: &RawHost, found: &mut Vec<Diagnostic>) {
        let mut places: BTreeMap<String, Span> = BTreeMap::new();
        for (label, value) in raw.nics.given().map(|nics| nics.value.entries.as_slice()).unwrap_or_default() {
            let is_label = |text: &str| {
                (1..=LABEL_MOST).contains(&text.chars().count())
                    && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
            };
            if !is_label(&label.value) {
                found.push(
                    Diagnostic::error(label.span.clone(), format!("`{}` can't be a label", label.value))
                        .label("not a label")
                        .help("use 1 to 32 letters, digits, `-`, `_` and `.`"),
                );
            }
            let Some(address) = value.given() else {
                // Known, so that a cable may name it: what is wrong with it was reported.
                self.labels.insert(label.value.clone(), String::new());
                continue;
            };
            let pci = address.value.to_ascii_lowercase();
            if !is_pci_address(&pci) {
                found.push(
                    Diagnostic::error(address.span.clone(), format!("`{}` is not a PCI address", address.value))
                        .label("not `domain:bus:device.function`")
                        .help("write it as lspci -D does, such as 0000:03:00.0; `xdplab nics` shows this host's"),
                );
            } else if let Some(first) = places.get(&pci) {
                found.push(
                    Diagnostic::error(address.span.clone(), format!("the NIC at {pci} has two labels"))
                        .label("again here")
                        .related(first.clone(), "first here")
                        .help("keep one of the two"),
                );
            } else {
                places.insert(pci.clone(), address.span.clone());
            }
            self.labels.insert(label.value.clone(), pci);
        }
    }

    fn take_cables(&mut self, raw: &RawHost, found: &mut Vec<Diagnostic>) {
        let mut places: BTreeMap<String, Span> = BTreeMap::new();
        for cable in raw.cables.given().map(|cables| cables.value.items.as_slice()).unwrap_or_default() {
            let Some(ends) = cable.value.ends.given() else { continue };
            let named = ends.value.items.len();
            if named != 2 && !ends.value.bad {
                found.push(
                    Diagnostic::error(ends.span.clone(), format!("a cable has two ends, and this names {named}"))
                        .label(format!("{named} of them")),
                );
                continue;
            }
            let mut pcis = Vec::new();
            for end in &ends.value.items {
                let Some(pci) = self.end(end, found) else { continue };
                if let Some(first) = places.get(&pci) {
                    found.push(
                        Diagnostic::error(end.span.clone(), format!("`{}` has a cable twice", end.value))
                            .label("again here")
                            .related(first.clone(), "first here")
                            .help("a port has one cable: name the port at its other end"),
                    );
                } else if !pci.is_empty() {
                    places.insert(pci.clone(), end.span.clone());
                    pcis.push(pci);
                }
            }
            if let Ok(ends) = <[String; 2]>::try_from(pcis) {
                self.cables.push(ends);
            }
        }
    }

    /// The PCI address that an end of a cable names; empty where its label's was reported.
    fn end(&self, end: &At<String>, found: &mut Vec<Diagnostic>) -> Option<String> {
        if let Some(pci) = self.labels.get(&end.value) {
            return Some(pci.clone());
        }
        let pci = end.value.to_ascii_lowercase();
        if is_pci_address(&pci) {
            return Some(pci);
        }
        let help = suggest::did_you_mean(&end.value, "the labels are", self.labels.keys().map(String::as_str));
        found.push(
            Diagnostic::error(end.span.clone(), format!("no NIC has the label `{}`", end.value))
                .label("unknown label")
                .help("name a label of [nics], or a PCI address such as 0000:03:00.0")
                .maybe_help(help),
        );
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<HostFile, Diagnostics> {
        HostFile::parse(Path::new("host.toml"), text)
    }

    #[test]
    fn labels_and_cables_are_read() {
        let file = parse(
            "[nics]\neast = \"0000:0A:00.0\"\nwest = \"0000:03:00.1\"\n[[cables]]\nends = [\"east\", \"0000:04:00.0\"]\n",
        )
        .unwrap();
        assert_eq!(file.label_of("0000:0a:00.0"), Some("east"));
        assert_eq!(file.other_end("0000:04:00.0"), Some("0000:0a:00.0"));
        assert_eq!(file.other_end("0000:03:00.1"), None);
        assert_eq!(file.name("0000:03:00.1"), "west (0000:03:00.1)");
    }

    #[test]
    fn all_errors_are_shown_at_once() {
        let wrong = parse(
            r#"[nics]
east = "3:00.0"
west = "0000:03:00.1"
also-west = "0000:03:00.1"
"a b" = 7
colour = "0000:05:00.0"

[[cables]]
ends = ["west", "colour"]
[[cables]]
ends = ["wset", "west"]
[[cables]]
ends = ["west"]
[[cables]]
end = ["a"]
"#,
        )
        .unwrap_err();
        insta::assert_snapshot!(wrong);
    }

    #[test]
    fn the_usual_file_need_not_be_there_and_a_named_one_must() {
        let nowhere = Path::new("/nowhere/host.toml");
        assert!(matches!(HostFile::load(Some(nowhere)), Err(HostFileError::Read { .. })));
        assert!(matches!(HostFile::load(Some(Path::new("/dev/zero"))), Err(HostFileError::TooLarge { .. })));
        if !Path::new(HOST_FILE).exists() {
            assert_eq!(HostFile::load(None).unwrap(), HostFile::default());
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[a-z\\[\\]\"=,. \n:0-9]{0,80}") {
            let _ = parse(&text);
        }
    }
}

//! Reading a topology file.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use toml_spanner::{Arena, ErrorKind};

use super::{
    check,
    diagnostic::{Diagnostic, Diagnostics, line_column},
    model::Topology,
    read::{Read as _, Reader},
    schema::RawTopology,
    suggest,
};

/// Largest file that is read, in bytes.
pub const LARGEST_FILE: u64 = 1 << 20;

/// Why a topology file can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It can't be read.
    #[error("read topology file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is larger than [`LARGEST_FILE`].
    #[error(
        "topology file {} is larger than {LARGEST_FILE} bytes: this is no topology, or it should be split",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not UTF-8.
    #[error("topology file {} is not UTF-8: wrong byte at line {line}, column {column}; save it as UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Line of the first wrong byte, from 1.
        line: usize,
        /// Column of the first wrong byte in characters, from 1.
        column: usize,
    },
    /// Its contents are wrong.
    #[error(transparent)]
    Invalid(Box<Diagnostics>),
}

impl LoadError {
    /// What to do about it, where the error itself does not say.
    pub fn fix(&self) -> Option<String> {
        let Self::Read { path, source } = self else { return None };
        Some(match source.kind() {
            io::ErrorKind::NotFound => match nearest_file(path) {
                Some(near) => format!("did you mean {}?", near.display()),
                None => "name a topology file; a first one to copy is the README's".to_owned(),
            },
            io::ErrorKind::PermissionDenied => "make the file readable for whom xdplab runs as".to_owned(),
            io::ErrorKind::IsADirectory => "name a file in it".to_owned(),
            _ => "name a topology file, in TOML".to_owned(),
        })
    }
}

/// The topology file in the same folder that a mistyped path most likely meant.
fn nearest_file(path: &Path) -> Option<PathBuf> {
    // By their stems: no name is nearer than another for having the same ending.
    let name = path.file_name()?.to_str()?;
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    let parent = path.parent()?;
    // The empty path is the folder that we are in, which the system knows by another name.
    let folder = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let mut stems: Vec<String> = folder
        .read_dir()
        .ok()?
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".toml")?.to_owned()))
        .collect();
    stems.sort();
    let near = suggest::nearest(stem, stems.iter().map(String::as_str))?;
    Some(parent.join(format!("{near}.toml")))
}

/// Reads and checks a topology file.
///
/// # Errors
///
/// If the file can't be read, is too large, is not UTF-8, or its contents are wrong.
pub fn load(path: &Path) -> Result<Topology, LoadError> {
    let failed = |source| LoadError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    // The limit guards against a path that never ends, such as a device.
    File::open(path).map_err(failed)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(LoadError::TooLarge { path: path.to_owned() });
    }
    match String::from_utf8(bytes) {
        Ok(text) => parse(path, &text).map_err(|diagnostics| LoadError::Invalid(Box::new(diagnostics))),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let sound = String::from_utf8_lossy(&error.as_bytes()[..at]);
            let (line, column) = line_column(&sound, at);
            Err(LoadError::NotUtf8 { path: path.to_owned(), line, column })
        }
    }
}

/// Checks a topology file's text. `path` is shown in messages, and object files are looked for beside it; nothing is
/// read.
///
/// # Errors
///
/// Everything that is wrong with the text, at once, leaving out what only follows from something else.
pub fn parse(path: &Path, text: &str) -> Result<Topology, Diagnostics> {
    let arena = Arena::new();
    let document = toml_spanner::parse_recoverable(text, &arena);
    let syntax: Vec<_> = document.errors().iter().map(syntax_error).collect();

    let mut reader = Reader::new(!syntax.is_empty());
    let raw = RawTopology::read(document.table().as_item(), &mut reader).unwrap_or_default();
    let (topology, found) = check::check(&raw, path, text, reader.broken);
    reader.found.extend(found);

    if !syntax.is_empty() {
        reader.found.retain(|diagnostic| !follows(&syntax, diagnostic, text));
    }
    reader.found.extend(first_few(syntax));
    if reader.found.is_empty() { Ok(topology) } else { Err(Diagnostics::new(path, text, reader.found)) }
}

/// Errors of syntax that are shown of a file: what is not TOML at all has one a line.
const SYNTAX_MOST: usize = 5;

/// The first errors of syntax; what is left out is counted in one more.
pub(super) fn first_few(mut syntax: Vec<Diagnostic>) -> Vec<Diagnostic> {
    syntax.sort_by_key(|error| error.span.start);
    // One that is left out is better shown itself.
    if syntax.len() > SYNTAX_MOST + 1 {
        let more = syntax.len() - SYNTAX_MOST;
        // The parser stops at a number of errors of its own.
        let at_least = if syntax.len() >= PARSER_MOST { "at least " } else { "" };
        let message = format!("… and {at_least}{more} more errors of syntax from here on");
        let rest = Diagnostic::error(syntax[SYNTAX_MOST].span.clone(), message)
            .label("the next one")
            .help("correct those before first; if all lines are like this, the file is not TOML");
        syntax.truncate(SYNTAX_MOST);
        syntax.push(rest);
    }
    syntax
}

/// Errors at which the TOML parser stops.
const PARSER_MOST: usize = 25;

/// Whether an error may only follow from an unreadable line: no header stands between the two.
fn follows(syntax: &[Diagnostic], diagnostic: &Diagnostic, text: &str) -> bool {
    let start = diagnostic.span.start;
    let Some(last) = syntax.iter().map(|error| error.span.start).filter(|at| *at <= start).max() else {
        return false;
    };
    let between = text.get(last..start.max(last)).unwrap_or_default();
    !between.lines().skip(1).any(|line| line.trim_start().starts_with('['))
}

/// What the TOML parser says, in our words.
pub(super) fn syntax_error(error: &toml_spanner::Error) -> Diagnostic {
    let span = error.span().range();
    let named = |message: &str| Diagnostic::error(span.clone(), message).label("here");
    match error.kind() {
        ErrorKind::DuplicateKey { first } | ErrorKind::DottedKeyInvalidType { first } => {
            named("this key is given twice")
                .label("again here")
                .related(first.range(), "first here")
                .help("keep one of the two; what has a name (a node, a port, a program) has it once in a file")
        }
        ErrorKind::DuplicateTable { first, .. } | ErrorKind::RedefineAsArray { first } => named(
            "this table is given twice",
        )
        .label("again here")
        .related(first.range(), "first here")
        .help(
            "put the keys of both under one header; what has a name (a node, a port, a program) has it once in a file",
        ),
        ErrorKind::UnquotedString => named("a text needs quotes").help("write it as \"…\""),
        ErrorKind::UnterminatedString(_) => named("this text has no closing quote"),
        ErrorKind::UnexpectedEof => named("the file ends in the middle of something"),
        ErrorKind::MissingArrayComma => named("a comma or a closing bracket is missing in the list before this")
            .help("end the element before with `,`, or the list with `]`"),
        ErrorKind::UnclosedArray => named("this list is not closed").help("close it with `]`"),
        ErrorKind::MissingInlineTableComma => named("a comma or a closing brace is missing in the table before this")
            .help("end the key before with `,`, or the table with `}`"),
        ErrorKind::UnclosedInlineTable => named("this table is not closed").help("close it with `}`"),
        _ => {
            let message = error.to_string();
            // The parser adds the dotted path, which the source line shows better.
            named(&format!("not TOML: {}", message.split(" at `").next().unwrap_or(&message)))
        }
    }
}

//! Printing: standard output that may be a pipe, a file or a terminal.

use std::io::{self, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::failure::Failure;

/// Prints a text.
///
/// # Errors
/// [`Failure::BrokenPipe`] where the reader went away, which is no error to a user.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let newline = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    out.write_all(text.as_bytes()).and_then(|()| out.write_all(newline.as_bytes())).and_then(|()| out.flush())?;
    Ok(())
}

/// Prints a value as JSON.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::Bug(format!("write JSON: {e}")))?;
    print(&text)
}

/// Whether standard output takes colour: a terminal, and the user has not said no (<https://no-color.org>).
pub(crate) fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

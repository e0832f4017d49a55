//! Why the host refused.

use std::{io, path::PathBuf};

/// Why the host refused: the operation, its object, and the kernel's word.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// A netlink request failed.
    #[error("{operation}: {}{}", io::Error::from_raw_os_error(*errno), kernel.as_deref().map(|k| format!(" (the kernel says: {k})")).unwrap_or_default())]
    Netlink {
        /// What was asked for, with its object.
        operation: String,
        /// The errno, positive.
        errno: i32,
        /// The kernel's own text, where it gave one (extended ack).
        kernel: Option<String>,
    },
    /// A netlink request failed without an answer of the kernel.
    #[error("{operation}: {reason}")]
    NetlinkProtocol {
        /// What was asked for, with its object.
        operation: String,
        /// What went wrong.
        reason: String,
    },
    /// A system call failed.
    #[error("{operation}")]
    System {
        /// What was tried, with its object.
        operation: String,
        /// Why.
        source: io::Error,
    },
    /// A named namespace could not be made or removed.
    #[error("{operation} namespace {name}")]
    Namespace {
        /// What was tried.
        operation: &'static str,
        /// The namespace.
        name: String,
        /// Why.
        source: netns_rs::Error,
    },
    /// A file could not be read or written.
    #[error("{operation} {}", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A device has no offload of that name.
    #[error("{port} has no offload \"{feature}\": {help}")]
    NoFeature {
        /// The device.
        port: String,
        /// The name.
        feature: String,
        /// Which one may be meant, or where all are listed.
        help: String,
    },
}

impl HostError {
    /// The same with a port as the file calls it, in place of a device.
    pub(crate) fn at(self, port: &str) -> Self {
        match self {
            Self::NoFeature { feature, help, .. } => Self::NoFeature { port: port.to_owned(), feature, help },
            other => other,
        }
    }

    /// A failed system call.
    pub(crate) fn system(operation: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { operation: operation.into(), source: source.into() }
    }

    /// The errno, positive, where the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Netlink { errno, .. } => Some(*errno),
            Self::System { source, .. } | Self::File { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// An error behind the name of what it is about, with its sources, on one line.
pub(crate) fn describe(what: &str, error: &dyn std::error::Error) -> String {
    let mut text = format!("{what}: {error}");
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

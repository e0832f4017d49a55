//! Why a program could not be loaded, filled, attached or read.

use std::{io, path::PathBuf};

/// Why a program could not be loaded, filled, attached or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The object file can't be read.
    #[error("read the object {}. Build it, or correct `object` in the topology (paths are relative to its file)", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no BPF object.
    #[error(
        "{object} is not a BPF object: {reason}. Compile it with `clang -O2 -g -target bpf -c`, or for Rust with a BPF target"
    )]
    NotBpf {
        /// The file.
        object: String,
        /// What is wrong.
        reason: String,
    },
    /// The object has a section that no loader knows.
    #[error(
        "{object} has a program in section \"{section}\", which is not known: one such section keeps the whole object from loading. Programs for XDP stand in \"xdp\", \"xdp.frags\", \"xdp/devmap\" or \"xdp/cpumap\""
    )]
    UnknownSection {
        /// The file.
        object: String,
        /// The section.
        section: String,
    },
    /// The object calls kernel functions.
    #[error(
        "{object} calls a kernel function ({function}), which this loader can't link: use a helper in its place, or leave \
         it out of the object under test"
    )]
    Kfunc {
        /// The file.
        object: String,
        /// The function.
        function: String,
    },
    /// The object has no XDP program.
    #[error("{object} has no XDP program: it has {present}")]
    NoXdp {
        /// The file.
        object: String,
        /// What it has.
        present: String,
    },
    /// The object has several XDP programs and none was chosen.
    #[error("{object} has several XDP programs: choose one with `program = \"…\"` ({present})")]
    Ambiguous {
        /// The file.
        object: String,
        /// Their names.
        present: String,
    },
    /// The object has no program of that name.
    #[error("{object} has no XDP program \"{program}\": it has {present}")]
    NoProgram {
        /// The file.
        object: String,
        /// The name.
        program: String,
        /// The names that it has.
        present: String,
    },
    /// The object has no map of that name.
    #[error("{object} has no map \"{map}\": it has {present}")]
    NoMap {
        /// The file.
        object: String,
        /// The name.
        map: String,
        /// The names that it has.
        present: String,
    },
    /// The object has no global of that name.
    #[error("{object} has no global \"{global}\": it has {present}")]
    NoGlobal {
        /// The file.
        object: String,
        /// The name.
        global: String,
        /// The names that it has.
        present: String,
    },
    /// A value does not fit its place.
    #[error("{place}: {reason}")]
    Value {
        /// The map entry or the global.
        place: String,
        /// Why it does not fit.
        reason: String,
    },
    /// The object does not load, for a reason that has no name of its own here.
    #[error("load {object}: {reason}")]
    Load {
        /// The file or the built-in.
        object: String,
        /// Why, with all its causes.
        reason: String,
    },
    /// The verifier rejected the program.
    #[error("the verifier rejected \"{program}\" of {object}: {errno}{}\n{tail}", log.as_deref().map(|p| format!(" (whole log: {})", p.display())).unwrap_or_default())]
    Rejected {
        /// The file or the built-in.
        object: String,
        /// The program.
        program: String,
        /// The error of the system call.
        errno: io::Error,
        /// The last lines of the verifier's log.
        tail: String,
        /// Where the whole log is.
        log: Option<PathBuf>,
    },
    /// The program could not be attached.
    #[error("{explanation}")]
    Attach {
        /// What the errno means here.
        explanation: String,
        /// The errno.
        source: io::Error,
    },
    /// A system call on a loaded program or map failed.
    #[error("{operation}")]
    System {
        /// What was tried.
        operation: String,
        /// Why.
        source: io::Error,
    },
    /// The running kernel's types lack something that the observer needs.
    #[error(
        "the kernel's BTF (/sys/kernel/btf/vmlinux) {0}: the ledger can't be kept on this kernel. Boot one built with CONFIG_DEBUG_INFO_BTF=y"
    )]
    Btf(String),
}

impl ProgramError {
    /// A failed system call.
    pub(super) fn system(operation: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System { operation: operation.into(), source: source.into() }
    }

    /// Whether what was given to the lab is at fault, rather than the host.
    pub fn is_of_the_input(&self) -> bool {
        match self {
            Self::System { .. } | Self::Btf(_) => false,
            Self::Rejected { errno, .. } => errno.raw_os_error() != Some(libc::EPERM),
            Self::Attach { source, .. } => {
                matches!(
                    source.raw_os_error(),
                    Some(libc::ERANGE | libc::EINVAL | libc::ENOSPC | libc::EBUSY | libc::EEXIST)
                )
            }
            _ => true,
        }
    }
}

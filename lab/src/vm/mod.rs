//! The same command under another kernel: in a virtual machine that virtme-ng boots, with the host's files and NICs of
//! its own.
//!
//! ```text
//!   xdplab vm ──▶ vng ──▶ qemu, in a process namespace of their own, which dies with this process
//!       │                   │
//!       │   a file system   │  9p
//!       └── in memory ──────┴──▶ /run/xdplab-vm in the guest: `run` with what to do, `host.toml`;
//!           held by us           `out`, `err`, `code` of the command come back
//! ```
//!
//! The command's output goes through files of that folder, so that the kernel's log is never in it, and a guest without
//! udev, which knows no port by its name, can give it too. The guest sees the host's root file system read only, with
//! writes kept in its memory; the working directory alone is written through.

mod boot;
mod guest;
mod image;
mod machine;
mod monitor;
mod nics;

pub use boot::{Console, Output, boot, qemu, vng};
pub use guest::{Task, passes_through};
pub use image::Image;
pub use machine::{Acceleration, Machine};
pub use nics::{NIC_DRIVERS, NicRequest};

use std::{io, path::PathBuf};

use crate::host::HostError;

/// Why a virtual machine did not run the command to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VmError {
    /// A tool is not installed.
    #[error("{tool} is not installed, or not on PATH. Install it: {install}")]
    Tool {
        /// The program's name.
        tool: String,
        /// The command that installs it.
        install: &'static str,
    },
    /// There is no such kernel.
    #[error("{}: {problem}", path.display())]
    Kernel {
        /// What was named.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The arguments can't be had.
    #[error("{0}")]
    Arguments(String),
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
    /// The host refused.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The machine ended before the command did.
    #[error(
        "the virtual machine ended before the command did: its kernel did not boot, or it crashed{}",
        tail(console)
    )]
    Ended {
        /// The last lines of its console.
        console: String,
    },
    /// The command's output could not be passed on.
    #[error("write the output of the virtual machine's command")]
    Output(#[source] io::Error),
    /// It was asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The console's last lines, as an error shows them.
fn tail(console: &str) -> String {
    if console.trim().is_empty() {
        return ", and said nothing".to_owned();
    }
    format!("; its last lines:\n  {}", console.trim_end().replace('\n', "\n  "))
}

impl VmError {
    /// Whether the arguments are wrong, rather than the host.
    pub fn is_of_the_input(&self) -> bool {
        matches!(self, Self::Kernel { .. } | Self::Arguments(_))
    }
}

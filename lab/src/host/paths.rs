//! Where the lab keeps what must be found again.

use std::path::PathBuf;

/// The run directory: `/run/xdplab`, or what `XDPLAB_RUN_DIR` names (for tests of the lab itself).
pub fn run_dir() -> PathBuf {
    std::env::var_os("XDPLAB_RUN_DIR")
        .filter(|dir| !dir.is_empty())
        .map_or_else(|| PathBuf::from("/run/xdplab"), PathBuf::from)
}

/// The directory of a lab or of an ephemeral instance (`NAME` or `NAME@ID`).
pub fn lab_dir(name: &str) -> PathBuf {
    run_dir().join(name)
}

//! The words of XDP that every part shares: the attach mode.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How an XDP program is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum XdpMode {
    /// In the driver, before a socket buffer exists (`XDP_FLAGS_DRV_MODE`).
    Native,
    /// In the stack, on socket buffers (`XDP_FLAGS_SKB_MODE`).
    Generic,
}

impl fmt::Display for XdpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Generic => "generic",
        })
    }
}

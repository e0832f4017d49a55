//! The words of XDP that every part shares: the attach mode, and what a device can do.

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

/// What a device says that it can do with XDP: the bits of `enum netdev_xdp_act` in <linux/netdev.h>, since Linux 6.3.
///
/// They are those of this moment: a driver may set some only while it has a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct XdpFeatures(pub u64);

impl XdpFeatures {
    /// The verdicts aborted, drop, pass and tx: native mode.
    pub const BASIC: u64 = 1;
    /// The verdict redirect.
    pub const REDIRECT: u64 = 1 << 1;
    /// Frames can be redirected to it (`ndo_xdp_xmit`).
    pub const NDO_XMIT: u64 = 1 << 2;
    /// `AF_XDP` without copying.
    pub const XSK_ZEROCOPY: u64 = 1 << 3;
    /// Programs can run on the device itself.
    pub const HW_OFFLOAD: u64 = 1 << 4;
    /// Programs get frames in several buffers.
    pub const RX_SG: u64 = 1 << 5;
    /// Frames in several buffers can be redirected to it.
    pub const NDO_XMIT_SG: u64 = 1 << 6;

    const NAMES: [(u64, &'static str); 7] = [
        (Self::BASIC, "basic"),
        (Self::REDIRECT, "redirect"),
        (Self::NDO_XMIT, "ndo-xmit"),
        (Self::XSK_ZEROCOPY, "xsk-zerocopy"),
        (Self::HW_OFFLOAD, "hw-offload"),
        (Self::RX_SG, "rx-sg"),
        (Self::NDO_XMIT_SG, "ndo-xmit-sg"),
    ];

    /// Whether it has all of these bits.
    pub fn has(self, bits: u64) -> bool {
        self.0 & bits == bits
    }

    /// The kernel's names of what it can do.
    pub fn names(self) -> Vec<&'static str> {
        Self::NAMES.iter().filter(|(bit, _)| self.has(*bit)).map(|(_, name)| *name).collect()
    }
}

impl Serialize for XdpFeatures {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

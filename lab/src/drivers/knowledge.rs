//! What is known of a driver beside what the device itself says: where they differ, the device is right.

use serde::Serialize;

use super::{Driver, Kernel, Xmit};
use crate::xdp::XdpFeatures;

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    /// The device said so.
    Probe,
    /// It is known of the driver.
    Driver,
}

/// Whether a device can do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It can.
    Yes(From),
    /// It can't.
    No(From),
    /// Nobody knows.
    Unknown,
}

impl Answer {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes(_) => "yes",
            Self::No(_) => "no",
            Self::Unknown => "unknown",
        }
    }
}

/// A point in which a device is not as its driver is known to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What it is about.
    pub what: &'static str,
    /// What is known of the driver.
    pub known: bool,
    /// What the device says, which holds.
    pub probed: bool,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has = |has: bool| if has { "has" } else { "lacks" };
        write!(
            f,
            "the device {} {}, though its driver {} it by the record here",
            has(self.probed),
            self.what,
            has(self.known)
        )
    }
}

/// All that is known of one device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Knowledge {
    /// Its driver.
    pub driver: Option<&'static Driver>,
    /// What it says itself; `None` before Linux 6.3.
    pub probe: Option<XdpFeatures>,
    /// The kernel that runs; `None`: any.
    pub kernel: Option<Kernel>,
    /// Whether it has a native program now.
    pub has_program: bool,
}

impl Knowledge {
    /// Whether it runs native programs.
    pub fn native(&self) -> Answer {
        self.answer(XdpFeatures::BASIC, self.since(|driver| driver.native))
    }

    /// Whether native programs may get frames in several buffers.
    pub fn frags(&self) -> Answer {
        self.answer(XdpFeatures::RX_SG, self.since(|driver| driver.frags))
    }

    /// Whether it has `AF_XDP` without copying.
    pub fn zero_copy(&self) -> Answer {
        self.answer(XdpFeatures::XSK_ZEROCOPY, self.since(|driver| driver.zero_copy))
    }

    /// Whether frames can be redirected to it as it is now.
    pub fn xmit(&self) -> Answer {
        self.answer(XdpFeatures::NDO_XMIT, self.xmit_known())
    }

    /// Whether a native broadcast skips the device, and who says so. The kernel asks for the feature since 6.3. Before, it
    /// asked whether the driver has the function at all, and lost the frame where the function did not take it.
    pub fn is_skipped(&self) -> Option<From> {
        if let Some(probe) = self.probe {
            return (!probe.has(XdpFeatures::NDO_XMIT)).then_some(From::Probe);
        }
        let never = self.driver?.xmit == Xmit::Never || self.since(|driver| driver.native) == Some(false);
        never.then_some(From::Driver)
    }

    /// Where the device is not as its driver is known to be.
    pub fn differences(&self) -> Vec<Difference> {
        let Some(probe) = self.probe else { return Vec::new() };
        [
            ("native XDP", XdpFeatures::BASIC, self.since(|driver| driver.native)),
            ("frames in several buffers", XdpFeatures::RX_SG, self.since(|driver| driver.frags)),
            ("zero-copy AF_XDP", XdpFeatures::XSK_ZEROCOPY, self.since(|driver| driver.zero_copy)),
            ("ndo_xdp_xmit", XdpFeatures::NDO_XMIT, self.xmit_known().filter(|_| self.xmit_is_told())),
        ]
        .into_iter()
        .filter_map(|(what, bit, known)| {
            let (known, probed) = (known?, probe.has(bit));
            (known != probed).then_some(Difference { what, known, probed })
        })
        .collect()
    }

    fn answer(&self, bit: u64, known: Option<bool>) -> Answer {
        match (self.probe, known) {
            (Some(probe), _) if probe.has(bit) => Answer::Yes(From::Probe),
            (Some(_), _) => Answer::No(From::Probe),
            (None, Some(true)) => Answer::Yes(From::Driver),
            (None, Some(false)) => Answer::No(From::Driver),
            (None, None) => Answer::Unknown,
        }
    }

    /// Whether the driver has what came with a kernel.
    fn since(&self, which: impl Fn(&Driver) -> Option<Kernel>) -> Option<bool> {
        let since = which(self.driver?);
        Some(since.is_some_and(|since| self.kernel.is_none_or(|kernel| kernel >= since)))
    }

    /// Whether what the device says of `ndo_xdp_xmit` can be held against the record: drivers that need a program for it
    /// differ in what they say until the first one comes.
    fn xmit_is_told(&self) -> bool {
        self.has_program || self.driver.is_none_or(|driver| driver.xmit != Xmit::WithProgram)
    }

    fn xmit_known(&self) -> Option<bool> {
        if self.since(|driver| driver.native)? {
            match self.driver?.xmit {
                Xmit::Never => Some(false),
                Xmit::Always => Some(true),
                Xmit::WithProgram => Some(self.has_program),
                // Of the peer nothing is known here.
                Xmit::WithPeer => None,
            }
        } else {
            Some(false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::known;

    #[test]
    fn the_device_is_right_where_it_differs_and_that_is_said() {
        let told = Knowledge {
            driver: known("mlx4_en"),
            probe: Some(XdpFeatures(XdpFeatures::BASIC | XdpFeatures::NDO_XMIT)),
            ..Knowledge::default()
        };
        assert_eq!(told.xmit(), Answer::Yes(From::Probe));
        let differences = told.differences();
        assert_eq!(differences.len(), 1);
        insta::assert_snapshot!(differences[0], @"the device has ndo_xdp_xmit, though its driver lacks it by the record here");
    }

    #[test]
    fn without_a_probe_the_record_and_the_kernels_age_decide() {
        let old = Knowledge { driver: known("ice"), kernel: Some(Kernel(5, 4)), ..Knowledge::default() };
        assert_eq!(old.native(), Answer::No(From::Driver));
        let new = Knowledge { kernel: Some(Kernel(5, 5)), ..old };
        assert_eq!((new.native(), new.frags()), (Answer::Yes(From::Driver), Answer::No(From::Driver)));
        assert_eq!(new.differences(), []);
        assert_eq!(Knowledge::default().native(), Answer::Unknown);
    }

    #[test]
    fn a_broadcast_skips_what_says_so_and_without_a_probe_what_has_no_function() {
        let told =
            |name, probe| Knowledge { driver: known(name), probe, kernel: Some(Kernel(6, 1)), ..Knowledge::default() };
        let (able, unable) = (Some(XdpFeatures(XdpFeatures::NDO_XMIT)), Some(XdpFeatures(XdpFeatures::BASIC)));
        assert_eq!(told("mlx4_en", able).is_skipped(), None);
        assert_eq!(told("i40e", unable).is_skipped(), Some(From::Probe));
        assert_eq!(told("no such", unable).is_skipped(), Some(From::Probe));
        assert_eq!(told("mlx4_en", None).is_skipped(), Some(From::Driver));
        // No native XDP in 6.1 yet.
        assert_eq!(told("vmxnet3", None).is_skipped(), Some(From::Driver));
        // The function is there, and loses the frame.
        assert_eq!(told("i40e", None).is_skipped(), None);
        assert_eq!(told("veth", None).is_skipped(), None);
        assert_eq!(told("no such", None).is_skipped(), None);
    }

    #[test]
    fn a_target_that_needs_a_program_is_no_target_without_one() {
        let bare = Knowledge { driver: known("i40e"), ..Knowledge::default() };
        assert_eq!(bare.xmit(), Answer::No(From::Driver));
        assert_eq!(Knowledge { has_program: true, ..bare }.xmit(), Answer::Yes(From::Driver));
    }
}

//! The NICs of a virtual machine: which kinds there are, where they sit on PCI, and how they are cabled together.

use std::{fmt::Write as _, str::FromStr};

use super::VmError;

/// The drivers that a NIC can be asked for by, each with qemu's name for the device.
pub const NIC_DRIVERS: [(&str, &str); 3] =
    [("virtio_net", "virtio-net-pci"), ("vmxnet3", "vmxnet3"), ("e1000e", "e1000e")];

/// First PCI slot of the NICs. virtme-ng's own devices are given the lowest free ones.
const FIRST_SLOT: u8 = 0x10;
/// Last PCI slot of the NICs: 0x1f has the chipset.
const LAST_SLOT: u8 = 0x1e;

/// So many NICs of one driver, cabled in pairs: `virtio_net:2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NicRequest {
    /// The driver, as the kernel calls it.
    pub driver: &'static str,
    /// qemu's name for the device.
    device: &'static str,
    /// How many.
    pub count: u8,
}

impl FromStr for NicRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (driver, count) = text.split_once(':').unwrap_or((text, "1"));
        let known = || NIC_DRIVERS.map(|(driver, _)| driver).join(", ");
        let (driver, device) = NIC_DRIVERS
            .into_iter()
            .find(|(name, _)| *name == driver.replace('-', "_"))
            .ok_or_else(|| format!("no virtual machine has a NIC of driver \"{driver}\": name one of {}", known()))?;
        let most = LAST_SLOT - FIRST_SLOT + 1;
        let count = count.parse().ok().filter(|count| (1..=most).contains(count));
        let count = count.ok_or_else(|| format!("write DRIVER:N, with N from 1 to {most}, such as {driver}:2"))?;
        Ok(Self { driver, device, count })
    }
}

/// One NIC of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nic {
    pub(super) driver: &'static str,
    device: &'static str,
    slot: u8,
    /// The hub that it is plugged into, which is its cable; `None` where it has none.
    hub: Option<u8>,
}

impl Nic {
    /// Its address on PCI in the guest: domain and bus are the machine's first.
    pub(super) fn pci(&self) -> String {
        format!("0000:00:{:02x}.0", self.slot)
    }

    /// What qemu calls it where it has no cable.
    fn id(&self) -> String {
        format!("bare{}", self.slot)
    }

    /// What qemu calls it, if no cable is plugged into it: it has no carrier.
    pub(super) fn uncabled(&self) -> Option<String> {
        self.hub.is_none().then(|| self.id())
    }

    /// Its arguments to qemu.
    pub(super) fn arguments(&self) -> Vec<String> {
        let Self { device, slot, .. } = self;
        // A hub of qemu's hands on what comes in at one port to all others: with two ports it is a cable.
        match self.hub {
            Some(hub) => vec![
                "-netdev".into(),
                format!("hubport,hubid={hub},id=nic{slot}"),
                "-device".into(),
                format!("{device},netdev=nic{slot},addr={slot:#x}"),
            ],
            None => vec!["-device".into(), format!("{device},id={},addr={slot:#x}", self.id())],
        }
    }
}

/// Places the NICs that are asked for on PCI, in the order of the requests.
///
/// # Errors
/// If there are more than slots.
pub(super) fn place(requests: &[NicRequest]) -> Result<Vec<Nic>, VmError> {
    let mut nics = Vec::new();
    let mut slots = FIRST_SLOT..=LAST_SLOT;
    let mut hubs = 1..;
    for request in requests {
        let mut hub = None;
        for number in 0..request.count {
            let slot = slots.next().ok_or_else(|| {
                let most = LAST_SLOT - FIRST_SLOT + 1;
                VmError::Arguments(format!("a virtual machine has room for {most} NICs, and more are asked for"))
            })?;
            let (first, last) = (number % 2 == 0, number + 1 == request.count);
            if first {
                hub = if last { None } else { hubs.next() };
            }
            nics.push(Nic { driver: request.driver, device: request.device, slot, hub });
        }
    }
    Ok(nics)
}

/// The guest's host file: the cables that qemu laid.
pub(super) fn host_file(nics: &[Nic]) -> String {
    let mut text = "# Made by xdplab vm: what the virtual machine's cables join.\n".to_owned();
    for pair in nics.windows(2) {
        if let [a, b] = pair
            && a.hub.is_some()
            && a.hub == b.hub
        {
            let _ = write!(text, "\n[[cables]]\nends = [\"{}\", \"{}\"]\n", a.pci(), b.pci());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::topology::HostFile;

    #[test]
    fn what_is_asked_for_is_read() {
        let request: NicRequest = "virtio-net:2".parse().unwrap();
        assert_eq!((request.driver, request.count), ("virtio_net", 2));
        assert_eq!("e1000e".parse::<NicRequest>().unwrap().count, 1);
        for wrong in ["i40e:2", "vmxnet3:0", "vmxnet3:16", "vmxnet3:", "vmxnet3:two", ""] {
            let error = wrong.parse::<NicRequest>().unwrap_err();
            assert!(error.contains("vmxnet3"), "{wrong}: {error}");
        }
    }

    #[test]
    fn more_nics_than_slots_are_refused() {
        let requests = ["vmxnet3:8", "e1000e:8"].map(|text| text.parse().unwrap());
        assert!(matches!(place(&requests), Err(VmError::Arguments(_))));
    }

    proptest! {
        /// The host file is one that is read, and joins two by two what one request asked for.
        #[test]
        fn cables_join_pairs(counts in prop::collection::vec(1u8..=5, 1..4)) {
            let requests: Vec<NicRequest> = counts
                .iter()
                .zip(NIC_DRIVERS)
                .map(|(count, (driver, _))| format!("{driver}:{count}").parse().unwrap())
                .collect();
            let nics = place(&requests).unwrap();
            let file = HostFile::parse(Path::new("host.toml"), &host_file(&nics)).unwrap();
            prop_assert_eq!(file.cables.len(), counts.iter().map(|count| usize::from(count / 2)).sum::<usize>());
            for [a, b] in &file.cables {
                let driver = |pci: &str| nics.iter().find(|nic| nic.pci() == pci).map(|nic| nic.driver);
                prop_assert!(a != b && driver(a) == driver(b) && driver(a).is_some());
            }
            let mut slots: Vec<u8> = nics.iter().map(|nic| nic.slot).collect();
            slots.dedup();
            prop_assert_eq!(slots.len(), nics.len());
        }
    }
}

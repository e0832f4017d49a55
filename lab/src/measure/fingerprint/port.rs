//! A port's part of the fingerprint: the driver and how the device is set up.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{Entries, read};
use crate::{
    host::{
        HostError,
        ethtool::{DriverInfo, Ethtool, PortSettings},
    },
    record::Fingerprint,
};

/// What every port's entries begin with.
pub(super) const PREFIX: &str = "port ";

/// Offloads that change what an XDP program or the path behind it is given.
const OFFLOADS: &[&str] = &[
    "rx-gro",
    "rx-gro-hw",
    "rx-lro",
    "rx-checksum",
    "rx-vlan-hw-parse",
    "rx-hashing",
    "tx-checksum-ip-generic",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "rx-udp-gro-forwarding",
];

/// The entries of one port, which is called `port` in the lab and `interface` in the namespace of the ethtool socket:
/// driver, firmware, `PCIe` width, queues, rings, offloads, coalescing, pause.
///
/// `sysfs` is where the `/sys` of that namespace is seen, for threaded NAPI; without it, that is left out.
///
/// # Errors
/// Where there is no such interface.
pub fn of_port(port: &str, ethtool: &Ethtool, interface: &str, sysfs: Option<&Path>) -> Result<Fingerprint, HostError> {
    let driver = ethtool.driver(interface)?;
    let mut entries = of_driver(&driver);
    entries.extend(of_settings(&ethtool.settings(interface)));
    if let Ok(features) = ethtool.features(interface) {
        let on = features.iter().filter(|(name, on)| *on && OFFLOADS.contains(&name.as_str()));
        let mut on: Vec<&str> = on.map(|(name, _)| name.as_str()).collect();
        on.sort_unstable();
        entries.insert("offloads".to_owned(), if on.is_empty() { "none".to_owned() } else { on.join(", ") });
    }
    let device = Path::new("/sys/bus/pci/devices").join(&driver.bus);
    // A veth has no bus, and the folder of all devices no width.
    let width = read(device.join("current_link_width")).filter(|_| !driver.bus.is_empty());
    if let (Some(width), Some(speed)) = (width, read(device.join("current_link_speed"))) {
        entries.insert("pcie".to_owned(), format!("x{width}, {speed}"));
    }
    let threaded = sysfs.and_then(|sysfs| read(sysfs.join("class/net").join(interface).join("threaded")));
    if let Some(threaded) = threaded {
        entries.insert("threaded-napi".to_owned(), if threaded == "0" { "off" } else { "on" }.to_owned());
    }
    Ok(Fingerprint(entries.into_iter().map(|(name, value)| (format!("{PREFIX}{port} {name}"), value)).collect()))
}

/// The entries of all ports of a lab, each as [`of_port`] gives it. What most ports have stands once, as `port * driver`;
/// of what differs from it, each value stands once, named after its ports: a lab of many ports is told in a few lines.
pub fn of_ports(ports: &[(String, Fingerprint)]) -> Fingerprint {
    let mut by_entry: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    let own = |port: &str, name: &str| name.len() - format!("{PREFIX}{port} ").len();
    let names: BTreeSet<&str> = ports
        .iter()
        .flat_map(|(port, of)| of.0.keys().map(move |name| &name[name.len() - own(port, name)..]))
        .collect();
    for (port, of) in ports {
        for name in &names {
            let value = of.0.get(&format!("{PREFIX}{port} {name}")).map_or(NOT_TOLD, String::as_str);
            by_entry.entry(name).or_default().entry(value).or_default().push(port);
        }
    }
    let mut entries = Entries::new();
    for (name, values) in by_entry {
        // Of values that are equally common the last one by its text.
        let common = values.iter().max_by_key(|(_, of)| of.len()).map(|(value, _)| *value);
        for (value, of) in values {
            let whose = match of.as_slice() {
                _ if Some(value) == common => "*".to_owned(),
                [first, rest @ ..] if rest.len() >= NAMED => format!("{first} and {} more", rest.len()),
                few => few.join(", "),
            };
            entries.insert(format!("{PREFIX}{whose} {name}"), value.to_owned());
        }
    }
    Fingerprint(entries)
}

/// What stands for an entry that other ports' drivers tell and this one's does not.
const NOT_TOLD: &str = "not told";
/// So many ports that differ in the same way are named one by one, at most.
const NAMED: usize = 4;

fn of_driver(info: &DriverInfo) -> Entries {
    let DriverInfo { driver, version, firmware, bus } = info;
    let all = [("driver", driver), ("driver-version", version), ("firmware", firmware), ("bus", bus)];
    let told = |value: &str| !value.is_empty() && value != "N/A";
    all.into_iter().filter(|(_, value)| told(value)).map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

fn of_settings(settings: &PortSettings) -> Entries {
    let on = |on: bool| if on { "on" } else { "off" };
    let entries = [
        (
            "queues",
            settings.queues.map(|[rx, tx, both]| match both {
                0 => format!("rx {rx}, tx {tx}"),
                both => format!("{both}"),
            }),
        ),
        ("rings", settings.rings.map(|[rx, tx]| format!("rx {rx}, tx {tx}"))),
        (
            "coalescing",
            settings.coalescing.map(|[rx_us, rx_frames, tx_us, tx_frames, adaptive_rx, adaptive_tx]| {
                let of = |us, frames, adaptive| {
                    let adaptive = if adaptive == 0 { "" } else { ", adaptive" };
                    format!("{us} us, {frames} frames{adaptive}")
                };
                format!("rx {}; tx {}", of(rx_us, rx_frames, adaptive_rx), of(tx_us, tx_frames, adaptive_tx))
            }),
        ),
        (
            "pause",
            settings
                .pause
                .map(|[negotiated, rx, tx]| format!("negotiated {}, rx {}, tx {}", on(negotiated), on(rx), on(tx))),
        ),
        ("private-flags", settings.private_flags.map(|flags| format!("{flags:#x}"))),
    ];
    entries.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_put_in_words_and_missing_ones_left_out() {
        let settings = PortSettings {
            queues: Some([0, 0, 8]),
            rings: Some([512, 1024]),
            coalescing: Some([50, 0, 60, 32, 1, 0]),
            pause: Some([true, false, false]),
            ..PortSettings::default()
        };
        let entries = of_settings(&settings);
        assert_eq!(entries["queues"], "8");
        assert_eq!(entries["rings"], "rx 512, tx 1024");
        assert_eq!(entries["coalescing"], "rx 50 us, 0 frames, adaptive; tx 60 us, 32 frames");
        assert_eq!(entries["pause"], "negotiated on, rx off, tx off");
        assert_eq!(entries.len(), 4);
        assert_eq!(
            of_settings(&PortSettings { queues: Some([1, 2, 0]), ..PortSettings::default() })["queues"],
            "rx 1, tx 2"
        );
    }

    #[test]
    fn what_a_driver_does_not_tell_is_left_out() {
        let info = DriverInfo {
            driver: "i40e".to_owned(),
            version: "6.18".to_owned(),
            firmware: "N/A".to_owned(),
            bus: String::new(),
        };
        assert_eq!(of_driver(&info).into_keys().collect::<Vec<_>>(), ["driver", "driver-version"]);
    }

    fn told(port: &str, entries: &[(&str, &str)]) -> (String, Fingerprint) {
        let own = entries.iter().map(|(name, value)| (format!("{PREFIX}{port} {name}"), (*value).to_owned()));
        (port.to_owned(), Fingerprint(own.collect()))
    }

    #[test]
    fn what_most_ports_have_stands_once() {
        let mut ports: Vec<_> =
            (0..200).map(|n| told(&format!("h{n:03}:p"), &[("driver", "veth"), ("offloads", "rx-gro")])).collect();
        let words = |ports: &[(String, Fingerprint)]| -> Vec<String> {
            of_ports(ports).0.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
        };
        assert_eq!(words(&ports), ["port * driver: veth", "port * offloads: rx-gro"]);
        ports[7] = told("h007:p", &[("driver", "i40e"), ("offloads", "rx-gro"), ("firmware", "9.2")]);
        assert_eq!(
            words(&ports),
            [
                "port * driver: veth",
                "port * firmware: not told",
                "port * offloads: rx-gro",
                "port h007:p driver: i40e",
                "port h007:p firmware: 9.2",
            ]
        );
        for (n, port) in ports.iter_mut().enumerate().skip(100).take(60) {
            *port = told(&format!("h{n:03}:p"), &[("driver", "veth"), ("offloads", "none")]);
        }
        assert!(words(&ports).contains(&"port h100:p and 59 more offloads: none".to_owned()), "{:?}", words(&ports));
        assert_eq!(of_ports(&[]), Fingerprint::default());
    }
}

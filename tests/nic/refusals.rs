//! What no lab may take, and cables that are none.

use std::{os::fd::AsRawFd as _, process::Command};

use nix::{
    ifaddrs::getifaddrs,
    sys::socket::{self, AddressFamily, SockFlag, SockType},
};
use xdplab::{Lab, host::nics, lab::LabError, topology::HostFile};

use super::{HOST, assert_as_before, cable, ip, on_nics, parsed, state, text};

/// What keeps a NIC from being taken now, in words.
fn refusal(pci: &str) -> Option<String> {
    let nics = nics::inventory().unwrap().nics;
    nics.into_iter().find(|nic| nic.pci.as_deref() == Some(pci)).unwrap().refusal.map(|refusal| refusal.to_string())
}

#[test]
fn a_nic_with_an_address_or_the_default_route_is_never_taken() {
    let Some(nics) = cable("virtio_net") else { return };
    let (name, pci) = (&nics[0].name, nics[0].pci.as_deref().unwrap());
    let topology = parsed(&text("never", "virtio_net", "\"native\"", "live"));
    // Matched while it was free: what counts is what it is when it is taken.
    let cabling = on_nics(&topology, &HOST);
    ip(&format!("link set {name} up"));
    ip(&format!("address add 198.51.100.7/24 dev {name}"));
    assert_eq!(refusal(pci).as_deref(), Some("has the address 198.51.100.7"));
    let error = Lab::on(&topology, &cabling).unwrap_err();
    assert!(matches!(&error, LabError::Lend(_)) && error.to_string().contains("has the address"), "{error}");
    ip(&format!("route add default via 198.51.100.1 dev {name}"));
    assert_eq!(refusal(pci).as_deref(), Some("carries the default route (IPv4)"));
    let error = Lab::on(&topology, &cabling).unwrap_err();
    assert!(error.to_string().contains("carries the default route"), "{error}");
    ip(&format!("address flush dev {name}"));
    ip(&format!("link set {name} down"));
    assert_eq!(refusal(pci), None);
    Lab::on(&topology, &cabling).unwrap_or_else(|error| panic!("{error}")).down().unwrap();
}

#[test]
fn what_would_not_survive_a_move_keeps_a_nic_from_being_taken() {
    let Some(nics) = cable("virtio_net") else { return };
    let (name, pci) = (&nics[0].name, nics[0].pci.as_deref().unwrap());
    ip(&format!("link set {name} up"));
    ip(&format!("route add 198.51.100.0/24 dev {name}"));
    assert_eq!(refusal(pci).as_deref(), Some("has a route of its own"));
    ip(&format!("route flush dev {name}"));
    let tc = |arguments: &str| {
        let arguments = arguments.split(' ').chain(["dev", name, "clsact"]);
        assert!(Command::new("tc").args(arguments).status().unwrap().success());
    };
    tc("qdisc add");
    assert_eq!(refusal(pci).as_deref(), Some("has traffic control set (qdisc clsact)"));
    tc("qdisc del");
    let socket = socket::socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None).unwrap();
    let of = |address: &nix::ifaddrs::InterfaceAddress| address.interface_name == *name;
    let address = getifaddrs().unwrap().filter(of).find_map(|found| found.address?.as_link_addr().copied()).unwrap();
    socket::bind(socket.as_raw_fd(), &address).unwrap();
    assert_eq!(refusal(pci).as_deref(), Some("a packet socket listens on it"));
    drop(socket);
    ip(&format!("link set {name} down"));
    assert_eq!(refusal(pci), None);
}

#[test]
fn two_nics_that_no_cable_joins_are_found_out() {
    let (Some(virtio), Some(other)) = (cable("virtio_net"), cable("e1000e")) else { return };
    let nics = [virtio[0].clone(), other[0].clone()];
    let before = nics.each_ref().map(state);
    let ends = nics.each_ref().map(|nic| nic.pci.clone().unwrap());
    let host = HostFile { cables: vec![ends], ..HostFile::default() };
    let any = text("apart", "any", "\"generic\"", "packet").replace("nic = { driver = \"any\" }\n", "");
    let topology = parsed(&any);
    let error = Lab::on(&topology, &on_nics(&topology, &host)).unwrap_err();
    assert!(matches!(&error, LabError::NoCanary { .. }), "{error:?}");
    assert_as_before(&before, &nics);
}

#[test]
fn a_nic_without_carrier_is_waited_for_and_named() {
    let Some(virtio) = cable("virtio_net") else { return };
    let cabled = |pci: &str| HOST.cables.iter().flatten().any(|end| end == pci);
    let found = nics::inventory().unwrap().nics.into_iter();
    let bare = found.filter(|nic| nic.refusal.is_none()).find(|nic| nic.pci.as_deref().is_some_and(|pci| !cabled(pci)));
    let Some(bare) = bare else { return xdplab::testing::lacks("nic-uncabled") };
    let nics = [virtio[0].clone(), bare];
    let before = nics.each_ref().map(state);
    let ends = nics.each_ref().map(|nic| nic.pci.clone().unwrap());
    let host = HostFile { cables: vec![ends], ..HostFile::default() };
    let topology = parsed(&text("bare", "any", "\"generic\"", "packet").replace("nic = { driver = \"any\" }\n", ""));
    let error = Lab::on(&topology, &on_nics(&topology, &host)).unwrap_err();
    let LabError::NoCarrier { nic, .. } = &error else { panic!("{error:?}") };
    assert!(nic.contains(nics[1].pci.as_deref().unwrap()), "{error}");
    assert_as_before(&before, &nics);
}

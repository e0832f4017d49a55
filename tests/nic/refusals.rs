//! What no lab may take, and cables that are none.

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

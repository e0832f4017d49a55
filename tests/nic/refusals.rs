//! What no lab may take, and cables that are none.

use std::{os::fd::AsRawFd as _, process::Command};

use nix::{
    ifaddrs::getifaddrs,
    sys::socket::{self, AddressFamily, SockFlag, SockType},
};
use xdplab::{
    Lab,
    host::nics,
    lab::{Cabling, LabError, NicChoice},
    topology::HostFile,
};

use super::{HOST, assert_as_before, cable, ip, on_nics, parsed, state, text, words, xdplab};

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

#[test]
fn what_a_nic_cannot_be_is_said_by_check_before_it_is_taken() {
    let Some(nics) = cable("virtio_net") else { return };
    let before = nics.each_ref().map(state);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demands.toml");
    let good = text("demands", "virtio_net", "\"native\"", "live");
    let refused = |port: &str, code: i32, expected: &str| {
        std::fs::write(&file, format!("{good}[nodes.dut.ports.rx0]\n{port}\n")).unwrap();
        for verb in ["check", "run"] {
            let output = xdplab(&[verb, "--nics", "physical", file.to_str().unwrap()]);
            let said = words(&output);
            assert_eq!((output.status.code(), said.contains(expected)), (Some(code), true), "{verb}, {port}: {said}");
        }
        assert_as_before(&before, &nics);
    };
    let most = nics[1].queues.unwrap().most;
    refused(
        &format!("queues = {}", most + 7),
        5,
        &format!("dut:rx0 asks for queues = {}, and it can have {most}", most + 7),
    );
    refused("rings = { rx = 65536 }", 5, "dut:rx0 asks for rings.rx = 65536");
    refused("irq-cpus = [1023]", 5, "dut:rx0 asks for irq-cpus = [1023], and this host's CPUs are 0");
    // A slip of the file's.
    refused("offloads = { lroo = false }", 2, "has no offload \"lroo\": did you mean `lro`?");
}

#[test]
fn check_knows_what_the_chosen_drivers_cannot_run() {
    let Some(nics) = cable("e1000e") else { return };
    let before = nics.each_ref().map(state);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("native.toml");
    // The file asks for no driver: it is the NIC that tells.
    let any = |modes: &str, engine: &str| {
        let label = nics[0].pci.clone().unwrap();
        text("native", "any", modes, engine).replace("driver = \"any\"", &format!("pci = \"{label}\""))
    };
    let check = |text: String| {
        std::fs::write(&file, text).unwrap();
        let output = xdplab(&["check", "--nics", "physical", file.to_str().unwrap()]);
        (output.status.code(), words(&output))
    };
    let (code, said) = check(any("\"native\"", "packet"));
    assert!(code == Some(5) && said.contains("this host can't run it: e1000e has no native XDP"), "{code:?} {said}");
    let (code, said) = check(any("\"generic\"", "live"));
    assert!(
        code == Some(5) && said.contains("the engine `live` can't send from `gen:tx0` on e1000e"),
        "{code:?} {said}"
    );
    let (code, said) = check(any("\"generic\"", "packet"));
    assert_eq!(code, Some(0), "{said}");
    assert_as_before(&before, &nics);
}

#[test]
fn nics_that_a_lab_has_are_listed_with_what_gives_them_back() {
    let Some(nics) = cable("virtio_net") else { return };
    let before = nics.each_ref().map(state);
    let topology = parsed(&text("has-them", "virtio_net", "\"native\"", "live"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("has-them.toml");
    std::fs::write(&file, text("has-them", "virtio_net", "\"native\"", "live")).unwrap();
    let output = xdplab(&["up", "--nics", "physical", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", words(&output));
    let [east, west] = nics.each_ref().map(|nic| nic.pci.as_deref().unwrap());
    let host = folder.path().join("host.toml");
    let named = format!("[nics]\neast = \"{east}\"\nwest = \"{west}\"\n[[cables]]\nends = [\"east\", \"west\"]\n");
    std::fs::write(&host, named).unwrap();
    let shown = words(&xdplab(&["nics", "--host", host.to_str().unwrap()]));
    let inspected = words(&xdplab(&["inspect", "has-them"]));
    let refused = Cabling::choose(&topology, NicChoice::Physical, &HOST).unwrap_err().to_string();
    let down = xdplab(&["down", "has-them"]);
    assert!(down.status.success(), "{}", words(&down));
    for nic in &nics {
        let lent = format!("{} is lent to lab \"has-them\"", nic.pci.as_deref().unwrap());
        for words in [&shown, &refused] {
            assert!(words.contains(&lent) && words.contains("xdplab down has-them"), "{words}");
        }
    }
    assert!(shown.contains("cable: east") && !shown.contains("no NIC is there"), "{shown}");
    // The file has a program at one of the two; the other is kept ready by xdplab.
    let keeps = "xdplab's own: keeps the port ready (native)";
    assert_eq!(inspected.matches(keeps).count(), 1, "{inspected}");
    assert_as_before(&before, &nics);
}

//! Into a node and back.

use std::{fs, path::Path, time::Duration};

use xdplab::{Lab, host::nics};

use super::{HOST, assert_as_before, cable, ip, on_nics, parsed, state, text, words, xdplab};

/// Settings that are not as a driver has them by itself.
fn make_its_own(name: &str) {
    ip(&format!("link set {name} mtu 1400"));
    ip(&format!("link property add dev {name} altname xl-{name}-alt"));
    // What the port of the lab is called as well.
    ip(&format!("link property add dev {name} altname tx0"));
    fs::write(Path::new("/proc/sys/net/ipv4/conf").join(name).join("arp_ignore"), "1").unwrap();
    ip(&format!("link set {name} up"));
}

fn make_plain(name: &str) {
    ip(&format!("link set {name} down"));
    ip(&format!("link property del dev {name} altname xl-{name}-alt"));
    ip(&format!("link property del dev {name} altname tx0"));
    fs::write(Path::new("/proc/sys/net/ipv4/conf").join(name).join("arp_ignore"), "0").unwrap();
    ip(&format!("link set {name} mtu 1500"));
}

fn a_nic_comes_back_as_it_was(driver: &str) {
    let Some(nics) = cable(driver) else { return };
    make_its_own(&nics[0].name);
    let before = nics.each_ref().map(state);
    assert_eq!((before[0].mtu, before[0].up), (1400, true));
    let topology = parsed(&text("lent", driver, "\"generic\"", "packet"));
    let lab = Lab::on(&topology, &on_nics(&topology, &HOST)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(lab.lent().len(), 2);
    let there = nics::inventory().unwrap().nics;
    assert!(nics.iter().all(|nic| there.iter().all(|other| other.pci != nic.pci)), "both are in the lab");
    let states = lab.port_states().unwrap();
    let port = topology.find_port("dut:rx0").unwrap();
    assert_eq!((states[port.0].name.as_str(), states[port.0].mtu, states[port.0].carrier), ("rx0", 1500, true));
    let said = lab.down().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(said, [""; 0]);
    assert_as_before(&before, &nics);
    make_plain(&nics[0].name);
}

#[test]
fn virtio_net_comes_back_as_it_was() {
    a_nic_comes_back_as_it_was("virtio_net");
}

#[test]
fn vmxnet3_comes_back_as_it_was() {
    a_nic_comes_back_as_it_was("vmxnet3");
}

#[test]
fn e1000e_comes_back_as_it_was() {
    a_nic_comes_back_as_it_was("e1000e");
}

#[test]
fn a_lab_that_stays_has_its_nics_until_it_goes() {
    let Some(nics) = cable("virtio_net") else { return };
    let before = nics.each_ref().map(state);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stays.toml");
    fs::write(&file, text("stays", "virtio_net", "\"native\"", "live")).unwrap();
    let up = xdplab(&["up", file.to_str().unwrap(), "--nics", "physical"]);
    assert!(up.status.success(), "{}", words(&up));
    // Another lab is told who has them.
    let other = folder.path().join("other.toml");
    fs::write(&other, text("other", "virtio_net", "\"native\"", "live")).unwrap();
    let refused = xdplab(&["up", other.to_str().unwrap(), "--nics", "physical"]);
    assert_eq!(refused.status.code(), Some(5), "{}", words(&refused));
    let down = xdplab(&["down", "stays"]);
    assert!(down.status.success(), "{}", words(&down));
    assert_as_before(&before, &nics);
}

#[test]
fn a_nic_that_is_unplugged_while_a_lab_is_up_is_no_failure() {
    let Some(nics) = cable("virtio_net") else { return };
    let before = nics.each_ref().map(state);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("unplugged.toml");
    fs::write(&file, text("unplugged", "virtio_net", "\"native\"", "live")).unwrap();
    let up = xdplab(&["up", file.to_str().unwrap(), "--nics", "physical"]);
    assert!(up.status.success(), "{}", words(&up));
    let pci = nics[0].pci.as_deref().unwrap();
    let device = Path::new("/sys/bus/pci/devices").join(pci);
    fs::write(device.join("remove"), "1").unwrap();
    assert!(!device.exists());
    let down = xdplab(&["down", "unplugged"]);
    assert!(down.status.success(), "{}", words(&down));
    assert_as_before(&before[1..], &nics[1..]);
    fs::write("/sys/bus/pci/rescan", "1").unwrap();
    let back = || nics::inventory().unwrap().nics.iter().any(|nic| nic.pci.as_deref() == Some(pci));
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !back() {
        assert!(std::time::Instant::now() < deadline, "the bus did not find it again");
        std::thread::sleep(Duration::from_millis(100));
    }
}

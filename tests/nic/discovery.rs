//! `xdplab nics --discover`: which NICs are cabled together, and that all come back.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use xdplab::{
    host::{
        ethtool::Ethtool,
        nics::{self, Nic},
    },
    topology::HostFile,
};

use super::{HOST, assert_as_before, cable, ip, state, words, xdplab};

/// Every NIC that the host file offers; none, and a skip on record, where it offers no pair of virtio-net.
fn offered() -> Vec<Nic> {
    if cable("virtio_net").is_none() {
        return Vec::new();
    }
    let is_offered = |nic: &Nic| nic.pci.as_ref().is_some_and(|pci| HOST.cables.as_flattened().contains(pci));
    nics::inventory().unwrap().nics.into_iter().filter(is_offered).collect()
}

fn pair(a: &str, b: &str) -> BTreeSet<String> {
    BTreeSet::from([a.to_owned(), b.to_owned()])
}

/// What it finds with a host file that says nothing.
fn discovered(folder: &Path) -> Value {
    let file = folder.join("empty.toml");
    fs::write(&file, "").unwrap();
    let output = xdplab(&["nics", "--discover", "--host", file.to_str().unwrap(), "--format", "json"]);
    assert!(output.status.success(), "{}", words(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn cables(report: &Value) -> BTreeSet<BTreeSet<String>> {
    let cables = report["cables"].as_array().unwrap();
    cables.iter().map(|cable| pair(cable["ends"][0].as_str().unwrap(), cable["ends"][1].as_str().unwrap())).collect()
}

#[test]
fn each_pair_is_found_to_be_one_cable_and_comes_back_as_it_was() {
    let nics = offered();
    let before: Vec<_> = nics.iter().map(state).collect();
    if nics.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let report = discovered(folder.path());
    assert_as_before(&before, &nics);
    assert!(!Path::new("/run/xdplab").exists());
    let there = |pci: &String| nics.iter().any(|nic| nic.pci.as_ref() == Some(pci));
    let wanted: BTreeSet<_> =
        HOST.cables.iter().filter(|ends| ends.iter().all(there)).map(|[a, b]| pair(a, b)).collect();
    assert_eq!(cables(&report), wanted, "{report:#}");
    for none in ["switches", "one_way", "looped", "notes"] {
        assert_eq!(report[none], Value::Array(Vec::new()), "{none}: {report:#}");
    }
    // What it says to add is a host file with just these.
    let added = HostFile::parse("added.toml".as_ref(), report["to_add"].as_str().unwrap()).unwrap();
    assert_eq!(added.cables.iter().map(|[a, b]| pair(a, b)).collect::<BTreeSet<_>>(), wanted);
}

#[test]
fn nothing_is_sent_from_a_nic_that_may_not_be_taken() {
    let Some(nics) = cable("virtio_net") else { return };
    let [used, partner] = nics.each_ref().map(|nic| nic.pci.clone().unwrap());
    ip(&format!("address add 192.0.2.7/24 dev {}", nics[0].name));
    let before = nics.each_ref().map(state);
    let sent = || fs::read_to_string(format!("/sys/class/net/{}/statistics/tx_packets", nics[0].name)).unwrap();
    let sent_before = sent();
    let folder = tempfile::tempdir().unwrap();
    let report = discovered(folder.path());
    assert_eq!(sent(), sent_before);
    assert_as_before_but_for_its_address(&before, &nics);
    ip(&format!("address del 192.0.2.7/24 dev {}", nics[0].name));
    let refused = report["not_taken"].as_array().unwrap().iter().find(|nic| nic["pci"] == used.as_str()).unwrap();
    assert_eq!(refused["reason"], "has the address 192.0.2.7");
    assert_eq!(refused["fix"], format!("ip address flush dev {}", nics[0].name));
    assert!(report["alone"].as_array().unwrap().contains(&Value::from(partner.as_str())), "{report:#}");
    assert!(!cables(&report).contains(&pair(&used, &partner)));
}

fn assert_as_before_but_for_its_address(before: &[xdplab::host::lend::Borrowed], nics: &[Nic]) {
    for (before, nic) in before.iter().zip(nics) {
        assert_eq!(before.differences(&state(nic)), [""; 0], "{}", nic.name);
    }
}

#[test]
fn ports_at_a_switch_are_not_taken_for_cabled() {
    let nics = offered();
    let name = |pci: &String| nics.iter().find(|nic| nic.pci.as_ref() == Some(pci)).map(|nic| nic.name.clone());
    let pairs: Vec<_> = HOST.cables.iter().filter(|ends| ends.iter().all(|pci| name(pci).is_some())).collect();
    if pairs.len() < 3 {
        return;
    }
    let before: Vec<_> = nics.iter().map(state).collect();
    // The other end of each cable is a port of a bridge: a switch that the first ends are plugged into.
    let inner: Vec<String> = pairs.iter().filter_map(|[_, inner]| name(inner)).collect();
    let ethtool = Ethtool::open().unwrap();
    let lro = |port: &String| ethtool.features(port).unwrap().iter().any(|(name, on)| name == "rx-lro" && *on);
    let had_lro: Vec<&String> = inner.iter().filter(|port| lro(port)).collect();
    ip("link add xl-switch type bridge");
    ip("link set xl-switch up");
    for port in &inner {
        ip(&format!("link set {port} master xl-switch"));
        ip(&format!("link set {port} up"));
    }
    let folder = tempfile::tempdir().unwrap();
    let report = discovered(folder.path());
    ip("link del xl-switch");
    for port in &inner {
        ip(&format!("link set {port} down"));
    }
    // A bridge switches it off for good.
    for port in had_lro {
        ethtool.set_feature(port, "rx-lro", true).unwrap();
    }
    assert_as_before(&before, &nics);
    let group: BTreeSet<String> = serde_json::from_value(report["switches"][0].clone()).unwrap();
    assert_eq!(group, pairs.iter().map(|[outer, _]| outer.clone()).collect(), "{report:#}");
    assert_eq!(cables(&report), BTreeSet::new());
    let refused = report["not_taken"].as_array().unwrap();
    assert!(refused.iter().filter(|nic| nic["reason"] == "is a port of xl-switch").count() >= 3, "{report:#}");
}

/// Starts it, and waits until the first NIC is written down.
fn under_way() -> Child {
    let child = Command::new(env!("CARGO_BIN_EXE_xdplab"))
        .args(["nics", "--discover"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let has_a_nic = || {
        let labs = fs::read_dir("/run/xdplab").into_iter().flatten().flatten();
        labs.filter_map(|lab| fs::read_to_string(lab.path().join("journal")).ok()).any(|text| text.contains("\"nic\""))
    };
    let deadline = Instant::now() + Duration::from_mins(1);
    while !has_a_nic() {
        assert!(Instant::now() < deadline, "no NIC was taken");
        std::thread::sleep(Duration::from_millis(2));
    }
    child
}

#[test]
fn a_signal_has_all_given_back() {
    let nics = offered();
    let before: Vec<_> = nics.iter().map(state).collect();
    if nics.is_empty() {
        return;
    }
    let mut child = under_way();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_as_before(&before, &nics);
    assert!(!Path::new("/run/xdplab").exists());
}

#[test]
fn one_that_is_killed_leaves_its_nics_to_gc() {
    let nics = offered();
    let before: Vec<_> = nics.iter().map(state).collect();
    if nics.is_empty() {
        return;
    }
    for milliseconds in [0, 1500] {
        let mut child = under_way();
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        let gc = xdplab(&["gc"]);
        assert!(gc.status.success(), "{milliseconds} ms: {}", words(&gc));
        assert_as_before(&before, &nics);
        let left: Vec<_> = fs::read_dir("/run/xdplab/.locks").into_iter().flatten().flatten().collect();
        assert!(!Path::new("/run/xdplab").exists(), "{milliseconds} ms: {left:?}");
    }
}

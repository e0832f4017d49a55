//! The host's NICs, as they are on the machine that the tests run on. Nothing is changed, and no privilege needed.

use std::fs;

use serde_json::Value;

use super::command::{text, xdplab};

fn devices(arguments: &[&str]) -> Vec<Value> {
    let output = xdplab(&[&["nics", "--format", "json"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_device_of_the_host_is_listed_with_its_mtu_and_mac() {
    let shown = devices(&["--all"]);
    for entry in fs::read_dir("/sys/class/net").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).map(|text| text.trim().to_owned());
        // Other tests' devices come and go meanwhile; `bonding_masters` is none.
        let (Ok(mtu), Ok(mac)) = (read("mtu"), read("address")) else { continue };
        if let Some(device) = shown.iter().find(|device| device["name"] == *name) {
            assert_eq!(device["mtu"].to_string(), mtu, "{name}");
            assert_eq!(device["mac"], *mac, "{name}");
        } else {
            assert_eq!(name, "lo");
        }
    }
}

#[test]
fn what_carries_the_default_route_is_refused() {
    let routes = fs::read_to_string("/proc/net/route").unwrap();
    let shown = devices(&["--all"]);
    for line in routes.lines().skip(1) {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        // Interface, destination, … and the mask in the eighth place.
        if fields[1] == "00000000" && fields[7] == "00000000" {
            let device = shown.iter().find(|device| device["name"] == fields[0]).expect("the device is listed");
            assert_eq!(device["refusal"]["why"], "default-route", "{device}");
            assert_eq!(device["default_v4"], true, "{device}");
        }
    }
}

#[test]
fn labels_and_cables_of_the_host_file_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("host.toml");
    // No bus of a PCI domain has so high a number here.
    fs::write(
        &file,
        "[nics]\neast = \"fffe:ff:1f.6\"\nwest = \"fffe:ff:1f.7\"\n[[cables]]\nends = [\"east\", \"west\"]\n",
    )
    .unwrap();
    let path = file.display().to_string();
    let output = text(&xdplab(&["nics", "--host", &path]).stdout);
    assert!(output.contains("cable: east (fffe:ff:1f.6) -- west (fffe:ff:1f.7)"), "{output}");
    assert!(output.contains("gives fffe:ff:1f.6 the label east, and no NIC is there"), "{output}");

    fs::write(&file, "[nics]\neast = \"3:0\"\n[cables]\n").unwrap();
    let output = xdplab(&["nics", "--host", &path]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("host.toml:2:8") && said.contains("host.toml:3:"), "{said}");
}

#[test]
fn a_host_file_that_is_named_and_not_there_is_refused_with_what_to_do() {
    let output = xdplab(&["nics", "--host", "/nowhere/host.toml"]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(text(&output.stderr), @r#"
    error: read host file /nowhere/host.toml
      because: No such file or directory (os error 2)
      fix: correct the path, or write the file: [nics] with lines such as east = "0000:03:00.0" (`xdplab nics` shows this host's PCI addresses), and [[cables]] with ends = ["east", "west"]
    "#);
}

#[test]
fn check_says_what_a_driver_cannot_do() {
    let shipped = format!("{}/topologies/i40e-mlx4-veth.toml", env!("CARGO_MANIFEST_DIR"));
    let said = text(&xdplab(&["check", &shipped]).stderr);
    assert!(!said.contains("no ndo_xdp_xmit"), "the file itself says that the target may be skipped: {said}");

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("without.toml");
    fs::write(&file, fs::read_to_string(&shipped).unwrap().replace(", skip-unable = true", "")).unwrap();
    let said = text(&xdplab(&["check", &file.display().to_string()]).stderr);
    assert!(said.contains("are lost on mlx4_en, which has no ndo_xdp_xmit"), "{said}");
}

#[test]
fn a_topology_without_cables_fits_everywhere_and_one_with_a_rare_driver_says_what_each_nic_failed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rare.toml");
    let cable = "name = \"rare\"\n[nodes.a]\n[nodes.b]\n[[links]]\nkind = \"cable\"\nends = [\"a:x\", \"b:y\"]\n";
    fs::write(&file, format!("{cable}nic = {{ driver = \"netvsc-none\" }}\n")).unwrap();
    let output = xdplab(&["nics", "--for", &file.display().to_string()]);
    assert_eq!(output.status.code(), Some(5));
    let said = text(&output.stderr);
    assert!(said.contains("no NICs of this host fit\n  a:x -- b:y:"), "{said}");
    for device in devices(&[]) {
        let name = device["name"].as_str().unwrap();
        assert!(said.contains(&format!("{name}: driver: netvsc-none asked for, and it is ")), "{said}");
    }

    let veth = format!("{}/topologies/redirect-veth.toml", env!("CARGO_MANIFEST_DIR"));
    let output = xdplab(&["nics", "--for", &veth]);
    assert!(output.status.success() && text(&output.stdout).contains("needs no NIC"));
}

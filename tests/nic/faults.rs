//! What others do to a NIC, to its name, its namespace or the journal while a lab has it.

use std::{fs, path::Path, time::Instant};

use xdplab::host::lend::Borrowed;

use super::{assert_as_before, cable, ip, state, text, words, xdplab};

/// A lab that is up on two virtio-net NICs, with what those were like before.
struct Up {
    nics: [xdplab::host::nics::Nic; 2],
    before: [Borrowed; 2],
    folder: tempfile::TempDir,
}

impl Up {
    fn new() -> Option<Self> {
        let nics = cable("virtio_net")?;
        let (before, folder) = (nics.each_ref().map(state), tempfile::tempdir().unwrap());
        let up = Self { nics, before, folder };
        up.bring_up("faults");
        Some(up)
    }

    fn bring_up(&self, name: &str) {
        let file = self.folder.path().join(format!("{name}.toml"));
        fs::write(&file, text(name, "virtio_net", "\"native\"", "live")).unwrap();
        let up = xdplab(&["up", file.to_str().unwrap(), "--nics", "physical"]);
        assert!(up.status.success(), "{}", words(&up));
    }

    fn is_as_before(&self) {
        assert_as_before(&self.before, &self.nics);
        assert!(!Path::new("/run/xdplab").exists());
    }
}

fn succeeds(arguments: &[&str]) -> String {
    let output = xdplab(arguments);
    assert!(output.status.success(), "{}", words(&output));
    words(&output)
}

#[test]
fn a_namespace_that_is_deleted_by_hand_loses_no_nic() {
    let Some(up) = Up::new() else { return };
    ip("netns del faults.gen");
    succeeds(&["down", "faults"]);
    up.is_as_before();
}

#[test]
fn a_nic_whose_name_is_taken_gets_it_back_once_it_is_free() {
    let Some(up) = Up::new() else { return };
    let name = up.before[0].name.as_str();
    ip(&format!("link add {name} type dummy"));
    let setting = Path::new("/proc/sys/net/ipv6/conf").join(name).join("accept_ra");
    fs::write(&setting, "0").unwrap();
    let down = xdplab(&["down", "faults"]);
    assert_eq!(down.status.code(), Some(5));
    assert!(words(&down).contains("does not get its name back"), "{}", words(&down));
    // The other device is not taken for the NIC.
    assert_eq!(fs::read_to_string(&setting).unwrap().trim(), "0");
    ip(&format!("link del {name}"));
    succeeds(&["gc"]);
    up.is_as_before();
}

#[test]
fn a_journal_without_its_first_line_is_undone_all_the_same() {
    let Some(up) = Up::new() else { return };
    let journal = "/run/xdplab/faults/journal";
    let text = fs::read_to_string(journal).unwrap();
    fs::write(journal, format!("garbage\n{}", text.split_once('\n').unwrap().1)).unwrap();
    let said = succeeds(&["down", "faults"]);
    assert!(said.contains("can't be read"), "{said}");
    up.is_as_before();
}

#[test]
fn a_nic_that_another_lab_has_by_now_is_let_be() {
    let Some(up) = Up::new() else { return };
    let journal = "/run/xdplab/faults/journal";
    let text = fs::read_to_string(journal).unwrap();
    succeeds(&["down", "faults"]);
    up.bring_up("later");
    // As a `down` leaves it that is killed when the NICs are given back.
    fs::create_dir_all("/run/xdplab/faults").unwrap();
    fs::write(journal, text + "{\"state\":\"down\"}\n").unwrap();
    let at = Instant::now();
    let said = succeeds(&["gc"]);
    assert!(said.contains("\"later\" has it") && at.elapsed().as_secs() < 10, "{said} after {:?}", at.elapsed());
    succeeds(&["exec", "later", "gen", "--", "ip", "link", "show", "tx0"]);
    succeeds(&["down", "later"]);
    up.is_as_before();
}

#[test]
fn a_lease_of_a_lab_that_died_before_it_wrote_that_down_is_nobodys() {
    let Some(nics) = cable("virtio_net") else { return };
    fs::create_dir_all("/run/xdplab/.locks").unwrap();
    for (nic, holder) in nics.iter().zip(["dead", ""]) {
        fs::write(format!("/run/xdplab/.locks/nic-{}", nic.pci.as_deref().unwrap()), holder).unwrap();
    }
    succeeds(&["gc"]);
    assert!(!Path::new("/run/xdplab").exists());
}

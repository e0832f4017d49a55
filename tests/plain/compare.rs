//! `xdplab compare`, as far as it needs no privilege: what can't stand beside each other, and two reports.

use std::fs;

use tempfile::TempDir;
use xdplab::compare::{
    pairing::Pairing,
    source::{of_objects, of_topologies},
};

use super::command::{text, xdplab};

const LAB: &str = r#"
name = "lab"
[nodes.gen]
[nodes.dut]
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[programs.mine]
builtin = "drop"
attach = ["dut:rx0"]
[[scenarios]]
name = "drop at dut"
modes = ["native", "generic"]
traffic = { from = "gen:tx0", frame-bytes = 64, frames = 1000 }
expect = { drop = ["dut:rx0"] }
[[scenarios]]
name = "also"
traffic = { from = "gen:tx0", frame-bytes = 128, frames = 1000 }
expect = { drop = ["dut:rx0"] }
perf = { min-mpps = { veth = 0.1 } }
"#;

struct Files {
    dir: TempDir,
}

impl Files {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// What `compare` says of two files, without the folder, and its exit code.
    fn refused(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut all = vec!["compare"];
        all.extend_from_slice(arguments);
        let output = xdplab(&all);
        let said = text(&output.stderr).replace(&format!("{}/", self.dir.path().display()), "");
        (output.status.code(), said)
    }
}

fn pairing(b: &str) -> Result<Pairing, String> {
    let files = Files::new();
    let (x, y) = (files.file("a.toml", LAB), files.file("b.toml", b));
    of_topologies((x.as_ref(), &[]), (y.as_ref(), &[]))
        .map_err(|error| error.to_string().replace(&format!("{}/", files.dir.path().display()), ""))
}

#[test]
fn rows_of_the_same_name_and_mode_are_paired() {
    let names = |pairing: &Pairing, only: &[&str]| -> Vec<String> {
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        pairing.rows(&only).unwrap().iter().map(|row| format!("{} {}", row.a.name, row.mode)).collect()
    };
    let same = pairing(LAB).unwrap();
    // Where any scenario has thresholds, those that have are meant.
    assert_eq!(names(&same, &[]), ["also native"]);
    assert_eq!(names(&same, &["drop at dut"]), ["drop at dut native", "drop at dut generic"]);
    let fewer = pairing(&LAB.replace("modes = [\"native\", \"generic\"]", "modes = [\"generic\"]")).unwrap();
    assert_eq!(names(&fewer, &["drop at dut"]), ["drop at dut generic"]);
    insta::assert_snapshot!(same.rows(&["nonsense".to_owned()]).unwrap_err(), @r#"no scenario "nonsense" that both have: there is drop at dut, also"#);
    let renamed = pairing(&LAB.replace("\"also\"", "\"too\"").replace("\"drop at dut\"", "\"else\"")).unwrap();
    let error = renamed
        .rows(&[])
        .unwrap_err()
        .to_string()
        .replace(&renamed.a_name, "a.toml")
        .replace(&renamed.b_name, "b.toml");
    insta::assert_snapshot!(error, @"no scenario of a.toml has its like, by name and mode, in b.toml: it has else, too");
    assert_eq!(renamed.notes.len(), 4);
}

#[test]
fn structure_may_differ_and_traffic_not() {
    assert!(pairing(LAB).unwrap().differs_in.is_empty());
    let more_queues =
        LAB.replace("[nodes.dut]", "[nodes.dut.ports.rx0]\nqueues = 2\n[nodes.gen.ports.tx0]\nqueues = 2\n[nodes.dut]");
    let two_labs = pairing(&more_queues).unwrap();
    assert_eq!(two_labs.differs_in, ["links and ports"]);
    assert!(two_labs.notes.iter().any(|note| note.contains("differ in links and ports: two labs")), "{two_labs:?}");
    assert_eq!(two_labs.rows(&[]).unwrap().len(), 1);
    let refused = |text: &str| pairing(text).unwrap().rows(&[]).unwrap_err().to_string();
    let differ = refused(&LAB.replace("frame-bytes = 128", "frame-bytes = 256"));
    assert!(differ.starts_with("scenario \"also\" sends other traffic in "), "{differ}");
    // Another port of the same nodes is other traffic; a port of other nodes has to have another name.
    let differ = refused(&LAB.replace("gen:tx0", "gen:tx1"));
    assert!(differ.contains("from the same port where the nodes are the same"), "{differ}");
    let renamed = LAB.replace("gen:tx0", "source:tx0").replace("[nodes.gen]", "[nodes.source]");
    assert_eq!(pairing(&renamed).unwrap().rows(&[]).unwrap().len(), 1);
}

#[test]
fn objects_take_the_place_of_a_program() {
    let files = Files::new();
    let lab = files.file("lab.toml", LAB);
    let pairing =
        of_objects("old.o".as_ref(), "new.o".as_ref(), Some((lab.as_ref(), "mine")), Some("xdp_main")).unwrap();
    assert_ne!(pairing.a.programs[0].body, pairing.b.programs[0].body);
    assert_eq!(pairing.rows(&[]).unwrap().len(), 1);
    let missing = of_objects("old.o".as_ref(), "new.o".as_ref(), Some((lab.as_ref(), "yours")), None).unwrap_err();
    assert!(
        missing.to_string().ends_with("has no program \"yours\" to put the objects into: it has mine"),
        "{missing}"
    );
    assert!(of_objects("old.o".as_ref(), "new.o".as_ref(), None, None).is_ok());
}

#[test]
fn what_does_not_stand_beside_each_other_is_refused_with_code_2() {
    let files = Files::new();
    let lab = files.file("lab.toml", LAB);
    let report = files.file("report.json", "{\"schema\": \"xdplab.report/1\", \"lab\": \"x\"");
    let newer = files.file("newer.json", "{\"schema\": \"xdplab.report/9\"}");
    let mut shown = String::new();
    for arguments in [
        vec![lab.as_str(), report.as_str()],
        vec![&report, &report],
        vec![&newer, &newer],
        vec![&lab, "missing.toml"],
        vec![&lab, &lab, "--b", "programs.mine.nonsense=1"],
        vec![&lab, &lab, "--topology", &lab, "--replace", "mine"],
        vec!["a.o", "b.o", "--a", "x=1"],
    ] {
        let (code, said) = files.refused(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        shown += &said;
    }
    insta::assert_snapshot!(shown);
}

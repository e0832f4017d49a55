//! The command, as far as it needs no privilege: files, pictures, schema, help.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

pub(super) fn xdplab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xdplab"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the command starts")
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn topology(name: &str) -> String {
    repository(&format!("topologies/{name}.toml")).display().to_string()
}

#[test]
fn the_schema_is_the_committed_one() {
    let output = xdplab(&["schema"]);
    assert_eq!(text(&output.stdout), fs::read_to_string(repository("lab/topology.schema.json")).unwrap());
}

#[test]
fn every_verb_has_help_with_an_example() {
    let help = text(&xdplab(&["--help"]).stdout);
    let verbs = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|verb| !["", "help", "man"].contains(verb));
    let verbs: Vec<&str> = verbs.collect();
    assert!(verbs.len() >= 13, "{verbs:?}");
    for verb in verbs {
        let help = text(&xdplab(&[verb, "--help"]).stdout);
        assert!(help.contains(&format!("xdplab {verb}")), "{verb}: {help}");
        assert!(help.contains("Examples:"), "{verb}: {help}");
    }
}

#[test]
fn completions_and_the_manual_are_printed() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = xdplab(&["completions", shell]);
        assert!(output.status.success() && text(&output.stdout).contains("xdplab"), "{shell}");
    }
    let manual = text(&xdplab(&["man"]).stdout);
    assert!(manual.contains(".TH xdplab 1") && manual.contains("xdplab\\-run"), "{manual}");
}

#[test]
fn pictures_are_drawn() {
    let cases = [("mermaid", "flowchart"), ("dot", "graph"), ("svg", "<svg")];
    for (format, word) in cases {
        let output = xdplab(&["graph", &topology("i40e-veth"), "--format", format]);
        assert!(output.status.success() && text(&output.stdout).contains(word), "{format}: {}", text(&output.stdout));
    }
}

#[test]
fn a_wrong_file_is_shown_whole_and_ends_with_code_2() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wrong.toml");
    fs::write(&file, "name = \"UPPER\"\ncolour = 1\n[[links]]\nkind = \"veth\"\nends = [\"a:x\"]\n").unwrap();
    let file = file.display().to_string();
    for verb in ["check", "run", "up", "graph"] {
        let output = xdplab(&[verb, &file]);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        let said = text(&output.stderr);
        assert!(
            said.contains("wrong.toml:1:") && said.contains("wrong.toml:2:") && said.contains("fix:"),
            "{verb}: {said}"
        );
    }
    let json = xdplab(&["check", &file, "--format", "json"]);
    let checked: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(checked[0]["errors"].as_array().unwrap().len() >= 3, "{checked}");
}

#[test]
fn a_missing_object_is_shown_where_the_file_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("object.toml");
    let body = fs::read_to_string(topology("drop")).unwrap().replacen("builtin = \"drop\"", "object = \"none.o\"", 1);
    fs::write(&file, body).unwrap();
    let output = xdplab(&["check", &file.display().to_string()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("read the object") && said.contains("none.o") && said.contains("object.toml:"), "{said}");
    assert!(said.contains("object = \"none.o\"\n") && said.contains("^^^^^^^^ this object\n"), "{said}");
    assert!(said.contains("= because: No such file") && said.contains("= fix: build it"), "{said}");
    assert!(!said.contains('\u{fffd}'), "{said}");
}

#[test]
fn a_topology_file_that_is_not_there_is_looked_for_nearby() {
    for (file, fix) in [
        ("topologies/i40eveth.toml", "fix: did you mean topologies/i40e-veth.toml?"),
        ("topologies/i40e-veth", "fix: did you mean topologies/i40e-veth.toml?"),
        ("nothing/like/it.toml", "fix: name a topology file"),
        ("topologies", "fix: name a file in it"),
    ] {
        for verb in ["check", "run"] {
            let output = xdplab(&[verb, file]);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{verb} {file}: {said}");
            assert!(said.contains("error: read topology file") && said.contains(fix), "{verb} {file}: {said}");
        }
    }
    let output = xdplab(&["check", "topologies/i40eveth.toml", "--format", "json"]);
    let checked: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(checked[0]["errors"][0]["fix"], "did you mean topologies/i40e-veth.toml?");
}

#[test]
fn a_file_that_is_no_report_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.json");
    for (body, words) in
        [("{", "no report"), ("[]", "holds no report"), ("{\"schema\": \"xdplab.report/9\"}", "xdplab.report/9")]
    {
        fs::write(&file, body).unwrap();
        let output = xdplab(&["report", &file.display().to_string()]);
        assert_eq!(output.status.code(), Some(2), "{body}");
        assert!(text(&output.stderr).contains(words), "{body}: {}", text(&output.stderr));
    }
    let output = xdplab(&["report", "/dev/zero"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn doctor_tells_of_virtual_machines_and_nics_and_lets_no_lab_on_veth_fail_for_them() {
    let doctor = |format: &str, path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xdplab"));
        command.args(["doctor", "--format", format]).env("PATH", path).output().expect("the command starts")
    };
    let path = std::env::var("PATH").unwrap();
    let (with, without) = (doctor("json", &path), doctor("json", "/nowhere"));
    assert_eq!(with.status.code(), without.status.code());
    let abilities: Vec<serde_json::Value> = serde_json::from_slice(&without.stdout).unwrap();
    let of =
        |name: &str| abilities.iter().find(|ability| ability["name"] == *name).unwrap_or_else(|| panic!("no {name}"));
    for name in ["KVM", "qemu", "vng", "host file", "NICs"] {
        assert_eq!(of(name)["required"], false, "{name}");
        assert_ne!(of(name)["detail"], "", "{name}");
    }
    assert_eq!(of("vng")["state"], "missing");
    assert_eq!(of("vng")["fix"], "pip install virtme-ng (or apt-get install virtme-ng, where there is such a package)");
    let shown = text(&doctor("text", "/nowhere").stdout);
    assert!(shown.contains("vng: pip install virtme-ng"), "{shown}");
}

#[test]
fn the_fewest_boots_and_the_number_of_nics_without_one_are_in_the_help() {
    let help = |verb: &str| text(&xdplab(&[verb, "--help"]).stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let fewest = format!("{} at least", xdplab::compare::kernels::FEWEST_PAIRS);
    assert!(help("compare").contains(&fewest), "{}", help("compare"));
    assert!(help("vm").contains("Without `:N` it is one. An odd one has no cable"), "{}", help("vm"));
}

#[test]
fn wrong_arguments_end_with_code_2() {
    for arguments in [&["nonsense"][..], &["run"], &["run", "x", "--batch", "0"], &["exec", "lab"], &["down"]] {
        assert_eq!(xdplab(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

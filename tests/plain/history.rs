//! `xdplab history` on folders of reports.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use super::{
    command::{text, xdplab},
    reports::run,
};

/// Ten runs at 50 ns and ten at 55, one a day, in files whose names say nothing of their order; some in a folder below.
fn fill(folder: &Path) {
    fs::create_dir(folder.join("below")).unwrap();
    for day in 1..=20 {
        let ns = if day <= 10 { 50.0 } else { 55.0 } + [0.0, 0.1, -0.1][day % 3];
        let report = run(&format!("2026-01-{day:02}T00:00:00Z"), ns, "6.18.0");
        let place = if day % 2 == 0 { folder.to_owned() } else { folder.join("below") };
        let body = if day % 5 == 0 { json!([report]) } else { report };
        fs::write(place.join(format!("{}.json", 100 - day)), body.to_string()).unwrap();
    }
}

#[test]
fn a_step_is_shown_in_every_format_and_fails_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path());
    let place = folder.path().display().to_string();
    let shown = |format: &str| {
        let output = xdplab(&["history", &place, "--format", format]);
        assert_eq!(output.status.code(), Some(0), "{format}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let json: Value = serde_json::from_str(&shown("json")).unwrap();
    assert_eq!(json["schema"], "xdplab.history/1");
    assert_eq!(json["series"].as_array().unwrap().len(), 1, "{json}");
    let series = &json["series"][0];
    assert_eq!(series["results"].as_array().unwrap().len(), 20);
    assert_eq!((series["changes"][0]["at"].as_u64(), series["changes"].as_array().unwrap().len()), (Some(10), 1));
    let text = shown("text").replace(&place, "FOLDER");
    insta::assert_snapshot!(text);
    assert!(shown("md").contains("changed at 2026-01-11"));
    let svg = shown("svg");
    assert!(svg.starts_with("<svg ") && svg.contains("2026-01-11T00:00:00Z: +5.00 ns"), "{svg}");
}

#[test]
fn files_that_are_no_report_are_named_and_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, body: &str| fs::write(folder.path().join(name), body).unwrap();
    write("good.json", &run("2026-01-01T00:00:00Z", 50.0, "6.18.0").to_string());
    write("broken.json", "{\"schema\": \"xdplab.report/1\"");
    write("newer.json", "{\"schema\": \"xdplab.report/2\"}");
    write("package.json", "{\"name\": \"other\"}");
    write("notes.txt", "no report");
    write(".hidden.json", "no report");
    let output = xdplab(&["history", &folder.path().display().to_string()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for (name, why) in
        [("broken.json", "cut off"), ("newer.json", "schema xdplab.report/2"), ("package.json", "no \"schema\"")]
    {
        assert!(said.lines().any(|line| line.contains(name) && line.contains(why)), "{name}: {said}");
    }
    assert_eq!(said.lines().count(), 3, "{said}");
}

#[test]
fn a_folder_without_reports_and_names_that_are_not_there_end_with_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display().to_string();
    let refused = |arguments: &[&str]| {
        let output = xdplab(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    };
    assert!(refused(&["history", &place]).contains("holds no report of a run"));
    assert!(refused(&["history", &format!("{place}/none")]).contains("no folder"));
    fs::write(folder.path().join("r.json"), run("2026-01-01T00:00:00Z", 50.0, "6.18.0").to_string()).unwrap();
    let said = refused(&["history", &place, "--scenario", "other"]);
    assert!(said.contains("\"other\"") && said.contains("drop at b"), "{said}");
}

#[test]
fn a_name_is_a_lab_of_the_folder_that_one_is_in() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.json"), run("2026-01-01T00:00:00Z", 50.0, "6.18.0").to_string()).unwrap();
    let of = |lab: &str| {
        Command::new(env!("CARGO_BIN_EXE_xdplab")).args(["history", lab]).current_dir(folder.path()).output().unwrap()
    };
    let output = of("pair");
    assert!(output.status.success() && text(&output.stdout).contains("pair: drop at b (native)"));
    let output = of("other");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("labs: pair"), "{}", text(&output.stderr));
}

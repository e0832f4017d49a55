//! `xdplab report` on files of every kind.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::command::{text, xdplab};

/// A report of `run`, with one priced scenario.
pub(super) fn run(started: &str, ns: f64, kernel: &str) -> Value {
    json!({
        "schema": "xdplab.report/1", "lab": "pair", "about": "two ports", "started": started,
        "fingerprint": {"kernel": kernel, "steal": started},
        "links": [{"ends": ["a:x", "b:y"], "kind": "veth", "made_of": "veth"}],
        "scenarios": [{
            "name": "drop at b", "mode": "native", "verdict": "pass",
            "ledger": {
                "offered": 10, "delivered": {}, "dropped": [{"at": "b:y", "reason": "verdict", "frames": 10, "by_verdict": true}],
                "duplicated": 0, "reordered": 0, "corrupted": 0, "foreign": 0, "unaccounted": 0
            },
            "clones": 0,
            "cost": {"ns": ns, "ci": [ns - 0.2, ns + 0.3], "mpps": 1000.0 / ns, "windows": [ns, ns - 0.3, ns + 0.4]},
            "checks": []
        }]
    })
}

fn compare() -> Value {
    json!({
        "schema": "xdplab.compare/1", "started": "2026-01-01T00:00:00Z", "fingerprint": {"kernel": "6.18.0"},
        "a": "before.toml", "b": "after.toml", "interleaved": true, "seed": 1, "floor_ns": 0.1, "notes": [],
        "rows": [{
            "name": "drop at b", "mode": "native", "a_ns": 50.0, "b_ns": 49.0, "delta_ns": -1.0, "ci": [-1.2, null],
            "budget_ns": null, "verdict": "improved", "blocks": 10, "redrawn": 0, "reloads": 5, "seconds": 1.0,
            "differences": [-1.0]
        }]
    })
}

fn calibrate() -> Value {
    json!({
        "schema": "xdplab.calibrate/1", "started": "2026-01-01T00:00:00Z", "fingerprint": {}, "seed": 1, "floor_ns": 0.1234,
        "seconds": 1.0, "blocks": 10, "detect": [{"extra_ns": 2.0, "found_in_s": null, "estimated_ns": 0.1}], "sight": [],
        "notes": []
    })
}

fn bench() -> Value {
    json!({
        "schema": "xdplab.bench/1", "started": "2026-01-01T00:00:00Z", "fingerprint": {}, "seconds": 1.0, "bench": "dispatcher",
        "rows": [], "published": [],
        "findings": {
            "others": null, "cliff": null, "slope_ns": {"ns": 0.0, "ci": [0.0, 0.0]}, "spread_ns": 0.0, "mitigations": {},
            "retpolines": false
        },
        "checks": [], "verdict": "pass", "notes": []
    })
}

fn put(folder: &Path, name: &str, value: &Value) -> String {
    let path = folder.join(name);
    fs::write(&path, value.to_string()).unwrap();
    path.display().to_string()
}

#[test]
fn every_kind_is_rendered_in_the_formats_that_fit_it() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = [
        (
            "run",
            run("2026-01-01T00:00:00Z", 50.0, "6.18.0"),
            "drop at b",
            &["text", "md", "json", "html", "cover-letter", "junit"][..],
        ),
        ("compare", compare(), "improved", &["text", "md", "json", "html", "cover-letter"]),
        ("calibrate", calibrate(), "0.1234", &["text", "md", "json", "html"]),
        ("bench", bench(), "dispatcher", &["text", "md", "json", "html"]),
    ];
    for (kind, value, word, fitting) in kinds {
        let file = put(folder.path(), kind, &value);
        for format in ["text", "md", "json", "html", "cover-letter", "junit"] {
            let output = xdplab(&["report", &file, "--format", format]);
            let (shown, said) = (text(&output.stdout), text(&output.stderr));
            if fitting.contains(&format) {
                assert!(output.status.success() && shown.contains(word), "{kind} {format}: {shown}{said}");
            } else {
                assert_eq!(output.status.code(), Some(2), "{kind} {format}");
                assert!(
                    said.contains(&format!("is a report of {kind}")) && shown.is_empty(),
                    "{kind} {format}: {said}"
                );
            }
        }
        let json = xdplab(&["report", &file, "--format", "json"]);
        assert_eq!(serde_json::from_slice::<Value>(&json.stdout).unwrap(), value, "{kind}");
    }
}

#[test]
fn a_comparison_says_what_the_cables_were_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let mut of_run = run("2026-01-01T00:00:00Z", 50.0, "6.18.0");
    of_run["links"] =
        json!([{"ends": ["a:x", "b:y"], "kind": "cable", "made_of": "veth", "stands_in_for": "virtio_net"}]);
    of_run["notes"] = json!(["veth pairs stand in for all cables: no NICs of this host fit a:x -- b:y"]);
    let file = put(folder.path(), "run.json", &of_run);
    let shown = |format: &str| text(&xdplab(&["compare", &file, &file, "--format", format]).stdout);
    for format in ["text", "md", "cover-letter"] {
        let words = shown(format).split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "a:x -- b:y (cable: a veth pair stands in for virtio_net)",
            "no NICs of this host fit a:x -- b:y",
            "costs are of veth, and say nothing of the NIC's own",
        ] {
            assert!(words.contains(part), "{format}: {part}: {words}");
        }
    }
    let value: Value = serde_json::from_str(&shown("json")).unwrap();
    assert_eq!(value["links"], of_run["links"]);
}

#[test]
fn a_list_of_several_kinds_is_rendered_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = put(folder.path(), "all.json", &json!([compare(), run("2026-01-01T00:00:00Z", 50.0, "6.18.0")]));
    let output = xdplab(&["report", &file, "--format", "cover-letter"]);
    let shown = text(&output.stdout);
    let (first, second) = (shown.find("xdplab compare"), shown.find("xdplab run"));
    assert!(output.status.success() && first.is_some() && first < second, "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 72), "{shown}");
}

#[test]
fn a_file_that_is_cut_off_or_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let whole = compare().to_string();
    let path = folder.path().join("cut.json");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let output = xdplab(&["report", &path.display().to_string()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cut off"), "{}", text(&output.stderr));
    let mut newer = compare();
    newer["schema"] = json!("xdplab.compare/2");
    let output = xdplab(&["report", &put(folder.path(), "newer.json", &newer)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("schema xdplab.compare/2"), "{}", text(&output.stderr));
}

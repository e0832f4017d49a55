//! Targets of a broadcast that take no XDP frames: on veth those whose peer has no program and no GRO.

use xdplab::{
    Lab,
    record::{ScenarioRecord, Verdict},
    report::text,
    run::{RunOptions, scenario},
    testing::with_lab,
    xdp::XdpMode::{self, Generic, Native},
};

const FRAMES: u64 = 6_400;

/// gen:tx0 -- dut:rx0, broadcast to three ports: the peer of the first does not poll, those of the others are sinks.
pub(crate) fn broadcast(expect: &str) -> String {
    format!(
        r#"
name = "broadcast"
[nodes.gen]
[nodes.dut]
[nodes.a.ports.in0]
gro = false
[nodes.b]
[nodes.c]
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[[links]]
kind = "veth"
ends = ["dut:out0", "a:in0"]
[[links]]
kind = "veth"
ends = ["dut:out1", "b:in0"]
[[links]]
kind = "veth"
ends = ["dut:out2", "c:in0"]
[programs.broadcast]
builtin = "broadcast"
attach = ["dut:rx0"]
maps.tx_ports = ["dut:out0", "dut:out1", "dut:out2"]
[programs.sink]
builtin = "sink"
attach = ["b:in0", "c:in0"]
[[scenarios]]
name = "s"
modes = ["native", "generic"]
traffic = {{ from = "gen:tx0", frames = {FRAMES} }}
expect = {{ deliver = ["a:in0", "b:in0", "c:in0"], clones = {}, {expect} }}
"#,
        2 * FRAMES
    )
}

fn run(lab: &mut Lab, mode: XdpMode, frames: Option<u64>) -> ScenarioRecord {
    let options = RunOptions { frames, ..RunOptions::default() };
    scenario(lab, "s", mode, &options).unwrap_or_else(|error| panic!("{error:?}"))
}

/// What a user sees of a run, for a snapshot.
fn shown(record: &ScenarioRecord) -> String {
    assert!(record.ledger.is_balanced(), "{:#?}", record.ledger);
    let mut shown = format!("{}: {:?}\n{}", record.mode, record.verdict, text::ledger(&record.ledger, record.clones));
    for check in &record.checks {
        shown += &format!("{}: {}, {} ({})\n", check.what, check.limit, check.measured, check.ok);
    }
    shown + &record.notes.iter().map(|note| format!("note: {note}\n")).collect::<String>()
}

/// Whether devices tell their XDP features: since Linux 6.3, and before that a veth that can't take a frame loses it.
pub(crate) fn devices_tell() -> bool {
    xdplab::host::netlink::xdp_features().unwrap().is_some()
}

#[test]
fn what_a_native_broadcast_skips_is_left_out_and_generic_mode_skips_nothing() {
    if !devices_tell() {
        return;
    }
    with_lab("skip.toml", &broadcast("skip-unable = true"), |lab| {
        let (native, generic) = (run(lab, Native, None), run(lab, Generic, None));
        assert_eq!((native.verdict, generic.verdict), (Verdict::Pass, Verdict::Pass), "{native:#?} {generic:#?}");
        insta::assert_snapshot!(shown(&native) + &shown(&generic));
        // The file's clones are those of its own number of frames.
        let fewer = run(lab, Native, Some(640));
        assert_eq!((fewer.verdict, fewer.clones), (Verdict::Pass, 640), "{fewer:#?}");
    });
}

#[test]
fn without_the_key_a_skipped_target_fails_the_scenario() {
    if !devices_tell() {
        return;
    }
    with_lab("skip.toml", &broadcast("lost = 0"), |lab| {
        let native = run(lab, Native, None);
        assert_eq!(native.verdict, Verdict::Fail);
        let failed: Vec<_> = native.checks.iter().filter(|check| !check.ok).map(|check| check.what.as_str()).collect();
        assert_eq!(failed, ["deliver a:in0", "clones"]);
        assert_eq!(run(lab, Generic, None).verdict, Verdict::Pass);
    });
}

#[test]
fn a_target_that_takes_frames_when_the_scenario_runs_is_not_left_out() {
    // GRO has the peer poll: the same file, another device.
    let text = broadcast("skip-unable = true").replace("gro = false", "gro = true");
    with_lab("skip.toml", &text, |lab| {
        let native = run(lab, Native, None);
        assert_eq!((native.verdict, native.clones), (Verdict::Pass, 2 * FRAMES), "{native:#?}");
        assert!(!native.notes.iter().any(|note| note.contains("left out")), "{:?}", native.notes);
        assert!(native.checks.iter().any(|check| check.what == "deliver a:in0" && check.ok));
    });
}

#[test]
fn where_every_target_is_skipped_all_is_lost_and_that_fails() {
    if !devices_tell() {
        return;
    }
    let text = broadcast("skip-unable = true")
        .replace(
            "maps.tx_ports = [\"dut:out0\", \"dut:out1\", \"dut:out2\"]",
            "maps.tx_ports = [\"dut:out0\"]\noptions.single-target = true",
        )
        .replace("deliver = [\"a:in0\", \"b:in0\", \"c:in0\"]", "deliver = [\"a:in0\"]")
        .replace(&format!("clones = {}", 2 * FRAMES), "clones = 0");
    with_lab("skip.toml", &text, |lab| {
        let native = run(lab, Native, None);
        assert_eq!((native.verdict, native.ledger.lost()), (Verdict::Fail, FRAMES), "{native:#?}");
        assert!(native.reason.as_deref().is_some_and(|why| why.contains("no target")), "{:?}", native.reason);
    });
}

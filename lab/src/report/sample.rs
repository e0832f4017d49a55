//! Reports made by hand, for tests of the renderers.

use std::collections::BTreeMap;

use crate::{
    record::{Check, Cost, Dropped, Fingerprint, Ledger, LinkRecord, REPORT_SCHEMA, Report, ScenarioRecord, Verdict},
    xdp::XdpMode,
};

fn report(scenarios: Vec<ScenarioRecord>) -> Report {
    let link = |ends: [&str; 2], kind: &str, stands_in_for: Option<&str>| LinkRecord {
        ends: ends.map(str::to_owned).to_vec(),
        kind: kind.to_owned(),
        made_of: "veth".to_owned(),
        stands_in_for: stands_in_for.map(str::to_owned),
    };
    Report {
        schema: REPORT_SCHEMA.to_owned(),
        lab: "i40e-veth".to_owned(),
        about: "redirect_map from an i40e port into a veth whose peer drops".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        fingerprint: Fingerprint::default(),
        links: vec![link(["gen:tx0", "dut:rx0"], "cable", Some("i40e")), link(["dut:out0", "sink:in0"], "veth", None)],
        scenarios,
    }
}

fn scenario(name: &str, mode: XdpMode, verdict: Verdict) -> ScenarioRecord {
    ScenarioRecord {
        published_mpps: None,
        name: name.to_owned(),
        mode,
        verdict,
        reason: None,
        notes: Vec::new(),
        ledger: Ledger::default(),
        clones: 0,
        cost: None,
        profile: None,
        checks: Vec::new(),
    }
}

/// Everything held.
pub(super) fn passing() -> Report {
    let delivered: BTreeMap<String, u64> = [("sink:in0".to_owned(), 1_000_000)].into();
    let windows = vec![140.0, 141.5, 139.8, 143.2, 140.2];
    let check = |what: &str, limit: &str, measured: &str| Check {
        what: what.to_owned(),
        limit: limit.to_owned(),
        measured: measured.to_owned(),
        ok: true,
        undecided: false,
    };
    let generic = ScenarioRecord {
        ledger: Ledger { offered: 1_000_000, delivered: delivered.clone(), ..Ledger::default() },
        notes: vec!["sink is native".to_owned()],
        ..scenario("redirect_map i40e->veth", XdpMode::Generic, Verdict::Pass)
    };
    let native = ScenarioRecord {
        ledger: Ledger { offered: 1_000_000, delivered, ..Ledger::default() },
        cost: Some(Cost { ns: 140.2, ci: [139.8, 143.2], mpps: 1000.0 / 140.2, windows }),
        checks: vec![
            check("deliver sink:in0", "1000000 frames", "1000000 frames"),
            check("min-mpps veth", "at least 0.5 Mpps", "7.133 Mpps, between 6.983 and 7.153"),
        ],
        ..scenario("redirect_map i40e->veth", XdpMode::Native, Verdict::Pass)
    };
    report(vec![generic, native])
}

/// A loss with its cause, a broadcast that skipped a target, a skip, and an open question.
pub(super) fn failing() -> Report {
    let loss = Dropped {
        at: "dut:rx0".to_owned(),
        reason: "redirect: EOPNOTSUPP".to_owned(),
        frames: 999_936,
        by_verdict: false,
        cause: Some("sink:in0, the peer of dut:out0, has no program and no GRO".to_owned()),
        fix: Some("attach a program to sink:in0, or set gro = true on it".to_owned()),
    };
    let lost = ScenarioRecord {
        reason: Some("deliver sink:in0, lost".to_owned()),
        ledger: Ledger {
            offered: 1_000_000,
            delivered: [("sink:in0".to_owned(), 0)].into(),
            dropped: vec![loss],
            foreign: 3,
            unaccounted: 64,
            ..Ledger::default()
        },
        checks: vec![Check {
            what: "lost".to_owned(),
            limit: "at most 0 frames".to_owned(),
            measured: "1000000 frames".to_owned(),
            ok: false,
            undecided: false,
        }],
        ..scenario("redirect | into the void", XdpMode::Native, Verdict::Fail)
    };
    let broadcast = ScenarioRecord {
        reason: Some("max-ratio of drop at dut".to_owned()),
        notes: vec!["dut:rx0: the kernel skipped dut:out2 for 10 of 100 frames".to_owned()],
        ledger: Ledger {
            offered: 100,
            delivered: [("a:in0".to_owned(), 100), ("b:in0".to_owned(), 100), ("c:in0".to_owned(), 91)].into(),
            duplicated: 1,
            reordered: 2,
            corrupted: 3,
            unaccounted: -1,
            ..Ledger::default()
        },
        clones: 190,
        cost: Some(Cost { ns: 2_100.0, ci: [2_000.0, 2_300.0], mpps: 1.0 / 2.1, windows: vec![2_100.0] }),
        checks: vec![Check {
            what: "max-ratio of drop at dut".to_owned(),
            limit: "at most 10 times".to_owned(),
            measured: "10.100 times, between 9.800 and 10.400".to_owned(),
            ok: false,
            undecided: true,
        }],
        ..scenario("broadcast", XdpMode::Native, Verdict::Inconclusive)
    };
    let skipped = ScenarioRecord {
        reason: Some("the driver of dut:rx0 has no native XDP".to_owned()),
        ..scenario("drop at dut", XdpMode::Native, Verdict::Skipped)
    };
    report(vec![lost, broadcast, skipped])
}

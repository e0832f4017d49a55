//! Reports made by hand, for tests of the renderers.

use std::collections::BTreeMap;

use crate::{
    record::{
        Check, Cost, Dropped, Fingerprint, Ledger, LinkRecord, REPORT_SCHEMA, Report, ScenarioRecord, Verdict,
        bench::{
            BENCH_SCHEMA, Bench, BenchReport, Cliff, DispatcherFindings, DispatcherPublished, DispatcherRow,
            Nanoseconds, Rows,
        },
        compare::{
            Additivity, CALIBRATE_SCHEMA, COMPARE_SCHEMA, CalibrateReport, CompareReport, CompareRow, CompareVerdict,
            Detection, SightRow,
        },
        history::{HISTORY_SCHEMA, HistoryChange, HistoryReport, HistoryResult, HistorySeries},
    },
    xdp::XdpMode,
};

/// A machine's.
pub(crate) fn fingerprint() -> Fingerprint {
    let entries = [
        ("kernel", "6.18.0"),
        ("preemption", "dynamic: none"),
        ("hz", "250"),
        ("config-debugging", "none"),
        ("cpu", "AMD EPYC (25/1/1)"),
        ("cpus", "2"),
        ("hypervisor", "KVMKVMKVM"),
    ];
    Fingerprint(entries.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
}

/// A cable that veth stands in for, and a veth pair.
fn links() -> Vec<LinkRecord> {
    let link = |ends: [&str; 2], kind: &str, stands_in_for: Option<&str>| LinkRecord {
        ends: ends.map(str::to_owned).to_vec(),
        kind: kind.to_owned(),
        nics: None,
        made_of: "veth".to_owned(),
        stands_in_for: stands_in_for.map(str::to_owned),
    };
    vec![link(["gen:tx0", "dut:rx0"], "cable", Some("i40e")), link(["dut:out0", "sink:in0"], "veth", None)]
}

fn report(scenarios: Vec<ScenarioRecord>) -> Report {
    Report {
        topology: None,
        schema: REPORT_SCHEMA.to_owned(),
        lab: "i40e-veth".to_owned(),
        about: "redirect_map from an i40e port into a veth whose peer drops".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        fingerprint: fingerprint(),
        links: links(),
        notes: vec!["veth pairs stand in for all cables: no NICs of this host fit gen:tx0 -- dut:rx0".to_owned()],
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
        saturation: None,
        profile: None,
        checks: Vec::new(),
    }
}

/// Everything held.
pub(crate) fn passing() -> Report {
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
pub(crate) fn failing() -> Report {
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

fn row(name: &str, mode: XdpMode, ns: [f64; 2], ci: [f64; 2], verdict: CompareVerdict) -> CompareRow {
    CompareRow {
        name: name.to_owned(),
        mode,
        a_ns: ns[0],
        b_ns: ns[1],
        delta_ns: ns[1] - ns[0],
        ci: ci.map(Some),
        budget_ns: Some(2.0),
        verdict,
        blocks: 1_200,
        redrawn: 3,
        reloads: 30,
        seconds: 7.21,
        differences: vec![ci[0], ns[1] - ns[0], ci[1]],
    }
}

/// Of every verdict one, in two modes.
pub(crate) fn comparison() -> CompareReport {
    let mut unknown = row("broadcast", XdpMode::Generic, [2_501.0, 2_502.5], [0.0, 0.0], CompareVerdict::Inconclusive);
    (unknown.ci, unknown.budget_ns) = ([None, None], None);
    CompareReport {
        schema: COMPARE_SCHEMA.to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        fingerprint: fingerprint(),
        a: "topologies/i40e-veth.toml with before.o".to_owned(),
        b: "topologies/i40e-veth.toml with after.o".to_owned(),
        links: links(),
        differs: Vec::new(),
        interleaved: true,
        seed: 7,
        rows: vec![
            row("redirect_map i40e->veth", XdpMode::Native, [96.3, 95.1], [-1.4, -1.0], CompareVerdict::Improved),
            row("drop at dut", XdpMode::Native, [55.02, 58.4], [3.1, 3.6], CompareVerdict::Regressed),
            row("drop at dut", XdpMode::Generic, [170.3, 170.4], [-0.2, 0.4], CompareVerdict::Ok),
            unknown,
        ],
        floor_ns: Some(0.121),
        lead_ms: Some(141.0),
        notes: vec!["veth pairs stand in for all cables: no NICs of this host fit gen:tx0 -- dut:rx0".to_owned()],
    }
}

/// The same across two machines.
pub(crate) fn across() -> CompareReport {
    let differs = [("cpu", "Intel Xeon (6/85/7)", "AMD EPYC (25/1/1)"), ("hz", "1000", "250")];
    CompareReport {
        differs: differs.map(|(what, a, b)| (what.to_owned(), a.to_owned(), b.to_owned())).to_vec(),
        interleaved: false,
        floor_ns: None,
        lead_ms: None,
        rows: comparison().rows.into_iter().filter(|row| row.mode == XdpMode::Native).collect(),
        links: Vec::new(),
        notes: Vec::new(),
        ..comparison()
    }
}

/// One slowdown found, one not.
pub(crate) fn calibration() -> CalibrateReport {
    let detection = |extra_ns, found_in_s, estimated_ns| Detection { extra_ns, found_in_s, estimated_ns };
    let sight = |seconds, half_width_ns, detectable_ns| SightRow { seconds, half_width_ns, detectable_ns };
    CalibrateReport {
        schema: CALIBRATE_SCHEMA.to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        fingerprint: fingerprint(),
        seed: 7,
        floor_ns: 0.1213,
        seconds: 20.0,
        blocks: 3_000,
        detect: vec![detection(2.04, Some(3.2), 2.11), detection(0.051, None, 0.02)],
        sight: vec![sight(1.0, 0.52, 0.91), sight(20.0, 0.1213, 0.2134)],
        additivity: Some(Additivity {
            hops_ns: vec![88.4, 88.6, 88.5],
            ci: vec![[Some(88.1), Some(88.7)], [Some(88.3), Some(88.9)], [Some(88.2), Some(88.8)]],
            holds: Some(true),
            reloads: 40,
        }),
        notes: vec!["time was stolen in 12 blocks, which were drawn again".to_owned()],
    }
}

/// A dispatcher of three entries.
pub(crate) fn bench() -> BenchReport {
    let cost = |ns: f64| Nanoseconds { ns, ci: [ns - 0.5, ns + 0.25] };
    let row = |entries: u32, position: &str, attached: &str, ns: f64| DispatcherRow {
        entries,
        position: position.to_owned(),
        attached: attached.to_owned(),
        cost: cost(ns),
        holds_entry: Some(entries < 4),
        attach_ms: 14.2,
        detach_ms: 13.1,
        image_bytes_aligned: 32 * entries,
        image_bytes_unaligned: 25 * entries,
        image_bytes_read: None,
    };
    let rows = ["below", "above"].iter().flat_map(|position| {
        [(1, 26.0), (2, 26.2), (3, 26.5), (4, 36.1)]
            .into_iter()
            .flat_map(move |(entries, ns)| [row(entries, position, "first", 26.0), row(entries, position, "last", ns)])
    });
    let published = DispatcherPublished {
        jump_targets: "aligned".to_owned(),
        function_position: "below".to_owned(),
        mitigations: "auto".to_owned(),
        entries: 1,
        image_bytes: 32,
        ns_per_run: 24.0,
    };
    let findings = DispatcherFindings {
        others: Some(0),
        cliff: Some(Cliff { entries: 3, capacity: Some(3), before_ns: 26.5, after_ns: 36.1, step_ns: 9.6 }),
        slope_ns: cost(0.2),
        spread_ns: 0.6,
        mitigations: [("spectre_v2".to_owned(), "Mitigation: Retpolines".to_owned())].into(),
        retpolines: true,
    };
    BenchReport {
        profiles: Vec::new(),
        schema: BENCH_SCHEMA.to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        fingerprint: fingerprint(),
        seconds: 12.3,
        bench: Bench::Dispatcher(Rows { rows: rows.collect(), published: vec![published], findings }),
        checks: vec![Check {
            what: "the dispatcher holds three <programs>".to_owned(),
            limit: "3".to_owned(),
            measured: "3".to_owned(),
            ok: true,
            undecided: false,
        }],
        verdict: Verdict::Pass,
        notes: vec!["another lab was up".to_owned()],
    }
}

/// Twelve runs, with a step after the sixth; and one on another kernel.
pub(crate) fn history() -> HistoryReport {
    let result = |day: usize, ns: f64| HistoryResult {
        started: format!("2026-01-{day:02}T00:00:00Z"),
        file: format!("results/{day:02}.json"),
        verdict: Verdict::Pass,
        ns,
        ci: [ns - 0.3, ns + 0.4],
        mpps: 1000.0 / ns,
    };
    let wobble = |day: usize| [0.0, 0.1, -0.1][day % 3];
    let old = fingerprint();
    let mut new = fingerprint();
    new.0.insert("kernel".to_owned(), "6.19.0".to_owned());
    let series = HistorySeries {
        lab: "i40e-veth".to_owned(),
        scenario: "redirect_map i40e->veth".to_owned(),
        mode: XdpMode::Native,
        fingerprint: 0,
        results: (1..=12).map(|day| result(day, if day <= 6 { 96.3 } else { 99.1 } + wobble(day))).collect(),
        left_out: 1,
        changes: vec![HistoryChange {
            at: 6,
            started: "2026-01-07T00:00:00Z".to_owned(),
            before_ns: 96.3,
            after_ns: 99.1,
            p: 0.002,
        }],
    };
    let other = HistorySeries {
        fingerprint: 1,
        results: vec![result(20, 97.0)],
        left_out: 0,
        changes: Vec::new(),
        ..series.clone()
    };
    HistoryReport { schema: HISTORY_SCHEMA.to_owned(), fingerprints: vec![old, new], series: vec![series, other] }
}

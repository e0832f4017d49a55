//! Each benchmark's tables, of made-up figures: what people and Markdown get to see.

use std::collections::BTreeMap;

use crate::{
    published,
    record::{
        Check, Fingerprint, Ledger, Verdict,
        bench::{
            BENCH_SCHEMA, Bench, BenchReport, BroadcastFindings, CloneCost, DropFindings, FlowFindings, FlowRow,
            MatrixRow, Nanoseconds, PathRow, RedirectFindings, Rows, SizeRow, SkippedRow, TraitCapacity, TraitFindings,
            TraitRedirect, TraitRow, TraitSurvival,
        },
    },
    report::text::Style,
    xdp::XdpMode,
};

fn ns(ns: f64) -> Nanoseconds {
    Nanoseconds { ns, ci: [ns - 0.4, ns + 0.6] }
}

fn report(bench: Bench) -> BenchReport {
    BenchReport {
        schema: BENCH_SCHEMA.to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        fingerprint: Fingerprint([("kernel".to_owned(), "6.12.0".to_owned())].into()),
        seconds: 4.2,
        bench,
        checks: vec![
            Check {
                what: "nothing unaccounted".to_owned(),
                limit: "4 cells".to_owned(),
                measured: "all".to_owned(),
                ok: true,
                undecided: false,
            },
            Check {
                what: "a | b".to_owned(),
                limit: "at most 2".to_owned(),
                measured: "1.9 (1.8 to 2.1)".to_owned(),
                ok: false,
                undecided: true,
            },
        ],
        verdict: Verdict::Inconclusive,
        notes: vec!["figures made up".to_owned()],
        profiles: Vec::new(),
    }
}

fn shown(bench: Bench) -> String {
    let report = report(bench);
    let again: BenchReport = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    assert_eq!(again, report);
    format!("{}\n----\n{}", super::text(&report, Style::default()), super::markdown(&report))
}

fn path(test: &str, mode: XdpMode, queues: u32, detail: &str, cost: f64) -> PathRow {
    PathRow { test: test.to_owned(), mode, queues, detail: detail.to_owned(), cost: ns(cost), mpps: 1000.0 / cost }
}

#[test]
fn drop() {
    let rows = vec![
        path("drop", XdpMode::Native, 1, "none", 151.0),
        path("drop", XdpMode::Native, 1, "read", 152.5),
        path("drop", XdpMode::Generic, 1, "none", 600.0),
        path("drop", XdpMode::Native, 2, "none", 80.0),
        path("AF_XDP receive", XdpMode::Native, 1, "none", 1100.0),
    ];
    let findings =
        DropFindings { read_ns: ns(1.5), swap_ns: ns(3.0), generic_ns: ns(449.0), queues_gain: 151.0 / 80.0 };
    insta::assert_snapshot!(shown(Bench::Drop(Rows { rows, published: published::drop(), findings })));
}

#[test]
fn redirect() {
    let rows = vec![
        path("redirect_map", XdpMode::Native, 1, "devmap", 240.0),
        path("redirect_map", XdpMode::Generic, 1, "devmap", 900.0),
    ];
    let findings = RedirectFindings { hop_ns: [(XdpMode::Native, ns(88.5))].into() };
    insta::assert_snapshot!(shown(Bench::Redirect(Rows { rows, published: published::redirect(), findings })));
}

fn cell(test: &str, targets: u32, cost: f64) -> MatrixRow {
    let clones = if test == "broadcast" { 840 * u64::from(targets - 1) } else { 0 };
    MatrixRow {
        test: test.to_owned(),
        mode: XdpMode::Native,
        map: "devmap".to_owned(),
        max_entries: targets,
        targets,
        egress: "none".to_owned(),
        inner: "drop".to_owned(),
        clones_at_all: clones > 0,
        offered: 840,
        delivered: vec![840; targets as usize],
        clones: BTreeMap::from([("copies sent".to_owned(), clones), ("pages allocated".to_owned(), clones)]),
        unaccounted: 0,
        cost: ns(cost),
        mpps: 1000.0 / cost,
    }
}

#[test]
fn broadcast() {
    let rows = vec![
        cell("redirect_map", 1, 240.0),
        cell("redirect_map", 2, 245.0),
        cell("broadcast", 1, 250.0),
        cell("broadcast", 2, 560.0),
    ];
    let ledger = Ledger { offered: 840, delivered: [("sink:in0".to_owned(), 840)].into(), ..Ledger::default() };
    let findings = BroadcastFindings {
        clone_methods: vec!["clones by pages allocated: as expected in 4 of 4 cells".to_owned()],
        hop_ns: [(XdpMode::Native, ns(88.5))].into(),
        slot_ns: [("devmap".to_owned(), ns(9.5))].into(),
        clone_ns: vec![CloneCost {
            mode: XdpMode::Native,
            inner: "drop".to_owned(),
            from: 1,
            step_ns: ns(310.0),
            clone_ns: ns(212.0),
        }],
        sizes: vec![SizeRow {
            map: "devmap".to_owned(),
            max_entries: 256,
            cost: ns(2741.0),
            over_redirect_ns: ns(2501.0),
        }],
        skipped: vec![SkippedRow { target: "down".to_owned(), mode: XdpMode::Native, ledger, clones: 840 }],
    };
    insta::assert_snapshot!(shown(Bench::Broadcast(Rows { rows, published: published::redirect(), findings })));
}

#[test]
fn flow() {
    let row = |map: &str, key_bytes, hit, cost: f64| FlowRow {
        map: map.to_owned(),
        key_bytes,
        flows: 1000,
        max_entries: 1000,
        hit,
        then: "drop".to_owned(),
        cost: ns(cost),
        mpps: 1000.0 / cost,
        lookup_ns: ns(cost - 160.0),
    };
    let rows = vec![row("none", 0, true, 160.0), row("hash", 16, true, 210.0), row("hash", 16, false, 195.0)];
    let findings = FlowFindings { per_8_bytes_ns: [("hash".to_owned(), ns(5.2))].into(), largest_map_bytes: 3 << 20 };
    insta::assert_snapshot!(shown(Bench::Flow(Rows { rows, published: published::flow(), findings })));
}

#[test]
fn traits() {
    let row = |operation: &str, cost: f64| TraitRow {
        operation: operation.to_owned(),
        detail: String::new(),
        cost: ns(cost),
        calls: cost / 9.1,
    };
    let rows = vec![
        row("function call", 9.1),
        row("get", 6.8),
        row("set", 6.9),
        row("move: a new key and its delete by turns, 8 bytes moved", 17.0),
        row("tail call", 12.3),
    ];
    let survival = |path: &str, intact, changed, absent| TraitSurvival {
        path: path.to_owned(),
        mode: XdpMode::Native,
        offered: 100,
        seen: intact + changed + absent,
        intact,
        changed,
        absent,
        broken: 0,
    };
    let findings = TraitFindings {
        like: "amd_9684x_srso_ns".to_owned(),
        capacity: vec![TraitCapacity { path: "BPF_PROG_RUN".to_owned(), mode: XdpMode::Native, bytes: 216 }],
        survival: vec![
            survival("redirect to veth, program at its peer", 100, 0, 0),
            survival("changed on the way", 0, 100, 0),
            survival("pass to the stack, tc", 0, 0, 100),
            survival("nobody looked", 0, 0, 0),
            survival("now and then", 60, 0, 40),
        ],
        redirect: vec![TraitRedirect { traits: 4, bytes: 8, cost: ns(300.0), over_redirect_ns: ns(60.0) }],
    };
    insta::assert_snapshot!(shown(Bench::Traits(Rows { rows, published: published::traits(), findings })));
}

//! What is timed, or takes the host to itself: the benchmarks, on the real kernel, with less work than by default.

mod senders;
mod skip_unable;
mod verdicts;

use std::time::{Duration, Instant};

use xdplab::{
    bench::{
        PathOptions,
        broadcast::{self, BroadcastOptions, Inner},
        dispatcher::{self, DispatcherOptions},
        drop,
        flow::{self, FlowOptions},
        redirect,
        traits::{self, LENGTHS, TraitsPlan, measure},
    },
    host::thread::LabThread,
    lab::Spare,
    measure::interval::Estimate,
    observe::profile::{Sampler, SamplerOptions},
    program::{TraitsWork, dispatcher::DispatcherReader, load_trivial},
    record::bench::{Bench, BenchReport},
    run::Silent,
    traffic::{Stop, cpu::Pinned},
    xdp::XdpMode,
};

/// What the suite has time for.
const QUICK: PathOptions = PathOptions { profile: false, quick: true };

/// Whether all checks held that are no matter of time. What this machine's noise leaves undecided is no failure of the
/// benchmark.
fn assert_held(report: &BenchReport, timed: &[&str]) {
    let failed = report.checks.iter().filter(|check| !check.ok && !timed.contains(&check.what.as_str()));
    assert_eq!(failed.count(), 0, "{:#?}", report.checks);
    assert!(report.checks.iter().any(|check| check.ok), "{:#?}", report.checks);
}

/// Attaches so many programs elsewhere while something is done.
fn while_others_hold<R: Send>(entries: u32, work: impl FnOnce() -> R + Send) -> R {
    let thread = LabThread::start("others").unwrap();
    thread.run(|inside| {
        let spare = Spare::new(inside, entries.max(1)).unwrap();
        let programs: Vec<_> = (0..entries).map(|_| load_trivial().unwrap()).collect();
        let _links: Vec<_> = (0..entries)
            .map(|n| {
                let attach = || programs[n as usize].attach(Spare::ifindex(n), XdpMode::Native);
                inside.enter(spare.netns(), attach).unwrap().unwrap()
            })
            .collect();
        work()
    })
}

#[test]
fn the_dispatcher_ends_where_the_kernels_own_code_says_also_while_others_hold_entries() {
    if !xdplab::testing::has("root") {
        return;
    }
    let others = 5;
    {
        let before = DispatcherReader::open().unwrap().map_or(0, |mut reader| reader.read().unwrap().programs.len());
        let report = while_others_hold(others, || {
            dispatcher::run(&DispatcherOptions::default(), &Stop::default(), &Silent).unwrap()
        });
        let Bench::Dispatcher(rows) = &report.bench else { panic!("{report:#?}") };
        let findings = &rows.findings;
        println!("{findings:#?}");
        assert_eq!(rows.published.len(), 456);
        assert_eq!(rows.rows.len(), 200);
        if let Some(held) = findings.others {
            assert_eq!(held, before as u32 + others);
        }
        if let (true, Some(cliff)) = (findings.retpolines, findings.cliff) {
            let with_entry = rows.rows.iter().filter(|row| row.attached == "last" && row.holds_entry == Some(true));
            assert_eq!(with_entry.map(|row| row.entries).max(), Some(cliff.entries));
            assert!(cliff.step_ns > 0.0 && cliff.after_ns > cliff.before_ns, "{cliff:?}");
        }
        assert_held(&report, &["flat within the capacity", "spread within the capacity"]);
    }
}

#[test]
fn every_copy_and_every_clone_of_a_broadcast_is_accounted_for() {
    if !xdplab::testing::has("root") {
        return;
    }
    let options = BroadcastOptions { targets: 2, inner: vec![Inner::Drop], quick: true, ..BroadcastOptions::default() };
    let report = broadcast::run(&options, &Stop::default(), &Silent).unwrap();
    assert_held(&report, &[]);
    let Bench::Broadcast(rows) = &report.bench else { panic!("{report:#?}") };
    // Tests, maps, egress programs, modes, targets.
    assert_eq!(rows.rows.len(), 3 * 2 * 2 * 2 * 2);
    for row in &rows.rows {
        let clones = if row.clones_at_all { row.offered * u64::from(row.targets - 1) } else { 0 };
        assert!(row.clones.values().all(|counted| *counted == clones), "{row:#?}");
        assert!(row.mode != XdpMode::Native || row.clones.len() >= 2, "counted in one way only: {row:#?}");
        assert!(row.cost.ns > 0.0, "{row:#?}");
    }
    assert_eq!(rows.findings.sizes.len(), 18);
    let native = |target: &str| {
        let is = |row: &&xdplab::record::bench::SkippedRow| row.target == target && row.mode == XdpMode::Native;
        rows.findings.skipped.iter().find(is).unwrap()
    };
    for target in ["down", "MTU too small", "nothing polls behind it", "the port that the frame came by, excluded"] {
        let row = native(target);
        assert_eq!((row.clones, row.ledger.lost()), (row.ledger.offered, 0), "{row:#?}");
    }
}

#[test]
fn drops_and_redirects_arrive_and_have_a_price() {
    if !xdplab::testing::has("root") {
        return;
    }
    let report = drop::run(&QUICK, &Stop::default(), &Silent).unwrap();
    assert_held(&report, &[]);
    let Bench::Drop(rows) = &report.bench else { panic!("{report:#?}") };
    assert!(
        rows.rows.len() >= 6 && rows.rows.iter().all(|row| row.cost.ns > 0.0 && row.mpps > 0.0),
        "{:#?}",
        rows.rows
    );
    assert!(rows.rows.iter().any(|row| row.test == "AF_XDP receive"), "{:#?}", rows.rows);
    let report = redirect::run(&PathOptions { profile: true, ..QUICK }, &Stop::default(), &Silent).unwrap();
    assert_held(&report, &[]);
    let Bench::Redirect(rows) = &report.bench else { panic!("{report:#?}") };
    assert_eq!(rows.rows.len(), 8);
    assert_eq!(report.profiles.len(), 2);
    let named = |symbol: &str| report.profiles[1].profile.rows.iter().any(|row| row.symbol == symbol);
    assert!(named("xdp_redirect_map [bpf]"), "{:#?}", report.profiles[1].profile.rows);
}

#[test]
fn flows_are_found_and_not_found() {
    if !xdplab::testing::has("root") {
        return;
    }
    let options = FlowOptions { key_bytes: vec![4, 13, 64], flows: 5_000, quick: true, profile: false };
    let report = flow::run(&options, &Stop::default(), &Silent).unwrap();
    assert_held(&report, &[]);
    let Bench::Flow(rows) = &report.bench else { panic!("{report:#?}") };
    for map in ["hash", "lru_hash", "array", "none"] {
        assert!(rows.rows.iter().any(|row| row.map == map), "{map}");
    }
    assert!(rows.findings.per_8_bytes_ns.contains_key("hash"));
    assert!(rows.findings.largest_map_bytes > 5_000 * 8);
    let unknown = FlowOptions { key_bytes: vec![5], ..options };
    let error = flow::run(&unknown, &Stop::default(), &Silent).unwrap_err();
    assert!(error.is_of_the_input(), "{error}");
    insta::assert_snapshot!(error, @"key-bytes: the built-in `flow` has no program for keys of 5 bytes: use one of 4, 6, 8, 12, 13, 16, 20, 24, 28, 32, 37, 40, 48, 56, 64");
}

#[test]
fn traits_survive_native_paths_and_are_seen_missing_on_others() {
    if !xdplab::testing::has("root") {
        return;
    }
    let report = traits::run(&QUICK, &Stop::default(), &Silent).unwrap();
    assert_held(&report, &["get, in function calls", "set, in function calls", "move, in function calls"]);
    let Bench::Traits(rows) = &report.bench else { panic!("{report:#?}") };
    for row in &rows.findings.survival {
        assert_eq!((row.seen, row.seen), (row.offered, row.intact + row.changed + row.absent + row.broken), "{row:#?}");
    }
    let of = |path: &str| {
        let is = |row: &&xdplab::record::bench::TraitSurvival| row.mode == XdpMode::Native && row.path == path;
        rows.findings.survival.iter().find(is).unwrap_or_else(|| panic!("no row {path}"))
    };
    for path in [
        "redirect to veth, program at its peer",
        "redirect to veth, egress program",
        "broadcast to 3, program at target 2",
    ] {
        assert_eq!(of(path).intact, of(path).offered, "{path}");
    }
    // Each clone has its own copy: what one is changed to, the others don't see.
    let written = |n: u32| format!("broadcast to 3, changed on the way out to target 0, program at target {n}");
    assert_eq!(of(&written(0)).changed, of(&written(0)).offered);
    assert_eq!(of(&written(1)).intact, of(&written(1)).offered);
    assert!(rows.findings.capacity.iter().all(|row| row.bytes >= 32), "{:#?}", rows.findings.capacity);
    assert_eq!(rows.findings.redirect.len(), 5);
}

#[test]
fn moving_by_words_is_as_fast_as_moving_by_bytes_at_every_length() {
    let costs = measure(&TraitsPlan { rounds: 5, times: 10_000 }).unwrap_or_else(|error| panic!("{error}"));
    for cost in &costs.costs {
        let (operation, Estimate { value, low, high }) = (cost.operation.to_string(), cost.ns);
        println!("{operation:50} {value:6.2} [{low:6.2} {high:6.2}] ns, {:5.2} calls", cost.calls.value);
        assert!(value > 0.0, "{operation}: {value} ns");
    }
    for length in LENGTHS {
        for (words, bytes) in
            [(TraitsWork::MoveByWords, TraitsWork::MoveByBytes), (TraitsWork::UpdateByWords, TraitsWork::UpdateByBytes)]
        {
            let (words, bytes) = (costs.at(words, length).unwrap(), costs.at(bytes, length).unwrap());
            assert!(words.ns.value <= bytes.ns.value, "{length} bytes: {:?} against {:?}", words.ns, bytes.ns);
        }
    }
}

#[test]
fn what_other_threads_do_is_no_work() {
    if !xdplab::testing::has("root") {
        return;
    }
    let cpu = xdplab::traffic::cpu::sender() as usize;
    // A thread that nobody is: what others do meanwhile is theirs.
    let options = SamplerOptions { threads: vec![u32::MAX], ..SamplerOptions::default() };
    let sampler = Sampler::start(cpu, options).unwrap_or_else(|error| panic!("{error:?}"));
    let _pinned = Pinned::to(cpu).unwrap();
    let until = Instant::now() + Duration::from_millis(200);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    let profile = sampler.stop().unwrap_or_else(|error| panic!("{error:?}"));
    let taken = profile.samples + profile.idle + profile.elsewhere;
    assert!(taken > 1_000, "{profile:#?}");
    // Only packets of others that arrive meanwhile are taken for work.
    assert!(profile.samples < taken / 4, "{profile:#?}");
}

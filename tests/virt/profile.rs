//! Profiles of live traffic: whose functions they name, what is no part of them, and what a full buffer does.

use std::{
    fs,
    time::{Duration, Instant},
};

use super::command::Bench;
use xdplab::{
    Lab,
    host::perf::{PerfSampler, SampleSpec, Samples},
    observe::profile::{Sampler, SamplerOptions},
    record::profile::{Profile, SymbolKind},
    report::profile::difference,
    run::{RunOptions, profile},
    traffic::cpu::Pinned,
    xdp::XdpMode::{self, Generic, Native},
};

fn profiled(lab: &mut Lab, mode: XdpMode) -> Profile {
    let time = Duration::from_millis(500);
    profile(lab, "path", mode, &RunOptions::default(), time).unwrap_or_else(|error| panic!("{error:?}"))
}

/// A kernel function without what its compiler and its module add to the name: kernels differ in both.
fn plain(symbol: &str) -> &str {
    let name = symbol.strip_suffix(" [veth]").unwrap_or(symbol);
    name.split_once('.').map_or(name, |(name, _)| name)
}

fn has(profile: &Profile, symbol: &str, kind: SymbolKind) -> bool {
    profile.rows.iter().any(|row| row.kind == kind && plain(&row.symbol) == symbol)
}

#[xdplab::test(topology_text = r#"
        name = "profiled"
        [nodes.gen]
        [nodes.dut]
        [nodes.sink]
        [[links]]
        kind = "veth"
        ends = ["gen:tx0", "dut:rx0"]
        [[links]]
        kind = "veth"
        ends = ["dut:out0", "sink:in0"]
        [programs.redirect]
        builtin = "redirect_map"
        attach = ["dut:rx0"]
        maps.tx_ports = ["dut:out0"]
        [programs.sink]
        builtin = "sink"
        attach = ["sink:in0"]
        [[scenarios]]
        name = "path"
        modes = ["native", "generic"]
        traffic = { from = "gen:tx0", frame-bytes = 64, frames = 6_400 }
        expect = { deliver = ["sink:in0"], lost = 0 }
    "#)]
fn a_profile_names_every_program_and_the_kernels_part_of_the_path(lab: &mut Lab) {
    let native = profiled(lab, Native);
    let programs = ["xdp_source [bpf]", "xdp_redirect_map [bpf]", "xdp_sink [bpf]"];
    for program in programs {
        assert!(has(&native, program, SymbolKind::Bpf), "no {program}: {:#?}", native.rows);
    }
    for function in ["veth_xdp_rcv", "xdp_do_redirect", "veth_xdp_xmit"] {
        assert!(has(&native, function, SymbolKind::Kernel), "no {function}: {:#?}", native.rows);
    }
    assert!(native.stacks.iter().any(|stack| {
        let at = |symbol: &str| stack.stack.iter().position(|function| plain(function) == symbol);
        at("veth_poll").is_some_and(|poll| at("xdp_sink [bpf]").is_some_and(|sink| poll < sink))
    }));
    let sum = |profile: &Profile| profile.rows.iter().map(|row| row.percent).sum::<f64>();
    assert!((sum(&native) - 100.0).abs() < 1e-6, "{}", sum(&native));
    // Idle is no work: none of its functions has a row.
    assert!(native.rows.iter().all(|row| !row.symbol.contains("idle")), "{:#?}", native.rows);
    assert!(native.samples > 500 && native.lost == 0, "{} samples, {} lost", native.samples, native.lost);
    // In generic mode a packet has an skb, which the native path has none of.
    let generic = profiled(lab, Generic);
    assert!(
        has(&generic, "do_xdp_generic", SymbolKind::Kernel)
            || has(&generic, "bpf_prog_run_generic_xdp", SymbolKind::Kernel),
        "{:#?}",
        generic.rows
    );
    assert!(has(&generic, "xdp_redirect_map [bpf]", SymbolKind::Bpf), "{:#?}", generic.rows);
    let change = difference(&native, &generic, None);
    let gained = |symbol: &str| change.rows.iter().find(|row| row.symbol == symbol).map_or(0.0, |row| row.points);
    assert!(gained("do_xdp_generic") > 0.0 && gained("veth_xdp_rcv_one") < 0.0, "{change}");
    println!("{change}");
}

#[test]
fn the_command_writes_a_flame_graph_and_stacks_and_shows_the_first_symbols() {
    if !xdplab::testing::has("root") {
        return;
    }
    let bench = Bench::new();
    let file = bench.file("lab.toml", include_str!("../../topologies/drop.toml"));
    let topology = xdplab::topology::load(std::path::Path::new(&file)).unwrap_or_else(|error| panic!("{error}"));
    let scenario = topology.scenarios.iter().find(|s| s.perf.is_some()).expect("a priced scenario");
    let directory = bench.dir.path().join("profiles");
    let option = format!("--profile={}", directory.display());
    let output = bench.output(&["run", &file, "--scenario", &scenario.name, "--frames", "6400", &option]);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("where the time goes"), "{text}");
    assert!(text.contains("files of profiles in"), "{text}");
    let mut files: Vec<_> =
        fs::read_dir(&directory).expect("the directory").flatten().map(|file| file.path()).collect();
    files.sort();
    assert_eq!(files.len(), 2 * scenario.modes.len(), "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).expect("a text");
        assert!(text.contains("xdp_source [bpf]"), "{}: {text}", file.display());
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"), "{text}"),
            _ => assert!(text.lines().all(|line| line.rsplit(' ').next().is_some_and(|n| n.parse::<u64>().is_ok()))),
        }
    }
    // Pricing is what gives a case its programs to sample: without it there is nothing to profile.
    bench.ends_with(2, &["run", &file, "--no-pricing", &option]);
}

/// Samples this thread while it spins.
fn spin(frequency_hz: u64, ring_bytes: usize, time: Duration) -> (u64, Samples) {
    let pinned = Pinned::here().expect("pin this thread");
    let spec = SampleSpec { cpu: pinned.cpu, frequency_hz, exclude_user: false, ring_bytes: Some(ring_bytes) };
    let sampler = PerfSampler::start(spec).unwrap_or_else(|error| panic!("{error:?}"));
    let frequency = sampler.frequency_hz;
    let until = Instant::now() + time;
    while Instant::now() < until {
        // The stacks of a system call are deeper than those of user code.
        std::hint::black_box(std::fs::read("/proc/self/status").expect("read"));
    }
    (frequency, sampler.stop().unwrap_or_else(|error| panic!("{error:?}")))
}

#[test]
fn records_survive_the_end_of_the_ring_and_are_counted_where_they_find_no_room() {
    if !xdplab::testing::has("root") {
        return;
    }
    let (frequency, samples) = spin(4_000, 32 << 10, Duration::from_secs(1));
    let taken = |samples: &Samples| samples.stacks.values().sum::<u64>();
    let expected = |samples: &Samples| {
        let (first, last) = samples.span.expect("samples");
        frequency * (last - first) / 1_000_000_000
    };
    let bytes: u64 = samples.stacks.iter().map(|(stack, n)| n * (48 + 8 * stack.kernel.len() as u64)).sum();
    assert!(bytes > 2 * (32 << 10), "the ring did not go round: {bytes} bytes");
    assert_eq!(samples.lost, 0);
    // A hypervisor may keep the CPU to itself for a while; a counter takes a while to find its rate.
    let (taken_then, expected) = (taken(&samples), expected(&samples));
    assert!((expected / 4..=expected + expected / 20).contains(&taken_then), "{taken_then} of {expected}");
    // Far more than the reader's pauses leave room for.
    let (_, samples) = spin(20_000, 4096, Duration::from_millis(500));
    assert!(taken(&samples) > 0 && samples.lost > 100, "{} taken, {} lost", taken(&samples), samples.lost);
}

#[test]
fn a_cpu_that_is_not_there_is_an_error_that_names_it() {
    if !xdplab::testing::has("root") {
        return;
    }
    let error = Sampler::start(100_000, SamplerOptions::default()).expect_err("no such CPU");
    insta::assert_snapshot!(error, @"sample CPU 100000 (is the CPU there and online?)");
}

//! The fingerprint of this machine's ports and of what others trace here.

use std::{os::fd::AsFd as _, path::PathBuf, process::Command};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use xdplab::{
    host::ethtool::Ethtool,
    measure::fingerprint::{differences, key, of_host, of_port},
    program::kinds,
    record::Fingerprint,
    run::{RunOptions, Silent, run},
    topology,
    traffic::Stop,
};

/// Runs `work` in a namespace of its own with a pair `p0`, `p1`.
fn with_a_pair<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("these tests need root");
            let status = Command::new("ip").args("link add p0 type veth peer name p1".split(' ')).status();
            assert!(status.expect("ip").success());
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
fn a_veths_driver_queues_and_offloads_are_recorded() {
    with_a_pair(|| {
        let ethtool = Ethtool::open().unwrap();
        let before = of_port("dut:rx0", &ethtool, "p0", None).unwrap();
        assert_eq!(before.0["port dut:rx0 driver"], "veth");
        assert_eq!(before.0["port dut:rx0 queues"], "rx 1, tx 1");
        assert!(!before.0.keys().any(|name| name.ends_with(" pcie") || name.ends_with(" rings")), "{before:#?}");
        ethtool.set_gro("p0", true).unwrap();
        let after = of_port("dut:rx0", &ethtool, "p0", None).unwrap();
        let names: Vec<String> = differences(&before, &after).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["port dut:rx0 offloads"]);
        assert!(after.0["port dut:rx0 offloads"].contains("rx-gro"), "{after:#?}");
        assert!(of_port("dut:rx0", &ethtool, "none", None).is_err());
    });
}

/// A report of a run of one link, as JSON, with these settings of the port that drops.
fn run_with(settings: &str) -> (serde_json::Value, Fingerprint) {
    let text = format!(
        "name = \"ports\"\n[nodes.gen]\n[nodes.dut]\n{settings}\n\
         [[links]]\nkind = \"veth\"\nends = [\"gen:tx0\", \"dut:rx0\"]\n\
         [programs.dut]\nbuiltin = \"drop\"\nattach = [\"dut:rx0\"]\n\
         [[scenarios]]\nname = \"drop\"\nmodes = [\"native\", \"generic\"]\n\
         traffic = {{ from = \"gen:tx0\", frame-bytes = 64, frames = 64 }}\nexpect = {{ drop = [\"dut:rx0\"] }}\n"
    );
    let topology = topology::parse("ports.toml".as_ref(), &text).unwrap();
    let report = run(&topology, &RunOptions::default(), &Stop::default(), &Silent).unwrap();
    (serde_json::to_value(&report).unwrap(), report.fingerprint)
}

#[test]
fn a_run_records_its_ports_and_a_changed_offload_is_another_key() {
    let (json, plain) = run_with("");
    let entries = &json["fingerprint"];
    assert_eq!(entries["port * driver"], "veth", "{entries:#}");
    assert_eq!(entries["port * queues"], "rx 1, tx 1", "{entries:#}");
    // Attaching in generic mode switches GRO on: what is recorded is what was there before.
    assert!(entries["port * offloads"].as_str().is_some_and(|on| !on.contains("rx-gro")), "{entries:#}");
    assert!(entries["netdev-budget"].is_string() && entries["batch of drop"].is_string(), "{entries:#}");
    // Neither is more common among two: one of both values stands for the rest.
    let (_, with_gro) = run_with("[nodes.dut.ports.rx0]\ngro = true");
    let of_offloads = |of: &Fingerprint| of.0.iter().filter(|(name, _)| name.ends_with(" offloads")).count();
    assert_eq!((of_offloads(&plain), of_offloads(&with_gro)), (1, 2), "{with_gro:#?}");
    assert_eq!(key(&plain), key(&run_with("").1));
    assert_ne!(key(&plain), key(&with_gro));
}

#[test]
fn a_tracing_program_counts_once_only_another_process_holds_it() {
    let object = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/objects/peek.o");
    let mut ebpf = aya::Ebpf::load(&std::fs::read(object).unwrap()).unwrap();
    let program: &mut aya::programs::RawTracePoint = ebpf.program_mut("peek").unwrap().try_into().unwrap();
    program.load().unwrap();
    let copy = program.fd().unwrap().as_fd().try_clone_to_owned().unwrap();
    // The child inherits the copy, and keeps it once this process has let go.
    fcntl(&copy, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    drop((copy, ebpf));
    let kinds = kinds::of_others();
    let host = of_host();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(kinds.unwrap().get("raw tracepoint").is_some_and(|count| *count >= 1));
    assert!(host.0["tracing-programs"].contains("raw tracepoint"), "{host:#?}");
}

//! `AF_XDP`: frames out of a socket, frames into sockets, and every way in which they can be lost there.

use std::time::{Duration, Instant};

use nix::{
    sched::{CpuSet, sched_getaffinity},
    unistd::Pid,
};
use xdplab::{
    Lab,
    host::{
        hypervisor,
        xsk::{RING, XskReceiver, XskSender, XskSpec},
    },
    lab::{Cabling, LabError, persistent},
    record::{ScenarioRecord, Verdict},
    run::{Progress, RunOptions, Silent, run, scenario},
    testing::with_lab,
    topology,
    traffic::Stop,
    xdp::XdpMode::{self, Generic, Native},
};

const FRAMES: u64 = 100_000;

/// gen:tx0 -- dut:rx0, each with so many queues; what stands at dut:rx0, and the scenario's traffic and expectations.
fn pair(queues: u32, program: &str, traffic: &str, expect: &str) -> String {
    format!(
        r#"
name = "pair"
[nodes.gen.ports.tx0]
queues = {queues}
[nodes.dut.ports.rx0]
queues = {queues}
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[programs.under_test]
{program}
attach = ["dut:rx0"]
[[scenarios]]
name = "s"
modes = ["native", "generic"]
traffic = {{ from = "gen:tx0", {traffic} }}
expect = {{ {expect} }}
"#
    )
}

const RECEIVE: &str = "builtin = \"xsk\"";
const SINK: &str = "builtin = \"sink\"";
const ALL: &str = "deliver = [\"dut:rx0\"]";

fn run_in(lab: &mut Lab, mode: XdpMode) -> ScenarioRecord {
    let record = scenario(lab, "s", mode, &RunOptions::default()).unwrap_or_else(|error| panic!("{error:?}"));
    assert!(record.ledger.is_balanced(), "{mode}: {:#?}", record.ledger);
    record
}

/// Runs the scenario in both modes: all of `frames` must be delivered at dut:rx0, once, in order.
fn all_arrive(text: &str, frames: u64) {
    with_lab("xsk.toml", text, |lab| {
        for mode in [Native, Generic] {
            let started = Instant::now();
            let record = run_in(lab, mode);
            let rate = frames as f64 / started.elapsed().as_secs_f64() / 1e6;
            println!("{mode}: {frames} frames at {rate:.3} Mpps with all that a scenario does beside");
            assert_eq!(record.verdict, Verdict::Pass, "{mode}: {record:#?}");
            assert_eq!(record.ledger.delivered["dut:rx0"], frames, "{mode}: {:#?}", record.ledger);
        }
    });
}

fn losses(record: &ScenarioRecord) -> Vec<(&str, &str, u64)> {
    record.ledger.dropped.iter().map(|d| (d.at.as_str(), d.reason.as_str(), d.frames)).collect()
}

#[test]
fn a_socket_sends_to_a_sink_and_nothing_is_lost() {
    all_arrive(&pair(1, SINK, "engine = \"xsk\", flows = 3, frames = 100_000", ALL), FRAMES);
}

#[test]
fn a_socket_receives_live_frames_and_nothing_is_lost() {
    all_arrive(&pair(1, RECEIVE, "flows = 3, frames = 100_000", ALL), FRAMES);
}

#[test]
fn sockets_of_every_queue_receive() {
    all_arrive(&pair(2, RECEIVE, "flows = 3, frames = 100_000", ALL), FRAMES);
}

#[test]
fn a_small_ring_is_no_loss_while_the_sender_waits_for_it() {
    let small = format!("{RECEIVE}\noptions = {{ ring = 512 }}");
    all_arrive(&pair(1, &small, "frames = 100_000", ALL), FRAMES);
}

#[test]
fn a_socket_receives_what_another_sends() {
    all_arrive(&pair(1, RECEIVE, "engine = \"xsk\", ip = 6, frame-bytes = 1518, frames = 20_000", ALL), 20_000);
}

#[test]
fn a_socket_receives_single_frames() {
    all_arrive(&pair(1, RECEIVE, "engine = \"packet\", flows = 2, frames = 20_000", ALL), 20_000);
}

#[test]
fn a_socket_may_send_by_time() {
    // An emulated machine sends some hundreds by then.
    with_lab("xsk.toml", &pair(1, SINK, "engine = \"xsk\", duration = \"100ms\"", ALL), |lab| {
        let record = run_in(lab, Native);
        assert!(record.verdict == Verdict::Pass && record.ledger.offered > 100, "{record:#?}");
    });
}

/// Asks for a stop as soon as frames have been sent.
struct StopOnceSending(Stop);

impl Progress for StopOnceSending {
    fn step(&self, _: &str) {}

    fn frames(&self, made: u64, _: u64) {
        if made > 0 {
            self.0.ask();
        }
    }

    fn waiting(&self, _: &str) {}
}

#[test]
fn a_stop_ends_the_sending_and_the_account_balances() {
    let text = pair(1, RECEIVE, "engine = \"xsk\", duration = \"24h\"", ALL).replace("native\", \"generic", "native");
    let topology = topology::parse("xsk.toml".as_ref(), &text).unwrap();
    let stop = Stop::default();
    let report = run(&topology, &RunOptions::default(), &stop, &StopOnceSending(stop.clone())).unwrap();
    assert!(!report.scenarios.is_empty());
    for record in &report.scenarios {
        assert!(record.ledger.is_balanced() && record.ledger.offered > 0, "{:#?}", record.ledger);
    }
}

#[test]
fn a_receiver_that_is_overwhelmed_loses_frames_by_name() {
    let tiny = format!("{RECEIVE}\noptions = {{ ring = 8 }}");
    let text = pair(1, &tiny, "frames = 100_000", &format!("{ALL}, lost = 100_000"));
    with_lab("xsk.toml", &text, |lab| {
        for mode in [Native, Generic] {
            let deadline = Instant::now() + Duration::from_mins(1);
            loop {
                let record = run_in(lab, mode);
                let lost = losses(&record);
                println!("{mode}: {} of {FRAMES} taken, lost: {lost:?}", record.ledger.delivered["dut:rx0"]);
                // So small a ring empties the other one as well.
                let known = ["xsk: fill ring empty", "xsk: rx ring full"];
                assert!(lost.iter().all(|(at, why, _)| *at == "dut:rx0" && known.contains(why)), "{lost:?}");
                if lost.iter().any(|(_, why, _)| *why == "xsk: rx ring full") {
                    let explained = |d: &xdplab::record::Dropped| d.cause.is_some() && d.fix.is_some() && !d.by_verdict;
                    assert!(record.ledger.dropped.iter().all(explained), "{record:#?}");
                    break;
                }
                assert!(Instant::now() < deadline, "{mode}: no run overflowed the ring: {record:#?}");
            }
        }
    });
}

#[test]
fn what_is_lost_on_the_way_of_socket_buffers_balances_too() {
    for engine in ["xsk", "packet"] {
        let tiny = format!("{RECEIVE}\noptions = {{ ring = 8 }}");
        let traffic = format!("engine = \"{engine}\", frames = 20_000");
        with_lab("xsk.toml", &pair(1, &tiny, &traffic, &format!("{ALL}, lost = 20_000")), |lab| {
            for mode in [Native, Generic] {
                println!("{engine}, {mode}: lost: {:?}", losses(&run_in(lab, mode)));
            }
        });
    }
}

/// Of two queues the one by which live frames don't come. A veth chooses it by the sender's CPU, which is the highest;
/// to a generic program, they all come by the first.
fn other_queue(mode: XdpMode) -> usize {
    let cpus = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let sender = (0..CpuSet::count()).rev().find(|cpu| cpus.is_set(*cpu).unwrap()).unwrap();
    if mode == Native { 1 - sender % 2 } else { 1 }
}

#[test]
fn a_queue_without_a_socket_loses_frames_by_name() {
    for mode in [Native, Generic] {
        let options = format!("{RECEIVE}\noptions = {{ queues = [{}] }}", other_queue(mode));
        with_lab("xsk.toml", &pair(2, &options, "frames = 6400", &format!("{ALL}, lost = 6400")), |lab| {
            let record = run_in(lab, mode);
            assert_eq!(losses(&record), [("dut:rx0", "xsk: no socket", 6_400)], "{mode}");
        });
    }
}

#[test]
fn a_queue_without_a_socket_may_pass_its_frames_to_the_stack() {
    for mode in [Native, Generic] {
        let other = other_queue(mode);
        let options = format!("{RECEIVE}\noptions = {{ queues = [{other}], fallback = \"pass\" }}");
        with_lab("xsk.toml", &pair(2, &options, "frames = 6400", ALL), |lab| {
            let record = run_in(lab, mode);
            assert_eq!(record.ledger.delivered["dut:rx0"], 6_400, "{mode}: {record:#?}");
            assert_eq!(record.verdict, Verdict::Pass, "{mode}: {record:#?}");
        });
    }
}

#[test]
fn each_port_of_a_program_has_its_own_sockets() {
    let text = r#"
name = "ports"
[nodes.gen]
[nodes.dut]
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[[links]]
kind = "veth"
ends = ["gen:tx1", "dut:rx1"]
[programs.xsk]
builtin = "xsk"
attach = ["dut:rx1", "dut:rx0"]
[[scenarios]]
name = "s"
traffic = { from = "gen:tx0", frames = 6400 }
expect = { deliver = ["dut:rx0"] }
[[scenarios]]
name = "t"
traffic = { from = "gen:tx1", frames = 3200 }
expect = { deliver = ["dut:rx1"] }
"#;
    with_lab("xsk.toml", text, |lab| {
        for (name, frames) in [("s", [6_400, 0]), ("t", [0, 3_200])] {
            let record = scenario(lab, name, Native, &RunOptions::default()).unwrap();
            assert_eq!(record.verdict, Verdict::Pass, "{record:#?}");
            let delivered = &record.ledger.delivered;
            assert_eq!([delivered["dut:rx0"], delivered["dut:rx1"]], frames);
        }
    });
}

#[test]
fn frames_sent_to_a_peer_that_is_down_are_lost_by_name() {
    let text = pair(1, SINK, "engine = \"xsk\", frames = 6400", &format!("{ALL}, lost = 6400"));
    with_lab("xsk.toml", &text, |lab| {
        lab.set_port_up(lab.topology().find_port("dut:rx0").unwrap(), false).unwrap();
        let record = run_in(lab, Native);
        assert_eq!(record.ledger.lost(), 6_400, "{:#?}", record.ledger);
    });
}

#[test]
fn a_port_that_is_down_can_not_send() {
    let text = pair(1, SINK, "engine = \"xsk\", frames = 1", ALL);
    with_lab("xsk.toml", &text, |lab| {
        lab.set_port_up(lab.topology().find_port("gen:tx0").unwrap(), false).unwrap();
        let error = scenario(lab, "s", Native, &RunOptions::default()).unwrap_err();
        assert!(matches!(&error, LabError::Send { port, .. } if port == "gen:tx0"), "{error:?}");
    });
}

#[test]
fn a_socket_can_not_be_where_another_is_or_where_no_queue_is() {
    with_lab("xsk.toml", &pair(1, SINK, "frames = 1", ALL), |lab| {
        let port = lab.topology().find_port("dut:rx0").unwrap();
        let spec = XskSpec { ifindex: xdplab::lab::ifindex(port), queue: 0, ring: RING, frame_bytes: 1514 };
        let error = |spec| {
            let error = lab.in_node(port, || XskSender::open(spec)).unwrap().unwrap_err();
            format!("{error}: {}", std::error::Error::source(&error).unwrap())
        };
        let first = lab.in_node(port, || XskReceiver::open(spec)).unwrap().unwrap();
        println!("zero-copy: {}", first.socket().zero_copy());
        let shown = [
            error(spec),
            error(XskSpec { queue: 7, ..spec }),
            error(XskSpec { ifindex: 4_242, ..spec }),
            error(XskSpec { ring: 100, ..spec }),
            error(XskSpec { frame_bytes: 9_000, ..spec }),
        ];
        insta::assert_snapshot!(shown.join("\n"));
        // A queue is free again when its socket is closed.
        drop(first);
        lab.in_node(port, || XskSender::open(spec)).unwrap().unwrap();
    });
}

#[test]
fn a_lab_that_stays_has_nobody_to_receive() {
    let topology = topology::parse("xsk.toml".as_ref(), &pair(1, RECEIVE, "frames = 1", ALL)).unwrap();
    let error = persistent::up(&topology, &Cabling::default(), &Silent).unwrap_err();
    assert!(matches!(&error, LabError::NoReceiver { program } if program == "under_test"), "{error}");
    assert!(error.is_of_the_input());
}

#[test]
fn receiving_has_a_price_by_the_receivers_clock() {
    let text = pair(1, RECEIVE, "frames = 6400", ALL) + "perf = { min-mpps = { veth = 0.0001 } }\n";
    let topology = topology::parse("xsk.toml".as_ref(), &text).unwrap();
    let report = run(&topology, &RunOptions::default(), &Stop::default(), &Silent).unwrap();
    for record in report.scenarios {
        let cost = record.cost.as_ref().expect("priced");
        println!("{}: {:.3} Mpps into user space", record.mode, cost.mpps);
        // No price of an emulated processor decides anything.
        let verdict = if hypervisor::is_emulated() { Verdict::Inconclusive } else { Verdict::Pass };
        assert_eq!(record.verdict, verdict, "{record:#?}");
        assert!(record.notes.iter().any(|note| note == "timed by the receiver's clock at dut:rx0"), "{record:#?}");
    }
}

//! Every kind of loss, provoked in the real kernel, in both modes: counted once, named, explained.

use std::time::{Duration, Instant};

use xdplab::{
    Lab,
    record::ScenarioRecord,
    report::text,
    run::{RunOptions, scenario},
    testing::with_lab,
    xdp::XdpMode::{self, Generic, Native},
};

use crate::kernel;

const FRAMES: u64 = 6_400;

/// gen:tx0 -- dut:rx0, redirected to dut:out0 -- sink:in0.
fn path(redirect: &str, sink: &str, traffic: &str) -> String {
    format!(
        r#"
name = "path"
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
{redirect}
{sink}
[[scenarios]]
name = "s"
modes = ["native", "generic"]
traffic = {{ from = "gen:tx0", frames = {FRAMES}, {traffic} }}
expect = {{ deliver = ["sink:in0"], lost = {FRAMES} }}
"#
    )
}

const TO_OUT: &str = "maps.tx_ports = [\"dut:out0\"]";
const SINK: &str = "[programs.sink]\nbuiltin = \"sink\"\nattach = [\"sink:in0\"]";

fn run(lab: &mut Lab, mode: XdpMode) -> ScenarioRecord {
    scenario(lab, "s", mode, &RunOptions::default()).unwrap_or_else(|error| panic!("{error:?}"))
}

/// The ledger as a user sees it, for a snapshot. It must balance.
fn ledger(record: &ScenarioRecord) -> String {
    assert!(record.ledger.is_balanced(), "{:#?}", record.ledger);
    assert_eq!(record.ledger.offered, FRAMES);
    let notes: String = record.notes.iter().map(|note| format!("note: {note}\n")).collect();
    format!("{}:\n{}{notes}", record.mode, text::ledger(&record.ledger, record.clones))
}

/// Both modes' ledgers, after something was broken.
fn both(text: &str, break_it: impl Fn(&Lab)) -> String {
    let mut shown = String::new();
    with_lab("ledger.toml", text, |lab| {
        break_it(lab);
        for mode in [Native, Generic] {
            shown += &ledger(&run(lab, mode));
        }
    });
    shown
}

fn port(lab: &Lab, name: &str) -> xdplab::topology::PortId {
    lab.topology().find_port(name).expect("the test's own port")
}

#[test]
fn an_unbroken_path_delivers_everything() {
    insta::assert_snapshot!(both(&path(TO_OUT, SINK, "flows = 3"), |_| {}));
}

#[test]
fn a_peer_without_a_program_takes_no_redirected_frames() {
    let shown = both(&path(TO_OUT, "", "flows = 1"), |_| {});
    // Since 6.3 the redirect asks whether the device takes frames now; before, the device refused them.
    if kernel::version() < (6, 3) {
        insta::assert_snapshot!("a_peer_without_a_program_takes_no_redirected_frames_before_6_3", shown);
    } else {
        insta::assert_snapshot!(shown);
    }
}

#[test]
fn a_target_that_is_down() {
    insta::assert_snapshot!(both(&path(TO_OUT, SINK, "flows = 1"), |lab| {
        lab.set_port_up(port(lab, "dut:out0"), false).unwrap();
    }));
}

#[test]
fn a_peer_that_is_down() {
    insta::assert_snapshot!(both(&path(TO_OUT, SINK, "flows = 1"), |lab| {
        lab.set_port_up(port(lab, "sink:in0"), false).unwrap();
    }));
}

#[test]
fn a_frame_over_the_targets_mtu() {
    insta::assert_snapshot!(both(&path(TO_OUT, SINK, "frame-bytes = 1000"), |lab| {
        lab.set_port_mtu(port(lab, "dut:out0"), 500).unwrap();
    }));
}

#[test]
fn an_egress_program_that_drops_counts_for_itself() {
    insta::assert_snapshot!(both(&path(&format!("{TO_OUT}\negress = \"drop\""), SINK, "flows = 1"), |_| {}));
}

#[test]
fn an_empty_map_slot_aborts() {
    let to_one = "maps.tx_ports = { 1 = \"dut:out0\" }\noptions = { max-entries = 2 }";
    insta::assert_snapshot!(both(&path(to_one, SINK, "flows = 2"), |_| {}));
}

#[test]
fn a_target_that_was_deleted() {
    for mode in [Native, Generic] {
        with_lab("ledger.toml", &path(TO_OUT, "", "flows = 1"), |lab| {
            // Attached first: the map is filled while the port is there.
            let before = run(lab, mode);
            assert!(before.ledger.is_balanced());
            lab.remove_port(port(lab, "dut:out0")).unwrap();
            let record = run(lab, mode);
            assert!(record.ledger.is_balanced(), "{:#?}", record.ledger);
            let losses: Vec<_> =
                record.ledger.dropped.iter().map(|d| (d.at.as_str(), d.reason.as_str(), d.frames)).collect();
            assert_eq!(losses, [("dut:rx0", "exception: XDP_ABORTED", FRAMES)], "{mode}");
        });
    }
}

#[test]
fn traffic_may_be_given_by_time() {
    let text = path(TO_OUT, SINK, "flows = 2").replace(&format!("frames = {FRAMES},"), "duration = \"200ms\",");
    with_lab("ledger.toml", &text, |lab| {
        let record = run(lab, Native);
        assert!(record.ledger.is_balanced() && record.ledger.offered > 100, "{:#?}", record.ledger);
    });
}

/// Sends bursts of 256 until a ring overflows, which depends on when ksoftirqd takes over.
fn overflow(mode: XdpMode) {
    with_lab("ledger.toml", &path(TO_OUT, SINK, "batch = 256"), |lab| {
        let deadline = Instant::now() + Duration::from_secs(100);
        let options = RunOptions { frames: Some(1_000_000), batch: Some(256), ..RunOptions::default() };
        loop {
            let record = scenario(lab, "s", mode, &options).unwrap();
            assert!(record.ledger.is_balanced(), "{:#?}", record.ledger);
            let losses: Vec<_> = record.ledger.dropped.iter().filter(|d| !d.by_verdict).collect();
            if !losses.is_empty() {
                // In generic mode the second hop's loss is a freed buffer; the first hop is the source's in both modes.
                let known = |reason: &str| reason == "devmap: ring full" || reason.starts_with("skb: ");
                assert!(losses.iter().all(|d| known(&d.reason)), "{losses:#?}");
                return;
            }
            assert!(Instant::now() < deadline, "no run lost a frame");
        }
    });
}

#[test]
fn a_burst_larger_than_the_ring_overflows_it_and_balances() {
    overflow(Native);
}

#[test]
fn a_burst_larger_than_the_ring_overflows_it_in_generic_mode_too() {
    overflow(Generic);
}

#[test]
fn frames_of_other_origin_are_told_apart() {
    use pnet::datalink::{Channel, NetworkInterface, linux};
    with_lab("ledger.toml", &path(TO_OUT, SINK, "flows = 1"), |lab| {
        let before = lab.read().unwrap();
        // Not UDP, not marked, to the sink's MAC and to everyone.
        let stranger: Vec<u8> = [[0xff; 12].as_slice(), &[0x88, 0xb5], &[0x5a; 60]].concat();
        lab.in_node(port(lab, "dut:out0"), || {
            let interface = NetworkInterface {
                name: "out0".into(),
                description: String::new(),
                index: 1002,
                mac: None,
                ips: Vec::new(),
                flags: 0,
            };
            let Ok(Channel::Ethernet(mut sender, _)) = linux::channel(&interface, linux::Config::default()) else {
                panic!("no channel")
            };
            for _ in 0..7 {
                sender.send_to(&stranger, None).unwrap().unwrap();
            }
        })
        .unwrap();
        let seen = lab.read().unwrap().since(&before);
        let sink = seen.ports[port(lab, "sink:in0").0].counters;
        assert_eq!((sink.foreign, sink.ours), (7, 0));
        let record = run(lab, Native);
        assert!(record.ledger.is_balanced());
        assert_eq!(record.ledger.delivered["sink:in0"], FRAMES);
    });
}

#[test]
fn a_send_back_to_a_port_that_does_not_poll_is_lost() {
    let text = r#"
name = "back"
[nodes.gen]
[nodes.dut]
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[programs.back]
builtin = "tx"
attach = ["dut:rx0"]
[[scenarios]]
name = "s"
modes = ["native"]
traffic = { from = "gen:tx0", frames = 6400 }
expect = { deliver = ["gen:tx0"], lost = 6400 }
"#;
    let mut shown = String::new();
    with_lab("ledger.toml", text, |lab| shown = ledger(&run(lab, Native)));
    insta::assert_snapshot!(shown);
}

/// dut:rx0 broadcasts to three sinks.
fn star() -> String {
    let mut text = String::from(
        "name = \"star\"\n[nodes.gen]\n[nodes.dut]\n[[links]]\nkind = \"veth\"\nends = [\"gen:tx0\", \"dut:rx0\"]\n",
    );
    for n in 0..3 {
        text += &format!("[nodes.s{n}]\n[[links]]\nkind = \"veth\"\nends = [\"dut:out{n}\", \"s{n}:in0\"]\n");
    }
    text += &format!(
        r#"
[programs.broadcast]
builtin = "broadcast"
attach = ["dut:rx0"]
maps.tx_ports = ["dut:out0", "dut:out1", "dut:out2"]
[programs.sink]
builtin = "sink"
attach = ["s0:in0", "s1:in0", "s2:in0"]
[[scenarios]]
name = "s"
modes = ["native", "generic"]
traffic = {{ from = "gen:tx0", frames = {FRAMES} }}
expect = {{ deliver = ["s0:in0", "s1:in0", "s2:in0"], clones = {} }}
"#,
        2 * FRAMES
    );
    text
}

#[test]
fn a_broadcast_makes_one_clone_less_than_copies() {
    insta::assert_snapshot!(both(&star(), |_| {}));
}

#[test]
fn a_broadcast_skips_a_port_that_is_down_and_the_ledger_shows_it() {
    let mut shown = String::new();
    with_lab("ledger.toml", &star(), |lab| {
        lab.set_port_up(port(lab, "dut:out1"), false).unwrap();
        shown = ledger(&run(lab, Native));
    });
    insta::assert_snapshot!(shown);
}

#[test]
fn a_bridge_carries_frames_to_the_one_that_they_are_for() {
    let text = r#"
name = "bridged"
[nodes.gen]
[nodes.a]
[nodes.b]
[[links]]
kind = "bridge"
ends = ["gen:tx0", "a:in0", "b:in0"]
[programs.sink]
builtin = "sink"
attach = ["a:in0", "b:in0"]
[[scenarios]]
name = "s"
modes = ["native"]
traffic = { from = "gen:tx0", frames = 6400 }
expect = { deliver = ["b:in0"] }
"#;
    with_lab("ledger.toml", text, |lab| {
        let record = run(lab, Native);
        assert_eq!((record.ledger.delivered["a:in0"], record.ledger.delivered["b:in0"]), (0, FRAMES));
        assert!(record.ledger.is_balanced());
        assert_eq!(record.verdict, xdplab::record::Verdict::Pass, "{:#?}", record.checks);
    });
}

#[test]
fn the_packet_engine_is_accounted_for_as_well() {
    insta::assert_snapshot!(both(&path(TO_OUT, SINK, "engine = \"packet\", flows = 5"), |_| {}));
}

#[test]
fn ipv6_frames_are_accounted_for_as_well() {
    insta::assert_snapshot!(both(&path(TO_OUT, SINK, "ip = 6, flows = 4"), |_| {}));
}

/// A user's program in the place of the lab's: `verdict` of fixtures/objects/test/user.o returns its global.
fn users(verdict: u32) -> String {
    format!(
        r#"
name = "users"
[nodes.gen]
[nodes.dut]
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[programs.mine]
object = "{}/fixtures/objects/test/user.o"
program = "verdict"
attach = ["dut:rx0"]
globals.VERDICT = {verdict}
[[scenarios]]
name = "s"
modes = ["native", "generic"]
traffic = {{ from = "gen:tx0", frames = {FRAMES} }}
expect = {{ lost = {FRAMES} }}
"#,
        env!("CARGO_MANIFEST_DIR")
    )
}

#[test]
fn a_users_drop_is_a_verdict() {
    insta::assert_snapshot!(both(&users(1), |_| {}));
}

#[test]
fn a_users_pass_is_a_delivery_to_the_stack() {
    insta::assert_snapshot!(both(&users(2), |_| {}));
}

#[test]
fn a_users_abort_is_a_loss() {
    insta::assert_snapshot!(both(&users(0), |_| {}));
}

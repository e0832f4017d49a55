//! Several CPUs that send at once: every frame arrives once, and in order, whichever CPU sent it.

use xdplab::{
    lab::LabError,
    record::Verdict,
    run::{RunOptions, Silent, run},
    topology::{self, Topology},
    traffic::{Stop, cpu},
    xdp::XdpMode::{Generic, Native},
};

/// Two targets that share the flows, behind links with a queue a sender.
pub(crate) fn shared(senders: usize) -> Topology {
    let text = format!(
        r#"
name = "senders"
[nodes.gen.ports.tx0]
queues = 2
[nodes.dut.ports]
rx0 = {{ queues = 2 }}
out0 = {{ queues = 2 }}
out1 = {{ queues = 2 }}
[nodes.a.ports.in0]
queues = 2
[nodes.b.ports.in0]
queues = 2
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[[links]]
kind = "veth"
ends = ["dut:out0", "a:in0"]
[[links]]
kind = "veth"
ends = ["dut:out1", "b:in0"]
[programs.redirect]
builtin = "redirect_map"
attach = ["dut:rx0"]
maps.tx_ports = ["dut:out0", "dut:out1"]
[programs.sink]
builtin = "sink"
attach = ["a:in0", "b:in0"]
[[scenarios]]
name = "s"
modes = ["native", "generic"]
traffic = {{ from = "gen:tx0", flows = 128, senders = {senders}, frames = 25_600 }}
expect = {{ deliver = ["a:in0", "b:in0"] }}
perf = {{}}
"#
    );
    topology::parse("senders.toml".as_ref(), &text).unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn two_cpus_send_each_its_flows_and_all_arrive() {
    if !xdplab::testing::has("root") {
        return;
    }
    if cpu::usable().len() < 2 {
        return too_few(2);
    }
    let options = RunOptions { no_pricing: true, ..RunOptions::default() };
    let report = run(&shared(2), &options, &Stop::default(), &Silent).unwrap();
    assert_eq!(report.scenarios.iter().map(|s| s.mode).collect::<Vec<_>>(), [Native, Generic]);
    for scenario in &report.scenarios {
        assert_eq!(scenario.verdict, Verdict::Pass, "{scenario:#?}");
        let delivered: Vec<u64> = scenario.ledger.delivered.values().copied().collect();
        // As many flows go either way, and all flows get as many frames.
        assert_eq!(delivered, [12_800, 12_800], "{scenario:#?}");
    }
    assert_eq!(report.fingerprint.0.get("senders of s").map(String::as_str), Some("2"));
}

fn too_few(senders: usize) {
    let error = run(&shared(senders), &RunOptions::default(), &Stop::default(), &Silent).unwrap_err();
    assert!(matches!(error, LabError::TooFewCpus { .. }), "{error}");
    assert!(error.to_string().contains("lower traffic.senders"), "{error}");
}

#[test]
fn more_senders_than_cpus_are_refused() {
    if xdplab::testing::has("root") {
        too_few(cpu::usable().len() + 1);
    }
}

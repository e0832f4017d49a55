//! The topologies that ship, with fewer frames: every scenario in every mode, its ledger and its checks.

use xdplab::{
    Lab,
    record::Verdict,
    report::text,
    run::{RunOptions, scenario},
    testing::with_lab,
    xdp::XdpMode::{Generic, Native},
};

use crate::{kernel, program::traits::verifier_takes_traits};

/// Frames of each scenario: a multiple of 98, the number of leaves of the largest star.
const FRAMES: u64 = 9_800;

/// Runs everything that the file has; what is shown is the same on every machine.
fn all(lab: &mut Lab) -> String {
    let options = RunOptions { frames: Some(FRAMES), ..RunOptions::default() };
    let mut shown = String::new();
    for spec in lab.topology().scenarios.clone() {
        for mode in spec.modes {
            let mut record = scenario(lab, &spec.name, mode, &options).unwrap_or_else(|error| panic!("{error:?}"));
            assert_eq!(record.verdict, Verdict::Pass, "{} ({mode}): {:#?}", spec.name, record);
            // How many ICMP answers a stack gives is a matter of its rate limit.
            record.ledger.foreign = 0;
            shown += &format!("{} ({mode})\n{}", spec.name, text::ledger(&record.ledger, record.clones));
        }
    }
    shown
}

#[xdplab::test(topology = "topologies/drop.toml")]
fn drop(lab: &mut Lab) {
    insta::assert_snapshot!(all(lab));
}

#[xdplab::test(topology = "topologies/redirect-veth.toml")]
fn redirect_veth(lab: &mut Lab) {
    insta::assert_snapshot!(all(lab));
}

#[xdplab::test(topology = "topologies/i40e-i40e.toml")]
fn i40e_i40e(lab: &mut Lab) {
    insta::assert_snapshot!(all(lab));
}

#[xdplab::test(topology = "topologies/i40e-veth.toml")]
fn i40e_veth(lab: &mut Lab) {
    insta::assert_snapshot!(all(lab));
}

#[xdplab::test(topology = "topologies/i40e-multiqueue.toml")]
fn i40e_multiqueue(lab: &mut Lab) {
    if xdplab::traffic::cpu::usable().len() < 2 {
        // What that says is tested where senders are.
        return;
    }
    insta::assert_snapshot!(all(lab));
}

#[xdplab::test(topology = "topologies/broadcast-veth.toml")]
fn broadcast_veth(lab: &mut Lab) {
    insta::assert_snapshot!(all(lab));
}

#[xdplab::test(topology = "topologies/i40e-mlx4-veth.toml")]
fn i40e_mlx4_veth(lab: &mut Lab) {
    insta::assert_snapshot!(all(lab));
}

#[xdplab::test(topology = "topologies/cpumap-veth.toml")]
fn cpumap_veth(lab: &mut Lab) {
    // Before 6.15 a cpumap's program saw no frame of a batch behind the first that it dropped, in generic mode.
    if kernel::version() < (6, 15) {
        let options = RunOptions { frames: Some(FRAMES), ..RunOptions::default() };
        let (stack, program) = ("cpumap to the stack", "cpumap, dropped by its program");
        for (name, mode) in [(stack, Generic), (stack, Native), (program, Native)] {
            let record = scenario(lab, name, mode, &options).unwrap_or_else(|error| panic!("{error:?}"));
            assert_eq!(record.verdict, Verdict::Pass, "{name} ({mode}): {record:#?}");
        }
        let record = scenario(lab, program, Generic, &options).unwrap_or_else(|error| panic!("{error:?}"));
        assert!(record.ledger.is_balanced() && record.ledger.dropped.iter().all(|drop| drop.by_verdict), "{record:#?}");
        let whole = record.ledger.dropped.iter().map(|drop| drop.frames).sum::<u64>() == FRAMES;
        assert!(whole || record.notes.iter().any(|note| note.contains("before 6.15")), "{record:#?}");
        return;
    }
    insta::assert_snapshot!(all(lab));
}

#[test]
fn a_cpumap_takes_every_cpu_that_there_is_and_no_other() {
    if !xdplab::testing::has("root") {
        return;
    }
    let options = RunOptions { frames: Some(FRAMES), ..RunOptions::default() };
    let text = include_str!("../../topologies/cpumap-veth.toml");
    let on = |cpu: u32| {
        let text = text.replacen("builtin = \"cpumap\"\n", &format!("builtin = \"cpumap\"\noptions.cpu = {cpu}\n"), 1);
        let topology = xdplab::topology::parse("cpumap.toml".as_ref(), &text).unwrap();
        let mut lab = Lab::new(&topology).unwrap();
        scenario(&mut lab, "cpumap to the stack", xdplab::xdp::XdpMode::Native, &options)
    };
    for cpu in xdplab::traffic::cpu::usable() {
        let record = on(cpu as u32).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(record.verdict, Verdict::Pass, "CPU {cpu}: {record:#?}");
    }
    let error = on(4_000).unwrap_err();
    assert!(error.is_of_the_input(), "{error}");
    assert!(error.to_string().starts_with("options.cpu: this host has no CPU 4000: it has 0 to "), "{error}");
}

#[test]
fn traits_veth() {
    if !verifier_takes_traits() {
        return;
    }
    let mut shown = String::new();
    with_lab("topologies/traits-veth.toml", include_str!("../../topologies/traits-veth.toml"), |lab| shown = all(lab));
    insta::assert_snapshot!(shown);
}

#[xdplab::test(topology = "topologies/published/drop-i40e.toml")]
fn published_drop(lab: &mut Lab) {
    insta::assert_snapshot!(all(lab));
}

#[xdplab::test(topology = "topologies/published/redirect-i40e-veth.toml")]
fn published_redirect(lab: &mut Lab) {
    insta::assert_snapshot!(all(lab));
}

#[xdplab::test(topology = "topologies/published/broadcast-i40e-mlx4-veth.toml")]
fn published_broadcast(lab: &mut Lab) {
    insta::assert_snapshot!(all(lab));
}

#[xdplab::test(topology = "topologies/published/flow-i40e.toml")]
fn published_flow(lab: &mut Lab) {
    insta::assert_snapshot!(all(lab));
}

#[xdplab::test(topology = "topologies/star-100.toml")]
fn star_100(lab: &mut Lab) {
    // A hundred ledger rows say no more than their sums.
    let shown = all(lab);
    assert_eq!(shown.matches("leaf01:in0").count(), shown.matches("leaf98:in0").count());
}

#[xdplab::test(topology = "topologies/redirect-veth.toml")]
async fn an_async_test_may_use_a_lab_too(lab: &Lab) {
    tokio::task::yield_now().await;
    assert_eq!(lab.installed().len(), lab.topology().programs.len());
}

#[xdplab::test(topology = "topologies/xsk-veth.toml")]
fn xsk_veth(lab: &mut Lab) {
    insta::assert_snapshot!(all(lab));
}

//! `#[xdplab::test]` beyond the topologies that ship: a topology in the test itself, a need, a panic.

use xdplab::{
    Lab,
    run::{self, RunOptions},
    xdp::XdpMode,
};

#[xdplab::test(
    topology_text = r#"
        name = "small"
        [nodes.gen]
        [nodes.dut]
        [[links]]
        kind = "veth"
        ends = ["gen:tx0", "dut:rx0"]
        [programs.drop]
        builtin = "drop"
        attach = ["dut:rx0"]
        [[scenarios]]
        name = "drop"
        traffic = { from = "gen:tx0", frame-bytes = 64, frames = 6_400 }
        expect = { drop = ["dut:rx0"], lost = 0 }
    "#,
    needs = ["root"]
)]
async fn an_async_test_runs_a_scenario(lab: &mut Lab) {
    // Sleeping works on a tokio runtime only.
    tokio::time::sleep(std::time::Duration::ZERO).await;
    let record = run::scenario(lab, "drop", XdpMode::Native, &RunOptions::default()).expect("a scenario");
    assert_eq!((record.ledger.offered, record.ledger.unaccounted), (6_400, 0));
}

#[xdplab::test(topology = "topologies/drop.toml")]
#[should_panic(expected = "seen by the runner")]
fn a_panic_is_seen_by_the_runner(_lab: &Lab) {
    panic!("seen by the runner");
}

#[xdplab::test(topology = "topologies/drop.toml", needs = ["rooot"])]
#[should_panic(expected = "`rooot` is no ability")]
fn a_need_that_nothing_is_called_is_a_failure(_lab: &Lab) {}

//! Frames across cables of NICs: the scenarios of the virtual tier, where drivers and interrupts are real.

use xdplab::{
    Lab,
    drivers::Kernel,
    host::hypervisor,
    lab::{LabError, NicChoice},
    record::Verdict,
    run::{RunOptions, Silent, run},
    traffic::Stop,
    xdp::XdpMode,
};

use super::{HOST, assert_as_before, cable, on_nics, parsed, state, text};

fn every_frame_is_accounted_for(driver: &str, modes: &str, engine: &str) {
    let Some(nics) = cable(driver) else { return };
    let before = nics.each_ref().map(state);
    let topology = parsed(&text("traffic", driver, modes, engine));
    let options = RunOptions { nics: NicChoice::Physical, host: HOST.clone(), ..RunOptions::default() };
    let report = run(&topology, &options, &Stop::default(), &Silent).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.links[0].made_of, driver);
    assert_eq!(report.links[0].nics.as_ref().map(Vec::len), Some(2));
    for scenario in &report.scenarios {
        assert_eq!(scenario.verdict, Verdict::Pass, "{scenario:#?}");
        assert_eq!((scenario.ledger.offered, scenario.ledger.unaccounted), (2000, 0), "{scenario:#?}");
        assert_eq!(scenario.ledger.delivered.get("sink:in0"), Some(&2000), "{scenario:#?}");
    }
    assert_as_before(&before, &nics);
}

#[test]
fn virtio_net_redirects_native_and_generic() {
    every_frame_is_accounted_for("virtio_net", "\"native\", \"generic\"", "live");
}

#[test]
fn virtio_net_takes_what_a_peers_stack_would_send() {
    every_frame_is_accounted_for("virtio_net", "\"native\"", "packet");
}

/// The driver runs native programs since Linux 6.6. Before, it says so itself, and the rest is tried all the same.
#[test]
fn vmxnet3_redirects_native_and_generic() {
    if Kernel::running().is_none_or(|kernel| kernel >= Kernel(6, 6)) {
        return every_frame_is_accounted_for("vmxnet3", "\"native\", \"generic\"", "live");
    }
    native_is_refused_in_the_drivers_words("vmxnet3");
    every_frame_is_accounted_for("vmxnet3", "\"generic\"", "packet");
    xdplab::testing::lacks("vmxnet3-native");
}

#[test]
fn e1000e_redirects_generic() {
    every_frame_is_accounted_for("e1000e", "\"generic\"", "packet");
}

#[test]
fn e1000e_refuses_native_in_its_own_words() {
    native_is_refused_in_the_drivers_words("e1000e");
}

fn native_is_refused_in_the_drivers_words(driver: &str) {
    let Some(nics) = cable(driver) else { return };
    let before = nics.each_ref().map(state);
    let topology = parsed(&text("refused", driver, "\"native\"", "packet"));
    let mut lab = Lab::on(&topology, &on_nics(&topology, &HOST)).unwrap();
    let error = lab.install(Some(&topology.scenarios[0]), XdpMode::Native, true).unwrap_err();
    let LabError::Attach { port, mode, source, .. } = &error else { panic!("{error:?}") };
    assert_eq!((port.as_str(), *mode), ("dut:rx0", XdpMode::Native));
    assert!(!source.to_string().is_empty(), "{error:?}");
    drop(lab);
    assert_as_before(&before, &nics);
}

#[test]
fn a_price_over_nics_says_whether_it_is_the_receivers() {
    let Some(nics) = cable("virtio_net") else { return };
    let before = nics.each_ref().map(state);
    let text = text("priced", "virtio_net", "\"native\"", "live") + "perf = { min-mpps = { virtio_net = 0.000001 } }\n";
    let options = RunOptions { nics: NicChoice::Physical, host: HOST.clone(), ..RunOptions::default() };
    let report = run(&parsed(&text), &options, &Stop::default(), &Silent).unwrap_or_else(|error| panic!("{error}"));
    let [scenario] = report.scenarios.as_slice() else { panic!("{report:#?}") };
    let (Some(cost), Some(seen)) = (&scenario.cost, &scenario.saturation) else { panic!("{scenario:#?}") };
    assert!(cost.ns > 0.0 && seen.received_mpps > 0.0 && !seen.cpus.is_empty(), "{scenario:#?}");
    assert_eq!(seen.proven, seen.lacks.is_empty());
    let check = scenario.checks.iter().find(|check| check.what == "min-mpps virtio_net").unwrap();
    // Any rate is over the limit: it is the proof alone that decides, and a real processor.
    let decided = seen.proven && !hypervisor::is_emulated();
    assert_eq!((check.ok, check.undecided), (decided, !decided), "{scenario:#?}");
    let verdict = if decided { Verdict::Pass } else { Verdict::Inconclusive };
    assert_eq!(scenario.verdict, verdict, "{scenario:#?}");
    assert_as_before(&before, &nics);
}

//! Polls of NAPI, by which a receiver behind a NIC is shown to be saturated: the kernel tells of each, with its frames.

use xdplab::{
    lab::SourceKey,
    program::watch::EventSet,
    testing::with_lab,
    topology::Amount,
    traffic::{
        Stop, frame_spec,
        live::{self, Live},
    },
    xdp::XdpMode::Native,
};
use xdplab_wire::records::event;

const FRAMES: u64 = 6_400;

const TEXT: &str = r#"
name = "polls"
[nodes.gen]
[nodes.dut]
[[links]]
kind = "veth"
ends = ["gen:tx0", "dut:rx0"]
[programs.drop]
builtin = "drop"
attach = ["dut:rx0"]
[[scenarios]]
name = "s"
traffic = { from = "gen:tx0", frames = 6400 }
expect = { drop = ["dut:rx0"] }
"#;

#[test]
fn every_frame_is_in_a_poll_and_bursts_fill_them() {
    with_lab("polls.toml", TEXT, |lab| {
        let topology = lab.topology().clone();
        let scenario = &topology.scenarios[0];
        lab.install(Some(scenario), Native, false).unwrap();
        lab.watch(EventSet::Polls).unwrap();
        let spec = frame_spec(&topology, &scenario.traffic, &[], lab.instance().number).unwrap();
        let key = SourceKey::of(&scenario.traffic, &spec).unwrap();
        let before = lab.read().unwrap();
        let stop = Stop::default();
        assert_eq!(live::send(lab, &Live::new(&key, Amount::Frames(FRAMES), 64, &stop)).unwrap(), FRAMES);
        let seen = lab.read().unwrap().since(&before);
        let to = topology.find_port("dut:rx0").unwrap().0 as u32;
        let polls = |what: u32| -> u64 {
            let of = seen.events.iter().filter(|(key, _)| (key.event, key.slot, key.other) == (event::POLL, to, what));
            of.map(|(_, n)| n).sum()
        };
        assert_eq!(polls(event::POLL_FRAMES), FRAMES, "{:?}", seen.events);
        let (count, full) = (polls(event::POLL_COUNT), polls(event::POLL_FULL));
        // A batch of 64 is a whole budget, but for those that a timer's softirq cuts short.
        assert!(full > 0 && full <= count && count >= FRAMES / 64, "{count} polls, {full} of them full");
    });
}

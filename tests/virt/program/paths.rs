//! Live frames from `source` along real veth pairs, counted at every hop.

use xdplab::topology::Builtin;
use xdplab_wire::records::STAMP_EVERY;

use super::{
    frames::template,
    net::{attach, builtin, in_namespace, loaded, send, source, to_ports, veth},
};

const FRAMES: u32 = 100_000;

#[test]
fn every_frame_of_the_source_is_dropped_and_counted() {
    in_namespace(|| {
        veth(0);
        let drop = loaded(&builtin(Builtin::Drop), 2, 1);
        let _link = attach(&drop, 1);
        let source = source(&template(false, 60), 1, 0);
        send(&source, FRAMES, || drop.counters().unwrap().unwrap()[1].ours);
        let state = source.state().unwrap();
        assert_eq!(state.offered, u64::from(FRAMES));
        assert_eq!(state.sequence, FRAMES);
        assert!(state.last.ns > state.first.ns, "{state:?}");
        let counters = drop.counters().unwrap().unwrap();
        assert_eq!(counters[1].ours, u64::from(FRAMES), "{counters:?}");
        assert_eq!((counters[1].corrupted, counters[1].foreign, counters[0].ours), (0, 0, 0));
    });
}

#[test]
fn flows_are_spread_over_targets_and_arrive_in_order() {
    for (ipv6, length) in [(false, 60), (false, 1514), (true, 78), (true, 200)] {
        in_namespace(|| {
            // 0 -> 1 redirects to 2 or 4 -> 3 or 5.
            (0..3).for_each(veth);
            let redirect = loaded(&to_ports(Builtin::RedirectMap, &[2, 4]), 6, 7);
            let sink = loaded(&builtin(Builtin::Sink), 6, 7);
            let _links = [attach(&redirect, 1), attach(&sink, 3), attach(&sink, 5)];
            let source = source(&template(ipv6, length), 7, 0);
            let seen = || sink.counters().unwrap().unwrap();
            send(&source, 7_000, || seen().iter().map(|port| port.ours).sum());
            let seen = seen();
            // Flows 0, 2, 4, 6 to the first target, 1, 3, 5 to the second.
            assert_eq!((seen[3].ours, seen[5].ours), (4_000, 3_000), "{seen:?}");
            assert!(
                seen.iter().all(|port| port.duplicated + port.reordered + port.corrupted + port.foreign == 0),
                "{seen:?}"
            );
            assert_eq!(seen[3].last.frames, (4_000 - 1) / STAMP_EVERY * STAMP_EVERY + 1);
            assert_eq!(redirect.counters().unwrap().unwrap()[1].ours, 7_000);
        });
    }
}

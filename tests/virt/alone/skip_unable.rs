//! What a native broadcast skips can't time a window.

use xdplab::{
    run::{RunOptions, Silent, run},
    topology::parse,
    traffic::Stop,
    xdp::XdpMode::Native,
};

use crate::skip_unable::{broadcast, devices_tell};

#[test]
fn a_price_is_taken_where_frames_arrive() {
    if !devices_tell() || !xdplab::testing::has("root") {
        return;
    }
    let text = broadcast("skip-unable = true").replace("[[scenarios]]", "[[scenarios]]\nperf = {}");
    let topology = parse("skip.toml".as_ref(), &text).unwrap();
    let report =
        run(&topology, &RunOptions::default(), &Stop::default(), &Silent).unwrap_or_else(|error| panic!("{error:?}"));
    let native = report.scenarios.iter().find(|record| record.mode == Native).unwrap();
    assert!(native.cost.is_some(), "{native:#?}");
    assert!(native.notes.iter().any(|note| note == "timed by the sink's clock at b:in0"), "{:?}", native.notes);
}

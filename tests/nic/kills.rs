//! A process that is killed leaves its NICs to `gc`, which puts them back as they were.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::{assert_as_before, cable, state, text, words, xdplab};

/// How often each kind is killed: `XDPLAB_KILLS`, or so often.
const KILLS: u32 = 4;

fn killed_at_random(verb: &str, further: &[&str]) {
    let Some(nics) = cable("virtio_net") else { return };
    let before = nics.each_ref().map(state);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("killed.toml");
    fs::write(&file, text("killed", "virtio_net", "\"native\"", "live")).unwrap();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xdplab"));
        command.arg(verb).arg(&file).args(["--nics", "physical"]).args(further);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    // Once to the end: the moments are spread over as long as that takes.
    let at = Instant::now();
    assert!(start().wait().unwrap().success());
    let whole = at.elapsed();
    let _ = xdplab(&["down", "killed"]);
    let kills = std::env::var("XDPLAB_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let mut dice = fastrand::Rng::with_seed(u64::from(kills));
    for kill in 0..kills {
        let mut child = start();
        let moment = whole.mul_f64(dice.f64());
        std::thread::sleep(moment);
        let _ = child.kill();
        child.wait().unwrap();
        let gc = xdplab(&["gc"]);
        assert!(gc.status.success(), "kill {kill} after {moment:?}: {}", words(&gc));
        // One that was whole by then is no dead lab.
        let _ = xdplab(&["down", "killed"]);
        assert_as_before(&before, &nics);
        assert!(!Path::new("/run/xdplab").exists(), "kill {kill} after {moment:?}");
    }
    // Nothing of it is still going on: there is nothing to wait for, so it is looked for once more a moment later.
    std::thread::sleep(Duration::from_millis(10));
    assert_as_before(&before, &nics);
}

#[test]
fn a_killed_up_leaves_nothing() {
    killed_at_random("up", &[]);
}

#[test]
fn a_killed_run_leaves_nothing() {
    killed_at_random("run", &["--no-pricing"]);
}

//! Bad days that must end well.

use std::{
    fs,
    io::Read as _,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use xdplab::{host::netns::Netns, record::Report};

use crate::command::{Bench, small};

fn object(name: &str) -> String {
    format!("{}/fixtures/objects/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn with_object(name: &str, object: &str, program: &str) -> String {
    small(name).replace("builtin = \"drop\"", &format!("object = \"{object}\"\nprogram = \"{program}\""))
}

#[test]
fn without_root_the_command_says_what_it_needs() {
    let bench = Bench::new();
    let file = bench.file("t.toml", &small("norootlab"));
    for arguments in [["run", &file], ["up", &file], ["down", "norootlab"]] {
        let output = bench.xdplab(&arguments).uid(65_534).gid(65_534).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        // The file itself may be out of reach for nobody; then that is said, which is right as well.
        let said = text.contains("needs root") && output.status.code() == Some(5);
        let unreadable = text.contains("read topology file") && output.status.code() == Some(2);
        assert!(said || unreadable, "{arguments:?}: {:?} {text}", output.status);
    }
    let output = bench.xdplab(&["down", "norootlab"]).uid(65_534).gid(65_534).output().unwrap();
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn wrong_objects_end_with_code_2_and_leave_nothing() {
    let bench = Bench::new();
    let whole = fs::read(object("test/user.o")).unwrap();
    let corrupt = bench.dir.path().join("corrupt.o");
    fs::write(&corrupt, &whole[..whole.len() / 2]).unwrap();
    let cases = [
        (object("test/none.o"), "x", "No such file"),
        (corrupt.display().to_string(), "verdict", "damaged"),
        (object("test/rejected.o"), "reads_beyond", "the verifier rejected"),
        (object("test/section.o"), "known", "mystery/ingress"),
        (object("test/kfunc.o"), "asks_for_the_time", "kernel function"),
        (object("test/user.o"), "nothing", "no XDP program \"nothing\""),
    ];
    for (path, program, words) in cases {
        let file = bench.file("t.toml", &with_object("wrongobject", &path, program));
        for verb in ["run", "up"] {
            let text = bench.ends_with(2, &[verb, &file]);
            assert!(text.contains(words), "{verb} {path}: {text}");
        }
        bench.nothing_is_left("wrongobject");
    }
}

#[test]
fn a_name_has_one_persistent_lab() {
    let bench = Bench::new();
    let file = bench.file("t.toml", &small("onlyone"));
    bench.ends_with(0, &["up", &file]);
    assert!(bench.ends_with(2, &["up", &file]).contains("is up already"));
    assert!(bench.ends_with(0, &["ls"]).contains("onlyone"));
    let inspected = bench.ends_with(0, &["inspect", "onlyone", "--format", "json"]);
    assert!(serde_json::from_str::<serde_json::Value>(&inspected).is_ok(), "{inspected}");
    bench.ends_with(7, &["exec", "onlyone", "dut", "--", "sh", "-c", "test -e /sys/class/net/rx0 && exit 7"]);
    assert!(bench.ends_with(2, &["exec", "onlyone", "nowhere", "--", "true"]).contains("it has gen, dut"));
    // An instance of the same topology beside it.
    bench.ends_with(0, &["run", &file]);
    bench.ends_with(0, &["down", "onlyone"]);
    assert!(bench.ends_with(2, &["down", "onlyone"]).contains("no lab \"onlyone\""));
    assert!(bench.ends_with(2, &["down", "../etc"]).contains("no lab"));
    bench.nothing_is_left("onlyone");
}

#[test]
fn a_node_taken_away_by_hand_does_not_keep_the_lab_up() {
    let bench = Bench::new();
    let file = bench.file("t.toml", &small("handtaken"));
    bench.ends_with(0, &["up", &file]);
    Netns::delete_named("handtaken.dut").unwrap();
    assert!(bench.ends_with(0, &["inspect", "handtaken"]).contains("node dut is gone"));
    bench.ends_with(0, &["down", "handtaken"]);
    bench.nothing_is_left("handtaken");
}

#[test]
fn a_namespace_of_somebody_else_is_never_taken_away() {
    let bench = Bench::new();
    let file = bench.file("t.toml", &small("strangers"));
    // As new as can be: nothing in it says whose it is.
    let theirs = || {
        let made = Command::new("ip").args(["netns", "add", "strangers.dut"]).status().expect("ip");
        assert!(made.success());
    };
    theirs();
    let text = bench.ends_with(2, &["up", &file]);
    assert!(text.contains("strangers.dut exists already"), "{text}");
    bench.ends_with(0, &["gc"]);
    assert!(Netns::exists_named("strangers.dut"), "it was somebody else's");
    // And in the place of one that was the lab's.
    Netns::delete_named("strangers.dut").unwrap();
    bench.ends_with(0, &["up", &file]);
    Netns::delete_named("strangers.dut").unwrap();
    theirs();
    bench.ends_with(0, &["down", "strangers"]);
    assert!(Netns::exists_named("strangers.dut"), "it was somebody else's");
    Netns::delete_named("strangers.dut").unwrap();
    bench.nothing_is_left("strangers");
}

#[test]
fn a_full_disk_under_the_journal_is_said_before_anything_is_made() {
    let bench = Bench::new();
    let run = bench.run_dir();
    fs::create_dir_all(&run).unwrap();
    mount(Some("tmpfs"), &run, Some("tmpfs"), MsFlags::empty(), Some("size=16k")).unwrap();
    let file = bench.file("t.toml", &small("fulldisk"));
    // Everything but the last few bytes is taken.
    let filler = run.join(".filler");
    let _ = fs::write(&filler, vec![0; 1 << 20]);
    let text = bench.ends_with(5, &["up", &file]);
    let named = Netns::exists_named("fulldisk.gen");
    fs::remove_file(&filler).unwrap();
    bench.output(&["gc"]);
    umount2(&run, MntFlags::empty()).unwrap();
    assert!(text.contains("No space left"), "{text}");
    assert!(!named);
}

#[test]
fn an_interrupt_settles_reports_and_takes_down() {
    let bench = Bench::new();
    let file = bench.file("t.toml", &small("interrupted"));
    // It sends after at most as long as a whole run takes.
    let start = Instant::now();
    bench.ends_with(0, &["run", &file]);
    let whole = start.elapsed();
    let mut child = bench
        .xdplab(&["run", &file, "--frames", "2000000000", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + whole.max(Duration::from_secs(20));
    // At work once its journal stands; a moment later it sends. It may have one CPU with this: nothing spins.
    while !bench.run_dir().read_dir().is_ok_and(|d| d.flatten().any(|e| e.file_name().to_string_lossy().contains('@')))
    {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(1));
    }
    let sending = Instant::now() + whole + Duration::from_secs(1);
    while Instant::now() < sending {
        thread::sleep(Duration::from_millis(1));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let mut json = String::new();
    child.stdout.take().unwrap().read_to_string(&mut json).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report: Report = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let ledger = &report.scenarios[0].ledger;
    assert!(ledger.is_balanced() && ledger.offered > 0 && ledger.offered < 2_000_000_000, "{ledger:?}");
    bench.nothing_is_left("interrupted");
}

#[test]
fn eight_labs_at_once_do_not_meet() {
    let bench = Bench::new();
    let labs: Vec<String> = (0..8).map(|n| format!("atonce{n}")).collect();
    let files: Vec<String> = labs.iter().map(|lab| bench.file(&format!("{lab}.toml"), &small(lab))).collect();
    let all = |jobs: Vec<Vec<&str>>| {
        let children: Vec<_> =
            jobs.iter().map(|job| bench.xdplab(job).stdout(Stdio::null()).spawn().unwrap()).collect();
        for (mut child, job) in children.into_iter().zip(jobs) {
            assert!(child.wait().unwrap().success(), "{job:?}");
        }
    };
    all(files.iter().map(|file| vec!["up", file.as_str()]).collect());
    all(files.iter().map(|file| vec!["run", file.as_str(), "--no-pricing"]).collect());
    all(labs.iter().map(|lab| vec!["down", lab.as_str()]).collect());
    bench.nothing_is_left("atonce0");
}

#[test]
fn killed_at_a_hundred_moments_nothing_is_left_after_gc() {
    let bench = Bench::new();
    let file = bench.file("t.toml", &small("killed"));
    // How long each takes, so that the moments cover all of it.
    let time = |arguments: &[&str]| {
        let start = Instant::now();
        bench.ends_with(0, arguments);
        start.elapsed()
    };
    let (up, down, run) = (time(&["up", &file]), time(&["down", "killed"]), time(&["run", &file]));
    let mut state = 0x853c_49e6_748f_ea9b_u64;
    let mut share = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    for moment in 0..102 {
        let (arguments, whole) = match moment % 3 {
            0 => (vec!["up", file.as_str()], up),
            1 => {
                bench.ends_with(0, &["up", &file]);
                (vec!["down", "killed"], down)
            }
            _ => (vec!["run", file.as_str()], run),
        };
        let mut child = bench.xdplab(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + whole.mul_f64(share());
        while Instant::now() < until {
            thread::yield_now();
        }
        let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
        child.wait().unwrap();
        // A lab that was whole already is no garbage: it goes by `down`.
        bench.ends_with(0, &["gc"]);
        bench.output(&["down", "--all"]);
        bench.nothing_is_left("killed");
    }
}

//! A user's object: its programs, maps and globals, and how a bad one fails.

use std::path::{Path, PathBuf};

use xdplab::{
    program::{LoadContext, ProgramError, XdpProgram, load},
    topology::{Builtin, Datum, MapContents, PortId, ProgramBody, ProgramSource},
};

use super::{
    frames::template,
    net::{attach, builtin, context, in_namespace, loaded, port, send, source, veth},
};

const XDP_ABORTED: u32 = 0;
const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_TX: u32 = 3;

/// A body with an object of fixtures/objects/test.
fn object(name: &str, program: Option<&str>) -> ProgramBody {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/objects/test").join(name);
    ProgramBody {
        source: ProgramSource::Object { path, program: program.map(str::to_owned) },
        ..builtin(Builtin::Drop)
    }
}

/// The object `user.o` with one of its programs.
fn user(program: &str) -> ProgramBody {
    object("user.o", Some(program))
}

fn must_load(body: &ProgramBody) -> XdpProgram {
    loaded(body, 4, 1)
}

/// The message of an object that does not load, with the paths shortened.
fn refused(body: &ProgramBody) -> String {
    let loaded = load(body, &context(4, 1)).and_then(|mut program| program.fill_maps());
    let error = loaded.expect_err("it is refused");
    error.to_string().replace(&format!("{}/fixtures/objects/", env!("CARGO_MANIFEST_DIR")), "")
}

fn with_map(body: ProgramBody, map: &str, contents: MapContents) -> ProgramBody {
    ProgramBody { maps: [(map.to_owned(), contents)].into(), ..body }
}

fn with_global(body: ProgramBody, global: &str, datum: Datum) -> ProgramBody {
    ProgramBody { globals: [(global.to_owned(), datum)].into(), ..body }
}

#[test]
fn globals_are_set_before_the_program_is_loaded() {
    let body = ProgramBody {
        globals: [
            ("VERDICT".to_owned(), Datum::Integer(XDP_TX.into())),
            ("MAC".to_owned(), Datum::Bytes(vec![2, 0, 0, 0, 0, 2])),
        ]
        .into(),
        ..user("verdict")
    };
    let program = must_load(&body);
    let to_that_mac = template(false, 60);
    let to_another = [&[9], &to_that_mac[1..]].concat();
    assert_eq!(program.run_once(&to_that_mac).unwrap().0, XDP_PASS);
    assert_eq!(program.run_once(&to_another).unwrap().0, XDP_TX);
    assert_eq!(must_load(&user("verdict")).run_once(&to_another).unwrap().0, XDP_ABORTED);
}

#[test]
fn maps_are_filled_with_keys_and_values_of_their_sizes() {
    let table = MapContents::Table(vec![(Datum::Integer(0x0800), Datum::Integer(XDP_DROP.into()))]);
    let program = must_load(&with_map(user("verdict"), "table", table));
    assert_eq!(program.run_once(&template(false, 60)).unwrap().0, XDP_DROP);
    assert_eq!(program.run_once(&template(true, 78)).unwrap().0, XDP_ABORTED);
    assert_eq!(program.counters().unwrap(), None);
}

#[test]
fn a_user_s_devmap_takes_ports_and_an_egress_program() {
    in_namespace(|| {
        (0..2).for_each(veth);
        let out = MapContents::List(vec![Datum::Port(PortId(2))]);
        let body = ProgramBody { egress: Some("on_the_way_out".to_owned()), ..with_map(user("forward"), "out", out) };
        let forward = must_load(&body);
        let sink = loaded(&builtin(Builtin::Sink), 4, 1);
        let _links = [attach(&forward, 1), attach(&sink, 3)];
        let counted = || sink.counters().unwrap().unwrap()[3].ours;
        send(&source(&template(false, 60), 1, 0), 640, counted);
        assert_eq!(counted(), 640);
        let _ = port(0);
    });
}

#[test]
fn maps_pinned_by_name_stay_in_the_lab_s_folder() {
    // A bpffs of the test's own, in a mount namespace of its own.
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS | nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
            let private = nix::mount::MsFlags::MS_PRIVATE | nix::mount::MsFlags::MS_REC;
            nix::mount::mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
            nix::mount::mount(Some("bpf"), dir.path(), Some("bpf"), nix::mount::MsFlags::empty(), None::<&str>)
                .unwrap();
            let here = LoadContext { pin_dir: Some(dir.path()), ..context(4, 1) };
            let names = || {
                let mut names: Vec<_> =
                    std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
                // The kernel puts two files of its own there.
                names.retain(|name| !name.to_string_lossy().ends_with(".debug"));
                names.sort();
                names
            };
            let first = load(&user("verdict"), &here).unwrap();
            assert_eq!(names(), ["kept"]);
            first.run_once(&template(false, 60)).unwrap();
            // The second load takes the same map, and the rest can be pinned beside it.
            let second = load(&user("verdict"), &here).unwrap();
            second.run_once(&template(false, 60)).unwrap();
            let rest = dir.path().join("rest");
            std::fs::create_dir(&rest).unwrap();
            second.pin(&rest).unwrap();
            assert!(rest.join("table").exists() && rest.join("kept").exists());
            // A built-in's counters can be read through their pins.
            let inner = dir.path().join("drop");
            std::fs::create_dir(&inner).unwrap();
            let counting = loaded(&builtin(Builtin::Drop), 4, 1);
            counting.pin(&inner).unwrap();
            assert_eq!(
                xdplab::program::pinned_counters(&inner).unwrap(),
                [xdplab_wire::records::PortCounters::default(); 4]
            );
        });
    });
}

#[test]
fn what_an_object_lacks_is_said_with_what_it_has() {
    let port = || Datum::Port(PortId(0));
    insta::assert_snapshot!(refused(&user("nothing")));
    insta::assert_snapshot!(refused(&object("user.o", None)));
    insta::assert_snapshot!(refused(&user("tracer")));
    insta::assert_snapshot!(refused(&user("on_the_way_out")));
    insta::assert_snapshot!(refused(&ProgramBody { egress: Some("verdict".to_owned()), ..user("forward") }));
    insta::assert_snapshot!(refused(&with_map(user("forward"), "outs", MapContents::List(vec![port()]))));
    insta::assert_snapshot!(refused(&with_map(
        user("forward"),
        "out",
        MapContents::List(vec![port(), port(), port()])
    )));
    insta::assert_snapshot!(refused(&with_map(
        user("forward"),
        "table",
        MapContents::List(vec![Datum::Bytes(vec![1, 2])])
    )));
    insta::assert_snapshot!(refused(&with_global(user("verdict"), "verdict", Datum::Integer(1))));
    insta::assert_snapshot!(refused(&with_global(user("verdict"), "MAC", Datum::Bytes(vec![1, 2, 3]))));
    insta::assert_snapshot!(refused(&with_global(user("verdict"), "VERDICT", Datum::Integer(1 << 40))));
}

#[test]
fn bad_objects_are_named_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path: PathBuf = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let source = ProgramSource::Object { path, program: None };
        refused(&ProgramBody { source, ..builtin(Builtin::Drop) }).replace(&format!("{}/", dir.path().display()), "")
    };
    let whole = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/objects/test/user.o")).unwrap();
    insta::assert_snapshot!(refused(&object("none.o", None)));
    insta::assert_snapshot!(file("empty.o", b""));
    insta::assert_snapshot!(file("text.o", b"int main() {}"));
    insta::assert_snapshot!(file("short.o", &whole[..whole.len() / 2]));
    insta::assert_snapshot!(file("x86.o", &std::fs::read("/bin/sh").unwrap()));
    insta::assert_snapshot!(refused(&object("section.o", Some("known"))));
    insta::assert_snapshot!(refused(&object("kfunc.o", None)));
}

#[test]
fn a_rejected_program_shows_the_end_of_the_verifier_s_log_and_keeps_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let cx = LoadContext { log_dir: Some(dir.path()), ..context(4, 1) };
    let error = load(&object("rejected.o", None), &cx).unwrap_err();
    assert!(matches!(error, ProgramError::Rejected { .. }));
    let message = error.to_string();
    assert!(message.contains("rejected \"reads_beyond\" of "), "{message}");
    assert!(message.contains("invalid access to packet"), "{message}");
    assert!(message.lines().count() <= 14, "{message}");
    let logs: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(logs.len(), 1);
    assert!(message.contains(&logs[0].display().to_string()), "{message}");
    assert!(std::fs::read_to_string(&logs[0]).unwrap().contains("invalid access to packet"));
}

#[test]
fn damaged_objects_are_errors_and_never_panics() {
    let whole = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/objects/test/user.o")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.o");
    let cx = LoadContext { log_dir: Some(dir.path()), ..context(4, 1) };
    let body = ProgramBody {
        source: ProgramSource::Object { path: path.clone(), program: Some("verdict".to_owned()) },
        ..builtin(Builtin::Drop)
    };
    // A generator with a fixed seed (xorshift): every run damages the same bytes.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % below
    };
    for _ in 0..100 {
        let mut bytes = whole.clone();
        for _ in 0..=next(4) {
            // Headers and tables are where it hurts: the last fifth and the first bytes.
            let at = if next(3) == 0 { next(64) } else { bytes.len() - 1 - next(bytes.len() / 2) };
            bytes[at] = next(256) as u8;
        }
        if next(8) == 0 {
            bytes.truncate(next(whole.len()));
        }
        std::fs::write(&path, bytes).unwrap();
        let _ = load(&body, &cx);
    }
}

//! `xdplab vm`: that it says what it lacks, and, where virtme-ng, qemu and a kernel are, that it is the same command.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::command::Bench;

/// The kernel that these tests boot: `XDPLAB_TEST_KERNEL`, an image or an unpacked package.
fn kernel() -> String {
    std::env::var("XDPLAB_TEST_KERNEL").expect("XDPLAB_TEST_KERNEL names a kernel: ci/kernels does that")
}

/// Processes whose command line has these words.
fn running(words: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").contains(words)).count()
}

#[test]
fn without_its_tools_it_says_which_and_how_to_get_them() {
    let bench = Bench::new();
    let kernel = bench.file("vmlinuz", &format!("{:514}HdrS", ""));
    let output = bench.xdplab(&["vm", "--kernel", &kernel, "--", "ls"]).env("PATH", "/nowhere").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{text}");
    assert!(text.contains("vng is not installed") && text.contains("pip install virtme-ng"), "{text}");
}

#[test]
fn a_kernel_that_is_not_there_and_arguments_that_make_no_sense_end_with_code_2() {
    let bench = Bench::new();
    let kernel = bench.file("vmlinuz", &format!("{:514}HdrS", ""));
    assert!(bench.ends_with(2, &["vm", "--kernel", "/nowhere", "--", "ls"]).contains("no such kernel"));
    for wrong in [["--nic", "i40e:2"], ["--memory", "much"], ["--append", "a;b"], ["--program", "/nowhere"]] {
        let text = bench.ends_with(2, &["vm", "--kernel", &kernel, wrong[0], wrong[1], "--", "ls"]);
        assert!(text.contains(wrong[0]) && !text.contains("note:"), "{text}");
    }
    bench.ends_with(2, &["vm", "--kernel", &kernel]);
    let text = bench.ends_with(2, &["compare", "--kernel", &kernel, "--kernel", "/nowhere", "lab.toml"]);
    assert!(text.contains("no such kernel") && !text.contains("note:"), "{text}");
}

#[test]
fn a_command_that_the_machine_would_refuse_is_refused_before_it_boots() {
    let bench = Bench::new();
    let kernel = bench.file("vmlinuz", &format!("{:514}HdrS", ""));
    let refused = |command: &[&str]| bench.ends_with(2, &[&["vm", "--kernel", &kernel, "--"], command].concat());
    assert_eq!(refused(&["xdplab", "nics"]), "error: leave `xdplab` out: vm runs `xdplab nics` in the machine\n");
    let text = refused(&["nics", "--fro", "lab.toml"]);
    assert!(text.starts_with("error: the command behind `--`: unexpected argument '--fro'"), "{text}");
}

#[test]
fn a_nic_without_a_cable_is_told_of() {
    let bench = Bench::new();
    let kernel = bench.file("vmlinuz", &format!("{:514}HdrS", ""));
    let tools = bench.dir.path().join("tools");
    fs::create_dir(&tools).unwrap();
    for tool in ["vng", "qemu-system-x86_64", "qemu-system-aarch64", "file", "modprobe"] {
        let path = bench.file(&format!("tools/{tool}"), "#!/bin/sh\n");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let said = |nic: &str| {
        let mut command = bench.xdplab(&["vm", "--kernel", &kernel, "--nic", nic, "--", "nics"]);
        let output = command.env("PATH", &tools).output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let (one, two) = (said("virtio_net"), said("virtio_net:2"));
    assert!(one.contains("note: the NIC 0000:00:10.0 (virtio_net) has no cable, and so no carrier"), "{one}");
    assert!(!two.contains("no cable") && two.contains("the virtual machine ended"), "{two}");
}

#[test]
#[ignore = "boots a virtual machine: ci/kernels runs it"]
fn output_and_code_are_the_commands_and_cables_are_known() {
    let kernel = kernel();
    let bench = Bench::new();
    // One machine for all that one can show: booting takes longest.
    let script = bench.file(
        "all.sh",
        "echo to-stdout; echo to-stderr >&2; touch written; touch /usr/not-written; \
         \"$XDPLAB_UNDER_TEST\" nics --format json >nics.json; exit 7",
    );
    let mut command = bench.xdplab(&["vm", "--kernel", &kernel, "--nic", "vmxnet3:2", "--nic", "virtio_net:1"]);
    command.args(["--program", "/bin/sh", "--", &script]).current_dir(bench.dir.path());
    let output = command.env("XDPLAB_UNDER_TEST", env!("CARGO_BIN_EXE_xdplab")).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "to-stdout\n");
    assert!(stderr.ends_with("to-stderr\n") && !stderr.contains("Linux version"), "{stderr}");
    assert!(bench.dir.path().join("written").exists());
    assert!(!PathBuf::from("/usr/not-written").exists());
    let nics = fs::read_to_string(bench.dir.path().join("nics.json")).unwrap();
    let nics: Vec<serde_json::Value> = serde_json::from_str(&nics).unwrap();
    let ends: Vec<(&str, Option<&str>)> =
        nics.iter().map(|nic| (nic["pci"].as_str().unwrap(), nic["cabled_to"].as_str())).collect();
    for (pci, other) in
        [("0000:00:10.0", Some("0000:00:11.0")), ("0000:00:11.0", Some("0000:00:10.0")), ("0000:00:12.0", None)]
    {
        assert!(ends.contains(&(pci, other)), "{ends:?}");
    }
}

#[test]
#[ignore = "boots a virtual machine: ci/kernels runs it"]
fn a_machine_dies_with_its_command_and_leaves_nothing() {
    let kernel = kernel();
    // Others' machines may have left some.
    let of_virtme = || -> Vec<String> {
        let names = fs::read_dir("/tmp").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.starts_with("virtme_ret")).collect()
    };
    let before = of_virtme();
    let bench = Bench::new();
    for (number, signal) in [Signal::SIGKILL, Signal::SIGTERM].into_iter().enumerate() {
        // The memory tells this machine from others.
        let memory = format!("{}M", 1_100 + number);
        let mut command = bench.xdplab(&["vm", "--kernel", &kernel, "--memory", &memory, "--program", "/bin/sleep"]);
        let mut child = command.args(["--", "1000"]).stderr(Stdio::null()).spawn().unwrap();
        let qemu = format!("-m {memory}");
        let until = |what: &str, condition: &dyn Fn() -> bool| {
            let start = Instant::now();
            while !condition() {
                assert!(start.elapsed() < Duration::from_mins(1), "{signal}: {what}");
                thread::sleep(Duration::from_millis(20));
            }
        };
        until("the machine starts", &|| running(&qemu) > 0);
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), (signal == Signal::SIGTERM).then_some(130));
        until("the machine ends", &|| running(&qemu) == 0);
    }
    let after = of_virtme();
    assert!(after.iter().all(|name| before.contains(name)), "{after:?}, {before:?} before");
}

//! The command, in a run directory of the test's own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

/// A run directory and a place for files.
pub(crate) struct Bench {
    pub(crate) dir: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    /// The command, with arguments.
    pub(crate) fn xdplab(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xdplab"));
        command.args(arguments).env("XDPLAB_RUN_DIR", self.run_dir()).stdin(Stdio::null());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.xdplab(arguments).output().expect("the command starts")
    }

    /// Runs the command, which must end with this code; returns what it printed to either.
    pub(crate) fn ends_with(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        text
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        fs::write(&path, text).expect("write a file");
        path.display().to_string()
    }

    /// Removes what dead labs left, and checks that nothing of this bench is left then.
    pub(crate) fn nothing_is_left(&self, lab: &str) {
        self.ends_with(0, &["gc"]);
        let names: Vec<String> = fs::read_dir("/run/netns")
            .map(|dir| dir.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
            .unwrap_or_default();
        assert!(!names.iter().any(|name| name.starts_with(&format!("{lab}."))), "{names:?}");
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let run = self.run_dir().display().to_string();
        assert!(!mounts.contains(&run), "{mounts}");
        let left: Vec<_> = walk(&self.run_dir());
        assert!(left.is_empty(), "{left:?}");
    }
}

/// All files and directories below one.
fn walk(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries
        .flatten()
        .flat_map(|entry| {
            let mut below = walk(&entry.path());
            below.push(entry.path());
            below
        })
        .collect()
}

/// A small topology of this name: gen:tx0 -- dut:rx0, dropped there.
pub(crate) fn small(name: &str) -> String {
    format!(
        r#"
name = "{name}"
about = "a small lab"
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
modes = ["native"]
traffic = {{ from = "gen:tx0", frames = 10_000 }}
expect = {{ drop = ["dut:rx0"] }}
"#
    )
}

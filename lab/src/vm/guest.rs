//! What the guest does: a script, since a shell is all that every guest has.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
};

use super::machine::{Machine, SHARED, WORK};

/// A command that a virtual machine runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The program, by its path on the host.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The working directory: the one place where what the guest writes stays.
    pub directory: PathBuf,
    /// Variables of its environment.
    pub environment: Vec<(OsString, OsString)>,
}

impl Task {
    /// Whether what the guest writes into the working directory stays. The root's own would be everything.
    pub(super) fn writes_through(&self) -> bool {
        self.directory.parent().is_some()
    }

    /// The script.
    pub(super) fn script(&self, machine: &Machine) -> Vec<u8> {
        let mut script = format!(
            "# Made by xdplab vm.\n\
             PATH=${{PATH:+$PATH:}}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
             export PATH\n\
             fail() {{ echo \"xdplab vm, in the guest: $*\" >&2; echo 5 >{SHARED}/code; exit 5; }}\n\
             exec </dev/null >{SHARED}/out 2>{SHARED}/err || exit 1\n\
             ulimit -n $(ulimit -Hn)\n"
        )
        .into_bytes();
        // Nothing else loads them where there is no udev.
        for driver in machine.drivers() {
            script.extend(format!("modprobe {driver} || fail 'this kernel has no driver {driver}'\n").bytes());
        }
        if machine.host_file().is_some() {
            script.extend(
                format!("mkdir -p /etc/xdplab && cp {SHARED}/host.toml /etc/xdplab/host.toml || fail 'no host file'\n")
                    .bytes(),
            );
        }
        let mut line = |words: &[&[u8]]| {
            script.extend(words.concat());
            script.push(b'\n');
        };
        let directory = quoted(self.directory.as_os_str());
        if self.writes_through() {
            line(&[b"mkdir -p ", &directory, b" 2>/dev/null"]);
            line(&[
                b"mount --bind ",
                WORK.as_bytes(),
                b" ",
                &directory,
                b" || fail 'the working directory is not there'",
            ]);
        }
        line(&[b"cd ", &directory, b" || fail 'the working directory is not there'"]);
        for (name, value) in &self.environment {
            line(&[b"export ", name.as_bytes(), b"=", &quoted(value)]);
        }
        let mut command = quoted(self.program.as_os_str());
        for argument in &self.arguments {
            command.push(b' ');
            command.extend(quoted(argument));
        }
        line(&[&command]);
        // Whole or not at all.
        line(&[format!("echo $? >{SHARED}/code.new && mv {SHARED}/code.new {SHARED}/code").as_bytes()]);
        script
    }
}

/// Whether a variable of our environment is the command's business in the guest as well.
pub fn passes_through(name: &OsStr) -> bool {
    const PREFIXES: [&str; 6] = ["XDPLAB_", "RUST_", "CARGO_", "NEXTEST_", "INSTA_", "LC_"];
    const NAMES: [&str; 8] =
        ["PATH", "HOME", "LANG", "COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PROPTEST_CASES"];
    // What a shell can't export by its name is left out.
    let plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // A token of a registry has no business in another kernel's memory.
    name.to_str()
        .filter(plain)
        .filter(|name| !name.contains("TOKEN"))
        .is_some_and(|name| NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

/// A word that a shell takes for itself.
fn quoted(word: &OsStr) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word.as_bytes() {
        if *byte == b'\'' {
            quoted.extend(b"'\\''");
        } else {
            quoted.push(*byte);
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;
    use crate::vm::{Acceleration, Image};

    fn task() -> Task {
        Task {
            program: "/opt/xdplab".into(),
            arguments: ["run", "it's.toml"].map(OsString::from).to_vec(),
            directory: "/home/a b".into(),
            environment: vec![("XDPLAB_MAY_SKIP".into(), "pktgen netdevsim".into())],
        }
    }

    fn machine(nics: &[&str]) -> Machine {
        let nics: Vec<_> = nics.iter().map(|text| text.parse().unwrap()).collect();
        let image = Image { path: "/vmlinuz".into() };
        Machine::new(image, &nics, &[], "1G", 1, Acceleration::Kvm).unwrap()
    }

    #[test]
    fn the_script() {
        let text = |task: &Task, machine: &Machine| String::from_utf8(task.script(machine)).unwrap();
        insta::assert_snapshot!("with_nics", text(&task(), &machine(&["vmxnet3:2"])));
        let at_the_root = Task { directory: "/".into(), ..task() };
        insta::assert_snapshot!("at_the_root", text(&at_the_root, &machine(&[])));
    }

    #[test]
    fn secrets_stay_here() {
        assert!(passes_through(OsStr::new("XDPLAB_MAY_SKIP")) && passes_through(OsStr::new("RUST_BACKTRACE")));
        for name in ["CARGO_REGISTRY_TOKEN", "SSH_AUTH_SOCK", "RUST_A-B", "LD_PRELOAD"] {
            assert!(!passes_through(OsStr::new(name)), "{name}");
        }
    }

    proptest! {
        /// A shell gives every word back as it was.
        #[test]
        fn words_come_through_a_shell(bytes in prop::collection::vec(1u8..=255, 0..40)) {
            let word = OsStr::from_bytes(&bytes);
            let mut script = b"printf %s ".to_vec();
            script.extend(quoted(word));
            let output = Command::new("sh").arg("-c").arg(OsStr::from_bytes(&script)).output().unwrap();
            prop_assert_eq!(output.stdout, bytes);
        }
    }
}

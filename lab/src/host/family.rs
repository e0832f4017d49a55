//! A process that nothing it starts outlives, and that does not outlive us.

use std::{
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{ChildStderr, ChildStdout, Command, ExitStatus},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::HostError;

/// A process that runs as the first of a process namespace: when it ends, the kernel ends all that it started. The
/// kernel ends it when we end, be it by SIGKILL. Dropping it ends it as well.
#[derive(Debug)]
pub struct Family {
    pid: Pid,
    ended: Receiver<io::Result<ExitStatus>>,
    done: bool,
    parent: Option<JoinHandle<()>>,
}

/// What a family says, where that is piped.
#[derive(Debug)]
pub struct Voices {
    /// Standard output.
    pub stdout: Option<ChildStdout>,
    /// Standard error.
    pub stderr: Option<ChildStderr>,
}

impl Family {
    /// Starts a command, in a process group of its own, so that a terminal's signals come to us alone. `scratch` is a
    /// folder in whose place the family sees one of its own, in memory, which goes with it.
    ///
    /// # Errors
    /// Where the kernel refuses the namespace (it takes `CAP_SYS_ADMIN`), or the command can't be started.
    pub fn start(mut command: Command, scratch: Option<&Path>) -> Result<(Self, Voices), HostError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let (started, start) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let failed = |source: io::Error| HostError::system(format!("start {name}"), source);
        command.process_group(0);
        let scratch = scratch.map(Path::to_owned);
        // SAFETY: one system call, which is safe between fork and exec, with plain numbers only.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        // The thread is the parent whose death ends the family, so it lives as long. Nothing else is started from it:
        // its next child after the first would be in the same namespace.
        let parent = thread::Builder::new().name("family".into()).spawn(move || {
            let child = part(scratch.as_deref()).and_then(|()| command.spawn());
            match child {
                Ok(mut child) => {
                    let voices = Voices { stdout: child.stdout.take(), stderr: child.stderr.take() };
                    drop(started.send(Ok((child.id(), voices))));
                    drop(end.send(child.wait()));
                }
                Err(error) => drop(started.send(Err(error))),
            }
        });
        let parent = parent.map_err(failed)?;
        let (pid, voices) =
            start.recv().unwrap_or_else(|_| Err(io::Error::other("its thread ended"))).map_err(failed)?;
        let pid = Pid::from_raw(i32::try_from(pid).map_err(|_| failed(io::Error::other("its number is too large")))?);
        Ok((Self { pid, ended, done: false, parent: Some(parent) }, voices))
    }

    /// Waits for its end, at most so long; `None` where it runs on.
    ///
    /// # Errors
    /// Where it can't be waited for.
    pub fn wait(&mut self, most: Duration) -> Result<Option<ExitStatus>, HostError> {
        match self.ended.recv_timeout(most) {
            Ok(status) => {
                self.done = true;
                status.map(Some).map_err(|source| HostError::system("wait for a process", source))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                self.done = true;
                Err(HostError::system("wait for a process", io::Error::other("its end was seen before")))
            }
        }
    }
}

/// Puts what the calling thread starts from now on into a process namespace, and a mount namespace where it has a folder.
fn part(scratch: Option<&Path>) -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWPID)?;
    if let Some(scratch) = scratch {
        unshare(CloneFlags::CLONE_NEWNS)?;
        // Nothing that is mounted from here on may show outside.
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)?;
        mount(Some("tmpfs"), scratch, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
    }
    Ok(())
}

impl Drop for Family {
    fn drop(&mut self) {
        if !self.done {
            // Nobody but our thread waits for it, so the number is still its own, or that of what waits to be waited for.
            let _ = kill(self.pid, Signal::SIGKILL);
        }
        if let Some(parent) = self.parent.take() {
            drop(parent.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader},
        process::Stdio,
        time::Instant,
    };

    use super::*;

    /// A command that starts another in the background, whose sleep is told apart by its length.
    fn sleepers(seconds: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("sleep {seconds} & echo ready; sleep {seconds}")]).stdout(Stdio::piped());
        command
    }

    fn running(seconds: &str) -> usize {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| *line == format!("sleep\0{seconds}\0").into_bytes()).count()
    }

    fn until(seconds: &str, wanted: usize) {
        let start = Instant::now();
        while running(seconds) != wanted {
            assert!(start.elapsed() < Duration::from_secs(5), "{} of {wanted}", running(seconds));
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn ready(voices: Voices) {
        let mut line = String::new();
        BufReader::new(voices.stdout.unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
    }

    #[test]
    fn dropping_ends_what_was_started_as_well() {
        if !crate::host::is_root() {
            return;
        }
        let (mut family, voices) = Family::start(sleepers("100001"), None).unwrap();
        ready(voices);
        assert_eq!(family.wait(Duration::ZERO).unwrap(), None);
        until("100001", 2);
        drop(family);
        until("100001", 0);
    }

    #[test]
    fn the_end_of_the_first_ends_the_others() {
        if !crate::host::is_root() {
            return;
        }
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 100002 & exit 3"]);
        let (mut family, _voices) = Family::start(command, None).unwrap();
        let status = family.wait(Duration::from_secs(5)).unwrap().unwrap();
        assert_eq!(status.code(), Some(3));
        until("100002", 0);
    }

    #[test]
    fn its_scratch_folder_is_its_own() {
        if !crate::host::is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        let mut command = Command::new("touch");
        command.arg(&file);
        let (mut family, _voices) = Family::start(command, Some(dir.path())).unwrap();
        let status = family.wait(Duration::from_secs(5)).unwrap().unwrap();
        assert!(status.success() && !file.exists());
    }

    #[test]
    fn what_is_not_there_is_named() {
        if !crate::host::is_root() {
            return;
        }
        let error = Family::start(Command::new("/nowhere/at-all"), None).unwrap_err();
        assert!(error.to_string().contains("/nowhere/at-all"), "{error}");
    }
}

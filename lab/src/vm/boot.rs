//! Booting a machine, and giving its command's output and exit code as if it had run here.

use std::{
    env,
    fs::{self, File},
    io::{self, Read, Write},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use super::{VmError, guest::Task, machine::Machine, monitor};
use crate::{
    host::{detached::MemoryFolder, family::Family},
    traffic::Stop,
};

/// How often the guest's output is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// How much of the console is kept for an error, in bytes.
const KEPT: usize = 4096;
/// How many of its last lines an error shows.
const LINES: usize = 15;

/// Where virtme-ng has its own files, which go with it. The guest sees nothing of the host's /dev.
const SCRATCH: &str = "/dev/shm";

/// What becomes of the machine's console: its kernel's log, and what virtme-ng and qemu say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Console {
    /// Its end is shown where the machine fails.
    Kept,
    /// It is copied to our standard error.
    Shown,
}

/// Where the command's output goes.
pub struct Output<'a> {
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Standard error.
    pub err: &'a mut dyn Write,
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}

/// Boots a machine, runs a task in it, and returns the task's exit code. Takes root. Nothing is left behind, even if this
/// process is killed meanwhile: the machine dies with it, and what they share is in memory.
///
/// # Errors
/// Where a tool is missing, the machine does not come as far as the end of the task, the output can't be written, or
/// `stop` was asked for.
pub fn boot(
    machine: &Machine,
    task: &Task,
    console: Console,
    stop: &Stop,
    output: &mut Output<'_>,
) -> Result<u8, VmError> {
    let vng = tools()?;
    let shared = MemoryFolder::new()?;
    let folder = shared.path();
    let put = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, content).map_err(|source| VmError::File { operation: "write", path, source })
    };
    put("run", &task.script(machine))?;
    if let Some(text) = machine.host_file() {
        put("host.toml", text.as_bytes())?;
    }
    let mut streams = ["out", "err"].map(|name| put(name, b"").and_then(|()| open(&folder.join(name))));
    // By a path without anything that a shell would take for more than itself, whatever the folder is called.
    let work = if task.writes_through() { Some(open(&task.directory)?) } else { None };
    let work_path =
        work.as_ref().map(|work| PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), work.as_raw_fd())));

    let mut command = Command::new(&vng);
    command
        .args(machine.arguments(&folder, work_path.as_deref()))
        .current_dir("/")
        .env("TMPDIR", SCRATCH)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (mut family, voices) = Family::start(command, Some(Path::new(SCRATCH)))?;
    let log = Log::default();
    let mut listeners = Vec::new();
    if let Some(voice) = voices.stdout {
        listeners.push(log.listen(voice, console)?);
    }
    if let Some(voice) = voices.stderr {
        listeners.push(log.listen(voice, console)?);
    }
    let mut copy = |streams: &mut [Result<File, VmError>; 2]| -> Result<(), VmError> {
        let [out, err] = streams;
        let targets: [(&mut Result<File, VmError>, &mut dyn Write); 2] =
            [(out, &mut *output.out), (err, &mut *output.err)];
        for (stream, target) in targets {
            if let Ok(stream) = stream {
                io::copy(stream, target).and_then(|_| target.flush()).map_err(VmError::Output)?;
            }
        }
        Ok(())
    };
    let mut uncabled = machine.uncabled();
    loop {
        if stop.is_asked() {
            return Err(VmError::Interrupted);
        }
        if !uncabled.is_empty() && monitor::unplug(&folder.join(monitor::SOCKET), &uncabled)? {
            uncabled.clear();
        }
        let ended = family.wait(LOOK)?;
        copy(&mut streams)?;
        if ended.is_some() {
            break;
        }
    }
    for listener in listeners {
        drop(listener.join());
    }
    let code = fs::read_to_string(folder.join("code")).ok().and_then(|text| text.trim().parse().ok());
    code.ok_or_else(|| VmError::Ended { console: log.end() })
}

fn open(path: &Path) -> Result<File, VmError> {
    File::open(path).map_err(|source| VmError::File { operation: "open", path: path.to_owned(), source })
}

/// Finds `vng`, and what it starts.
fn tools() -> Result<PathBuf, VmError> {
    let vng = vng()?;
    qemu()?;
    // virtme-ng reads a kernel's version with it.
    tool("file", "apt-get install file")?;
    tool("modprobe", "apt-get install kmod")?;
    Ok(vng)
}

/// Finds `vng`, which boots a machine.
///
/// # Errors
/// If it is not installed: the error has the command that installs it.
pub fn vng() -> Result<PathBuf, VmError> {
    tool("vng", "pip install virtme-ng (or apt-get install virtme-ng, where there is such a package)")
}

/// Finds qemu for this architecture, which is the machine.
///
/// # Errors
/// As [`vng`].
pub fn qemu() -> Result<PathBuf, VmError> {
    match env::consts::ARCH {
        "aarch64" => tool("qemu-system-aarch64", "apt-get install qemu-system-arm"),
        _ => tool("qemu-system-x86_64", "apt-get install qemu-system-x86"),
    }
}

/// Finds a program on PATH, and where the system keeps its own.
fn tool(name: &str, install: &'static str) -> Result<PathBuf, VmError> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| VmError::Tool { tool: name.to_owned(), install })
}

/// The end of a console.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Keeps what is said, on a thread of its own, until nobody can say more.
    fn listen(&self, mut voice: impl Read + Send + 'static, console: Console) -> Result<JoinHandle<()>, VmError> {
        let log = self.clone();
        let listen = move || {
            let mut buffer = [0; 4096];
            while let Ok(read) = voice.read(&mut buffer)
                && read > 0
            {
                let said = buffer.get(..read).unwrap_or_default();
                if console == Console::Shown {
                    drop(io::stderr().write_all(said));
                }
                let mut kept = log.0.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(said);
                let over = kept.len().saturating_sub(KEPT);
                kept.drain(..over);
            }
        };
        thread::Builder::new()
            .name("console".into())
            .spawn(listen)
            .map_err(|source| crate::host::HostError::system("start a thread", source).into())
    }

    /// The last lines.
    fn end(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept).replace('\r', "");
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("\n")
    }
}

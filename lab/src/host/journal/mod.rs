//! The journal: every change that would outlive its process, and how to undo it, written before it is made.
//!
//! ```text
//! /run/xdplab/NAME/journal
//! {"header":{"boot":"…","instance":"i40e-veth","kind":"persistent"}}
//! {"change":{"mount":{"path":"/run/xdplab/i40e-veth/bpf"}}}
//! {"change":{"netns":{"name":"i40e-veth.gen"}}}
//! {"state":"ready"}
//! ```
//!
//! One `O_APPEND` write a record, without `fsync`: it must outlive the process, not the machine, whose namespaces and
//! mounts don't outlive it either. Whoever works on a lab holds a lock on its journal, which the kernel frees when that
//! process ends: a journal that can be locked has no owner.

mod collect;
mod record;
mod undo;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
};

pub use collect::{Collected, Entry, gc, list};
pub use record::{Change, Kind, State};
use record::{Header, Record};
pub use undo::Undone;

use super::{lend::Lease, lock, paths};

/// Why a journal could not be made or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A lab of that name is up.
    #[error("lab \"{name}\" is up already: take it down with `xdplab down {name}`, or give the topology another name")]
    Taken {
        /// The name.
        name: String,
    },
    /// Another process works on a lab of that name.
    #[error("another xdplab is at work on lab \"{name}\": wait for it to finish")]
    Busy {
        /// The name.
        name: String,
    },
    /// No lab of that name is up.
    #[error("no lab \"{name}\" is up: `xdplab ls` shows those that are")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The journal could not be read or written.
    #[error("{operation} the journal {}: nothing was changed without it. Make room or give access there, or set XDPLAB_RUN_DIR to another directory", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not everything could be undone.
    #[error("not everything of lab \"{name}\" could be undone: {}", left.join("; "))]
    Left {
        /// The lab.
        name: String,
        /// What is left, and why.
        left: Vec<String>,
    },
}

/// A lab's journal, locked.
#[derive(Debug)]
pub struct Journal {
    name: String,
    path: PathBuf,
    file: File,
    header: Header,
}

impl Journal {
    /// Makes the journal of a new lab or instance. What a dead process left under the same name is undone first.
    ///
    /// # Errors
    /// [`JournalError::Taken`] and [`JournalError::Busy`] where the name is in use; [`JournalError::File`] where the
    /// run directory can't be written.
    pub fn create(name: &str, instance: &str, kind: Kind) -> Result<Self, JournalError> {
        let header = Header { boot: boot(), instance: instance.to_owned(), kind, pid: std::process::id() };
        let path = path_of(name);
        let (mut file, text) = loop {
            if let Some(locked) = open(name, true)? {
                break locked;
            }
        };
        let before = record::parse(&text);
        if let Some(old) = before.header_of(name, &header.boot)
            && old.boot == header.boot
        {
            if before.state == Some(State::Ready) {
                return Err(JournalError::Taken { name: name.to_owned() });
            }
            let left = undo::undo(&before, &old.instance).left;
            if !left.is_empty() {
                return Err(JournalError::Left { name: name.to_owned(), left });
            }
        }
        let failed = |source| JournalError::File { operation: "start", path: path.clone(), source };
        file.set_len(0).map_err(failed)?;
        write(&mut file, &Record::Header(header.clone())).map_err(failed)?;
        Ok(Self { name: name.to_owned(), path, file, header })
    }

    /// Opens the journal of a lab that is there, to take it down.
    ///
    /// # Errors
    /// [`JournalError::Unknown`] where there is none; [`JournalError::Busy`] where another process works on it.
    pub fn open(name: &str) -> Result<Self, JournalError> {
        let unknown = || JournalError::Unknown { name: name.to_owned() };
        let Some((file, text)) = open(name, false)? else { return Err(unknown()) };
        let parsed = record::parse(&text);
        let boot = boot();
        let Some(header) = parsed.header_of(name, &boot).filter(|header| header.boot == boot) else {
            return Err(unknown());
        };
        Ok(Self { name: name.to_owned(), path: path_of(name), file, header })
    }

    /// Writes a change down, before it is made.
    ///
    /// # Errors
    /// Where it can't be written, on a full disk for one: then the change must not be made.
    pub fn record(&self, change: &Change) -> Result<(), JournalError> {
        self.append(&Record::Change(change.clone()))
    }

    /// Writes the lab's state down.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn mark(&self, state: State) -> Result<(), JournalError> {
        self.append(&Record::State(state))
    }

    fn append(&self, record: &Record) -> Result<(), JournalError> {
        let before = self.file.metadata().map(|file| file.len());
        write(&mut &self.file, record).map_err(|source| {
            // Half a line would hide those that come behind it.
            if let Ok(length) = before {
                let _ = self.file.set_len(length);
            }
            JournalError::File { operation: "write", path: self.path.clone(), source }
        })
    }

    /// Undoes everything that was written down, the last first, and removes the journal.
    ///
    /// # Errors
    /// [`JournalError::Left`] with everything that could not be undone; the journal stays, for another try.
    pub fn undo(self) -> Result<Undone, JournalError> {
        let mut text = String::new();
        // Read through a descriptor of its own: this one appends.
        let read = File::open(&self.path).and_then(|mut file| file.read_to_string(&mut text));
        read.map_err(|source| JournalError::File { operation: "read", path: self.path.clone(), source })?;
        let undone = undo::undo(&record::parse(&text), &self.header.instance);
        if undone.left.is_empty() {
            remove(&self.name);
            Ok(undone)
        } else {
            Err(JournalError::Left { name: self.name, left: undone.left })
        }
    }

    /// Removes the journal of an instance of which nothing is left to undo.
    ///
    /// # Errors
    /// Never at present; the signature leaves room.
    pub fn finish(self) -> Result<(), JournalError> {
        remove(&self.name);
        Ok(())
    }
}

/// The boot's id: what was made before it is gone, whatever a journal says.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

fn path_of(name: &str) -> PathBuf {
    paths::lab_dir(name).join("journal")
}

/// Opens and locks a journal and reads it; makes it where `create` says so. `None` where there is none, or it went away
/// in between.
fn open(name: &str, create: bool) -> Result<Option<(File, String)>, JournalError> {
    let path = path_of(name);
    let failed = |operation| {
        let path = path.clone();
        move |source| JournalError::File { operation, path, source }
    };
    if create {
        match fs::create_dir_all(paths::lab_dir(name)) {
            // Tidied away in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            made => made.map_err(failed("make"))?,
        }
    }
    let mut file = match OpenOptions::new().read(true).append(true).create(create).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed("open")(source)),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Err(JournalError::Busy { name: name.to_owned() }),
        Err(fs::TryLockError::Error(source)) => return Err(failed("lock")(source)),
    }
    // Removed by its last owner between opening and locking: that lock is nobody's.
    let same = fs::metadata(&path).is_ok_and(|now| file.metadata().is_ok_and(|mine| mine.ino() == now.ino()));
    if !same {
        return Ok(None);
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed("read"))?;
    Ok(Some((file, text)))
}

/// One record, one write: a process that dies leaves whole lines.
fn write(file: &mut (impl io::Write + ?Sized), record: &Record) -> io::Result<()> {
    let mut line = serde_json::to_string(record)?;
    line.push('\n');
    file.write_all(line.as_bytes())
}

/// Removes a journal and its directory, and the run directory if that was the last.
fn remove(name: &str) {
    Lease::end_all_of(name);
    let _ = fs::remove_file(path_of(name));
    let _ = fs::remove_dir(paths::lab_dir(name).join("bpf"));
    let _ = fs::remove_dir(paths::lab_dir(name));
    lock::tidy();
}

//! Locks that hold for the whole host, by `flock` on files in the run directory: the kernel frees them with their
//! holder, whatever ends it.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
};

use super::{HostError, lend::Lease, netns, paths};

const PRICING: &str = "pricing.lock";
const NETNS: &str = "netns.lock";

/// A lock that is held.
#[derive(Debug)]
pub struct HostLock {
    file: File,
}

impl Drop for HostLock {
    fn drop(&mut self) {
        // Unlocked first: nothing is tidied away while anyone holds a lock.
        let _ = self.file.unlock();
        tidy();
    }
}

impl HostLock {
    /// The share that every lab at work has. While one is held, nothing is priced.
    ///
    /// `waiting` hears why it waits, if it does.
    ///
    /// # Errors
    /// Where the run directory can't be written.
    pub fn shared(waiting: &mut dyn FnMut(&str)) -> Result<Self, HostError> {
        acquire(PRICING, File::try_lock_shared, File::lock_shared, &mut || {
            waiting("another lab is pricing, and has the host to itself");
        })
    }

    /// The host to itself, for pricing: attaching anywhere rewrites kernel text that every XDP program runs through.
    ///
    /// # Errors
    /// Where the run directory can't be written.
    pub fn exclusive(waiting: &mut dyn FnMut(&str)) -> Result<Self, HostError> {
        acquire(PRICING, File::try_lock, File::lock, &mut || {
            waiting("other labs are at work; pricing needs the host to itself");
        })
    }

    /// The making of named namespaces.
    pub(super) fn netns() -> Result<Self, HostError> {
        acquire(NETNS, File::try_lock, File::lock, &mut || {})
    }
}

/// Removes the lock files and the run directory, where no lab and no holder is left. Its own trouble is nobody's.
pub(super) fn tidy() {
    Lease::tidy();
    let held: Option<Vec<File>> = [PRICING, NETNS]
        .into_iter()
        .map(|name| match File::open(path(name)) {
            Ok(file) => file.try_lock().is_ok().then_some(Some(file)),
            Err(_) => Some(None),
        })
        .collect::<Option<Vec<_>>>()
        .map(|files| files.into_iter().flatten().collect());
    let labs = fs::read_dir(paths::run_dir()).is_ok_and(|dir| dir.flatten().any(|entry| entry.file_name() != ".locks"));
    if held.is_some() && !labs {
        // Whoever locks one of these at this moment finds, once it has the lock, that its file is gone, and tries again.
        netns::tidy_folder();
        let _ = fs::remove_file(path(PRICING));
        let _ = fs::remove_file(path(NETNS));
        let _ = fs::remove_dir(paths::run_dir().join(".locks"));
        let _ = fs::remove_dir(paths::run_dir());
    }
}

fn acquire(
    name: &str,
    attempt: fn(&File) -> Result<(), TryLockError>,
    wait: fn(&File) -> io::Result<()>,
    waiting: &mut dyn FnMut(),
) -> Result<HostLock, HostError> {
    let failed = |source| HostError::File { operation: "lock", path: path(name), source };
    loop {
        let file = open(name).map_err(failed)?;
        match attempt(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                wait(&file).map_err(failed)?;
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // A lock on a file that was removed meanwhile is nobody's lock.
        let same = fs::metadata(path(name)).is_ok_and(|now| file.metadata().is_ok_and(|mine| mine.ino() == now.ino()));
        if same {
            return Ok(HostLock { file });
        }
    }
}

fn path(name: &str) -> PathBuf {
    paths::run_dir().join(".locks").join(name)
}

fn open(name: &str) -> io::Result<File> {
    let path = path(name);
    loop {
        match fs::create_dir_all(paths::run_dir().join(".locks")) {
            // Tidied away in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            made => made?,
        }
        match OpenOptions::new().create(true).truncate(false).write(true).open(&path) {
            // Tidied away in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
    }
}

//! One lab a NIC: a file a NIC, which holds the lab's name, and which is locked as long as the lab's process lives.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::MetadataExt as _,
    time::{Duration, Instant},
};

use crate::host::{
    HostError,
    nics::{Refusal, lease_path, lease_paths},
    paths,
};

/// How long a lease may be without a living lab's name, and locked.
const MOMENT: Duration = Duration::from_millis(500);

/// A lease on a NIC. Dropping it keeps the lab's name in the file: only [`Lease::end`] gives the NIC free.
#[derive(Debug)]
pub struct Lease {
    pci: String,
    lab: String,
    _file: File,
}

impl Lease {
    /// Leases a NIC to a lab; the inner error says who has it.
    ///
    /// # Errors
    /// Where the run directory can't be written.
    pub fn take(pci: &str, lab: &str) -> Result<Result<Self, Refusal>, HostError> {
        let path = lease_path(pci);
        let failed = |operation| {
            let path = path.clone();
            move |source| HostError::File { operation, path, source }
        };
        let deadline = Instant::now() + MOMENT;
        loop {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(failed("make the folder of"))?;
            }
            let mut file = match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path) {
                // Tidied away in between.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                opened => opened.map_err(failed("open"))?,
            };
            let locked = match file.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => false,
                Err(TryLockError::Error(source)) => return Err(failed("lock")(source)),
            };
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(failed("read"))?;
            let holder = holder.trim();
            if !locked {
                if (holder.is_empty() || !paths::lab_dir(holder).is_dir()) && Instant::now() < deadline {
                    // Being written, or tidied away, at this moment.
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                let lab = if holder.is_empty() { "of another process".to_owned() } else { holder.to_owned() };
                return Ok(Err(Refusal::Leased { lab }));
            }
            // Ended by its holder between opening and locking: that lock is nobody's.
            let same = fs::metadata(&path).is_ok_and(|now| file.metadata().is_ok_and(|mine| mine.ino() == now.ino()));
            if !same {
                continue;
            }
            if !holder.is_empty() && holder != lab && paths::lab_dir(holder).is_dir() {
                return Ok(Err(Refusal::Leased { lab: holder.to_owned() }));
            }
            file.set_len(0).map_err(failed("write"))?;
            file.rewind().map_err(failed("write"))?;
            file.write_all(lab.as_bytes()).map_err(failed("write"))?;
            return Ok(Ok(Self { pci: pci.to_owned(), lab: lab.to_owned(), _file: file }));
        }
    }

    /// Gives the NIC free.
    pub fn end(self) {
        Self::end_of(&self.pci, &self.lab);
    }

    /// Gives a NIC free that a lab had, whose process may be gone.
    pub(super) fn end_of(pci: &str, lab: &str) {
        let path = lease_path(pci);
        if fs::read_to_string(&path).is_ok_and(|holder| holder.trim() == lab) {
            let _ = fs::remove_file(path);
        }
    }

    /// Gives all NICs free that a lab had leased: one that died between leasing a NIC and writing it down left a lease
    /// of which its journal knows nothing. To be called by whoever holds that lab's journal.
    pub(in crate::host) fn end_all_of(lab: &str) {
        for path in lease_paths() {
            if fs::read_to_string(&path).is_ok_and(|holder| holder.trim() == lab) {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Removes leases that nobody holds: without a name in them, or of a lab that is no more.
    pub(in crate::host) fn tidy() {
        for path in lease_paths() {
            let Ok(mut file) = File::open(&path) else { continue };
            let mut holder = String::new();
            // Whoever opened it at this moment finds, once it has the lock, that the file is gone, and tries again.
            if file.try_lock().is_ok() && file.read_to_string(&mut holder).is_ok() {
                let holder = holder.trim();
                if holder.is_empty() || !paths::lab_dir(holder).is_dir() {
                    let _ = fs::remove_file(&path);
                }
            }
        }
    }
}

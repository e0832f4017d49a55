//! Network namespaces: anonymous ones, held by a file descriptor, and named ones, which `ip netns` shows.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd},
        unix::fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
};

use netns_rs::Env as _;
use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, setns, unshare},
};

use super::{HostError, lock::HostLock, paths, thread::Inside};

/// Where named namespaces stand, as `ip netns` has it.
const NAMED: &str = "/run/netns";
/// The file that says that a lab made the folder's mount.
const FOLDER_NOTE: &str = "netns-folder";

/// A network namespace, alive as long as this is.
#[derive(Debug)]
pub struct Netns {
    file: File,
    inode: u32,
}

impl Netns {
    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// Where /proc is not mounted.
    pub fn current() -> Result<Self, HostError> {
        // Not /proc/self: that is the main thread's, whichever thread asks.
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// Makes a namespace without a name: it ends with its last descriptor, socket or device.
    ///
    /// # Errors
    /// Where the kernel refuses, without root for one.
    pub fn create(inside: &Inside) -> Result<Self, HostError> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| HostError::system("make a network namespace", errno))?;
        let made = Self::current();
        inside.home().enter()?;
        made
    }

    /// Makes sure that names can be given.
    ///
    /// # Errors
    /// Where the folder of names can't be made.
    pub fn prepare_names() -> Result<(), HostError> {
        // The folder is mounted on its first use, and two first uses at once would stack their mounts.
        let _guard = HostLock::netns()?;
        note_folder()?;
        let failed =
            |source| HostError::Namespace { operation: "make the folder of", name: "names".to_owned(), source };
        netns_rs::DefaultEnv.init().map_err(failed)
    }

    /// Gives the namespace a name, by which `ip netns` shows it.
    ///
    /// [`Netns::prepare_names`] comes first. The caller has marked the namespace as its own before: whoever finds it by its name can tell whose it is.
    ///
    /// # Errors
    /// Where the name is taken, or the kernel refuses.
    pub fn publish(&self, name: &str) -> Result<(), HostError> {
        let path = named(name);
        let failed = |operation| {
            let path = path.clone();
            move |source| HostError::File { operation, path, source }
        };
        OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed("make the namespace's name"))?;
        let source = format!("/proc/thread-self/fd/{}", self.file.as_raw_fd());
        mount(Some(source.as_str()), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(|errno| {
            let _ = fs::remove_file(&path);
            failed("mount the namespace on")(errno.into())
        })
    }

    /// Whether a named namespace is one: a process that died in between leaves a plain file.
    pub(super) fn is_mounted_at(name: &str) -> bool {
        // Every namespace's file is of one file system, that of this thread's own among them.
        let device = |path: &Path| fs::metadata(path).map(|file| file.dev()).ok();
        device(&named(name)).is_some_and(|at| Some(at) == device(Path::new("/proc/thread-self/ns/net")))
    }

    /// Opens a namespace by its name.
    ///
    /// # Errors
    /// Where there is none.
    pub fn open_named(name: &str) -> Result<Self, HostError> {
        Self::open(&named(name))
    }

    /// Opens a namespace by a file that leads to it.
    ///
    /// # Errors
    /// Where there is none, or the caller may not.
    pub(super) fn open(path: &Path) -> Result<Self, HostError> {
        let failed = |source| HostError::File { operation: "open", path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let inode = file.metadata().map_err(failed)?.ino();
        // The kernel's own number of a namespace is an unsigned int.
        Ok(Self { file, inode: inode as u32 })
    }

    /// Whether a namespace of that name exists, or a file in its place.
    pub fn exists_named(name: &str) -> bool {
        named(name).exists()
    }

    /// Removes a namespace's name. The namespace itself ends when nothing holds it any more, and the kernel takes its
    /// devices away in its own time.
    ///
    /// # Errors
    /// Where it can't be unmounted. One that is gone already is no error.
    pub fn delete_named(name: &str) -> Result<(), HostError> {
        let path = named(name);
        if !path.exists() {
            return Ok(());
        }
        let failed = |source| HostError::Namespace { operation: "remove", name: name.to_owned(), source };
        match netns_rs::NetNs::get(name).and_then(netns_rs::NetNs::remove) {
            Ok(()) => {}
            // A file without a mount: whoever made it died in between. Nothing of a namespace is in it.
            Err(netns_rs::Error::UnmountError(_, nix_errno)) if nix_errno as i32 == libc::EINVAL => {}
            Err(error) => return Err(failed(error)),
        }
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(HostError::File { operation: "remove", path, source })
            }
            _ => Ok(()),
        }
    }

    /// The kernel's number of the namespace: its inode, which BPF programs see as `ns.inum`.
    pub fn inode(&self) -> u32 {
        self.inode
    }

    /// Moves the calling thread into it.
    pub(super) fn enter(&self) -> Result<(), HostError> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(|errno| HostError::system("enter a network namespace", errno))
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The folder's mount is noted where it is this lab that makes it, so that it can go again with the last one.
fn note_folder() -> Result<(), HostError> {
    let note = paths::run_dir().join(".locks").join(FOLDER_NOTE);
    if note.exists() || is_mounted() {
        return Ok(());
    }
    fs::write(&note, "").map_err(|source| HostError::File { operation: "write", path: note, source })
}

/// Whether the folder of named namespaces is a mount.
fn is_mounted() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(1) == Some(NAMED))
}

/// Takes away the folder's mount, where a lab made it and no namespace is left in it. Its own trouble is nobody's: a
/// folder that is in use stays.
pub(super) fn tidy_folder() {
    let note = paths::run_dir().join(".locks").join(FOLDER_NOTE);
    if !note.exists() {
        return;
    }
    if fs::read_dir(NAMED).is_ok_and(|mut dir| dir.next().is_none()) {
        // Not lazily: the kernel refuses while anything is mounted in there.
        let _ = umount2(NAMED, MntFlags::empty());
        let _ = fs::remove_dir(NAMED);
    }
    // Where others have namespaces in it by now, it is theirs.
    let _ = fs::remove_file(&note);
}

/// Where all named namespaces stand.
pub(super) fn names() -> Vec<PathBuf> {
    fs::read_dir(NAMED).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Where a named namespace stands.
fn named(name: &str) -> PathBuf {
    Path::new(NAMED).join(name)
}

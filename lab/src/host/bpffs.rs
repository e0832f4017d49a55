//! A BPF file system of the lab's own: `/sys/fs/bpf` may not be mounted, and is everybody's.

use std::{
    fs,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::{HostError, detached::file_system};

/// A BPF file system that is mounted nowhere, held by a descriptor: it ends with its process.
#[derive(Debug)]
pub struct BpfFs {
    mount: OwnedFd,
}

impl BpfFs {
    /// Makes one (Linux 5.2).
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn detached() -> Result<Self, HostError> {
        Ok(Self { mount: file_system(c"bpf")? })
    }

    /// A path that leads into it, for this process only.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.mount.as_raw_fd()))
    }

    /// Mounts one on a directory, which is made.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn mount(dir: &Path) -> Result<(), HostError> {
        let failed = |operation| move |source| HostError::File { operation, path: dir.to_owned(), source };
        fs::create_dir_all(dir).map_err(failed("make"))?;
        mount(Some("bpf"), dir, Some("bpf"), MsFlags::empty(), Some("mode=0700"))
            .map_err(|errno| failed("mount a BPF file system on")(errno.into()))
    }

    /// Unmounts one, and with it drops every pin in it. A directory that is no mount is no error.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn unmount(dir: &Path) -> Result<(), HostError> {
        match umount2(dir, MntFlags::MNT_DETACH) {
            Ok(()) | Err(nix::errno::Errno::EINVAL | nix::errno::Errno::ENOENT) => Ok(()),
            Err(errno) => Err(HostError::File { operation: "unmount", path: dir.to_owned(), source: errno.into() }),
        }
    }
}

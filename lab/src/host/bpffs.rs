//! A BPF file system of the lab's own: `/sys/fs/bpf` may not be mounted, and is everybody's.

use std::{
    fs, io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    ptr,
};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::HostError;

/// A BPF file system that is mounted nowhere, held by a descriptor: it ends with its process.
#[derive(Debug)]
pub struct BpfFs {
    mount: OwnedFd,
}

// From <linux/mount.h>; libc does not have them on every target.
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

impl BpfFs {
    /// Makes one (`fsopen`, `fsconfig`, `fsmount`; Linux 5.2).
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn detached() -> Result<Self, HostError> {
        let call = |operation: &str, result: libc::c_long| -> Result<i32, HostError> {
            i32::try_from(result).ok().filter(|fd| *fd >= 0).ok_or_else(|| {
                HostError::system(format!("make a BPF file system ({operation})"), io::Error::last_os_error())
            })
        };
        // SAFETY: the name is a C string that outlives the call.
        let context = call("fsopen", unsafe { libc::syscall(libc::SYS_fsopen, c"bpf".as_ptr(), 0x1) })?;
        // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
        let context = unsafe { OwnedFd::from_raw_fd(context) };
        let none = ptr::null::<libc::c_void>();
        // SAFETY: this command takes no key and no value.
        let created =
            unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, none, none, 0) };
        call("fsconfig", created)?;
        // SAFETY: plain numbers only.
        let mount = call("fsmount", unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 0x1, 0) })?;
        // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
        Ok(Self { mount: unsafe { OwnedFd::from_raw_fd(mount) } })
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

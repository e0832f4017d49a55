//! File systems that are mounted nowhere, held by a descriptor: they end with their process.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    path::PathBuf,
    ptr,
};

use super::HostError;

// From <linux/mount.h>; libc does not have them on every target.
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// Makes one of a type (`fsopen`, `fsconfig`, `fsmount`; Linux 5.2).
///
/// # Errors
/// Where the kernel refuses.
pub(super) fn file_system(kind: &CStr) -> Result<OwnedFd, HostError> {
    let call = |operation: &str, result: libc::c_long| -> Result<i32, HostError> {
        i32::try_from(result).ok().filter(|fd| *fd >= 0).ok_or_else(|| {
            let operation = format!("make a file system of type {} ({operation})", kind.to_string_lossy());
            HostError::system(operation, io::Error::last_os_error())
        })
    };
    // SAFETY: the name is a C string that outlives the call.
    let context = call("fsopen", unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 0x1) })?;
    // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
    let context = unsafe { OwnedFd::from_raw_fd(context) };
    let none = ptr::null::<libc::c_void>();
    // SAFETY: this command takes no key and no value.
    let created = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), FSCONFIG_CMD_CREATE, none, none, 0) };
    call("fsconfig", created)?;
    // SAFETY: plain numbers only.
    let mount = call("fsmount", unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 0x1, 0) })?;
    // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(mount) })
}

/// A folder in memory.
#[derive(Debug)]
pub struct MemoryFolder {
    mount: OwnedFd,
}

impl MemoryFolder {
    /// Makes an empty one.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn new() -> Result<Self, HostError> {
        Ok(Self { mount: file_system(c"tmpfs")? })
    }

    /// A path that leads into it, for other processes as well, while this one lives.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.mount.as_raw_fd()))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    #[test]
    fn another_process_sees_what_is_in_it() {
        if !crate::host::is_root() {
            return;
        }
        let folder = MemoryFolder::new().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "here").unwrap();
        let output = Command::new("cat").arg(&file).output().unwrap();
        assert_eq!(output.stdout, b"here");
        drop(folder);
        assert!(!file.exists());
    }
}

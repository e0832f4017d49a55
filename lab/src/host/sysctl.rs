//! Settings under /proc/sys/net, which belong to the namespace of the thread that opens them.

use std::{fs, io, path::Path};

use super::HostError;

/// Writes a setting, named by its path below /proc/sys, in the calling thread's namespace. One that this kernel does
/// not have, IPv6's where that is left out, is no error: there is nothing to set.
///
/// # Errors
/// Where the kernel refuses.
pub fn write(name: &str, value: &str) -> Result<(), HostError> {
    let path = Path::new("/proc/sys").join(name);
    match fs::write(&path, value) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(HostError::File { operation: "write", path, source })
        }
        _ => Ok(()),
    }
}

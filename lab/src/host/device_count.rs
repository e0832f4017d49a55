//! A device's own count of received frames, readable from anywhere and at any time: without a netlink socket's turn.

use std::{fs::File, io, os::unix::fs::FileExt as _, path::PathBuf};

use super::HostError;

const TABLE: &str = "/proc/thread-self/net/dev";
/// Longest that the kernel's table of devices is read, in bytes.
const MOST: usize = 64 * 1024;

/// The table of a namespace's devices, which stays that namespace's wherever it is read from.
#[derive(Debug)]
pub struct DeviceCount {
    table: File,
    device: String,
}

impl DeviceCount {
    /// Opens the table. To be called in the device's namespace.
    ///
    /// # Errors
    /// Where the kernel has none.
    pub fn open(device: &str) -> Result<Self, HostError> {
        let path = PathBuf::from(TABLE);
        let table = File::open(&path).map_err(|source| HostError::File { operation: "open", path, source })?;
        Ok(Self { table, device: device.to_owned() })
    }

    /// Frames received until now; 0 where the device is gone.
    ///
    /// # Errors
    /// Where the table can't be read.
    pub fn received(&self) -> Result<u64, HostError> {
        self.read().map_err(|source| HostError::File { operation: "read", path: PathBuf::from(TABLE), source })
    }

    fn read(&self) -> io::Result<u64> {
        let mut text = vec![0; MOST];
        let mut length = 0;
        while length < text.len() {
            match self.table.read_at(&mut text[length..], length as u64)? {
                0 => break,
                more => length += more,
            }
        }
        Ok(received(&String::from_utf8_lossy(&text[..length]), &self.device).unwrap_or(0))
    }
}

/// The second number behind a device's name: bytes, then packets, of what was received.
fn received(table: &str, device: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_devices_line_is_found_by_its_whole_name() {
        let table = "Inter-|   Receive |  Transmit\n face |bytes packets errs\n    lo: 10 1 0 0\n   rx0:1234 56 0\n  rx01: 9 7 0\n";
        assert_eq!(received(table, "rx0"), Some(56));
        assert_eq!(received(table, "rx01"), Some(7));
        assert_eq!((received(table, "rx"), received(table, "tx0")), (None, None));
    }
}

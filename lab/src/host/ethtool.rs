//! ethtool's ioctls: offloads, and the drivers' own counters, which netlink does not have.
//!
//! Structures and commands are those of <linux/ethtool.h>.

mod settings;
mod tuning;

use std::{
    ffi::c_void,
    io,
    mem::size_of,
    os::fd::{AsRawFd as _, OwnedFd},
};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

pub use settings::PortSettings;
pub use tuning::Tuning;

use super::{HostError, netlink::mac_text};
use crate::topology::nearest;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GGRO: u32 = 0x2b;
const SGRO: u32 = 0x2c;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;
const GDRVINFO: u32 = 0x03;
const GPERMADDR: u32 = 0x20;
/// Longest hardware address, in bytes (`MAX_ADDR_LEN`).
const PERMANENT_MOST: usize = 32;
const SET_STATS: u32 = 1;
const SET_FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN`.
const NAME: usize = 32;

/// Offloads by the short names that `ethtool -K` takes, and the features that they switch.
const ALIASES: &[(&str, &str)] = &[
    ("rx", "rx-checksum"),
    ("tx", "tx-checksum-ip-generic"),
    ("sg", "tx-scatter-gather"),
    ("tso", "tx-tcp-segmentation"),
    ("gso", "tx-generic-segmentation"),
    ("gro", "rx-gro"),
    ("lro", "rx-lro"),
    ("rxvlan", "rx-vlan-hw-parse"),
    ("txvlan", "tx-vlan-hw-insert"),
];

/// A socket for ethtool's ioctls, in the namespace that the calling thread was in when it was opened.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
}

/// Who drives a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverInfo {
    /// The driver's name.
    pub driver: String,
    /// Its version.
    pub version: String,
    /// The firmware's version.
    pub firmware: String,
    /// Where the device is, such as a PCI address.
    pub bus: String,
}

#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

#[repr(C)]
struct Driver {
    command: u32,
    driver: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus: [u8; 32],
    erom: [u8; 32],
    reserved: [u8; 12],
    counts: [u32; 5],
}

impl Ethtool {
    /// Opens the socket.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn open() -> Result<Self, HostError> {
        let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
            .map_err(|errno| HostError::system("open a socket for ethtool", errno))?;
        Ok(Self { socket })
    }

    /// Who drives a device.
    ///
    /// # Errors
    /// Where there is no such device.
    pub fn driver(&self, port: &str) -> Result<DriverInfo, HostError> {
        let mut info = Driver {
            command: GDRVINFO,
            driver: [0; 32],
            version: [0; 32],
            firmware: [0; 32],
            bus: [0; 32],
            erom: [0; 32],
            reserved: [0; 12],
            counts: [0; 5],
        };
        self.call(port, "read the driver", (&raw mut info).cast())?;
        let [driver, version, firmware, bus] = [info.driver, info.version, info.firmware, info.bus].map(|n| text(&n));
        Ok(DriverInfo { driver, version, firmware, bus })
    }

    /// A device's MAC address as it was made, whatever it is set to now; `None` where its driver does not tell.
    pub fn permanent_mac(&self, port: &str) -> Option<String> {
        // struct ethtool_perm_addr: command, size, then as many bytes.
        let mut buffer = [0u64; 1 + PERMANENT_MOST / 8];
        buffer[0] = words(GPERMADDR, PERMANENT_MOST as u32);
        self.call(port, "read the permanent address", buffer.as_mut_ptr().cast()).ok()?;
        let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let (head, address) = bytes.split_at(8);
        let length = u32::from_ne_bytes(head[4..].try_into().ok()?) as usize;
        let address = address.get(..length).filter(|address| address.iter().any(|byte| *byte != 0))?;
        Some(mac_text(address))
    }

    /// The driver's own counters by name, in its order.
    ///
    /// # Errors
    /// Where there is no such device.
    pub fn stats(&self, port: &str) -> Result<Vec<(String, u64)>, HostError> {
        let names = self.strings(port, SET_STATS)?;
        // struct ethtool_stats: command, count, then the counters.
        let mut buffer = vec![0u64; 1 + names.len()];
        buffer[0] = words(GSTATS, names.len() as u32);
        self.call(port, "read the driver's counters", buffer.as_mut_ptr().cast())?;
        Ok(names.into_iter().zip(buffer.into_iter().skip(1)).collect())
    }

    /// Whether GRO is on.
    ///
    /// # Errors
    /// Where there is no such device.
    pub fn gro(&self, port: &str) -> Result<bool, HostError> {
        let mut value = Value { command: GGRO, data: 0 };
        self.call(port, "read GRO", (&raw mut value).cast())?;
        Ok(value.data != 0)
    }

    /// Switches GRO.
    ///
    /// # Errors
    /// Where there is no such device, or it refuses.
    pub fn set_gro(&self, port: &str, on: bool) -> Result<(), HostError> {
        let mut value = Value { command: SGRO, data: u32::from(on) };
        self.call(port, "switch GRO", (&raw mut value).cast())
    }

    /// A device's offloads by name, and whether each is on.
    ///
    /// # Errors
    /// Where there is no such device.
    pub fn features(&self, port: &str) -> Result<Vec<(String, bool)>, HostError> {
        let names = self.strings(port, SET_FEATURES)?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_gfeatures: command, blocks, then available, requested, active, never_changed a block.
        let mut buffer = vec![0u32; 2 + 4 * blocks];
        (buffer[0], buffer[1]) = (GFEATURES, blocks as u32);
        self.call(port, "read offloads", buffer.as_mut_ptr().cast())?;
        let active = |n: usize| buffer[2 + 4 * (n / 32) + 2] >> (n % 32) & 1 == 1;
        Ok(names.into_iter().enumerate().map(|(n, name)| (name, active(n))).collect())
    }

    /// Whether a device has an offload, by its name or ethtool's short one.
    ///
    /// # Errors
    /// Where the device does not have it.
    pub fn has_feature(&self, port: &str, feature: &str) -> Result<(), HostError> {
        self.feature(port, feature).map(drop)
    }

    /// An offload's place among a device's, and the names of them all.
    fn feature(&self, port: &str, feature: &str) -> Result<(usize, Vec<String>), HostError> {
        let full = ALIASES.iter().find(|(short, _)| *short == feature).map_or(feature, |(_, full)| full);
        let names = self.strings(port, SET_FEATURES)?;
        match names.iter().position(|name| name == full) {
            Some(position) => Ok((position, names)),
            None => Err(no_feature(port, feature, &names)),
        }
    }

    /// Switches an offload, by its name or ethtool's short one.
    ///
    /// # Errors
    /// Where the device does not have it, or refuses.
    pub fn set_feature(&self, port: &str, feature: &str, on: bool) -> Result<(), HostError> {
        let (position, names) = self.feature(port, feature)?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_sfeatures: command, blocks, then valid, requested a block.
        let mut buffer = vec![0u32; 2 + 2 * blocks];
        (buffer[0], buffer[1]) = (SFEATURES, blocks as u32);
        let bit = 1 << (position % 32);
        buffer[2 + 2 * (position / 32)] = bit;
        buffer[2 + 2 * (position / 32) + 1] = if on { bit } else { 0 };
        self.call(port, &format!("switch {feature}"), buffer.as_mut_ptr().cast())?;
        // The kernel answers a wish that it does not fulfil with success.
        match self.features(port)?.iter().find(|(name, _)| *name == names[position]) {
            Some((_, state)) if *state == on => Ok(()),
            _ => {
                let state = if on { "on" } else { "off" };
                let source = io::Error::from(io::ErrorKind::Unsupported);
                Err(HostError::system(
                    format!("switch {feature} of {port} {state}: the driver does not allow it"),
                    source,
                ))
            }
        }
    }

    /// The names of one of the device's string sets.
    fn strings(&self, port: &str, set: u32) -> Result<Vec<String>, HostError> {
        // struct ethtool_sset_info: command, reserved, mask (64 bits), then a count for each bit set.
        let mut info = [GSSET_INFO, 0, 1 << set, 0, 0];
        self.call(port, "count the driver's names", info.as_mut_ptr().cast())?;
        let count = if info[2] == 0 { 0 } else { info[4] as usize };
        // struct ethtool_gstrings: command, set, count, then the names.
        let mut buffer = vec![0u32; 3 + count * NAME / size_of::<u32>()];
        buffer[..3].copy_from_slice(&[GSTRINGS, set, count as u32]);
        self.call(port, "read the driver's names", buffer.as_mut_ptr().cast())?;
        let bytes: Vec<u8> = buffer[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        Ok(bytes.chunks(NAME).map(text).collect())
    }

    /// One ioctl. `data` points to a structure that starts with its command and is as large as that one needs.
    fn call(&self, port: &str, operation: &str, data: *mut c_void) -> Result<(), HostError> {
        // SAFETY: an all-zero ifreq is a valid one.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if port.len() >= request.ifr_name.len() {
            return Err(HostError::system(
                format!("{operation} of {port}"),
                io::Error::from_raw_os_error(libc::ENODEV),
            ));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(port.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = data.cast();
        // SAFETY: the request names the device, and every caller's structure has the layout and the room that its
        // command calls for, and outlives the call.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
        if result < 0 {
            return Err(HostError::system(format!("{operation} of {port}"), io::Error::last_os_error()));
        }
        Ok(())
    }
}

/// Two 32-bit words as they stand in memory.
fn words(first: u32, second: u32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// A C string in a field of fixed length.
fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// That a device has no offload of a name, and which may be meant.
fn no_feature(port: &str, feature: &str, names: &[String]) -> HostError {
    let names = names.iter().map(String::as_str).filter(|name| !name.is_empty());
    let known = ALIASES.iter().map(|(short, _)| *short).chain(names.clone());
    let help = nearest(feature, known).map_or_else(
        || format!("it has {}", names.collect::<Vec<_>>().join(", ")),
        |nearest| format!("did you mean `{nearest}`?"),
    );
    HostError::NoFeature { port: port.to_owned(), feature: feature.to_owned(), help }
}

//! The BPF system calls that the lab makes itself: those for which aya has no call, or one that does more than asked.
//!
//! aya attaches by netlink where a link is refused; a lab must say so instead, since such a program outlives it.

use std::{
    ffi::CString,
    io,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

const MAP_LOOKUP_ELEM: u32 = 1;
const MAP_UPDATE_ELEM: u32 = 2;
const OBJ_PIN: u32 = 6;
const OBJ_GET_INFO_BY_FD: u32 = 15;
const MAP_UPDATE_BATCH: u32 = 26;
const LINK_CREATE: u32 = 28;
const LINK_UPDATE: u32 = 29;
/// `BPF_XDP` of `enum bpf_attach_type`.
const ATTACH_XDP: u32 = 37;

/// The attributes of every command used here, as 32-bit words; the kernel takes missing ones as zero.
type Attributes = [u32; 16];

fn bpf(command: u32, attributes: &mut Attributes) -> io::Result<i32> {
    // SAFETY: the attributes outlive the call, their size is given, and what they point to is borrowed by the callers
    // for as long.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), size_of::<Attributes>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

fn pointer(attributes: &mut Attributes, word: usize, pointer: *const u8) {
    let address = pointer as u64;
    attributes[word] = address as u32;
    attributes[word + 1] = (address >> 32) as u32;
}

/// Attaches an XDP program by a link; `flags` are `XDP_FLAGS_*`.
pub(super) fn link_create(program: BorrowedFd<'_>, ifindex: u32, flags: u32) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::default();
    attributes[..4].copy_from_slice(&[program.as_raw_fd() as u32, ifindex, ATTACH_XDP, flags]);
    let fd = bpf(LINK_CREATE, &mut attributes)?;
    // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Puts another program into a link.
pub(super) fn link_update(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attributes = Attributes::default();
    attributes[..2].copy_from_slice(&[link.as_raw_fd() as u32, program.as_raw_fd() as u32]);
    bpf(LINK_UPDATE, &mut attributes).map(drop)
}

/// Where the kernel put a program's code; `None` where it does not tell, or did not translate it.
pub(super) fn program_address(program: BorrowedFd<'_>) -> io::Result<Option<u64>> {
    // struct bpf_prog_info up to jited_ksyms: words 26 (nr_jited_ksyms) and 28 (its address).
    let mut info = [0u32; 30];
    let mut address = 0u64;
    info[26] = 1;
    let at = (&raw mut address) as u64;
    info[28] = at as u32;
    info[29] = (at >> 32) as u32;
    let mut attributes = Attributes::default();
    attributes[0] = program.as_raw_fd() as u32;
    attributes[1] = size_of_val(&info) as u32;
    pointer(&mut attributes, 2, info.as_mut_ptr().cast());
    bpf(OBJ_GET_INFO_BY_FD, &mut attributes)?;
    Ok(Some(address).filter(|address| *address != 0))
}

/// Pins a link, a map or a program.
pub(super) fn pin(object: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes = Attributes::default();
    pointer(&mut attributes, 0, path.as_ptr().cast());
    attributes[2] = object.as_raw_fd() as u32;
    bpf(OBJ_PIN, &mut attributes).map(drop)
}

/// Writes a map's entry. `key` and `value` must be as long as the map has them: the caller asked it.
pub(super) fn map_update(map: impl AsFd, key: &[u8], value: &[u8]) -> io::Result<()> {
    let mut attributes = Attributes::default();
    attributes[0] = map.as_fd().as_raw_fd() as u32;
    pointer(&mut attributes, 2, key.as_ptr());
    pointer(&mut attributes, 4, value.as_ptr());
    bpf(MAP_UPDATE_ELEM, &mut attributes).map(drop)
}

/// Writes many entries at once: keys and values one after the other, as many of each.
pub(super) fn map_update_batch(map: impl AsFd, keys: &[u8], values: &[u8], count: u32) -> io::Result<()> {
    let mut attributes = Attributes::default();
    pointer(&mut attributes, 4, keys.as_ptr());
    pointer(&mut attributes, 6, values.as_ptr());
    attributes[8] = count;
    attributes[9] = map.as_fd().as_raw_fd() as u32;
    bpf(MAP_UPDATE_BATCH, &mut attributes).map(drop)
}

/// Reads a map's entry into 64-bit words: of a per-CPU map, the values of all possible CPUs, one after the other.
/// `value` must have room for them.
pub(super) fn map_lookup(map: impl AsFd, key: u32, value: &mut [u64]) -> io::Result<()> {
    let mut attributes = Attributes::default();
    attributes[0] = map.as_fd().as_raw_fd() as u32;
    pointer(&mut attributes, 2, (&raw const key).cast());
    pointer(&mut attributes, 4, value.as_mut_ptr().cast());
    bpf(MAP_LOOKUP_ELEM, &mut attributes).map(drop)
}

/// Writes 64-bit words into an array's entry; the same rules as for [`map_lookup`].
pub(super) fn map_write(map: impl AsFd, key: u32, value: &[u64]) -> io::Result<()> {
    let mut attributes = Attributes::default();
    attributes[0] = map.as_fd().as_raw_fd() as u32;
    pointer(&mut attributes, 2, (&raw const key).cast());
    pointer(&mut attributes, 4, value.as_ptr().cast());
    bpf(MAP_UPDATE_ELEM, &mut attributes).map(drop)
}

//! The BPF system calls that the lab makes itself: those for which aya has no call, or one that does more than asked.
//!
//! aya attaches by netlink where a link is refused; a lab must say so instead, since such a program outlives it.

use std::{
    ffi::CString,
    io, mem,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use aya_obj::generated::{bpf_btf_info, bpf_func_info, bpf_prog_info};

const MAP_LOOKUP_ELEM: u32 = 1;
const MAP_UPDATE_ELEM: u32 = 2;
const OBJ_PIN: u32 = 6;
const PROG_GET_NEXT_ID: u32 = 11;
const PROG_GET_FD_BY_ID: u32 = 13;
const OBJ_GET_INFO_BY_FD: u32 = 15;
const BTF_GET_FD_BY_ID: u32 = 19;
const MAP_UPDATE_BATCH: u32 = 26;
const PROG_LOAD: u32 = 5;
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

/// Loads a socket filter of so many instructions, which does nothing: what it is for is the room that its code takes.
pub(super) fn load_padding(instructions: usize) -> io::Result<OwnedFd> {
    // `r0 = 0` again and again, and `exit`.
    let mut code = vec![0x0000_0000_0000_00b7_u64; instructions.max(1)];
    code.push(0x95);
    let license = c"GPL";
    let mut attributes = Attributes::default();
    // BPF_PROG_TYPE_SOCKET_FILTER
    attributes[..2].copy_from_slice(&[1, code.len() as u32]);
    pointer(&mut attributes, 2, code.as_ptr().cast());
    pointer(&mut attributes, 4, license.as_ptr().cast());
    let fd = bpf(PROG_LOAD, &mut attributes)?;
    // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Puts another program into a link.
pub(super) fn link_update(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attributes = Attributes::default();
    attributes[..2].copy_from_slice(&[link.as_raw_fd() as u32, program.as_raw_fd() as u32]);
    bpf(LINK_UPDATE, &mut attributes).map(drop)
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

/// The same for a key of several words; an entry that is not there reads as zero.
pub(super) fn map_lookup_words(map: impl AsFd, key: &[u32], value: &mut [u64]) -> io::Result<()> {
    let mut attributes = Attributes::default();
    attributes[0] = map.as_fd().as_raw_fd() as u32;
    pointer(&mut attributes, 2, key.as_ptr().cast());
    pointer(&mut attributes, 4, value.as_mut_ptr().cast());
    match bpf(MAP_LOOKUP_ELEM, &mut attributes) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
            value.fill(0);
            Ok(())
        }
        outcome => outcome.map(drop),
    }
}

/// Writes 64-bit words into an array's entry; the same rules as for [`map_lookup`].
pub(super) fn map_write(map: impl AsFd, key: u32, value: &[u64]) -> io::Result<()> {
    let mut attributes = Attributes::default();
    attributes[0] = map.as_fd().as_raw_fd() as u32;
    pointer(&mut attributes, 2, (&raw const key).cast());
    pointer(&mut attributes, 4, value.as_ptr().cast());
    bpf(MAP_UPDATE_ELEM, &mut attributes).map(drop)
}

/// The number of the loaded program after `last`; `None` after the last one.
pub(super) fn next_program(last: u32) -> io::Result<Option<u32>> {
    let mut attributes = Attributes::default();
    attributes[0] = last;
    match bpf(PROG_GET_NEXT_ID, &mut attributes) {
        Ok(_) => Ok(Some(attributes[1])),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A loaded program's kind, a number of `enum bpf_prog_type`.
pub(super) fn program_kind(id: u32) -> io::Result<u32> {
    let program = by_id(PROG_GET_FD_BY_ID, id)?;
    // SAFETY: a structure of numbers, of which zeros are a value.
    let mut asked: bpf_prog_info = unsafe { mem::zeroed() };
    // SAFETY: no pointer is set, so that the kernel writes into `asked` alone.
    unsafe { info(program.as_fd(), &mut asked)? };
    Ok(asked.type_)
}

/// The machine code of a loaded program: a function each, in the same order in all lists.
#[derive(Debug, Default)]
pub(super) struct JitedCode {
    /// The program's name, up to 15 bytes.
    pub(super) name: String,
    /// Where each function starts; all 0 where the kernel hides addresses from the caller.
    pub(super) addresses: Vec<u64>,
    /// How many bytes it has.
    pub(super) lengths: Vec<u32>,
    /// Its type in the program's BTF.
    pub(super) types: Vec<u32>,
    /// The BTF's number; 0 for none.
    pub(super) btf: u32,
}

/// What the kernel tells of a program's machine code.
pub(super) fn jited_code(id: u32) -> io::Result<JitedCode> {
    let program = by_id(PROG_GET_FD_BY_ID, id)?;
    // SAFETY: a structure of numbers, of which zeros are a value.
    let mut sizes: bpf_prog_info = unsafe { mem::zeroed() };
    // SAFETY: no pointer is set, so that the kernel writes into `sizes` alone.
    unsafe { info(program.as_fd(), &mut sizes)? };
    let name = sizes.name.iter().map(|c| *c as u8).take_while(|c| *c != 0).collect::<Vec<_>>();
    let mut addresses = vec![0_u64; sizes.nr_jited_ksyms as usize];
    let mut lengths = vec![0_u32; sizes.nr_jited_func_lens as usize];
    let mut functions = vec![bpf_func_info { insn_off: 0, type_id: 0 }; sizes.nr_func_info as usize];
    // SAFETY: as above.
    let mut arrays: bpf_prog_info = unsafe { mem::zeroed() };
    (arrays.nr_jited_ksyms, arrays.jited_ksyms) = (sizes.nr_jited_ksyms, addresses.as_mut_ptr() as u64);
    (arrays.nr_jited_func_lens, arrays.jited_func_lens) = (sizes.nr_jited_func_lens, lengths.as_mut_ptr() as u64);
    (arrays.nr_func_info, arrays.func_info) = (sizes.nr_func_info, functions.as_mut_ptr() as u64);
    arrays.func_info_rec_size = size_of::<bpf_func_info>() as u32;
    // SAFETY: each pointer set has room for as many elements as its count says, and outlives the call.
    unsafe { info(program.as_fd(), &mut arrays)? };
    Ok(JitedCode {
        name: String::from_utf8_lossy(&name).into_owned(),
        addresses,
        lengths,
        types: functions.iter().map(|function| function.type_id).collect(),
        btf: sizes.btf_id,
    })
}

/// A BTF object that is loaded, as it was given to the kernel.
pub(super) fn btf(id: u32) -> io::Result<Vec<u8>> {
    let object = by_id(BTF_GET_FD_BY_ID, id)?;
    // SAFETY: a structure of numbers, of which zeros are a value.
    let mut asked: bpf_btf_info = unsafe { mem::zeroed() };
    // SAFETY: no pointer is set, so that the kernel writes into `asked` alone.
    unsafe { info(object.as_fd(), &mut asked)? };
    let mut data = vec![0; asked.btf_size as usize];
    asked.btf = data.as_mut_ptr() as u64;
    // Where the kernel should write the name of a kernel module: nowhere.
    (asked.name, asked.name_len) = (0, 0);
    // SAFETY: the only pointer set has room for `btf_size` bytes and outlives the call.
    unsafe { info(object.as_fd(), &mut asked)? };
    Ok(data)
}

fn by_id(command: u32, id: u32) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::default();
    attributes[0] = id;
    let fd = bpf(command, &mut attributes)?;
    // SAFETY: the kernel just gave us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Fills in what the kernel knows of an object.
///
/// # Safety
/// `T` must be the structure that the kernel has for this kind of object, and what its pointers point to must have room
/// for as much as its counts say.
unsafe fn info<T>(object: BorrowedFd<'_>, info: &mut T) -> io::Result<()> {
    let mut attributes = Attributes::default();
    attributes[..2].copy_from_slice(&[object.as_raw_fd() as u32, size_of::<T>() as u32]);
    pointer(&mut attributes, 2, (&raw mut *info).cast());
    bpf(OBJ_GET_INFO_BY_FD, &mut attributes).map(drop)
}

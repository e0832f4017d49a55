//! The kernel's own words for a refused attachment.
//!
//! A netlink request gets them in its acknowledgement; a link has only a tracepoint for them, since Linux 6.6.

use std::io;

use aya::{maps::Array, programs::Program};

use super::{
    builtin::{objects, with_globals},
    load::load_own,
    watch::kernel_btf,
};

const TRACEPOINT: &str = "bpf_xdp_link_attach_failed";

/// Tries a refused attachment again while listening. Returns its outcome, and the kernel's words where it has some.
pub(super) fn again<T>(attach: impl FnOnce() -> io::Result<T>) -> (io::Result<T>, Option<String>) {
    // The words are an extra: where nothing can listen, the errno has to do.
    let Some(mut listener) = listen() else { return (attach(), None) };
    let outcome = attach();
    let words = listener.map_mut("message").and_then(|map| {
        let message: Array<_, [u8; 128]> = map.try_into().ok()?;
        let bytes = message.get(&0, 0).ok()?;
        let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next()?).trim().to_owned();
        (!text.is_empty()).then_some(text)
    });
    (outcome, words)
}

/// A listener for the calling thread; `None` where the kernel has no such tracepoint.
fn listen() -> Option<aya::Ebpf> {
    let thread = u64::from(std::process::id()) << 32 | nix::unistd::gettid().as_raw() as u64;
    let data = with_globals(objects::EXTACK, &[("THREAD", &thread.to_ne_bytes())]).ok()?;
    let mut ebpf = load_own(&data, &[]).ok()?;
    let Some(Program::BtfTracePoint(program)) = ebpf.program_mut(TRACEPOINT) else { return None };
    program.load(TRACEPOINT, kernel_btf().ok()?).ok()?;
    program.attach().ok()?;
    Some(ebpf)
}

//! Engine `live`: `BPF_PROG_RUN` with live frames through the source program.
//!
//! What was offered is what the source counted, never what was asked for: a signal ends a call early.

use std::{io, time::Instant};

use nix::{errno::Errno, sched::sched_yield};

use super::{Stop, cpu::Pinned};
use crate::{
    drivers::Kernel,
    lab::{Lab, LabError, Pace, SourceKey},
    topology::Amount,
};

/// Frames of one call: at some million a second, a few milliseconds, after which a stop is noticed.
const CHUNK: u32 = 16_384;

/// How many batches may follow each other where none may be lost, on this kernel; `None`: any number.
///
/// Before 6.5 a CPU whose ksoftirqd is about to run leaves all softirqs to it (`kernel/softirq.c`, `ksoftirqd_running`):
/// what a batch put into a veth's ring stays there until the sender lets go of the CPU, and a ring holds four batches.
pub fn unhurried_batches() -> Option<u32> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Kernel::of_release(&release).filter(|kernel| *kernel < Kernel(6, 5)).map(|_| 2)
}

/// Sends an amount of frames, `batch` at a time; returns how many the source made.
///
/// `batches`: after how many of them the sender lets others on its CPU run; `None`: when it likes. `pace`: who must have dealt with a chunk of frames before the next is sent. `progress` hears of frames made so far.
///
/// # Errors
/// Where the kernel refuses the run.
#[expect(clippy::too_many_arguments, reason = "each is a matter of its own")]
pub fn send(
    lab: &mut Lab,
    key: &SourceKey,
    amount: Amount,
    batch: u32,
    batches: Option<u32>,
    pace: Option<&Pace>,
    stop: &Stop,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<u64, LabError> {
    lab.source(key)?;
    let port = lab.topology().port_name(key.from);
    let (thread, source, network, topology) = lab.thread_and_source();
    let source = source.expect("loaded above");
    let netns = &network.at(topology, key.from).netns;
    let before = source.state()?.offered;
    let chunk = u64::from(pace.map_or(CHUNK, |pace| pace.chunk().min(CHUNK)));
    let chunk = batches.map_or(chunk, |batches| chunk.min(u64::from(batches * batch)));
    let started = Instant::now();
    thread.run(|inside| -> Result<u64, LabError> {
        inside.enter(netns, || -> Result<u64, LabError> {
            let failed = |source: io::Error| LabError::Send { port: port.clone(), source };
            let _pinned = Pinned::here().map_err(|errno| failed(errno.into()))?;
            loop {
                let made = source.state()?.offered - before;
                progress(made);
                if let Some(pace) = pace {
                    pace.wait(made)?;
                }
                let left = match amount {
                    Amount::Frames(frames) => frames.saturating_sub(made),
                    Amount::Duration(time) if started.elapsed() >= time => 0,
                    Amount::Duration(_) => chunk,
                };
                if left == 0 || stop.is_asked() {
                    return Ok(made);
                }
                if batches.is_some() {
                    sched_yield().map_err(|errno| failed(errno.into()))?;
                }
                match source.run(left.min(chunk) as u32, batch) {
                    Ok(()) => {}
                    // A signal ended the call early; what was made until then is counted, the rest is made next.
                    Err(error) if error.raw_os_error() == Some(Errno::EINTR as i32) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
        })?
    })
}

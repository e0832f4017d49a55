//! Engine `live`: `BPF_PROG_RUN` with live frames through the source program, on one CPU or on several at once.
//!
//! What was offered is what the sources counted, never what was asked for: a signal ends a call early.

use std::{
    io,
    sync::{
        Barrier, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Instant,
};

use nix::{errno::Errno, sched::sched_yield};

use super::{Stop, cpu::Pinned};
use crate::{
    drivers::Kernel,
    lab::{Lab, LabError, Pace, SourceKey, Sources},
    program::{ProgramError, Source},
    topology::Amount,
};

/// Frames of one call: at some million a second, a few milliseconds, after which a stop is noticed.
const CHUNK: u32 = 16_384;

/// How many batches may follow each other where none may be lost, on this kernel; `None`: any number.
///
/// Before 6.5 a CPU whose ksoftirqd is about to run leaves all softirqs to it (`kernel/softirq.c`, `ksoftirqd_running`):
/// what a batch put into a veth's ring stays there until the sender lets go of the CPU, and a ring holds four batches.
pub fn unhurried_batches() -> Option<u32> {
    Kernel::running().filter(|kernel| *kernel < Kernel(6, 5)).map(|_| 2)
}

/// A run of live frames.
pub struct Live<'a> {
    /// What the sources are made for.
    pub key: &'a SourceKey,
    /// How much is sent, by all senders together.
    pub amount: Amount,
    /// Frames a batch.
    pub batch: u32,
    /// Most frames of one call of each sender.
    pub chunk: u32,
    /// After how many batches a sender lets others on its CPU run; `None`: when it likes.
    pub batches: Option<u32>,
    /// Who must have dealt with a chunk of frames before the next is sent.
    pub pace: Option<&'a Pace>,
    /// Ends it early.
    pub stop: &'a Stop,
    /// Hears of frames made so far, between two calls of the first sender.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

impl<'a> Live<'a> {
    /// As fast as frames go.
    pub fn new(key: &'a SourceKey, amount: Amount, batch: u32, stop: &'a Stop) -> Self {
        Self { key, amount, batch, chunk: CHUNK, batches: None, pace: None, stop, progress: &|_| {} }
    }

    /// Frames that all of so many senders may make until the next look at the pace and the stop.
    fn round(&self, senders: u64) -> u64 {
        let most = u64::from(self.chunk.min(CHUNK)) * senders;
        let paced = self.pace.map_or(most, |pace| most.min(u64::from(pace.chunk())));
        self.batches.map_or(paced, |batches| paced.min(u64::from(batches * self.batch) * senders))
    }

    /// Frames of the next round, of `made` until now; `None` where it is over.
    fn next(&self, made: u64, round: u64, started: Instant) -> Option<u64> {
        let left = match self.amount {
            Amount::Frames(frames) => frames.saturating_sub(made),
            Amount::Duration(time) if started.elapsed() >= time => 0,
            Amount::Duration(_) => round,
        };
        (left > 0 && !self.stop.is_asked()).then(|| left.min(round))
    }
}

/// One call of a source: a signal ends it early, and what is missing is made by the next.
fn call(source: &Source, frames: u32, batch: u32, polite: bool) -> io::Result<()> {
    if polite {
        sched_yield()?;
    }
    match source.run(frames, batch) {
        Err(error) if error.raw_os_error() != Some(Errno::EINTR as i32) => Err(error),
        _ => Ok(()),
    }
}

/// Frames that all sources have made.
fn offered(sources: &[Source]) -> Result<u64, ProgramError> {
    sources.iter().map(|source| source.state().map(|state| state.offered)).sum()
}

/// Sends frames; returns how many the sources made.
///
/// # Errors
/// Where the kernel refuses the run, or there are fewer CPUs than senders.
pub fn send(lab: &mut Lab, run: &Live<'_>) -> Result<u64, LabError> {
    let port = lab.topology().port_name(run.key.from);
    let (thread, Sources { each: sources, cpus, .. }, netns) = lab.sending(run.key)?;
    let before = offered(sources)?;
    let started = Instant::now();
    let failed = |source: io::Error| LabError::Send { port: port.clone(), source };
    thread.run(|inside| -> Result<u64, LabError> {
        inside.enter(netns, || -> Result<u64, LabError> {
            let _pinned = Pinned::to(cpus[0]).map_err(|errno| failed(errno.into()))?;
            let round = run.round(sources.len() as u64);
            let rounds = |frames: &mut dyn FnMut(u64) -> Result<(), LabError>| -> Result<u64, LabError> {
                loop {
                    let made = offered(sources)? - before;
                    (run.progress)(made);
                    if let Some(pace) = run.pace {
                        pace.wait(made)?;
                    }
                    match run.next(made, round, started) {
                        Some(next) => frames(next)?,
                        None => return Ok(made),
                    }
                }
            };
            match sources.as_slice() {
                [source] => {
                    rounds(&mut |frames| call(source, frames as u32, run.batch, run.batches.is_some()).map_err(failed))
                }
                _ => Together::run(sources, cpus, run, |together| {
                    rounds(&mut |frames| together.round(&sources[0], frames, run).map_err(failed))
                })
                .map_err(failed)?,
            }
        })?
    })
}

/// Senders that are at work together, round after round. Their threads are made in the sending port's namespace, and so
/// they are in it.
struct Together {
    /// Frames of each sender in this round.
    shares: Vec<AtomicU32>,
    over: AtomicBool,
    barrier: Barrier,
    failed: Mutex<Option<io::Error>>,
}

impl Together {
    /// Has a thread for every source but the first, while some work is done that has them take part.
    fn run<R>(sources: &[Source], cpus: &[usize], run: &Live<'_>, work: impl FnOnce(&Self) -> R) -> io::Result<R> {
        let together = Self {
            shares: sources.iter().map(|_| AtomicU32::new(0)).collect(),
            over: AtomicBool::new(false),
            barrier: Barrier::new(sources.len()),
            failed: Mutex::new(None),
        };
        let (batch, polite) = (run.batch, run.batches.is_some());
        std::thread::scope(|scope| {
            for ((source, cpu), share) in sources.iter().zip(cpus).zip(&together.shares).skip(1) {
                let together = &together;
                scope.spawn(move || {
                    // Where it can't be pinned it sends nothing, and takes part all the same: the others wait for it.
                    let pinned = Pinned::to(*cpu).map_err(io::Error::from);
                    let pinned = pinned.map_err(|error| together.fail(error)).ok();
                    loop {
                        together.barrier.wait();
                        if together.over.load(Ordering::Relaxed) {
                            return;
                        }
                        let frames = share.load(Ordering::Relaxed);
                        if pinned.is_some() && frames > 0 {
                            call(source, frames, batch, polite).unwrap_or_else(|error| together.fail(error));
                        }
                        together.barrier.wait();
                    }
                });
            }
            // Also where the work panics: threads that wait would never be joined.
            let _end = End(&together);
            Ok(work(&together))
        })
    }

    fn fail(&self, error: io::Error) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// One round: each sender makes its share of the frames.
    fn round(&self, first: &Source, frames: u64, run: &Live<'_>) -> io::Result<()> {
        let flows = u64::from(run.key.flows.max(1));
        let mut left = frames;
        for (n, share) in (0..).zip(&self.shares) {
            // In proportion to its flows, so that all flows get on alike; the last takes what rounding left over.
            let of = run.key.flows_of(n);
            let is_last = n as usize + 1 == self.shares.len();
            let mine = if is_last { left } else { frames * u64::from(of.end - of.start) / flows };
            left -= mine;
            share.store(mine as u32, Ordering::Relaxed);
        }
        self.barrier.wait();
        let mine = self.shares.first().map_or(0, |share| share.load(Ordering::Relaxed));
        let own = if mine > 0 { call(first, mine, run.batch, run.batches.is_some()) } else { Ok(()) };
        self.barrier.wait();
        match self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => own,
        }
    }
}

/// Sends the other threads home.
struct End<'a>(&'a Together);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
        self.0.barrier.wait();
    }
}

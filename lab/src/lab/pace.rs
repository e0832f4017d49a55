//! Sending no faster than frames are received: a socket's ring is short, and its receiver has to be woken; so is the
//! queue of another CPU, which may have other work.

use std::time::{Duration, Instant};

use super::LabError;
use super::receiver::{Receiver, Tap};
use crate::program::WatchCounter;

/// How a sender waits for those that receive, so that no ring overflows.
#[derive(Debug)]
pub struct Pace {
    taps: Vec<Tap>,
    /// What the stack received from queues of other CPUs, and how often it receives each frame.
    stacks: Vec<(WatchCounter, u64)>,
    /// Frames that may be sent between two waits.
    chunk: u32,
    /// Frames that had ended before the first was sent.
    before: u64,
}

impl Pace {
    /// How long receivers must have been idle, their rings empty, where not every frame is for them.
    const IDLE: Duration = Duration::from_millis(1);
    /// The same where a queue of another CPU is between, of which nobody can tell whether it is empty.
    const QUEUE_IDLE: Duration = Duration::from_millis(20);
    /// How long they are waited for: a receiver that takes longer is stuck, which the account will show.
    const MOST: Duration = Duration::from_secs(1);

    /// The pace that some receivers, and queues of other CPUs with the counters of what came out of them, can hold;
    /// `None` without one. A generic program's frames are received twice: before it runs, and from the queue.
    pub(super) fn of<'a>(
        receivers: impl Iterator<Item = &'a Receiver>,
        queues: Vec<(u32, WatchCounter, u64)>,
    ) -> Result<Option<Self>, LabError> {
        let taps: Vec<Tap> = receivers.map(Receiver::tap).collect();
        let lengths = queues.iter().map(|(length, ..)| *length);
        let Some(least) = taps.iter().map(Tap::ring).chain(lengths).min() else { return Ok(None) };
        let stacks = queues.into_iter().map(|(_, counter, times)| (counter, times)).collect();
        let mut pace = Self { taps, stacks, chunk: (least / 2).max(1), before: 0 };
        pace.before = pace.ended()?;
        Ok(Some(pace))
    }

    /// Frames that may be sent between two waits: half of the smallest ring.
    pub fn chunk(&self) -> u32 {
        self.chunk
    }

    fn ended(&self) -> Result<u64, LabError> {
        let taps: u64 = self.taps.iter().map(Tap::ended).sum::<Result<u64, _>>()?;
        let received = |(counter, times): &(WatchCounter, u64)| counter.read().map(|count| count / times);
        let stacks: u64 = self.stacks.iter().map(received).sum::<Result<u64, _>>()?;
        Ok(taps + stacks)
    }

    fn is_drained(&self) -> Result<bool, LabError> {
        Ok(self.taps.iter().map(Tap::is_drained).collect::<Result<Vec<_>, _>>()?.into_iter().all(|drained| drained))
    }

    /// Waits until the receivers have dealt with the frames sent so far, or with all of them that were for them.
    ///
    /// # Errors
    /// Where the kernel refuses to tell of a socket.
    pub fn wait(&self, sent: u64) -> Result<(), LabError> {
        let idle = if self.stacks.is_empty() { Self::IDLE } else { Self::QUEUE_IDLE };
        let deadline = Instant::now() + Self::MOST;
        let (mut last, mut changed) = (self.before, Instant::now());
        loop {
            let ended = self.ended()?;
            if ended - self.before.min(ended) >= sent || Instant::now() >= deadline {
                return Ok(());
            }
            if ended != last || !self.is_drained()? {
                (last, changed) = (ended, Instant::now());
            } else if changed.elapsed() >= idle {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }
}

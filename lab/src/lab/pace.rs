//! Sending no faster than frames are received: a socket's ring is short, and its receiver has to be woken.

use std::time::{Duration, Instant};

use super::receiver::{Receiver, Tap};
use crate::host::HostError;

/// How a sender waits for those that receive, so that no ring overflows.
#[derive(Debug)]
pub struct Pace {
    taps: Vec<Tap>,
    /// Frames that may be sent between two waits.
    chunk: u32,
    /// Frames that had ended before the first was sent.
    before: u64,
}

impl Pace {
    /// How long receivers must have been idle, their rings empty, where not every frame is for them.
    const IDLE: Duration = Duration::from_millis(1);
    /// How long they are waited for: a receiver that takes longer is stuck, which the account will show.
    const MOST: Duration = Duration::from_secs(1);

    /// The pace that some receivers can hold; `None` without one.
    pub(super) fn of<'a>(receivers: impl Iterator<Item = &'a Receiver>) -> Result<Option<Self>, HostError> {
        let taps: Vec<Tap> = receivers.map(Receiver::tap).collect();
        let Some(least) = taps.iter().map(Tap::ring).min() else { return Ok(None) };
        let mut pace = Self { taps, chunk: (least / 2).max(1), before: 0 };
        pace.before = pace.ended()?;
        Ok(Some(pace))
    }

    /// Frames that may be sent between two waits: half of the smallest ring.
    pub fn chunk(&self) -> u32 {
        self.chunk
    }

    fn ended(&self) -> Result<u64, HostError> {
        self.taps.iter().map(Tap::ended).sum()
    }

    fn is_drained(&self) -> Result<bool, HostError> {
        Ok(self.taps.iter().map(Tap::is_drained).collect::<Result<Vec<_>, _>>()?.into_iter().all(|drained| drained))
    }

    /// Waits until the receivers have dealt with the frames sent so far, or with all of them that were for them.
    ///
    /// # Errors
    /// Where the kernel refuses to tell of a socket.
    pub fn wait(&self, sent: u64) -> Result<(), HostError> {
        let deadline = Instant::now() + Self::MOST;
        let (mut last, mut changed) = (self.before, Instant::now());
        loop {
            let ended = self.ended()?;
            if ended - self.before.min(ended) >= sent || Instant::now() >= deadline {
                return Ok(());
            }
            if ended != last || !self.is_drained()? {
                (last, changed) = (ended, Instant::now());
            } else if changed.elapsed() >= Self::IDLE {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }
}

//! What a receiver had to do, and what it had left: for the proof that it was saturated.

use std::{fs, time::Instant};

use xdplab_wire::records::{WatchKey, event};

use super::{Lab, LabError};
use crate::{
    measure::saturation::Evidence,
    observe::missed::Counts,
    program::{ProgramError, WatchCounter},
    topology::PortId,
};

/// A reading of everything that tells of a receiver's load.
#[derive(Debug)]
pub(crate) struct Load {
    at: Instant,
    /// Polls that received something, those that were full, and frames: by CPU.
    polls: [Vec<u64>; 3],
    /// Time that each CPU was idle, in ticks of the kernel's accounting.
    idle: Vec<u64>,
    sent: u64,
    missed: Counts,
}

/// Ticks a second of /proc/stat: `USER_HZ`, which is 100 on every architecture that has XDP.
const TICKS: f64 = 100.0;
/// Shares of polls that are too small to call a CPU a receiving one.
const SOME: f64 = 0.01;

impl Lab {
    /// Whether a port is a NIC, and not a veth's end.
    pub(crate) fn is_nic(&self, port: PortId) -> bool {
        self.network.lent.iter().any(|lent| lent.port == port)
    }

    /// The counter of frames that a port's polls received. The observer must watch polls.
    pub(crate) fn poll_counter(&self, port: PortId, what: u32) -> Result<Option<WatchCounter>, ProgramError> {
        let key = WatchKey { event: event::POLL, slot: port.0 as u32, code: 0, other: what };
        self.watch.as_ref().map(|watch| watch.counter(key)).transpose()
    }

    /// Reads the load of a port that receives from another one.
    ///
    /// # Errors
    /// Where something can't be read.
    pub(crate) fn load(&self, from: PortId, to: PortId) -> Result<Load, LabError> {
        let by_cpu = |what: u32| -> Result<Vec<u64>, ProgramError> {
            self.poll_counter(to, what)?.map_or_else(|| Ok(Vec::new()), |counter| counter.by_cpu())
        };
        let reading = self.read()?;
        Ok(Load {
            at: Instant::now(),
            polls: [by_cpu(event::POLL_COUNT)?, by_cpu(event::POLL_FULL)?, by_cpu(event::POLL_FRAMES)?],
            idle: idle(&fs::read_to_string("/proc/stat").unwrap_or_default()),
            sent: reading.ports[from.0].tx_packets,
            missed: reading.ports[to.0].missed,
        })
    }
}

impl Load {
    /// What was seen since an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> Evidence {
        let seconds = self.at.duration_since(earlier.at).as_secs_f64();
        let added = |now: &[u64], then: &[u64]| -> Vec<u64> {
            now.iter().enumerate().map(|(n, now)| now.saturating_sub(then.get(n).copied().unwrap_or(0))).collect()
        };
        let [polls, full, frames] = [0, 1, 2].map(|n| added(&self.polls[n], &earlier.polls[n]));
        let idle = added(&self.idle, &earlier.idle);
        let received: u64 = frames.iter().sum();
        let of_cpu = |(cpu, frames): (usize, &u64)| {
            let ticks = idle.get(cpu).copied().unwrap_or(0) as f64;
            let share = if seconds > 0.0 { ticks / (seconds * TICKS) } else { 0.0 };
            (*frames as f64 > SOME * received as f64).then_some((cpu, share.min(1.0)))
        };
        Evidence {
            seconds,
            received,
            sent: self.sent.saturating_sub(earlier.sent),
            missed: added(&self.missed, &earlier.missed).into_iter().max().unwrap_or(0),
            polls: polls.iter().sum(),
            full: full.iter().sum(),
            cpus: frames.iter().enumerate().filter_map(of_cpu).collect(),
        }
    }
}

/// Time that each CPU was idle, or waited for a disk, by its number: of /proc/stat, in ticks.
fn idle(stat: &str) -> Vec<u64> {
    let mut all = Vec::new();
    for line in stat.lines() {
        let mut words = line.split_ascii_whitespace();
        // The first line is that of all of them together: it has no number.
        let Some(cpu) = words.next().and_then(|word| word.strip_prefix("cpu")?.parse::<usize>().ok()) else { continue };
        let ticks: Vec<u64> = words.map(|word| word.parse().unwrap_or(0)).collect();
        if all.len() <= cpu {
            all.resize(cpu + 1, 0);
        }
        // user, nice, system, idle, iowait, …
        all[cpu] = ticks.get(3).unwrap_or(&0) + ticks.get(4).unwrap_or(&0);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_read_for_each_cpu() {
        let stat = "cpu  9 9 9 9 9 9\ncpu0 1 2 3 40 5 6 7 8\ncpu2 1 2 3 4 0\nintr 5 6\n";
        assert_eq!(idle(stat), [45, 0, 4]);
        assert_eq!(idle(""), [0; 0]);
    }

    #[test]
    fn a_cpu_that_receives_next_to_nothing_is_no_receiver() {
        let at = Instant::now();
        let then = Load { at, polls: Default::default(), idle: vec![10, 10], sent: 5, missed: [1000, 1, 0, 0] };
        let now = Load {
            at: at + std::time::Duration::from_secs(2),
            polls: [vec![1, 99], vec![0, 99], vec![3, 6336]],
            idle: vec![110, 60],
            sent: 10_005,
            missed: [1000, 3, 0, 0],
        };
        let seen = now.since(&then);
        assert_eq!((seen.received, seen.polls, seen.full, seen.sent, seen.missed), (6339, 100, 99, 10_000, 2));
        assert_eq!(seen.cpus.len(), 1);
        // 50 ticks of 10 ms in two seconds.
        assert!(seen.cpus[0].0 == 1 && (seen.cpus[0].1 - 0.25).abs() < 1e-9);
    }
}

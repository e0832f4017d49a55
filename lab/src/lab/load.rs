//! What a receiver had to do, and what it had left: for the proof that it was saturated.

use std::{fs, time::Instant};

use xdplab_wire::records::{WatchKey, event};

use super::{Lab, LabError};
use crate::{
    host::device_count::DeviceCount, measure::saturation::Evidence, observe::missed::Counts, program::WatchCounter,
    topology::PortId,
};

/// What tells of a receiver's load at one moment, readable while frames come.
#[derive(Debug, Clone)]
pub(crate) struct Pulse {
    at: Instant,
    /// Polls that received something, those that were full, and frames: by CPU.
    polls: [Vec<u64>; 3],
    /// Frames by the device's count.
    device: u64,
    /// Time that each CPU was idle, in ticks of the kernel's accounting.
    idle: Vec<u64>,
}

/// Where a receiver's pulse is read.
#[derive(Debug)]
pub(crate) struct Probe {
    counters: [WatchCounter; 3],
    device: DeviceCount,
}

/// Frames that were received until some moment, by both counts. Some drivers don't tell NAPI of the frames that an XDP
/// program took (vmxnet3), and some devices count in intervals of a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// By the polls.
    pub(crate) polled: u64,
    /// By the device.
    pub(crate) device: u64,
}

impl Probe {
    /// Reads it.
    pub(crate) fn read(&self) -> Result<Pulse, LabError> {
        let [polls, full, frames] = &self.counters;
        Ok(Pulse {
            at: Instant::now(),
            polls: [polls.by_cpu()?, full.by_cpu()?, frames.by_cpu()?],
            device: self.device.received()?,
            idle: idle(&fs::read_to_string("/proc/stat").unwrap_or_default()),
        })
    }

    /// Frames that were received until now.
    pub(crate) fn frames(&self) -> Result<Arrived, LabError> {
        Ok(Arrived { polled: self.counters[2].read()?, device: self.device.received()? })
    }
}

/// What devices counted until some moment, at rest.
#[derive(Debug)]
pub(crate) struct Load {
    sent: u64,
    missed: Counts,
    received: Arrived,
}

/// Ticks a second of /proc/stat: `USER_HZ`, which is 100 on every architecture that has XDP.
const TICKS: f64 = 100.0;
/// A share of the frames that is too small to call a CPU a receiving one.
const SOME: f64 = 0.01;

impl Lab {
    /// Where a port's pulse is read; `None` where the observer watches no polls.
    pub(crate) fn probe(&self, port: PortId) -> Result<Option<Probe>, LabError> {
        let Some(watch) = &self.watch else { return Ok(None) };
        let counter = |what| watch.counter(WatchKey { event: event::POLL, slot: port.0 as u32, code: 0, other: what });
        let counters = [counter(event::POLL_COUNT)?, counter(event::POLL_FULL)?, counter(event::POLL_FRAMES)?];
        let name = &self.topology.ports[port.0].name;
        let device = self.in_node(port, || DeviceCount::open(name))??;
        Ok(Some(Probe { counters, device }))
    }

    /// What the devices of a port that receives, and of the one that it receives from, have counted.
    ///
    /// # Errors
    /// Where something can't be read.
    pub(crate) fn load(&self, from: PortId, to: PortId) -> Result<Load, LabError> {
        let reading = self.read()?;
        let none = Arrived { polled: 0, device: 0 };
        let received = self.probe(to)?.map_or(Ok(none), |probe| probe.frames())?;
        Ok(Load { sent: reading.ports[from.0].tx_packets, missed: reading.ports[to.0].missed, received })
    }
}

/// What was added to each counter.
fn added(now: &[u64], then: &[u64]) -> Vec<u64> {
    now.iter().enumerate().map(|(n, now)| now.saturating_sub(then.get(n).copied().unwrap_or(0))).collect()
}

impl Arrived {
    /// Frames that were received since: by the polls, unless those don't tell of them.
    pub(crate) fn since(self, earlier: Self) -> u64 {
        match self.polled.saturating_sub(earlier.polled) {
            0 => self.device.saturating_sub(earlier.device),
            polled => polled,
        }
    }
}

impl Load {
    /// What was counted since an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> Evidence {
        Evidence {
            all: self.received.since(earlier.received),
            sent: self.sent.saturating_sub(earlier.sent),
            missed: added(&self.missed, &earlier.missed).into_iter().max().unwrap_or(0),
            ..Evidence::default()
        }
    }
}

impl Pulse {
    /// Frames that were received until then.
    pub(crate) fn arrived(&self) -> Arrived {
        Arrived { polled: self.polls[2].iter().sum(), device: self.device }
    }

    /// What happened since an earlier moment.
    pub(crate) fn since(&self, earlier: &Self) -> Evidence {
        let seconds = self.at.duration_since(earlier.at).as_secs_f64();
        let [polls, full, frames] = [0, 1, 2].map(|n| added(&self.polls[n], &earlier.polls[n]));
        let idle = added(&self.idle, &earlier.idle);
        let polled: u64 = frames.iter().sum();
        let of_cpu = |(cpu, frames): (usize, &u64)| {
            let ticks = idle.get(cpu).copied().unwrap_or(0) as f64;
            let share = if seconds > 0.0 { ticks / (seconds * TICKS) } else { 0.0 };
            // Not capped: a tick that began before the window is made up for by one that ends behind another.
            (*frames as f64 > SOME * polled as f64).then_some((cpu, share))
        };
        Evidence {
            seconds,
            received: self.arrived().since(earlier.arrived()),
            polls: polls.iter().sum(),
            full: full.iter().sum(),
            cpus: frames.iter().enumerate().filter_map(of_cpu).collect(),
            ..Evidence::default()
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
        let then = Pulse { at, polls: Default::default(), device: 5, idle: vec![10, 10] };
        let now = Pulse {
            at: at + std::time::Duration::from_secs(2),
            polls: [vec![1, 99], vec![0, 99], vec![3, 6336]],
            device: 9,
            idle: vec![110, 60],
        };
        let seen = now.since(&then);
        assert_eq!((seen.received, seen.polls, seen.full), (6339, 100, 99));
        assert_eq!(seen.cpus.len(), 1);
        // 50 ticks of 10 ms in two seconds.
        assert!(seen.cpus[0].0 == 1 && (seen.cpus[0].1 - 0.25).abs() < 1e-9);
    }

    #[test]
    fn what_was_missed_is_the_largest_of_its_counts() {
        let then = Load { sent: 5, missed: [1000, 1, 0, 0], received: Arrived { polled: 7, device: 0 } };
        let now = Load { sent: 10_005, missed: [1000, 3, 1, 0], received: Arrived { polled: 9_007, device: 1 } };
        let seen = now.since(&then);
        assert_eq!((seen.sent, seen.missed, seen.all), (10_000, 2, 9_000));
    }

    #[test]
    fn where_polls_tell_of_no_frames_the_device_does() {
        let of = |polled, device| Arrived { polled, device };
        assert_eq!(of(100, 90).since(of(60, 80)), 40);
        assert_eq!(of(60, 90).since(of(60, 80)), 10);
    }
}

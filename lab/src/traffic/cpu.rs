//! Pinning the lab's thread to one CPU while it sends.
//!
//! On veth the whole chain from generator to sink runs on the sender's CPU: a migration in mid-window would price two.

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

/// The CPU that a lab sends from: the highest that this process may use, since the lowest ones serve the host's
/// interrupts.
pub fn sender() -> u32 {
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return 0 };
    highest(&allowed) as u32
}

/// CPUs that this process may use, from the highest down: the first is the sender's.
pub fn usable() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return vec![0] };
    (0..CpuSet::count()).rev().filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).collect()
}

/// What is asked of the CPUs that send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Their numbers must be below this: some drivers have a transmit queue for XDP only on those.
    pub below: Option<u32>,
    /// CPUs that receive, and have enough to do with that.
    pub receive: Vec<usize>,
    /// CPUs of the NIC's NUMA node; empty: any.
    pub near: Vec<usize>,
}

/// So many of the usable CPUs, the best first: those that don't receive before those that do, near ones before others,
/// high ones before low ones. Fewer where there are no more.
pub fn place(usable: &[usize], senders: usize, wanted: &Wanted) -> Vec<usize> {
    let mut cpus: Vec<usize> =
        usable.iter().copied().filter(|cpu| wanted.below.is_none_or(|below| *cpu < below as usize)).collect();
    let is_near = |cpu: &usize| wanted.near.is_empty() || wanted.near.contains(cpu);
    cpus.sort_by_key(|cpu| (wanted.receive.contains(cpu), !is_near(cpu), std::cmp::Reverse(*cpu)));
    cpus.truncate(senders);
    cpus
}

/// CPUs of a list such as `0-3,8`, as the kernel writes them.
pub fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

fn highest(allowed: &CpuSet) -> usize {
    (0..CpuSet::count()).rev().find(|cpu| allowed.is_set(*cpu).unwrap_or(false)).unwrap_or(0)
}

/// Keeps the calling thread on one CPU until dropped.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
    /// The CPU.
    pub cpu: usize,
}

impl Pinned {
    /// Pins the calling thread to the highest CPU that it may use.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn here() -> nix::Result<Self> {
        let before = sched_getaffinity(Pid::from_raw(0))?;
        Self::to(highest(&before))
    }

    /// Pins the calling thread to a CPU.
    ///
    /// # Errors
    /// Where the kernel refuses, since the thread may not use that CPU.
    pub fn to(cpu: usize) -> nix::Result<Self> {
        let before = sched_getaffinity(Pid::from_raw(0))?;
        let mut one = CpuSet::new();
        one.set(cpu)?;
        sched_setaffinity(Pid::from_raw(0), &one)?;
        Ok(Self { before, cpu })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The thread is the lab's own: where the kernel refuses, it stays on a CPU that it may use.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_keep_off_the_receivers_and_near_their_nic() {
        let usable: Vec<usize> = (0..8).rev().collect();
        let any = Wanted::default();
        assert_eq!(place(&usable, 2, &any), [7, 6]);
        assert_eq!(place(&usable, 2, &Wanted { below: Some(4), ..any.clone() }), [3, 2]);
        let near = Wanted { receive: vec![3], near: vec![0, 1, 2, 3], ..any.clone() };
        assert_eq!(place(&usable, 4, &near), [2, 1, 0, 7]);
        assert_eq!(place(&usable, 2, &Wanted { below: Some(1), receive: vec![0], ..any }), [0]);
        assert_eq!(place(&[], 1, &near), [0; 0]);
    }

    #[test]
    fn the_kernels_lists_are_read() {
        assert_eq!(list("0-3,8\n"), [0, 1, 2, 3, 8]);
        assert_eq!(list("5"), [5]);
        assert_eq!(list("\n"), [0; 0]);
    }
}

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

//! Pinning the lab's thread to one CPU while it sends.
//!
//! On veth the whole chain from generator to sink runs on the sender's CPU: a migration in mid-window would price two.

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

/// Keeps the calling thread on one CPU until dropped.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
    /// The CPU.
    pub cpu: usize,
}

impl Pinned {
    /// Pins the calling thread to the highest CPU that it may use: the lowest ones serve the host's interrupts.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn here() -> nix::Result<Self> {
        let before = sched_getaffinity(Pid::from_raw(0))?;
        let cpu = highest(&before);
        let mut one = CpuSet::new();
        one.set(cpu)?;
        sched_setaffinity(Pid::from_raw(0), &one)?;
        Ok(Self { before, cpu })
    }
}

/// The CPU that [`Pinned::here`] would pin the calling thread to.
///
/// # Errors
/// Where the kernel refuses.
pub fn of_sender() -> nix::Result<usize> {
    sched_getaffinity(Pid::from_raw(0)).map(|cpus| highest(&cpus))
}

fn highest(cpus: &CpuSet) -> usize {
    (0..CpuSet::count()).rev().find(|cpu| cpus.is_set(*cpu).unwrap_or(false)).unwrap_or(0)
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The thread is the lab's own: where the kernel refuses, it stays on a CPU that it may use.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.before);
    }
}

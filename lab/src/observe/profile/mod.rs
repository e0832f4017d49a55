//! Where a packet's nanoseconds go: samples of the CPU that sends, by function of the kernel and by BPF program.
//!
//! | file | owns |
//! |---|---|
//! | `symbols` | names for addresses |
//! | `fold` | which samples are of the work, and what they add up to |

mod fold;
mod symbols;

pub use symbols::{Symbol, SymbolError, Symbols};

use crate::{
    host::{
        HostError,
        perf::{PerfSampler, SampleClock, SampleSpec},
    },
    record::profile::Profile,
};

/// How to sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplerOptions {
    /// Samples a second, 1 and up; lowered to what the kernel allows (`kernel.perf_event_max_sample_rate`). No divisor
    /// of the kernel's own ticks by default, so that samples don't fall into step with them.
    pub frequency_hz: u64,
    /// Leaves user code out.
    pub exclude_user: bool,
    /// The threads whose work is profiled, as the kernel numbers them; all where empty. What the kernel does with packets
    /// counts as work whatever thread it interrupts for it.
    pub threads: Vec<u32>,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self { frequency_hz: 9_973, exclude_user: false, threads: Vec::new() }
    }
}

/// Samples one CPU until stopped.
#[derive(Debug)]
pub struct Sampler {
    perf: PerfSampler,
    cpu: usize,
    threads: Vec<u32>,
}

impl Sampler {
    /// Starts to sample a CPU.
    ///
    /// # Errors
    /// Where the kernel refuses: for want of rights (`CAP_PERFMON`, or root) or of a CPU of that number.
    pub fn start(cpu: usize, options: SamplerOptions) -> Result<Self, HostError> {
        let SamplerOptions { frequency_hz, exclude_user, threads } = options;
        let perf = PerfSampler::start(SampleSpec { cpu, frequency_hz, exclude_user, ring_bytes: None })?;
        Ok(Self { perf, cpu, threads })
    }

    /// Stops, and names what was sampled. The programs of interest must still be loaded: their names go with them.
    ///
    /// # Errors
    /// Where the samples can't be read, or the kernel does not tell where its code is.
    pub fn stop(self) -> Result<Profile, SymbolError> {
        let (clock, frequency_hz) = (self.perf.clock, self.perf.frequency_hz);
        let samples = self.perf.stop()?;
        let symbols = Symbols::now()?;
        let mut profile = fold::fold(&samples, &symbols, &self.threads);
        clock.name().clone_into(&mut profile.clock);
        profile.frequency_hz = frequency_hz;
        profile.cpu = self.cpu;
        profile.notes = notes(&profile, clock);
        Ok(profile)
    }
}

/// What to bear in mind when reading a profile.
fn notes(profile: &Profile, clock: SampleClock) -> Vec<String> {
    let mut notes = Vec::new();
    if clock == SampleClock::CpuClock {
        notes.push(
            "sampled by a timer (cpu-clock), there is no hardware counter of cycles: code that runs with interrupts off \
             is booked where they are switched on again"
                .to_owned(),
        );
    }
    if profile.lost > 0 {
        notes.push(format!("{} samples were lost: the buffer was full", profile.lost));
    }
    if profile.throttled > 0 {
        notes.push(format!(
            "the kernel held sampling back {} times: ask for fewer samples a second than {}",
            profile.throttled, profile.frequency_hz
        ));
    }
    notes
}

//! Samples of one CPU, taken by the kernel's perf events: where it was, who ran, and the calls that led there.
//!
//! The clock is hardware cycles where the CPU counts them, else `cpu-clock`, a timer interrupt. A timer can't interrupt
//! code that runs with interrupts off: what it spends is booked where they are switched on again.

use std::{
    collections::HashMap,
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::errno::Errno;
use perf_event::{
    Builder, ReadFormat, SampleFlag,
    events::{Event, Hardware, Software},
};

use super::HostError;

/// Bytes of the ring buffer: some seconds of deep stacks at the highest rate.
const RING: usize = 4 << 20;
/// How often the reader empties the ring buffer. It is not woken for it: waking it would cost the sampled CPU time.
const PATIENCE: Duration = Duration::from_millis(20);
const RECORD_LOST: u32 = 2;
const RECORD_THROTTLE: u32 = 5;
const RECORD_SAMPLE: u32 = 9;
/// Entries of a call chain from here up are the kernel's markers (`PERF_CONTEXT_MAX`), not addresses.
const MARKERS: u64 = -4095_i64 as u64;
/// Marks the user's part of a call chain (`PERF_CONTEXT_USER`).
const USER_MARKER: u64 = -512_i64 as u64;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const MAX_RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// What the samples are taken by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleClock {
    /// Hardware cycles. Code with interrupts off is sampled too where the counter's interrupt can't be masked.
    Cycles,
    /// A timer interrupt; there is no hardware counter to use.
    CpuClock,
}

impl SampleClock {
    /// The name that perf has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::CpuClock => "cpu-clock",
        }
    }
}

/// How to sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleSpec {
    /// Which CPU; everything that runs on it is seen.
    pub cpu: usize,
    /// Samples a second; lowered to what the kernel allows.
    pub frequency_hz: u64,
    /// Leaves user code out.
    pub exclude_user: bool,
    /// Bytes of the ring buffer, rounded up to pages and a power of two; `None` for enough.
    pub ring_bytes: Option<usize>,
}

/// Who ran, and the addresses from the interrupted instruction outwards. The first is exact, the others are return
/// addresses. Empty where only user code was seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RawStack {
    /// The thread; 0 is the CPU's idle task.
    pub thread: u32,
    /// Whether user code was interrupted.
    pub in_user: bool,
    /// Addresses in the kernel.
    pub kernel: Vec<u64>,
}

/// What was sampled, equal stacks counted together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples {
    /// The stacks and how often each was met.
    pub stacks: HashMap<RawStack, u64>,
    /// Samples that found no room in the ring buffer.
    pub lost: u64,
    /// How often the kernel held sampling back because its interrupts took too long.
    pub throttled: u64,
    /// Times of the first and the last sample, in nanoseconds of the kernel's clock.
    pub span: Option<(u64, u64)>,
}

impl Samples {
    /// Takes a record in: its type, and what follows its header.
    ///
    /// The layout is that of `perf_event_open(2)` for the fields that [`build`] asks for. Read here and not by
    /// `perf-event-data`, which takes the empty chain of a sample of user code for a record cut short.
    fn take(&mut self, kind: u32, data: &[u8]) -> Option<()> {
        match kind {
            RECORD_SAMPLE => {
                let (ip, thread, time, length) =
                    (u64_at(data, 0)?, (u64_at(data, 8)? >> 32) as u32, u64_at(data, 16)?, u64_at(data, 32)?);
                let chain = data.get(40..)?.get(..usize::try_from(length).ok()?.checked_mul(8)?)?;
                let chain = chain.as_chunks().0.iter().map(|entry| u64::from_ne_bytes(*entry));
                *self.stacks.entry(raw_stack(thread, ip, chain)).or_default() += 1;
                let (first, last) = self.span.unwrap_or((time, time));
                self.span = Some((first.min(time), last.max(time)));
            }
            RECORD_LOST => self.lost += u64_at(data, 8)?,
            RECORD_THROTTLE => self.throttled += 1,
            _ => {}
        }
        Some(())
    }
}

fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    data.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

/// A stack without the kernel's markers. A chain may be missing: the interrupted instruction is then all there is.
fn raw_stack(thread: u32, ip: u64, chain: impl Iterator<Item = u64>) -> RawStack {
    let mut kernel = Vec::new();
    let mut in_user = false;
    for entry in chain {
        if entry >= MARKERS {
            in_user = entry == USER_MARKER;
        } else if !in_user {
            kernel.push(entry);
        }
    }
    // The upper half of the address space is the kernel's, on every architecture that runs this.
    let user = ip >> 63 == 0;
    if user {
        kernel.clear();
    } else if kernel.first() != Some(&ip) {
        kernel.insert(0, ip);
    }
    RawStack { thread, in_user: user, kernel }
}

/// A running sampler: a perf event on one CPU, and a thread that empties its ring buffer.
#[derive(Debug)]
pub struct PerfSampler {
    /// What the samples are taken by.
    pub clock: SampleClock,
    /// Samples a second, as asked of the kernel.
    pub frequency_hz: u64,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<Result<Samples, HostError>>>,
}

impl PerfSampler {
    /// Starts to sample a CPU.
    ///
    /// # Errors
    /// Where the kernel refuses: for want of rights (`CAP_PERFMON`, or root), of a CPU of that number, or of memory.
    pub fn start(spec: SampleSpec) -> Result<Self, HostError> {
        let frequency_hz = allowed(spec.frequency_hz, max_rate());
        let (clock, mut sampler) = open(spec, frequency_hz)?;
        let cpu = spec.cpu;
        let failed = move |source| HostError::system(format!("sample CPU {cpu}"), source);
        sampler.enable().map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let reader = thread::Builder::new()
            .name("perf reader".to_owned())
            .spawn(move || {
                keep_off(cpu);
                read(sampler, &asked).map_err(failed)
            })
            .map_err(|source| HostError::system("start the reader of samples", source))?;
        Ok(Self { clock, frequency_hz, stop, reader: Some(reader) })
    }

    /// Stops, and returns what was sampled.
    ///
    /// # Errors
    /// Where the kernel refuses to stop, or its records can't be read.
    pub fn stop(mut self) -> Result<Samples, HostError> {
        self.stop.store(true, Ordering::Release);
        let ended = self.reader.take().map(JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or_else(|| {
            Err(HostError::system("read the samples", io::Error::other("the reader ended before its time")))
        })
    }
}

impl Drop for PerfSampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(reader) = self.reader.take() {
            // What it read is not wanted any more.
            let _ = reader.join();
        }
    }
}

/// Opens the event: hardware cycles, or where the CPU has no counter for them, the timer.
fn open(spec: SampleSpec, frequency_hz: u64) -> Result<(SampleClock, perf_event::Sampler), HostError> {
    let refused = |source| refusal(spec.cpu, source);
    let ring = spec.ring_bytes.unwrap_or(RING);
    let built = match build(Hardware::CPU_CYCLES, spec, frequency_hz) {
        Ok(counter) => (SampleClock::Cycles, counter),
        Err(error) if is_no_counter(&error) => {
            (SampleClock::CpuClock, build(Software::CPU_CLOCK, spec, frequency_hz).map_err(refused)?)
        }
        Err(error) => return Err(refused(error)),
    };
    let (clock, counter) = built;
    Ok((clock, counter.sampled(ring).map_err(refused)?))
}

fn build(event: impl Event, spec: SampleSpec, frequency_hz: u64) -> io::Result<perf_event::Counter> {
    let mut builder = Builder::new(event);
    builder
        .any_pid()
        .one_cpu(spec.cpu)
        .include_kernel()
        .exclude_user(spec.exclude_user)
        .exclude_callchain_user(true)
        .sample(SampleFlag::IP | SampleFlag::TID | SampleFlag::TIME | SampleFlag::CPU | SampleFlag::CALLCHAIN)
        .sample_frequency(frequency_hz)
        .read_format(ReadFormat::LOST)
        .enabled(false);
    match builder.build() {
        // Kernels before 6.0 don't count lost samples themselves.
        Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => {
            builder.read_format(ReadFormat::empty()).build()
        }
        built => built,
    }
}

/// The errors with which a kernel says that the CPU has no such counter.
fn is_no_counter(error: &io::Error) -> bool {
    error.raw_os_error().map(Errno::from_raw).is_some_and(|errno| {
        matches!(errno, Errno::ENOENT | Errno::ENODEV | Errno::EOPNOTSUPP | Errno::ENXIO | Errno::ENOSYS)
    })
}

/// What to do about a refusal, where something can be done.
fn refusal(cpu: usize, source: io::Error) -> HostError {
    let paranoid = fs::read_to_string(PARANOID).unwrap_or_default();
    let advice = match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EACCES | Errno::EPERM) => format!(
            " (kernel.perf_event_paranoid is {}: run as root or with CAP_PERFMON, or set it to -1)",
            paranoid.trim()
        ),
        Some(Errno::EINVAL | Errno::ENODEV) => " (is the CPU there and online?)".to_owned(),
        Some(Errno::ENOSYS) => " (the kernel has no perf events: CONFIG_PERF_EVENTS=y)".to_owned(),
        _ => String::new(),
    };
    HostError::system(format!("sample CPU {cpu}{advice}"), source)
}

fn max_rate() -> Option<u64> {
    fs::read_to_string(MAX_RATE).ok()?.trim().parse().ok()
}

/// A rate within the kernel's limit. Never 0, which would mean that every event is a sample.
fn allowed(wanted: u64, limit: Option<u64>) -> u64 {
    wanted.min(limit.unwrap_or(u64::MAX)).max(1)
}

/// Moves the calling thread off the CPU that is sampled, where there is another one.
fn keep_off(cpu: usize) {
    use nix::{
        sched::{CpuSet, sched_getaffinity, sched_setaffinity},
        unistd::Pid,
    };
    let this = Pid::from_raw(0);
    if let Ok(mut cpus) = sched_getaffinity(this)
        && cpus.unset(cpu).is_ok()
        && (0..CpuSet::count()).any(|cpu| cpus.is_set(cpu).unwrap_or(false))
    {
        // Where this is refused the reader shows in the samples, as another thread than the sampled one.
        let _ = sched_setaffinity(this, &cpus);
    }
}

/// Empties the ring buffer until asked to stop, and then to its end.
fn read(mut sampler: perf_event::Sampler, stop: &AtomicBool) -> io::Result<Samples> {
    let mut samples = Samples::default();
    loop {
        let stopping = stop.load(Ordering::Acquire);
        if stopping {
            sampler.disable()?;
        }
        while let Some(record) = sampler.next_record() {
            samples.take(record.ty(), &record.to_contiguous()).ok_or(io::ErrorKind::InvalidData)?;
        }
        if stopping {
            // The kernel's own count has those lost after the last record, too.
            samples.lost = samples.lost.max(sampler.read_full()?.lost().unwrap_or(0));
            return Ok(samples);
        }
        thread::sleep(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    const KERNEL_MARKER: u64 = -128_i64 as u64;

    /// A sample as the kernel writes it.
    fn sample(ip: u64, thread: u32, time: u64, chain: &[u64]) -> Vec<u8> {
        let words = [ip, u64::from(thread) << 32 | 1, time, 3, chain.len() as u64];
        words.iter().chain(chain).flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn taken(ip: u64, chain: &[u64]) -> RawStack {
        let mut samples = Samples::default();
        samples.take(RECORD_SAMPLE, &sample(ip, 7, 5, chain)).expect("a whole record");
        samples.stacks.into_keys().next().expect("a stack")
    }

    #[test]
    fn markers_and_user_addresses_are_no_part_of_a_stack() {
        let chain = [KERNEL_MARKER, KERNEL, KERNEL + 1, USER_MARKER, 0x40_0000];
        assert_eq!(taken(KERNEL, &chain), RawStack { thread: 7, in_user: false, kernel: vec![KERNEL, KERNEL + 1] });
        assert!(taken(0x40_0000, &[USER_MARKER, 0x40_0000]).kernel.is_empty());
        assert!(taken(0x40_0000, &[]).in_user);
        // A kernel without an unwinder gives the instruction alone.
        assert_eq!(taken(KERNEL, &[]).kernel, [KERNEL]);
    }

    #[test]
    fn equal_stacks_are_counted_together_and_losses_added_up() {
        let mut samples = Samples::default();
        for time in [30, 10, 20] {
            samples.take(RECORD_SAMPLE, &sample(KERNEL, 7, time, &[KERNEL])).unwrap();
        }
        for _ in 0..2 {
            samples.take(RECORD_LOST, &[1_u64, 4].map(u64::to_ne_bytes).concat()).unwrap();
        }
        samples.take(RECORD_THROTTLE, &[]).unwrap();
        assert_eq!(samples.stacks.into_values().collect::<Vec<_>>(), [3]);
        assert_eq!((samples.lost, samples.throttled, samples.span), (8, 1, Some((10, 30))));
    }

    #[test]
    fn a_refusal_for_want_of_rights_says_what_to_do() {
        let error = refusal(3, Errno::EACCES.into()).to_string();
        assert!(error.starts_with("sample CPU 3 (kernel.perf_event_paranoid is "), "{error}");
        assert!(error.contains("CAP_PERFMON"), "{error}");
        assert!(refusal(99, Errno::EINVAL.into()).to_string().contains("online"));
    }

    proptest! {
        #[test]
        fn a_rate_is_within_the_limit_and_never_zero(wanted: u64, limit: Option<u64>) {
            let rate = allowed(wanted, limit);
            prop_assert!(rate >= 1);
            prop_assert!(rate <= limit.unwrap_or(u64::MAX).max(1) && rate <= wanted.max(1));
        }

        #[test]
        fn no_record_makes_the_reader_panic(kind in 0_u32..12, data in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Samples::default().take(kind, &data);
        }

        #[test]
        fn no_chain_makes_a_stack_of_markers(ip: u64, chain in prop::collection::vec(any::<u64>(), 0..20)) {
            let stack = taken(ip, &chain);
            prop_assert!(stack.kernel.iter().all(|address| *address < MARKERS || *address == ip));
        }

        #[test]
        fn a_record_that_is_cut_short_is_refused(cut in 1_usize..64) {
            let whole = sample(KERNEL, 7, 5, &[KERNEL; 3]);
            prop_assert_eq!(Samples::default().take(RECORD_SAMPLE, &whole[..whole.len() - cut]), None);
        }
    }
}

//! The programs that measure what operations on traits cost.

use std::{io, time::Duration};

use aya::{
    Ebpf,
    maps::ProgramArray,
    programs::{TestRun as _, TestRunOptions},
};
use xdplab_wire::traits::bench::{ELEMENTS, INNER, INNER_BYTES, Timing};

use super::{
    ProgramError,
    builtin::objects,
    load::load_own,
    sys,
    traits::{clone_fd, load_xdp, map, missing, xdp},
};

/// Length of the frames that the programs run on, in bytes; what they hold does not matter.
const FRAME: usize = 64;

/// What is measured. All run within one program, so that no entry into a program is part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraitsWork {
    /// Nothing: what the loop costs.
    Empty,
    /// Nothing, in the shorter loop of the works that move by bytes.
    EmptyByBytes,
    /// A get of a key that has a value.
    Get,
    /// A set of a key that has a value, of 8 bytes, to another one.
    Set,
    /// A set to a value of another length, 4 and 8 bytes by turns; moved by words.
    UpdateByWords,
    /// The same, moved by bytes.
    UpdateByBytes,
    /// A set of a key that has no value, where there is spare room; moved by words. The header is written once more.
    Insert,
    /// A set of a key that has no value and a delete of it, by turns; moved by words.
    Turns,
    /// A delete of a key that has a value; moved by words. The header is written once more.
    Delete,
    /// The move alone, by 8 bytes up and down by turns, by words.
    MoveByWords,
    /// The same, by bytes.
    MoveByBytes,
    /// A call of a function of the same program.
    Call,
    /// A call of a global function.
    GlobalCall,
    /// A tail call.
    TailCall,
    /// A call back from the kernel by the function's address, as `bpf_for_each_map_elem` makes them.
    Callback,
}

impl TraitsWork {
    fn program(self) -> &'static str {
        match self {
            Self::Empty => "bench_empty",
            Self::EmptyByBytes => "bench_empty_bytes",
            Self::Get => "bench_get",
            Self::Set => "bench_set",
            Self::UpdateByWords => "bench_update_words",
            Self::UpdateByBytes => "bench_update_bytes",
            Self::Insert => "bench_insert",
            Self::Turns => "bench_turns",
            Self::Delete => "bench_delete",
            Self::MoveByWords => "bench_move_words",
            Self::MoveByBytes => "bench_move_bytes",
            Self::Call => "bench_call",
            Self::GlobalCall => "bench_global_call",
            Self::TailCall => "bench_tail",
            Self::Callback => "bench_callback",
        }
    }
}

const TAIL_SELF: &str = "bench_tail_self";

/// Tail calls that one run of a program may make: `MAX_TAIL_CALL_CNT` of
/// <https://github.com/torvalds/linux/blob/v6.12/include/linux/bpf.h>.
const TAIL_CALLS: u32 = 33;

/// The measuring programs, loaded.
#[derive(Debug)]
pub struct TraitsBench {
    ebpf: Ebpf,
}

impl TraitsBench {
    /// Loads the programs.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn load() -> Result<Self, ProgramError> {
        let mut ebpf = load_own(objects::TRAITS_BENCH, &[])?;
        for work in [
            TraitsWork::Empty,
            TraitsWork::EmptyByBytes,
            TraitsWork::Get,
            TraitsWork::Set,
            TraitsWork::UpdateByWords,
            TraitsWork::UpdateByBytes,
            TraitsWork::Insert,
            TraitsWork::Turns,
            TraitsWork::Delete,
            TraitsWork::MoveByWords,
            TraitsWork::MoveByBytes,
            TraitsWork::Call,
            TraitsWork::GlobalCall,
            TraitsWork::TailCall,
            TraitsWork::Callback,
        ] {
            load_xdp(&mut ebpf, "traits_bench", work.program())?;
        }
        load_xdp(&mut ebpf, "traits_bench", TAIL_SELF)?;
        Ok(Self { ebpf })
    }

    /// Runs some work at least `times` times on a frame with this metadata, on a key or a length to move: the
    /// nanoseconds of one, with the loop's own; and the metadata as it was left.
    ///
    /// # Errors
    /// Where the kernel refuses, metadata that is no multiple of 4 bytes long for one.
    pub fn run(
        &mut self,
        work: TraitsWork,
        metadata: &[u8],
        (key, length): (u8, usize),
        times: u32,
    ) -> Result<(f64, Vec<u8>), ProgramError> {
        match work {
            TraitsWork::TailCall => {
                let repeat = times.div_ceil(TAIL_CALLS);
                self.set_tail(true)?;
                let calls = self.time(work, metadata, &Timing::default(), repeat)?.0;
                self.set_tail(false)?;
                let rest = self.time(work, metadata, &Timing::default(), repeat)?.0;
                let each = (calls.ns as f64 - rest.ns as f64) / f64::from(repeat);
                Ok((each / f64::from(TAIL_CALLS), Vec::new()))
            }
            TraitsWork::Callback => {
                let repeat = times.div_ceil(ELEMENTS as u32);
                let (timing, _) = self.time(work, metadata, &Timing::default(), repeat)?;
                Ok((timing.ns as f64 / timing.times as f64, Vec::new()))
            }
            _ => {
                let inner =
                    if matches!(work, TraitsWork::EmptyByBytes | TraitsWork::UpdateByBytes | TraitsWork::MoveByBytes) {
                        INNER_BYTES
                    } else {
                        INNER
                    };
                let rounds = u64::from(times.div_ceil(inner as u32));
                let order = Timing { rounds, key: key.into(), length: length as u64, ..Timing::default() };
                let (timing, after) = self.time(work, metadata, &order, 1)?;
                Ok((timing.ns as f64 / timing.times as f64, after))
            }
        }
    }

    /// Runs a program, and reads what it noted.
    fn time(
        &self,
        work: TraitsWork,
        metadata: &[u8],
        order: &Timing,
        repeat: u32,
    ) -> Result<(Timing, Vec<u8>), ProgramError> {
        let program = work.program();
        let failed = |source: io::Error| ProgramError::system(format!("measure {program}"), source);
        let timing = map(&self.ebpf, "timing")?.fd();
        sys::map_write(timing, 0, &order.to_words()).map_err(failed)?;
        let frame = [metadata, &[0; FRAME]].concat();
        let mut context = [0; 24];
        // `data` and `data_end` of `struct xdp_md`; `data_meta` is 0.
        context[..4].copy_from_slice(&(metadata.len() as u32).to_ne_bytes());
        context[4..8].copy_from_slice(&(frame.len() as u32).to_ne_bytes());
        let mut after = vec![0; frame.len() + FRAME];
        let options = TestRunOptions {
            data_in: Some(&frame),
            data_out: Some(&mut after),
            ctx_in: Some(&context),
            repeat,
            ..TestRunOptions::new()
        };
        let result = xdp(&self.ebpf, program)?.test_run(options).map_err(|e| failed(io::Error::other(e)))?;
        after.truncate((result.data_size_out as usize).saturating_sub(FRAME));
        let mut words = [0; Timing::WORDS];
        sys::map_lookup(timing, 0, &mut words).map_err(failed)?;
        let noted = Timing::from_words(&words);
        if noted.times == 0 {
            return Err(failed(io::Error::other(format!("it noted nothing in {:?}", Duration::from_nanos(noted.ns)))));
        }
        Ok((noted, after))
    }

    /// Lets the tail-calling program call itself, or nothing.
    fn set_tail(&mut self, on: bool) -> Result<(), ProgramError> {
        let failed = |error: aya::maps::MapError| ProgramError::system("set a tail call", io::Error::other(error));
        let fd = clone_fd(&self.ebpf, TAIL_SELF)?;
        let mut tails: ProgramArray<_> =
            self.ebpf.map_mut("tails").ok_or_else(|| missing("tails"))?.try_into().map_err(failed)?;
        if on { tails.set(0, &fd, 0) } else { tails.clear_index(&0) }.map_err(failed)
    }
}

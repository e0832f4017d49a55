//! Counting the clones that native broadcasts make, independently of the copies that arrive.
//!
//! Two ways: the function that clones, `xdpf_clone`, where the kernel lets programs hook functions (fexit); and the
//! pages that clones take, where it does not: each clone is one page, allocated with flags that nothing else on the
//! path uses. The second costs tens of nanoseconds a clone, so neither is on while anything is priced.

use std::{collections::BTreeMap, io};

use aya::{
    Ebpf,
    maps::{Array, HashMap, MapData},
    programs::Program,
};

use super::{
    ProgramError,
    builtin::{objects, with_globals},
    kernel::KernelReasons,
    load::load_own,
    watch::kernel_btf,
};

/// The name of the way by `xdpf_clone`.
pub const BY_CALLS: &str = "calls of xdpf_clone";
/// The name of the way by pages.
pub const BY_PAGES: &str = "pages allocated";

/// A counter at work. Dropping it ends it.
#[derive(Debug)]
pub struct CloneCounter {
    ebpf: Ebpf,
    calls: Option<Ebpf>,
    flags: Vec<u32>,
}

impl CloneCounter {
    /// Starts to count the clones that one CPU makes.
    ///
    /// # Errors
    /// Where the kernel lets neither way be used.
    pub fn start(cpu: u32) -> Result<Self, ProgramError> {
        let data = with_globals(objects::CLONES, &[("CPU", &cpu.to_ne_bytes())])?;
        let flags = KernelReasons::get()?.clone_page_flags();
        let mut ebpf = load_own(&data, &[])?;
        let tracepoint = "mm_page_alloc";
        let failed = |error: aya::programs::ProgramError| {
            ProgramError::system(format!("watch the tracepoint {tracepoint}"), io::Error::other(error))
        };
        if let Some(Program::BtfTracePoint(program)) = ebpf.program_mut(tracepoint) {
            program.load(tracepoint, kernel_btf()?).map_err(failed)?;
            program.attach().map_err(failed)?;
        }
        Ok(Self { ebpf, calls: hook(&data), flags })
    }

    /// Whether the function that clones could be hooked.
    pub fn hooks_the_function(&self) -> bool {
        self.calls.is_some()
    }

    /// What was counted until now, by the way of counting.
    ///
    /// # Errors
    /// Where a map can't be read.
    pub fn counts(&self) -> Result<BTreeMap<&'static str, u64>, ProgramError> {
        let failed =
            |error: aya::maps::MapError| ProgramError::system("read the count of clones", io::Error::other(error));
        let mut counts = BTreeMap::new();
        if let Some(map) = self.ebpf.map("pages") {
            let pages: HashMap<&MapData, u32, u64> = map.try_into().map_err(failed)?;
            let mut sum = 0;
            for entry in &pages {
                let (flags, count) = entry.map_err(failed)?;
                sum += if self.flags.contains(&flags) { count } else { 0 };
            }
            counts.insert(BY_PAGES, sum);
        }
        if let Some(map) = self.calls.as_ref().and_then(|ebpf| ebpf.map("calls")) {
            let calls: Array<&MapData, u64> = map.try_into().map_err(failed)?;
            counts.insert(BY_CALLS, calls.get(&0, 0).map_err(failed)?);
        }
        Ok(counts)
    }
}

/// Hooks the function; `None` where the kernel refuses, as some do for every function.
fn hook(data: &[u8]) -> Option<Ebpf> {
    let function = "xdpf_clone";
    let mut ebpf = load_own(data, &[]).ok()?;
    let Some(Program::FExit(program)) = ebpf.program_mut(function) else { return None };
    program.load(function, kernel_btf().ok()?).ok()?;
    program.attach().ok()?;
    Some(ebpf)
}

//! Reading kernel memory through BPF, where the kernel lets root do so.

use std::io;

use aya::{
    Ebpf,
    maps::{Array, MapData},
    programs::{Program, RawTracePointRunOptions, TestRun as _},
};
use xdplab_wire::records::PEEK;

use super::{ProgramError, builtin::objects, load::load_own};

const PROGRAM: &str = "peek";

/// A reader of kernel memory. It runs on request and is attached nowhere.
#[derive(Debug)]
pub(super) struct KernelMemory {
    ebpf: Ebpf,
}

impl KernelMemory {
    /// Loads the reader.
    ///
    /// # Errors
    /// Where the kernel refuses: locked down, for one.
    pub(super) fn open() -> Result<Self, ProgramError> {
        let mut ebpf = load_own(objects::PEEK, &[])?;
        match ebpf.program_mut(PROGRAM) {
            Some(Program::RawTracePoint(program)) => program
                .load()
                .map_err(|error| ProgramError::system("load the reader of kernel memory", io::Error::other(error)))?,
            _ => return Err(missing()),
        }
        Ok(Self { ebpf })
    }

    /// Reads as many bytes as the reader takes at once, from an address.
    ///
    /// # Errors
    /// Where nothing can be read there.
    pub(super) fn read(&mut self, address: u64) -> Result<[u8; PEEK], ProgramError> {
        let failed = |error: &dyn std::fmt::Display| {
            ProgramError::system("read kernel memory", io::Error::other(error.to_string()))
        };
        let mut place: Array<&mut MapData, u64> = self
            .ebpf
            .map_mut("address")
            .ok_or_else(missing)?
            .try_into()
            .map_err(|e: aya::maps::MapError| failed(&e))?;
        place.set(0, address, 0).map_err(|e| failed(&e))?;
        let Some(Program::RawTracePoint(program)) = self.ebpf.program(PROGRAM) else { return Err(missing()) };
        let result = program.test_run(RawTracePointRunOptions::new()).map_err(|e| failed(&e))?;
        if result.return_value != 0 {
            return Err(failed(&format!("nothing is to be read at {address:#x}")));
        }
        let memory: Array<&MapData, [u8; PEEK]> =
            self.ebpf.map("memory").ok_or_else(missing)?.try_into().map_err(|e: aya::maps::MapError| failed(&e))?;
        memory.get(&0, 0).map_err(|e| failed(&e))
    }
}

fn missing() -> ProgramError {
    ProgramError::system("use the reader of kernel memory", io::Error::from(io::ErrorKind::NotFound))
}

//! The least programs that there are: what their call costs is nearly all that a run of them costs.

use std::{io, time::Duration};

use aya::{
    Ebpf,
    programs::{Program, TestRun as _, TestRunOptions},
};

use super::{
    ProgramError, XdpProgram,
    builtin::{Filling, objects},
    load::{load_own, verify},
    xdp::{Parts, timed},
};

/// Loads an XDP program that only drops.
///
/// # Errors
/// Where the kernel refuses.
pub fn load_trivial() -> Result<XdpProgram, ProgramError> {
    let program = "xdp_dispatcher";
    let mut ebpf = load_own(objects::DISPATCHER, &[])?;
    verify(&mut ebpf, "dispatcher", program, None)?;
    Ok(XdpProgram::new(Parts {
        ebpf,
        object: "dispatcher".to_owned(),
        program: program.to_owned(),
        egress: None,
        slots: 0,
        counts: false,
        maps: Vec::new(),
        filling: Filling::Nothing,
    }))
}

/// A program of a kind that no dispatcher calls: a run of it costs the same however many XDP programs are attached.
#[derive(Debug)]
pub struct Reference {
    ebpf: Ebpf,
}

impl Reference {
    const PROGRAM: &str = "tc_reference";

    /// Loads it.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn load() -> Result<Self, ProgramError> {
        let mut ebpf = load_own(objects::DISPATCHER, &[])?;
        match ebpf.program_mut(Self::PROGRAM) {
            Some(Program::SchedClassifier(program)) => {
                program.load().map_err(|error| ProgramError::system("load a program", io::Error::other(error)))?;
            }
            _ => return Err(ProgramError::system("load a program", io::Error::from(io::ErrorKind::NotFound))),
        }
        Ok(Self { ebpf })
    }

    /// As [`XdpProgram::time_runs`].
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn time_runs(&self, frame: &[u8], runs: u32) -> Result<Duration, ProgramError> {
        let Some(Program::SchedClassifier(program)) = self.ebpf.program(Self::PROGRAM) else {
            return Err(ProgramError::system("run a program", io::Error::from(io::ErrorKind::NotFound)));
        };
        timed(|| program.test_run(TestRunOptions { data_in: Some(frame), repeat: runs, ..TestRunOptions::new() }))
    }
}

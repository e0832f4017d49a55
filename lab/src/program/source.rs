//! The generator's program: it makes the frames of `BPF_PROG_RUN` with live frames.

use std::{io, os::fd::AsFd as _};

use aya::{
    Ebpf,
    maps::{MapData, xdp::DevMap},
    programs::{Program, TestRun as _, TestRunAttrs, TestRunOptions, Xdp},
};
use xdplab_wire::records::{Laps, SourceState};

use super::{
    ProgramError, XdpLink,
    builtin::{objects, with_globals},
    load::{load_own, rejected},
    sys,
    xdp::laps,
};

const PROGRAM: &str = "xdp_source";

/// What a source is made for.
#[derive(Debug, Clone, Copy)]
pub struct SourceSpec<'a> {
    /// The number in the markers.
    pub instance: u16,
    /// Number of flows, taken in turn, at least 1.
    pub flows: u32,
    /// The first of them.
    pub first_flow: u32,
    /// The frame of flow 0, in memory: without FCS.
    pub template: &'a [u8],
    /// Whether headers and markers are written, or frames go out as they are.
    pub marker: bool,
    /// The clock is read once in this many frames, a power of two; 0: never.
    pub stamp_every: u32,
}

/// A loaded source.
#[derive(Debug)]
pub struct Source {
    // Before the program: a link is dropped first.
    spare: Option<XdpLink>,
    ebpf: Ebpf,
    template: Vec<u8>,
}

impl Source {
    /// Loads a source.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn load(spec: &SourceSpec<'_>) -> Result<Self, ProgramError> {
        let mut head = [0; 64];
        let length = spec.template.len().min(head.len());
        head[..length].copy_from_slice(&spec.template[..length]);
        let v6 = spec.template.get(12..14) == Some(&[0x86, 0xdd]);
        let data = with_globals(
            objects::SOURCE,
            &[
                ("INSTANCE", &spec.instance.to_ne_bytes()),
                ("FLOWS", &spec.flows.max(1).to_ne_bytes()),
                ("FIRST_FLOW", &spec.first_flow.to_ne_bytes()),
                ("MARKER", &[u8::from(spec.marker)]),
                ("STAMP_EVERY", &spec.stamp_every.to_ne_bytes()),
                ("V6", &[u8::from(v6)]),
                ("TEMPLATE", &head),
            ],
        )?;
        let mut ebpf = load_own(&data, &[])?;
        if let Some(Program::Xdp(xdp)) = ebpf.program_mut(PROGRAM) {
            xdp.load().map_err(|error| match error {
                aya::programs::ProgramError::LoadError { io_error, verifier_log } => {
                    rejected("source", PROGRAM, io_error, &verifier_log.to_string(), None)
                }
                other => ProgramError::system("load the source", io::Error::other(other)),
            })?;
        }
        Ok(Self { spare: None, ebpf, template: spec.template.to_vec() })
    }

    fn xdp(&self) -> Result<&Xdp, ProgramError> {
        match self.ebpf.program(PROGRAM) {
            Some(Program::Xdp(xdp)) => Ok(xdp),
            _ => Err(ProgramError::system("use the source", io::Error::from(io::ErrorKind::NotFound))),
        }
    }

    /// Points the source at a port. To be called in the port's namespace.
    ///
    /// # Errors
    /// Where there is no such port.
    pub fn set_target(&mut self, ifindex: u32) -> Result<(), ProgramError> {
        let failed = |error: &dyn std::fmt::Display| {
            ProgramError::system(format!("point the source at device {ifindex}"), io::Error::other(error.to_string()))
        };
        let map = self.ebpf.map_mut("tx").ok_or_else(|| failed(&"it has no map \"tx\""))?;
        let mut devmap: DevMap<&mut MapData> = map.try_into().map_err(|e: aya::maps::MapError| failed(&e))?;
        devmap.set(0, ifindex, None, 0).map_err(|e| failed(&e))
    }

    /// Attaches the source to a port that no frame comes by, so that it keeps its entry in the kernel's dispatcher. To
    /// be called in that port's namespace.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn attach(&mut self, ifindex: u32) -> Result<(), ProgramError> {
        let fd = self.xdp()?.fd().map_err(|e| ProgramError::system("use the source", io::Error::other(e)))?;
        // XDP_FLAGS_DRV_MODE
        let link = sys::link_create(fd.as_fd(), ifindex, 1 << 2)
            .map_err(|source| ProgramError::system("attach the source to its spare port", source))?;
        self.spare = Some(XdpLink::from(link));
        Ok(())
    }

    /// Sends frames, `batch` at a time. To be called in the sending port's namespace.
    ///
    /// # Errors
    /// The kernel's error: `EINTR` where a signal ended the run early; frames were made until then.
    pub fn run(&self, frames: u32, batch: u32) -> io::Result<()> {
        let options = TestRunOptions {
            data_in: Some(&self.template),
            repeat: frames,
            attrs: TestRunAttrs::new().xdp_live_frames(batch),
            ..TestRunOptions::new()
        };
        match self.xdp().map_err(io::Error::other)?.test_run(options) {
            Ok(_) => Ok(()),
            Err(aya::programs::ProgramError::SyscallError(error)) => Err(error.io_error),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// What the source did until now.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn state(&self) -> Result<SourceState, ProgramError> {
        let mut words = [0; SourceState::WORDS];
        sys::map_lookup(self.record()?.fd(), 0, &mut words)
            .map_err(|source| ProgramError::system("read the source's state", source))?;
        Ok(SourceState::from_words(&words))
    }

    /// When its last laps began.
    ///
    /// # Errors
    /// Where the map can't be read.
    pub fn laps(&self) -> Result<Laps, ProgramError> {
        match self.ebpf.map("laps") {
            Some(aya::maps::Map::Array(data)) => laps(data, 0),
            _ => Err(ProgramError::system("read the source's laps", io::Error::from(io::ErrorKind::NotFound))),
        }
    }

    /// Sets the source's state. Meant for when it does not run.
    ///
    /// # Errors
    /// Where the map can't be written.
    pub fn set_state(&self, state: &SourceState) -> Result<(), ProgramError> {
        sys::map_write(self.record()?.fd(), 0, &state.to_words())
            .map_err(|source| ProgramError::system("set the source's state", source))
    }

    fn record(&self) -> Result<&MapData, ProgramError> {
        match self.ebpf.map("source") {
            Some(aya::maps::Map::Array(data)) => Ok(data),
            _ => Err(ProgramError::system("use the source's state", io::Error::from(io::ErrorKind::NotFound))),
        }
    }
}

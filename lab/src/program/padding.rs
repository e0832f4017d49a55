//! Programs that only take room, so that what is loaded after them lies elsewhere.
//!
//! The kernel packs the machine code of BPF programs into pages that they share. Where a program lies in them moves what it
//! costs by up to a nanosecond, and a program that is loaded again mostly gets the place that it had.

use std::os::fd::OwnedFd;

use super::{ProgramError, sys};

/// Room taken in the kernel's pages of machine code, until dropped.
#[derive(Debug)]
pub struct Padding {
    _program: OwnedFd,
}

impl Padding {
    /// Takes room for so many instructions, at least one. On x86-64 each takes two to seven bytes.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn load(instructions: usize) -> Result<Self, ProgramError> {
        let program = sys::load_padding(instructions)
            .map_err(|source| ProgramError::system("load a program that takes room", source))?;
        Ok(Self { _program: program })
    }
}

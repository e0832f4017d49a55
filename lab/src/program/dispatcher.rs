//! The kernel's XDP dispatcher: which programs its code calls directly, read from that code.
//!
//! The dispatcher is machine code that the kernel writes anew whenever an XDP program is attached or detached: a binary
//! search over the programs' addresses that ends in direct jumps, with an indirect call behind it
//! (`arch/x86/net/bpf_jit_comp.c`, `emit_bpf_dispatcher`). No file shows it, so it is read from kernel memory and walked.

use std::fs;

use super::{ProgramError, peek::KernelMemory};

/// What the dispatcher's code holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DispatcherTable {
    /// Addresses of the programs, in the order of the code: ascending.
    pub programs: Vec<u64>,
    /// Length of the code in bytes.
    pub bytes: usize,
}

/// Reads the dispatcher's code of the running kernel.
#[derive(Debug)]
pub struct DispatcherReader {
    memory: KernelMemory,
    entry: u64,
}

/// Longest code that is walked: the kernel gives it half a page.
const LONGEST: usize = 4096;

impl DispatcherReader {
    /// A reader; `None` on a machine whose dispatcher is not known here (anything but x86-64), or whose kernel has none.
    ///
    /// # Errors
    /// Where the kernel does not show its symbols or its memory to root.
    pub fn open() -> Result<Option<Self>, ProgramError> {
        if !cfg!(target_arch = "x86_64") {
            return Ok(None);
        }
        let path = "/proc/kallsyms";
        let symbols =
            fs::read_to_string(path).map_err(|source| ProgramError::system(format!("read {path}"), source))?;
        let address = |wanted: &str| {
            let line = symbols.lines().find(|line| line.split(' ').nth(2) == Some(wanted))?;
            u64::from_str_radix(line.split(' ').next()?, 16).ok().filter(|address| *address != 0)
        };
        // The trampoline of the static call where the kernel has one, else the function whose head is patched.
        let entry = address("__SCT__bpf_dispatcher_xdp_call").or_else(|| address("bpf_dispatcher_xdp_func"));
        match entry {
            Some(entry) => Ok(Some(Self { memory: KernelMemory::open()?, entry })),
            None => Ok(None),
        }
    }

    /// The dispatcher as it is now.
    ///
    /// # Errors
    /// Where the memory can't be read, or holds what this version does not understand.
    pub fn read(&mut self) -> Result<DispatcherTable, ProgramError> {
        let head = self.memory.read(self.entry)?;
        let Some(target) = jump_target(&head, self.entry) else { return Ok(DispatcherTable::default()) };
        let mut code = Vec::new();
        while code.len() < LONGEST {
            // The image ends with its page: what lies behind can't always be read.
            match self.memory.read(target + code.len() as u64) {
                Ok(more) => code.extend(more),
                Err(_) if !code.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        // With no program at all, the call goes to a plain function instead.
        Ok(walk(&code).unwrap_or_default())
    }
}

/// Where the first jump in the head of a function goes.
fn jump_target(head: &[u8], at: u64) -> Option<u64> {
    // Behind `endbr64`, and behind the frame of a function that only calls on.
    let jump = head.iter().take(16).position(|byte| *byte == 0xe9)?;
    let distance = i32::from_le_bytes(*head.get(jump + 1..)?.first_chunk()?);
    Some(at.wrapping_add(jump as u64 + 5).wrapping_add_signed(i64::from(distance)))
}

/// Walks the code's search tree; `None` where it is none.
fn walk(code: &[u8]) -> Option<DispatcherTable> {
    let mut table = DispatcherTable::default();
    let mut nodes = vec![0];
    // Depth first, the lower half first: that is the order of the code, and of the addresses.
    while let Some(at) = nodes.pop() {
        let node = code.get(at..)?;
        // cmp rdx, imm32
        if !node.starts_with(&[0x48, 0x81, 0xfa]) {
            return None;
        }
        let value = i32::from_le_bytes(*node.get(3..)?.first_chunk()?);
        let jump = node.get(7..)?;
        match jump {
            // je program
            [0x0f, 0x84, ..] => {
                table.programs.push(i64::from(value) as u64);
                // The fallback behind it: a jump to the retpoline, or through the register.
                let fallback = match jump.get(6..)? {
                    [0xe9, ..] => 5,
                    _ => 2,
                };
                table.bytes = table.bytes.max(at + 13 + fallback);
            }
            // jg upper half, near or short
            [0x0f, 0x8f, distance @ ..] => {
                let distance = i32::from_le_bytes(*distance.first_chunk()?);
                nodes.extend([at.checked_add_signed(13 + distance as isize)?, at + 13]);
            }
            [0x7f, distance, ..] => {
                nodes.extend([at.checked_add_signed(9 + isize::from(distance.cast_signed()))?, at + 9]);
            }
            _ => return None,
        }
        if table.programs.len() + nodes.len() > LONGEST {
            return None;
        }
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `cmp rdx, value; je; jmp`.
    fn leaf(value: i32) -> Vec<u8> {
        let mut code = vec![0x48, 0x81, 0xfa];
        code.extend(value.to_le_bytes());
        code.extend([0x0f, 0x84, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0]);
        code
    }

    #[test]
    fn a_tree_of_three_is_walked_in_order() {
        let mut code = vec![0x48, 0x81, 0xfa];
        code.extend((-20_i32).to_le_bytes());
        code.extend([0x7f, 18 + 5]);
        code.extend(leaf(-30));
        code.extend([0x90; 5]);
        code.extend(leaf(-10));
        let table = walk(&code).unwrap();
        assert_eq!(table.programs, [-30_i64, -10].map(|address| address as u64));
        assert_eq!(table.bytes, 9 + 18 + 5 + 18);
        assert_eq!(walk(&[0xc3; 64]), None);
    }

    #[test]
    fn a_jump_is_found_behind_the_landing_pad() {
        let mut head = [0x90; 32];
        head[..4].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa]);
        head[4..9].copy_from_slice(&[0xe9, 0xf7, 0xff, 0xff, 0xff]);
        assert_eq!(jump_target(&head, 0x1000), Some(0x1000));
        assert_eq!(jump_target(&[0xc3; 32], 0x1000), None);
    }

    proptest! {
        #[test]
        fn no_code_makes_the_walk_panic_or_run_for_ever(code in prop::collection::vec(
            prop::sample::select(vec![0x48_u8, 0x81, 0xfa, 0x0f, 0x8f, 0x84, 0x7f, 0xe9, 0, 0xff]), 0..300,
        )) {
            let _ = walk(&code);
        }
    }
}

//! How long the dispatcher's code is, by its rule of layout.
//!
//! The rule is that of `emit_bpf_dispatcher` in `arch/x86/net/bpf_jit_comp.c`: a binary search. Each inner node compares
//! the program's address and jumps to its upper half, by a short jump or, over more than two pivots, by a near one. Each
//! leaf compares, jumps to the program, and falls back to an indirect jump. Aligned jump targets are what Linux has since
//! 5.6: each upper half starts on a multiple of 16 bytes.

/// `cmp rdx, imm32`.
const COMPARE: u32 = 7;
/// `je program`, near.
const JUMP_EQUAL: u32 = 6;
/// A jump to the retpoline, near; without retpolines, `jmp *rdx` takes two bytes.
const RETPOLINE: u32 = 5;
const INDIRECT: u32 = 2;
/// Where upper halves start, if they are aligned.
const ALIGNMENT: u32 = 16;

/// Most programs of either layout, as published; more find no room, and the code stays as it is.
const ALIGNED_MOST: u32 = 48;
const UNALIGNED_MOST: u32 = 64;

/// Length of the dispatcher's code for so many programs, in bytes.
pub fn image_bytes(programs: u32, aligned: bool, retpolines: bool) -> u32 {
    let programs = programs.min(if aligned { ALIGNED_MOST } else { UNALIGNED_MOST });
    if programs == 0 { 0 } else { tree(0, programs, aligned, retpolines) }
}

/// Where a tree of so many programs that starts at `at` ends.
fn tree(at: u32, programs: u32, aligned: bool, retpolines: bool) -> u32 {
    if programs == 1 {
        return at + COMPARE + JUMP_EQUAL + if retpolines { RETPOLINE } else { INDIRECT };
    }
    let pivot = (programs - 1) / 2;
    let jump_greater = if pivot > 2 { 6 } else { 2 };
    let lower = tree(at + COMPARE + jump_greater, pivot + 1, aligned, retpolines);
    let upper = if aligned { lower.next_multiple_of(ALIGNMENT) } else { lower };
    tree(upper, programs - pivot - 1, aligned, retpolines)
}

#[cfg(test)]
mod tests {
    use crate::published;

    use super::*;

    #[test]
    fn every_published_size_follows_from_the_rule() {
        let published = published::dispatcher();
        assert_eq!(published.len(), 456);
        for row in published {
            // The kernel that was measured falls back by the same jump, whether mitigations are on or off.
            let bytes = image_bytes(row.entries, row.jump_targets == "aligned", true);
            assert_eq!(bytes, row.image_bytes, "{row:?}");
        }
    }
}

//! Which kinds of programs others have loaded.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use nix::errno::Errno;

use super::{ProgramError, sys};

/// Kinds that run at kernel functions and events, by their number in `enum bpf_prog_type`. All others run where they are
/// attached, and cost nothing elsewhere.
const TRACING: &[(u32, &str)] = &[
    (2, "kprobe"),
    (5, "tracepoint"),
    (7, "perf event"),
    (17, "raw tracepoint"),
    (24, "raw tracepoint, writable"),
    (26, "fentry, fexit or tp_btf"),
    (29, "LSM"),
];

/// Loaded programs of tracing kinds that this process does not hold, by kind.
///
/// # Errors
/// Where the kernel does not tell: that takes `CAP_SYS_ADMIN`, or root.
pub fn of_others() -> Result<BTreeMap<&'static str, usize>, ProgramError> {
    let failed = |source| ProgramError::system("read which BPF programs are loaded", source);
    let own = own();
    let mut kinds = BTreeMap::new();
    let mut last = 0;
    while let Some(id) = sys::next_program(last).map_err(failed)? {
        last = id;
        if own.contains(&id) {
            continue;
        }
        match sys::program_kind(id) {
            Ok(number) => {
                if let Some((_, kind)) = TRACING.iter().find(|(tracing, _)| *tracing == number) {
                    *kinds.entry(*kind).or_default() += 1;
                }
            }
            // Gone between the two calls.
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(kinds)
}

/// The programs that this process has descriptors of, or links to.
fn own() -> BTreeSet<u32> {
    let Ok(folder) = fs::read_dir("/proc/self/fdinfo") else { return BTreeSet::new() };
    let texts = folder.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.filter_map(|text| program_of(&text)).collect()
}

/// The program that a descriptor stands for, as its `fdinfo` says.
fn program_of(fdinfo: &str) -> Option<u32> {
    fdinfo.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_names_its_program() {
        assert_eq!(program_of("pos:\t0\nflags:\t02000002\nprog_type:\t6\nprog_id:\t42\n"), Some(42));
        assert_eq!(program_of("pos:\t0\n"), None);
    }
}

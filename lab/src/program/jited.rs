//! Where the machine code of the loaded BPF programs is, and what its functions are called.
//!
//! `/proc/kallsyms` has them only where `net.core.bpf_jit_kallsyms` is 1, and cuts names short. The kernel tells root the
//! address and the length of every function, and the program's BTF has their whole names.

use std::{io, ops::Range};

use nix::errno::Errno;

use super::{ProgramError, kernel::Types, sys};

/// A function of a BPF program in the kernel's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitedFunction {
    /// Its whole name where the program has BTF, else the program's of up to 15 bytes.
    pub name: String,
    /// Where its machine code is.
    pub addresses: Range<u64>,
    /// The number of the program that it belongs to.
    pub program: u32,
}

/// The functions of all BPF programs that are loaded now. One that is unloaded meanwhile is left out, and so is one that
/// the kernel interprets.
///
/// # Errors
/// Where the kernel does not tell: that takes `CAP_SYS_ADMIN`, or root.
pub fn functions() -> Result<Vec<JitedFunction>, ProgramError> {
    let failed = |source| ProgramError::system("read where BPF programs are in memory", source);
    let mut functions = Vec::new();
    let mut last = 0;
    while let Some(id) = sys::next_program(last).map_err(failed)? {
        last = id;
        match sys::jited_code(id) {
            Ok(code) => functions.extend(named(id, &code, &function_names(&code))),
            // Gone between the two calls.
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(functions)
}

/// The names of a program's functions in its BTF, as far as they can be read: the program's own is there without them.
fn function_names(code: &sys::JitedCode) -> Vec<String> {
    let data = if code.btf == 0 { Err(io::ErrorKind::NotFound.into()) } else { sys::btf(code.btf) };
    let Some(data) = data.ok() else { return Vec::new() };
    let Some(types) = Types::parse(&data) else { return Vec::new() };
    code.types.iter().map(|id| types.name_of(*id).unwrap_or_default().to_owned()).collect()
}

/// Puts together what the kernel tells in several lists.
fn named<'a>(program: u32, code: &'a sys::JitedCode, names: &'a [String]) -> impl Iterator<Item = JitedFunction> + 'a {
    let places = code.addresses.iter().zip(&code.lengths).enumerate();
    places.filter(|(_, (start, length))| **start != 0 && **length != 0).map(move |(n, (&start, &length))| {
        let name = names.get(n).filter(|name| !name.is_empty()).unwrap_or(&code.name);
        let name = if name.is_empty() { format!("program {program}") } else { name.clone() };
        JitedFunction { name, addresses: start..start + u64::from(length), program }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_the_name_of_its_type_else_of_its_program_else_a_number() {
        let code = sys::JitedCode {
            name: "cut_short_at_15".to_owned(),
            addresses: vec![0x1000, 0x2000, 0],
            lengths: vec![16, 32, 8],
            ..sys::JitedCode::default()
        };
        let names = ["cut_short_at_15_no_more".to_owned()];
        let found: Vec<_> = named(7, &code, &names).map(|f| (f.name, f.addresses)).collect();
        assert_eq!(
            found,
            [("cut_short_at_15_no_more".to_owned(), 0x1000..0x1010), ("cut_short_at_15".to_owned(), 0x2000..0x2020)]
        );
        let bare = sys::JitedCode { addresses: vec![1], lengths: vec![1], ..sys::JitedCode::default() };
        assert_eq!(named(7, &bare, &[]).next().map(|f| f.name).as_deref(), Some("program 7"));
    }
}

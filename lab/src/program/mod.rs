//! Programs: loading objects, filling maps, attaching, counting.
//!
//! | file | owns |
//! |---|---|
//! | `builtin` | the built-in objects, and what of a topology's options goes into their globals |
//! | `object` | what an ELF object holds, before the kernel sees it |
//! | `load` | loading a program and explaining why it did not load |
//! | `values` | bytes of map entries and globals |
//! | `extack` | the kernel's own words for a refused attachment |
//! | `xdp` | loaded programs and their links |
//! | `source` | the generator's program |
//! | `trivial` | the least programs that there are |
//! | `clones` | counting the clones of native broadcasts |
//! | `watch` | the observer's programs |
//! | `dispatcher` | which programs the kernel's XDP dispatcher calls directly |
//! | `padding` | programs that only take room |
//! | `peek` | reading kernel memory |
//! | `traits` | the programs that write, read and exercise traits |
//! | `traits_bench` | the programs that measure what operations on traits cost |
//! | `kernel` | the running kernel's own types (BTF) |
//! | `kinds` | which kinds of programs others have loaded |
//! | `jited` | where the loaded programs' machine code is |
//! | `sys` | the system calls |

#![expect(unsafe_code, reason = "BPF system calls that no safe wrapper covers stand in `sys`")]

mod builtin;
pub mod clones;
pub mod dispatcher;
mod error;
mod extack;
pub mod jited;
pub mod kernel;
pub mod kinds;
mod load;
mod object;
mod padding;
mod peek;
mod source;
mod sys;
mod traits;
mod traits_bench;
mod trivial;
mod values;
pub mod watch;
mod xdp;

pub(crate) use builtin::slots_of;
pub use error::ProgramError;
pub use load::{LoadContext, examine, load};
pub use padding::Padding;
pub use source::{Source, SourceSpec};
pub use traits::{Traits, TraitsProgram, TraitsSpec, TraitsTarget};
pub use traits_bench::{TraitsBench, TraitsWork};
pub use trivial::{Reference, load_trivial};
pub use watch::{Watch, WatchCounter, WatchSpec};
pub use xdp::{PortCounter, XdpLink, XdpProgram, pinned_counters};

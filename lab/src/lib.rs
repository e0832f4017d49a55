//! xdplab: an integration-test lab for XDP.
//!
//! A topology file describes hosts, links, programs and what must hold. The lab builds it out of network namespaces
//! and veth pairs, loads the programs, sends real frames through the real kernel, accounts for every one, prices the
//! path in nanoseconds a packet, and reports. `lab/ARCHITECTURE.md` shows how the parts stand to each other.

pub mod baseline;
pub mod bench;
pub mod compare;
pub mod drivers;
pub mod history;
pub mod host;
pub mod lab;
pub mod measure;
pub mod observe;
pub mod program;
pub mod published;
pub mod record;
pub mod report;
pub mod run;
pub mod testing;
pub mod topology;
pub mod traffic;
pub mod vm;
pub mod xdp;

pub use lab::Lab;
pub use xdplab_macros::test;

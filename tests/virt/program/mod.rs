//! The BPF programs in a real kernel: what they count, what they send on, and how a bad object fails.

mod attaching;
mod frames;
mod net;
mod objects;
mod paths;
pub(crate) mod traits;

//! The BPF programs in a real kernel: what they count, what they send on, and how a bad object fails.

mod attaching;
pub(crate) mod frames;
pub(crate) mod net;
mod objects;
mod paths;
pub(crate) mod traits;

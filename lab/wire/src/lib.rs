//! What xdplab and its BPF programs agree on: the marker in every frame, and the records in the maps.
//!
//! No allocation, no standard library: the same code runs as BPF and is tested in user space.

#![cfg_attr(not(test), no_std)]
#![expect(clippy::inline_always, reason = "BPF programs are verified as one function: a call in between costs there")]

pub mod flow;
#[cfg(test)]
extern crate self as xdplab_wire;

pub mod marker;
pub mod records;
pub mod traits;
pub mod window;

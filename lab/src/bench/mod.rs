//! Measurements of single operations, apart from any topology.

pub mod traits;

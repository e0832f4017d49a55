//! From windows of traffic to a cost: intervals, ratios, and what must be equal for two costs to be comparable.

pub mod fingerprint;
pub mod interval;
pub mod laps;
pub mod saturation;
pub mod stats;

//! Traffic: the frames, and what sends them.

pub mod frames;

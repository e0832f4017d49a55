//! Renders records: what `lab/src/record` holds, for people and for machines. Nothing here measures or decides.

pub mod bench;
pub mod json;
pub mod junit;
pub mod markdown;
mod numbers;
pub mod profile;
#[cfg(test)]
mod sample;
pub mod table;
pub mod text;
pub mod verdict;

pub use numbers::thousands;

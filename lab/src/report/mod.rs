//! Renders records: what `lab/src/record` holds, for people and for machines. Nothing here measures or decides.

pub mod bench;
pub mod compare;
pub mod cover_letter;
pub mod discovery;
mod grid;
pub mod history;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
mod numbers;
mod plot;
pub mod profile;
#[cfg(test)]
pub(crate) mod sample;
pub mod table;
pub mod text;
pub mod verdict;
mod wrap;

pub use numbers::thousands;

//! The statistics of a comparison: from windows to a difference a reload, its interval, and a verdict against a budget.
//!
//! ```text
//! windows -> blocks (ABBA, drift cancels) -> one difference a reload -> Hodges-Lehmann estimate and interval
//!                                                                    -> planned looks -> verdict
//! ```
//!
//! The unit of replication is the reload: both programs loaded anew. Where code lands in memory moves all windows of a
//! load alike, so that more windows of one load narrow an interval around the wrong value. Differences are candidate
//! minus baseline, in nanoseconds a packet.

pub mod blocks;
pub mod changes;
pub mod decide;
pub mod detect;
pub mod floor;
pub mod hodges_lehmann;
pub mod holm;
pub mod looks;
pub mod signed_rank;

#[cfg(test)]
mod noise;
#[cfg(test)]
mod simulated;

//! What happened to the frames: counters read before and after, the ledger made of them, and what causes each loss.

pub mod causes;
pub mod ledger;
pub mod missed;
pub mod profile;
pub mod reading;
mod sockets;

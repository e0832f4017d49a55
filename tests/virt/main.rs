//! Tests that need root: network namespaces, veth pairs, real frames through the real kernel.

mod ledger;
mod program;

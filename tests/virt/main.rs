//! Tests that need root: network namespaces, veth pairs, real frames through the real kernel.

mod alone;
mod attribute;
mod bad_days;
mod bringup;
mod command;
mod fingerprint;
mod kernel;
mod ledger;
mod nics;
mod polls;
mod profile;
mod program;
mod senders;
mod shipped;
mod skip_unable;
mod vm;
mod xsk;

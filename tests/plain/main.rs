//! Tests that need no privilege: what is read, checked and rendered, without a kernel object.

mod command;
mod compare;
mod history;
mod nics;
mod objects;
mod reports;
mod topology;

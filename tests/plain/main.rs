//! Tests that need no privilege: what is read, checked and rendered, without a kernel object.

mod objects;
mod topology;

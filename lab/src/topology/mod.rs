//! The topology file: its schema, its checks with places in the source, and the model that comes of it.
//!
//! Nothing here calls the kernel.

mod lookup;
mod mac;
mod model;

pub use mac::Mac;
pub use model::*;

//! The topology file: its schema, its checks with places in the source, and the model that comes of it.
//!
//! Nothing here calls the kernel.
//!
//! ```text
//!  text --parse--> TOML tree --read--> raw types (schema) --check--> Topology --preflight--> warnings
//!                     \                    \                  \
//!                      '------- errors -----'------------------'--> Diagnostics, all at once
//! ```

mod check;
mod diagnostic;
pub mod graph;
mod host_file;
mod json_schema;
mod load;
mod lookup;
mod mac;
mod model;
pub mod preflight;
mod read;
mod schema;
mod spans;
mod suggest;
mod walk;

pub use check::NATIVE_MTU_MOST;
pub(crate) use check::is_pci_address;
pub use diagnostic::{Diagnostic, Diagnostics, Related, Severity, Span};
pub use host_file::{HOST_FILE, HostFile, HostFileError};
pub use json_schema::{json_schema, json_schema_text};
pub use load::{LARGEST_FILE, LoadError, load, parse};
pub use mac::Mac;
pub use model::*;
pub use spans::{ProgramSpans, ScenarioSpans, Spans};
pub(crate) use suggest::{did_you_mean, nearest};
pub use walk::Walk;

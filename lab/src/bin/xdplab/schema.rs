//! `xdplab schema`: the JSON Schema of topology files.

use crate::{failure::Failure, output};

/// Prints the schema.
pub(crate) fn schema() -> Result<u8, Failure> {
    output::print(&xdplab::topology::json_schema_text())?;
    Ok(0)
}

//! The JSON Schema of topology files, for editors.

use schemars::{Schema, generate::SchemaSettings};

use super::schema::RawTopology;

/// The JSON Schema (draft 2020-12) of a topology file.
pub fn json_schema() -> Schema {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<RawTopology>();
    schema.insert("title".to_owned(), "xdplab topology".into());
    schema
}

/// The JSON Schema as text, with a newline at its end: what `xdplab schema` prints and `lab/topology.schema.json` holds.
pub fn json_schema_text() -> String {
    // A schema is plain JSON, so that writing it can't fail.
    format!("{:#}\n", json_schema().as_value())
}

//! Values of maps and globals: whatever TOML has, with places.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use toml_spanner::{Item, Value};

use super::{At, Form, Read, Reader};

/// A value of a map or a global as the file has it.
#[derive(Debug, Clone)]
pub(crate) enum RawValue {
    /// A port, an address, a MAC address or `0x…` bytes.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Several.
    List(Vec<At<RawValue>>),
    /// By key.
    Table(Vec<(At<String>, At<RawValue>)>),
}

impl Read for RawValue {
    // Nearly anything may stand there: of what may not, nothing more can be told.
    const FORM: Form = Form::Table;

    fn read(item: &Item<'_>, reader: &mut Reader) -> Option<Self> {
        // All elements are read, even behind a wrong one.
        fn whole<T>(elements: Vec<Option<T>>) -> Option<Vec<T>> {
            elements.into_iter().collect()
        }
        let mut at = |item: &Item<'_>| Some(At { value: Self::read(item, reader)?, span: item.span().range() });
        match item.value() {
            Value::String(text) => Some(Self::Text((*text).to_owned())),
            Value::Float(number) => Some(Self::Float(*number)),
            Value::Boolean(truth) => Some(Self::Bool(*truth)),
            Value::Array(array) => whole(array.iter().map(at).collect()).map(Self::List),
            Value::Table(table) => whole(
                table
                    .iter()
                    .map(|(key, item)| Some((At { value: key.name.to_owned(), span: key.span.range() }, at(item)?)))
                    .collect(),
            )
            .map(Self::Table),
            Value::Integer(integer) => {
                let integer = integer.as_i64();
                if integer.is_none() {
                    reader.expected(
                        "an integer of at most 64 bits with a sign (or a text such as \"0xffff\")",
                        Self::FORM,
                        item,
                    );
                }
                integer.map(Self::Integer)
            }
            Value::DateTime(_) => {
                reader.expected("a port, a number, a truth value, a text or a list", Self::FORM, item);
                None
            }
        }
    }
}

impl JsonSchema for RawValue {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "A port (`node:port`), an integer, a number, a truth value, an address, a MAC address, \
                bytes as `0x…`, or a list or table of these.",
            "type": ["string", "integer", "number", "boolean", "array", "object"],
        })
    }
}

//! A least rate: one number, or several with what each of them is for.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use toml_spanner::Item;

use super::{At, Field, Form, List, Read, Reader};
use crate::topology::schema::RawRate;

/// Least rates of one driver.
#[derive(Debug)]
pub(crate) struct RawRates(pub(crate) List<RawRate>);

impl Read for RawRates {
    const FORM: Form = Form::Rates;

    fn read(item: &Item<'_>, reader: &mut Reader) -> Option<Self> {
        if item.as_array().is_some() {
            return List::read(item, reader).map(Self);
        }
        let number = item.as_f64().or_else(|| item.as_i64().map(|integer| integer as f64));
        let Some(value) = number else {
            reader.expected("a rate, or a list of rates such as [{ mpps = 9.0, speed = 10_000 }]", Self::FORM, item);
            return None;
        };
        let span = item.span().range();
        let rate = RawRate { mpps: Field::Given(At { value, span: span.clone() }), ..RawRate::default() };
        Some(Self(List { items: vec![At { value: rate, span }], bad: false }))
    }
}

impl JsonSchema for RawRates {
    fn schema_name() -> Cow<'static, str> {
        "Rates".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "description": "A rate in million packets a second; or several, each with the link speed and the CPU that it \
                is for, of which the first that fits binds.",
            "anyOf": [
                { "type": "number" },
                { "type": "array", "items": generator.subschema_for::<RawRate>() },
            ],
        })
    }
}

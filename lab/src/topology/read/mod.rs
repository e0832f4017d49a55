//! From TOML to the raw types: every value keeps its place, and a wrong one never hides the next.
//!
//! A derived reader would give up a whole table for one wrong value, and with it the names that the rest of the file
//! refers to. Here each key is read on its own into a [`Field`], so that the checks behind can tell "not there" from
//! "there, but wrong and already reported".

mod form;
mod rates;
mod table;
mod value;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use toml_spanner::{Item, Key, Table};

pub(crate) use form::Form;
pub(crate) use rates::RawRates;
pub(crate) use table::{is_key, needs, table, words};
pub(crate) use value::RawValue;

use super::{
    diagnostic::{Diagnostic, Span},
    suggest,
};

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct At<T> {
    /// The value.
    pub(crate) value: T,
    /// Its place in the file, in bytes.
    pub(crate) span: Span,
}

/// What a key of a table holds.
#[derive(Debug, Clone, Default)]
pub(crate) enum Field<T> {
    /// The key is not there.
    #[default]
    Absent,
    /// It is there and was reported as wrong: nothing that follows from it is worth an error.
    Bad,
    /// Its value.
    Given(At<T>),
}

impl<T> Field<T> {
    /// The value and its place, if it was given and is of the right type.
    pub(crate) fn given(&self) -> Option<&At<T>> {
        if let Self::Given(at) = self { Some(at) } else { None }
    }

    /// Whether the key is not there at all.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Whether the key is there and was reported.
    pub(crate) fn is_bad(&self) -> bool {
        matches!(self, Self::Bad)
    }
}

impl<T: Read> Field<T> {
    /// Reads the value of a table's key, as its field is named; of a name of the user's choice, which is no key, it is
    /// empty.
    pub(crate) fn read(key: &'static str, item: &Item<'_>, reader: &mut Reader) -> Self {
        reader.at(key, item).map_or(Self::Bad, |value| Self::Given(At { value, span: item.span().range() }))
    }
}

/// A list: the elements that could be read, and whether others could not.
#[derive(Debug, Clone, Default)]
pub(crate) struct List<T> {
    /// The elements, in order.
    pub(crate) items: Vec<At<T>>,
    /// Whether an element was wrong and reported.
    pub(crate) bad: bool,
}

/// Tables or values by names of the user's choice, in the file's order.
#[derive(Debug, Clone)]
pub(crate) struct Names<T> {
    /// Names, and what is behind them.
    pub(crate) entries: Vec<(At<String>, Field<T>)>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

/// Collects what is wrong while the raw types are read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// What is wrong so far.
    pub(crate) found: Vec<Diagnostic>,
    /// Whether the file's syntax is broken somewhere, so that what seems to be missing may only be unreadable.
    pub(crate) broken: bool,
    /// The table's key whose value is read; empty in a list and under a name of the user's choice.
    key: &'static str,
}

impl Reader {
    /// A reader of a file whose syntax is sound, or is broken somewhere.
    pub(crate) fn new(broken: bool) -> Self {
        Self { broken, ..Self::default() }
    }

    /// Reads what stands at a key.
    fn at<T: Read>(&mut self, key: &'static str, item: &Item<'_>) -> Option<T> {
        let around = std::mem::replace(&mut self.key, key);
        let value = T::read(item, self);
        self.key = around;
        value
    }

    /// Reports that a value is of the wrong type.
    pub(crate) fn expected(&mut self, what: &str, form: Form, item: &Item<'_>) {
        self.wrong_form(what, form, what, item);
    }

    /// The same; `place` tells the table that should stand there from others.
    fn wrong_form(&mut self, what: &str, form: Form, place: &str, item: &Item<'_>) {
        let found = match *item.type_str() {
            "integer" => "an integer".to_owned(),
            "array" => "a list".to_owned(),
            "boolean" => "a truth value".to_owned(),
            "string" => "a text".to_owned(),
            "datetime" => "a date".to_owned(),
            other => format!("a {other}"),
        };
        self.found.push(
            Diagnostic::error(item.span().range(), format!("expected {what}, found {found}"))
                .label(format!("not {what}"))
                .maybe_help(form::fix(form, self.key, place, item)),
        );
    }

    /// The table that a value is; reports it if it is none.
    pub(crate) fn table<'i, 'de>(&mut self, what: &str, item: &'i Item<'de>) -> Option<&'i Table<'de>> {
        let table = item.as_table();
        if table.is_none() {
            self.wrong_form(&format!("a table ({what})"), Form::Table, what, item);
        }
        table
    }

    /// Reports a key that its table doesn't know.
    pub(crate) fn unknown_key(&mut self, key: &Key<'_>, what: &str, known: &[String]) {
        let help = suggest::did_you_mean(key.name, "the keys here are", known.iter().map(String::as_str));
        self.found.push(
            Diagnostic::error(key.span.range(), format!("unknown key `{}` in {what}", key.name))
                .label("no such key")
                .maybe_help(help),
        );
    }

    /// Reports a key that its table needs and doesn't have.
    pub(crate) fn missing_key(&mut self, item: &Item<'_>, what: &str, key: &str) {
        if self.broken {
            return;
        }
        self.found.push(
            Diagnostic::error(item.span().range(), format!("{what} needs the key `{key}`"))
                .label(format!("`{key}` is missing")),
        );
    }
}

/// The error for a word that is known and does nothing yet.
pub(crate) fn later(span: Span, what: &str, instead: &str) -> Diagnostic {
    Diagnostic::error(span, format!("{what} is not available in this version of xdplab: {instead}"))
        .label("not available yet")
}

/// What can be read from a TOML value.
pub(crate) trait Read: Sized {
    /// What may stand there.
    const FORM: Form;

    /// Reads a value; `None` where it is wrong and was reported.
    fn read(item: &Item<'_>, reader: &mut Reader) -> Option<Self>;
}

impl Read for String {
    const FORM: Form = Form::Text;

    fn read(item: &Item<'_>, reader: &mut Reader) -> Option<Self> {
        let text = item.as_str().map(str::to_owned);
        if text.is_none() {
            reader.expected("a text", Self::FORM, item);
        }
        text
    }
}

impl Read for i64 {
    const FORM: Form = Form::Integer;

    fn read(item: &Item<'_>, reader: &mut Reader) -> Option<Self> {
        let integer = item.as_i64();
        if integer.is_none() {
            reader.expected("an integer", Self::FORM, item);
        }
        integer
    }
}

impl Read for f64 {
    const FORM: Form = Form::Number;

    fn read(item: &Item<'_>, reader: &mut Reader) -> Option<Self> {
        let number = item.as_f64().or_else(|| item.as_i64().map(|integer| integer as f64));
        if number.is_none() {
            reader.expected("a number", Self::FORM, item);
        }
        number
    }
}

impl Read for bool {
    const FORM: Form = Form::Truth;

    fn read(item: &Item<'_>, reader: &mut Reader) -> Option<Self> {
        let truth = item.as_bool();
        if truth.is_none() {
            reader.expected("true or false", Self::FORM, item);
        }
        truth
    }
}

impl<T: Read> Read for List<T> {
    const FORM: Form = Form::List(&T::FORM);

    fn read(item: &Item<'_>, reader: &mut Reader) -> Option<Self> {
        let Some(array) = item.as_array() else {
            reader.expected("a list", Self::FORM, item);
            return None;
        };
        let mut list = Self { items: Vec::with_capacity(array.len()), bad: false };
        for element in array {
            match reader.at("", element) {
                Some(value) => list.items.push(At { value, span: element.span().range() }),
                None => list.bad = true,
            }
        }
        Some(list)
    }
}

impl<T: Read> Read for Names<T> {
    const FORM: Form = Form::Table;

    fn read(item: &Item<'_>, reader: &mut Reader) -> Option<Self> {
        let table = reader.table("names and what they stand for", item)?;
        let entries = table
            .into_iter()
            .map(|(key, item)| {
                (At { value: key.name.to_owned(), span: key.span.range() }, Field::read("", item, reader))
            })
            .collect();
        Some(Self { entries })
    }
}

impl<T: JsonSchema> JsonSchema for Field<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T: JsonSchema> JsonSchema for List<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("ListOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "array", "items": generator.subschema_for::<T>() })
    }
}

impl<T: JsonSchema> JsonSchema for Names<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("NamesOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>() })
    }
}

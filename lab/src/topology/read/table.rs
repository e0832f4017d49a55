//! `table!` and `words!`: a raw type, its reader and its JSON Schema from one list of keys.

/// Whether a file's key is a field's name, with hyphens for underscores.
pub(crate) fn is_key(name: &str, field: &str) -> bool {
    name.len() == field.len()
        && name.bytes().zip(field.bytes()).all(|(name, field)| name == if field == b'_' { b'-' } else { field })
}

/// Gives a list of keys its type, also an empty one.
pub(crate) fn needs(keys: &'static [&'static str]) -> &'static [&'static str] {
    keys
}

/// Defines a table of the file: a struct whose keys are [`Field`](super::Field)s, named in kebab case.
///
/// The first text names the table in the JSON Schema; the one in parentheses says what it is, as error messages put it;
/// `needs` lists the keys that must be there.
macro_rules! table {
    (
        $(#[$meta:meta])*
        struct $name:ident as $title:tt($what:literal) needs [$($need:literal),*] {
            $($(#[$field_meta:meta])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Default, schemars::JsonSchema)]
        #[schemars(rename = $title, rename_all = "kebab-case", deny_unknown_fields, default)]
        #[schemars(extend("required" = $crate::topology::read::needs(&[$($need),*])))]
        pub(crate) struct $name {
            $($(#[$field_meta])* pub(crate) $field: $crate::topology::read::Field<$type>,)*
        }

        impl $crate::topology::read::Read for $name {
            const FORM: $crate::topology::read::Form = $crate::topology::read::Form::Table;

            fn read(
                item: &toml_spanner::Item<'_>,
                reader: &mut $crate::topology::read::Reader,
            ) -> Option<Self> {
                let table = reader.table($what, item)?;
                let mut out = Self::default();
                for (key, item) in table {
                    $(if $crate::topology::read::is_key(key.name, stringify!($field)) {
                        out.$field = $crate::topology::read::Field::read(stringify!($field), item, reader);
                        continue;
                    })*
                    reader.unknown_key(key, $what, &[$(stringify!($field).replace('_', "-")),*]);
                }
                for need in $crate::topology::read::needs(&[$($need),*]) {
                    if !table.contains_key(need) {
                        reader.missing_key(item, $what, need);
                    }
                }
                Some(out)
            }
        }
    };
}

/// Defines the words that a key takes: an existing type is read from a text, with its JSON Schema.
///
/// Words behind `later` are known and refused, with what to use instead.
macro_rules! words {
    (
        $(#[doc = $doc:literal])*
        $type:ty as $name:literal, $what:literal:
        { $($word:literal => $value:expr),* $(,)? } later { $($later:literal => $instead:literal),* $(,)? }
    ) => {
        impl $crate::topology::read::Read for $type {
            const FORM: $crate::topology::read::Form = $crate::topology::read::Form::Word(&[$($word),*]);

            fn read(
                item: &toml_spanner::Item<'_>,
                reader: &mut $crate::topology::read::Reader,
            ) -> Option<Self> {
                let Some(text) = item.as_str() else {
                    reader.expected(concat!("a text (", $what, ")"), Self::FORM, item);
                    return None;
                };
                match text {
                    $($word => return Some($value),)*
                    $($later => reader.found.push($crate::topology::read::later(
                        item.span().range(), &format!("{} `{text}`", $what), $instead,
                    )),)*
                    _ => reader.found.push(
                        $crate::topology::diagnostic::Diagnostic::error(
                            item.span().range(), format!("unknown {} `{text}`", $what),
                        )
                        .label("not one of the words that stand here")
                        .maybe_help($crate::topology::suggest::did_you_mean(
                            text, "use one of", [$($word),*],
                        )),
                    ),
                }
                None
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": concat!($($doc),*).trim(),
                    "type": "string",
                    "enum": [$($word),*],
                })
            }
        }
    };
}

pub(crate) use {table, words};

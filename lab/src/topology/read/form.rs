//! The right form of a value of the wrong type, where it can be told: what the fix of such an error is taken from.

use toml_spanner::{Item, Value};

use super::is_key;

/// What may stand at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// Any text.
    Text,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// An integer.
    Integer,
    /// A number.
    Number,
    /// A number of million packets a second, or a list of tables.
    Rates,
    /// True or false.
    Truth,
    /// A list of these.
    List(&'static Form),
    /// A table, or what is told by its place alone.
    Table,
}

/// What was found in place of it, as far as it decides what was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Text,
    Number,
    List,
    Table,
}

/// What a value most likely means of which more is known than its type: the key that it stands at, or the table that should
/// stand there, what was found, and how that is written. `#` is the value found.
const MEANT: &[(&str, Found, &str)] = &[
    ("name", Found::Number, "name = \"#\""),
    ("about", Found::Number, "about = \"#\""),
    ("label", Found::Number, "label = \"#\""),
    ("duration", Found::Number, "duration = \"#s\""),
    ("nic", Found::Text, "nic = { driver = # }"),
    ("rings", Found::Number, "rings = { rx = #, tx = # }"),
    ("perf", Found::Number, "perf = { min-mpps = { veth = # } }"),
    ("min-mpps", Found::Number, "min-mpps = { veth = # }"),
    ("max-ratio", Found::Number, "max-ratio = { of = \"another scenario\", value = # }"),
    ("traffic", Found::Text, "traffic = { from = \"node:port\", frames = 1_000_000 }"),
    ("expect", Found::Text, "expect = { deliver = [\"node:port\"] }"),
    ("expect", Found::List, "expect = { deliver = [\"node:port\"] }"),
    ("a program", Found::Text, "{ builtin = #, attach = [\"node:port\"] }"),
    ("nodes", Found::List, "a header for each, such as [nodes.gen]"),
    ("programs", Found::List, "a header for each, such as [programs.drop]"),
    ("links", Found::Table, "[[links]] for its header"),
    ("scenarios", Found::Table, "[[scenarios]] for its header"),
    ("cables", Found::Table, "[[cables]] for its header"),
];

/// What the numbers of a key count, where it is more than one of a thing.
const UNITS: &[(&str, f64)] = &[("speed", 1e6), ("mpps", 1e6)];

/// Units that may stand behind a magnitude, and mean what the key says.
const UNIT_NAMES: &[&str] = &["", "bit", "bit/s", "bits/s", "bps", "b/s", "pps"];

/// Most numbers that a range such as `0-3` is written out to.
const RANGE_MOST: i64 = 16;

/// What to do about a value that has another form than may stand there. `key`: the table's key that it stands at, empty in
/// lists and under names; `what`: what should stand there, in words.
pub(super) fn fix(form: Form, key: &str, what: &str, item: &Item<'_>) -> Option<String> {
    let meant =
        MEANT.iter().find(|(place, found, _)| (is_key(place, key) || *place == what) && Some(*found) == found_in(item));
    if let Some((_, _, template)) = meant {
        return Some(format!("write {}", template.replace('#', &literal(item)?)));
    }
    if let Some(value) = written(form, key, item) {
        let key = key.replace('_', "-");
        return Some(if key.is_empty() { format!("write {value}") } else { format!("write {key} = {value}") });
    }
    match form {
        Form::Word(words) | Form::List(&Form::Word(words)) => Some(format!(
            "use one of: {}",
            words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
        )),
        Form::Rates | Form::List(Form::Table) if found_in(item) == Some(Found::Table) => {
            Some("put it in brackets: [{ … }]".to_owned())
        }
        _ => None,
    }
}

fn found_in(item: &Item<'_>) -> Option<Found> {
    match item.value() {
        Value::String(_) => Some(Found::Text),
        Value::Integer(_) | Value::Float(_) => Some(Found::Number),
        Value::Array(_) => Some(Found::List),
        Value::Table(_) => Some(Found::Table),
        Value::Boolean(_) | Value::DateTime(_) => None,
    }
}

/// A value as a file has it; empty for what has parts.
fn literal(item: &Item<'_>) -> Option<String> {
    Some(match item.value() {
        Value::String(text) => quoted(text)?,
        Value::Integer(integer) => grouped(integer.as_i128()),
        Value::Float(number) => number.is_finite().then(|| number.to_string())?,
        Value::Boolean(truth) => truth.to_string(),
        Value::DateTime(_) => return None,
        Value::Array(_) | Value::Table(_) => String::new(),
    })
}

/// A text in quotes, if it needs no escapes.
fn quoted(text: &str) -> Option<String> {
    (!text.contains(['"', '\\']) && !text.contains(char::is_control)).then(|| format!("\"{text}\""))
}

/// An integer with its digits in groups, where it has many.
fn grouped(integer: i128) -> String {
    let digits = integer.unsigned_abs().to_string();
    if digits.len() < 5 {
        return integer.to_string();
    }
    let mut text = if integer < 0 { "-".to_owned() } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// A value in a form, where it can be told.
fn written(form: Form, key: &str, item: &Item<'_>) -> Option<String> {
    match (form, item.value()) {
        (Form::List(of), Value::String(text)) => several(*of, key, text),
        (Form::List(of), _) => Some(format!("[{}]", is_of(*of, item).then(|| literal(item))??)),
        // One in brackets, where only one may stand.
        (Form::Text | Form::Word(_) | Form::Integer | Form::Number | Form::Truth, Value::Array(array)) => {
            match array.iter().collect::<Vec<_>>()[..] {
                [only] if is_of(form, only) => literal(only),
                _ => None,
            }
        }
        (_, Value::String(text)) => of_text(form, key, text),
        (Form::Integer, Value::Float(number)) => whole(*number),
        (Form::Truth, Value::Integer(integer)) => match integer.as_i128() {
            0 => Some("false".to_owned()),
            1 => Some("true".to_owned()),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a value has that form.
fn is_of(form: Form, item: &Item<'_>) -> bool {
    match (form, item.value()) {
        (Form::Text, Value::String(_))
        | (Form::Integer | Form::Number, Value::Integer(_))
        | (Form::Number, Value::Float(_))
        | (Form::Truth, Value::Boolean(_)) => true,
        (Form::Word(words), Value::String(text)) => words.contains(text),
        _ => false,
    }
}

/// A text as what is no text: without its quotes, its magnitude written out.
fn of_text(form: Form, key: &str, text: &str) -> Option<String> {
    let text = text.trim();
    match form {
        Form::Truth => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some("true".to_owned()),
            "false" | "no" | "off" => Some("false".to_owned()),
            _ => None,
        },
        Form::Integer | Form::Number | Form::Rates => {
            let unit = UNITS.iter().find(|(of, _)| is_key(of, key)).map(|(_, unit)| *unit);
            let unit = if matches!(form, Form::Rates) { 1e6 } else { unit.unwrap_or(1.0) };
            let (number, scaled) = number(text, unit)?;
            match form {
                Form::Integer => whole(number).map(|whole| if scaled { whole } else { plain(text).unwrap_or(whole) }),
                _ => number.is_finite().then(|| if scaled { number.to_string() } else { text.to_owned() }),
            }
        }
        Form::Text | Form::Word(_) | Form::List(_) | Form::Table => None,
    }
}

/// An integer's digits as they were written, if TOML takes them so.
fn plain(text: &str) -> Option<String> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (text.split('_').all(digits) && !text.starts_with('0')).then(|| text.to_owned())
}

/// The number that a text such as `1_000`, `1.5M` or `40 Gbit/s` is, in units of that many, and whether it had a magnitude.
fn number(text: &str, unit: f64) -> Option<(f64, bool)> {
    let bare = text.replace('_', "");
    if let Ok(number) = bare.parse() {
        return Some((number, false));
    }
    let at = bare.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = bare[..at].parse().ok()?;
    let mut behind = bare[at..].trim_start().chars();
    let magnitude = match behind.next()?.to_ascii_lowercase() {
        'k' => 1e3,
        'm' => 1e6,
        'g' => 1e9,
        't' => 1e12,
        _ => return None,
    };
    UNIT_NAMES.contains(&behind.as_str().to_ascii_lowercase().as_str()).then(|| (number * magnitude / unit, true))
}

/// A number without a fraction, as an integer.
fn whole(number: f64) -> Option<String> {
    // Beyond this a float does not tell neighbours apart.
    let exact = number.abs() < 2f64.powi(53) && (number - number.round()).abs() < 1e-6;
    exact.then(|| grouped(number.round() as i128))
}

/// A list of what a text names, such as `a, b` or, of numbers, `0-3`.
fn several(of: Form, key: &str, text: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in text.split([',', ';', ' ']).filter(|part| !part.is_empty()) {
        match of {
            Form::Text => parts.push(quoted(part)?),
            Form::Word(words) => parts.push(words.contains(&part).then(|| quoted(part))??),
            Form::Integer => {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                let (first, last): (i64, i64) = (first.parse().ok()?, last.parse().ok()?);
                if !(0..RANGE_MOST).contains(&(last.checked_sub(first)?)) {
                    return None;
                }
                parts.extend((first..=last).map(|number| number.to_string()));
            }
            _ => parts.push(of_text(of, key, part)?),
        }
    }
    (!parts.is_empty()).then(|| format!("[{}]", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use toml_spanner::Arena;

    use super::*;

    const MODES: Form = Form::Word(&["native", "generic"]);

    /// The fix for a value at a key.
    fn fixed(form: Form, key: &str, value: &str) -> Option<String> {
        let text = format!("it = {value}");
        let arena = Arena::new();
        let document = toml_spanner::parse_recoverable(&text, &arena);
        assert!(document.errors().is_empty(), "{text}");
        let (_, item) = document.table().iter().next().unwrap();
        fix(form, key, "", item)
    }

    #[test]
    fn the_right_form_is_told_where_it_can_be() {
        let cases = [
            (Form::Integer, "frames", "\"1M\"", "write frames = 1_000_000"),
            (Form::Integer, "frames", "\"1.5k\"", "write frames = 1500"),
            (Form::Integer, "frames", "\"2 G\"", "write frames = 2_000_000_000"),
            (Form::Integer, "frames", "\"1_000\"", "write frames = 1_000"),
            (Form::Integer, "frames", "1e6", "write frames = 1_000_000"),
            (Form::Integer, "frame_bytes", "64.0", "write frame-bytes = 64"),
            (Form::Integer, "frames", "[10]", "write frames = 10"),
            (Form::Integer, "", "\"7\"", "write 7"),
            (Form::Integer, "speed", "\"40G\"", "write speed = 40_000"),
            (Form::Integer, "speed", "\"2.5 Gbit/s\"", "write speed = 2500"),
            (Form::Integer, "speed", "\"100M\"", "write speed = 100"),
            (Form::Integer, "speed", "\"10000\"", "write speed = 10000"),
            (Form::Number, "mpps", "\"9.5Mpps\"", "write mpps = 9.5"),
            (Form::Number, "budget_ns", "\"20.5\"", "write budget-ns = 20.5"),
            (Form::Rates, "", "\"500kpps\"", "write 0.5"),
            (Form::Rates, "", "{ mpps = 9.0 }", "put it in brackets: [{ … }]"),
            (Form::Truth, "gro", "\"off\"", "write gro = false"),
            (Form::Truth, "gro", "1", "write gro = true"),
            (Form::Text, "duration", "2", "write duration = \"2s\""),
            (Form::Text, "duration", "0.5", "write duration = \"0.5s\""),
            (Form::Text, "name", "7", "write name = \"7\""),
            (Form::Text, "from", "[\"gen:tx0\"]", "write from = \"gen:tx0\""),
            (MODES, "mode", "[\"native\"]", "write mode = \"native\""),
            (MODES, "mode", "1", "use one of: \"native\", \"generic\""),
            (Form::List(&MODES), "modes", "\"native\"", "write modes = [\"native\"]"),
            (Form::List(&MODES), "modes", "\"native,generic\"", "write modes = [\"native\", \"generic\"]"),
            (Form::List(&MODES), "modes", "\"both\"", "use one of: \"native\", \"generic\""),
            (Form::List(&Form::Text), "attach", "\"a:x b:y\"", "write attach = [\"a:x\", \"b:y\"]"),
            (Form::List(&Form::Integer), "irq_cpus", "1", "write irq-cpus = [1]"),
            (Form::List(&Form::Integer), "irq_cpus", "\"0-1\"", "write irq-cpus = [0, 1]"),
            (Form::List(&Form::Integer), "irq_cpus", "\"0,2-4\"", "write irq-cpus = [0, 2, 3, 4]"),
            (Form::List(&Form::Table), "links", "{ kind = \"veth\" }", "write [[links]] for its header"),
            (Form::Table, "nic", "\"i40e\"", "write nic = { driver = \"i40e\" }"),
            (Form::Table, "rings", "512", "write rings = { rx = 512, tx = 512 }"),
            (Form::Table, "min_mpps", "0.5", "write min-mpps = { veth = 0.5 }"),
            (Form::Table, "max_ratio", "2", "write max-ratio = { of = \"another scenario\", value = 2 }"),
        ];
        for (form, key, value, told) in cases {
            assert_eq!(fixed(form, key, value).as_deref(), Some(told), "{key} = {value}");
        }
    }

    #[test]
    fn what_was_meant_is_not_guessed() {
        let cases = [
            (Form::Integer, "frames", "\"many\""),
            (Form::Integer, "frames", "\"1.5\""),
            (Form::Integer, "frames", "\"é\""),
            (Form::Integer, "frames", "1.5"),
            (Form::Integer, "frames", "nan"),
            (Form::Integer, "frames", "\"inf\""),
            (Form::Number, "budget_ns", "\"inf\""),
            (Form::Integer, "frames", "\"1 minute\""),
            (Form::Integer, "frames", "[1, 2]"),
            (Form::Text, "from", "7"),
            (Form::Truth, "gro", "2"),
            (Form::List(&Form::Integer), "irq_cpus", "\"0-8191\""),
            (Form::List(&Form::Integer), "irq_cpus", "\"-9223372036854775808\""),
            (Form::List(&Form::Integer), "irq_cpus", "\"all\""),
            (Form::List(&Form::Text), "attach", "\" \""),
            (Form::List(&Form::Text), "attach", "7"),
            (Form::List(&Form::Table), "links", "\"none\""),
            (Form::Table, "nic", "\"a\\u0007\""),
        ];
        for (form, key, value) in cases {
            assert_eq!(fixed(form, key, value), None, "{key} = {value}");
        }
    }
}

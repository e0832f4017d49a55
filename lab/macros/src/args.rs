//! The attribute's arguments.

use syn::{
    Error, Ident, LitStr, Result, Token, bracketed,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

/// Where the topology comes from.
pub(crate) enum Source {
    /// A file.
    File(LitStr),
    /// The text itself.
    Text(LitStr),
}

/// The arguments, checked.
pub(crate) struct Args {
    /// Where the topology comes from.
    pub(crate) source: Source,
    /// Abilities that the host must have.
    pub(crate) needs: Vec<LitStr>,
}

impl Parse for Args {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let (mut file, mut given, mut needs) = (None, None, None);
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            let _: Token![=] = input.parse()?;
            if key == "topology" {
                once(&mut file, &key, text(input, &key)?)?;
            } else if key == "topology_text" {
                once(&mut given, &key, text(input, &key)?)?;
            } else if key == "needs" {
                once(&mut needs, &key, list(input)?)?;
            } else {
                let message = format!("unknown argument `{key}`: expected `topology`, `topology_text` or `needs`");
                return Err(Error::new(key.span(), message));
            }
            if !input.is_empty() {
                let _: Token![,] = input.parse()?;
            }
        }
        let source = match (file, given) {
            (Some(file), None) => Source::File(file),
            (None, Some(given)) => Source::Text(given),
            (Some(_), Some(given)) => {
                return Err(Error::new(given.span(), "`topology` and `topology_text` exclude each other: keep one"));
            }
            (None, None) => {
                let message = "a topology is missing: `topology = \"topologies/NAME.toml\"` or `topology_text = \"…\"`";
                return Err(Error::new(input.span(), message));
            }
        };
        Ok(Self { source, needs: needs.unwrap_or_default() })
    }
}

/// Takes a value that may be given only once.
fn once<T>(slot: &mut Option<T>, key: &Ident, value: T) -> Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(key.span(), format!("`{key}` is given twice"))),
    }
}

/// A text that is not empty.
fn text(input: ParseStream<'_>, key: &Ident) -> Result<LitStr> {
    let text: LitStr =
        input.parse().map_err(|error| Error::new(error.span(), format!("`{key}` takes a text: `{key} = \"…\"`")))?;
    if text.value().trim().is_empty() {
        return Err(Error::new(text.span(), format!("`{key}` is empty")));
    }
    Ok(text)
}

/// The list of abilities, each once.
fn list(input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    let of_texts = |error: Error| Error::new(error.span(), "`needs` takes a list of texts: `needs = [\"root\"]`");
    let parsed = texts(input);
    let abilities: Vec<LitStr> = parsed.map_err(of_texts)?.into_iter().collect();
    for (place, ability) in abilities.iter().enumerate() {
        if ability.value().trim().is_empty() {
            return Err(Error::new(ability.span(), "an ability without a name"));
        }
        if abilities[..place].iter().any(|earlier| earlier.value() == ability.value()) {
            return Err(Error::new(ability.span(), format!("`{}` is given twice", ability.value())));
        }
    }
    Ok(abilities)
}

/// Texts in brackets.
fn texts(input: ParseStream<'_>) -> Result<Punctuated<LitStr, Token![,]>> {
    let content;
    bracketed!(content in input);
    Punctuated::parse_terminated(&content)
}

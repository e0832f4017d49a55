//! Broken files never break the checks.

use std::path::Path;

use proptest::prelude::*;
use xdplab::topology::{graph, parse, preflight};

const SOUND: &[&str] = &[
    include_str!("../../../topologies/i40e-veth.toml"),
    include_str!("../../../topologies/broadcast-veth.toml"),
    include_str!("../cases/warnings.toml"),
    include_str!("../cases/addresses.toml"),
    include_str!("../cases/programs.toml"),
];

/// Pieces that change what a file means, rather than only its text.
const PIECES: &[&str] = &[
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    "é",
    "\u{1f600}",
    "\0",
    "\t",
    "#",
    "'''",
    "\"\"\"",
    "\\u0041",
    "-1",
    "nan",
    "9223372036854775807",
    "[[links]]\n",
    "[programs.x]\n",
    "ends = []\n",
    "attach = [\"dut:rx0\"]\n",
    "1e400",
    "::",
];

/// One change: where, how many bytes go, and what comes.
fn change() -> impl Strategy<Value = (prop::sample::Index, usize, String)> {
    let piece = prop_oneof![prop::sample::select(PIECES).prop_map(str::to_owned), "\\PC{0,4}", Just(String::new()),];
    (any::<prop::sample::Index>(), 0usize..12, piece)
}

fn check(text: &str) -> Result<(), TestCaseError> {
    match parse(Path::new("lab.toml"), text) {
        Ok(topology) => {
            let warnings = preflight::warnings(&topology);
            preflight::render(&topology, &warnings).to_string();
            graph::svg(&topology);
            graph::mermaid(&topology);
            graph::dot(&topology);
        }
        Err(diagnostics) => {
            prop_assert!(!diagnostics.items.is_empty());
            for item in &diagnostics.items {
                let spans = std::iter::once(&item.span).chain(item.related.iter().map(|related| &related.span));
                for span in spans {
                    prop_assert!(text.get(span.clone()).is_some(), "{:?} {}", span, item.message);
                }
                prop_assert!(!item.message.is_empty() && !item.label.is_empty());
            }
            diagnostics.to_string();
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_mutated_file_never_panics_and_its_errors_lie_in_it(
        file in 0..SOUND.len(),
        changes in prop::collection::vec(change(), 1..6),
    ) {
        let mut text = SOUND[file].to_owned();
        for (at, gone, piece) in changes {
            let start = text.floor_char_boundary(at.index(text.len() + 1));
            let end = text.ceil_char_boundary((start + gone).min(text.len()));
            text.replace_range(start..end, &piece);
        }
        check(&text)?;
    }

    #[test]
    fn any_text_is_survived(text in "(\\PC|\n){0,300}") {
        check(&text)?;
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed_down_the_stack() {
    for (open, close) in [("[", "]"), ("{ a = ", " }")] {
        let text =
            format!("name = \"deep\"\n[programs.x]\nmaps.m = {}{}\n", open.repeat(100_000), close.repeat(100_000));
        assert!(parse(Path::new("lab.toml"), &text).is_err());
    }
    let dotted = format!("name = \"deep\"\n{}a = 1\n", "a.".repeat(100_000));
    assert!(parse(Path::new("lab.toml"), &dotted).is_err());
}

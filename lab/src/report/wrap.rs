//! Lines that keep within so many columns, whatever stands in them.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns of a mail that quotes of it still fit into (`Documentation/process/submitting-patches.rst` asks for 75 of a
/// commit's message; quoting adds two an answer).
pub(super) const COLUMNS: usize = 72;

/// Columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    // Some sequences are wider than their characters, others narrower: the wider counts.
    text.width().max(text.chars().map(|c| c.width().unwrap_or(1)).sum())
}

/// A text without what moves the cursor.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Breaks a text at its spaces into lines that begin with `first`, and then `then`. A word that is longer than a line is
/// broken anywhere.
pub(super) fn wrap(text: &str, first: &str, then: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in plain(text).split_whitespace() {
        let gap = usize::from(!empty);
        if width(&line) + gap + width(word) > COLUMNS && !empty {
            lines.push(std::mem::replace(&mut line, then.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        for c in word.chars() {
            let before = line.len();
            line.push(c);
            if width(&line) > COLUMNS && !empty {
                line.truncate(before);
                lines.push(std::mem::replace(&mut line, then.to_owned()));
                line.push(c);
            }
            empty = false;
        }
    }
    if !empty || lines.is_empty() {
        lines.push(line);
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// A text of one line, cut where it is longer than so many columns.
pub(super) fn shorten(text: &str, columns: usize) -> String {
    let text = plain(text);
    if width(&text) <= columns {
        return text;
    }
    let mut short = String::new();
    for c in text.chars() {
        short.push(c);
        if width(&short) + 3 > columns {
            short.pop();
            break;
        }
    }
    format!("{}...", short.trim_end())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_stay_whole_where_they_fit() {
        let text = "redirect_map from an i40e port into a veth whose peer drops everything that it gets";
        let lines = wrap(text, "- ", "  ");
        assert_eq!(
            lines,
            ["- redirect_map from an i40e port into a veth whose peer drops everything", "  that it gets",]
        );
        assert_eq!(wrap("", "a: ", ""), ["a:"]);
        assert_eq!(wrap(&"x".repeat(150), "", ""), ["x".repeat(72), "x".repeat(72), "x".repeat(6)]);
    }

    #[test]
    fn a_long_line_is_cut_with_dots() {
        assert_eq!(shorten("redirect_map", 12), "redirect_map");
        assert_eq!(shorten("redirect_map", 11), "redirect...");
        assert_eq!(shorten("a\nb", 11), "a b");
    }

    proptest! {
        #[test]
        fn no_line_is_too_long_and_nothing_is_lost(text in "(\\PC|\\s){0,200}", indent in 0_usize..10) {
            let lines = wrap(&text, "", &" ".repeat(indent));
            prop_assert!(lines.iter().all(|line| width(line) <= COLUMNS), "{:?}", lines);
            let bare = |text: &str| plain(text).chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(bare(&lines.concat()), bare(&text));
            prop_assert!(width(&shorten(&text, COLUMNS)) <= COLUMNS);
        }
    }
}

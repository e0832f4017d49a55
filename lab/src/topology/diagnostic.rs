//! What is wrong with a file, and where: diagnostics, and their rendering as plain text.

use std::{
    fmt::{self, Write as _},
    ops::Range,
    path::PathBuf,
};

/// A place in a file: a range of bytes.
pub type Span = Range<usize>;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The file can't be used.
    Error,
    /// The file can be used, but the kernel will not do what it seems to say.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// Another place that has to do with a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// The place, in bytes.
    pub span: Span,
    /// What is there.
    pub label: String,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The place, in bytes of the file's text; on character boundaries once it is part of [`Diagnostics`].
    pub span: Span,
    /// What happened, to what and why.
    pub message: String,
    /// A few words beside the caret.
    pub label: String,
    /// What to do.
    pub help: Option<String>,
    /// Other places to look at.
    pub related: Vec<Related>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            span,
            message: message.into(),
            label: String::new(),
            help: None,
            related: Vec::new(),
        }
    }

    /// A warning at a place.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    /// With words beside the caret.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// With a fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// With a fix, where there is one.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    /// With another place.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push(Related { span, label: label.into() });
        self
    }
}

/// All that is wrong with a file, in the order of its places. Its `Display` shows each with its source line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    /// The file, as it was given.
    pub path: PathBuf,
    /// The file's text.
    pub text: String,
    /// What is wrong, sorted by place.
    pub items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Sorts the items by place, drops repeated ones, and clamps their spans to the text and its character boundaries.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>, mut items: Vec<Diagnostic>) -> Self {
        let text = text.into();
        for item in &mut items {
            item.span = clamp(&text, &item.span);
            for related in &mut item.related {
                related.span = clamp(&text, &related.span);
            }
        }
        items.sort_by_key(|item| (item.span.start, item.span.end));
        items.dedup();
        Self { path: path.into(), text, items }
    }

    /// The same without characters that move a terminal's cursor, for a renderer that shows them as they are. Places stay:
    /// in the file's text each gives way to one of its length.
    #[must_use]
    pub fn harmless(&self) -> Self {
        let of_its_length = |c: char| match c {
            '\n' | '\t' => c,
            c if c.is_control() => {
                if c.len_utf8() == 1 {
                    '?'
                } else {
                    '·'
                }
            }
            c => c,
        };
        let lines = |text: &str| text.lines().map(printable).collect::<Vec<_>>().join("\n");
        let items = self.items.iter().map(|item| Diagnostic {
            message: lines(&item.message),
            label: printable(&item.label),
            help: item.help.as_deref().map(printable),
            related: item
                .related
                .iter()
                .map(|r| Related { span: r.span.clone(), label: printable(&r.label) })
                .collect(),
            ..item.clone()
        });
        Self { path: self.path.clone(), text: self.text.chars().map(of_its_length).collect(), items: items.collect() }
    }

    /// How many errors and warnings there are, and in which file.
    pub fn count(&self) -> String {
        let count = |severity| self.items.iter().filter(|item| item.severity == severity).count();
        let counted = [Severity::Error, Severity::Warning]
            .into_iter()
            .map(|severity| (count(severity), severity))
            .filter(|(count, _)| *count > 0)
            .map(|(count, severity)| format!("{count} {severity}{}", if count == 1 { "" } else { "s" }))
            .collect::<Vec<_>>();
        format!("{} in {}", counted.join(", "), self.path.display())
    }

    /// Line and column of a place's start, both from 1; the column in characters.
    pub fn line_column(&self, span: &Span) -> (usize, usize) {
        line_column(&self.text, span.start)
    }

    /// One item as text: message with `file:line:column`, the source line with a caret, what else the message says (such
    /// as its causes, a line each), and the fix.
    pub fn render(&self, item: &Diagnostic) -> String {
        let (line, column) = self.line_column(&item.span);
        let mut said = item.message.lines().map(str::trim).filter(|line| !line.is_empty()).map(printable);
        let mut out = format!("{}: {}\n", item.severity, said.next().unwrap_or_default());
        let digits = item.related.iter().map(|r| self.line_column(&r.span).0).fold(line, usize::max).to_string().len();
        // Writing into a String can't fail.
        let _ = writeln!(out, "{:digits$}--> {}:{line}:{column}", "", self.path.display());
        let _ = writeln!(out, "{:digits$} |", "");
        self.excerpt(&mut out, digits, &item.span, '^', &item.label);
        for related in &item.related {
            let _ = writeln!(out, "{:digits$} |", "");
            self.excerpt(&mut out, digits, &related.span, '-', &related.label);
        }
        for line in said {
            let _ = writeln!(out, "{:digits$} = {line}", "");
        }
        if let Some(help) = &item.help {
            let _ = writeln!(out, "{:digits$} = fix: {}", "", printable(help));
        }
        out
    }

    /// A source line, and under it a mark and a label.
    fn excerpt(&self, out: &mut String, digits: usize, span: &Span, mark: char, label: &str) {
        let (number, _) = self.line_column(span);
        let start = self.text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let marked = span.start..span.end.clamp(span.start, end.max(span.start));
        let mut before = printable(&self.text[start..marked.start]);
        let mut inside = printable(&self.text[marked.clone()]);
        let mut after = printable(self.text[marked.end..end.max(marked.end)].trim_end());
        if before.chars().count() > BEFORE {
            let skip = before.chars().count() - BEFORE;
            before = std::iter::once('…').chain(before.chars().skip(skip)).collect();
        }
        shorten(&mut inside, INSIDE);
        shorten(&mut after, AFTER);
        let line = format!("{before}{inside}{after}");
        let _ = writeln!(out, "{number:>digits$} | {}", line.trim_end());
        let indent = before.chars().count();
        let marks: String = std::iter::repeat_n(mark, inside.trim_end().chars().count().max(1)).collect();
        let line = format!("{:digits$} | {:indent$}{marks} {}", "", "", printable(label));
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Characters of a long line that are shown before, inside and after the marked place.
const BEFORE: usize = 70;
const INSIDE: usize = 80;
const AFTER: usize = 40;

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in &self.items {
            writeln!(f, "{}", self.render(item))?;
        }
        f.write_str(&self.count())
    }
}

impl std::error::Error for Diagnostics {}

/// Line and column of a byte, both from 1; the column in characters.
pub(crate) fn line_column(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..clamp(text, &(byte..byte)).start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The nearest range within the text that starts and ends on character boundaries.
fn clamp(text: &str, span: &Span) -> Span {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.min(text.len()));
    start..end.max(start)
}

/// Control characters would move a terminal's cursor, and tabs the caret. What is shown is one line.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\t' | '\n' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

fn shorten(text: &mut String, most: usize) {
    if let Some((at, _)) = text.char_indices().nth(most) {
        text.truncate(at);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_cursor_gives_way_to_what_does_not_and_places_stay() {
        let text = "a = \"\u{1b}[2J\u{9b}x\"\n\tb = 1\n";
        let item =
            Diagnostic::error(4..13, "bad \u{1b}[2J\nbecause").label("a\u{7}b").help("c\rd").related(14..15, "\u{8}e");
        let harmless = Diagnostics::new("t", text, vec![item]).harmless();
        assert_eq!(harmless.text, "a = \"?[2J·x\"\n\tb = 1\n");
        assert_eq!(harmless.text.len(), text.len());
        let shown = &harmless.items[0];
        let all = [&shown.message, &shown.label, shown.help.as_ref().unwrap(), &shown.related[0].label];
        assert!(all.iter().all(|text| text.chars().all(|c| c == '\n' || !c.is_control())), "{shown:?}");
    }

    #[test]
    fn a_span_inside_a_character_or_past_the_end_is_clamped() {
        let text = "aé\n";
        let items = vec![Diagnostic::error(2..2, "inside"), Diagnostic::error(90..100, "past")];
        let all = Diagnostics::new("f", text, items);
        assert_eq!(all.items.iter().map(|item| item.span.clone()).collect::<Vec<_>>(), [1..3, 4..4]);
        assert!(all.to_string().ends_with("2 errors in f"));
    }

    #[test]
    fn escapes_in_the_file_never_reach_the_terminal() {
        let text = "na\u{1b}[2Jme = 1";
        let shown = Diagnostics::new("f", text, vec![Diagnostic::error(0..3, "bad \u{7}").label("\u{1b}")]).to_string();
        assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown}");
    }

    #[test]
    fn a_message_of_several_lines_has_its_causes_below() {
        let item =
            Diagnostic::error(7..10, "load it\n  because: it is not\n    there\n").label("a\nb").help("make\nit");
        let shown = Diagnostics::new("f", "name = \"a\"", vec![item]).to_string();
        insta::assert_snapshot!(shown, @r#"
        error: load it
         --> f:1:8
          |
        1 | name = "a"
          |        ^^^ a b
          = because: it is not
          = there
          = fix: make it

        1 error in f
        "#);
    }

    #[test]
    fn a_long_line_is_cut_around_its_place() {
        let text = format!("{}here{}", "x".repeat(500), "y".repeat(500));
        let shown = Diagnostics::new("f", text, vec![Diagnostic::error(500..504, "m")]).to_string();
        assert!(shown.lines().all(|line| line.chars().count() < 220), "{shown}");
        assert!(shown.contains("xhere") && shown.contains("^^^^"), "{shown}");
    }
}

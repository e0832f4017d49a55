//! A table with a title that is drawn as text, as Markdown or as HTML.

use super::{markdown::cell, table::Table};

/// A table with a title, before it is drawn.
#[derive(Debug, Default, Clone)]
pub(super) struct Grid {
    pub(super) title: String,
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Grid {
    pub(super) fn new(title: impl Into<String>, head: &[&'static str]) -> Self {
        Self { title: title.into(), head: head.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    pub(super) fn text(&self) -> String {
        let mut table = Table::of(&self.head);
        for row in &self.rows {
            table.cells(row);
        }
        format!("{}\n{table}", self.title)
    }

    pub(super) fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "));
        let mut md = format!("\n**{}**\n\n", cell(&self.title));
        md += &line(&mut self.head.iter().map(|head| (*head).to_owned()));
        md += &line(&mut self.head.iter().map(|_| "---".to_owned()));
        for row in &self.rows {
            md += &line(&mut row.iter().map(|text| cell(text)));
        }
        md
    }
}

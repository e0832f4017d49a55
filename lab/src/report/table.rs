//! Aligned tables without frames: words to the left, numbers to the right.

use std::fmt;

use comfy_table::{CellAlignment, presets};

/// A table that is built row by row.
#[derive(Debug)]
pub struct Table {
    table: comfy_table::Table,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self::of(&head)
    }

    /// The same for heads whose number is not known here.
    pub fn of(head: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_header(head);
        Self { table, rows: Vec::new() }
    }

    /// Adds a row with as many cells as there are heads.
    pub fn cells(&mut self, cells: &[String]) {
        self.table.add_row(cells);
        self.rows.push(cells.to_vec());
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.cells(&cells.map(str::to_owned));
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Whether a cell holds a number, with or without its interval.
pub(super) fn is_number(cell: &str) -> bool {
    cell.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c))
        && cell.chars().all(|c| c.is_ascii_digit() || ",.+- ±".contains(c))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = self.table.clone();
        for (n, column) in table.column_iter_mut().enumerate() {
            let mut cells = self.rows.iter().filter_map(|row| row.get(n)).filter(|cell| !cell.is_empty()).peekable();
            if cells.peek().is_some() && cells.all(|cell| is_number(cell)) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            column.set_padding((u16::from(n != 0), 1));
        }
        for line in table.lines() {
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        let mut table = Table::new(["port", "frames", "ns/packet"]);
        table.row(["dut:rx0", "1,000,000", "96.3 ± 0.2"]);
        table.row(["sink:in0", "7", ""]);
        insta::assert_snapshot!(table);
    }
}

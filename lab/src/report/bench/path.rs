//! What the tables of paths share: the published table's form.

use super::Grid;
use crate::record::bench::PathPublished;

/// A table as the published ones are: version, test, generic and native Mpps, and a remark.
pub(super) fn published_form(title: &str) -> Grid {
    Grid::new(title, &["version", "test", "generic Mpps", "native Mpps", "inner", "remark"])
}

/// The published rows.
pub(super) fn published(grid: &mut Grid, rows: &[PathPublished], inner: &str) {
    for row in rows {
        grid.row([
            row.version.clone(),
            row.test.clone(),
            super::maybe(row.generic_mpps, 1),
            super::maybe(row.native_mpps, 1),
            inner.to_owned(),
            row.note.clone(),
        ]);
    }
}

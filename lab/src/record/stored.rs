//! Reports that were stored as JSON, read again: whichever kind a file holds.

use serde::Serialize;
use thiserror::Error;

use super::{
    REPORT_SCHEMA, Report,
    bench::{BENCH_SCHEMA, BenchReport},
    compare::{CALIBRATE_SCHEMA, COMPARE_SCHEMA, CalibrateReport, CompareReport},
};

/// A report of any kind. Written as JSON it is the report alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Stored {
    /// Of `xdplab run`.
    Run(Box<Report>),
    /// Of `xdplab compare`.
    Compare(Box<CompareReport>),
    /// Of `xdplab calibrate`.
    Calibrate(Box<CalibrateReport>),
    /// Of `xdplab bench`.
    Bench(Box<BenchReport>),
}

/// Why a text is no report that this version reads.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoredError {
    /// It is no JSON.
    #[error("no report of xdplab: it is no JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// It ends in the middle.
    #[error("no report of xdplab: it ends early, as a file that was cut off does: {0}")]
    Truncated(#[source] serde_json::Error),
    /// It is an empty list.
    #[error("holds no report")]
    Empty,
    /// It does not say what it is.
    #[error("no report of xdplab: it has no \"schema\"")]
    NoSchema,
    /// Another kind, or another version of one.
    #[error("has schema {schema}, and this version reads {}", READ.join(", "))]
    OtherSchema {
        /// What it says it is.
        schema: String,
    },
    /// It is not what its schema says.
    #[error("says that it is {schema}, and is not: {source}")]
    Broken {
        /// What it says it is.
        schema: String,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// The schemas that this version reads.
pub const READ: [&str; 4] = [REPORT_SCHEMA, COMPARE_SCHEMA, CALIBRATE_SCHEMA, BENCH_SCHEMA];

impl Stored {
    /// Which verb makes such reports.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Compare(_) => "compare",
            Self::Calibrate(_) => "calibrate",
            Self::Bench(_) => "bench",
        }
    }
}

/// Reads one report, or a list of them.
///
/// # Errors
/// Where the text is no such thing, or of another version.
pub fn read(text: &str) -> Result<Vec<Stored>, StoredError> {
    let value: serde_json::Value = serde_json::from_str(text)
        .map_err(|error| if error.is_eof() { StoredError::Truncated(error) } else { StoredError::NotJson(error) })?;
    let values = match value {
        serde_json::Value::Array(values) => values,
        one => vec![one],
    };
    if values.is_empty() {
        return Err(StoredError::Empty);
    }
    values.into_iter().map(of_value).collect()
}

fn of_value(value: serde_json::Value) -> Result<Stored, StoredError> {
    let schema = value.get("schema").and_then(|schema| schema.as_str()).ok_or(StoredError::NoSchema)?.to_owned();
    let read = match schema.as_str() {
        REPORT_SCHEMA => serde_json::from_value(value).map(Stored::Run),
        COMPARE_SCHEMA => serde_json::from_value(value).map(Stored::Compare),
        CALIBRATE_SCHEMA => serde_json::from_value(value).map(Stored::Calibrate),
        BENCH_SCHEMA => serde_json::from_value(value).map(Stored::Bench),
        _ => return Err(StoredError::OtherSchema { schema }),
    };
    read.map_err(|source| StoredError::Broken { schema, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn every_kind_is_read_as_it_was_written() {
        let all = [
            Stored::Run(Box::new(sample::passing())),
            Stored::Compare(Box::new(sample::comparison())),
            Stored::Calibrate(Box::new(sample::calibration())),
            Stored::Bench(Box::new(sample::bench())),
        ];
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(read(&text).unwrap(), all);
        assert_eq!(read(&serde_json::to_string(&all[1]).unwrap()).unwrap(), all[1..2]);
    }

    #[test]
    fn a_report_that_is_cut_off_anywhere_is_called_so() {
        let text = serde_json::to_string(&sample::comparison()).unwrap();
        for end in (1..text.len()).step_by(7) {
            assert!(matches!(read(&text[..end]), Err(StoredError::Truncated(_))), "{}", &text[..end]);
        }
    }

    #[test]
    fn what_is_no_report_is_told_apart() {
        assert!(matches!(read("hello"), Err(StoredError::NotJson(_))));
        assert!(matches!(read("[]"), Err(StoredError::Empty)));
        assert!(matches!(read("{}"), Err(StoredError::NoSchema)));
        assert!(matches!(read("[1]"), Err(StoredError::NoSchema)));
        let other = read("{\"schema\": \"xdplab.report/9\"}").unwrap_err().to_string();
        assert!(other.contains("xdplab.report/9") && other.contains("xdplab.compare/1"), "{other}");
        let broken = read("{\"schema\": \"xdplab.compare/1\"}").unwrap_err().to_string();
        assert!(broken.contains("missing field"), "{broken}");
    }
}

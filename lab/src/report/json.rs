//! Reports for machines: `xdplab.report/1`.

use crate::record::Report;

/// One report as an object, several as an array.
pub fn reports(reports: &[Report]) -> String {
    let json = match reports {
        [one] => serde_json::to_string_pretty(one),
        some => serde_json::to_string_pretty(some),
    };
    // The records hold maps with text keys and numbers only: what serde_json can't write is not among them.
    json.unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
}

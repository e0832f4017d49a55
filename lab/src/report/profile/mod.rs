//! Profiles for people and for other tools.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | the table of the first symbols, folded stacks |
//! | `flame` | the flame graph |
//! | `difference` | what one profile has more or less of than another |

mod difference;
mod flame;
#[cfg(test)]
mod sample;

pub use difference::{Difference, DifferenceRow, difference};
pub use flame::flame_graph;

use super::{numbers::thousands, table::Table};
use crate::record::profile::Profile;

/// Symbols of a table where nothing else is asked for.
pub const TOP: usize = 10;

/// The symbols with the most samples as a table: rank, percent of the samples, and the symbol.
///
/// With nanoseconds a packet of the same path, also each symbol's share of them.
pub fn top(profile: &Profile, symbols: usize, ns: Option<f64>) -> String {
    let shown = profile.rows.iter().take(symbols).enumerate();
    let mut text = if let Some(ns) = ns {
        let mut table = Table::new(["#", "percent", "ns/packet", "symbol"]);
        for (n, row) in shown {
            let share = format!("{:.1}", ns * row.percent / 100.0);
            table.row([&(n + 1).to_string(), &format!("{:.2}", row.percent), &share, &row.symbol]);
        }
        table.to_string()
    } else {
        let mut table = Table::new(["#", "percent", "symbol"]);
        for (n, row) in shown {
            table.row([&(n + 1).to_string(), &format!("{:.2}", row.percent), &row.symbol]);
        }
        table.to_string()
    };
    let (rest, more) = (profile.rows.iter().skip(symbols), profile.rows.len().saturating_sub(symbols));
    if more > 0 {
        text += &format!("{more} more: {:.2} %\n", rest.map(|row| row.percent).sum::<f64>());
    }
    text
}

/// What was sampled, in one line.
pub fn summary(profile: &Profile) -> String {
    let mut text = format!(
        "{} samples of CPU {}, {} at {} Hz",
        thousands(profile.samples),
        profile.cpu,
        profile.clock,
        thousands(profile.frequency_hz)
    );
    for (what, samples) in [("idle", profile.idle), ("of other threads", profile.elsewhere), ("lost", profile.lost)] {
        if samples > 0 {
            text += &format!(", {} {what}", thousands(samples));
        }
    }
    text
}

/// The stacks, a line each: the functions from the outermost caller inwards, joined by semicolons, and the samples. The
/// form that flame graph tools read.
pub fn folded(profile: &Profile) -> String {
    profile.stacks.iter().map(|stack| format!("{} {}\n", stack.stack.join(";"), stack.samples)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_symbols_stand_by_rank_and_the_others_are_added_up() {
        let profile = sample::redirect();
        insta::assert_snapshot!(format!(
            "{}\n{}\n{}",
            summary(&profile),
            top(&profile, 3, None),
            top(&profile, 3, Some(200.0))
        ));
    }

    #[test]
    fn folded_stacks_are_a_line_each() {
        insta::assert_snapshot!(folded(&sample::redirect()));
    }
}

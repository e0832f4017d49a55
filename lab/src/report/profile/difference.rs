//! What one profile has more or less of than another.

use std::{collections::BTreeMap, fmt};

use crate::{
    record::profile::Profile,
    report::{numbers::thousands, table::Table},
};

/// Rows that are printed.
const SHOWN: usize = 20;
/// A normal distribution has 95 % within so many standard deviations.
const DEVIATIONS: f64 = 1.96;

/// Two profiles, symbol by symbol.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Every symbol of either, the one that changed most first: by nanoseconds where they are known, else by points.
    pub rows: Vec<DifferenceRow>,
    /// Nanoseconds a packet of the whole path, before and after, where they are known.
    pub ns: Option<(f64, f64)>,
    /// Samples before and after.
    pub samples: (u64, u64),
}

/// A symbol before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct DifferenceRow {
    /// The symbol.
    pub symbol: String,
    /// Percent of the samples, before and after; 0 where it was not met.
    pub percent: (f64, f64),
    /// Percentage points gained; negative: lost.
    pub points: f64,
    /// How far off `points` may be for being counted from samples: half of the 95 % interval, in percentage points.
    pub error: f64,
    /// Nanoseconds a packet, before and after, where they are known.
    pub ns: Option<(f64, f64)>,
}

impl DifferenceRow {
    /// Whether so few samples could have changed this much by chance alone.
    pub fn is_within_error(&self) -> bool {
        self.points.abs() <= self.error
    }
}

/// Compares two profiles; `ns` are the nanoseconds a packet of both, as pricing measured them. A symbol's are its share of
/// them.
///
/// The error of a share is that of a binomial proportion, in its normal approximation: `sqrt(p (1 - p) / n)`, with a
/// sample's worth added to either outcome so that a symbol that was not met has one, too.
pub fn difference(before: &Profile, after: &Profile, ns: Option<(f64, f64)>) -> Difference {
    let mut samples: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for row in &before.rows {
        samples.entry(&row.symbol).or_default().0 += row.samples;
    }
    for row in &after.rows {
        samples.entry(&row.symbol).or_default().1 += row.samples;
    }
    let mut rows: Vec<DifferenceRow> = samples
        .into_iter()
        .map(|(symbol, (then, now))| {
            let percent = (share(then, before.samples), share(now, after.samples));
            DifferenceRow {
                symbol: symbol.to_owned(),
                percent,
                points: percent.1 - percent.0,
                error: DEVIATIONS * (variance(then, before.samples) + variance(now, after.samples)).sqrt(),
                ns: ns.map(|(a, b)| (a * percent.0 / 100.0, b * percent.1 / 100.0)),
            }
        })
        .collect();
    let change = |row: &DifferenceRow| row.ns.map_or(row.points, |(a, b)| b - a).abs();
    rows.sort_by(|a, b| change(b).total_cmp(&change(a)).then_with(|| a.symbol.cmp(&b.symbol)));
    Difference { rows, ns, samples: (before.samples, after.samples) }
}

/// Percent of all samples.
fn share(samples: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { 100.0 * samples as f64 / of as f64 }
}

/// The variance of a share in percentage points, squared.
fn variance(samples: u64, of: u64) -> f64 {
    let of = of as f64 + 2.0;
    let share = ((samples as f64 + 1.0) / of).min(1.0);
    10_000.0 * share * (1.0 - share) / of
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |value: f64| format!("{value:.2}");
        let shares = |row: &DifferenceRow| [row.percent.0, row.percent.1, row.points, row.error].map(percent);
        let shown = self.rows.iter().take(SHOWN);
        if self.ns.is_some() {
            let mut table = Table::new([
                "% before",
                "% after",
                "points gained",
                "±",
                "ns before",
                "ns after",
                "ns gained",
                "symbol",
            ]);
            for row in shown {
                let [then, now, points, error] = &shares(row);
                let (before, after) = row.ns.unwrap_or_default();
                let [before, after, gained] = &[before, after, after - before].map(|ns| format!("{ns:.1}"));
                table.row([then, now, points, error, before, after, gained, &row.symbol]);
            }
            write!(f, "{table}")?;
        } else {
            let mut table = Table::new(["% before", "% after", "points gained", "±", "symbol"]);
            for row in shown {
                let [then, now, points, error] = &shares(row);
                table.row([then, now, points, error, &row.symbol]);
            }
            write!(f, "{table}")?;
        }
        if self.rows.len() > SHOWN {
            writeln!(f, "{} more symbols changed less", self.rows.len() - SHOWN)?;
        }
        if let Some((before, after)) = self.ns {
            writeln!(f, "ns/packet: {before:.1} before, {after:.1} after, {:.1} gained", after - before)?;
        }
        let chance = self.rows.iter().filter(|row| row.is_within_error()).count();
        writeln!(
            f,
            "percentages are of the samples of the profiled work: {} before, {} after; {chance} of {} symbols changed by \
             no more than chance would have it (±, 95 %)",
            thousands(self.samples.0),
            thousands(self.samples.1),
            self.rows.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::report::profile::sample;

    fn generic() -> Profile {
        sample::of(&[
            ("bpf_test_run_xdp_live;net_rx_action;do_xdp_generic", 1_300),
            ("bpf_test_run_xdp_live;net_rx_action;do_xdp_generic;xdp_redirect_map [bpf]", 400),
            ("bpf_test_run_xdp_live;net_rx_action;do_xdp_generic;xdp_sink [bpf]", 300),
        ])
    }

    #[test]
    fn symbols_stand_by_points_gained_and_lost() {
        insta::assert_snapshot!(difference(&sample::redirect(), &generic(), None));
    }

    #[test]
    fn with_nanoseconds_symbols_stand_by_them() {
        insta::assert_snapshot!(difference(&sample::redirect(), &generic(), Some((100.0, 400.0))));
    }

    #[test]
    fn a_profile_does_not_differ_from_itself() {
        let profile = sample::redirect();
        let same = difference(&profile, &profile, Some((100.0, 100.0)));
        assert!(same.rows.iter().all(DifferenceRow::is_within_error), "{same}");
    }

    #[test]
    fn an_empty_profile_divides_by_nothing() {
        let none = difference(&Profile::default(), &sample::redirect(), Some((0.0, 100.0)));
        assert!(none.rows.iter().all(|row| row.points.is_finite() && row.error.is_finite()));
        assert!(difference(&Profile::default(), &Profile::default(), None).rows.is_empty());
    }

    proptest! {
        #[test]
        fn points_add_up_to_nothing_and_nanoseconds_to_the_whole(
            a in prop::collection::vec(1_u64..10_000, 1..12),
            b in prop::collection::vec(1_u64..10_000, 1..12),
            ns: (u16, u16),
        ) {
            let profile = |counts: &[u64]| {
                let names: Vec<String> = (0..counts.len()).map(|n| format!("f{n}")).collect();
                sample::of(&names.iter().map(String::as_str).zip(counts.iter().copied()).collect::<Vec<_>>())
            };
            let ns = (f64::from(ns.0), f64::from(ns.1));
            let found = difference(&profile(&a), &profile(&b), Some(ns));
            prop_assert!(found.rows.iter().map(|row| row.points).sum::<f64>().abs() < 1e-6);
            let sum = |side: fn(&(f64, f64)) -> f64| found.rows.iter().filter_map(|row| row.ns.as_ref()).map(side).sum::<f64>();
            prop_assert!((sum(|ns| ns.0) - ns.0).abs() < 1e-6 && (sum(|ns| ns.1) - ns.1).abs() < 1e-6);
            let swapped = difference(&profile(&b), &profile(&a), Some((ns.1, ns.0)));
            for row in &found.rows {
                let other = swapped.rows.iter().find(|other| other.symbol == row.symbol).expect("the same symbols");
                prop_assert!((row.points + other.points).abs() < 1e-9 && (row.error - other.error).abs() < 1e-9);
            }
        }
    }
}

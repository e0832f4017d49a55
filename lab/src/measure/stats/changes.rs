//! Where a history of results changed. For a report only: no verdict rests on it.
//!
//! Binary segmentation: the series is split if the ranks before and after some place differ more than in most
//! permutations of it (the Mann-Whitney statistic over its standard deviation, maximal over all places: Pettitt 1979);
//! then each part again. The whole series is tested at 5 %, each part of a split at half the level of what was split.
//! Ranks make outliers harmless, and need no model of the noise. They are vague about where: the split is put where the
//! results deviate least from the medians of both parts.
//!
//! Limits: a level has to hold for three results to be one, and some five on each side to be told from chance; slow
//! drift shows as steps; results that depend on each other (a machine's warm afternoon) look like changes.

use crate::measure::interval::median;

/// The fewest results between two changes.
const SHORTEST: usize = 3;

/// The permutations of each test: p-values are multiples of 1 / 1000.
const PERMUTATIONS: usize = 999;

/// The level at which the whole series is tested.
const LEVEL: f64 = 0.05;

/// A history says the same each time that it is read.
const SEED: u64 = 0x5eed;

/// A result of a history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The value, in nanoseconds a packet.
    pub value: f64,
    /// Half the width of its interval.
    pub half_width: f64,
}

/// A place where a history changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The first result that is different, as an index of the history.
    pub at: usize,
    /// The median from the change before, or the start, on.
    pub before: f64,
    /// The median up to the next change, or the end.
    pub after: f64,
    /// The p-value of the test that found it.
    pub p: f64,
}

/// The changes of a history, the earliest first.
///
/// Results that are not finite are passed over. A change smaller than the typical half-width of the results on both
/// sides is not reported: ranks of many results see shifts that none of them could show.
pub fn changes(history: &[Point]) -> Vec<Change> {
    let places: Vec<usize> =
        (0..history.len()).filter(|i| history[*i].value.is_finite() && history[*i].half_width.is_finite()).collect();
    let points: Vec<Point> = places.iter().map(|place| history[*place]).collect();
    let mut splits = Vec::new();
    split(&points, 0, LEVEL, &mut fastrand::Rng::with_seed(SEED), &mut splits);
    splits.sort_unstable_by_key(|(at, _)| *at);
    let bounds = || splits.iter().map(|(at, _)| *at);
    let starts = std::iter::once(0).chain(bounds());
    let ends = bounds().skip(1).chain(std::iter::once(points.len()));
    let found = splits.iter().zip(starts.zip(ends));
    found
        .filter_map(|(&(at, p), (start, end))| {
            let (before, after) = (typical(&points[start..at])?, typical(&points[at..end])?);
            Some(Change { at: places[at], before: before.value, after: after.value, p })
        })
        .collect()
}

/// The medians of values and half-widths; `None` for no points.
fn typical(points: &[Point]) -> Option<Point> {
    let of = |field: fn(&Point) -> f64| median(&points.iter().map(field).collect::<Vec<_>>());
    Some(Point { value: of(|point| point.value)?.value, half_width: of(|point| point.half_width)?.value })
}

/// Splits a part of the series, which starts at `offset`, and then its parts.
fn split(points: &[Point], offset: usize, level: f64, generator: &mut fastrand::Rng, splits: &mut Vec<(usize, f64)>) {
    let mut ranks = ranks(points);
    let (Some(largest), Some(at)) = (largest_contrast(&ranks), place(points)) else { return };
    let (Some(before), Some(after)) = (typical(&points[..at]), typical(&points[at..])) else { return };
    if (after.value - before.value).abs() <= before.half_width.max(after.half_width) {
        return;
    }
    let as_large = (0..PERMUTATIONS).filter(|_| {
        generator.shuffle(&mut ranks);
        largest_contrast(&ranks).is_some_and(|contrast| contrast >= largest - 1e-9)
    });
    let p = (as_large.count() + 1) as f64 / (PERMUTATIONS + 1) as f64;
    if p <= level {
        splits.push((offset + at, p));
        split(&points[..at], offset, level / 2.0, generator, splits);
        split(&points[at..], offset + at, level / 2.0, generator, splits);
    }
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(points: &[Point]) -> Vec<f64> {
    let rank = |value: f64| {
        let below = points.iter().filter(|point| point.value < value).count();
        let equal = points.iter().filter(|point| point.value.total_cmp(&value).is_eq()).count();
        below as f64 + f64::midpoint(equal as f64, 1.0)
    };
    points.iter().map(|point| rank(point.value)).collect()
}

/// By how many standard deviations the ranks before and after a place differ, at most. `None` for a series that is too
/// short to split.
fn largest_contrast(ranks: &[f64]) -> Option<f64> {
    let n = ranks.len() as f64;
    let mut sum: f64 = ranks.iter().take(SHORTEST - 1).sum();
    let contrasts = (SHORTEST..=ranks.len().checked_sub(SHORTEST)?).map(|at| {
        sum += ranks[at - 1];
        let (before, after) = (at as f64, n - at as f64);
        // The rank sum's mean and variance where nothing changed.
        (sum - before * (n + 1.0) / 2.0).abs() / (before * after * (n + 1.0) / 12.0).sqrt()
    });
    contrasts.max_by(f64::total_cmp)
}

/// Where a split leaves the smallest sum of absolute deviations from the medians of both parts.
fn place(points: &[Point]) -> Option<usize> {
    let deviation = |part: &[Point]| {
        let centre = typical(part).map_or(0.0, |typical| typical.value);
        part.iter().map(|point| (point.value - centre).abs()).sum::<f64>()
    };
    let places = (SHORTEST..=points.len().checked_sub(SHORTEST)?)
        .map(|at| (at, deviation(&points[..at]) + deviation(&points[at..])));
    places.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::stats::noise::Noise;

    /// A history of levels, each for so many results, with normal noise.
    fn history(levels: &[(f64, usize)], sd: f64, seed: u64) -> Vec<Point> {
        let mut noise = Noise::seeded(seed);
        let of_level = |(level, results): &(f64, usize)| vec![*level; *results];
        let levels = levels.iter().flat_map(of_level);
        levels.map(|level| Point { value: level + sd * noise.normal(), half_width: sd }).collect()
    }

    #[test]
    fn steps_are_found_where_they_are() {
        let found = changes(&history(&[(50.0, 12), (53.0, 10), (48.0, 12)], 0.3, 1));
        assert_eq!(found.iter().map(|change| change.at).collect::<Vec<_>>(), [12, 22]);
        assert!((found[0].before - 50.0).abs() < 0.3 && (found[0].after - 53.0).abs() < 0.3, "{found:?}");
        assert!((found[1].before - 53.0).abs() < 0.3 && (found[1].after - 48.0).abs() < 0.3, "{found:?}");
        assert!(found.iter().all(|change| change.p <= 0.05));
    }

    #[test]
    fn a_history_that_did_not_change_seldom_has_one() {
        let runs = 150;
        let wrong = (0..runs).filter(|seed| !changes(&history(&[(50.0, 20)], 0.0, *seed)).is_empty()).count();
        assert_eq!(wrong, 0, "equal values");
        // Without the half-widths, which hide most: 5 %, and four standard errors.
        let bare = |seed| {
            let points = history(&[(50.0, 20)], 0.5, seed);
            points.into_iter().map(|point| Point { half_width: 0.0, ..point }).collect::<Vec<_>>()
        };
        let wrong = (0..runs).filter(|seed| !changes(&bare(*seed)).is_empty()).count();
        println!("changes found in {wrong} of {runs} histories without any");
        assert!(wrong <= 18, "{wrong} of {runs}");
    }

    #[test]
    fn outliers_are_no_changes() {
        let mut points = history(&[(50.0, 20)], 0.3, 4);
        points[7].value = 500.0;
        points[15].value = 1.0;
        assert_eq!(changes(&points), []);
    }

    #[test]
    fn a_shift_within_the_half_widths_is_not_reported() {
        let points = history(&[(50.0, 15), (51.0, 15)], 0.1, 5);
        assert_eq!(changes(&points).len(), 1);
        let vague: Vec<Point> = points.into_iter().map(|point| Point { half_width: 1.5, ..point }).collect();
        assert_eq!(changes(&vague), []);
    }

    #[test]
    fn results_without_a_value_are_passed_over() {
        let mut points = history(&[(50.0, 10), (55.0, 10)], 0.3, 6);
        points.insert(2, Point { value: f64::NAN, half_width: 1.0 });
        points.insert(5, Point { value: 90.0, half_width: f64::INFINITY });
        assert_eq!(changes(&points).iter().map(|change| change.at).collect::<Vec<_>>(), [12]);
    }

    #[test]
    fn short_histories_say_nothing() {
        for results in 0..8 {
            assert_eq!(changes(&history(&[(50.0, results / 2), (90.0, results - results / 2)], 0.1, 7)), []);
        }
    }

    #[test]
    fn ranks_of_equal_values_are_shared() {
        let points = [3.0, 1.0, 3.0, 2.0].map(|value| Point { value, half_width: 0.0 });
        assert_eq!(ranks(&points), [3.5, 1.0, 3.5, 2.0]);
    }
}

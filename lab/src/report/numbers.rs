//! Numbers as people read them.

use crate::record::Cost;

/// A count with its thousands apart: `1,000,000`.
pub fn thousands(n: impl Into<i128>) -> String {
    let n = n.into();
    let digits = n.unsigned_abs().to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if n < 0 { format!("-{text}") } else { text }
}

/// Nanoseconds a packet with the half-width of the interval's wider side: `96.3 ± 0.2`.
pub(super) fn nanoseconds(cost: &Cost) -> String {
    let half = (cost.ci[1] - cost.ns).max(cost.ns - cost.ci[0]);
    format!("{:.1} ± {half:.1}", cost.ns)
}

/// Million packets a second, four digits.
pub(super) fn mpps(cost: &Cost) -> String {
    let decimals = match cost.mpps {
        m if m >= 100.0 => 1,
        m if m >= 10.0 => 2,
        _ => 3,
    };
    format!("{:.decimals$}", cost.mpps)
}

/// A number with four significant digits: `96.30`, `0.5132`, `12350`; in powers of ten where it would be long.
pub(super) fn four(value: f64) -> String {
    let scientific = format!("{value:.3e}");
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    match (exponent, scientific.parse::<f64>()) {
        (Some(exponent @ -4..=6), Ok(rounded)) => format!("{rounded:.*}", (3 - exponent).max(0) as usize),
        (Some(_), _) => scientific,
        // Not a number, or infinite.
        (None, _) => format!("{value}"),
    }
}

/// A difference with its sign, with as many decimals as the cost that it is of has in [`four`], and at least two.
pub(super) fn difference(value: f64, of: f64) -> String {
    let shown = four(of);
    let decimals = shown.split_once('.').map_or(0, |(_, decimals)| decimals.len()).clamp(2, 4);
    if value.is_finite() && value.abs() < 1e7 { format!("{value:+.decimals$}") } else { format!("{value:+.3e}") }
}

/// An interval of differences: `[-1.40, -1.00]`; `none` where there is none yet.
pub(super) fn interval(ci: [Option<f64>; 2], of: f64) -> String {
    match ci {
        [Some(low), Some(high)] => format!("[{}, {}]", difference(low, of), difference(high, of)),
        _ => "none".to_owned(),
    }
}

/// A share of a cost in percent, with its sign; empty where the cost is none.
pub(super) fn percent(delta: f64, of: f64) -> String {
    let percent = 100.0 * delta / of;
    if percent.abs() < 1e6 { format!("{percent:+.2}") } else { String::new() }
}

/// Windows as a row of bars, between the smallest and the largest.
pub(super) fn sparkline(values: &[f64], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let (low, high) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let step = values.len().div_ceil(width.max(1)).max(1);
    values
        .chunks(step)
        .map(|chunk| {
            let mean = chunk.iter().sum::<f64>() / chunk.len() as f64;
            let share = if high > low { (mean - low) / (high - low) } else { 0.0 };
            BARS[((share * 7.0).round() as usize).min(7)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let texts = [0, 999, 1_000, 1_234_567, -100_000].map(|n: i64| thousands(n));
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567", "-100,000"]);
    }

    #[test]
    fn four_digits_count_whatever_the_size() {
        let cases = [(96.3, "96.30"), (9.9996, "10.00"), (0.51321, "0.5132"), (12_346.0, "12350"), (0.0, "0.000")];
        for (value, text) in cases {
            assert_eq!(four(value), text);
        }
        assert_eq!([four(f64::NAN), four(f64::INFINITY), four(1e300)], ["NaN", "inf", "1.000e300"]);
    }

    #[test]
    fn differences_have_the_decimals_of_what_they_are_of() {
        let texts = [difference(-1.2, 96.3), difference(0.0312, 7.1), difference(3.0, 2_500.0)];
        assert_eq!(texts, ["-1.20", "+0.031", "+3.00"]);
        assert_eq!(interval([Some(-1.4), Some(1.0)], 96.3), "[-1.40, +1.00]");
        assert_eq!(interval([None, None], 96.3), "none");
        assert_eq!([percent(-1.2, 96.3), percent(1.0, 0.0)], ["-1.25", ""]);
    }

    #[test]
    fn a_sparkline_spans_its_values() {
        assert_eq!(sparkline(&[1.0, 2.0, 8.0], 10), "▁▂█");
        assert_eq!(sparkline(&[5.0; 4], 2), "▁▁");
        assert_eq!(sparkline(&[], 10), "");
    }
}

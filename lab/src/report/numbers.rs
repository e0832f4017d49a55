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
    fn a_sparkline_spans_its_values() {
        assert_eq!(sparkline(&[1.0, 2.0, 8.0], 10), "▁▂█");
        assert_eq!(sparkline(&[5.0; 4], 2), "▁▁");
        assert_eq!(sparkline(&[], 10), "");
    }
}

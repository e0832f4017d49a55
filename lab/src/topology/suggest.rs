//! "Did you mean": the nearest of the names that exist.

/// Names longer than this are not compared: nobody mistypes one into another by accident.
const LONGEST: usize = 64;

/// Number of single-character changes, swaps of neighbours included, that make one text the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let best = changed.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { best.min(table[i - 2][j - 2] + 1) } else { best }
            };
        }
    }
    table[a.len()][b.len()]
}

/// The candidate that a mistyped name most likely meant, if any is near enough: a third of its length in changes.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > LONGEST {
        return None;
    }
    // Underscore for hyphen and capitals are the commonest slips: they cost nothing.
    let plain = |text: &str| text.to_lowercase().replace('_', "-");
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (distance(&plain(name), &plain(candidate)), candidate))
        .filter(|(changes, candidate)| *changes <= length.max(candidate.chars().count()).div_ceil(3))
        .filter(|(changes, candidate)| *changes < candidate.chars().count())
        .min_by_key(|(changes, _)| *changes)
        .map(|(_, candidate)| candidate)
}

/// "did you mean `x`?", if a candidate is near enough; else the whole list, if there is one and it is short.
pub(crate) fn did_you_mean<'a>(
    name: &str,
    what: &str,
    candidates: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
) -> Option<String> {
    let candidates = candidates.into_iter();
    if let Some(nearest) = nearest(name, candidates.clone()) {
        return Some(format!("did you mean `{nearest}`?"));
    }
    let all: Vec<_> = candidates.map(|candidate| format!("`{candidate}`")).collect();
    (!all.is_empty() && all.len() <= 20).then(|| format!("{what}: {}", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_changes_and_swaps() {
        for (a, b, changes) in [("", "abc", 3), ("atach", "attach", 1), ("mtu", "mut", 1), ("port", "node", 3)] {
            assert_eq!(distance(a, b), changes, "{a} {b}");
        }
    }

    #[test]
    fn a_slip_is_recognised_and_another_word_is_not() {
        let keys = ["frame-bytes", "frames", "flows"];
        assert_eq!(nearest("frame_bytes", keys), Some("frame-bytes"));
        assert_eq!(nearest("flwos", keys), Some("flows"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("a", ["b", "c"]), None);
    }
}

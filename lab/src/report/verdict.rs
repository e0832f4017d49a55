//! From verdicts to the exit codes that scripts rely on.

use crate::record::{Verdict, compare::CompareVerdict};

/// Everything held.
pub const OK: u8 = 0;
/// A check failed.
pub const FAILED: u8 = 1;
/// The file, the arguments or an object are wrong.
pub const WRONG: u8 = 2;
/// Slower than the baseline by more than the budget.
pub const REGRESSED: u8 = 3;
/// Nothing could be concluded.
pub const INCONCLUSIVE: u8 = 4;
/// The host lacks something, or everything was skipped.
pub const LACKING: u8 = 5;

/// Codes from the worst to the best.
const ORDER: [u8; 6] = [WRONG, LACKING, FAILED, REGRESSED, INCONCLUSIVE, OK];

/// The worse of two exit codes. A code that is not in the list, a bug's or a signal's, is the worst of all.
pub fn worse(a: u8, b: u8) -> u8 {
    let rank = |code: u8| ORDER.iter().position(|c| *c == code).map_or(0, |rank| rank + 1);
    if rank(a) <= rank(b) { a } else { b }
}

/// The exit code of a run's verdicts. A skip beside a verdict is not a failure; nothing but skips is.
pub fn exit_code(verdicts: &[Verdict]) -> u8 {
    if verdicts.iter().all(|verdict| *verdict == Verdict::Skipped) {
        return if verdicts.is_empty() { OK } else { LACKING };
    }
    let code = |verdict: &Verdict| match verdict {
        Verdict::Pass | Verdict::Skipped => OK,
        Verdict::Fail => FAILED,
        Verdict::Regressed => REGRESSED,
        Verdict::Inconclusive => INCONCLUSIVE,
    };
    verdicts.iter().map(code).fold(OK, worse)
}

/// A verdict's word.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "FAIL",
        Verdict::Regressed => "REGRESSED",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Skipped => "skipped",
    }
}

/// A comparison's word. An improvement has one of its own: it is no failure.
pub fn word_of_comparison(verdict: CompareVerdict) -> &'static str {
    match verdict {
        CompareVerdict::Ok => "ok",
        CompareVerdict::Improved => "improved",
        CompareVerdict::Regressed => "REGRESSED",
        CompareVerdict::Inconclusive => "inconclusive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Fail, Inconclusive, Pass, Regressed, Skipped};

    #[test]
    fn the_worst_code_wins_in_the_documented_order() {
        assert_eq!([2, 5, 1, 3, 4, 0].into_iter().fold(0, worse), 2);
        assert_eq!([(5, 1), (1, 3), (3, 4), (4, 0)].map(|(a, b)| worse(b, a)), [5, 1, 3, 4]);
        assert_eq!(worse(70, 2), 70);
    }

    #[test]
    fn verdicts_map_to_their_codes() {
        assert_eq!(exit_code(&[Pass, Skipped]), 0);
        assert_eq!(exit_code(&[Skipped, Skipped]), 5);
        assert_eq!(exit_code(&[Pass, Fail, Inconclusive]), 1);
        assert_eq!(exit_code(&[Regressed, Inconclusive]), 3);
        assert_eq!(exit_code(&[Inconclusive, Pass]), 4);
    }
}

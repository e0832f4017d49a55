//! Reports as `JUnit` XML: one suite a lab, one case a scenario and mode.

use quick_junit::{NonSuccessKind, Report as Xml, TestCase, TestCaseStatus, TestSuite};

use super::text;
use crate::record::{Report, Verdict};

/// All reports as one document.
pub fn junit(reports: &[Report]) -> String {
    let mut xml = Xml::new("xdplab");
    for report in reports {
        let mut suite = TestSuite::new(report.lab.as_str());
        for s in &report.scenarios {
            let reason = s.reason.clone().unwrap_or_default();
            let status = match s.verdict {
                Verdict::Pass => TestCaseStatus::success(),
                Verdict::Skipped => {
                    let mut status = TestCaseStatus::skipped();
                    status.set_message(reason);
                    status
                }
                Verdict::Fail | Verdict::Regressed | Verdict::Inconclusive => {
                    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    status.set_message(reason).set_type(super::verdict::word(s.verdict));
                    status.set_description(text::ledger(&s.ledger, s.clones));
                    status
                }
            };
            let mut case = TestCase::new(format!("{} ({})", s.name, s.mode), status);
            case.set_classname(report.lab.as_str());
            suite.add_test_case(case);
        }
        xml.add_test_suite(suite);
    }
    // Writing into memory fails only for text that no XML can hold, which quick-junit strips.
    xml.to_string().unwrap_or_else(|error| format!("<!-- {error} -->"))
}

#[cfg(test)]
mod tests {
    use crate::report::sample;

    #[test]
    fn failures_and_skips_are_cases_of_their_own() {
        insta::assert_snapshot!(super::junit(&[sample::passing(), sample::failing()]));
    }
}

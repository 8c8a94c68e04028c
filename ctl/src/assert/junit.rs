//! The verdict as JUnit XML, which CI systems show.

use super::checks::{Check, Verdict};
use crate::CommandError;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::io;

/// The suite's name, and the class of each case.
const SUITE: &str = "holdfast.assert";

/// A case for each check.
pub(super) fn report(verdict: &Verdict) -> Result<String, CommandError> {
    xml(verdict.checks.iter().map(case))
}

/// One case that is an error: the switch couldn't be looked at.
pub(super) fn unknown(why: &str) -> Result<String, CommandError> {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type("unreachable").set_message(why);
    xml([TestCase::new("switch", status)].into_iter())
}

fn case(check: &Check) -> TestCase {
    let Check { check, wanted, found, passed } = check;
    let mut status = TestCaseStatus::success();
    if !passed {
        status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_type("check").set_message(format!("wanted {wanted}; found {found}"));
    }
    let mut case = TestCase::new(check.as_str(), status);
    case.set_system_out(format!("wanted {wanted}; found {found}"));
    case
}

fn xml(cases: impl Iterator<Item = TestCase>) -> Result<String, CommandError> {
    let mut suite = TestSuite::new(SUITE);
    for mut case in cases {
        case.set_classname(SUITE);
        suite.add_test_case(case);
    }
    let mut report = Report::new("holdfast assert");
    report.add_test_suite(suite);
    report.to_string().map_err(|error| CommandError::Output(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names come from people: they are read back as they were.
    #[test]
    fn odd_names_are_read_back_as_they_were() {
        for name in ["h1<&>\"'", "]]>", "a&amp;b", "grün ☃", "two\nlines", "--><!--"] {
            let check = |passed| Check {
                check: format!("violations at {name}"),
                wanted: "at most 0".to_owned(),
                found: format!("no such port {name}"),
                passed,
            };
            let verdict = Verdict { passed: false, checks: vec![check(true), check(false)] };
            let text = report(&verdict).unwrap();
            let read = Report::deserialize_from_str(&text).unwrap();
            assert_eq!((read.tests, read.failures, read.errors), (2, 1, 0), "{text}");
            let cases = &read.test_suites[0].test_cases;
            assert_eq!(cases[0].name.as_str(), check(true).check, "{text}");
            let TestCaseStatus::NonSuccess { kind, message, .. } = &cases[1].status else {
                panic!("{text}")
            };
            assert_eq!(*kind, NonSuccessKind::Failure);
            let said = message.as_ref().map(|message| message.as_str().to_owned());
            assert_eq!(said, Some(format!("wanted at most 0; found no such port {name}")));
            assert!(matches!(cases[0].status, TestCaseStatus::Success { .. }));
        }
    }

    /// XML 1.0 has no control characters but tab and line ends: they are left out.
    #[test]
    fn what_xml_cannot_say_is_left_out() {
        let text = unknown("no \u{1}\u{7}switch").unwrap();
        let read = Report::deserialize_from_str(&text).unwrap();
        assert_eq!((read.tests, read.errors), (1, 1));
        assert!(text.contains("\"no switch\""), "{text}");
    }
}

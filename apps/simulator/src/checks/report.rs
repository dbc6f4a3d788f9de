//! The findings of the checkers.

use std::fmt;

/// Number of violations per checker that are described; the others are only counted.
const DESCRIBED_MAX: u64 = 8;

/// A broken guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Name of the checker that found the violation.
    pub check: &'static str,
    /// Description of the violation, after its subject, if any.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.text)
    }
}

#[derive(Default)]
pub(super) struct Report {
    check: &'static str,
    /// The subject of the violations, prepended to each description.
    pub(super) subject: String,
    found: u64,
    violations: Vec<Violation>,
}

impl Report {
    /// Ends the findings of the previous checker and begins those of `check`.
    pub(super) fn begin(&mut self, check: &'static str) {
        self.end();
        (self.check, self.found) = (check, 0);
        self.subject.clear();
    }

    pub(super) fn fail(&mut self, text: impl FnOnce() -> String) {
        self.found += 1;
        if self.found <= DESCRIBED_MAX {
            let subject = if self.subject.is_empty() { String::new() } else { format!("{}: ", self.subject) };
            self.violations.push(Violation { check: self.check, text: subject + &text() });
        }
    }

    fn end(&mut self) {
        if let Some(more) = self.found.checked_sub(DESCRIBED_MAX + 1) {
            let text = format!("and {} more", more + 1);
            self.violations.push(Violation { check: self.check, text });
        }
    }

    pub(super) fn into_violations(mut self) -> Vec<Violation> {
        self.end();
        self.violations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_violations_are_described_and_the_rest_counted() {
        let mut report = Report::default();
        report.begin("one");
        (0..DESCRIBED_MAX + 3).for_each(|number| report.fail(|| number.to_string()));
        report.begin("two");
        report.fail(|| "wrong".to_owned());
        let descriptions: Vec<String> = report.into_violations().iter().map(ToString::to_string).collect();
        assert_eq!(descriptions.len() as u64, DESCRIBED_MAX + 2);
        assert_eq!(&descriptions[DESCRIBED_MAX as usize..], ["one: and 3 more", "two: wrong"]);
    }
}

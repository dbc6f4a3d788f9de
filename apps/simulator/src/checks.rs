//! Checkers independent of the code under test: they find the violations in the observations of a run.
//!
//! The reference engine computes the expected results from the log alone ([`Truth`]). All other observations
//! are compared with these results, or with each other. Every checker is a pure, independent function.

mod client_events;
mod client_orders;
mod copies;
mod counters;
mod disconnects;
mod expiry;
mod feeds;
mod final_state;
mod lines;
mod liveness;
mod log;
mod money;
mod public_book;
mod replay;
mod report;
mod requests;
mod schedule;
mod sequencing;
mod streams;
mod traders;
mod trades;
mod truth;
mod views;
mod wire;

pub use report::Violation;

use std::cell::RefCell;

use crate::Observed;
use report::Report;
use truth::Truth;
use views::Views;

/// The observations of a run, the expected results, and the report of violations.
struct Case<'a> {
    observed: &'a Observed,
    truth: Truth,
    views: Views,
    report: RefCell<Report>,
}

impl Case<'_> {
    /// Sets the subject of the following violations; empty if their texts name it.
    fn about(&self, subject: String) {
        self.report.borrow_mut().subject = subject;
    }

    fn fail(&self, text: impl FnOnce() -> String) {
        self.report.borrow_mut().fail(text);
    }

    /// Reports a violation unless `holds`.
    fn expect(&self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.fail(text);
        }
    }
}

type Checker = fn(&Case<'_>);

const CHECKERS: [(&str, Checker); 19] = [
    ("log", log::check),
    ("wire", wire::check),
    ("streams", streams::check),
    ("drop copies", copies::check),
    ("requests", requests::check),
    ("sequencing", sequencing::check),
    ("final state", final_state::check),
    ("client orders", client_orders::check),
    ("expiry", expiry::check),
    ("schedule", schedule::check),
    ("trades", trades::check),
    ("money", money::check),
    ("lines", lines::check),
    ("feeds", feeds::check),
    ("traders", traders::check),
    ("disconnects", disconnects::check),
    ("replay", replay::check),
    ("liveness", liveness::check),
    ("counters", counters::check),
];

/// Returns all violations of a run; empty when all guarantees were kept.
#[must_use]
pub fn check(observed: &Observed) -> Vec<Violation> {
    let report = RefCell::new(Report::default());
    let case = Case { observed, truth: Truth::of(observed), views: Views::of(observed), report };
    for (name, checker) in CHECKERS {
        case.report.borrow_mut().begin(name);
        checker(&case);
    }
    case.report.into_inner().into_violations()
}

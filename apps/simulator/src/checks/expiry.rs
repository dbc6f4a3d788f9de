//! Orders leave when their time has come, before anything else takes effect: by their time, with the day, or at once.

use tickpath_types::{CancelReason, Nanos, OrderEventKind, TimeInForce};

use super::client_orders::Book;
use super::report::Report;
use super::statements::{Statement, Told};
use super::{Case, statements};

pub(super) fn check(case: &Case<'_>, report: &mut Report) {
    for (command, order) in &case.truth.overdue {
        report.say(|| {
            format!(
                "command {command} took effect while order {} of session {} was open, whose time had come",
                order.user_ref, order.session
            )
        });
    }
    check_end(case, report);
    (0..case.observed.clients.len()).for_each(|place| check_told(case, place, report));
}

/// Where nothing else comes, orders expire all the same.
fn check_end(case: &Case<'_>, report: &mut Report) {
    let stopped_at = case.observed.last.stopped_at.time_of_day();
    let by = Nanos(stopped_at.0.saturating_sub(case.observed.reaction_max.0));
    for order in case.truth.engine.open_orders() {
        report.expect(order.expires_at.is_none_or(|at| at > by), || {
            format!(
                "order {} of session {} is open at the end, at {} ns, and its time came at {} ns",
                order.user_ref,
                order.session,
                stopped_at.0,
                order.expires_at.unwrap_or_default().0
            )
        });
    }
}

/// What a client knows of its orders, from its messages alone.
fn check_told(case: &Case<'_>, place: usize, report: &mut Report) {
    let Some(told) = statements::all_of_client(case, place) else { return };
    let name = &case.observed.users[place].name;
    // What does not add up the checker of the clients' orders tells.
    let mut muted = Report::new();
    let mut book = Book::new(name, &mut muted);
    for told in told {
        match told {
            Told::Order(statement) => {
                check_statement(name, &mut book, &statement, report);
                book.hear(&statement);
            }
            // None of them is good till cancelled.
            Told::StartOfDay => {
                for user_ref in std::mem::take(&mut book.orders).into_keys() {
                    report.say(|| format!("{name}: order {user_ref} of the day before is open in the next"));
                }
            }
        }
    }
    for (user_ref, order) in &book.orders {
        report.expect(order.time_in_force != TimeInForce::Ioc, || {
            format!("{name}: the IOC order {user_ref} is open at the end")
        });
    }
}

fn check_statement(name: &str, book: &mut Book<'_>, (ts, kind): &Statement, report: &mut Report) {
    let is_expiry = matches!(kind, OrderEventKind::Canceled { reason: CancelReason::Expired, .. });
    book.orders.retain(|user_ref, order| {
        let is_over = order.expires_at.is_some_and(|at| at <= *ts);
        let rests = order.time_in_force == TimeInForce::Ioc && order.since < *ts;
        report.expect(!rests, || format!("{name}: the IOC order {user_ref} rests at {} ns", ts.0));
        report.expect(!is_over || is_expiry, || {
            format!(
                "{name}: at {} ns came {kind:?}, and before that order {user_ref} should have expired",
                ts.0
            )
        });
        report.expect(is_over || !is_expiry || *user_ref != kind.user_ref(), || {
            format!("{name}: order {user_ref} expired at {} ns, which was not its time", ts.0)
        });
        !rests && (!is_over || is_expiry)
    });
}

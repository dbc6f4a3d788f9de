//! Orders expire at their expiry time, at the day's end or immediately, before other commands of the same
//! time.

use tickpath_types::{CancelReason, Nanos, OrderEventKind, TimeInForce};

use super::client_events::{ReceivedEvent, TimedOrderEvent};
use super::client_orders::Book;
use super::{Case, client_events};

pub(super) fn check(case: &Case<'_>) {
    for (command, order) in &case.truth.overdue {
        case.fail(|| {
            let (user_ref, session) = (order.order.user_ref, order.session);
            format!("command {command} took effect while order {user_ref} of session {session} was open past its expiry")
        });
    }
    check_end(case);
    (0..case.observed.clients.len()).for_each(|place| check_client(case, place));
}

/// Checks that orders also expire when no other event occurs: none is overdue at the end.
fn check_end(case: &Case<'_>) {
    let stopped_at = case.observed.last.stopped_at.time_of_day();
    let by = Nanos(stopped_at.0.saturating_sub(case.observed.setup.reaction_max.0));
    for open in case.truth.engine.open_orders() {
        let (user_ref, session, expires_at) = (open.order.user_ref, open.session, open.expires_at());
        case.expect(expires_at.is_none_or(|at| at > by), || {
            let (end, due) = (stopped_at.0, expires_at.unwrap_or_default().0);
            format!("order {user_ref} of session {session} is open at the end, at {end} ns, and its expiry was due at {due} ns")
        });
    }
}

/// Checks the expiry of a client's orders, from the client's messages alone.
fn check_client(case: &Case<'_>, place: usize) {
    let Some(received) = client_events::all_events(case, place) else { return };
    case.about(case.observed.setup.users[place].name.clone());
    // The checker `client_orders` reports inconsistent messages.
    let mut book = Book::default();
    for received in received {
        match received {
            ReceivedEvent::Order(order_event) => {
                check_order_event(case, &mut book, &order_event);
                book.on_event(order_event.0, &order_event.1);
            }
            // The clients send no good-till-cancelled orders, so no order stays open at the start of a day.
            ReceivedEvent::StartOfDay => {
                for user_ref in std::mem::take(&mut book.orders).into_keys() {
                    case.fail(|| format!("order {user_ref} of the previous day is open"));
                }
            }
        }
    }
    for (user_ref, order) in &book.orders {
        case.expect(order.time_in_force != TimeInForce::Ioc, || {
            format!("the IOC order {user_ref} is open at the end")
        });
    }
}

fn check_order_event(case: &Case<'_>, book: &mut Book, (ts, kind): &TimedOrderEvent) {
    let is_expiry = matches!(kind, OrderEventKind::Canceled { reason: CancelReason::Expired, .. });
    book.orders.retain(|user_ref, order| {
        let is_over = order.expires_at.is_some_and(|at| at <= *ts);
        let rests = order.time_in_force == TimeInForce::Ioc && order.since < *ts;
        case.expect(!rests, || format!("the IOC order {user_ref} rests at {} ns", ts.0));
        case.expect(!is_over || is_expiry, || {
            format!("at {} ns came {kind:?}, and before that order {user_ref} should have expired", ts.0)
        });
        case.expect(is_over || !is_expiry || *user_ref != kind.user_ref(), || {
            format!("order {user_ref} expired at {} ns, which is not its expiry time", ts.0)
        });
        !rests && (!is_over || is_expiry)
    });
}

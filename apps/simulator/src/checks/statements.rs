//! Order events as the clients received them: the event behind each message that equals the expected one.

use tickpath_types::{Nanos, OrderEventKind};

use super::Case;

/// One order event: its time at the venue, and its kind.
pub(super) type Statement = (Nanos, OrderEventKind);

/// An event that a client received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Told {
    Order(Statement),
    StartOfDay,
}

/// Returns all events that a client received, if it has received everything and no part was reverted.
pub(super) fn all_of_client(case: &Case<'_>, place: usize) -> Option<Vec<Told>> {
    let (copy, stream) = (case.views.copies.get(place)?, &case.truth.streams[place]);
    if !case.views.losses.is_empty() {
        return None;
    }
    // A trader does not request messages from before its start, so the expected ones count as received.
    let is_trader = case.observed.traders.iter().any(|life| life.user == place);
    let len = copy.len().max(stream.len());
    let mut told = Vec::with_capacity(len);
    for index in 0..len {
        let expected = stream.get(index);
        let unasked = || expected.filter(|_| is_trader).map(|told| &told.bytes);
        let message = copy.get(index).and_then(Option::as_ref).or_else(unasked)?;
        // The byte comparison reports an unexpected message.
        let Some(expected) = expected.filter(|expected| expected.bytes == *message) else { continue };
        match expected.event {
            Some(event) => told.push(Told::Order((event.ts, event.kind))),
            None if is_start_of_day(message) => told.push(Told::StartOfDay),
            None => {}
        }
    }
    Some(told)
}

/// Returns true for OUCH's System Event of the day's start.
fn is_start_of_day(message: &[u8]) -> bool {
    const EVENT_CODE_AT: usize = 9;
    message.first() == Some(&b'S') && message.get(EVENT_CODE_AT) == Some(&b'S')
}

/// Returns only the order events.
pub(super) fn of_client(case: &Case<'_>, place: usize) -> Option<Vec<Statement>> {
    let of_order = |told| match told {
        Told::Order(statement) => Some(statement),
        Told::StartOfDay => None,
    };
    Some(all_of_client(case, place)?.into_iter().filter_map(of_order).collect())
}

//! Order events as the clients received them: the event behind each message that equals the one that the log causes.

use tickpath_types::{Nanos, OrderEventKind};

use super::Case;

/// One statement: when it was made at the venue, and what it says.
pub(super) type Statement = (Nanos, OrderEventKind);

/// What a client is told of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Told {
    Order(Statement),
    StartOfDay,
}

/// Everything that a client was told, if it has received all there is and no part of it was taken back.
pub(super) fn all_of_client(case: &Case<'_>, place: usize) -> Option<Vec<Told>> {
    let (copy, stream) = (case.views.copies.get(place)?, &case.truth.streams[place]);
    if !case.views.losses.is_empty() {
        return None;
    }
    // A trader that begins does not ask for what was before: of that it would have been told what there was to tell.
    let is_trader = case.observed.traders.iter().any(|life| life.user == place);
    let len = copy.len().max(stream.len());
    let mut told = Vec::with_capacity(len);
    for index in 0..len {
        let expected = stream.get(index);
        let unasked = || expected.filter(|_| is_trader).map(|told| &told.bytes);
        let message = copy.get(index).and_then(Option::as_ref).or_else(unasked)?;
        // The comparison of bytes reports a message that is not the expected one.
        let Some(expected) = expected.filter(|expected| expected.bytes == *message) else { continue };
        match expected.event {
            Some(event) => told.push(Told::Order((event.ts, event.kind))),
            None if is_start_of_day(message) => told.push(Told::StartOfDay),
            None => {}
        }
    }
    Some(told)
}

/// True for OUCH's System Event of the day's start.
fn is_start_of_day(message: &[u8]) -> bool {
    const EVENT_CODE_AT: usize = 9;
    message.first() == Some(&b'S') && message.get(EVENT_CODE_AT) == Some(&b'S')
}

/// The same, of its orders alone.
pub(super) fn of_client(case: &Case<'_>, place: usize) -> Option<Vec<Statement>> {
    let of_order = |told| match told {
        Told::Order(statement) => Some(statement),
        Told::StartOfDay => None,
    };
    Some(all_of_client(case, place)?.into_iter().filter_map(of_order).collect())
}

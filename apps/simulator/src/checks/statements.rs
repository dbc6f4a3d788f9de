//! What the clients were told of their orders, decoded from the bytes that they received.

use tickpath_nasdaq::ouch50::{Answer, EventCode, Outbound, decode_event};
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
    let (copy, stream) = (&case.views.copies.get(place)?.messages, &case.truth.streams[place]);
    if !case.views.losses.is_empty() {
        return None;
    }
    // A trader that begins does not ask for what was before: of that it would have been told what there was to tell.
    let is_trader = case.observed.traders.iter().any(|life| life.user == place);
    let len = copy.len().max(stream.len());
    let mut told = Vec::with_capacity(len);
    for index in 0..len {
        let unasked = || stream.get(index).filter(|_| is_trader).map(|told| &told.bytes);
        let message = copy.get(index).and_then(Option::as_ref).or_else(unasked)?;
        match decode_event(message, |symbol| case.truth.table.find(symbol)) {
            Ok(Answer::Order(answer)) => told.push(Told::Order((answer.ts, answer.kind))),
            Ok(Answer::Other(Outbound::SystemEvent(event, _)))
                if event.event_code == EventCode::START_OF_DAY =>
            {
                told.push(Told::StartOfDay);
            }
            // What cannot be decoded is told of by the comparison of bytes.
            _ => {}
        }
    }
    Some(told)
}

/// The same, of its orders alone.
pub(super) fn of_client(case: &Case<'_>, place: usize) -> Option<Vec<Statement>> {
    let of_order = |told| match told {
        Told::Order(statement) => Some(statement),
        Told::StartOfDay => None,
    };
    Some(all_of_client(case, place)?.into_iter().filter_map(of_order).collect())
}

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
    let copy = &case.views.copies.get(place)?.messages;
    if !case.views.losses.is_empty() || copy.len() < case.truth.streams[place].len() {
        return None;
    }
    let mut told = Vec::with_capacity(copy.len());
    for message in copy {
        match decode_event(message.as_ref()?, |symbol| case.truth.table.find(symbol)) {
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

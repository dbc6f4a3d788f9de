//! What the clients were told of their orders, decoded from the bytes that they received.

use tickpath_nasdaq::ouch50::{Answer, decode_event};
use tickpath_types::{Nanos, OrderEventKind};

use super::Case;

/// One statement: when it was made at the venue, and what it says.
pub(super) type Statement = (Nanos, OrderEventKind);

/// Everything that a client was told, if it has received all there is and no part of it was taken back.
pub(super) fn of_client(case: &Case<'_>, place: usize) -> Option<Vec<Statement>> {
    let copy = &case.views.copies.get(place)?.messages;
    if !case.views.losses.is_empty() || copy.len() < case.truth.streams[place].len() {
        return None;
    }
    let mut statements = Vec::with_capacity(copy.len());
    for message in copy {
        // What cannot be decoded is told of by the comparison of bytes.
        if let Ok(Answer::Order(answer)) =
            decode_event(message.as_ref()?, |symbol| case.truth.table.find(symbol))
        {
            statements.push((answer.ts, answer.kind));
        }
    }
    Some(statements)
}

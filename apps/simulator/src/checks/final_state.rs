//! The engine's final state equals the result of replaying the log.

use tickpath_book::Order;
use tickpath_types::{EnterOrder, Qty, Sequence, Side};

use super::Case;

pub(super) fn check(case: &Case<'_>) {
    let Case { observed, truth, .. } = case;
    let last = &observed.last;
    let end = Sequence(observed.log.commands.len() as u64);
    case.expect(last.last_command == end, || {
        format!("the engine applied {} commands and the log has {end}", last.last_command)
    });
    case.expect(last.last_market == truth.engine.last_market(), || {
        let (published, caused) = (last.last_market, truth.engine.last_market());
        format!("the engine published {published} events and the log causes {caused}")
    });
    check_open(case);
    let expected = displayed(case);
    if last.displayed != expected {
        let differing = last.displayed.iter().zip(&expected).find(|(a, b)| a != b);
        case.fail(|| {
            let (found, expected) = (last.displayed.len(), expected.len());
            format!("the venue's books have {found} displayed orders and the log leads to {expected}; the first that differ: {differing:?}")
        });
    }
}

fn check_open(case: &Case<'_>) {
    let mut found = case.observed.last.open_orders.clone();
    for open in case.truth.engine.open_orders() {
        let (session, user_ref) = (open.session, open.order.user_ref);
        let (executed, leaves) = (Qty(open.executed), Qty(open.leaves()));
        match found.remove(&(session, user_ref)) {
            None => case.fail(|| format!("order {user_ref} of session {session} is not open at the end")),
            Some(state) => case.expect(state == (executed, leaves), || {
                format!(
                    "order {user_ref} of session {session} has executed {} and has {} left; the log leads to {executed} \
                     and {leaves}",
                    state.0, state.1
                )
            }),
        }
    }
    for (session, user_ref) in found.into_keys() {
        case.fail(|| {
            format!("order {user_ref} of session {session} is open at the end, and the log ended it")
        });
    }
}

/// Returns the displayed orders after a replay of the log, in book order.
pub(super) fn displayed(case: &Case<'_>) -> Vec<Order<()>> {
    let instruments = case.truth.table.iter().map(|instrument| instrument.id);
    let sides = instruments.flat_map(|id| Side::BOTH.map(|side| (id, side)));
    sides
        .flat_map(|(id, side)| case.truth.engine.displayed(id, side))
        .map(|open| {
            let EnterOrder { instrument, side, price, .. } = open.order;
            Order { id: open.id, instrument, side, price, qty: Qty(open.shown), data: () }
        })
        .collect()
}

//! No execution is duplicate or unmatched: each has one buyer and one seller, who received the same report.

use std::collections::BTreeMap;

use tickpath_types::{InstrumentId, MatchId, Nanos, OrderEventKind, Price, Qty, Side, UserRefNum};

use super::{Case, client_events};

#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) user: usize,
    pub(super) user_ref: UserRefNum,
    pub(super) instrument: InstrumentId,
    pub(super) side: Side,
    pub(super) qty: Qty,
    pub(super) price: Price,
}

/// Returns the sides of every execution, keyed by match number and time: match numbers restart each day.
/// `None` if a client has not received all of its messages.
pub(super) fn of_all(case: &Case<'_>) -> Option<BTreeMap<(MatchId, Nanos), Vec<Part>>> {
    let mut trades: BTreeMap<_, Vec<Part>> = BTreeMap::new();
    for user in 0..case.observed.clients.len() {
        let mut orders: BTreeMap<UserRefNum, (InstrumentId, Side)> = BTreeMap::new();
        for (ts, kind) in client_events::of_client(case, user)? {
            match kind {
                OrderEventKind::Accepted { order, .. } | OrderEventKind::Replaced { order, .. } => {
                    orders.insert(order.user_ref, (order.instrument, order.side));
                }
                OrderEventKind::Executed { user_ref, qty, price, match_id, .. } => {
                    // The `client_orders` checker reports executions of unknown orders.
                    let Some((instrument, side)) = orders.get(&user_ref).copied() else { continue };
                    let part = Part { user, user_ref, instrument, side, qty, price };
                    trades.entry((match_id, ts)).or_default().push(part);
                }
                _ => {}
            }
        }
    }
    Some(trades)
}

pub(super) fn check(case: &Case<'_>) {
    let Some(trades) = of_all(case) else { return };
    for ((match_id, ts), parts) in &trades {
        let is_matched = match parts.as_slice() {
            [a, b] => a.side != b.side && (a.instrument, a.qty, a.price) == (b.instrument, b.qty, b.price),
            _ => false,
        };
        case.expect(is_matched, || {
            let sides: Vec<String> = parts
                .iter()
                .map(|part| {
                    let name = &case.observed.setup.users[part.user].name;
                    let Part { user_ref, side, qty, price, instrument, .. } = part;
                    format!("{name}'s {user_ref} {side:?} {qty} of {instrument} at {price}")
                })
                .collect();
            format!("execution {match_id} of {} ns has the sides: {}", ts.0, sides.join("; "))
        });
    }
}

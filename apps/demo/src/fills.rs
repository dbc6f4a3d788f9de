//! Positions of the background or recorded flow, which has no order manager: computed from its requests and
//! the venue's answers.

use tickpath_trading::Position;
use tickpath_types::{InstrumentId, OrderEventKind, OrderRequest, Side, UserRefNum};

/// Number of orders of one session whose instrument and side are remembered: more than can be open at once.
const REMEMBERED: usize = 1 << 18;

/// The instrument and side of one session's orders, by UserRefNum.
pub(crate) struct OrderIndex {
    /// `(UserRefNum, instrument, side)`, at index `UserRefNum mod REMEMBERED`.
    orders: Box<[(u32, InstrumentId, Side)]>,
}

impl OrderIndex {
    pub(crate) fn new() -> OrderIndex {
        OrderIndex { orders: vec![(u32::MAX, InstrumentId(0), Side::Buy); REMEMBERED].into_boxed_slice() }
    }

    /// Remembers the instrument and side of the new or replacing order that `request` enters, if any.
    pub(crate) fn record(&mut self, request: &OrderRequest) {
        let entered = match request {
            OrderRequest::Enter(order) => Some((order.user_ref, order.instrument, order.side)),
            OrderRequest::Replace(order) => {
                self.find(order.orig_user_ref).map(|(instrument, side)| (order.user_ref, instrument, side))
            }
            OrderRequest::Cancel(_)
            | OrderRequest::Modify(_)
            | OrderRequest::MassCancel(_)
            | OrderRequest::SetOrderEntry(_) => None,
        };
        if let Some((user_ref, instrument, side)) = entered {
            self.orders[user_ref.0 as usize % REMEMBERED] = (user_ref.0, instrument, side);
        }
    }

    pub(crate) fn find(&self, user_ref: UserRefNum) -> Option<(InstrumentId, Side)> {
        let (number, instrument, side) = self.orders[user_ref.0 as usize % REMEMBERED];
        (number == user_ref.0).then_some((instrument, side))
    }
}

/// Positions and fill counts of a participant, over all its sessions.
pub(crate) struct Fills {
    /// Position in each instrument, at index `id - 1`.
    pub(crate) positions: Vec<Position>,
    pub(crate) fills: u64,
    /// Number of executions that changed no position, because the order is no longer remembered.
    pub(crate) unknown: u64,
}

impl Fills {
    pub(crate) fn new(instruments: usize) -> Fills {
        Fills { positions: vec![Position::default(); instruments], fills: 0, unknown: 0 }
    }

    /// Applies an execution to the position in the order's instrument; ignores other events.
    pub(crate) fn apply(&mut self, orders: &OrderIndex, kind: &OrderEventKind) {
        let OrderEventKind::Executed { user_ref, qty, price, .. } = *kind else { return };
        self.fills += 1;
        let position = orders.find(user_ref).and_then(|(instrument, side)| {
            self.positions.get_mut(usize::from(instrument.0) - 1).map(|position| (position, side))
        });
        match position {
            Some((position, side)) => position.apply_fill(side, price, qty),
            None => self.unknown += 1,
        }
    }
}

//! The latest executions of own orders, for reversal if the venue breaks one.

use tickpath_types::{MatchId, Price, Qty, UserRefNum};

use crate::OwnOrder;

/// One execution of an own order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) match_id: MatchId,
    /// The order after the execution.
    pub(crate) order: OwnOrder,
    pub(crate) qty: Qty,
    pub(crate) price: Price,
}

/// A ring of the latest executions of own orders; a new one overwrites the oldest.
#[derive(Debug)]
pub(crate) struct Fills {
    slots: Box<[Option<Fill>]>,
    next: usize,
}

impl Fills {
    pub(crate) fn new(max: usize) -> Fills {
        Fills { slots: vec![None; max].into(), next: 0 }
    }

    pub(crate) fn record(&mut self, fill: Fill) {
        self.slots[self.next] = Some(fill);
        self.next = (self.next + 1) % self.slots.len();
    }

    /// Removes and returns the order's latest execution with this match id. Match ids restart each day, so an
    /// older execution may have the same id.
    #[cold]
    pub(crate) fn take(&mut self, user_ref: UserRefNum, match_id: MatchId) -> Option<Fill> {
        let (later, earlier) = self.slots.split_at_mut(self.next);
        let mut latest_first = later.iter_mut().rev().chain(earlier.iter_mut().rev());
        let is_match = |fill: &Fill| (fill.order.user_ref, fill.match_id) == (user_ref, match_id);
        latest_first.find(|slot| slot.as_ref().is_some_and(is_match))?.take()
    }
}

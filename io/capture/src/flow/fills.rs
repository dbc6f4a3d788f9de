//! The fills of one transaction, taken in price-time order.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;
use tickpath_types::{Price, Qty, Side};

use super::Exclusion;
use super::book::{Books, Key, OrderStatus};
use crate::{EventKind, RecordedEvent};

/// A fill that is not mapped yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) key: Key,
    /// Quantity still to be executed.
    pub(crate) qty: Qty,
    side: Option<Side>,
    price: Option<Price>,
    in_auction: bool,
}

/// The fills of one transaction.
#[derive(Default)]
pub(crate) struct Fills {
    /// Fills that are not mapped yet, in the order of the recording.
    fills: VecDeque<Fill>,
    orders: FxHashSet<Key>,
}

impl Fills {
    /// Collects the fills of a transaction's resting orders. Also returns the number of fills of incoming
    /// orders.
    pub(crate) fn of(transaction: &[RecordedEvent]) -> (Fills, u64) {
        let incoming: FxHashSet<(Key, Side)> = transaction
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Trade { order_id, aggressor: Some(side), .. } if order_id != 0 => {
                    Some(((event.instrument, order_id), side))
                }
                _ => None,
            })
            .collect();
        let mut fills = Fills::default();
        let mut incoming_count = 0;
        for event in transaction {
            let EventKind::Fill { order_id, qty, side, price, in_auction } = event.kind else { continue };
            let key = (event.instrument, order_id);
            if side.is_some_and(|side| incoming.contains(&(key, side))) {
                incoming_count += 1;
            } else {
                fills.push(Fill { key, qty, side, price, in_auction });
            }
        }
        (fills, incoming_count)
    }

    /// Adds a fill, or the unexecuted remainder of one.
    pub(crate) fn push(&mut self, fill: Fill) {
        self.orders.insert(fill.key);
        self.fills.push_back(fill);
    }

    /// Number of fills that are not mapped yet.
    pub(crate) fn len(&self) -> usize {
        self.fills.len()
    }

    /// True when the transaction has no fill, whether mapped already or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// True when the transaction has a fill of the order, whether mapped already or not.
    pub(crate) fn is_about(&self, key: Key) -> bool {
        self.orders.contains(&key)
    }

    /// Takes the next fill in price-time priority: that of the front order on the side of the earliest
    /// reported fill. If the front order has none, takes the earliest reported fill.
    pub(crate) fn pop(&mut self, books: &Books) -> Option<Fill> {
        let earliest = self.fills.front()?.key;
        let front = books.order(earliest).and_then(|order| books.front(earliest.0, order.level.side));
        let place = self.fills.iter().position(|fill| Some(fill.key) == front).unwrap_or(0);
        self.fills.remove(place)
    }
}

impl Fill {
    /// Returns an error with the reason if the venue would not repeat exactly this fill now.
    pub(crate) fn obstacle(&self, books: &Books, sums_fills: bool) -> Result<(), Exclusion> {
        if self.in_auction {
            return Err(Exclusion::Auction);
        }
        let order = books.order(self.key).ok_or(Exclusion::UnknownOrder)?;
        match order.status {
            OrderStatus::Resting(_) => {}
            OrderStatus::HeldBack => return Err(Exclusion::CrossedAdd),
            OrderStatus::Refused(reason) => return Err(reason),
        }
        let (instrument, level) = (self.key.0, order.level);
        let obstacles = [
            (self.side.is_some_and(|side| side != level.side), Exclusion::SideDiffers),
            (self.price.is_some_and(|price| price != level.price), Exclusion::PriceDiffers),
            (self.qty.is_zero(), Exclusion::QtyOutOfRange),
            (self.qty > order.qty && !sums_fills, Exclusion::QtyAboveOrder),
            (books.best(instrument, level.side) != Some(level.price), Exclusion::NotBestPrice),
            (books.front(instrument, level.side) != Some(self.key), Exclusion::NotFrontOfQueue),
        ];
        obstacles.into_iter().find(|(applies, _)| *applies).map_or(Ok(()), |(_, reason)| Err(reason))
    }
}

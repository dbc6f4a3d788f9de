//! The fills of one transaction, taken in price-time order.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use tickpath_types::{Price, Qty, Side};

use super::Exclusion;
use super::book::{Books, Key, Place};
use crate::{EventKind, RecordedEvent};

/// A fill that was not mapped yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fill {
    pub(crate) key: Key,
    /// What is left of it to execute.
    pub(crate) qty: Qty,
    side: Option<Side>,
    price: Option<Price>,
    in_auction: bool,
}

/// The fills of one transaction.
#[derive(Default)]
pub(crate) struct Fills {
    /// `None` where the fill was taken out.
    fills: Vec<Option<Fill>>,
    by_order: FxHashMap<Key, VecDeque<usize>>,
    /// Everything before it was taken out.
    next: usize,
}

impl Fills {
    /// Sorts a transaction's fills out, and how many reports are about the incoming order itself.
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

    fn push(&mut self, fill: Fill) {
        self.by_order.entry(fill.key).or_default().push_back(self.fills.len());
        self.fills.push(Some(fill));
    }

    pub(crate) fn len(&self) -> usize {
        self.fills.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fills.is_empty()
    }

    /// True when the order trades, or traded, in this transaction.
    pub(crate) fn is_about(&self, key: Key) -> bool {
        self.by_order.contains_key(&key)
    }

    /// Takes out the fill that price-time priority puts first: that of the front order on the side of
    /// the earliest reported one, otherwise that one.
    pub(crate) fn pop(&mut self, books: &Books) -> Option<Fill> {
        while self.fills.get(self.next).is_some_and(Option::is_none) {
            self.next += 1;
        }
        let earliest = (*self.fills.get(self.next)?)?;
        let front = books
            .order(earliest.key)
            .and_then(|order| books.front(earliest.key.0, order.level.side))
            .filter(|front| self.by_order.get(front).is_some_and(|indexes| !indexes.is_empty()))
            .unwrap_or(earliest.key);
        let index = self.by_order.get_mut(&front)?.pop_front()?;
        self.fills[index].take()
    }

    /// Puts a fill back that was executed in part.
    pub(crate) fn put_back(&mut self, rest: Fill) {
        self.push(rest);
    }
}

impl Fill {
    /// The same fill with `qty` left to execute.
    pub(crate) const fn with_qty(self, qty: Qty) -> Fill {
        Fill { qty, ..self }
    }

    /// Why the venue would not execute this order for this quantity now, if so.
    pub(crate) fn obstacle(&self, books: &Books, sums_fills: bool) -> Result<(), Exclusion> {
        if self.in_auction {
            return Err(Exclusion::Auction);
        }
        let order = books.order(self.key).ok_or(Exclusion::UnknownOrder)?;
        match order.place {
            Place::Resting(_) => {}
            Place::HeldBack => return Err(Exclusion::CrossedAdd),
            Place::Refused(reason) => return Err(reason),
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
        match obstacles.into_iter().find(|(stands, _)| *stands) {
            Some((_, reason)) => Err(reason),
            None => Ok(()),
        }
    }
}

//! The effect of a block of messages on books, of any protocol.

use std::ops::RangeInclusive;

use tickpath_feed::{BuilderCounters, UpdateListener};
use tickpath_types::MarketUpdate;

/// The effect of each message of a block: at most one update a message, in order; `sequence` is the number of the
/// message in the file, counted from 1. And what contradicted the books.
#[derive(Debug, Default)]
pub struct Updates {
    pub(crate) list: Vec<MarketUpdate>,
    pub(crate) contradictions: Vec<Contradictions>,
}

/// Contradictions between some messages and the books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contradictions {
    /// Which, counted from 0 in the block.
    pub(crate) messages: RangeInclusive<usize>,
    /// Executions or reductions beyond what was left.
    pub(crate) beyond_qty: u64,
    /// Adds of orders that rested already.
    pub(crate) duplicate_order: u64,
    /// Orders that the books refused.
    pub(crate) refused: u64,
    /// Messages about numbers that no symbol was mapped to.
    pub(crate) unmapped: u64,
    /// Gaps in the numbers of one symbol.
    pub(crate) symbol_gaps: u64,
}

impl Updates {
    /// Forgets the block before and makes room for one of `len` messages.
    pub(crate) fn start(&mut self, len: usize) {
        self.list.clear();
        self.list.reserve(len);
        self.contradictions.clear();
    }

    /// Notes what was counted between two moments, if anything was.
    #[inline]
    pub(crate) fn note(
        &mut self,
        before: &BuilderCounters,
        after: &BuilderCounters,
        messages: impl FnOnce() -> RangeInclusive<usize>,
    ) {
        let beyond_qty = after.beyond_qty - before.beyond_qty;
        let duplicate_order = after.duplicate_order - before.duplicate_order;
        let refused = after.refused - before.refused;
        let unmapped = after.unmapped - before.unmapped;
        let symbol_gaps = after.symbol_gaps - before.symbol_gaps;
        if beyond_qty + duplicate_order + refused + unmapped + symbol_gaps > 0 {
            self.contradictions.push(Contradictions {
                messages: messages(),
                beyond_qty,
                duplicate_order,
                refused,
                unmapped,
                symbol_gaps,
            });
        }
    }
}

impl UpdateListener for Updates {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        self.list.push(*update);
    }
}

//! A block of messages applied to books, whatever the messages and the books are.

use std::ops::RangeInclusive;

use tickpath_book::BooksById;
use tickpath_feed::{BookBuilder, BuilderCounters, LOOK_AHEAD_LEN, UpdateListener};
use tickpath_types::{MarketUpdate, Sequence};

/// What each message of a block did: at most one update a message, in order; `sequence` is the number of the
/// message in the file, counted from 1. And what contradicted the books.
#[derive(Debug, Default)]
pub(crate) struct Updates {
    pub(crate) list: Vec<MarketUpdate>,
    pub(crate) contradictions: Vec<Contradictions>,
}

/// What contradicted the books in some messages.
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

/// Books that take messages of a kind.
pub(crate) trait ApplyMessages<M> {
    /// The books.
    type Books: BooksById;

    /// Applies a block; `first` is the number of its first message.
    fn apply(&mut self, first: u64, messages: &[M], updates: &mut Updates);

    /// The books as they stand.
    fn books(&self) -> &Self::Books;
}

impl<B: BooksById> ApplyMessages<&[u8]> for BookBuilder<B> {
    type Books = B;

    #[inline(never)]
    fn apply(&mut self, first: u64, messages: &[&[u8]], updates: &mut Updates) {
        let mut start = 0;
        for group in messages.chunks(LOOK_AHEAD_LEN) {
            let before = *self.counters();
            self.handle_batch(Sequence(first + start as u64), group.iter().copied(), updates);
            updates.note(&before, self.counters(), || start..=start + group.len() - 1);
            start += group.len();
        }
    }

    fn books(&self) -> &B {
        BookBuilder::books(self)
    }
}

#[cfg(test)]
mod tests {
    use tickpath_book::{BookLimits, FastBooks, Indexed};
    use tickpath_nasdaq::itch50::{AddOrder, BuySell, OrderDelete, OrderExecuted};
    use tickpath_nasdaq::wire::Stock;
    use tickpath_types::{InstrumentId, Nanos};
    use zerocopy::IntoBytes;

    use super::*;

    fn messages() -> Vec<Vec<u8>> {
        let stock = Stock::new("ABC").unwrap();
        let mut messages: Vec<Vec<u8>> = (1..=100_u64)
            .map(|id| {
                let price = 10_000 + id as u32;
                AddOrder::new(1, 0, Nanos(id), id, BuySell::BUY, 10, stock, price).as_bytes().to_vec()
            })
            .collect();
        let executed =
            (1..=50).map(|id| OrderExecuted::new(1, 0, Nanos(200 + id), id, 11, 1).as_bytes().to_vec());
        messages.extend(executed);
        messages.extend((51..=60).map(|id| OrderDelete::new(1, 0, Nanos(300), id).as_bytes().to_vec()));
        messages
    }

    fn builder() -> BookBuilder<Indexed<FastBooks>> {
        BookBuilder::new(Indexed::new(BookLimits::new(InstrumentId(1), 1_000)))
    }

    #[test]
    fn contradictions_have_the_place_of_their_group() {
        let messages = messages();
        let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let mut updates = Updates::default();
        builder().apply(1, &slices, &mut updates);
        let places: Vec<_> = updates.contradictions.iter().map(|found| found.messages.clone()).collect();
        assert_eq!(places, [96..=127, 128..=159]);
        assert_eq!(updates.contradictions.iter().map(|found| found.beyond_qty).sum::<u64>(), 50);
    }
}

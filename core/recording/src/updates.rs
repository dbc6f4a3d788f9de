//! Book updates of a block of messages, and contradictions between the messages and the books, for any
//! protocol.

use std::ops::RangeInclusive;

use tickpath_book::BooksById;
use tickpath_feed::{BuilderCounters, Change, UpdateListener, best_of};
use tickpath_types::{BookHealth, MarketUpdate, PriceLevel, Sequence, Side};

/// The book updates of a block of messages, in order, and the contradictions between messages and books.
/// `sequence` of an update is the number of its message in the file, from 1.
#[derive(Debug, Default)]
pub struct Updates {
    pub(crate) list: Vec<MarketUpdate>,
    pub(crate) contradictions: Vec<Contradictions>,
    /// The best levels of each instrument for [`OneSided`], indexed by its id.
    tops: Vec<Top>,
    /// Number of the current block, from 1.
    block: u64,
    /// True to read both sides of a book after each message.
    reads_both_sides: bool,
}

/// The best levels of an instrument after its last message in a block.
#[derive(Clone, Copy, Debug, Default)]
struct Top {
    /// Number of this block.
    block: u64,
    /// Bid and ask.
    best: [PriceLevel; 2],
}

/// Contradictions between a range of messages and the books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contradictions {
    /// Range of the messages, as indexes in the block from 0.
    pub(crate) messages: RangeInclusive<usize>,
    /// Five counts: executions or reductions beyond the open quantity, adds of orders that already rested,
    /// orders that the books rejected, messages with indexes not mapped to a symbol, and gaps in the sequence
    /// numbers of one symbol.
    pub(crate) counts: [u64; 5],
}

/// Selects the counters of contradictions, in the order of [`Contradictions::counts`].
#[inline(always)]
const fn contradictions(counters: &BuilderCounters) -> [u64; 5] {
    let BuilderCounters { beyond_qty, duplicate_order, refused, unmapped, symbol_gaps, .. } = *counters;
    [beyond_qty, duplicate_order, refused, unmapped, symbol_gaps]
}

impl Updates {
    /// Updates for a reference model, whose best levels are all read from its books.
    pub(crate) fn of_reference() -> Updates {
        Updates { reads_both_sides: true, ..Updates::default() }
    }

    #[cold]
    fn extend_tops(&mut self, index: usize) {
        self.tops.resize(index + 1, Top::default());
    }

    /// Removes the updates of the previous block and reserves capacity for `len` messages.
    pub(crate) fn start(&mut self, len: usize) {
        self.block += 1;
        self.list.clear();
        self.list.reserve(len);
        self.contradictions.clear();
    }

    /// Records the contradictions of `messages`: the growth of the counters from `before` to `after`, if any.
    #[inline]
    pub(crate) fn record(
        &mut self,
        before: &BuilderCounters,
        after: &BuilderCounters,
        messages: impl FnOnce() -> RangeInclusive<usize>,
    ) {
        let (before, after) = (contradictions(before), contradictions(after));
        let counts: [u64; 5] = std::array::from_fn(|kind| after[kind] - before[kind]);
        if counts.iter().sum::<u64>() > 0 {
            self.contradictions.push(Contradictions { messages: messages(), counts });
        }
    }
}

impl UpdateListener for Updates {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        self.list.push(*update);
    }
}

/// [`Updates`] of a protocol whose messages each change one side of a book at most.
///
/// After a message, the best level of the other side is that after the instrument's previous message. Reading
/// it from the books again would cost an access to memory that the message itself does not need. The first
/// message of an instrument in a block reads both sides.
pub(crate) struct OneSided<'a>(pub(crate) &'a mut Updates);

impl UpdateListener for OneSided<'_> {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0.on_update(update);
    }

    #[inline(always)]
    fn on_change(&mut self, change: &Change, sequence: Sequence, books: &impl BooksById, health: BookHealth) {
        let Updates { block, reads_both_sides, .. } = *self.0;
        let index = usize::from(change.instrument.0);
        if index >= self.0.tops.len() {
            self.0.extend_tops(index);
        }
        let top = &mut self.0.tops[index];
        let best = |side| best_of(books, change.instrument, side);
        if top.block != block || reads_both_sides {
            *top = Top { block, best: Side::BOTH.map(best) };
        } else {
            top.best[change.side as usize] = best(change.side);
        }
        let best = top.best;
        self.0.list.push(change.update_at(sequence.0, best, health));
    }
}

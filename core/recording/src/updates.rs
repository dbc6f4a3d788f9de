//! Book updates of a block of messages, and contradictions between the messages and the books, for any
//! protocol.

use std::ops::RangeInclusive;

use tickpath_feed::{BuilderCounters, UpdateListener};
use tickpath_types::MarketUpdate;

/// The book updates of a block of messages, in order, and the contradictions between messages and books.
/// `sequence` of an update is the number of its message in the file, from 1.
#[derive(Debug, Default)]
pub struct Updates {
    pub(crate) list: Vec<MarketUpdate>,
    pub(crate) contradictions: Vec<Contradictions>,
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
    /// Removes the updates of the previous block and reserves capacity for `len` messages.
    pub(crate) fn start(&mut self, len: usize) {
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

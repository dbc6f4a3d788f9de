//! Statistics of a day that determine the required size of the books, found by a replay.

use anyhow::ensure;
use tickpath_book::{BooksById, PackedBooks};
use tickpath_feed::{BookBuilder, IgnoreUpdates, MessageBooks};
use tickpath_nasdaq::itch50::{AddOrder, AddOrderMpid, OrderReplace};
use tickpath_types::Sequence;

use crate::day::StandardDay;
use crate::itch_books;

/// The numbers of orders, levels and references that the books must handle on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DayStatistics {
    /// Maximum number of orders that rest at a time.
    pub(crate) live_max: u32,
    /// Number of price levels when the number of resting orders was at its maximum.
    pub(crate) levels_at_peak: u32,
    /// Number of distinct order references.
    pub(crate) unique_refs: u64,
}

/// Replays a day once, message by message, checks its final state, and returns its statistics.
pub(crate) fn survey(day: &StandardDay, file: &[u8]) -> anyhow::Result<DayStatistics> {
    let mut builder: BookBuilder<PackedBooks> = itch_books::empty(&day.config);
    let mut refs = UsedReferences::default();
    let mut statistics = DayStatistics::default();
    for (message, sequence) in itch_books::frames(file).zip(1..) {
        builder.handle_message(Sequence(sequence), message, &mut IgnoreUpdates);
        let live = builder.books().order_count();
        refs.record(message)?;
        if live > statistics.live_max {
            (statistics.live_max, statistics.levels_at_peak) = (live, builder.books().level_count());
        }
    }
    itch_books::check(&builder, day)?;
    statistics.unique_refs = refs.unique;
    Ok(statistics)
}

/// The order references that a day assigned.
#[derive(Default)]
struct UsedReferences {
    /// One bit for each order reference, set once the day assigned it.
    seen: Vec<u64>,
    unique: u64,
}

impl UsedReferences {
    fn record(&mut self, message: &[u8]) -> anyhow::Result<()> {
        // All order messages have an order reference at offset 11. A replacement has the new reference after
        // it, at offset 19.
        let at = match message.first() {
            Some(&(AddOrder::TYPE | AddOrderMpid::TYPE)) => 11,
            Some(&OrderReplace::TYPE) => 19,
            _ => return Ok(()),
        };
        let Some(Ok(order_ref)) = message.get(at..at + 8).map(<[u8; 8]>::try_from) else { return Ok(()) };
        let order_ref = u64::from_be_bytes(order_ref);
        let (word, bit) = ((order_ref / 64) as usize, 1 << (order_ref % 64));
        ensure!(word < 1 << 32, "a reference of {order_ref} in a standard day");
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        self.unique += u64::from(self.seen[word] & bit == 0);
        self.seen[word] |= bit;
        Ok(())
    }
}

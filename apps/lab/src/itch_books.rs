//! Applies a whole day of ITCH 5.0 to the books of a feed, to time it, count instructions or survey the day.

use std::hint::black_box;

use anyhow::ensure;
use tickpath_book::{BookLimits, BooksById};
use tickpath_feed::{BookBuilder, MessageBooks, UpdateListener};
use tickpath_flowgen::ItchDayConfig;
use tickpath_lockfree::cpu::prefetch_index;
use tickpath_types::{InstrumentId, Sequence};

use crate::day::StandardDay;

/// Creates books with capacity for a day.
pub(crate) fn empty<B: BooksById>(config: &ItchDayConfig) -> BookBuilder<B> {
    BookBuilder::new(B::new(book_limits(config)))
}

pub(crate) fn book_limits(config: &ItchDayConfig) -> BookLimits {
    // While the generator moves reference prices, slightly more orders rest than the target.
    BookLimits::new(InstrumentId(config.symbols as u16), config.live + config.live / 4 + 1_000)
}

/// Decodes the messages of a day's file and applies them to the books of all securities.
#[inline(always)]
pub(crate) fn apply<B: BooksById>(builder: &mut BookBuilder<B>, file: &[u8], out: &mut impl UpdateListener) {
    builder.handle_batch(Sequence(1), frames(black_box(file)), out);
}

/// Distance of prefetching ahead of reading, in bytes: one page, where hardware prefetchers stop.
const FETCHED_AHEAD: usize = 4096;

/// Returns the messages of a BinaryFILE, Nasdaq's file format, whose framing has been checked.
pub(crate) fn frames(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = file;
    std::iter::from_fn(move || {
        prefetch_index(rest, FETCHED_AHEAD);
        let (prefix, behind) = rest.split_first_chunk()?;
        let (message, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes(*prefix)))?;
        rest = behind;
        Some(message)
    })
}

/// Checks that the books ended in the state that the day requires.
pub(crate) fn check<B: BooksById>(builder: &BookBuilder<B>, day: &StandardDay) -> anyhow::Result<()> {
    let counters = builder.counters();
    ensure!(builder.instruments().contradictions() == 0, "the books contradict the day: {counters:?}");
    ensure!(
        counters.messages == day.config.messages,
        "{} messages of {}",
        counters.messages,
        day.config.messages
    );
    let live = builder.books().order_count();
    ensure!(live == day.live, "{live} orders rest at the end, and {} should", day.live);
    let state_hash = builder.books().state_hash();
    ensure!(state_hash == day.state_hash, "the books end as {state_hash:#018x}");
    Ok(())
}

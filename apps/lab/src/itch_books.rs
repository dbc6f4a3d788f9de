//! A whole day of ITCH 5.0 through the feed's books: what is timed, counted and surveyed alike.

use std::hint::black_box;

use anyhow::ensure;
use tickpath_book::{BookLimits, BooksById};
use tickpath_feed::{BookBuilder, UpdateListener};
use tickpath_flowgen::ItchDayConfig;
use tickpath_lockfree::cpu::prefetch_index;
use tickpath_types::{InstrumentId, Sequence};

use crate::day::DayOutcome;

/// Books with room for a day.
pub(crate) fn empty<B: BooksById>(config: &ItchDayConfig) -> BookBuilder<B> {
    BookBuilder::new(B::new(book_limits(config)))
}

/// Some more than the target rest while books are moved.
const fn max_orders(config: &ItchDayConfig) -> u32 {
    config.live + config.live / 4 + 1_000
}

pub(crate) fn book_limits(config: &ItchDayConfig) -> BookLimits {
    BookLimits::new(InstrumentId(config.symbols as u16), max_orders(config))
}

/// Applies the messages of a day's file, decoded, to the books of all securities.
#[inline(always)]
pub(crate) fn apply<B: BooksById>(builder: &mut BookBuilder<B>, file: &[u8], out: &mut impl UpdateListener) {
    builder.handle_batch(Sequence(1), frames(black_box(file)), out);
}

/// Bytes that are fetched before they are read: one page, beyond which a CPU does not look by itself.
const FETCHED_AHEAD: usize = 4096;

/// The messages of a BinaryFILE whose framing has been checked.
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

/// Whether books ended as the day must lead to.
pub(crate) fn check<B: BooksById>(
    builder: &BookBuilder<B>,
    config: &ItchDayConfig,
    outcome: &DayOutcome,
) -> anyhow::Result<()> {
    let counters = builder.counters();
    let damage = counters.malformed + counters.unknown_order + counters.duplicate_order;
    let damage = damage + counters.beyond_qty + counters.refused + counters.crossed;
    ensure!(damage == 0, "the books contradict the day: {counters:?}");
    ensure!(counters.messages == config.messages, "{} messages of {}", counters.messages, config.messages);
    let live = builder.books().order_count();
    ensure!(live == outcome.live, "{live} orders rest at the end, and {} should", outcome.live);
    let state_hash = builder.books().state_hash();
    ensure!(state_hash == outcome.state_hash, "the books end as {state_hash:#018x}");
    Ok(())
}

//! The memory of each part of the books, measured as the growth of this process's resident memory.

use std::fs;

use tickpath_book::{BookLimits, BooksById, FastBooks, OrderBooks, OrderIndex, PackedBooks};
use tickpath_feed::{BookBuilder, IgnoreUpdates};
use tickpath_matching::Owner;
use tickpath_types::InstrumentId;

use super::prelude::*;
use crate::context::Effort;
use crate::day::StandardDay;
use crate::itch_books;

pub(super) const MEASUREMENTS: &[Measurement] = &[
    on_one_core(
        &[
            row("book_record_bytes", "bytes")
                .note(
                    "memory of the venue's books for one more resting order and its owner; what the order needs \
                     besides is stated and not in the value",
                )
                .goal(Goal::ValueAtMost(64.0))
                .not_judged(
                    "the venue's books; the books of a feed, a hash table of buckets and a window of levels, take up \
                     to twelve times as much",
                ),
            row("book_level_bytes", "bytes").note("memory of the venue's books for one more price level"),
            row("book_bytes", "bytes")
                .note("memory of the venue's books for one more instrument, without its orders and levels"),
        ],
        open,
    ),
    on_one_core(
        &[row("feed_bytes_per_order_500", "bytes")
            .note(FEED_NOTE)
            .goal(Goal::ValueAtMost(FEED_BYTES_PER_ORDER))],
        |lab| open_feed(lab, StandardDay::itch_500),
    ),
    on_one_core(
        &[row("feed_bytes_per_order_8000", "bytes")
            .note(FEED_NOTE)
            .goal(Goal::ValueAtMost(FEED_BYTES_PER_ORDER))],
        |lab| open_feed(lab, StandardDay::itch_8000),
    ),
];

const FEED_NOTE: &str = "all memory of a feed's books with the limits of the speed rows, after the whole day was \
                         applied, for each of the day's live orders at their peak";
/// Maximum memory of a feed's books in bytes for each live order.
const FEED_BYTES_PER_ORDER: f64 = 144.0;

/// Smaller and larger number of orders, levels and instruments to allocate. Even the smaller one needs more
/// memory than an allocator reuses.
const ORDERS: [u32; 2] = [1 << 20, 5 << 20];
const LEVELS: [u32; 2] = [1 << 20, 3 << 20];
const INSTRUMENTS: [u32; 2] = [32_000, 64_000];

fn open(lab: &Lab<'_>) -> anyhow::Result<Round> {
    let day = lab.day(StandardDay::itch_8000)?;
    let (statistics, symbols) = (day.statistics, day.standard.config.symbols);
    let books = |orders: u32, levels: u32, instruments: u16| {
        let limits = BookLimits { max_levels: levels, ..BookLimits::new(InstrumentId(instruments), orders) };
        FastBooks::<Owner>::new(limits)
    };
    let record = bytes_each(ORDERS, |orders| books(orders, 1, 1))?;
    let level = bytes_each(LEVELS, |levels| books(1, levels, 1))?;
    let book = bytes_each(INSTRUMENTS, |instruments| books(1, 1, instruments as u16))?;
    let limits = itch_books::book_limits(&day.standard.config);
    let index = memory_growth(|| OrderIndex::new(limits.max_orders))?;
    let direct = memory_growth(|| PackedBooks::new(limits))?;
    let per_order = |bytes: f64| bytes / f64::from(statistics.live_max);
    let note = format!(
        "in {} at its peak of {} live orders each takes besides: {:.1} bytes of the index (all of it, {index} bytes), \
         {:.1} of price levels ({} of {level:.0}) and {:.1} of its book's two sides ({symbols} books of {book:.0}); a \
         feed's books, whose index holds the orders, take {:.1} for each in all ({direct} bytes); all as the memory of this process grows, to a tenth of a byte",
        day.standard.name,
        statistics.live_max,
        per_order(index as f64),
        per_order(f64::from(statistics.levels_at_peak) * level),
        statistics.levels_at_peak,
        per_order(f64::from(symbols) * book),
        per_order(direct as f64),
    );
    Ok(once([Sample::with_note(record, note), level.into(), book.into()]))
}

/// Measures the books of a feed after a day.
fn open_feed(lab: &Lab<'_>, sizes: fn(Effort) -> StandardDay) -> anyhow::Result<Round> {
    let day = lab.day(sizes)?;
    let config = &day.standard.config;
    let mut checked = Ok(());
    let bytes = memory_growth(|| {
        let mut builder: BookBuilder<PackedBooks> = itch_books::empty(config);
        itch_books::apply(&mut builder, &day.file.bytes, &mut IgnoreUpdates);
        checked = itch_books::check(&builder, &day.standard);
        builder
    })?;
    checked?;
    let live_max = day.statistics.live_max;
    let note = format!("{bytes} bytes for {live_max} orders of {}", day.standard.name);
    Ok(once([Sample::with_note(bytes as f64 / f64::from(live_max), note)]))
}

/// Returns the bytes per object, rounded to a tenth. `make` allocates memory for the given number of objects.
fn bytes_each<T>([small, large]: [u32; 2], make: impl Fn(u32) -> T) -> anyhow::Result<f64> {
    let (of_small, of_large) = (memory_growth(|| make(small))?, memory_growth(|| make(large))?);
    ensure!(of_large > of_small, "{of_large} bytes for {large} and {of_small} for {small}");
    let each = (of_large - of_small) as f64 / f64::from(large - small);
    Ok((each * 10.0).round() / 10.0)
}

/// Returns the number of bytes by which the result of `make` enlarges this process's resident memory.
fn memory_growth<T>(make: impl FnOnce() -> T) -> anyhow::Result<u64> {
    let before = resident_bytes()?;
    let made = black_box(make());
    let after = resident_bytes()?;
    drop(made);
    Ok(after.saturating_sub(before))
}

/// Resident memory of this process, as the sum of its mappings: the kernel's counter in `statm` lags by some
/// pages for each core.
fn resident_bytes() -> anyhow::Result<u64> {
    const FILE: &str = "/proc/self/smaps_rollup";
    let text = fs::read_to_string(FILE).with_context(|| format!("cannot read {FILE}"))?;
    let kib = text.lines().find_map(|line| line.strip_prefix("Rss:")?.trim().strip_suffix("kB"));
    let kib: u64 = kib.with_context(|| format!("no Rss in {FILE}"))?.trim().parse()?;
    Ok(kib * 1_024)
}

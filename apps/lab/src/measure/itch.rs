//! Decoding a whole day of ITCH 5.0, and building every book of it.

use std::hint::black_box;

use anyhow::ensure;
use tickpath_book::{BookLimits, FastBooks, IndexLimits, OrderBooks, OrderIndex};
use tickpath_feed::{BookBuilder, UpdateListener};
use tickpath_nasdaq::itch50::{self, Checksum};
use tickpath_sim::ItchDayConfig;
use tickpath_types::{InstrumentId, MarketUpdate, Sequence};

use super::{Round, Sample};
use crate::context::Context;
use crate::day::{DayOutcome, StandardDay};

/// Messages framed before they are applied together.
const BATCH: usize = 64;

/// A day in memory, and what it must lead to.
struct Day {
    bytes: Vec<u8>,
    config: ItchDayConfig,
    outcome: DayOutcome,
}

pub(super) fn open_8000(context: Context) -> anyhow::Result<Round> {
    let day = Day::load(&context, &StandardDay::itch_8000(context.effort))?;
    Ok(Box::new(move || {
        Ok(vec![
            Sample::new("itch_decode", day.decode(&context)?),
            Sample::new("itch_books", day.books(&context)?),
        ])
    }))
}

pub(super) fn open_500(context: Context) -> anyhow::Result<Round> {
    let day = Day::load(&context, &StandardDay::itch_500(context.effort))?;
    Ok(Box::new(move || Ok(vec![Sample::new("itch_books_500", day.books(&context)?)])))
}

/// The books alone are timed, and the updates that they would send are nobody's.
struct Nobody;

impl UpdateListener for Nobody {
    #[inline]
    fn on_update(&mut self, _: &MarketUpdate) {}
}

impl Day {
    fn load(context: &Context, standard: &StandardDay) -> anyhow::Result<Day> {
        let bytes = standard.load(context.effort)?;
        Ok(Day { bytes, outcome: standard.outcome(), config: *standard.config() })
    }

    /// Nanoseconds a message, every field of it folded into the checksum.
    fn decode(&self, context: &Context) -> anyhow::Result<f64> {
        let mut listener = Checksum::default();
        let start = context.clock.ticks();
        let mut messages = 0;
        for message in frames(black_box(&self.bytes)) {
            itch50::decode(message, &mut listener)?;
            messages += 1;
        }
        let elapsed = context.clock.ticks() - start;
        ensure!(
            messages == self.config.messages,
            "{messages} messages of {} were there",
            self.config.messages
        );
        ensure!(black_box(listener.get()) == self.outcome.checksum, "the checksum is not the day's");
        Ok(self.nanos_each(context, elapsed))
    }

    /// Nanoseconds a message, decoded and applied to the books of all securities.
    fn books(&self, context: &Context) -> anyhow::Result<f64> {
        let mut builder = self.empty_books();
        let start = context.clock.ticks();
        let mut frames = frames(black_box(&self.bytes));
        let mut sequence = Sequence(1);
        loop {
            let mut batch = [&[] as &[u8]; BATCH];
            let mut count = 0;
            for (place, message) in batch.iter_mut().zip(&mut frames) {
                *place = message;
                count += 1;
            }
            if count == 0 {
                break;
            }
            builder.handle_batch(sequence, &batch[..count], &mut Nobody);
            sequence = Sequence(sequence.0 + count as u64);
        }
        let elapsed = context.clock.ticks() - start;
        let counters = builder.counters();
        let damage = counters.malformed + counters.unknown_order + counters.duplicate_order;
        let damage = damage + counters.beyond_qty + counters.refused + counters.crossed;
        ensure!(damage == 0, "the books contradict the day: {counters:?}");
        ensure!(
            counters.messages == self.config.messages,
            "{} messages of {}",
            counters.messages,
            self.config.messages
        );
        let live = builder.books().order_count();
        ensure!(live == self.outcome.live, "{live} orders rest at the end, and {} should", self.outcome.live);
        let state_hash = builder.books().state_hash();
        ensure!(state_hash == self.outcome.state_hash, "the books end as {state_hash:#018x}");
        Ok(self.nanos_each(context, elapsed))
    }

    fn empty_books(&self) -> BookBuilder<FastBooks<()>> {
        // Some more than the target rest while books are moved.
        let max_orders = self.config.live + self.config.live / 4 + 1_000;
        let books = FastBooks::new(BookLimits::new(InstrumentId(self.config.symbols as u16), max_orders));
        // A page has 1024 numbers, of which a quarter are given out.
        let max_pages = (self.config.messages / 256) as u32 + 64;
        let limits =
            IndexLimits { max_pages, max_pages_per_block: max_pages, ..IndexLimits::dense(max_orders) };
        BookBuilder::new(books, OrderIndex::new(limits))
    }

    fn nanos_each(&self, context: &Context, ticks: u64) -> f64 {
        context.clock.ticks_to_nanos(ticks).0 as f64 / self.config.messages as f64
    }
}

/// The messages of a BinaryFILE whose framing has been checked.
fn frames(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (prefix, behind) = rest.split_first_chunk()?;
        let (message, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes(*prefix)))?;
        rest = behind;
        Some(message)
    })
}

//! Files of recorded events, of DBN and LOBSTER: events into books.

use std::io::Read;
use std::marker::PhantomData;
use std::path::Path;
use std::time::{Duration, Instant};

use tickpath_book::{BooksById, FastBooks, Indexed};
use tickpath_capture::{
    CaptureError, EventKind, IgnoredReason, Position, ReadError, RecordedEvent, Recording, RecordingInfo,
    Status,
};
use tickpath_config::{Date, Zone};
use tickpath_types::InstrumentId;

use super::event_books::{EventBooks, instrument_id};
use crate::books::{BookPair, BookSize};
use crate::error::Result;
use crate::fold::Checksums;
use crate::moment::Calendar;
use crate::order_book_rows::RowCheck;
use crate::protocol::{RecordedProtocol, Source};
use crate::report::FileReport;
use crate::seen::{Seen, SeenTrade};
use crate::session::{PART_LEN, Session};
use crate::updates::Updates;

/// Events of a block that is read before any of it is applied.
const BLOCK_LEN: usize = 4_096;
/// One block in this number is read before it is applied, so that the cost of reading is known, where the others are
/// applied as they are read.
const READ_FIRST_EVERY: u64 = 16;
/// Instruments that the books have room for beyond those that the recording names at its start.
const INSTRUMENTS_MIN: usize = 1_024;

/// A format of recorded events.
pub(crate) trait EventFormat: 'static {
    /// The exchange's zone.
    const ZONE: Zone;
    /// Times never run backwards.
    const IS_ORDERED_BY_TIME: bool;

    /// The letter or digit that the format has for an event.
    fn code(kind: &EventKind) -> u8;

    /// The name of an event with a letter or digit.
    fn name(code: u8) -> &'static str;
}

/// One recording of a format of events.
pub(crate) struct Events<F> {
    info: RecordingInfo,
    format: PhantomData<F>,
}

impl<F: EventFormat> RecordedProtocol for Events<F> {
    type Message<'a> = RecordedEvent;
    type Books<B: BooksById> = EventBooks<B>;
    const IS_ORDERED_BY_TIME: bool = F::IS_ORDERED_BY_TIME;

    fn info(&self) -> RecordingInfo {
        self.info
    }

    fn books<B: BooksById>(&self, empty: B, _calendar: &Calendar) -> EventBooks<B> {
        EventBooks::new(empty, self.info)
    }

    fn orders<B: BooksById>(books: &EventBooks<B>) -> &B {
        books.books()
    }

    #[inline(never)]
    fn apply<B: BooksById>(
        books: &mut EventBooks<B>,
        first: u64,
        events: &[RecordedEvent],
        updates: &mut Updates,
    ) {
        for (index, event) in events.iter().enumerate() {
            books.apply_event(first + index as u64, index, event, updates);
        }
    }

    #[inline]
    fn ts_ns(event: &RecordedEvent) -> u64 {
        event.ts_ns
    }

    #[inline]
    fn is_snapshot(event: &RecordedEvent) -> bool {
        event.is_snapshot
    }

    fn see<'s>(event: &'s RecordedEvent, number: u64, source: Source<'s>) -> Seen<'s> {
        let instrument = instrument_id(event.instrument).map_or(0, |id| id.0);
        let mut seen = Seen::new(number, event.ts_ns, instrument, F::code(&event.kind));
        seen.symbol = source.symbols.get(event.instrument as usize).map(String::as_bytes);
        seen.is_snapshot = event.is_snapshot;
        match event.kind {
            EventKind::Add { level, .. } => {
                seen.order.is_add = true;
                seen.order.price = Some(level.price);
            }
            EventKind::Modify { level, .. } => seen.order.price = Some(level.price),
            EventKind::Replace { price, order_id, .. } => {
                seen.order.must_rest = true;
                seen.order.replaced = order_id;
                seen.order.price = Some(price);
            }
            EventKind::Delete { .. } | EventKind::Reduce { .. } => seen.order.must_rest = true,
            EventKind::Fill { order_id, qty, side, price, in_auction } => {
                // If another record has the outcome of fills, the trade is a separate one as well.
                let has_own_records = source.info.sums_fills;
                seen.order.is_execution = true;
                seen.order.must_rest = !has_own_records && !in_auction;
                let aggressor = side.filter(|_| !in_auction).map(|side| side.opposite());
                let counts = !has_own_records;
                seen.trade =
                    Some(SeenTrade { aggressor, counts, order_id, ..SeenTrade::new(price, qty, "executed") });
            }
            EventKind::Trade { order_id, price, qty, aggressor, is_hidden } => {
                let kind = match (is_hidden, source.info.sums_fills) {
                    (true, _) => "hidden",
                    (false, true) => "trade",
                    (false, false) => "cross",
                };
                seen.trade =
                    Some(SeenTrade { aggressor, order_id, ..SeenTrade::new(Some(price), qty, kind) });
            }
            EventKind::Status(Status::Trading(state)) => seen.state = Some(state),
            EventKind::Status(Status::System(stage)) => seen.stage = Some(stage),
            EventKind::Ignored(reason) => seen.is_malformed = is_malformed(reason),
            EventKind::Clear => {}
        }
        seen
    }

    #[inline]
    fn fold(event: &RecordedEvent, checksums: &mut Checksums) {
        checksums.fold.event(event);
    }

    fn type_name(code: u8) -> Option<&'static str> {
        Some(F::name(code))
    }
}

const fn is_malformed(reason: IgnoredReason) -> bool {
    !matches!(reason, IgnoredReason::OtherRecord | IgnoredReason::BrokenTrade)
}

/// A block of events and what ended it.
struct Block {
    events: Vec<RecordedEvent>,
    /// Positions at which they begin.
    positions: Vec<Position>,
    elapsed: Duration,
    is_last: bool,
}

/// Replays a recording whose session is on a day, where that is known; its rows are compared where they are given.
pub(super) fn replay<F: EventFormat>(
    path: &Path,
    mut recording: Recording,
    date: Option<Date>,
    mut rows: Option<RowCheck<Box<dyn Read + Send>>>,
    mut session: Session<'_>,
) -> Result<FileReport> {
    let meter = recording.meter().clone();
    let events = Events::<F> { info: recording.info(), format: PhantomData };
    let calendar = Calendar { date, ..session.options.calendar(events.info.time_base, F::ZONE) };
    let source = session.begin(&events, recording.format(), calendar)?;
    let mut pair = BookPair::<Events<F>>::NONE;
    let may_apply_at_once = session.may_apply_at_once();
    let mut block = Block {
        events: Vec::with_capacity(BLOCK_LEN),
        positions: Vec::with_capacity(BLOCK_LEN),
        elapsed: Duration::ZERO,
        is_last: false,
    };
    for block_number in 0_u64.. {
        if block.is_last || session.is_over(&meter) {
            break;
        }
        let is_read_first = !may_apply_at_once || block_number.is_multiple_of(READ_FIRST_EVERY);
        let at_once = pair.books.as_mut().filter(|_| !is_read_first);
        let is_applied = at_once.is_some();
        read(&mut recording, &mut block, &mut session, at_once);
        let source = Source { symbols: recording.symbols(), ..source };
        let wanted = session.wanted::<Events<F>>(&block.events, &source)?;
        let wanted = &block.events[..wanted];
        if !is_applied {
            session.tape.state.decode.record(block.elapsed, block.events.len());
        }
        let is_whole_file = block.is_last && session.number == 0;
        pair.create(&events, session.options, &calendar, || match is_whole_file {
            true => size_of(wanted),
            false => {
                let named = recording.symbols().len().max(INSTRUMENTS_MIN).min(usize::from(u16::MAX));
                BookSize::of_file(&meter, InstrumentId(named as u16))
            }
        });
        let first = session.number + 1;
        if let Some(rows) = &mut rows {
            (first..).zip(wanted).for_each(|(number, event)| rows.message(number, event));
        }
        let place = |index: usize| format!("message {} ({})", first + index as u64, block.positions[index]);
        if is_applied {
            session.see::<Events<F>>(wanted, source, pair.orders(), place)?;
            session.tape.state.books.record(block.elapsed, wanted.len());
            continue;
        }
        session.apply(wanted, source, &mut pair, block.elapsed, place)?;
    }
    let is_whole = session.ended.is_none() && session.tape.state.integrity.read_error.is_none();
    let rows = rows.map(|rows| rows.finish(is_whole));
    session.tape.state.integrity.unreported = pair.books.as_ref().map_or(0, EventBooks::unreported);
    Ok(session.conclude(path, &events, source, pair, rows))
}

/// The room that the events of a whole file need.
fn size_of(events: &[RecordedEvent]) -> BookSize {
    let last = events.iter().filter_map(|event| instrument_id(event.instrument)).max();
    BookSize { max_instrument: last.unwrap_or_default(), max_orders: events.len() as u32 + 1 }
}

/// Reads the next events, folds them and applies each at once to `books`, if they are given; what reading and unpacking
/// the file took is not counted.
///
/// At once means that what the CPU guessed and learned about an event when it was read, it still knows when it is applied.
fn read(
    recording: &mut Recording,
    block: &mut Block,
    session: &mut Session<'_>,
    mut books: Option<&mut EventBooks<Indexed<FastBooks>>>,
) {
    block.events.clear();
    block.positions.clear();
    let len_max = if books.is_some() { PART_LEN } else { BLOCK_LEN };
    session.updates.start(if books.is_some() { PART_LEN } else { 0 });
    let mut event = RecordedEvent::NOTHING;
    let read_before = recording.meter().read_ns();
    let begin = Instant::now();
    while block.events.len() < len_max && !block.is_last {
        match recording.read_event(&mut event) {
            Ok(true) => {
                session.tape.state.checksums.fold.event(&event);
                if let Some(books) = &mut books {
                    let index = block.events.len();
                    let number = session.number + 1 + index as u64;
                    books.apply_event(number, index, &event, &mut session.updates);
                }
                block.events.push(event);
                block.positions.push(recording.position());
            }
            Ok(false) => block.is_last = true,
            Err(CaptureError::Read {
                source: ReadError::Malformed { position: Position::Line(line), what },
                ..
            }) => {
                session.tape.state.integrity.malformed.add(|| format!("line {line} ({what})"));
            }
            Err(CaptureError::Read { source, .. }) => {
                session.read_failed(&source);
                block.is_last = true;
            }
            Err(error) => {
                session.read_failed(&error);
                block.is_last = true;
            }
        }
    }
    let unpacking = Duration::from_nanos(recording.meter().read_ns() - read_before);
    block.elapsed = begin.elapsed().saturating_sub(unpacking);
}

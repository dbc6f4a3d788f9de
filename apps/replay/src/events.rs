//! DBN and LOBSTER: recorded events into books.

use std::path::Path;
use std::time::{Duration, Instant};

use tickpath_book::{FastBooks, Indexed, PlainBooks};
use tickpath_capture::{
    CaptureError, Depth, Format, LobsterBookReader, Position, ReadError, RecordedEvent, Recording,
    order_book_beside,
};
use tickpath_types::InstrumentId;

use crate::apply::ApplyMessages;
use crate::check::Twin;
use crate::event_books::{EventBooks, instrument_id};
use crate::integrity::Judgement;
use crate::lobster_rows::RowCheck;
use crate::message::{Source, Types};
use crate::report::FileReport;
use crate::run::{ReplayError, session_date};
use crate::session::{BookSize, PART_LEN, Session};
use tickpath_config::Zone;

/// Events of a block that is read before any of it is applied.
const BLOCK_LEN: usize = 4_096;
/// Where events are applied as they are read, one block in so many is not: it tells what reading takes by itself.
const READ_FIRST_EVERY: u64 = 16;
/// Instruments that the books have room for beyond those that the recording names at its start.
const INSTRUMENTS_MIN: usize = 1_024;

type Books = EventBooks<Indexed<FastBooks>>;

/// A block of events and what ended it.
struct Block {
    events: Vec<RecordedEvent>,
    /// Where each of them begins.
    positions: Vec<Position>,
    elapsed: Duration,
    is_last: bool,
}

pub(crate) fn replay(
    path: &Path,
    mut recording: Recording,
    mut session: Session<'_>,
) -> Result<FileReport, ReplayError> {
    let (format, info, meter) = (recording.format(), recording.info(), recording.meter().clone());
    let (zone, types) = match format {
        Format::Dbn => (Zone::UTC, Types::Dbn),
        _ => (Zone::EASTERN, Types::Lobster),
    };
    let mut calendar = session.options.calendar(info.time_base, zone);
    calendar.date = session_date(path, format, session.options);
    session.tape.exporter.count_from(&calendar);
    session.tape.set_price_decimals(info.price_decimals);
    let mut rows = row_check(path, &session)?;
    let mut books: Option<Books> = None;
    let mut twin: Option<Twin<EventBooks<Indexed<PlainBooks>>>> = None;
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
        let at_once = books.as_mut().filter(|_| !is_read_first);
        let is_applied = at_once.is_some();
        read(&mut recording, &mut block, &mut session, at_once);
        let source =
            Source { format, types, info, calendar, symbols: recording.symbols(), is_snapshot: false };
        let wanted = session.wanted(&block.events, &source)?;
        let events = &block.events[..wanted];
        if !is_applied {
            session.decode.record(block.elapsed, block.events.len());
        }
        if books.is_none() && !session.options.decode_only {
            let size = match block.is_last && session.number == 0 {
                true => size_of(events).with_options(session.options),
                false => {
                    let named = recording.symbols().len().max(INSTRUMENTS_MIN).min(usize::from(u16::MAX));
                    BookSize::of_file(session.options, &meter, InstrumentId(named as u16))
                }
            };
            books = Some(EventBooks::new(size.empty(), info));
            twin = session
                .options
                .check_every
                .map(|every| Twin::new(EventBooks::new(size.empty(), info), every));
        }
        let first = session.number + 1;
        if let Some(rows) = &mut rows {
            (first..).zip(events).for_each(|(number, event)| rows.message(number, event));
        }
        let place = |index: usize| format!("message {} ({})", first + index as u64, block.positions[index]);
        if is_applied {
            session.see(events, source, books.as_ref().map(ApplyMessages::books), place)?;
            session.books.record(block.elapsed, events.len());
            continue;
        }
        session.apply(events, source, &mut books, &mut twin, block.elapsed, place)?;
    }
    let judgement = Judgement {
        is_full_depth: info.depth == Depth::Full,
        is_ordered_by_time: format == Format::Lobster,
        has_books: books.is_some(),
    };
    let is_whole = session.ended.is_none() && session.tape.integrity.read_error.is_none();
    let rows = rows.map(|rows| rows.finish(is_whole));
    let source = Source { format, types, info, calendar, symbols: recording.symbols(), is_snapshot: false };
    session.tape.integrity.unreported = books.as_ref().map_or(0, EventBooks::unreported);
    let names = |instrument| session.tape.name(instrument);
    let twin = twin
        .zip(books.as_ref())
        .map(|(twin, books)| twin.finish::<RecordedEvent>(ApplyMessages::books(books), &names));
    let books = books.as_ref().map(ApplyMessages::books);
    Ok(FileReport::of(path, source, &mut session, books, twin, rows, judgement))
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
    mut books: Option<&mut Books>,
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
                session.fold.event(&event);
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
                session.tape.integrity.malformed.add(|| format!("line {line} ({what})"));
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

/// The order book file to hold a LOBSTER message file against, when a check is wanted and there is one.
fn row_check(
    path: &Path,
    session: &Session<'_>,
) -> Result<Option<RowCheck<Box<dyn std::io::Read + Send>>>, ReplayError> {
    let options = session.options;
    if options.check_every.is_none() && options.order_book.is_none() {
        return Ok(None);
    }
    let Some(file) = options.order_book.clone().or_else(|| order_book_beside(path)) else { return Ok(None) };
    let name = file.display().to_string();
    Ok(Some(RowCheck::new(LobsterBookReader::open(&file, session.stop())?, name)))
}

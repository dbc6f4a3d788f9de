//! Databento DBN: orders (mbo) as events; of every other schema levels into books, trades and definitions into the report.

use std::path::Path;
use std::time::{Duration, Instant};

use tickpath_book::{BooksById, Order};
use tickpath_capture::{
    DbnDefinition, DbnFile, DbnLevels, DbnRecord, DbnSchema, Depth, EventKind, Format, IgnoredReason,
    RecordingFile, RecordingInfo, TimeBase,
};
use tickpath_config::Zone;
use tickpath_feed::{BuilderCounters, UpdateListener};
use tickpath_types::{InstrumentId, MarketUpdate, OrderId, Price, Qty, SIDE_NOT_STATED, Side, UpdateKind};

use super::event_books::{instrument_id, market_update};
use super::events::{self, EventFormat};
use crate::books::{BookPair, BookSize};
use crate::error::{ReplayError, Result};
use crate::file_format::FileFormat;
use crate::fold::Checksums;
use crate::moment::Calendar;
use crate::options::Exports;
use crate::protocol::{RecordedProtocol, Source};
use crate::report::FileReport;
use crate::seen::{Seen, SeenTrade};
use crate::session::Session;
use crate::statistics::gcd;
use crate::updates::Updates;

/// Records of a block.
const BLOCK_LEN: usize = 1_024;
/// Instruments that the books have room for beyond those that the recording names at its start.
const INSTRUMENTS_MIN: usize = 1_024;
/// Bits of an order's number that say which level it is.
const RANK_BITS: u32 = 8;

/// The line of the registry.
pub(crate) static FILE: FileFormat = FileFormat {
    format: Format::Dbn,
    json_name: "dbn",
    title: |report| match report.schema {
        None => "DBN, market by order".to_owned(),
        Some(schema) => format!("DBN, {}", schema.name()),
    },
    has_dates: true,
    date_in_name: |_| None,
    has_order_book_files: false,
    replay,
};

fn replay(path: &Path, file: RecordingFile, session: Session<'_>) -> Result<Vec<FileReport>> {
    Ok(vec![match DbnFile::of(file)? {
        DbnFile::Orders(recording) => {
            let date = session.options.date;
            events::replay::<DbnOrders>(path, recording, date, None, session)?
        }
        DbnFile::Levels(file) => replay_levels(path, *file, session)?,
    }])
}

/// DBN of schema mbo.
struct DbnOrders;

impl EventFormat for DbnOrders {
    const ZONE: Zone = Zone::UTC;
    const IS_ORDERED_BY_TIME: bool = false;

    fn code(kind: &EventKind) -> u8 {
        match kind {
            EventKind::Add { .. } => b'A',
            EventKind::Delete { .. } | EventKind::Reduce { .. } => b'C',
            EventKind::Modify { .. } | EventKind::Replace { .. } => b'M',
            EventKind::Fill { .. } => b'F',
            EventKind::Trade { .. } => b'T',
            EventKind::Clear => b'R',
            EventKind::Ignored(IgnoredReason::OtherRecord) => b'N',
            EventKind::Ignored(_) | EventKind::Status(_) => b'?',
        }
    }

    fn name(code: u8) -> &'static str {
        action_name(code)
    }
}

/// One recording of a schema.
struct Levels {
    schema: DbnSchema,
}

impl RecordedProtocol for Levels {
    type Message<'a> = DbnRecord;
    type Books<B: BooksById> = LevelBooks<B>;
    const IS_ORDERED_BY_TIME: bool = false;

    fn info(&self) -> RecordingInfo {
        let level_count = self.schema.level_count() as u32;
        RecordingInfo {
            time_base: TimeBase::UnixEpoch,
            depth: Depth::Partial { levels: Some(level_count).filter(|count| *count > 0) },
            sums_fills: true,
            price_decimals: 9,
        }
    }

    fn books<B: BooksById>(&self, empty: B, _calendar: &Calendar) -> LevelBooks<B> {
        LevelBooks { books: empty, counters: BuilderCounters::default() }
    }

    fn orders<B: BooksById>(books: &LevelBooks<B>) -> &B {
        &books.books
    }

    fn apply<B: BooksById>(
        books: &mut LevelBooks<B>,
        first: u64,
        records: &[DbnRecord],
        updates: &mut Updates,
    ) {
        for (index, record) in records.iter().enumerate() {
            let before = books.counters;
            books.counters.messages += 1;
            let has_levels = matches!(record.action, b'A' | b'C' | b'M' | b'R' | b'T' | b'N');
            match instrument_id(record.instrument).filter(|id| *id <= books.books.limits().max_instrument) {
                Some(instrument) if has_levels => {
                    books.set(instrument, record);
                    updates.on_update(&books.update(first + index as u64, instrument, record));
                }
                Some(_) => {}
                None => books.counters.refused += 1,
            }
            updates.note(&before, &books.counters, || index..=index);
        }
    }

    fn check_exports(&self, exports: &Exports) -> Result {
        let has_levels = self.schema.level_count() > 0;
        let wanted = [
            (exports.orders.is_some(), "--orders", false),
            (exports.bbo.is_some(), "--bbo", has_levels),
            (exports.depth.is_some(), "--depth-out", has_levels),
            (exports.trades.is_some(), "--trades", self.schema != DbnSchema::Definition),
        ];
        match wanted.into_iter().find(|(is_wanted, _, has_rows)| *is_wanted && !has_rows) {
            Some((_, option, _)) => Err(ReplayError::NothingFor { schema: self.schema.name(), option }),
            None => Ok(()),
        }
    }

    fn ts_ns(record: &DbnRecord) -> u64 {
        record.ts_ns
    }

    fn is_snapshot(record: &DbnRecord) -> bool {
        record.is_snapshot
    }

    fn see<'s>(record: &'s DbnRecord, number: u64, source: Source<'s>) -> Seen<'s> {
        let instrument = instrument_id(record.instrument).map_or(0, |id| id.0);
        let code = match record.action {
            known @ (b'A' | b'C' | b'M' | b'R' | b'T' | b'D') => known,
            // Neither an event of the book nor a trade.
            b'N' | b'?' => b'N',
            _ => b'?',
        };
        let mut seen = Seen::new(number, record.ts_ns, instrument, code);
        seen.symbol = source.symbols.get(record.instrument as usize).map(String::as_bytes);
        seen.is_snapshot = record.is_snapshot;
        let prices = record.levels.iter().flatten().flatten().map(|(price, _)| price.0.unsigned_abs());
        let tick = prices.reduce(gcd).and_then(|tick| i64::try_from(tick).ok());
        seen.order.price = tick.map(Price);
        match code {
            b'A' => seen.order.is_add = true,
            b'T' => {
                let seen_trade = SeenTrade::new(record.price, record.qty, "trade");
                seen.trade = Some(SeenTrade { aggressor: record.side, ..seen_trade });
                seen.is_malformed = record.price.is_none();
            }
            b'?' => seen.is_malformed = true,
            _ => {}
        }
        seen
    }

    fn fold(record: &DbnRecord, checksums: &mut Checksums) {
        let side = record.side.map_or(2, |side| side as u64);
        let price = record.price.map_or(u64::MAX, |price| price.0.cast_unsigned());
        let event =
            [record.ts_ns, u64::from(record.instrument), u64::from(record.action), side, price, record.qty.0];
        checksums.fold.fields(&event);
        for (price, qty) in record.levels.iter().flatten().flatten() {
            checksums.fold.fields(&[price.0.cast_unsigned(), qty.0]);
        }
    }

    fn type_name(code: u8) -> Option<&'static str> {
        Some(action_name(code))
    }
}

/// The name of a record with an action, of every schema.
const fn action_name(code: u8) -> &'static str {
    match code {
        b'A' => "Add",
        b'C' => "Cancel",
        b'M' => "Modify",
        b'F' => "Fill",
        b'T' => "Trade",
        b'R' => "Clear book",
        b'D' => "Definition",
        b'N' => "Other record",
        _ => "Record with a field out of range",
    }
}

/// Replays a file of another schema.
fn replay_levels(path: &Path, mut file: DbnLevels, mut session: Session<'_>) -> Result<FileReport> {
    let (schema, meter) = (file.schema(), file.meter().clone());
    let levels = Levels { schema };
    let calendar = session.options.calendar(levels.info().time_base, Zone::UTC);
    let source = session.begin(&levels, Format::Dbn, calendar)?;
    let mut pair = BookPair::<Levels>::NONE;
    let mut records: Vec<DbnRecord> = Vec::with_capacity(BLOCK_LEN);
    let mut definitions: Vec<DbnDefinition> = Vec::new();
    let mut is_last = false;
    while !is_last && !session.is_over(&meter) {
        let read_before = meter.read_ns();
        let begin = Instant::now();
        records.clear();
        while records.len() < BLOCK_LEN && !is_last {
            match file.next_record() {
                Ok(Some(record)) => {
                    Levels::fold(&record, &mut session.tape.state.checksums);
                    records.push(record);
                    definitions.extend(file.take_definition());
                }
                Ok(None) => is_last = true,
                Err(error) => {
                    session.read_failed(&error);
                    is_last = true;
                }
            }
        }
        let unpacking = Duration::from_nanos(meter.read_ns() - read_before);
        let elapsed = begin.elapsed().saturating_sub(unpacking);
        let source = Source { symbols: file.symbols(), ..source };
        let wanted = session.wanted::<Levels>(&records, &source)?;
        session.tape.state.decode.record(elapsed, records.len());
        if schema.level_count() > 0 {
            let named = file.symbols().len().max(INSTRUMENTS_MIN).min(usize::from(u16::MAX)) as u16;
            let max_orders = u32::from(named) * 2 * schema.level_count() as u32;
            let size = BookSize { max_instrument: InstrumentId(named), max_orders };
            pair.create(&levels, session.options, &calendar, || size);
        }
        let first = session.number + 1;
        let place = |index: usize| format!("message {}", first + index as u64);
        session.apply(&records[..wanted], source, &mut pair, elapsed, place)?;
    }
    let mut report = session.conclude(path, &levels, source, pair, None);
    report.schema = Some(schema);
    let chosen = &session.options.symbols;
    definitions.retain(|definition| chosen.is_empty() || chosen.contains(&definition.symbol));
    report.definitions = definitions;
    if schema == DbnSchema::Definition {
        // There is nothing of which books could be built.
        report.reservations.clear();
    }
    Ok(report)
}

/// Books of levels: each level is one order, whose number is made of instrument, side and rank.
struct LevelBooks<B> {
    books: B,
    counters: BuilderCounters,
}

impl<B: BooksById> LevelBooks<B> {
    fn set(&mut self, instrument: InstrumentId, record: &DbnRecord) {
        let id = |side: Side, rank: usize| {
            OrderId((u64::from(instrument.0) << RANK_BITS | rank as u64) << 1 | side as u64 | 1 << 40)
        };
        let is_changed = |known: Option<Order<()>>, level: Option<(Price, Qty)>| {
            known.map(|order| (order.price, order.qty)) != level
        };
        for side in Side::BOTH {
            let levels = &record.levels[side.index()];
            // A level that moves to another rank leaves its old one first.
            for (rank, level) in levels.iter().enumerate() {
                if is_changed(self.books.find(id(side, rank)), *level) {
                    self.books.remove(instrument, id(side, rank));
                }
            }
            for (rank, level) in levels.iter().enumerate() {
                if let Some((price, qty)) = *level
                    && self.books.find(id(side, rank)).is_none()
                {
                    let order = Order { id: id(side, rank), instrument, side, price, qty, data: () };
                    self.counters.refused += u64::from(self.books.add(order).is_err());
                }
            }
        }
    }

    fn update(&self, number: u64, instrument: InstrumentId, record: &DbnRecord) -> MarketUpdate {
        MarketUpdate {
            price: record.price.map_or(0, |price| price.0),
            qty: record.qty.0,
            side: record.side.map_or(SIDE_NOT_STATED, |side| side as u8),
            ..market_update(&self.books, number, record.ts_ns, instrument, UpdateKind::Replace)
        }
    }
}

//! DBN without orders: levels into books, trades and definitions into the report.

use std::path::Path;
use std::time::{Duration, Instant};

use tickpath_book::{BooksById, FastBooks, Indexed, Order, PlainBooks};
use tickpath_capture::{
    DbnDefinition, DbnLevels, DbnRecord, DbnSchema, Depth, Format, RecordingInfo, TimeBase,
};
use tickpath_config::Zone;
use tickpath_feed::{BuilderCounters, UpdateListener};
use tickpath_types::{
    BookHealth, InstrumentId, MarketUpdate, OrderId, Price, Qty, SIDE_NOT_STATED, Side, UpdateKind,
};

use crate::apply::{ApplyMessages, Updates};
use crate::check::Twin;
use crate::event_books::instrument_id;
use crate::integrity::Judgement;
use crate::message::{RecordedMessage, Source, Types, blank, trade};
use crate::report::FileReport;
use crate::run::ReplayError;
use crate::session::{BookSize, Session};
use crate::statistics::gcd;
use crate::tape::{Seen, SeenTrade};

/// Records of a block.
const BLOCK_LEN: usize = 1_024;
/// Instruments that the books have room for beyond those that the recording names at its start.
const INSTRUMENTS_MIN: usize = 1_024;
/// Bits of an order's number that say which level it is.
const RANK_BITS: u32 = 8;

/// Replays a DBN file without orders.
pub(crate) fn replay(
    path: &Path,
    mut file: DbnLevels,
    mut session: Session<'_>,
) -> Result<FileReport, ReplayError> {
    let (schema, meter) = (file.schema(), file.meter().clone());
    check_exports(schema, &session)?;
    let info = RecordingInfo {
        time_base: TimeBase::UnixEpoch,
        depth: Depth::Partial { levels: Some(schema.level_count() as u32).filter(|count| *count > 0) },
        sums_fills: true,
        price_decimals: 9,
    };
    let calendar = session.options.calendar(info.time_base, Zone::UTC);
    session.tape.exporter.count_from(&calendar);
    session.tape.set_price_decimals(info.price_decimals);
    let wants_books = schema.level_count() > 0 && !session.options.decode_only;
    let mut books: Option<LevelBooks<Indexed<FastBooks>>> = None;
    let mut twin: Option<Twin<LevelBooks<Indexed<PlainBooks>>>> = None;
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
                    fold(&mut session, &record);
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
        let symbols = file.symbols();
        let source =
            Source { format: Format::Dbn, types: Types::Dbn, info, calendar, symbols, is_snapshot: false };
        let wanted = session.wanted(&records, &source)?;
        session.decode.record(elapsed, records.len());
        if books.is_none() && wants_books {
            let named = file.symbols().len().max(INSTRUMENTS_MIN).min(usize::from(u16::MAX)) as u16;
            let max_orders = u32::from(named) * 2 * schema.level_count() as u32;
            let size =
                BookSize { max_instrument: InstrumentId(named), max_orders }.with_options(session.options);
            books = Some(LevelBooks::new(size.empty()));
            let every = session.options.check_every;
            twin = every.map(|every| Twin::new(LevelBooks::new(size.empty()), every));
        }
        let first = session.number + 1;
        let place = |index: usize| format!("message {}", first + index as u64);
        session.apply(&records[..wanted], source, &mut books, &mut twin, elapsed, place)?;
    }
    let judgement = Judgement { is_full_depth: false, is_ordered_by_time: false, has_books: books.is_some() };
    let source = Source {
        format: Format::Dbn,
        types: Types::Dbn,
        info,
        calendar,
        symbols: file.symbols(),
        is_snapshot: false,
    };
    let names = |instrument| session.tape.name(instrument);
    let twin = twin
        .zip(books.as_ref())
        .map(|(twin, books)| twin.finish::<DbnRecord>(ApplyMessages::books(books), &names));
    let books = books.as_ref().map(ApplyMessages::books);
    let mut report = FileReport::of(path, source, &mut session, books, twin, None, judgement);
    report.schema = Some(schema);
    let is_chosen = |definition: &DbnDefinition| {
        let chosen = &session.options.symbols;
        chosen.is_empty() || chosen.contains(&definition.symbol)
    };
    definitions.retain(is_chosen);
    report.definitions = definitions;
    if schema == DbnSchema::Definition {
        // There is nothing of which books could be built.
        report.reservations.clear();
    }
    Ok(report)
}

/// Refuses tables that could have no row.
fn check_exports(schema: DbnSchema, session: &Session<'_>) -> Result<(), ReplayError> {
    let exports = &session.options.exports;
    let wanted = [
        (exports.orders.is_some(), "--orders", false),
        (exports.bbo.is_some(), "--bbo", schema.level_count() > 0),
        (exports.depth.is_some(), "--depth-out", schema.level_count() > 0),
        (exports.trades.is_some(), "--trades", schema != DbnSchema::Definition),
    ];
    match wanted.into_iter().find(|(is_wanted, _, has_rows)| *is_wanted && !has_rows) {
        Some((_, option, _)) => Err(ReplayError::NothingFor { schema: schema.name(), option }),
        None => Ok(()),
    }
}

/// Takes all fields into the checksum.
fn fold(session: &mut Session<'_>, record: &DbnRecord) {
    let side = record.side.map_or(2, |side| side as u64);
    let price = record.price.map_or(u64::MAX, |price| price.0.cast_unsigned());
    let event =
        [record.ts_ns, u64::from(record.instrument), u64::from(record.action), side, price, record.qty.0];
    session.fold.fields(&event);
    for (price, qty) in record.levels.iter().flatten().flatten() {
        session.fold.fields(&[price.0.cast_unsigned(), qty.0]);
    }
}

impl RecordedMessage for DbnRecord {
    fn ts_ns(&self) -> u64 {
        self.ts_ns
    }

    fn is_snapshot(&self) -> bool {
        self.is_snapshot
    }

    fn see<'s>(&'s self, number: u64, source: Source<'s>) -> Seen<'s> {
        let instrument = instrument_id(self.instrument).map_or(0, |id| id.0);
        let code = match self.action {
            known @ (b'A' | b'C' | b'M' | b'R' | b'T' | b'D') => known,
            // Neither an event of the book nor a trade.
            b'N' | b'?' => b'N',
            _ => b'?',
        };
        let mut seen = blank(number, self.ts_ns, instrument, code);
        seen.symbol = source.symbols.get(self.instrument as usize).map(String::as_bytes);
        seen.is_snapshot = self.is_snapshot;
        let prices = self.levels.iter().flatten().flatten().map(|(price, _)| price.0.unsigned_abs());
        let tick = prices.reduce(gcd).and_then(|tick| i64::try_from(tick).ok());
        seen.order_price = tick.map(Price);
        match code {
            b'A' => seen.is_add = true,
            b'T' => {
                let seen_trade = trade(self.price, self.qty, "trade");
                seen.trade = Some(SeenTrade { aggressor: self.side, ..seen_trade });
                seen.is_malformed = self.price.is_none();
            }
            b'?' => seen.is_malformed = true,
            _ => {}
        }
        seen
    }
}

/// Books of levels: each level is one order, whose number is made of instrument, side and rank.
struct LevelBooks<B> {
    books: B,
    counters: BuilderCounters,
}

impl<B: BooksById> LevelBooks<B> {
    fn new(books: B) -> LevelBooks<B> {
        LevelBooks { books, counters: BuilderCounters::default() }
    }

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
        let best =
            |side| self.books.best(instrument, side).map_or((0, 0), |level| (level.price.0, level.qty.0));
        let ((bid_price, bid_qty), (ask_price, ask_qty)) = (best(Side::Buy), best(Side::Sell));
        MarketUpdate {
            sequence: number,
            ts_event: record.ts_ns,
            order_id: 0,
            price: record.price.map_or(0, |price| price.0),
            qty: record.qty.0,
            bid_price,
            bid_qty,
            ask_price,
            ask_qty,
            instrument: instrument.0,
            kind: UpdateKind::Replace as u8,
            side: record.side.map_or(SIDE_NOT_STATED, |side| side as u8),
            health: BookHealth::Live as u8,
            reason: 0,
            trading: 0,
            reserved: 0,
        }
    }
}

impl<B: BooksById> ApplyMessages<DbnRecord> for LevelBooks<B> {
    type Books = B;

    fn apply(&mut self, first: u64, records: &[DbnRecord], updates: &mut Updates) {
        for (index, record) in records.iter().enumerate() {
            let before = self.counters;
            self.counters.messages += 1;
            let has_levels = matches!(record.action, b'A' | b'C' | b'M' | b'R' | b'T' | b'N');
            match instrument_id(record.instrument).filter(|id| *id <= self.books.limits().max_instrument) {
                Some(instrument) if has_levels => {
                    self.set(instrument, record);
                    updates.on_update(&self.update(first + index as u64, instrument, record));
                }
                Some(_) => {}
                None => self.counters.refused += 1,
            }
            updates.note(&before, &self.counters, || index..=index);
        }
    }

    fn books(&self) -> &B {
        &self.books
    }
}

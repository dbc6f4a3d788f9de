//! Databento DBN: schema mbo as order events; the other schemas as books of levels, trades and definitions.

use tickpath_book::{BooksById, Order};
use tickpath_feed::{BuilderCounters, Change, UpdateListener};
use tickpath_types::{
    BookHealth, InstrumentId, MarketUpdate, Nanos, OrderId, Price, Qty, SIDE_NOT_STATED, Side, UpdateKind,
    Zone,
};

use super::event_books::instrument_id;
use super::events::EventFormat;
use crate::digest::Checksums;
use crate::error::{Error, Result};
use crate::protocol::{RecordedProtocol, Source};
use crate::selection::Tables;
use crate::statistics::gcd;
use crate::updates::Updates;
use crate::view::{MessageView, TradeInfo};
use crate::{Depth, EventKind, IgnoredReason, RecordingInfo, TimeBase};

/// Number of bits of an order id that encode the rank of its level; rank 0 is the best level.
const RANK_BITS: u32 = 8;

/// Maximum number of levels per side in a record.
pub const DBN_LEVELS_MAX: usize = 10;

/// A DBN schema without orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DbnSchema {
    /// The best level of each side after each event that changed it, and every trade. Schema TBBO is read as
    /// this one.
    Mbp1,
    /// The best ten levels of each side after each event that changed them, and every trade.
    Mbp10,
    /// Every trade.
    Trades,
    /// Definitions of instruments.
    Definition,
}

impl DbnSchema {
    /// Name of the schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DbnSchema::Mbp1 => "mbp-1",
            DbnSchema::Mbp10 => "mbp-10",
            DbnSchema::Trades => "trades",
            DbnSchema::Definition => "definition",
        }
    }

    /// Number of levels per side in the schema's records.
    #[must_use]
    pub const fn level_count(self) -> usize {
        match self {
            DbnSchema::Mbp1 => 1,
            DbnSchema::Mbp10 => DBN_LEVELS_MAX,
            DbnSchema::Trades | DbnSchema::Definition => 0,
        }
    }
}

/// One level of a side: price and quantity.
pub type DbnLevel = (Price, Qty);

/// One record of a DBN file without orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DbnRecord {
    /// Time of the event at the venue, in nanoseconds since 1970-01-01 UTC.
    pub ts_ns: u64,
    /// Index of the instrument's symbol in [`Source::symbols`].
    pub instrument: u32,
    /// Action letter: `A`dd, `C`ancel, `M`odify, clea`R`, `T`rade, `N`one; `D` for a definition, else `?`.
    pub action: u8,
    /// Side of the event's order, or of a trade's incoming order; `None` if not recorded.
    pub side: Option<Side>,
    /// The price of the event, if it has one.
    pub price: Option<Price>,
    /// The quantity of the event.
    pub qty: Qty,
    /// True if the record is part of a snapshot.
    pub is_snapshot: bool,
    /// The best levels of bids and of asks after the event, best first.
    pub levels: [[Option<DbnLevel>; DBN_LEVELS_MAX]; 2],
}

/// The event format of DBN files of schema mbo.
pub struct DbnOrders;

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

/// A recording of a DBN schema without orders.
pub struct DbnLevelRecords {
    /// Schema of the recording.
    pub schema: DbnSchema,
}

impl RecordedProtocol for DbnLevelRecords {
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

    fn books<B: BooksById>(&self, empty: B, _midnight: Nanos) -> LevelBooks<B> {
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
            updates.record(&before, &books.counters, || index..=index);
        }
    }

    fn check_tables(&self, tables: Tables<bool>) -> Result {
        let has_levels = self.schema.level_count() > 0;
        let requested = [
            (tables.orders, "--orders", false),
            (tables.bbo, "--bbo", has_levels),
            (tables.depth, "--depth-out", has_levels),
            (tables.trades, "--trades", self.schema != DbnSchema::Definition),
        ];
        match requested.into_iter().find(|(is_requested, _, has_rows)| *is_requested && !has_rows) {
            Some((_, option, _)) => Err(Error::NothingFor { schema: self.schema.name(), option }),
            None => Ok(()),
        }
    }

    fn ts_ns(record: &DbnRecord) -> u64 {
        record.ts_ns
    }

    fn is_snapshot(record: &DbnRecord) -> bool {
        record.is_snapshot
    }

    fn view<'s>(record: &'s DbnRecord, number: u64, source: Source<'s>) -> MessageView<'s> {
        let instrument = instrument_id(record.instrument).map_or(0, |id| id.0);
        let code = match record.action {
            known @ (b'A' | b'C' | b'M' | b'R' | b'T' | b'D') => known,
            // A record that is neither an event of the book nor a trade.
            b'N' | b'?' => b'N',
            _ => b'?',
        };
        let mut view = MessageView::new(number, record.ts_ns, instrument, code);
        view.symbol = source.symbols.get(record.instrument as usize).map(String::as_bytes);
        view.is_snapshot = record.is_snapshot;
        let prices = record.levels.iter().flatten().flatten().map(|(price, _)| price.0.unsigned_abs());
        let tick = prices.reduce(gcd).and_then(|tick| i64::try_from(tick).ok());
        view.order.price = tick.map(Price);
        match code {
            b'A' => view.order.is_add = true,
            b'T' => {
                let trade_info = TradeInfo::new(record.price, record.qty, "trade");
                view.trade = Some(TradeInfo { aggressor: record.side, ..trade_info });
                view.is_malformed = record.price.is_none();
            }
            b'?' => view.is_malformed = true,
            _ => {}
        }
        view
    }

    fn digest(record: &DbnRecord, checksums: &mut Checksums) {
        let side = record.side.map_or(2, |side| side as u64);
        let price = record.price.map_or(u64::MAX, |price| price.0.cast_unsigned());
        let event =
            [record.ts_ns, u64::from(record.instrument), u64::from(record.action), side, price, record.qty.0];
        checksums.others.fields(&event);
        for (price, qty) in record.levels.iter().flatten().flatten() {
            checksums.others.fields(&[price.0.cast_unsigned(), qty.0]);
        }
    }

    fn type_name(code: u8) -> Option<&'static str> {
        Some(action_name(code))
    }
}

/// The name of a record's action, in any schema.
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

/// Books of levels: each level is one order, whose id encodes instrument, side and rank.
pub struct LevelBooks<B> {
    books: B,
    counters: BuilderCounters,
}

impl<B: BooksById> LevelBooks<B> {
    fn set(&mut self, instrument: InstrumentId, record: &DbnRecord) {
        let id = |side: Side, rank: usize| {
            OrderId((u64::from(instrument.0) << RANK_BITS | rank as u64) << 1 | side as u64)
        };
        let is_changed = |known: Option<Order<()>>, level: Option<(Price, Qty)>| {
            known.map(|order| (order.price, order.qty)) != level
        };
        for side in Side::BOTH {
            let levels = &record.levels[side.index()];
            // A level that moves to another rank is removed from its old rank first.
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
        let (kind, price, qty) = (UpdateKind::Replace, record.price.unwrap_or(Price(0)), record.qty);
        let change = Change { kind, price, qty, ..Change::status(instrument, Nanos(record.ts_ns)) };
        let side = record.side.map_or(SIDE_NOT_STATED, |side| side as u8);
        MarketUpdate { side, ..change.update(number, &self.books, BookHealth::Live) }
    }
}

//! The symbol cache: the symbols of a session and their latest values.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tickpath_lockfree::table;
use tickpath_shm::SegmentWriter;
use tickpath_ticks::message::{Quote, Status, SymbolDefinition, Tick, TickKind, Trade};
use tickpath_types::{BookHealth, Price, PriceLevel, Qty, Symbol, TopOfBook};

/// The attributes of a symbol, which the server sends before the symbol's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolAttributes {
    /// The symbol's name.
    pub symbol: Symbol,
    /// Price from which the change of the last price is computed.
    pub reference_price: Price,
    /// Tick size: every price is a multiple of it.
    pub tick_size: Price,
}

/// One symbol's attributes and latest values, as [`Market::read_into`] returns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketRow {
    /// The symbol's instrument number in the session.
    pub instrument: u16,
    /// The symbol's name and attributes.
    pub attributes: SymbolAttributes,
    /// Best prices, last trade, trading state, and health (whether these values can be trusted).
    pub top: TopOfBook,
    /// Quantity of the symbol traded in the session.
    pub volume: u64,
    /// Number of ticks received for the symbol in the session.
    pub ticks: u64,
}

/// The symbol cache of a session, which any number of threads may read. Its [`MarketWriter`] waits for
/// readers only when it defines a symbol.
pub struct Market {
    session: u64,
    attributes: Mutex<Vec<Option<SymbolAttributes>>>,
    quotes: table::Reader<TopOfBook>,
    volumes: Box<[AtomicU64]>,
    ticks: Box<[AtomicU64]>,
}

impl Market {
    /// Creates a market without a session or symbols.
    #[must_use]
    pub fn empty() -> Market {
        MarketWriter::new(0, 0, None).market.into_new()
    }

    /// Returns the session's number; 0 before the first session.
    #[must_use]
    pub const fn session(&self) -> u64 {
        self.session
    }

    /// Returns the highest instrument number plus one.
    #[must_use]
    pub fn rows_end(&self) -> usize {
        self.volumes.len()
    }

    /// Reads every defined symbol into `rows`, which is cleared first. A symbol that is being written keeps
    /// the values that `rows` had for it.
    pub fn read_into(&self, rows: &mut Vec<MarketRow>) {
        let attributes = self.attributes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = std::mem::take(rows).into_iter().peekable();
        let mut found = Vec::with_capacity(kept.len());
        for (index, attributes) in attributes.iter().enumerate() {
            let Some(attributes) = *attributes else { continue };
            while kept.next_if(|row| usize::from(row.instrument) < index).is_some() {}
            let old = kept.next_if(|row| usize::from(row.instrument) == index).map(|row| row.top);
            found.push(MarketRow {
                instrument: index as u16,
                attributes,
                top: self.quotes.try_read(index).unwrap_or(old.unwrap_or_default()),
                volume: self.volumes[index].load(Ordering::Relaxed),
                ticks: self.ticks[index].load(Ordering::Relaxed),
            });
        }
        *rows = found;
    }

    fn into_new(self: Arc<Self>) -> Market {
        Arc::into_inner(self).expect("the writer is dropped")
    }
}

/// The writer of a [`Market`] and of the shared-memory segment with the same rows, if there is one.
pub struct MarketWriter {
    market: Arc<Market>,
    quotes: table::Writer<TopOfBook>,
    /// Values last written to `quotes`. Each tick is applied to this copy, which is then written again.
    latest: Vec<TopOfBook>,
    names: Vec<Option<Symbol>>,
    segment: Option<SegmentWriter>,
}

impl MarketWriter {
    /// Creates the writer of a session with instruments 1 to `symbol_count`. The segment must have
    /// `symbol_count + 1` rows.
    #[must_use]
    pub fn new(session: u64, symbol_count: u16, segment: Option<SegmentWriter>) -> MarketWriter {
        let rows = usize::from(symbol_count) + 1;
        let (quotes, reader) = table::table(rows);
        let counters = || (0..rows).map(|_| AtomicU64::new(0)).collect();
        let market = Market {
            session,
            attributes: Mutex::new(vec![None; rows]),
            quotes: reader,
            volumes: counters(),
            ticks: counters(),
        };
        MarketWriter {
            market: Arc::new(market),
            quotes,
            latest: vec![TopOfBook::default(); rows],
            names: vec![None; rows],
            segment,
        }
    }

    /// Returns the market, for sharing with readers.
    #[must_use]
    pub fn market(&self) -> &Arc<Market> {
        &self.market
    }

    /// Returns the shared-memory segment, if there is one.
    pub fn segment(&mut self) -> Option<&mut SegmentWriter> {
        self.segment.as_mut()
    }

    /// Removes the segment from the writer and returns it.
    pub fn take_segment(&mut self) -> Option<SegmentWriter> {
        self.segment.take()
    }

    /// Records a symbol's name and attributes. Returns false if the name is invalid or the instrument number
    /// has no row.
    pub fn define(&mut self, definition: &SymbolDefinition) -> bool {
        let index = usize::from(definition.header.instrument.get());
        let Some(symbol) = definition.symbol() else { return false };
        let mut attributes = self.market.attributes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(row) = attributes.get_mut(index) else { return false };
        *row = Some(SymbolAttributes {
            symbol,
            reference_price: Price(definition.reference_price.get()),
            tick_size: Price(definition.tick_size.get()),
        });
        drop(attributes);
        self.names[index] = Some(symbol);
        self.market.volumes[index].store(definition.volume.get(), Ordering::Relaxed);
        if let Some(segment) = &mut self.segment {
            // Fails only if the segment rejects the name; the row then has no name.
            let _ = segment.name(index, symbol.as_str());
        }
        true
    }

    /// Returns an instrument's name; `None` if the instrument was not defined.
    #[inline]
    #[must_use]
    pub fn name(&self, instrument: u16) -> Option<Symbol> {
        self.names.get(usize::from(instrument)).copied().flatten()
    }

    /// Applies a tick to the cache; returns false if its instrument has no row.
    #[inline]
    pub fn apply(&mut self, tick: &Tick) -> bool {
        let index = usize::from(tick.header.instrument.get());
        let Some(latest) = self.latest.get_mut(index) else { return false };
        latest.ts_event = tick.ts_generate.get();
        latest.health = BookHealth::Live as u8;
        match tick.kind() {
            Some(TickKind::Quote(quote)) => set_quote(latest, quote),
            Some(TickKind::Trade(trade)) => {
                set_trade(latest, trade);
                self.market.volumes[index].store(trade.volume.get(), Ordering::Relaxed);
            }
            Some(TickKind::Status(status)) => set_status(latest, status),
            None => {}
        }
        let ticks = &self.market.ticks[index];
        ticks.store(ticks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let written = self.quotes.write(index, latest).is_ok();
        if let Some(segment) = &mut self.segment {
            return written && segment.write(index, latest).is_ok();
        }
        written
    }

    /// Marks a symbol, or all symbols if `instrument` is 0, as stale: its values may be wrong until its next
    /// tick.
    pub fn mark_stale(&mut self, instrument: u16) {
        let one = usize::from(instrument);
        let range =
            if instrument == 0 { 0..self.latest.len() } else { one..(one + 1).min(self.latest.len()) };
        for index in range {
            let latest = &mut self.latest[index];
            if latest.ts_event == 0 {
                continue;
            }
            latest.health = BookHealth::Stale as u8;
            // The writes cannot fail: the tables have as many rows as `latest`.
            let _ = self.quotes.write(index, latest);
            if let Some(segment) = &mut self.segment {
                let _ = segment.write(index, latest);
            }
        }
    }
}

#[inline]
fn set_quote(top: &mut TopOfBook, quote: &Quote) {
    let level =
        |side: Option<(Price, u32)>| PriceLevel::of(side.map(|(price, qty)| (price, Qty(qty.into()))));
    (top.bid, top.ask) = (level(quote.bid()), level(quote.ask()));
}

#[inline]
fn set_trade(top: &mut TopOfBook, trade: &Trade) {
    top.set_last(Price(trade.price.get()), Qty(u64::from(trade.qty.get())));
}

#[cold]
fn set_status(top: &mut TopOfBook, status: &Status) {
    // An unknown state code is stored as received; `TopOfBook::trading_state` returns `None` for it.
    top.trading_state = status.state;
}

#[cfg(test)]
mod tests {
    use tickpath_ticks::message::Place;
    use tickpath_types::{InstrumentId, Nanos};

    use super::*;

    #[test]
    fn a_row_has_the_latest_of_its_symbol_and_is_stale_until_the_next() {
        let mut writer = MarketWriter::new(9, 2, None);
        let place =
            |instrument| Place { instrument: InstrumentId(instrument), symbol_sequence: 1, sequence: 1 };
        for (instrument, name) in [(1, "A"), (2, "B"), (3, "C")] {
            let symbol = Symbol::new(name).unwrap();
            let definition = SymbolDefinition::new(place(instrument), symbol, Price(100), Price(1), 7);
            assert_eq!(writer.define(&definition), instrument < 3);
        }
        let quote = |instrument| Quote::new(place(instrument), Nanos(5), (Price(1), 2), (Price(3), 4), 0);
        assert!(writer.apply(&quote(2).into()));
        assert!(writer.apply(&Trade::new(place(2), Nanos(6), Price(2), 5, None, 12, 0).into()));
        assert!(!writer.apply(&quote(3).into()));
        let mut rows = Vec::new();
        writer.market().read_into(&mut rows);
        assert_eq!((rows.len(), rows[0].volume, rows[0].top), (2, 7, TopOfBook::default()));
        let found = rows[1];
        assert_eq!((found.attributes.symbol.as_str(), found.volume, found.ticks), ("B", 12, 2));
        assert_eq!((found.top.bid(), found.top.last()), (Some((Price(1), Qty(2))), Some((Price(2), Qty(5)))));
        writer.mark_stale(0);
        writer.market().read_into(&mut rows);
        assert_eq!(
            rows.iter().map(|row| row.top.health()).collect::<Vec<_>>(),
            [BookHealth::Live, BookHealth::Stale]
        );
        writer.apply(&quote(2).into());
        writer.market().read_into(&mut rows);
        assert_eq!(rows[1].top.health(), BookHealth::Live);
        writer.mark_stale(2);
        writer.mark_stale(77);
        assert_eq!(Market::empty().rows_end(), 1);
    }
}

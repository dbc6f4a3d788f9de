//! What the messages say, message by message: counts, statistics, contradictions, exports.

use tickpath_capture::PRICE_DECIMALS;
use tickpath_types::{
    MarketUpdate, Price, Qty, ScaledPrice, Side, SystemEventCode, TradingState, UpdateKind,
};

use crate::exports::Exporter;
use crate::integrity::{Integrity, MarketState};
use crate::moment::Calendar;
use crate::options::ReplayOptions;
use crate::run::ReplayError;
use crate::statistics::SymbolStatistics;

/// One message as the tape sees it, whatever its format.
#[derive(Clone, Debug)]
pub(crate) struct Seen<'a> {
    /// Its number in the file, from 1.
    pub(crate) number: u64,
    pub(crate) ts_ns: u64,
    /// Id in the books; 0 for the whole system.
    pub(crate) instrument: u16,
    /// Of a recording of several channels, which: each has times of its own.
    pub(crate) channel: u8,
    /// Its type, an index into the counts.
    pub(crate) code: u8,
    /// The symbol, where the message tells it, perhaps with blanks behind it.
    pub(crate) symbol: Option<&'a [u8]>,
    /// The state of trading that it publishes.
    pub(crate) state: Option<TradingState>,
    /// The stage of the session that it publishes.
    pub(crate) stage: Option<SystemEventCode>,
    pub(crate) is_malformed: bool,
    /// A part of a snapshot: it builds the book and is in no statistics.
    pub(crate) is_snapshot: bool,
    /// True when it is about an order that must rest.
    pub(crate) needs_order: bool,
    /// The price of an add or replacement, or what the prices of levels are multiples of: it shows the tick.
    pub(crate) order_price: Option<Price>,
    pub(crate) is_add: bool,
    /// An execution of a resting order.
    pub(crate) is_execution: bool,
    /// The order whose place this message's order takes; 0 for none.
    pub(crate) replaced: u64,
    /// A trade; without a price it is at the price of the resting order.
    pub(crate) trade: Option<SeenTrade>,
}

/// A trade as a message reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenTrade {
    pub(crate) price: Option<Price>,
    pub(crate) qty: Qty,
    /// Side of the incoming order, where the message tells it.
    pub(crate) aggressor: Option<Side>,
    /// Against what, in a word.
    pub(crate) kind: &'static str,
    /// False when it is reported once more elsewhere.
    pub(crate) counts: bool,
    pub(crate) order_id: u64,
}

/// The best bid and ask with their quantities; a quantity of 0 means there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bbo {
    pub(crate) bid: (i64, u64),
    pub(crate) ask: (i64, u64),
}

impl Bbo {
    fn of(update: &MarketUpdate) -> Bbo {
        Bbo { bid: (update.bid_price, update.bid_qty), ask: (update.ask_price, update.ask_qty) }
    }

    const fn has_both(self) -> bool {
        self.bid.1 > 0 && self.ask.1 > 0
    }
}

/// What the tape knows of one instrument.
#[derive(Debug, Default)]
pub(crate) struct TapeInstrument {
    pub(crate) symbol: Option<String>,
    /// True when its statistics, book and exports are wanted.
    pub(crate) is_chosen: bool,
    pub(crate) trading: Option<TradingState>,
    pub(crate) bbo: Bbo,
    pub(crate) statistics: SymbolStatistics,
}

/// The window of messages that are counted, in the recording's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl Window {
    /// Everything.
    pub(crate) const WHOLE: Window = Window { from_ns: 0, to_ns: u64::MAX };

    /// The window of the options in a recording that starts at `first_ns`.
    pub(crate) fn resolve(
        options: &ReplayOptions,
        calendar: &Calendar,
        first_ns: u64,
    ) -> Result<Window, ReplayError> {
        let resolve = |moment: Option<crate::Moment>, default| match moment {
            Some(moment) => moment.in_recording(calendar, first_ns).ok_or(ReplayError::NoDates),
            None => Ok(default),
        };
        let window = Window { from_ns: resolve(options.from, 0)?, to_ns: resolve(options.to, u64::MAX)? };
        if window.from_ns < window.to_ns { Ok(window) } else { Err(ReplayError::EmptyWindow) }
    }

    pub(crate) const fn contains(self, ts_ns: u64) -> bool {
        self.from_ns <= ts_ns && ts_ns < self.to_ns
    }
}

/// Counts, statistics and contradictions of one recording.
pub(crate) struct Tape<'a> {
    /// Messages in the window by type.
    pub(crate) counts: [u64; 256],
    pub(crate) integrity: Integrity,
    /// Index by id in the books.
    pub(crate) instruments: Vec<TapeInstrument>,
    pub(crate) exporter: &'a mut Exporter,
    pub(crate) window: Window,
    /// Times of the first and last message in the window.
    pub(crate) span_ns: Option<(u64, u64)>,
    /// Messages that are parts of snapshots.
    pub(crate) snapshot_count: u64,
    /// Decimals of the units of prices.
    pub(crate) price_decimals: u8,
    chosen: Vec<String>,
    /// The stage of the session that was published last.
    stage: Option<SystemEventCode>,
    /// By channel.
    last_ts_ns: Box<[u64; 256]>,
}

/// What a tape keeps of one recording, while another one of the same file is written on.
pub(crate) struct TapeState {
    counts: [u64; 256],
    snapshot_count: u64,
    integrity: Integrity,
    instruments: Vec<TapeInstrument>,
    window: Window,
    span_ns: Option<(u64, u64)>,
    stage: Option<SystemEventCode>,
    /// By channel.
    last_ts_ns: Box<[u64; 256]>,
}

impl TapeState {
    /// Before the first message.
    pub(crate) fn new() -> TapeState {
        TapeState {
            counts: [0; 256],
            snapshot_count: 0,
            integrity: Integrity::default(),
            instruments: Vec::new(),
            window: Window::WHOLE,
            span_ns: None,
            stage: None,
            last_ts_ns: Box::new([0; 256]),
        }
    }

    /// The trading states of these instruments are not known any more.
    pub(crate) fn forget(&mut self, instruments: &[u16]) {
        for number in instruments {
            if let Some(instrument) = self.instruments.get_mut(usize::from(*number)) {
                instrument.trading = None;
            }
        }
    }
}

impl<'a> Tape<'a> {
    pub(crate) fn new(options: &ReplayOptions, exporter: &'a mut Exporter) -> Tape<'a> {
        Tape {
            counts: [0; 256],
            integrity: Integrity::default(),
            instruments: Vec::new(),
            exporter,
            window: Window::WHOLE,
            span_ns: None,
            snapshot_count: 0,
            price_decimals: PRICE_DECIMALS,
            chosen: options.symbols.clone(),
            stage: None,
            last_ts_ns: Box::new([0; 256]),
        }
    }

    /// Sets the decimals of the units of prices.
    pub(crate) const fn set_price_decimals(&mut self, decimals: u8) {
        self.price_decimals = decimals;
        self.exporter.set_price_decimals(decimals);
    }

    /// Goes over to another recording, whose state this one's takes the place of.
    pub(crate) fn swap(&mut self, state: &mut TapeState) {
        use std::mem::swap;
        swap(&mut self.counts, &mut state.counts);
        swap(&mut self.snapshot_count, &mut state.snapshot_count);
        swap(&mut self.integrity, &mut state.integrity);
        swap(&mut self.instruments, &mut state.instruments);
        swap(&mut self.window, &mut state.window);
        swap(&mut self.span_ns, &mut state.span_ns);
        swap(&mut self.stage, &mut state.stage);
        swap(&mut self.last_ts_ns, &mut state.last_ts_ns);
    }

    /// Whether the session's messages were said to be over.
    pub(crate) fn is_end_seen(&self) -> bool {
        self.stage == Some(SystemEventCode::EndOfMessages)
    }

    /// The symbol of an instrument, or its number.
    pub(crate) fn name(&self, instrument: u16) -> String {
        let symbol = self.instruments.get(usize::from(instrument)).and_then(|known| known.symbol.clone());
        symbol.unwrap_or_else(|| format!("#{instrument}"))
    }

    /// Takes the name of an instrument.
    pub(crate) fn learn(&mut self, id: u16, symbol: &[u8]) {
        self.instrument(id, Some(symbol));
    }

    fn instrument(&mut self, id: u16, symbol: Option<&[u8]>) -> &mut TapeInstrument {
        let index = usize::from(id);
        if index >= self.instruments.len() {
            let is_chosen = self.chosen.is_empty();
            self.instruments
                .resize_with(index + 1, || TapeInstrument { is_chosen, ..TapeInstrument::default() });
        }
        let instrument = &mut self.instruments[index];
        if instrument.symbol.is_none()
            && let Some(symbol) =
                symbol.and_then(|symbol| std::str::from_utf8(symbol).ok()).map(str::trim_end)
            && !symbol.is_empty()
        {
            instrument.is_chosen =
                self.chosen.is_empty() || self.chosen.iter().any(|chosen| chosen == symbol);
            instrument.symbol = Some(symbol.to_owned());
        }
        instrument
    }

    /// Takes one message, and what it did to the books; `None` when it did nothing, `place` says where it is.
    pub(crate) fn message(
        &mut self,
        seen: &Seen<'_>,
        update: Option<&MarketUpdate>,
        has_books: bool,
        place: impl Fn() -> String,
    ) -> Result<(), ReplayError> {
        let is_counted = self.window.contains(seen.ts_ns);
        self.counts[usize::from(seen.code)] += u64::from(is_counted);
        let in_window = is_counted && !seen.is_snapshot;
        if in_window {
            self.span_ns = Some((self.span_ns.map_or(seen.ts_ns, |(first, _)| first), seen.ts_ns));
        }
        if seen.is_malformed {
            self.integrity.malformed.add(place);
            return Ok(());
        }
        self.stage = seen.stage.or(self.stage);
        if seen.is_snapshot {
            return self.snapshot(seen, update, is_counted);
        }
        let last_ts_ns = &mut self.last_ts_ns[usize::from(seen.channel)];
        if seen.ts_ns < std::mem::replace(last_ts_ns, seen.ts_ns) {
            self.integrity.time_backwards.add(&place);
        }
        // What tells of a book's state alone did nothing to an order.
        let is_applied = update.is_some_and(|update| update.kind() != Some(UpdateKind::Status));
        if seen.needs_order && !is_applied && has_books {
            self.integrity.unknown_references.add(&place);
        }
        let stage = self.stage;
        let instrument = self.instrument(seen.instrument, seen.symbol);
        instrument.trading = seen.state.or(instrument.trading);
        if let Some(price) = seen.order_price {
            instrument.statistics.learn_tick(price);
        }
        let bbo = update.map(Bbo::of);
        if let Some(bbo) = bbo.filter(|bbo| bbo.has_both() && bbo.bid.0 >= bbo.ask.0) {
            let state = MarketState { stage, trading: instrument.trading };
            let price = |units| ScaledPrice { units, decimals: self.price_decimals };
            let words = || format!("{} (bid {} at ask {})", place(), price(bbo.bid.0), price(bbo.ask.0));
            self.integrity.crossed.add(state, words);
        }
        if in_window {
            self.observe(seen, update, bbo)?;
        } else if let Some(bbo) = bbo {
            self.instruments[usize::from(seen.instrument)].bbo = bbo;
        }
        Ok(())
    }

    /// A part of a snapshot: the book is that of the moment after it, and nothing happened.
    fn snapshot(
        &mut self,
        seen: &Seen<'_>,
        update: Option<&MarketUpdate>,
        is_counted: bool,
    ) -> Result<(), ReplayError> {
        self.snapshot_count += u64::from(is_counted);
        let instrument = self.instrument(seen.instrument, seen.symbol);
        instrument.trading = seen.state.or(instrument.trading);
        if let Some(price) = seen.order_price {
            instrument.statistics.learn_tick(price);
        }
        let instrument = &self.instruments[usize::from(seen.instrument)];
        if is_counted && instrument.is_chosen && self.exporter.wants_orders() {
            let symbol = instrument.symbol.as_deref().unwrap_or_default();
            self.exporter.order(seen, symbol, update)?;
        }
        Ok(())
    }

    /// Statistics and exports of a message in the window.
    fn observe(
        &mut self,
        seen: &Seen<'_>,
        update: Option<&MarketUpdate>,
        bbo: Option<Bbo>,
    ) -> Result<(), ReplayError> {
        let instrument = &mut self.instruments[usize::from(seen.instrument)];
        let symbol = instrument.symbol.as_deref().unwrap_or_default();
        let statistics = &mut instrument.statistics;
        statistics.messages += 1;
        statistics.adds += u64::from(seen.is_add);
        statistics.executions += u64::from(seen.is_execution);
        if let Some(trade) = seen.trade.filter(|trade| trade.counts) {
            let executed = update.filter(|update| update.kind() == Some(UpdateKind::Trade));
            let price = trade.price.or(executed.map(|update| Price(update.price)));
            if let Some(price) = price.filter(|_| !trade.qty.is_zero()) {
                statistics.trade(price, trade.qty);
            }
            if instrument.is_chosen {
                // Of an order that rested the side is known; of any other trade only what the message says.
                let of_order = executed.filter(|_| seen.is_execution);
                let aggressor = trade.aggressor.or(of_order.and_then(MarketUpdate::aggressor));
                self.exporter.trade(seen, symbol, &SeenTrade { price, aggressor, ..trade })?;
            }
        }
        if instrument.is_chosen && self.exporter.wants_orders() {
            self.exporter.order(seen, symbol, update)?;
        }
        if let Some(bbo) = bbo {
            if bbo.has_both() && bbo.ask.0 > bbo.bid.0 {
                statistics.spread(bbo.ask.0.abs_diff(bbo.bid.0));
            }
            if bbo != instrument.bbo {
                instrument.bbo = bbo;
                if instrument.is_chosen {
                    self.exporter.bbo(seen.ts_ns, seen.number, symbol, bbo)?;
                }
            }
        }
        Ok(())
    }
}

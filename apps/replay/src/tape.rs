//! What the messages say, message by message: counts, statistics, contradictions, exports.

use tickpath_capture::PRICE_DECIMALS;
use tickpath_types::{Decimal, MarketUpdate, Price, SystemEventCode, TradingState, UpdateKind};

use crate::cost::CostMeter;
use crate::error::{ReplayError, Result};
use crate::exports::Exporter;
use crate::fold::Checksums;
use crate::integrity::{Integrity, MarketState};
use crate::moment::{Calendar, Moment};
use crate::options::ReplayOptions;
use crate::seen::{Bbo, Seen, SeenTrade};
use crate::statistics::SymbolStatistics;

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
    pub(crate) fn resolve(options: &ReplayOptions, calendar: &Calendar, first_ns: u64) -> Result<Window> {
        let resolve = |moment: Option<Moment>, default| match moment {
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

/// Counts, statistics, contradictions and costs of one recording.
pub(crate) struct RecordingState {
    pub(crate) decode: CostMeter,
    pub(crate) books: CostMeter,
    pub(crate) checksums: Checksums,
    /// Messages in the window by type.
    pub(crate) counts: [u64; 256],
    /// Messages that are parts of snapshots.
    pub(crate) snapshot_count: u64,
    pub(crate) integrity: Integrity,
    /// Index by id in the books.
    pub(crate) instruments: Vec<TapeInstrument>,
    pub(crate) window: Window,
    /// The window was resolved, which takes a first message.
    pub(crate) has_window: bool,
    /// Times of the first and last message in the window.
    pub(crate) span_ns: Option<(u64, u64)>,
    /// The stage of the session that was published last.
    stage: Option<SystemEventCode>,
    /// By channel.
    last_ts_ns: Box<[u64; 256]>,
}

/// Takes the messages of recordings, one at a time, to counts, statistics and exports.
pub(crate) struct Tape<'a> {
    /// Of the recording at hand.
    pub(crate) state: RecordingState,
    pub(crate) exporter: &'a mut Exporter,
    /// Decimals of the units of prices.
    pub(crate) price_decimals: u8,
    chosen: Vec<String>,
}

impl RecordingState {
    /// Before the first message.
    pub(crate) fn new() -> RecordingState {
        RecordingState {
            decode: CostMeter::new(),
            books: CostMeter::new(),
            checksums: Checksums::default(),
            counts: [0; 256],
            snapshot_count: 0,
            integrity: Integrity::default(),
            instruments: Vec::new(),
            window: Window::WHOLE,
            has_window: false,
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
        let chosen = options.symbols.clone();
        Tape { state: RecordingState::new(), exporter, price_decimals: PRICE_DECIMALS, chosen }
    }

    /// Sets the decimals of the units of prices.
    pub(crate) const fn set_price_decimals(&mut self, decimals: u8) {
        self.price_decimals = decimals;
        self.exporter.set_price_decimals(decimals);
    }

    /// Whether the session's messages were said to be over.
    pub(crate) fn is_end_seen(&self) -> bool {
        self.state.stage == Some(SystemEventCode::EndOfMessages)
    }

    /// The symbol of an instrument, or its number.
    pub(crate) fn name(&self, instrument: u16) -> String {
        let symbol =
            self.state.instruments.get(usize::from(instrument)).and_then(|known| known.symbol.clone());
        symbol.unwrap_or_else(|| format!("#{instrument}"))
    }

    /// Takes the name of an instrument.
    pub(crate) fn learn(&mut self, id: u16, symbol: &[u8]) {
        self.instrument(id, Some(symbol));
    }

    fn instrument(&mut self, id: u16, symbol: Option<&[u8]>) -> &mut TapeInstrument {
        let index = usize::from(id);
        if index >= self.state.instruments.len() {
            let is_chosen = self.chosen.is_empty();
            self.state
                .instruments
                .resize_with(index + 1, || TapeInstrument { is_chosen, ..TapeInstrument::default() });
        }
        let instrument = &mut self.state.instruments[index];
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
    ) -> Result {
        let is_counted = self.state.window.contains(seen.ts_ns);
        self.state.counts[usize::from(seen.code)] += u64::from(is_counted);
        let in_window = is_counted && !seen.is_snapshot;
        if in_window {
            self.state.span_ns =
                Some((self.state.span_ns.map_or(seen.ts_ns, |(first, _)| first), seen.ts_ns));
        }
        if seen.is_malformed {
            self.state.integrity.malformed.add(place);
            return Ok(());
        }
        self.state.stage = seen.stage.or(self.state.stage);
        if seen.is_snapshot {
            return self.snapshot(seen, update, is_counted);
        }
        let last_ts_ns = &mut self.state.last_ts_ns[usize::from(seen.channel)];
        if seen.ts_ns < std::mem::replace(last_ts_ns, seen.ts_ns) {
            self.state.integrity.time_backwards.add(&place);
        }
        // What tells of a book's state alone did nothing to an order.
        let is_applied = update.is_some_and(|update| update.kind() != Some(UpdateKind::Status));
        if seen.order.must_rest && !is_applied && has_books {
            self.state.integrity.unknown_references.add(&place);
        }
        let stage = self.state.stage;
        let instrument = self.instrument(seen.instrument, seen.symbol);
        instrument.trading = seen.state.or(instrument.trading);
        if let Some(price) = seen.order.price {
            instrument.statistics.learn_tick(price);
        }
        let bbo = update.map(Bbo::of);
        if let Some(bbo) = bbo.filter(|bbo| bbo.has_both() && bbo.bid.0 >= bbo.ask.0) {
            let state = MarketState { stage, trading: instrument.trading };
            let price = |units| Decimal { units, decimals: self.price_decimals };
            let words = || format!("{} (bid {} at ask {})", place(), price(bbo.bid.0), price(bbo.ask.0));
            self.state.integrity.crossed.add(state, words);
        }
        if in_window {
            self.observe(seen, update, bbo)?;
        } else if let Some(bbo) = bbo {
            self.state.instruments[usize::from(seen.instrument)].bbo = bbo;
        }
        Ok(())
    }

    /// A part of a snapshot: the book is that of the moment after it, and nothing happened.
    fn snapshot(&mut self, seen: &Seen<'_>, update: Option<&MarketUpdate>, is_counted: bool) -> Result {
        self.state.snapshot_count += u64::from(is_counted);
        let instrument = self.instrument(seen.instrument, seen.symbol);
        instrument.trading = seen.state.or(instrument.trading);
        if let Some(price) = seen.order.price {
            instrument.statistics.learn_tick(price);
        }
        let instrument = &self.state.instruments[usize::from(seen.instrument)];
        if is_counted && instrument.is_chosen && self.exporter.wants_orders() {
            let symbol = instrument.symbol.as_deref().unwrap_or_default();
            self.exporter.order(seen, symbol, update)?;
        }
        Ok(())
    }

    /// Statistics and exports of a message in the window.
    fn observe(&mut self, seen: &Seen<'_>, update: Option<&MarketUpdate>, bbo: Option<Bbo>) -> Result {
        let instrument = &mut self.state.instruments[usize::from(seen.instrument)];
        let symbol = instrument.symbol.as_deref().unwrap_or_default();
        let statistics = &mut instrument.statistics;
        statistics.messages += 1;
        statistics.adds += u64::from(seen.order.is_add);
        statistics.executions += u64::from(seen.order.is_execution);
        if let Some(trade) = seen.trade.filter(|trade| trade.counts) {
            let executed = update.filter(|update| update.kind() == Some(UpdateKind::Trade));
            let price = trade.price.or(executed.map(|update| Price(update.price)));
            if let Some(price) = price.filter(|_| !trade.qty.is_zero()) {
                statistics.trade(price, trade.qty);
            }
            if instrument.is_chosen {
                // Of an order that rested the side is known; of any other trade only what the message says.
                let of_order = executed.filter(|_| seen.order.is_execution);
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

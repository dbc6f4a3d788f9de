//! Counts, statistics and contradictions of one recording, message by message.

use tickpath_types::{Decimal, MarketUpdate, Price, SystemEventCode, TradingState, UpdateKind};

use crate::digest::Checksums;
use crate::integrity::{Integrity, MarketState};
use crate::listener::Listener;
use crate::selection::{Selection, Window};
use crate::statistics::SymbolStatistics;
use crate::view::{Bbo, MessageView, TradeInfo};

/// The state of one instrument.
#[derive(Debug, Default)]
pub(crate) struct KnownInstrument {
    pub(crate) symbol: Option<String>,
    /// True when the instrument's statistics, book and messages are requested.
    pub(crate) is_chosen: bool,
    trading: Option<TradingState>,
    bbo: Bbo,
    pub(crate) statistics: SymbolStatistics,
}

/// Counts, statistics and contradictions of one recording.
pub(crate) struct RecordingState {
    pub(crate) checksums: Checksums,
    /// Number of messages in the window by type.
    pub(crate) counts: [u64; 256],
    /// Number of messages in the window that are parts of snapshots.
    pub(crate) snapshot_count: u64,
    pub(crate) integrity: Integrity,
    /// State of each instrument, indexed by its id in the books.
    pub(crate) instruments: Vec<KnownInstrument>,
    pub(crate) window: Window,
    /// True once a message has set `window`: the first that has a time and is not part of a snapshot.
    pub(crate) has_window: bool,
    /// Times of the first and last message in the window, snapshots excluded.
    pub(crate) span_ns: Option<(u64, u64)>,
    /// Number of decimals of prices.
    price_decimals: u8,
    /// The last published system event of the session.
    stage: Option<SystemEventCode>,
    /// Time of each channel's last message, indexed by channel.
    last_ts_ns: Box<[u64; 256]>,
}

impl RecordingState {
    /// Creates the state before the first message.
    pub(crate) fn new(price_decimals: u8) -> RecordingState {
        RecordingState {
            checksums: Checksums::default(),
            counts: [0; 256],
            snapshot_count: 0,
            integrity: Integrity::default(),
            instruments: Vec::new(),
            window: Window::WHOLE,
            has_window: false,
            span_ns: None,
            price_decimals,
            stage: None,
            last_ts_ns: Box::new([0; 256]),
        }
    }

    /// Marks the trading states of these instruments as unknown.
    pub(crate) fn clear_trading_states(&mut self, instruments: &[u16]) {
        for number in instruments {
            if let Some(instrument) = self.instruments.get_mut(usize::from(*number)) {
                instrument.trading = None;
            }
        }
    }

    /// True when the last published system event is the end of the session's messages.
    pub(crate) fn is_end_seen(&self) -> bool {
        self.stage == Some(SystemEventCode::EndOfMessages)
    }

    /// The symbol of an instrument, or `#` and its id if the symbol is unknown.
    pub(crate) fn name(&self, instrument: u16) -> String {
        let known = self.instruments.get(usize::from(instrument));
        known.and_then(|known| known.symbol.clone()).unwrap_or_else(|| format!("#{instrument}"))
    }

    /// Returns the instrument with this id, and adds it if it is new. Sets its symbol to `symbol` if the
    /// instrument has none yet.
    pub(crate) fn instrument(
        &mut self,
        id: u16,
        symbol: Option<&[u8]>,
        selection: &Selection,
    ) -> &mut KnownInstrument {
        let index = usize::from(id);
        if index >= self.instruments.len() {
            let is_chosen = selection.symbols.is_empty();
            self.instruments
                .resize_with(index + 1, || KnownInstrument { is_chosen, ..KnownInstrument::default() });
        }
        let instrument = &mut self.instruments[index];
        if instrument.symbol.is_none()
            && let Some(symbol) =
                symbol.and_then(|symbol| std::str::from_utf8(symbol).ok()).map(str::trim_end)
            && !symbol.is_empty()
        {
            instrument.is_chosen = selection.is_chosen(symbol);
            instrument.symbol = Some(symbol.to_owned());
        }
        instrument
    }

    /// Handles one message and the update of the books that it caused, if any. `place` describes the position
    /// of the message.
    pub(crate) fn message(
        &mut self,
        view: &MessageView<'_>,
        update: Option<&MarketUpdate>,
        has_books: bool,
        selection: &Selection,
        listener: &mut impl Listener,
        place: impl Fn() -> String,
    ) {
        let is_counted = self.window.contains(view.ts_ns);
        self.counts[usize::from(view.code)] += u64::from(is_counted);
        let in_window = is_counted && !view.is_snapshot;
        if in_window {
            self.span_ns = Some((self.span_ns.map_or(view.ts_ns, |(first, _)| first), view.ts_ns));
        }
        if view.is_malformed {
            return self.integrity.malformed.add(place);
        }
        self.stage = view.stage.or(self.stage);
        if !view.is_snapshot {
            self.check(view, update, has_books, &place);
        }
        let stage = self.stage;
        let instrument = self.instrument(view.instrument, view.symbol, selection);
        instrument.trading = view.state.or(instrument.trading);
        if let Some(price) = view.order.price {
            instrument.statistics.update_tick(price);
        }
        if view.is_snapshot {
            // A snapshot builds the book, and is not a market event.
            self.snapshot_count += u64::from(is_counted);
            let instrument = &self.instruments[usize::from(view.instrument)];
            if is_counted && instrument.is_chosen {
                listener.on_message(view, instrument.symbol.as_deref().unwrap_or_default(), update);
            }
            return;
        }
        let bbo = update.map(Bbo::of);
        if let Some(bbo) = bbo.filter(|bbo| bbo.has_both() && bbo.bid.0 >= bbo.ask.0) {
            let state = MarketState { stage, trading: instrument.trading };
            let price = |units| Decimal { units, decimals: self.price_decimals };
            let description =
                || format!("{} (bid {} at ask {})", place(), price(bbo.bid.0), price(bbo.ask.0));
            self.integrity.crossed.add(state, description);
        }
        if in_window {
            self.observe(view, update, bbo, listener);
        } else if let Some(bbo) = bbo {
            self.instruments[usize::from(view.instrument)].bbo = bbo;
        }
    }

    /// Counts a time that runs backwards, and a reference to an unknown order.
    #[inline]
    fn check(
        &mut self,
        view: &MessageView<'_>,
        update: Option<&MarketUpdate>,
        has_books: bool,
        place: impl Fn() -> String,
    ) {
        let last_ts_ns = &mut self.last_ts_ns[usize::from(view.channel)];
        if view.ts_ns < std::mem::replace(last_ts_ns, view.ts_ns) {
            self.integrity.time_backwards.add(&place);
        }
        // A status update of a book changes no order.
        let is_applied = update.is_some_and(|update| update.kind() != Some(UpdateKind::Status));
        if view.order.must_rest && !is_applied && has_books {
            self.integrity.unknown_references.add(&place);
        }
    }

    /// Adds a message in the window to the statistics, and passes it to the listener.
    #[inline]
    fn observe(
        &mut self,
        view: &MessageView<'_>,
        update: Option<&MarketUpdate>,
        bbo: Option<Bbo>,
        listener: &mut impl Listener,
    ) {
        let instrument = &mut self.instruments[usize::from(view.instrument)];
        let symbol = instrument.symbol.as_deref().unwrap_or_default();
        let statistics = &mut instrument.statistics;
        statistics.messages += 1;
        statistics.adds += u64::from(view.order.is_add);
        statistics.executions += u64::from(view.order.is_execution);
        if let Some(trade) = view.trade.filter(|trade| trade.counts) {
            let executed = update.filter(|update| update.kind() == Some(UpdateKind::Trade));
            let price = trade.price.or(executed.map(|update| Price(update.price)));
            if let Some(price) = price.filter(|_| !trade.qty.is_zero()) {
                statistics.trade(price, trade.qty);
            }
            if instrument.is_chosen {
                // An execution of a resting order implies the aggressor's side; for any other trade, only the
                // message can give it.
                let of_order = executed.filter(|_| view.order.is_execution);
                let aggressor = trade.aggressor.or(of_order.and_then(MarketUpdate::aggressor));
                listener.on_trade(view, symbol, &TradeInfo { price, aggressor, ..trade });
            }
        }
        if instrument.is_chosen {
            listener.on_message(view, symbol, update);
        }
        if let Some(bbo) = bbo {
            if bbo.has_both() && bbo.ask.0 > bbo.bid.0 {
                statistics.spread(bbo.ask.0.abs_diff(bbo.bid.0));
            }
            if bbo != instrument.bbo {
                instrument.bbo = bbo;
                if instrument.is_chosen {
                    listener.on_bbo(view, symbol, bbo);
                }
            }
        }
    }
}

//! Live market data: the venue's multicast feed, read by the feed handler that traders use.

use std::collections::{BTreeMap, BTreeSet};

use tickpath_agent::{Agent, TscClock};
use tickpath_deribit::field::List;
use tickpath_deribit::messages::PublicTrade;
use tickpath_deribit::text::Text;
use tickpath_feedhandler::{FeedHandler, FeedView, MessageBooks};
use tickpath_lockfree::broadcast;
use tickpath_net::Kernel;
use tickpath_timing::NoTrace;
use tickpath_trader::MarketDataSection;
use tickpath_types::{BookHealth, InstrumentTable, MarketUpdate, Nanos, Price, Qty, Side, UpdateKind};

use super::answers::{amount, json, quote, unix_ms};
use super::board::{Board, Market, Seen};

/// Number of updates that the shell may lag behind; a larger lag is reported as a loss.
const UPDATES: usize = 1 << 12;
/// Upper bound of duty cycles in one poll.
const CYCLES: usize = 1_024;

/// Prefix of an instrument's quote channel.
const QUOTE: &str = "quote.";

/// The best prices of an instrument.
type Best = (Option<(Price, Qty)>, Option<(Price, Qty)>);

/// The joined market data feed.
pub(super) struct LiveFeed {
    handler: FeedHandler<NoTrace>,
    updates: broadcast::Receiver<MarketUpdate>,
    /// The last published quote of each instrument.
    told: BTreeMap<u16, Best>,
    seen: BTreeMap<u16, Seen>,
    boards: Vec<Board>,
    /// Instruments whose quote must be published although it has not changed.
    fresh: BTreeSet<String>,
}

impl LiveFeed {
    /// Joins the feed.
    pub(super) fn open(data: &MarketDataSection, instruments: &InstrumentTable) -> Result<LiveFeed, String> {
        let settings = data.feed_settings(instruments, 0);
        let (sender, updates) = broadcast::channel(UPDATES);
        let handler =
            FeedHandler::open(&Kernel, &settings, sender, TscClock::shared(), &FeedView::default(), NoTrace)
                .map_err(|error| format!("no market data: {error}"))?;
        let (told, seen, boards, fresh) = Default::default();
        Ok(LiveFeed { handler, updates, told, seen, boards, fresh })
    }

    /// Starts publishing a channel: a book by a snapshot, a quote by its current value; trades need nothing.
    pub(super) fn add(&mut self, channel: &str) {
        if let Some(name) = channel.strip_prefix(QUOTE) {
            self.fresh.insert(name.to_owned());
        }
        if self.boards.iter().all(|board| board.name() != channel) {
            self.boards.extend(Board::new(channel));
        }
    }

    /// Stops publishing a channel.
    pub(super) fn remove(&mut self, channel: &str) {
        if let Some(name) = channel.strip_prefix(QUOTE) {
            self.fresh.remove(name);
        }
        self.boards.retain(|board| board.name() != channel);
    }

    /// Handles received updates. `tell` receives the subscribed channels with their data: trades, and changed
    /// quotes and books while the book is live.
    pub(super) fn poll(
        &mut self,
        now: Nanos,
        instruments: &InstrumentTable,
        channels: &BTreeSet<String>,
        mut tell: impl FnMut(&str, &str),
    ) -> Result<(), String> {
        for _ in 0..CYCLES {
            let work = self.handler.do_work(now).map_err(|error| error.to_string())?;
            loop {
                match self.updates.try_recv() {
                    Ok(Some(update)) => self.take(&update, instruments, channels, &mut tell),
                    Ok(None) => break,
                    Err(lost) => return Err(format!("market data came faster than it was read: {lost}")),
                }
            }
            if work == 0 {
                break;
            }
        }
        self.tell_boards(now, instruments, &mut tell);
        self.tell_fresh(instruments, &mut tell);
        Ok(())
    }

    fn take(
        &mut self,
        update: &MarketUpdate,
        instruments: &InstrumentTable,
        channels: &BTreeSet<String>,
        tell: &mut impl FnMut(&str, &str),
    ) {
        let Some(symbol) = instruments.symbol(update.instrument()) else { return };
        let name = symbol.as_str();
        let seen = self.seen.entry(update.instrument).or_default();
        seen.sequence = seen.sequence.max(update.sequence);
        // A change of the book's health is not a venue event and has no time.
        if update.ts_event > 0 {
            seen.at_ms = unix_ms(Nanos(update.ts_event));
        }
        let at_ms = seen.time_ms();
        let is_trade = update.kind() == Some(UpdateKind::Trade);
        if is_trade {
            seen.last = Some(Price(update.price));
        }
        if update.health != BookHealth::Live as u8 {
            self.boards.iter_mut().filter(|board| board.is_of(name)).for_each(Board::doubt);
            return;
        }
        // Deribit's trades have a direction, so a trade without an aggressor is not published.
        if is_trade && let Some(aggressor) = update.aggressor() {
            let mut data = None;
            for interval in ["raw", "100ms", "agg2"] {
                let channel = format!("trades.{name}.{interval}");
                if channels.contains(&channel) {
                    tell(&channel, data.get_or_insert_with(|| trade(name, at_ms, update, aggressor)));
                }
            }
        }
        let best = (update.bid(), update.ask());
        if self.told.insert(update.instrument, best) != Some(best) {
            let channel = format!("{QUOTE}{name}");
            if channels.contains(&channel) {
                self.fresh.remove(name);
                tell(&channel, &quote_of(name, at_ms, best));
            }
        }
    }

    /// Publishes quotes that were subscribed after their last change, of trusted books.
    fn tell_fresh(&mut self, instruments: &InstrumentTable, tell: &mut impl FnMut(&str, &str)) {
        let LiveFeed { fresh, handler, told, seen, .. } = self;
        let Some(books) = handler.books().filter(|_| !fresh.is_empty()) else { return };
        fresh.retain(|name| {
            let known = instruments.iter().find(|one| one.symbol.as_str() == name);
            let Some(id) = known.map(|one| one.id) else { return false };
            let is_live = books.instrument(id).is_some_and(|state| state.health == BookHealth::Live);
            let Some(best) = told.get(&id.0).filter(|_| is_live) else { return true };
            let at_ms = seen.get(&id.0).copied().unwrap_or_default().time_ms();
            tell(&format!("{QUOTE}{name}"), &quote_of(name, at_ms, *best));
            false
        });
    }

    fn tell_boards(&mut self, now: Nanos, instruments: &InstrumentTable, tell: &mut impl FnMut(&str, &str)) {
        let Some(books) = self.handler.books() else { return };
        for board in &mut self.boards {
            let Some(instrument) = instruments.iter().find(|one| board.is_of(one.symbol.as_str())) else {
                continue;
            };
            let Some(state) = books.instrument(instrument.id) else { continue };
            if state.health != BookHealth::Live {
                board.doubt();
                continue;
            }
            let seen = self.seen.get(&instrument.id.0).copied().unwrap_or_default();
            let market = Market { instrument, books: books.books(), trading: state.trading, seen };
            if let Some(data) = board.tell(now, &market) {
                tell(board.name(), &data);
            }
        }
    }
}

fn quote_of(name: &str, at_ms: u64, best: Best) -> String {
    let plain = |side: Option<(Price, Qty)>| side.map(|(price, qty)| (price, qty.0));
    quote(name, at_ms, plain(best.0), plain(best.1))
}

/// A public trade; its id is its sequence number in the market data session.
fn trade(name: &str, at_ms: u64, update: &MarketUpdate, aggressor: Side) -> String {
    let id = update.sequence.to_string();
    json(&List::new(&[PublicTrade {
        timestamp: at_ms,
        price: Price(update.price).into(),
        amount: amount(update.qty),
        direction: aggressor.into(),
        index_price: None,
        instrument_name: Text::new(name),
        trade_seq: update.sequence,
        mark_price: None,
        tick_direction: None,
        contracts: None,
        combo_trade_id: None,
        combo_id: None,
        trade_id: Text::new(&id),
        iv: None,
        liquidation: None,
        block_trade_id: None,
        block_trade_leg_count: None,
        block_rfq_id: None,
    }]))
}

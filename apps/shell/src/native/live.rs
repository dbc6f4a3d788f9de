//! The market as it goes on: the lines of the venue, by the feed handler that traders use.

use std::collections::BTreeMap;

use tickpath_agent::{Agent, TscClock};
use tickpath_deribit::field::List;
use tickpath_deribit::messages::PublicTrade;
use tickpath_deribit::text::Text;
use tickpath_feedhandler::{FeedHandler, FeedView};
use tickpath_lockfree::broadcast;
use tickpath_timing::NoTrace;
use tickpath_trader::MarketDataSection;
use tickpath_types::{BookHealth, InstrumentTable, MarketUpdate, Nanos, Price, Qty, UpdateKind};

use super::answers::{amount, json, quote, unix_ms};

/// Updates that the shell may be behind; of older ones it says that they are lost.
const UPDATES: usize = 1 << 12;
/// Duty cycles of one look.
const CYCLES: usize = 1_024;

/// The best prices of an instrument.
type Best = (Option<(Price, Qty)>, Option<(Price, Qty)>);

/// The lines of the venue, joined.
pub(super) struct LiveFeed {
    handler: FeedHandler<NoTrace>,
    updates: broadcast::Receiver<MarketUpdate>,
    /// What was told last of each instrument.
    told: BTreeMap<u16, Best>,
}

impl LiveFeed {
    /// Joins the lines.
    pub(super) fn open(data: &MarketDataSection, instruments: &InstrumentTable) -> Result<LiveFeed, String> {
        let settings = data.feed_settings(instruments, 0);
        let (sender, updates) = broadcast::channel(UPDATES);
        let handler = FeedHandler::open(&settings, sender, TscClock::shared(), &FeedView::default(), NoTrace)
            .map_err(|error| format!("no market data: {error}"))?;
        Ok(LiveFeed { handler, updates, told: BTreeMap::new() })
    }

    /// Takes what came. `tell` is given channels and their data: quotes that changed, of books that are live, and trades.
    pub(super) fn poll(
        &mut self,
        now: Nanos,
        instruments: &InstrumentTable,
        mut tell: impl FnMut(&str, &str),
    ) -> Result<(), String> {
        for _ in 0..CYCLES {
            let work = self.handler.do_work(now).map_err(|error| error.to_string())?;
            loop {
                match self.updates.try_recv() {
                    Ok(Some(update)) => {
                        take(&mut self.told, &update, instruments, &mut tell);
                    }
                    Ok(None) => break,
                    Err(lost) => return Err(format!("market data came faster than it was read: {lost}")),
                }
            }
            if work == 0 {
                break;
            }
        }
        Ok(())
    }
}

fn take(
    told: &mut BTreeMap<u16, Best>,
    update: &MarketUpdate,
    instruments: &InstrumentTable,
    tell: &mut impl FnMut(&str, &str),
) {
    let Some(symbol) = instruments.symbol(update.instrument()) else { return };
    let (name, at) = (symbol.as_str(), Nanos(update.ts_event));
    if update.health != BookHealth::Live as u8 {
        return;
    }
    if update.kind() == Some(UpdateKind::Trade) {
        tell(&format!("trades.{name}.raw"), &trade(name, at, update));
    }
    let best = (update.bid(), update.ask());
    if told.insert(update.instrument, best) != Some(best) {
        let plain = |side: Option<(Price, Qty)>| side.map(|(price, qty)| (price, qty.0));
        tell(&format!("quote.{name}"), &quote(name, at, plain(best.0), plain(best.1)));
    }
}

/// A trade of anyone; its id is its number in the market data session.
fn trade(name: &str, at: Nanos, update: &MarketUpdate) -> String {
    let id = update.sequence.to_string();
    json(&List::new(&[PublicTrade {
        timestamp: unix_ms(at),
        price: Price(update.price).into(),
        amount: amount(update.qty),
        direction: update.aggressor().into(),
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

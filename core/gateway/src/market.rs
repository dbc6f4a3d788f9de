//! The market of one instrument: its book to the depth that clients see, best prices, and figures.

use tickpath_deribit::continuity::{BookStep, Continuity};
use tickpath_deribit::messages::{BookLevels, BookUpdate as VenueUpdate, Ticker};
use tickpath_deribit::number::{Decimal, Number};
use tickpath_gateway_protocol::{
    BookUpdate, Fixed, Level as EventLevel, MarketByPrice, Side as EventSide, StatisticKind, Statistics,
    TopOfBook, UpdateKind,
};
use tickpath_types::Side;

use super::book::{Book, Level, SCALE, Top};
use super::news::cut;

/// Number of figure slots, one per kind.
const FIGURES: usize = StatisticKind::ALL.len() + 1;

/// Effect of a message on a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookChange {
    /// No change.
    None,
    /// Some levels have changed.
    Changed,
    /// All levels were replaced.
    Replaced,
    /// The book is unusable until the next snapshot: resubscribe the channel.
    Lost,
}

/// One instrument's market.
#[derive(Debug, Default)]
pub struct Market {
    book: Book,
    chain: Continuity,
    /// The best levels as sent to clients, best first.
    told: [Vec<Level>; 2],
    top: Top,
    /// Time of the book's last change, in ms since 1970.
    pub book_ms: u64,
    figures: Figures,
    /// Whether the best prices come from tickers.
    is_of_ticker: bool,
    /// Whether clients were notified that the instrument is ready.
    pub is_told_ready: bool,
}

#[derive(Clone, Debug)]
struct Figures {
    values: [i64; FIGURES],
    known: u64,
}

impl Default for Figures {
    fn default() -> Figures {
        Figures { values: [0; FIGURES], known: 0 }
    }
}

/// Both sides, bids first, with their codes in events.
const SIDES: [(Side, EventSide); 2] = [(Side::Buy, EventSide::BUY), (Side::Sell, EventSide::SELL)];

impl Market {
    /// Whether the book is complete.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.chain.is_whole()
    }

    /// Best bid and ask; empty while the book is incomplete and no ticker has brought them.
    #[must_use]
    pub fn top(&self) -> Top {
        if self.has_top() { self.top } else { Top::default() }
    }

    /// Whether best prices are known: from a complete book, or from tickers if no book is subscribed.
    #[must_use]
    pub const fn has_top(&self) -> bool {
        self.is_whole() || self.is_of_ticker
    }

    /// The full book.
    #[must_use]
    pub const fn book(&self) -> &Book {
        &self.book
    }

    /// Applies a message of the book's channel.
    pub fn handle_book(&mut self, update: &VenueUpdate<'_>, levels: &BookLevels) -> BookChange {
        let change = match self.chain.handle_update(update) {
            BookStep::Ignore => return BookChange::None,
            BookStep::Lost => return BookChange::Lost,
            BookStep::Apply => BookChange::Changed,
            BookStep::Replace => {
                self.book.clear();
                BookChange::Replaced
            }
        };
        for (side, changed) in [(Side::Buy, &levels.bids), (Side::Sell, &levels.asks)] {
            for level in changed {
                if self.book.apply(side, level).is_err() {
                    return self.lose();
                }
            }
        }
        self.book.change_id = update.change_id;
        self.book_ms = update.timestamp;
        if self.book.is_crossed() { self.lose() } else { change }
    }

    /// Marks the book as unusable: resubscribe the channel.
    pub fn lose(&mut self) -> BookChange {
        self.chain.lose();
        BookChange::Lost
    }

    /// Resets the market for a new subscription of the channel; the next message is a snapshot.
    pub fn await_book(&mut self) {
        self.chain = Continuity::new();
        self.told.iter_mut().for_each(Vec::clear);
        self.top = Top::default();
        self.is_of_ticker = false;
        self.is_told_ready = false;
    }

    /// Drops mark and index price when their updates end: orders must not be checked against old prices.
    pub fn forget_prices(&mut self) {
        for kind in [StatisticKind::MARK_PRICE, StatisticKind::INDEX_PRICE] {
            self.figures.known &= !(1 << kind.0);
        }
    }

    /// Emits the changes among the `depth` best levels of each side, event by event.
    pub fn tell_book(&mut self, change: BookChange, depth: usize, mut tell: impl FnMut(MarketByPrice, bool)) {
        let is_whole = change == BookChange::Replaced;
        let mut chain = Chain::new(self.book.change_id, is_whole);
        for (place, (side, event_side)) in SIDES.into_iter().enumerate() {
            let told = &mut self.told[place];
            if is_whole {
                told.clear();
            }
            let is_before = |a: i64, b: i64| if side == Side::Buy { a > b } else { a < b };
            let mut old = told.iter().copied().peekable();
            for level in self.book.levels(side).take(depth) {
                while let Some(gone) = old.next_if(|old| is_before(old.price, level.price)) {
                    chain.push(event_side, Level { price: gone.price, amount: 0 }, &mut tell);
                }
                let known = old.next_if(|old| old.price == level.price);
                if known != Some(level) {
                    chain.push(event_side, level, &mut tell);
                }
            }
            for gone in old {
                chain.push(event_side, Level { price: gone.price, amount: 0 }, &mut tell);
            }
            told.clear();
            told.extend(self.book.levels(side).take(depth));
        }
        chain.end(&mut tell);
    }

    /// Emits the book as sent to clients, for a new client.
    pub fn show_book(&self, mut tell: impl FnMut(MarketByPrice, bool)) {
        let mut chain = Chain::new(self.book.change_id, true);
        for (place, (_, event_side)) in SIDES.into_iter().enumerate() {
            for level in &self.told[place] {
                chain.push(event_side, *level, &mut tell);
            }
        }
        chain.end(&mut tell);
    }

    /// Maximum number of events that [`show_book`](Market::show_book) emits.
    #[must_use]
    pub fn book_events(&self) -> usize {
        1 + (self.told[0].len() + self.told[1].len()).div_ceil(tickpath_gateway_protocol::LEVELS_MAX)
    }

    /// Returns best bid and ask if they have changed.
    pub fn tell_top(&mut self) -> Option<TopOfBook> {
        let top = self.book.top();
        if top == self.top {
            return None;
        }
        self.top = top;
        Some(self.top_event(UpdateKind::INCREMENTAL))
    }

    /// Takes best bid and ask from a ticker if no book is subscribed; returns them if they have changed. A
    /// side that is not representable is empty.
    pub fn take_best(&mut self, ticker: &Ticker<'_>) -> Option<TopOfBook> {
        let side = |price: Option<Decimal>, amount: Option<Decimal>| match (exact(price), exact(amount)) {
            (Some(price), Some(amount)) if amount > 0 => Level { price, amount },
            _ => Level::default(),
        };
        let bid = side(ticker.best_bid_price, ticker.best_bid_amount);
        let ask = side(ticker.best_ask_price, ticker.best_ask_amount);
        let top = Top { bid, ask };
        if self.is_of_ticker && top == self.top {
            return None;
        }
        (self.top, self.is_of_ticker, self.book_ms) = (top, true, ticker.timestamp);
        Some(self.top_event(UpdateKind::INCREMENTAL))
    }

    /// Returns best bid and ask as an event.
    #[must_use]
    pub fn top_event(&self, update: UpdateKind) -> TopOfBook {
        let top = self.top();
        TopOfBook {
            bid_price: Fixed(top.bid.price),
            bid_quantity: Fixed(top.bid.amount),
            ask_price: Fixed(top.ask.price),
            ask_quantity: Fixed(top.ask.amount),
            change_id: self.book.change_id,
            update,
            ..TopOfBook::default()
        }
    }

    /// Returns a figure if it is known.
    #[must_use]
    pub fn figure(&self, kind: StatisticKind) -> Option<Fixed> {
        let place = kind.0 as usize;
        (self.figures.known >> place & 1 == 1).then(|| Fixed(self.figures.values[place]))
    }

    /// Applies a ticker and emits the figures that have changed.
    pub fn handle_ticker(&mut self, ticker: &Ticker<'_>, mut tell: impl FnMut(Statistics)) {
        let mut batch = Statistics::default();
        let stats = ticker.stats.as_ref();
        let greeks = ticker.greeks.as_ref();
        for (kind, value) in [
            (StatisticKind::MARK_PRICE, shown(ticker.mark_price)),
            (StatisticKind::INDEX_PRICE, shown(ticker.index_price)),
            (StatisticKind::LAST_PRICE, exact(ticker.last_price)),
            (StatisticKind::OPEN_INTEREST, shown(ticker.open_interest)),
            (StatisticKind::CURRENT_FUNDING, shown(ticker.current_funding)),
            (StatisticKind::FUNDING_8H, shown(ticker.funding_8h)),
            (StatisticKind::INTEREST_VALUE, shown(ticker.interest_value)),
            (StatisticKind::ESTIMATED_DELIVERY_PRICE, shown(ticker.estimated_delivery_price)),
            (StatisticKind::DELIVERY_PRICE, shown(ticker.delivery_price)),
            (StatisticKind::SETTLEMENT_PRICE, shown(ticker.settlement_price)),
            (StatisticKind::MIN_PRICE, exact(ticker.min_price)),
            (StatisticKind::MAX_PRICE, exact(ticker.max_price)),
            (StatisticKind::HIGH, stats.and_then(|stats| shown(stats.high))),
            (StatisticKind::LOW, stats.and_then(|stats| shown(stats.low))),
            (StatisticKind::VOLUME, stats.and_then(|stats| shown(stats.volume))),
            (StatisticKind::VOLUME_USD, stats.and_then(|stats| shown(stats.volume_usd))),
            (StatisticKind::VOLUME_NOTIONAL, stats.and_then(|stats| shown(stats.volume_notional))),
            (StatisticKind::PRICE_CHANGE, stats.and_then(|stats| shown(stats.price_change))),
            (StatisticKind::BID_IV, shown(ticker.bid_iv)),
            (StatisticKind::ASK_IV, shown(ticker.ask_iv)),
            (StatisticKind::MARK_IV, shown(ticker.mark_iv)),
            (StatisticKind::UNDERLYING_PRICE, shown(ticker.underlying_price)),
            (StatisticKind::DELTA, greeks.and_then(|greeks| shown(greeks.delta))),
            (StatisticKind::GAMMA, greeks.and_then(|greeks| shown(greeks.gamma))),
            (StatisticKind::THETA, greeks.and_then(|greeks| shown(greeks.theta))),
            (StatisticKind::VEGA, greeks.and_then(|greeks| shown(greeks.vega))),
            (StatisticKind::RHO, greeks.and_then(|greeks| shown(greeks.rho))),
            (StatisticKind::INTEREST_RATE, shown(ticker.interest_rate)),
        ] {
            let Some(value) = value else { continue };
            if self.figure(kind) == Some(Fixed(value)) {
                continue;
            }
            self.figures.values[kind.0 as usize] = value;
            self.figures.known |= 1 << kind.0;
            push_figure(&mut batch, kind, value, &mut tell);
        }
        if batch.count > 0 {
            tell(batch);
        }
    }

    /// Emits all known figures.
    pub fn show_figures(&self, mut tell: impl FnMut(Statistics)) {
        let mut batch = Statistics::default();
        for kind in StatisticKind::ALL {
            if let Some(value) = self.figure(*kind) {
                push_figure(&mut batch, *kind, value.0, &mut tell);
            }
        }
        if batch.count > 0 {
            tell(batch);
        }
    }
}

fn push_figure(batch: &mut Statistics, kind: StatisticKind, value: i64, tell: &mut impl FnMut(Statistics)) {
    if !batch.push(kind, Fixed(value)) {
        tell(std::mem::take(batch));
        let _ = batch.push(kind, Fixed(value));
    }
}

/// Converts a figure for display, truncated to 10^-8; none if it is out of range.
fn shown(number: Option<Number<'_>>) -> Option<i64> {
    i64::try_from(cut(number?, u32::from(SCALE)).ok()?).ok()
}

fn exact(decimal: Option<Decimal>) -> Option<i64> {
    decimal?.units(SCALE).ok()
}

/// Packs levels into a chain of events.
struct Chain {
    event: MarketByPrice,
    is_told: bool,
}

impl Chain {
    fn new(change_id: u64, is_whole: bool) -> Chain {
        let update = if is_whole { BookUpdate::SNAPSHOT } else { BookUpdate::INCREMENTAL };
        Chain { event: MarketByPrice { change_id, update, ..MarketByPrice::default() }, is_told: is_whole }
    }

    fn push(&mut self, side: EventSide, level: Level, tell: &mut impl FnMut(MarketByPrice, bool)) {
        let level = EventLevel { price: Fixed(level.price), quantity: Fixed(level.amount) };
        self.is_told = true;
        if !self.event.push(side, level) {
            tell(self.event, false);
            self.event = MarketByPrice {
                change_id: self.event.change_id,
                update: BookUpdate::INCREMENTAL,
                ..MarketByPrice::default()
            };
            let _ = self.event.push(side, level);
        }
    }

    fn end(self, tell: &mut impl FnMut(MarketByPrice, bool)) {
        if self.is_told {
            tell(self.event, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tickpath_deribit::messages::{BookLevel, BookUpdateKind, LevelAction};
    use tickpath_deribit::text::Text;

    use super::*;

    fn message(
        prev: Option<u64>,
        id: u64,
        bids: &[(i64, i64)],
        asks: &[(i64, i64)],
    ) -> (VenueUpdate<'static>, BookLevels) {
        let kind = if prev.is_none() { BookUpdateKind::Snapshot } else { BookUpdateKind::Change };
        let update = VenueUpdate {
            kind,
            timestamp: 1,
            prev_change_id: prev,
            instrument_name: Text::new("A"),
            change_id: id,
        };
        let levels = |list: &[(i64, i64)]| {
            let level = |(price, amount): &(i64, i64)| BookLevel {
                action: if *amount == 0 { LevelAction::Delete } else { LevelAction::Change },
                price: (*price).into(),
                amount: (*amount).into(),
            };
            list.iter().map(level).collect()
        };
        (update, BookLevels { bids: levels(bids), asks: levels(asks) })
    }

    type View = [BTreeMap<Fixed, Fixed>; 2];

    /// Applies an event as a client would.
    fn follow(view: &mut View, event: &MarketByPrice) {
        if event.update == BookUpdate::SNAPSHOT {
            view.iter_mut().for_each(BTreeMap::clear);
        }
        for (side, levels) in view.iter_mut().zip([event.bid_levels(), event.ask_levels()]) {
            for level in levels {
                match level.quantity {
                    Fixed::ZERO => side.remove(&level.price),
                    quantity => side.insert(level.price, quantity),
                };
            }
        }
    }

    fn best(market: &Market, depth: usize) -> View {
        [Side::Buy, Side::Sell].map(|side| {
            market
                .book()
                .levels(side)
                .take(depth)
                .map(|level| (Fixed(level.price), Fixed(level.amount)))
                .collect()
        })
    }

    #[test]
    fn clients_have_the_best_levels_whatever_happens() {
        let (mut market, mut view) = (Market::default(), View::default());
        let mut seed = 3_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for id in 1..3_000_u64 {
            let count = random(9);
            let levels = |random: &mut dyn FnMut(u64) -> u64, base: i64| -> Vec<(i64, i64)> {
                (0..count).map(|_| (base + random(30) as i64, random(3) as i64)).collect()
            };
            let (bids, asks) = (levels(&mut random, 0), levels(&mut random, 100));
            let prev = (id > 1 && id != 1_500).then(|| id - 1);
            let (update, levels) = message(prev, id, &bids, &asks);
            let change = market.handle_book(&update, &levels);
            let mut events = 0;
            market.tell_book(change, 5, |event, is_last| {
                follow(&mut view, &event);
                events += usize::from(is_last);
            });
            assert!(events <= 1);
            assert_eq!(view, best(&market, 5), "after {id}");
            let mut shown = View::default();
            market.show_book(|event, _| follow(&mut shown, &event));
            assert_eq!(shown, view);
            if let Some(top) = market.tell_top() {
                assert_eq!(
                    Some(top.bid_price),
                    view[0].last_key_value().map(|(price, _)| *price).or(Some(Fixed::ZERO))
                );
            }
        }
    }

    #[test]
    fn a_gap_or_a_crossed_book_is_not_used() {
        let mut market = Market::default();
        let take = |market: &mut Market, (update, levels): (VenueUpdate<'static>, BookLevels)| {
            market.handle_book(&update, &levels)
        };
        assert_eq!(take(&mut market, message(Some(1), 2, &[(1, 1)], &[])), BookChange::None);
        assert_eq!(take(&mut market, message(None, 5, &[(1, 1)], &[(3, 1)])), BookChange::Replaced);
        assert!(market.is_whole());
        assert_eq!(take(&mut market, message(Some(6), 7, &[(2, 1)], &[])), BookChange::Lost);
        assert!(!market.is_whole() && market.top() == Top::default());
        market.await_book();
        assert_eq!(take(&mut market, message(None, 9, &[(1, 1)], &[(3, 1)])), BookChange::Replaced);
        assert_eq!(take(&mut market, message(Some(9), 10, &[(3, 1)], &[])), BookChange::Lost);
    }

    #[test]
    fn figures_are_told_when_they_change() {
        let text = r#"{"timestamp":1,"instrument_name":"A","mark_price":100.5,"index_price":99,"last_price":null,
            "stats":{"volume":1.123456789,"high":null},"open_interest":1e300}"#;
        let ticker: Ticker<'_> = tickpath_deribit::scan::check(text.as_bytes()).unwrap().parse().unwrap();
        let mut market = Market::default();
        let mut told = Vec::new();
        market.handle_ticker(&ticker, |batch| told.extend(batch.figures().to_vec()));
        assert_eq!(told.len(), 3);
        assert_eq!(market.figure(StatisticKind::VOLUME), Some(Fixed(112_345_678)));
        market.handle_ticker(&ticker, |_| panic!("nothing is new"));
        let mut shown = 0;
        market.show_figures(|batch| shown += batch.count);
        assert_eq!(shown, 3);
    }
}

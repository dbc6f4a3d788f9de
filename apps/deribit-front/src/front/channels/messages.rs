//! Channel messages: full content, or changes only.

use std::collections::BTreeSet;

use tickpath_deribit::channel::Interval;
use tickpath_deribit::codes::InstrumentState;
use tickpath_deribit::field::List;
use tickpath_deribit::messages::{
    Book, BookLevel, BookUpdateKind, GroupedBook, IndexPrice, InstrumentStateChange, LevelAction,
    PlatformState, PriceAmount, Quote,
};
use tickpath_deribit::text::Text;
use tickpath_types::{Price, Qty, Side};

use super::{Numbers, Topic, What};
use crate::front::news::{changed_members, timeless};
use crate::front::{ELEMENTS_MAX, Front};
use crate::json::{Json, Object, json, list};
use crate::listing::figure;
use crate::market::{Trade, best_of, price_amount};

impl Front {
    /// Returns the due messages of a topic, if any.
    pub(super) fn news(&self, topic: &mut Topic) -> Vec<Vec<u8>> {
        match topic.what.clone() {
            What::Book(listing) => self.book_change(topic, listing).into_iter().collect(),
            What::Trades(_) => {
                let trades = std::mem::take(&mut topic.trades);
                let write = |(place, trade): &(usize, Trade), out: &mut Vec<u8>| {
                    trade.write(&self.settings.listings[*place], out);
                };
                trades.chunks(ELEMENTS_MAX).map(|page| list(page, write)).collect()
            }
            What::IncrementalTicker(listing) => self.ticker_change(topic, listing).into_iter().collect(),
            What::States(..) => self.state_changes(topic),
            What::UserOrders(_) => {
                let orders = self.written_orders(topic);
                topic.user_trades.clear();
                match topic.interval {
                    Interval::Raw => orders,
                    _ => {
                        let pages = orders.chunks(ELEMENTS_MAX);
                        pages.map(|page| list(page, |order, out| out.extend_from_slice(order))).collect()
                    }
                }
            }
            What::UserTrades(_) => {
                topic.orders = Numbers::default();
                let trades = std::mem::take(&mut topic.user_trades);
                let pages = trades.chunks(ELEMENTS_MAX);
                pages.map(|page| list(page, |trade, out| self.write_user_trade(trade, out))).collect()
            }
            What::UserChanges(_) => self.user_changes(topic),
            What::Portfolio(None) => {
                let now: BTreeSet<Vec<u8>> = self.portfolios(topic).into_iter().collect();
                let before = std::mem::replace(&mut topic.told, now);
                topic.told.difference(&before).cloned().collect()
            }
            _ => {
                let data = self.render(topic);
                let is_new = data.as_ref().is_some_and(|data| timeless(data) != timeless(&topic.last));
                topic.last = data.clone().unwrap_or_default();
                data.filter(|_| is_new).into_iter().collect()
            }
        }
    }

    fn written_orders(&self, topic: &mut Topic) -> Vec<Vec<u8>> {
        let numbers = std::mem::take(&mut topic.orders).in_order;
        let Some(account) = topic.account else { return Vec::new() };
        let known = self.accounts[account].orders(&numbers);
        known
            .into_iter()
            .map(|order| {
                let mut out = Vec::new();
                self.write_order(order, &mut out);
                out
            })
            .collect()
    }

    /// Writes one message per instrument.
    fn user_changes(&self, topic: &mut Topic) -> Vec<Vec<u8>> {
        let orders = std::mem::take(&mut topic.orders).in_order;
        let trades = std::mem::take(&mut topic.user_trades);
        let positions = std::mem::take(&mut topic.positions);
        let Some(account) = topic.account else { return Vec::new() };
        let known = self.accounts[account].orders(&orders);
        let of_orders = known.iter().map(|order| order.listing);
        let places: BTreeSet<usize> = of_orders
            .chain(trades.iter().map(|trade| trade.listing))
            .chain(positions.iter().copied())
            .collect();
        let of_listing = |place: usize| {
            let own_orders = known.iter().filter(|order| order.listing == place).count();
            let own_trades = trades.iter().filter(|trade| trade.listing == place).count();
            let pages = own_orders.max(own_trades).div_ceil(ELEMENTS_MAX).max(1);
            (0..pages).map(move |page| (place, page))
        };
        let message = |(place, page): (usize, usize)| {
            let skipped = page * ELEMENTS_MAX;
            let own_orders = known.iter().filter(|order| order.listing == place);
            let own_orders = own_orders.skip(skipped).take(ELEMENTS_MAX);
            let own_trades = trades.iter().filter(|trade| trade.listing == place);
            let own_trades = own_trades.skip(skipped).take(ELEMENTS_MAX);
            let position = positions.contains(&place).then_some(place);
            Object::new()
                .with("instrument_name", Text::new(&self.settings.listings[place].name))
                .with("orders", Json(list(own_orders, |order, out| self.write_order(order, out))))
                .with("trades", Json(list(own_trades, |trade, out| self.write_user_trade(trade, out))))
                .with(
                    "positions",
                    Json(list(position, |place, out| self.write_position(account, place, out))),
                )
                .end()
        };
        places.into_iter().flat_map(of_listing).map(message).collect()
    }

    /// Writes the levels that differ from those known to the subscribers.
    fn book_change(&self, topic: &mut Topic, place: usize) -> Option<Vec<u8>> {
        let (listing, market) = self.listed(place);
        let mut sides = [Vec::new(), Vec::new()];
        for (side, price) in std::mem::take(&mut topic.changed) {
            let now = market.levels[side].get(&price).copied();
            let published = &mut topic.published[side];
            let before = match now {
                Some(qty) => published.insert(price, qty),
                None => published.remove(&price),
            };
            let action = match (before, now) {
                (before, now) if before == now => continue,
                (None, _) => LevelAction::New,
                (_, Some(_)) => LevelAction::Change,
                (_, None) => LevelAction::Delete,
            };
            let amount = listing.amount(Qty(now.unwrap_or(0)));
            sides[side].push(BookLevel { action, price: listing.price(Price(price)), amount });
        }
        if sides.iter().all(Vec::is_empty) {
            return None;
        }
        let before = std::mem::replace(&mut topic.change_id, market.change_id);
        Some(json(&Book {
            kind: Some(BookUpdateKind::Change),
            timestamp: self.now_ms(),
            prev_change_id: Some(before),
            instrument_name: Text::new(&listing.name),
            change_id: market.change_id,
            bids: List::new(&sides[Side::Buy.index()]),
            asks: List::new(&sides[Side::Sell.index()]),
        }))
    }

    fn ticker_change(&self, topic: &mut Topic, place: usize) -> Option<Vec<u8>> {
        let mut ticker = Vec::new();
        self.write_ticker(place, &mut ticker);
        let changed = changed_members(&topic.last, &ticker);
        topic.last = ticker;
        changed
    }

    /// Writes the instruments whose state differs from the published one.
    fn state_changes(&self, topic: &mut Topic) -> Vec<Vec<u8>> {
        let places = std::mem::take(&mut topic.positions);
        let mut messages = Vec::new();
        for place in places {
            let (listing, market) = self.listed(place);
            let state = market.told_state();
            // This channel does not use `published` for levels: it holds the published states.
            let told = match state {
                InstrumentState::Halted => 0,
                InstrumentState::Open => 1,
                InstrumentState::Settlement => 2,
                _ => 3,
            };
            let before = topic.published[0].insert(place as i64, told);
            if before == Some(told) {
                continue;
            }
            if before.is_some() || state != InstrumentState::Open {
                let instrument_name = Text::new(&listing.name);
                messages.push(json(&InstrumentStateChange {
                    timestamp: self.now_ms(),
                    state,
                    instrument_name,
                }));
            }
        }
        messages
    }

    /// Writes the message of a channel that always publishes its full content.
    pub(super) fn render(&self, topic: &Topic) -> Option<Vec<u8>> {
        Some(match &topic.what {
            What::Grouped { listing, group, depth } => self.grouped(*listing, *group, *depth),
            What::Ticker(listing) => {
                let mut out = Vec::new();
                self.write_ticker(*listing, &mut out);
                out
            }
            What::Quote(place) => {
                let (listing, market) = self.listed(*place);
                let (bid, bid_amount) = best_of(market, listing, Side::Buy);
                let (ask, ask_amount) = best_of(market, listing, Side::Sell);
                json(&Quote {
                    timestamp: self.now_ms(),
                    instrument_name: Text::new(&listing.name),
                    best_ask_price: Some(ask),
                    best_bid_price: Some(bid),
                    best_ask_amount: Some(ask_amount),
                    best_bid_amount: Some(bid_amount),
                })
            }
            What::Perpetual(place) => {
                let market = &self.markets[*place];
                Object::new()
                    .with("timestamp", self.now_ms())
                    .with("interest", Json(self.funding_rates(*place)[0].to_string().into_bytes()))
                    .with("index_price", figure(market.index))
                    .end()
            }
            What::PriceIndex(place) => {
                let index = &self.indices[*place];
                json(&IndexPrice {
                    timestamp: Some(self.now_ms()),
                    price: Some(figure(index.price).decimal()),
                    index_name: Some(Text::new(&index.name)),
                    index_price: None,
                    estimated_delivery_price: None,
                })
            }
            What::EstimatedExpiration(place) => self.estimated_expiration(*place),
            What::Candles(listing, _) => topic.candle?.written(&self.settings.listings[*listing]),
            What::OptionMarks(index) => self.option_marks(*index),
            What::PlatformState => {
                json(&PlatformState { price_index: None, locked: false, maintenance: false })
            }
            What::PublicMethods => Object::new().with("allow_unauthenticated_public_requests", true).end(),
            What::Portfolio(currency) => {
                let mut out = Vec::new();
                self.write_summary_of(topic.account?, currency.as_ref()?, false, &mut out);
                out
            }
            _ => return None,
        })
    }

    /// Writes one account summary per currency.
    pub(super) fn portfolios(&self, topic: &Topic) -> Vec<Vec<u8>> {
        let Some(account) = topic.account else { return Vec::new() };
        let written = |currency: String| {
            let mut out = Vec::new();
            self.write_summary_of(account, &currency, false, &mut out);
            out
        };
        self.currencies_of(account).into_iter().map(written).collect()
    }

    /// Writes the best levels, grouped by `group` units of price.
    fn grouped(&self, place: usize, group: i64, depth: usize) -> Vec<u8> {
        let (listing, market) = self.listed(place);
        let side = |side: Side| {
            let mut levels: Vec<(i64, u64)> = Vec::new();
            for (price, qty) in market.depth(side) {
                let down = price.div_euclid(group) * group;
                let price = if side == Side::Sell && down < price { down + group } else { down };
                let is_full = levels.len() == depth;
                match levels.last_mut() {
                    Some(last) if last.0 == price => last.1 += qty,
                    _ if is_full => break,
                    _ => levels.push((price, qty)),
                }
            }
            levels.into_iter().map(|level| price_amount(listing, level)).collect::<Vec<PriceAmount>>()
        };
        let (bids, asks) = (side(Side::Buy), side(Side::Sell));
        json(&GroupedBook {
            timestamp: self.now_ms(),
            instrument_name: Text::new(&listing.name),
            change_id: market.change_id,
            bids: List::new(&bids),
            asks: List::new(&asks),
        })
    }
}

//! Market data over FIX: snapshots, incremental changes and periodic best levels.

use tickpath_derivatives::Money;
use tickpath_fix::deribit::{
    MarketDataIncremental, MarketDataReject, MarketDataRequest, MarketDataSnapshot, MdChange, MdEntry,
    MdEntryType, MdUpdateAction, MdUpdateType, PutOrCall, SideCode, SubscriptionRequestType,
};
use tickpath_fix::session::Refusal;
use tickpath_fix::{Body, Decimal as FixDecimal, Group, Message, tag};
use tickpath_types::{Nanos, Price, Qty, Side};

use super::indices::{IndexFeed, symbol_of};
use super::reports::contracts;
use super::{Front, Outgoing, check_id, decimal_of, figure_of, text, written};
use crate::listing::Listing;
use crate::market::{Levels, Trade};

/// Maximum number of instruments one client may subscribe to; a request for a further one is rejected.
const FEEDS_MAX: usize = 500;
/// Supported depths of the best levels.
const DEPTHS: [u64; 3] = [1, 10, 20];
/// Default and maximum number of trades in a snapshot.
const TRADES_DEFAULT: u64 = 20;
const TRADES_MAX: u64 = 1_000;
/// Maximum number of trades waiting for the next best-levels message; the oldest is dropped.
const WAITING_MAX: usize = 1_000;
/// MDReqRejReason (281).
const UNKNOWN_SYMBOL: &str = "0";
const DUPLICATE_ID: &str = "1";
const INSUFFICIENT_BANDWIDTH: &str = "2";
/// Maximum number of changes in one message; further messages carry the rest.
const CHANGES_MAX: usize = 2_000;
const BAD_SUBSCRIPTION: &str = "4";
const BAD_DEPTH: &str = "5";
const BAD_UPDATE_TYPE: &str = "6";
const BAD_ENTRY_TYPE: &str = "8";

/// Market data types that a client requests for an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kinds {
    has_bids: bool,
    has_asks: bool,
    has_trades: bool,
    pub(super) has_index: bool,
    pub(super) has_settlement: bool,
}

impl Kinds {
    const fn has(self, side: Side) -> bool {
        match side {
            Side::Buy => self.has_bids,
            Side::Sell => self.has_asks,
        }
    }
}

/// A client's subscription to one instrument.
pub(super) struct Feed {
    /// Id of the request.
    id: String,
    listing: usize,
    kinds: Kinds,
    /// Number of levels per side; 0 for all levels with incremental changes.
    depth: usize,
    is_changed: bool,
    trades: Vec<Trade>,
    /// Latest published index.
    index: Money,
    /// Latest published settlement price.
    settled: Option<Price>,
}

/// Statistics of an instrument, in contracts.
struct Figures {
    volume_24h: FixDecimal,
    open_interest: FixDecimal,
}

/// Reject text of a snapshot.
const BOOK_TOO_LONG: &str = "the book is longer than 1 MiB: ask for a MarketDepth (264) of it";

/// Listings and indices named in a request.
#[derive(Default)]
struct Followed {
    /// Places of the listings.
    places: Vec<usize>,
    indices: Vec<usize>,
}

/// Code and text of a market data reject.
type Rejected = (&'static str, &'static str);

impl Front {
    pub(super) fn market_data_request(&mut self, number: u64, message: &Message<'_>) -> Result<(), Refusal> {
        let request = MarketDataRequest::decode(message)?;
        request.check()?;
        check_id(request.md_req_id, tag::MD_REQ_ID)?;
        if let Err((reason, words)) = self.take_market_data_request(number, &request) {
            self.counters.refused.add(1);
            let reject = written(&MarketDataReject {
                md_req_id: request.md_req_id,
                reason: Some(reason),
                text: Some(words),
            });
            self.send_fix(number, reject);
        }
        Ok(())
    }

    fn take_market_data_request(
        &mut self,
        number: u64,
        request: &MarketDataRequest<'_>,
    ) -> Result<(), Rejected> {
        let id = request.md_req_id;
        if request.subscription == SubscriptionRequestType::UNSUBSCRIBE {
            return self.unfollow(number, id);
        }
        let kinds = kinds_of(request)?;
        let Followed { places, indices } = self.places_of(request)?;
        let trades = request.trade_amount.unwrap_or(TRADES_DEFAULT).min(TRADES_MAX) as usize;
        let since_ms = request.since_timestamp.unwrap_or(0);
        let is_subscription = match request.subscription {
            SubscriptionRequestType::SNAPSHOT => false,
            SubscriptionRequestType::SUBSCRIBE => true,
            _ => return Err((BAD_SUBSCRIPTION, "SubscriptionRequestType (263) must be 0, 1 or 2")),
        };
        let depth = request.market_depth.unwrap_or(0);
        if is_subscription {
            match (request.update_type, depth) {
                (Some(MdUpdateType::INCREMENTAL), 0) => {}
                (Some(MdUpdateType::FULL_REFRESH), depth) if DEPTHS.contains(&depth) => {}
                (Some(MdUpdateType::INCREMENTAL | MdUpdateType::FULL_REFRESH), _) => {
                    return Err((BAD_DEPTH, "changes have depth 0, full refreshes 1, 10 or 20"));
                }
                _ => return Err((BAD_UPDATE_TYPE, "MDUpdateType (265) must be 0 or 1")),
            }
            let Some(link) = self.link(number) else { return Ok(()) };
            let mut ids =
                link.feeds.iter().map(|feed| &feed.id).chain(link.index_feeds.iter().map(|feed| &feed.id));
            if ids.any(|own| own == id) {
                return Err((DUPLICATE_ID, "a subscription has this MDReqID (262)"));
            }
            let followed = link.feeds.len() + link.index_feeds.len();
            if followed + places.len() + indices.len() > FEEDS_MAX {
                return Err((INSUFFICIENT_BANDWIDTH, "at most 500 instruments of one client"));
            }
        }
        if !indices.is_empty() && !kinds.has_index && !kinds.has_settlement {
            return Err((BAD_ENTRY_TYPE, "an index has MDEntryType (269) 3 and 6 alone"));
        }
        for index in indices {
            if is_subscription {
                let (told, is_whole) = (self.indices[index].price, depth != 0);
                let feed = IndexFeed { id: id.to_owned(), index, kinds, is_whole, told };
                if let Some(link) = self.link(number) {
                    link.index_feeds.push(feed);
                }
            }
            let snapshot = self.index_snapshot(id, index, kinds);
            self.send_fix(number, snapshot);
        }
        for place in places {
            let depth = usize::try_from(depth).unwrap_or(usize::MAX);
            if is_subscription {
                let feed = Feed {
                    id: id.to_owned(),
                    listing: place,
                    kinds,
                    depth,
                    is_changed: false,
                    trades: Vec::new(),
                    index: self.markets[place].index,
                    settled: self.markets[place].settled,
                };
                if depth == 0 {
                    let levels = &self.markets[place].levels;
                    self.fix.published.entry(place).or_insert_with(|| levels.clone());
                }
                if let Some(link) = self.link(number) {
                    link.feeds.push(feed);
                }
            }
            let trades = match kinds.has_trades {
                true => self.latest_trades(place, trades, since_ms),
                false => Vec::new(),
            };
            let snapshot = self.snapshot(number, id, place, kinds, depth, &trades);
            if snapshot.as_ref().is_some_and(Outgoing::is_too_long) {
                self.counters.too_long.add(1);
                if is_subscription {
                    self.unfollow(number, id)?;
                }
                return Err((INSUFFICIENT_BANDWIDTH, BOOK_TOO_LONG));
            }
            self.send_fix(number, snapshot);
        }
        Ok(())
    }

    fn unfollow(&mut self, number: u64, id: &str) -> Result<(), Rejected> {
        let Some(link) = self.link(number) else { return Ok(()) };
        let before = link.feeds.len() + link.index_feeds.len();
        link.feeds.retain(|feed| feed.id != id);
        link.index_feeds.retain(|feed| feed.id != id);
        if link.feeds.len() + link.index_feeds.len() == before {
            return Err((BAD_SUBSCRIPTION, "no subscription has this MDReqID (262)"));
        }
        self.forget_books();
        Ok(())
    }

    /// Removes published books without subscribers.
    pub(super) fn forget_books(&mut self) {
        let links = self.connections.values().filter_map(|connection| connection.fix.as_deref());
        let followed: std::collections::HashSet<usize> = links
            .flat_map(|link| &link.feeds)
            .filter(|feed| feed.depth == 0)
            .map(|feed| feed.listing)
            .collect();
        self.fix.published.retain(|place, _| followed.contains(place));
    }

    fn places_of(&self, request: &MarketDataRequest<'_>) -> Result<Followed, Rejected> {
        let unknown = (UNKNOWN_SYMBOL, "no instrument has this Symbol (55)");
        let symbols = request.symbols.iter().map_while(Result::ok).map(|symbol| symbol.symbol);
        let names: Vec<&str> =
            if request.symbols.is_empty() { request.symbol.into_iter().collect() } else { symbols.collect() };
        let mut found = Followed::default();
        for name in names {
            let (places, place) = match self.index_of_symbol(name) {
                Some(index) => (&mut found.indices, index),
                None => (&mut found.places, self.listing(name).ok_or(unknown)?),
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        if found.places.is_empty() && found.indices.is_empty() { Err(unknown) } else { Ok(found) }
    }

    /// Returns the latest trades of an instrument, oldest first.
    fn latest_trades(&self, place: usize, count: usize, since_ms: u64) -> Vec<Trade> {
        let trades = &self.markets[place].trades;
        let recent = trades.iter().rev().take_while(|trade| trade.at_ms >= since_ms).take(count);
        let mut found: Vec<Trade> = recent.copied().collect();
        found.reverse();
        found
    }

    /// Writes a snapshot of a book in the requested depth, with trades.
    fn snapshot(
        &self,
        number: u64,
        id: &str,
        place: usize,
        kinds: Kinds,
        depth: usize,
        trades: &[Trade],
    ) -> Option<Outgoing> {
        let (listing, market) = self.listed(place);
        let now = self.now();
        let depth = if depth == 0 { usize::MAX } else { depth };
        let mut entries = Vec::new();
        for side in [Side::Buy, Side::Sell].into_iter().filter(|side| kinds.has(*side)) {
            let levels = market.depth(side).take(depth);
            entries.extend(levels.map(|(price, qty)| MdEntry {
                entry_type: entry_type_of(side),
                price: Some(decimal_of(listing.price(Price(price)))),
                size: Some(contracts(listing, Qty(qty))),
                time: Some(now),
                ..MdEntry::default()
            }));
        }
        if kinds.has_index {
            entries.push(MdEntry {
                entry_type: MdEntryType::INDEX_VALUE,
                price: Some(figure_of(market.index)),
                time: Some(now),
                ..MdEntry::default()
            });
        }
        if let Some(settled) = market.settled.filter(|_| kinds.has_settlement) {
            entries.push(MdEntry {
                entry_type: MdEntryType::SETTLEMENT_PRICE,
                price: Some(decimal_of(listing.price(settled))),
                time: Some(now),
                ..MdEntry::default()
            });
        }
        let texts = self.trade_texts(number, place, trades);
        entries.extend(trades.iter().zip(&texts).map(|(trade, texts)| MdEntry {
            entry_type: MdEntryType::TRADE,
            price: Some(decimal_of(listing.price(trade.price))),
            size: Some(contracts(listing, trade.qty)),
            time: Some(Nanos::from_millis(trade.at_ms)),
            trade_id: Some(&texts.id),
            side: Some(SideCode::from(trade.direction)),
            index_price: Some(figure_of(trade.index)),
            trade_seq: Some(&texts.seq),
            order_id: texts.order_id.as_deref(),
            secondary_order_id: texts.other_id.as_deref(),
            ord_status: texts.status,
            label: text(&texts.label),
            liquidation: trade.liquidation.map(|forced| forced.text()),
            ..MdEntry::default()
        }));
        let is_option = listing.contract.is_option();
        let underlying = symbol_of(&self.indices[listing.index].name);
        let figures = self.reckoned(place);
        let funding = listing.is_perpetual().then(|| self.funding_rates(place).map(figure_of));
        written(&MarketDataSnapshot {
            symbol: &listing.name,
            md_req_id: Some(id),
            underlying_symbol: is_option.then_some(&underlying),
            underlying_px: is_option.then(|| figure_of(market.index)),
            contract_multiplier: Some(decimal_of(listing.contract_size)),
            put_or_call: put_or_call(listing),
            trade_volume_24h: Some(figures.volume_24h),
            mark_price: Some(decimal_of(listing.price(market.mark))),
            open_interest: Some(figures.open_interest),
            current_funding: funding.map(|[now, _]| now),
            funding_8h: funding.map(|[_, mean]| mean),
            entries: Group::of(&entries),
        })
    }

    /// Calculates the statistics of a message, once for all messages of a command.
    fn reckoned(&self, place: usize) -> Figures {
        let (listing, market) = self.listed(place);
        Figures {
            volume_24h: contracts(listing, Qty(market.stats().taken.iter().map(|qty| qty.0).sum())),
            open_interest: self.open_interest(place),
        }
    }

    /// Returns the sum of all long positions, in contracts.
    fn open_interest(&self, place: usize) -> FixDecimal {
        let sizes = self.accounts.iter().map(|account| account.position(place).size.max(0).unsigned_abs());
        contracts(&self.settings.listings[place], Qty(sizes.sum()))
    }

    /// Publishes the book changes by a command to subscribers.
    pub(super) fn tell_feeds(&mut self, touched: &[usize], trades: &[(usize, Trade)]) {
        for &place in touched {
            let own: Vec<Trade> =
                trades.iter().filter(|(traded, _)| *traded == place).map(|(_, trade)| *trade).collect();
            let levels = self.changed_levels(place);
            let mut told: Vec<(u64, Kinds, String)> = Vec::new();
            for (number, connection) in &mut self.connections {
                let Some(link) = connection.fix.as_deref_mut() else { continue };
                for feed in link.feeds.iter_mut().filter(|feed| feed.listing == place) {
                    if feed.depth == 0 {
                        told.push((*number, feed.kinds, feed.id.clone()));
                        continue;
                    }
                    feed.is_changed = true;
                    if feed.kinds.has_trades {
                        feed.trades.extend_from_slice(&own);
                        let excess = feed.trades.len().saturating_sub(WAITING_MAX);
                        feed.trades.drain(..excess);
                    }
                }
            }
            if told.is_empty() {
                continue;
            }
            let figures = self.reckoned(place);
            for (number, kinds, id) in told {
                for changes in self.changes((number, &id), place, kinds, &figures, &levels, &own) {
                    self.send_fix(number, Some(changes));
                }
            }
        }
    }

    /// Publishes new index and settlement prices to subscribers.
    pub(in crate::front) fn tell_indices(&mut self) {
        self.tell_index_feeds();
        let mut outgoing = Vec::new();
        for (number, connection) in &mut self.connections {
            let Some(link) = connection.fix.as_deref_mut() else { continue };
            for feed in &mut link.feeds {
                let market = &self.markets[feed.listing];
                let listing = &self.settings.listings[feed.listing];
                let mut news = Vec::new();
                if std::mem::replace(&mut feed.index, market.index) != market.index && feed.kinds.has_index {
                    news.push((MdEntryType::INDEX_VALUE, figure_of(market.index)));
                }
                let before = std::mem::replace(&mut feed.settled, market.settled);
                if let Some(settled) = market.settled.filter(|settled| before != Some(*settled))
                    && feed.kinds.has_settlement
                {
                    news.push((MdEntryType::SETTLEMENT_PRICE, decimal_of(listing.price(settled))));
                }
                if news.is_empty() {
                    continue;
                }
                if feed.depth == 0 {
                    outgoing.push((*number, feed.listing, feed.id.clone(), news));
                } else {
                    feed.is_changed = true;
                }
            }
        }
        for (number, place, id, news) in outgoing {
            let change = |(entry_type, price)| MdChange {
                action: MdUpdateAction::CHANGE,
                entry_type,
                price: Some(price),
                time: Some(self.now()),
                ..MdChange::default()
            };
            let changes: Vec<MdChange<'_>> = news.into_iter().map(change).collect();
            let changes = self.incremental(&id, place, &self.reckoned(place), &changes);
            self.send_fix(number, changes);
        }
    }

    /// Returns the unpublished level changes: side, price, action and quantity. Marks them as published.
    fn changed_levels(&mut self, place: usize) -> Vec<(Side, i64, MdUpdateAction, u64)> {
        let market = &self.markets[place];
        let Some(published) = self.fix.published.get_mut(&place) else { return Vec::new() };
        let mut touched = market.touched.clone();
        touched.sort_unstable_by_key(|(side, price)| (side.index(), *price));
        touched.dedup();
        let mut changed = Vec::new();
        for (side, price) in touched {
            let now = market.levels[side.index()].get(&price).copied();
            let levels: &mut Levels = published;
            let before = match now {
                Some(qty) => levels[side.index()].insert(price, qty),
                None => levels[side.index()].remove(&price),
            };
            let action = match (before, now) {
                (before, now) if before == now => continue,
                (None, _) => MdUpdateAction::NEW,
                (_, Some(_)) => MdUpdateAction::CHANGE,
                (_, None) => MdUpdateAction::DELETE,
            };
            changed.push((side, price, action, now.unwrap_or(0)));
        }
        changed
    }

    fn changes(
        &self,
        (number, id): (u64, &str),
        place: usize,
        kinds: Kinds,
        figures: &Figures,
        levels: &[(Side, i64, MdUpdateAction, u64)],
        trades: &[Trade],
    ) -> Vec<Outgoing> {
        let listing = &self.settings.listings[place];
        let now = self.now();
        let wanted = levels.iter().filter(|(side, ..)| kinds.has(*side));
        let mut changes: Vec<MdChange<'_>> = wanted
            .map(|(side, price, action, qty)| MdChange {
                action: *action,
                entry_type: entry_type_of(*side),
                price: Some(decimal_of(listing.price(Price(*price)))),
                size: Some(contracts(listing, Qty(*qty))),
                time: Some(now),
                ..MdChange::default()
            })
            .collect();
        let trades = if kinds.has_trades { trades } else { &[] };
        let texts = self.trade_texts(number, place, trades);
        changes.extend(trades.iter().zip(&texts).map(|(trade, texts)| MdChange {
            action: MdUpdateAction::NEW,
            entry_type: MdEntryType::TRADE,
            price: Some(decimal_of(listing.price(trade.price))),
            size: Some(contracts(listing, trade.qty)),
            time: Some(Nanos::from_millis(trade.at_ms)),
            trade_id: Some(&texts.id),
            side: Some(SideCode::from(trade.direction)),
            index_price: Some(figure_of(trade.index)),
            trade_seq: Some(&texts.seq),
            order_id: texts.order_id.as_deref(),
            secondary_order_id: texts.other_id.as_deref(),
            ord_status: texts.status,
            label: text(&texts.label),
            liquidation: trade.liquidation.map(|forced| forced.text()),
            ..MdChange::default()
        }));
        let parts = changes.chunks(CHANGES_MAX);
        parts.filter_map(|part| self.incremental(id, place, figures, part)).collect()
    }

    fn incremental(
        &self,
        id: &str,
        place: usize,
        figures: &Figures,
        changes: &[MdChange<'_>],
    ) -> Option<Outgoing> {
        let (listing, market) = self.listed(place);
        written(&MarketDataIncremental {
            symbol: &listing.name,
            md_req_id: Some(id),
            contract_multiplier: Some(decimal_of(listing.contract_size)),
            put_or_call: put_or_call(listing),
            trade_volume_24h: Some(figures.volume_24h),
            mark_price: Some(decimal_of(listing.price(market.mark))),
            open_interest: Some(figures.open_interest),
            changes: Group::of(changes),
        })
    }

    /// Publishes the best levels of changed instruments to a client.
    pub(super) fn flush_feeds(&mut self, number: u64) {
        let Some(link) = self.link(number) else { return };
        let due: Vec<_> = link
            .feeds
            .iter_mut()
            .filter(|feed| feed.is_changed)
            .map(|feed| {
                feed.is_changed = false;
                (feed.id.clone(), feed.listing, feed.kinds, feed.depth, std::mem::take(&mut feed.trades))
            })
            .collect();
        for (id, place, kinds, depth, trades) in due {
            let snapshot = self.snapshot(number, &id, place, kinds, depth, &trades);
            self.send_fix(number, snapshot);
        }
    }
}

fn kinds_of(request: &MarketDataRequest<'_>) -> Result<Kinds, Rejected> {
    let mut kinds = Kinds::default();
    for entry in request.entry_types.iter().map_while(Result::ok) {
        match entry.entry_type {
            MdEntryType::BID => kinds.has_bids = true,
            MdEntryType::OFFER => kinds.has_asks = true,
            MdEntryType::TRADE => kinds.has_trades = true,
            MdEntryType::INDEX_VALUE => kinds.has_index = true,
            MdEntryType::SETTLEMENT_PRICE => kinds.has_settlement = true,
            _ => return Err((BAD_ENTRY_TYPE, "MDEntryType (269) must be 0, 1, 2, 3 or 6")),
        }
    }
    match request.entry_types.is_empty() {
        true => Err((BAD_ENTRY_TYPE, "NoMDEntryTypes (267) is missing")),
        false => Ok(kinds),
    }
}

const fn entry_type_of(side: Side) -> MdEntryType {
    match side {
        Side::Buy => MdEntryType::BID,
        Side::Sell => MdEntryType::OFFER,
    }
}

pub(super) fn put_or_call(listing: &Listing) -> Option<PutOrCall> {
    use tickpath_deribit::codes::OptionType;
    match listing.option_type? {
        OptionType::Call => Some(PutOrCall::CALL),
        OptionType::Put => Some(PutOrCall::PUT),
        _ => None,
    }
}

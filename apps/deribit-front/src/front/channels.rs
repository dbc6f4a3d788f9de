//! Channels: subscriptions and their notifications.

mod messages;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tickpath_deribit::channel::{Channel, Interval, Selector};
use tickpath_deribit::codes::Kind;
use tickpath_deribit::error_code::ErrorCode;
use tickpath_deribit::field::List;
use tickpath_deribit::messages::{Book, BookLevel, BookUpdateKind, LevelAction, PrivateSubscribe, Subscribe};
use tickpath_deribit::request::{Request, write_notification};
use tickpath_deribit::text::Text;
use tickpath_types::{Price, Qty, Side};

use super::calls::{Need, allows};
use super::candles::{Candle, span_of};
use super::news::typed;
use super::{Answer, Front};
use crate::account::Changes;
use crate::connection::Frame;
use crate::fault::Fault;
use crate::json::{Json, json, list};
use crate::market::{Levels, Trade};
use crate::order::UserTrade;
use crate::scope::Access;

/// Maximum number of channels of one connection; further ones are left out of the answer.
const CHANNELS_MAX: usize = 500;
/// Maximum length of a subscription's label, in characters.
const LABEL_LEN_MAX: usize = 16;
/// Maximum number of trades queued for a channel's next message; the oldest is dropped. Orders queue once.
const WAITING_MAX: usize = 10_000;

/// Instruments covered by a channel.
#[derive(Clone, Debug, PartialEq)]
enum Of {
    Listing(usize),
    Kind(Kind, String),
}

/// Content of a channel.
#[derive(Clone, Debug, PartialEq)]
enum What {
    Book(usize),
    Grouped {
        listing: usize,
        group: i64,
        depth: usize,
    },
    Trades(Of),
    Ticker(usize),
    IncrementalTicker(usize),
    Quote(usize),
    Perpetual(usize),
    PriceIndex(usize),
    EstimatedExpiration(usize),
    /// Candles of an instrument, with their span in milliseconds.
    Candles(usize, u64),
    /// Mark prices of the options of an index.
    OptionMarks(usize),
    States(Kind, String),
    PlatformState,
    PublicMethods,
    UserOrders(Of),
    UserTrades(Of),
    UserChanges(Of),
    Portfolio(Option<String>),
    /// Market maker protection on an index.
    Protection(usize),
    /// A channel without notifications.
    Quiet,
}

/// A channel with at least one subscriber.
struct Topic {
    name: String,
    account: Option<usize>,
    what: What,
    interval: Interval,
    subscribers: Vec<(u64, Option<String>)>,
    /// Book channels: the levels known to the subscribers.
    published: Levels,
    change_id: u64,
    changed: BTreeSet<(usize, i64)>,
    /// Previous message, where only changes are sent.
    last: Vec<u8>,
    /// Previous messages, for channels with several items.
    told: BTreeSet<Vec<u8>>,
    /// Candle channels: the current candle.
    candle: Option<Candle>,
    trades: Vec<(usize, Trade)>,
    orders: Numbers,
    user_trades: Vec<UserTrade>,
    positions: BTreeSet<usize>,
    is_changed: bool,
}

/// All channels with subscribers.
#[derive(Default)]
pub(super) struct Channels {
    topics: Vec<Option<Topic>>,
    by_name: HashMap<(Option<usize>, String), usize>,
    /// Subscriptions whose first message is due.
    due: Vec<(u64, usize)>,
}

impl Channels {
    /// Removes an ended connection from its topics.
    pub(super) fn leave(&mut self, number: u64, topics: &[usize]) {
        topics.iter().for_each(|place| self.drop_subscriber(*place, number));
    }

    fn drop_subscriber(&mut self, place: usize, number: u64) {
        let Some(topic) = self.topics.get_mut(place).and_then(Option::as_mut) else { return };
        topic.subscribers.retain(|(subscriber, _)| *subscriber != number);
        if topic.subscribers.is_empty() {
            let key = (topic.account, topic.name.clone());
            self.by_name.remove(&key);
            self.topics[place] = None;
        }
    }

    fn add(&mut self, topic: Topic) -> usize {
        let key = (topic.account, topic.name.clone());
        let free = self.topics.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.topics.push(None);
            self.topics.len() - 1
        });
        self.topics[place] = Some(topic);
        self.by_name.insert(key, place);
        place
    }
}

/// Changed orders without duplicates, in the order of their first change.
#[derive(Default)]
struct Numbers {
    in_order: Vec<u64>,
    known: HashSet<u64>,
}

impl Numbers {
    fn add(&mut self, number: u64) {
        if self.known.insert(number) {
            self.in_order.push(number);
        }
    }
}

impl Topic {
    fn new(name: &str, account: Option<usize>, what: What, interval: Interval) -> Topic {
        Topic {
            name: name.to_owned(),
            account,
            what,
            interval,
            subscribers: Vec::new(),
            published: Levels::default(),
            change_id: 0,
            changed: BTreeSet::new(),
            last: Vec::new(),
            told: BTreeSet::new(),
            candle: None,
            trades: Vec::new(),
            orders: Numbers::default(),
            user_trades: Vec::new(),
            positions: BTreeSet::new(),
            is_changed: false,
        }
    }
}

impl Front {
    pub(super) fn subscribe(&mut self, number: u64, account: Option<usize>, request: &Request<'_>) -> Answer {
        self.needs_websocket(number)?;
        let (names, label) = if request.method.is_private() {
            let PrivateSubscribe { channels, label } = request.params()?;
            (texts(&channels)?, label.map(|label| label.to_cow().into_owned()))
        } else {
            let Subscribe { channels } = request.params()?;
            (texts(&channels)?, None)
        };
        if label.as_ref().is_some_and(|label| label.chars().count() > LABEL_LEN_MAX) {
            return Err(Fault::param("label", "at most 16 characters"));
        }
        let is_known =
            account.is_some() || self.connections.get(&number).is_some_and(|own| own.account.is_some());
        // A rejected request subscribes to none of its channels.
        let is_forbidden = |name: &String| {
            let channel = Channel::parse(name).ok();
            channel.is_some_and(|channel| channel.needs_authentication() && !channel.is_private())
        };
        if !is_known && names.iter().any(is_forbidden) {
            return Err(ErrorCode::RawSubscriptionsNotAvailableForUnauthorized.into());
        }
        let scope = self.scope_of(number, request);
        let mut subscribed = Vec::new();
        for name in names {
            let Ok(channel) = Channel::parse(&name) else { continue };
            let account = account.filter(|_| channel.is_private());
            if channel.is_private() && (account.is_none() || !allows(&scope, need_of(&channel))) {
                continue;
            }
            let Some((what, interval)) = self.meaning(&channel) else { continue };
            if self.join(number, &name, account, what, interval, label.clone()) {
                if let Some(account) = account {
                    self.note_shown(number, account, request);
                }
                subscribed.push(name);
            }
        }
        Ok(Some(list(subscribed, |name, out| Text::new(&name).write(out))))
    }

    fn meaning(&self, channel: &Channel<'_>) -> Option<(What, Interval)> {
        let of = |selector: &Selector<'_>| match selector {
            Selector::Instrument(name) => self.listing(name).map(Of::Listing),
            Selector::Kind { kind, currency } => Some(Of::Kind(*kind, (*currency).to_owned())),
        };
        let index = |name: &str| self.indices.iter().position(|index| index.name == name);
        Some(match channel {
            Channel::Book { instrument, interval } => (What::Book(self.listing(instrument)?), *interval),
            Channel::GroupedBook { instrument, group, depth, interval } => {
                let listing = self.listing(instrument)?;
                let known = &self.settings.listings[listing];
                let group = match *group {
                    "none" => known.tick.0,
                    steps => known.tick.0.checked_mul(steps.parse().ok().filter(|steps| *steps > 0)?)?,
                };
                let is_depth = matches!(depth, 1 | 10 | 20);
                let what = What::Grouped { listing, group, depth: *depth as usize };
                (Some(what).filter(|_| is_depth && *interval != Interval::Raw)?, *interval)
            }
            Channel::Trades { of: selector, interval } => (What::Trades(of(selector)?), *interval),
            Channel::Ticker { instrument, interval } => (What::Ticker(self.listing(instrument)?), *interval),
            Channel::IncrementalTicker { instrument } => {
                (What::IncrementalTicker(self.listing(instrument)?), Interval::Ms100)
            }
            Channel::Quote { instrument } => (What::Quote(self.listing(instrument)?), Interval::Raw),
            Channel::Perpetual { instrument, interval } => {
                let listing =
                    self.listing(instrument).filter(|place| self.settings.listings[*place].is_perpetual());
                (What::Perpetual(listing?), *interval)
            }
            Channel::PriceIndex { index: name } => (What::PriceIndex(index(name)?), Interval::Agg2),
            Channel::EstimatedExpirationPrice { index: name } => {
                (What::EstimatedExpiration(index(name)?), Interval::Agg2)
            }
            Channel::ChartTrades { instrument, resolution } => {
                (What::Candles(self.listing(instrument)?, span_of(resolution)?), Interval::Ms100)
            }
            Channel::MarkPriceOptions { index: name } => (What::OptionMarks(index(name)?), Interval::Agg2),
            Channel::InstrumentState { kind, currency } => {
                (What::States(*kind, (*currency).to_owned()), Interval::Raw)
            }
            Channel::PlatformState => (What::PlatformState, Interval::Raw),
            Channel::PublicMethodsState => (What::PublicMethods, Interval::Raw),
            Channel::UserOrders { of: selector, interval } => (What::UserOrders(of(selector)?), *interval),
            Channel::UserTrades { of: selector, interval } => (What::UserTrades(of(selector)?), *interval),
            Channel::UserChanges { of: selector, interval } => (What::UserChanges(of(selector)?), *interval),
            Channel::UserPortfolio { currency } => {
                let currency = currency.to_uppercase();
                let is_known = |account| self.currencies_of(account).contains(&currency);
                let one = match currency.as_str() {
                    "ANY" => None,
                    _ => Some((0..self.accounts.len()).any(is_known).then_some(currency)?),
                };
                (What::Portfolio(one), Interval::Agg2)
            }
            Channel::UserMmpTrigger { index: name } => (What::Protection(index(name)?), Interval::Raw),
            Channel::UserLock | Channel::UserAccessLog => (What::Quiet, Interval::Raw),
            _ => return None,
        })
    }

    /// Subscribes the connection; returns true if it is subscribed now.
    fn join(
        &mut self,
        number: u64,
        name: &str,
        account: Option<usize>,
        what: What,
        interval: Interval,
        label: Option<String>,
    ) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else { return false };
        let place = match self.channels.by_name.get(&(account, name.to_owned())) {
            Some(place) if connection.topics.contains(place) => return true,
            _ if connection.topics.len() >= CHANNELS_MAX => return false,
            Some(place) => *place,
            None => {
                let mut topic = Topic::new(name, account, what.clone(), interval);
                if let What::Book(listing) = what {
                    topic.published = self.markets[listing].levels.clone();
                    topic.change_id = self.markets[listing].change_id;
                }
                if let What::Candles(listing, span_ms) = what {
                    let contract = &self.settings.listings[listing].contract;
                    topic.candle = Candle::latest(&self.markets[listing], contract, span_ms);
                }
                self.channels.add(topic)
            }
        };
        connection.topics.push(place);
        if let Some(topic) = &mut self.channels.topics[place] {
            topic.subscribers.push((number, label));
        }
        self.channels.due.push((number, place));
        true
    }

    pub(super) fn unsubscribe(&mut self, number: u64, request: &Request<'_>) -> Answer {
        let Subscribe { channels } = request.params()?;
        let mut left = Vec::new();
        for name in texts(&channels)? {
            let Some(connection) = self.connections.get_mut(&number) else { break };
            let topics = &self.channels.topics;
            let is_named = |place: &usize| topics[*place].as_ref().is_some_and(|topic| topic.name == name);
            let Some(at) = connection.topics.iter().position(is_named) else { continue };
            let place = connection.topics.swap_remove(at);
            self.channels.drop_subscriber(place, number);
            left.push(name);
        }
        Ok(Some(list(left, |name, out| Text::new(&name).write(out))))
    }

    /// Ends the connection's private subscriptions, except those to accounts for which `stays` is true.
    pub(super) fn leave_private(&mut self, number: u64, stays: impl Fn(usize) -> bool) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        connection.shown.retain(|account, _| stays(*account));
        let topics = &self.channels.topics;
        let account = |place: &usize| topics[*place].as_ref().and_then(|topic| topic.account);
        let (stay, leave): (Vec<usize>, Vec<usize>) = std::mem::take(&mut connection.topics)
            .into_iter()
            .partition(|place| account(place).is_none_or(&stays));
        connection.topics = stay;
        self.channels.leave(number, &leave);
    }

    pub(super) fn unsubscribe_all(&mut self, number: u64) -> Answer {
        self.needs_websocket(number)?;
        if let Some(connection) = self.connections.get_mut(&number) {
            let topics = std::mem::take(&mut connection.topics);
            self.channels.leave(number, &topics);
        }
        Ok(Some(json(&Text::new("ok"))))
    }

    /// Sends the snapshots that new subscribers need before the first change.
    pub(super) fn fill_snapshots(&mut self, number: u64) {
        let due = std::mem::take(&mut self.channels.due);
        for (subscriber, place) in due {
            if subscriber != number {
                continue;
            }
            // The other subscribers first get their pending changes, so that all have the same state.
            if let Some(topic) = self.channels.topics.get(place).and_then(Option::as_ref)
                && matches!(topic.what, What::Book(_))
            {
                self.flush(place, Some(number));
            }
            self.begin_ticker(place);
            let Some(topic) = self.channels.topics.get(place).and_then(Option::as_ref) else { continue };
            let data: Vec<Vec<u8>> = match &topic.what {
                What::Book(listing) => vec![self.book_snapshot(topic, *listing)],
                What::IncrementalTicker(listing) => {
                    let mut ticker = Vec::new();
                    self.write_ticker(*listing, &mut ticker);
                    vec![typed("snapshot", &ticker)]
                }
                What::Portfolio(None) => self.portfolios(topic),
                What::Trades(_)
                | What::UserOrders(_)
                | What::UserTrades(_)
                | What::UserChanges(_)
                | What::States(..)
                | What::Protection(_)
                | What::Quiet => Vec::new(),
                _ => self.render(topic).into_iter().collect(),
            };
            let label =
                topic.subscribers.iter().find(|(own, _)| *own == number).and_then(|(_, label)| label.clone());
            let name = topic.name.clone();
            for data in data {
                self.notify(&name, &data, [(number, label.clone())].iter());
            }
        }
    }

    /// Sets the ticker that changes refer to when the first subscriber joins.
    fn begin_ticker(&mut self, place: usize) {
        let topic = self.channels.topics.get(place).and_then(Option::as_ref);
        let Some(Topic { what: What::IncrementalTicker(listing), last, .. }) = topic else { return };
        if last.is_empty() {
            let mut ticker = Vec::new();
            self.write_ticker(*listing, &mut ticker);
            if let Some(topic) = &mut self.channels.topics[place] {
                topic.last = ticker;
            }
        }
    }

    fn notify<'a>(
        &mut self,
        name: &str,
        data: &[u8],
        subscribers: impl Iterator<Item = &'a (u64, Option<String>)>,
    ) {
        let data = Json(data.to_vec());
        let is_change = name.starts_with("book.") && data.0.starts_with(BOOK_CHANGE);
        for (number, label) in subscribers {
            let mut bytes = Vec::with_capacity(data.0.len() + name.len() + 96);
            write_notification(name, &data, label.as_deref(), &mut bytes);
            self.counters.notifications.add(1);
            let frame = Frame { bytes, error: None };
            if is_change && self.faults.switch.is_armed() {
                for frame in self.faults.disturb_book(*number, name, frame).into_iter().flatten() {
                    self.push(*number, frame);
                }
            } else {
                self.push(*number, frame);
            }
        }
    }

    fn book_snapshot(&self, topic: &Topic, place: usize) -> Vec<u8> {
        let listing = &self.settings.listings[place];
        let level = |(price, qty): (&i64, &u64)| BookLevel {
            action: LevelAction::New,
            price: listing.price(Price(*price)),
            amount: listing.amount(Qty(*qty)),
        };
        let bids: Vec<BookLevel> = topic.published[Side::Buy.index()].iter().rev().map(level).collect();
        let asks: Vec<BookLevel> = topic.published[Side::Sell.index()].iter().map(level).collect();
        json(&Book {
            kind: Some(BookUpdateKind::Snapshot),
            timestamp: self.now_ms(),
            prev_change_id: None,
            instrument_name: Text::new(&listing.name),
            change_id: topic.change_id,
            bids: List::new(&bids),
            asks: List::new(&asks),
        })
    }

    /// Records the changes by a command for each channel, and publishes them at once on raw channels.
    pub(super) fn tell(
        &mut self,
        touched: &[usize],
        trades: &[(usize, Trade)],
        changes: &BTreeMap<usize, Changes>,
    ) {
        for place in 0..self.channels.topics.len() {
            let Some(mut topic) = self.channels.topics[place].take() else { continue };
            self.note(&mut topic, touched, trades, changes);
            let is_due = topic.interval == Interval::Raw && topic.is_changed;
            self.channels.topics[place] = Some(topic);
            if is_due {
                self.flush(place, None);
            }
        }
        self.tell_fix(touched, trades, changes);
    }

    fn note(
        &self,
        topic: &mut Topic,
        touched: &[usize],
        trades: &[(usize, Trade)],
        changes: &BTreeMap<usize, Changes>,
    ) {
        match &topic.what {
            What::Book(listing) if touched.contains(listing) => {
                let levels = self.markets[*listing].touched.iter();
                topic.changed.extend(levels.map(|(side, price)| (side.index(), *price)));
                topic.is_changed |= !topic.changed.is_empty();
            }
            What::Grouped { listing, .. }
            | What::Ticker(listing)
            | What::IncrementalTicker(listing)
            | What::Quote(listing) => {
                topic.is_changed |= touched.contains(listing);
            }
            What::Trades(of) => {
                let new = trades.iter().filter(|(place, _)| self.is_of(of, *place));
                topic.trades.extend(new.copied());
                let excess = topic.trades.len().saturating_sub(WAITING_MAX);
                topic.trades.drain(..excess);
                topic.is_changed |= !topic.trades.is_empty();
            }
            What::Candles(listing, span_ms) => {
                let contract = &self.settings.listings[*listing].contract;
                for (_, trade) in trades.iter().filter(|(place, _)| place == listing) {
                    Candle::take(&mut topic.candle, trade, contract, *span_ms);
                    topic.is_changed = true;
                }
            }
            What::States(kind, currency) => {
                let is_meant = |place: &&usize| self.settings.listings[**place].is_of(Some(*kind), currency);
                let closed = touched.iter().filter(is_meant);
                topic.positions.extend(closed.copied());
                topic.is_changed |= !topic.positions.is_empty();
            }
            What::UserOrders(of) | What::UserTrades(of) | What::UserChanges(of) => {
                let Some(account) = topic.account else { return };
                let Some(changes) = changes.get(&account).filter(|changes| !changes.is_empty()) else {
                    return;
                };
                for number in &changes.orders {
                    let order = self.accounts[account].order(*number);
                    if order.is_some_and(|order| self.is_of(of, order.listing)) {
                        topic.orders.add(*number);
                    }
                }
                let new: Vec<_> =
                    changes.trades.iter().filter(|trade| self.is_of(of, trade.listing)).cloned().collect();
                topic.positions.extend(new.iter().map(|trade| trade.listing));
                if matches!(topic.what, What::UserChanges(_)) {
                    let settled = changes.positions.iter().filter(|place| self.is_of(of, **place));
                    topic.positions.extend(settled.copied());
                }
                topic.user_trades.extend(new);
                let excess = topic.user_trades.len().saturating_sub(WAITING_MAX);
                topic.user_trades.drain(..excess);
                topic.is_changed = match topic.what {
                    What::UserTrades(_) => !topic.user_trades.is_empty(),
                    What::UserChanges(_) => !(topic.orders.in_order.is_empty() && topic.positions.is_empty()),
                    _ => !topic.orders.in_order.is_empty() || !topic.user_trades.is_empty(),
                };
            }
            What::Portfolio(_) => {
                topic.is_changed |= topic.account.is_some_and(|account| changes.contains_key(&account));
            }
            _ => {}
        }
    }

    /// Publishes that market maker protection stopped an account's quotes.
    pub(super) fn tell_of_protection(&mut self, account: usize, index: usize, news: &[u8]) {
        let topics = self.channels.topics.iter().flatten();
        let told: Vec<_> = topics
            .filter(|topic| topic.account == Some(account) && topic.what == What::Protection(index))
            .map(|topic| (topic.name.clone(), topic.subscribers.clone()))
            .collect();
        for (name, subscribers) in told {
            self.notify(&name, news, subscribers.iter());
        }
    }

    /// Publishes a state change of an instrument that no market event caused.
    pub(super) fn tell_of_state(&mut self, place: usize) {
        if self.is_live {
            self.tell(&[place], &[], &BTreeMap::new());
        }
    }

    fn is_of(&self, of: &Of, place: usize) -> bool {
        match of {
            Of::Listing(listing) => *listing == place,
            Of::Kind(kind, currency) => self.settings.listings[place].is_of(Some(*kind), currency),
        }
    }

    /// Marks the channels that follow index and mark prices as changed.
    pub(super) fn note_prices(&mut self) {
        for topic in self.channels.topics.iter_mut().flatten() {
            let follows = matches!(
                topic.what,
                What::Ticker(_)
                    | What::IncrementalTicker(_)
                    | What::PriceIndex(_)
                    | What::Perpetual(_)
                    | What::Portfolio(_)
                    | What::EstimatedExpiration(_)
                    | What::OptionMarks(_)
            );
            topic.is_changed |= follows;
        }
        self.flush_of(Interval::Raw);
        self.tell_indices();
    }

    pub(super) fn flush_tenths(&mut self) {
        self.flush_of(Interval::Ms100);
    }

    pub(super) fn flush_seconds(&mut self) {
        self.flush_of(Interval::Agg2);
    }

    fn flush_of(&mut self, interval: Interval) {
        for place in 0..self.channels.topics.len() {
            let topic = self.channels.topics[place].as_ref();
            if topic.is_some_and(|topic| topic.interval == interval && topic.is_changed) {
                self.flush(place, None);
            }
        }
    }

    /// Publishes the pending changes of a channel to all subscribers except `but`.
    fn flush(&mut self, place: usize, but: Option<u64>) {
        let Some(mut topic) = self.channels.topics[place].take() else { return };
        topic.is_changed = false;
        let messages = self.news(&mut topic);
        let others: Vec<_> =
            topic.subscribers.iter().filter(|(number, _)| Some(*number) != but).cloned().collect();
        for data in messages {
            self.notify(&topic.name, &data, others.iter());
        }
        self.channels.topics[place] = Some(topic);
    }
}

/// Returns the access that a private channel requires: that of the methods with the same data.
const fn need_of(channel: &Channel<'_>) -> Need {
    match channel {
        Channel::UserPortfolio { .. } | Channel::UserLock | Channel::UserAccessLog => {
            Need::Account(Access::Read)
        }
        _ => Need::Trade(Access::Read),
    }
}

/// Start of a book change message.
const BOOK_CHANGE: &[u8] = b"{\"type\":\"change\"";

fn texts(channels: &List<'_, Text<'_>>) -> Result<Vec<String>, Fault> {
    let texts = channels.iter().map(|text| text.map(|text| text.to_cow().into_owned()));
    texts.collect::<Result<_, _>>().map_err(|_| Fault::param("channels", "value must be a list of names"))
}

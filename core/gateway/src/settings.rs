//! What a core is set to do, and its parts as they begin.

use regex::Regex;
use tickpath_deribit::resolution::Resolution;
use tickpath_gateway_protocol::{ConnectionStatus, RateLimitsUpdate, Text, Transport};
use tickpath_types::Nanos;

use super::account::Account;
use super::caps::RiskLimit;
use super::clients::User;
use super::label::user_tag;
use super::news::GroupText;
use super::{MARKET_STREAMS_MAX, Stream, fix, quotes};

/// What a core is set to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The gateway's name, which labels of orders carry.
    pub name: String,
    /// The venue's name.
    pub exchange: Text<32>,
    /// Its WebSocket.
    pub uri: Text<80>,
    /// Its FIX endpoint; empty where there is none.
    pub fix_uri: Text<80>,
    /// What orders go by.
    pub trading: Transport,
    /// Real money.
    pub is_production: bool,
    /// No order leaves in any case.
    pub is_dry_run: bool,
    /// The instruments that are there.
    pub filter: SymbolFilter,
    /// The accounts in the order of their names: the place of each is its number. 64 at most.
    pub accounts: Vec<AccountSettings>,
    /// The users in the order of their names: the place of each is its number.
    pub users: Vec<UserSettings>,
    /// What is asked for of each instrument.
    pub feeds: Feeds,
    /// Levels of a book's side that clients see.
    pub depth: usize,
    /// Channels of one connection for market data at most.
    pub subscriptions_max: usize,
    /// Interval of books and trades, as channels name it.
    pub interval: &'static str,
    /// The same of tickers.
    pub ticker_interval: &'static str,
    /// How long a subscribed book may be waited for.
    pub book_timeout: Nanos,
    /// Longest wait for the venue's answer to a request.
    pub request_timeout: Nanos,
    /// Open orders of all clients at most.
    pub orders_max: usize,
    /// How often connections are pinged.
    pub ping_interval: Nanos,
    /// Requests to the matching engine a second and at once, as the venue grants them.
    pub matching: (u32, u32),
    /// A client's orders are cancelled when it disconnects.
    pub cancels: bool,
    /// How long clients may take to come back to orders of an earlier life.
    pub return_patience: Nanos,
    /// Orders leave for instruments where one is open that cannot be read.
    pub trades_beside_unreadable: bool,
}

/// An account at the venue.
#[derive(Clone, Debug)]
pub struct AccountSettings {
    /// Its name.
    pub name: String,
    /// The instruments that it may trade.
    pub symbols: Matcher,
    /// What none of its orders may exceed.
    pub caps: RiskLimit,
    /// No order leaves before limits are published for it.
    pub waits_for_limits: bool,
}

/// A user of the gateway.
#[derive(Clone, Debug)]
pub struct UserSettings {
    /// Its name.
    pub name: String,
    /// The accounts that it may trade with, a bit for each by its place.
    pub accounts: u64,
    /// The instruments that it may trade.
    pub symbols: Matcher,
    /// Its single orders may ask for market maker protection.
    pub has_mmp: bool,
    /// The group of market maker protection that it quotes in, as the venue knows it; no mass quotes where absent.
    pub mmp_group: Option<GroupText>,
    /// It may publish limits for its accounts.
    pub is_risk_manager: bool,
    /// How often it may ask.
    pub requests: RequestLimit,
}

/// How often a user may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimit {
    /// Requests within the monitor period; one more begins a ban. At least 1.
    pub max: u32,
    /// The time over which requests are counted.
    pub monitor_period: Nanos,
    /// How long a user that asked for too much is refused.
    pub ban_period: Nanos,
}

/// What is asked for of each instrument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feeds {
    /// Statistics; and best prices where `book` is off.
    pub ticker: bool,
    /// Changes of the book.
    pub book: bool,
    /// Trades.
    pub trades: bool,
    /// States of instruments.
    pub instrument_state: bool,
    /// Candles of these lengths.
    pub time_series: Vec<Resolution>,
    /// Candles of each length that a client receives when it connects, at most.
    pub time_series_length: u32,
}

/// Patterns of symbols. Asked when an instrument becomes known, never per request.
#[derive(Clone, Debug, Default)]
pub struct Matcher(pub Vec<Regex>);

impl Matcher {
    /// Whether one of them matches the symbol.
    #[must_use]
    pub fn matches(&self, symbol: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(symbol))
    }
}

/// The instruments that are there at all.
#[derive(Clone, Debug)]
pub struct SymbolFilter {
    /// Those that are there.
    pub include: Matcher,
    /// Those of them that are not.
    pub exclude: Matcher,
}

impl SymbolFilter {
    /// Whether the instrument of this name is there.
    #[must_use]
    pub fn has(&self, symbol: &str) -> bool {
        self.include.matches(symbol) && !self.exclude.matches(symbol)
    }
}

impl Settings {
    /// Instruments that share a connection for market data: one has the channels of `feeds`.
    pub(super) fn instruments_of_one(&self) -> usize {
        let feeds = &self.feeds;
        let own = [feeds.book, feeds.ticker, feeds.trades].iter().filter(|is_on| **is_on).count();
        // One channel tells of the states of all.
        (self.subscriptions_max.saturating_sub(1) / (own + feeds.time_series.len()).max(1)).max(1)
    }

    fn is_by_fix(&self) -> bool {
        self.trading == Transport::FIX
    }

    /// The connections: those for market data, one of each account, and one more of each whose orders go by FIX.
    pub(super) fn streams(&self) -> Vec<Stream> {
        let stream = |name: &str, account, transport, is_trading| Stream {
            status: ConnectionStatus::DISCONNECTED,
            losses: 0,
            round_trip: Nanos::ZERO,
            // Of a long name the beginning: the account says which it is.
            name: Text::cut(name),
            account,
            transport,
            is_trading,
        };
        let by_fix = self.is_by_fix();
        let accounts = || (0_u16..).zip(&self.accounts);
        let market = (1..=MARKET_STREAMS_MAX)
            .map(|number| stream(&format!("market-{number}"), None, Transport::WEB_SOCKET, false));
        let trading = accounts()
            .map(|(place, account)| stream(&account.name, Some(place), Transport::WEB_SOCKET, !by_fix));
        let entries = accounts().filter(|_| by_fix).map(|(place, account)| {
            stream(&format!("fix-{}", account.name), Some(place), Transport::FIX, true)
        });
        market.chain(trading).chain(entries).collect()
    }

    /// The accounts as they begin.
    pub(super) fn accounts(&self) -> Vec<Account> {
        let count = self.accounts.len();
        let of_place = |(place, settings): (usize, &AccountSettings)| {
            let mut account = Account::new(&settings.name, MARKET_STREAMS_MAX + place, self.orders_max);
            let entry = MARKET_STREAMS_MAX + count + place;
            account.entry = self.is_by_fix().then(|| fix::OrderEntry::new(entry));
            let quotes = |user: &UserSettings| user.mmp_group.is_some() && user.accounts & 1 << place != 0;
            let quoter = self.users.iter().position(quotes);
            account.quotes = quotes::Quotes::of(quoter.map(|place| place as u16));
            account
        };
        self.accounts.iter().enumerate().map(of_place).collect()
    }

    /// The users as they begin.
    pub(super) fn users(&self) -> Vec<User> {
        let of_one = |user: &UserSettings| User {
            name: user.name.clone(),
            tag: user_tag(&user.name),
            accounts: user.accounts,
            has_mmp: user.has_mmp || user.mmp_group.is_some(),
            mmp_group: user.mmp_group.unwrap_or(Text::EMPTY),
            order_id_max: 0,
            told_left: RateLimitsUpdate::default(),
            absent_since: None,
        };
        self.users.iter().map(of_one).collect()
    }
}

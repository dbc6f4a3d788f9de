//! Settings of a core, and the initial state that follows from them.

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

/// Settings of a core.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the gateway, which labels of orders carry.
    pub name: String,
    /// Name of the venue.
    pub exchange: Text<32>,
    /// Address of the venue's WebSocket.
    pub uri: Text<80>,
    /// Address of the venue's FIX endpoint; empty if there is none.
    pub fix_uri: Text<80>,
    /// Transport used for orders.
    pub trading: Transport,
    /// Whether the venue is a production venue.
    pub is_production: bool,
    /// Dry run: no order leaves.
    pub is_dry_run: bool,
    /// Filter for the venue's instruments.
    pub filter: SymbolFilter,
    /// The accounts, at most 64, in the order of their names: an account's index is its number.
    pub accounts: Vec<AccountSettings>,
    /// The users in the order of their names: a user's index is its number.
    pub users: Vec<UserSettings>,
    /// Data requested for each instrument.
    pub feeds: Feeds,
    /// Number of levels per side of a book that clients receive.
    pub depth: usize,
    /// Maximum number of channels on one market data connection.
    pub subscriptions_max: usize,
    /// Interval of books and trades, as in channel names.
    pub interval: &'static str,
    /// Interval of tickers, as in channel names.
    pub ticker_interval: &'static str,
    /// Maximum time to wait for a subscribed book.
    pub book_timeout: Nanos,
    /// Maximum time to wait for the venue's answer to a request.
    pub request_timeout: Nanos,
    /// Maximum number of open orders of all clients.
    pub orders_max: usize,
    /// Interval between pings of a connection.
    pub ping_interval: Nanos,
    /// Rate limit of the matching engine: requests per second, and burst, as granted by the venue.
    pub matching: (u32, u32),
    /// Whether a client's orders are cancelled when it disconnects.
    pub cancels: bool,
    /// Time for clients to return before an earlier instance's orders are cancelled.
    pub return_patience: Nanos,
    /// Whether orders leave for an instrument that has an undecodable open order.
    pub trades_beside_unreadable: bool,
}

/// An account at the venue.
#[derive(Clone, Debug)]
pub struct AccountSettings {
    /// Name of the account.
    pub name: String,
    /// Instruments that the account may trade.
    pub symbols: Matcher,
    /// Limits for each order.
    pub caps: RiskLimit,
    /// Whether orders are rejected until limits are published for the account.
    pub waits_for_limits: bool,
}

/// A user of the gateway.
#[derive(Clone, Debug)]
pub struct UserSettings {
    /// Name of the user.
    pub name: String,
    /// Accounts that the user may trade with, one bit each by index.
    pub accounts: u64,
    /// Instruments that the user may trade.
    pub symbols: Matcher,
    /// Whether the user's single orders may use market maker protection.
    pub has_mmp: bool,
    /// The venue's market maker protection group for the user's quotes; without one, no mass quotes.
    pub mmp_group: Option<GroupText>,
    /// Whether the user may publish limits for its accounts.
    pub is_risk_manager: bool,
    /// The user's rate limit.
    pub requests: RequestLimit,
}

/// Rate limit of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimit {
    /// Maximum number of requests in the monitor period; the next one starts a ban. At least 1.
    pub max: u32,
    /// Length of the window in which requests are counted.
    pub monitor_period: Nanos,
    /// Duration of a ban.
    pub ban_period: Nanos,
}

/// Data requested for each instrument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feeds {
    /// Statistics, and best prices if `book` is off.
    pub ticker: bool,
    /// Books.
    pub book: bool,
    /// Trades.
    pub trades: bool,
    /// States of the instruments.
    pub instrument_state: bool,
    /// Candles of these lengths.
    pub time_series: Vec<Resolution>,
    /// Maximum number of candles of each length that a client receives when it connects.
    pub time_series_length: u32,
}

/// Patterns of symbols. Matched when an instrument becomes known, never per request.
#[derive(Clone, Debug, Default)]
pub struct Matcher(pub Vec<Regex>);

impl Matcher {
    /// Whether one of the patterns matches the symbol.
    #[must_use]
    pub fn matches(&self, symbol: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(symbol))
    }
}

/// Selection of the venue's instruments.
#[derive(Clone, Debug)]
pub struct SymbolFilter {
    /// Included instruments.
    pub include: Matcher,
    /// Instruments excluded from them.
    pub exclude: Matcher,
}

impl SymbolFilter {
    /// Whether the instrument of this name is selected.
    #[must_use]
    pub fn has(&self, symbol: &str) -> bool {
        self.include.matches(symbol) && !self.exclude.matches(symbol)
    }
}

impl Settings {
    /// Number of instruments per market data connection: an instrument has all channels of `feeds`.
    pub(super) fn instruments_of_one(&self) -> usize {
        let feeds = &self.feeds;
        let own = [feeds.book, feeds.ticker, feeds.trades].iter().filter(|is_on| **is_on).count();
        // One channel carries the states of all instruments.
        (self.subscriptions_max.saturating_sub(1) / (own + feeds.time_series.len()).max(1)).max(1)
    }

    fn is_by_fix(&self) -> bool {
        self.trading == Transport::FIX
    }

    /// All connections: for market data, one per account, and one more per account whose orders use FIX.
    pub(super) fn streams(&self) -> Vec<Stream> {
        let stream = |name: &str, account, transport, is_trading| Stream {
            status: ConnectionStatus::DISCONNECTED,
            losses: 0,
            round_trip: Nanos::ZERO,
            // A long name is cut; the account number identifies the connection.
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

    /// Initial state of the accounts.
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

    /// Initial state of the users.
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

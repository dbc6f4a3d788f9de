//! The parts of a core as a configuration says.

use tickpath_config::ConfigError;
use tickpath_gateway_protocol::{ConnectionStatus, RateLimitsUpdate, Text, Transport};
use tickpath_types::Nanos;

use super::account::Account;
use super::clients::User;
use super::label::user_tag;
use super::{CoreSettings, MARKET_STREAMS_MAX, Stream, fix, market_data, quotes};
use crate::config::{GatewayConfig, UserConfig};

fn is_by_fix(config: &GatewayConfig) -> bool {
    config.venue.transport == crate::config::Transport::Fix
}

/// The connections: those for market data, one of each account, and one more of each whose orders go by FIX.
pub(super) fn streams(config: &GatewayConfig) -> Vec<Stream> {
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
    let by_fix = is_by_fix(config);
    let names = || (0_u16..).zip(config.accounts.keys());
    let market = (1..=MARKET_STREAMS_MAX)
        .map(|number| stream(&format!("market-{number}"), None, Transport::WEB_SOCKET, false));
    let trading = names().map(|(place, name)| stream(name, Some(place), Transport::WEB_SOCKET, !by_fix));
    let entries = names()
        .filter(|_| by_fix)
        .map(|(place, name)| stream(&format!("fix-{name}"), Some(place), Transport::FIX, true));
    market.chain(trading).chain(entries).collect()
}

/// The accounts, in the order of their names.
pub(super) fn accounts(config: &GatewayConfig) -> Vec<Account> {
    let count = config.accounts.len();
    let of_name = |(place, name): (usize, &String)| {
        let mut account = Account::new(name, MARKET_STREAMS_MAX + place, config.clients.orders_max as usize);
        let entry = MARKET_STREAMS_MAX + count + place;
        account.entry = is_by_fix(config).then(|| fix::OrderEntry::new(entry));
        let quotes = |user: &UserConfig| user.mmp_group.is_some() && user.accounts.contains(name);
        let quoter = config.users.values().position(quotes);
        account.quotes = quotes::Quotes::of(quoter.map(|place| place as u16));
        account
    };
    config.accounts.keys().enumerate().map(of_name).collect()
}

/// The users, in the order of their names.
pub(super) fn users(config: &GatewayConfig) -> Vec<User> {
    let bit = |name: &String| {
        config.accounts.keys().position(|known| known == name).map_or(0, |place| 1_u64 << place)
    };
    let of_name = |(name, user): (&String, &UserConfig)| User {
        name: name.clone(),
        tag: user_tag(name),
        accounts: user.accounts.iter().map(bit).fold(0, |all, bit| all | bit),
        has_mmp: user.mmp || user.mmp_group.is_some(),
        mmp_group: user.mmp_group.as_deref().map_or(Text::EMPTY, Text::cut),
        order_id_max: 0,
        told_left: RateLimitsUpdate::default(),
        absent_since: None,
    };
    config.users.iter().map(of_name).collect()
}

impl CoreSettings {
    /// What a core takes of a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] with a pattern that is none.
    pub(super) fn of(config: &GatewayConfig) -> Result<CoreSettings, ConfigError> {
        let GatewayConfig { venue, clients, .. } = config;
        let users = config.users.iter();
        let user_patterns = users.map(|(name, user)| user.symbols.compile(&format!("users.{name}.symbols")));
        let accounts = config.accounts.iter();
        let account_patterns =
            accounts.map(|(name, account)| account.symbols.compile(&format!("accounts.{name}.symbols")));
        let subscriptions_max = venue.subscriptions_max as usize;
        Ok(CoreSettings {
            exchange: Text::cut(&venue.exchange),
            uri: Text::cut(&venue.ws_uri),
            fix_uri: venue.fix_uri.as_ref().map_or(Text::EMPTY, |uri| Text::cut(&uri.to_string())),
            trading: if is_by_fix(config) { Transport::FIX } else { Transport::WEB_SOCKET },
            is_production: config.production,
            is_dry_run: config.dry_run,
            filter: config.symbols.filter()?,
            user_patterns: user_patterns.collect::<Result<_, _>>()?,
            account_patterns: account_patterns.collect::<Result<_, _>>()?,
            feeds: venue.feeds.clone(),
            depth: venue.depth as usize,
            instruments_of_one: market_data::instruments_of_one(subscriptions_max, &venue.feeds),
            interval: venue.book_interval.name(),
            ticker_interval: venue.ticker_interval.name(),
            book_timeout: venue.book_timeout.0,
            request_timeout: venue.request_timeout.0,
            orders_max: clients.orders_max as usize,
            ping_interval: venue.ws_ping_interval.0,
            matching: (venue.matching_rate, venue.matching_burst),
            cancels: clients.cancel_on_disconnect,
            return_patience: clients.return_patience.0,
            trades_beside_unreadable: venue.trade_beside_unreadable,
        })
    }
}

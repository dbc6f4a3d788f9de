//! Channel names as values.

use std::fmt;

use thiserror::Error;

use crate::codes::Kind;
use crate::field::codes;

codes! {
    /// Update interval of a channel.
    Interval {
        Raw = "raw" "each change; of public channels only for authenticated clients",
        Ms100 = "100ms" "what changed in 100 ms",
        Agg2 = "agg2" "what changed in a second or two",
    }
}

/// Instruments of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selector<'a> {
    /// One instrument.
    Instrument(&'a str),
    /// All instruments of a kind and a currency.
    Kind {
        /// The kind, or any kind.
        kind: Kind,
        /// The currency, or `any`.
        currency: &'a str,
    },
}

/// A channel that a client subscribes to.
///
/// ```
/// use tickpath_deribit::channel::{Channel, Interval};
///
/// let channel = Channel::Book { instrument: "BTC-PERPETUAL", interval: Interval::Raw };
/// assert_eq!(channel.to_string(), "book.BTC-PERPETUAL.raw");
/// assert_eq!(Channel::parse("book.BTC-PERPETUAL.raw"), Ok(channel));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Channel<'a> {
    /// The whole book, then its changes.
    Book {
        /// The instrument.
        instrument: &'a str,
        /// Update interval.
        interval: Interval,
    },
    /// The best levels, complete in each message.
    GroupedBook {
        /// The instrument.
        instrument: &'a str,
        /// `none`, or the price range of one level.
        group: &'a str,
        /// Levels per side: 1, 10 or 20.
        depth: u32,
        /// Update interval.
        interval: Interval,
    },
    /// Public trades.
    Trades {
        /// Instruments.
        of: Selector<'a>,
        /// Update interval.
        interval: Interval,
    },
    /// The ticker.
    Ticker {
        /// The instrument.
        instrument: &'a str,
        /// Update interval.
        interval: Interval,
    },
    /// The ticker once, then its changes.
    IncrementalTicker {
        /// The instrument.
        instrument: &'a str,
    },
    /// The best bid and ask.
    Quote {
        /// The instrument.
        instrument: &'a str,
    },
    /// Funding of a perpetual.
    Perpetual {
        /// The instrument.
        instrument: &'a str,
        /// Update interval.
        interval: Interval,
    },
    /// The price of an index.
    PriceIndex {
        /// Index name, such as `btc_usd`.
        index: &'a str,
    },
    /// New, opened and closed instruments.
    InstrumentState {
        /// Kind of the instruments.
        kind: Kind,
        /// Currency of the instruments.
        currency: &'a str,
    },
    /// Trading locks and maintenance.
    PlatformState,
    /// Whether unauthenticated clients may call public methods.
    PublicMethodsState,
    /// Candles.
    ChartTrades {
        /// The instrument.
        instrument: &'a str,
        /// Minutes, or `1D`.
        resolution: &'a str,
    },
    /// Estimated delivery price.
    EstimatedExpirationPrice {
        /// Index name, such as `btc_usd`.
        index: &'a str,
    },
    /// Mark prices of all options of an index.
    MarkPriceOptions {
        /// Index name, such as `btc_usd`.
        index: &'a str,
    },
    /// The user's orders: single orders if raw, otherwise lists.
    UserOrders {
        /// Instruments.
        of: Selector<'a>,
        /// Update interval.
        interval: Interval,
    },
    /// The user's trades.
    UserTrades {
        /// Instruments.
        of: Selector<'a>,
        /// Update interval.
        interval: Interval,
    },
    /// The user's orders, trades and positions together.
    UserChanges {
        /// Instruments.
        of: Selector<'a>,
        /// Update interval.
        interval: Interval,
    },
    /// The user's account.
    UserPortfolio {
        /// The currency, or `any`.
        currency: &'a str,
    },
    /// Market maker protection has stopped quoting.
    UserMmpTrigger {
        /// Index name, such as `btc_usd`.
        index: &'a str,
    },
    /// The account was locked.
    UserLock,
    /// Logins and changes of settings.
    UserAccessLog,
}

/// The text is not a channel name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no channel has this name: check its parts, e.g. book.BTC-PERPETUAL.raw")]
pub struct ChannelError;

/// Maximum number of parts in a channel name.
const PARTS_MAX: usize = 6;

impl<'a> Channel<'a> {
    /// Parses a channel name.
    ///
    /// # Errors
    /// [`ChannelError`] if there is no such channel.
    pub fn parse(name: &'a str) -> Result<Channel<'a>, ChannelError> {
        let mut parts = [""; PARTS_MAX];
        let mut count = 0;
        for part in name.split('.') {
            *parts.get_mut(count).ok_or(ChannelError)? = part;
            count += 1;
            if part.is_empty() {
                return Err(ChannelError);
            }
        }
        Ok(match parts[..count] {
            ["book", instrument, interval] => Channel::Book { instrument, interval: known(interval)? },
            ["book", instrument, group, depth, interval] => Channel::GroupedBook {
                instrument,
                group,
                depth: small_number(depth)?,
                interval: known(interval)?,
            },
            ["trades", ref of @ .., interval] => {
                Channel::Trades { of: selector(of)?, interval: known(interval)? }
            }
            ["ticker", instrument, interval] => Channel::Ticker { instrument, interval: known(interval)? },
            ["incremental_ticker", instrument] => Channel::IncrementalTicker { instrument },
            ["quote", instrument] => Channel::Quote { instrument },
            ["perpetual", instrument, interval] => {
                Channel::Perpetual { instrument, interval: known(interval)? }
            }
            ["deribit_price_index", index] => Channel::PriceIndex { index },
            ["instrument", "state", kind, currency] => {
                Channel::InstrumentState { kind: known_kind(kind)?, currency }
            }
            ["platform_state"] => Channel::PlatformState,
            ["platform_state", "public_methods_state"] => Channel::PublicMethodsState,
            ["chart", "trades", instrument, resolution] => Channel::ChartTrades { instrument, resolution },
            ["estimated_expiration_price", index] => Channel::EstimatedExpirationPrice { index },
            ["markprice", "options", index] => Channel::MarkPriceOptions { index },
            ["user", "orders", ref of @ .., interval] => {
                Channel::UserOrders { of: selector(of)?, interval: known(interval)? }
            }
            ["user", "trades", ref of @ .., interval] => {
                Channel::UserTrades { of: selector(of)?, interval: known(interval)? }
            }
            ["user", "changes", ref of @ .., interval] => {
                Channel::UserChanges { of: selector(of)?, interval: known(interval)? }
            }
            ["user", "portfolio", currency] => Channel::UserPortfolio { currency },
            ["user", "mmp_trigger", index] => Channel::UserMmpTrigger { index },
            ["user", "lock"] => Channel::UserLock,
            ["user", "access_log"] => Channel::UserAccessLog,
            _ => return Err(ChannelError),
        })
    }

    /// True for channels that only an authenticated client may subscribe to, with `private/subscribe`.
    #[must_use]
    pub const fn is_private(&self) -> bool {
        matches!(
            self,
            Channel::UserOrders { .. }
                | Channel::UserTrades { .. }
                | Channel::UserChanges { .. }
                | Channel::UserPortfolio { .. }
                | Channel::UserMmpTrigger { .. }
                | Channel::UserLock
                | Channel::UserAccessLog
        )
    }

    /// True for channels that only an authenticated client receives: private and raw public ones.
    #[must_use]
    pub const fn needs_authentication(&self) -> bool {
        self.is_private()
            || matches!(
                self,
                Channel::Book { interval: Interval::Raw, .. }
                    | Channel::Trades { interval: Interval::Raw, .. }
                    | Channel::Ticker { interval: Interval::Raw, .. }
                    | Channel::Perpetual { interval: Interval::Raw, .. }
            )
    }
}

fn known(interval: &str) -> Result<Interval, ChannelError> {
    Some(Interval::from_text(interval)).filter(|interval| *interval != Interval::Other).ok_or(ChannelError)
}

fn known_kind(kind: &str) -> Result<Kind, ChannelError> {
    Some(Kind::from_text(kind)).filter(|kind| *kind != Kind::Other).ok_or(ChannelError)
}

fn small_number(text: &str) -> Result<u32, ChannelError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if is_plain { text.parse().map_err(|_| ChannelError) } else { Err(ChannelError) }
}

fn selector<'a>(parts: &[&'a str]) -> Result<Selector<'a>, ChannelError> {
    match parts {
        [instrument] => Ok(Selector::Instrument(instrument)),
        [kind, currency] => Ok(Selector::Kind { kind: known_kind(kind)?, currency }),
        _ => Err(ChannelError),
    }
}

impl fmt::Display for Selector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Instrument(instrument) => f.write_str(instrument),
            Selector::Kind { kind, currency } => write!(f, "{kind}.{currency}"),
        }
    }
}

impl fmt::Display for Channel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Channel::Book { instrument, interval } => write!(f, "book.{instrument}.{interval}"),
            Channel::GroupedBook { instrument, group, depth, interval } => {
                write!(f, "book.{instrument}.{group}.{depth}.{interval}")
            }
            Channel::Trades { of, interval } => write!(f, "trades.{of}.{interval}"),
            Channel::Ticker { instrument, interval } => write!(f, "ticker.{instrument}.{interval}"),
            Channel::IncrementalTicker { instrument } => write!(f, "incremental_ticker.{instrument}"),
            Channel::Quote { instrument } => write!(f, "quote.{instrument}"),
            Channel::Perpetual { instrument, interval } => write!(f, "perpetual.{instrument}.{interval}"),
            Channel::PriceIndex { index } => write!(f, "deribit_price_index.{index}"),
            Channel::InstrumentState { kind, currency } => write!(f, "instrument.state.{kind}.{currency}"),
            Channel::PlatformState => f.write_str("platform_state"),
            Channel::PublicMethodsState => f.write_str("platform_state.public_methods_state"),
            Channel::ChartTrades { instrument, resolution } => {
                write!(f, "chart.trades.{instrument}.{resolution}")
            }
            Channel::EstimatedExpirationPrice { index } => write!(f, "estimated_expiration_price.{index}"),
            Channel::MarkPriceOptions { index } => write!(f, "markprice.options.{index}"),
            Channel::UserOrders { of, interval } => write!(f, "user.orders.{of}.{interval}"),
            Channel::UserTrades { of, interval } => write!(f, "user.trades.{of}.{interval}"),
            Channel::UserChanges { of, interval } => write!(f, "user.changes.{of}.{interval}"),
            Channel::UserPortfolio { currency } => write!(f, "user.portfolio.{currency}"),
            Channel::UserMmpTrigger { index } => write!(f, "user.mmp_trigger.{index}"),
            Channel::UserLock => f.write_str("user.lock"),
            Channel::UserAccessLog => f.write_str("user.access_log"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (name, is_private, needs_authentication) in [
            ("book.BTC-PERPETUAL.raw", false, true),
            ("book.BTC-PERPETUAL.100ms", false, false),
            ("book.ETH-25DEC26-3000-C.none.20.100ms", false, false),
            ("trades.BTC_USDC-PERPETUAL.agg2", false, false),
            ("trades.option.any.raw", false, true),
            ("ticker.BTC-PERPETUAL.raw", false, true),
            ("incremental_ticker.BTC-PERPETUAL", false, false),
            ("quote.BTC-PERPETUAL", false, false),
            ("perpetual.BTC-PERPETUAL.100ms", false, false),
            ("deribit_price_index.btc_usd", false, false),
            ("instrument.state.any.BTC", false, false),
            ("platform_state", false, false),
            ("platform_state.public_methods_state", false, false),
            ("chart.trades.BTC-PERPETUAL.1D", false, false),
            ("estimated_expiration_price.btc_usd", false, false),
            ("markprice.options.btc_usd", false, false),
            ("user.orders.BTC-PERPETUAL.raw", true, true),
            ("user.orders.future.BTC.100ms", true, true),
            ("user.trades.any.any.raw", true, true),
            ("user.changes.BTC-PERPETUAL.agg2", true, true),
            ("user.portfolio.btc", true, true),
            ("user.mmp_trigger.btc_usd", true, true),
            ("user.lock", true, true),
            ("user.access_log", true, true),
        ] {
            let channel = Channel::parse(name).expect(name);
            assert_eq!(channel.to_string(), name);
            assert_eq!(
                (channel.is_private(), channel.needs_authentication()),
                (is_private, needs_authentication)
            );
        }
    }

    #[test]
    fn other_names_are_errors() {
        for name in [
            "",
            ".",
            "book",
            "book.",
            "book..raw",
            "book.X",
            "book.X.1s",
            "book.X.none.020.100ms",
            "book.X.none.+2.100ms",
            "trades.raw",
            "trades.stock.BTC.raw",
            "user.orders.a.b.c.raw",
            "quote.A.raw",
            "user.nothing",
            "a.b.c.d.e.f.g",
            "Book.X.raw",
        ] {
            assert_eq!(Channel::parse(name), Err(ChannelError), "{name}");
        }
    }
}

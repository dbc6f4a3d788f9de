//! The configuration file of a trader.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tickpath_config::{ConfigError, Duration, Fraction, Instruments, Placement, PriceText, Secret};
use tickpath_feedhandler::LineReader;
use tickpath_trading::{EngineConfig, Limits, Money};
use tickpath_types::{Instrument, Nanos, Price, Qty};

use crate::gateway::SETTLE_AFTER;

/// A trader as its file describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraderConfig {
    /// The instrument file; relative to this file.
    pub instruments: PathBuf,
    /// What trades: `maker`, `taker` or `random`. A program with a strategy of its own ignores it.
    #[serde(default = "default_strategy")]
    pub strategy: String,
    /// Seed of the `random` strategy.
    #[serde(default)]
    pub seed: u64,
    /// Order entry.
    pub order_entry: OrderEntrySection,
    /// Market data in.
    #[serde(default)]
    pub market_data: MarketDataSection,
    /// Limits in each instrument.
    #[serde(default)]
    pub limits: LimitsConfig,
    /// Limits of single instruments, by symbol, in place of `limits`.
    #[serde(default)]
    pub instrument_limits: std::collections::BTreeMap<String, LimitsConfig>,
    /// Cancel everything and stop when no market data came for so long.
    pub stop_after_silence: Option<Duration>,
    /// Stop when the connection to the venue was lost and did not come back for so long.
    #[serde(default = "default_disconnect_stop")]
    pub disconnect_stop: Duration,
    /// New orders and replacements a second at most.
    #[serde(default = "default_orders_per_second")]
    pub orders_per_second: u32,
    /// Which agents run on which threads; by the number of cores when absent.
    pub placement: Option<Placement>,
}

/// `[order_entry]`: OUCH 5.0 over SoupBinTCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderEntrySection {
    /// The venue's order entry.
    pub address: SocketAddrV4,
    /// The user.
    pub user: String,
    /// Its password.
    pub password: Secret,
    /// How long after a new login the venue may still answer requests that it got by the lost connection. What is
    /// not answered by then, and until the venue is heard once more, counts as never received.
    #[serde(default = "default_settle_after")]
    pub settle_after: Duration,
}

/// `[market_data]`: ITCH 5.0 over MoldUDP64, as the venue publishes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MarketDataSection {
    /// Group and port of line A.
    pub line_a: SocketAddrV4,
    /// Group and port of line B.
    pub line_b: SocketAddrV4,
    /// Address of the interface that the lines come in by.
    pub interface: Ipv4Addr,
    /// How packets are read off it: `auto`, `ring` or `sockets`.
    pub reader: LineReader,
    /// Where lost messages are requested.
    pub retransmission: SocketAddrV4,
    /// Open orders in all books at most.
    pub max_orders: u32,
    /// Packets dropped on purpose on each line, to exercise recovery.
    pub inject_loss: Fraction,
}

/// What may be risked in one instrument.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Size of the strategy's orders.
    pub clip: u64,
    /// The strategy's sensitivity, in its own unit.
    pub threshold: u64,
    /// Largest quantity of one order.
    pub max_order: u64,
    /// Largest position, long or short, with every open order traded.
    pub max_position: u64,
    /// Largest loss.
    pub max_loss: PriceText,
    /// Most orders open at once.
    pub max_open_orders: u32,
}

fn default_strategy() -> String {
    "maker".to_owned()
}

fn default_disconnect_stop() -> Duration {
    Duration(Nanos::from_secs(10))
}

fn default_settle_after() -> Duration {
    Duration(SETTLE_AFTER)
}

fn default_orders_per_second() -> u32 {
    EngineConfig::default().orders_per_second
}

impl Default for MarketDataSection {
    fn default() -> Self {
        MarketDataSection {
            line_a: SocketAddrV4::new(Ipv4Addr::new(239, 255, 26, 1), 26_401),
            line_b: SocketAddrV4::new(Ipv4Addr::new(239, 255, 26, 2), 26_402),
            interface: Ipv4Addr::LOCALHOST,
            reader: LineReader::Sockets,
            retransmission: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 26_403),
            max_orders: 1 << 18,
            inject_loss: Fraction::default(),
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        LimitsConfig::maker()
    }
}

impl LimitsConfig {
    fn with_threshold(threshold: u64) -> LimitsConfig {
        LimitsConfig {
            clip: 100,
            threshold,
            max_order: 1_000,
            max_position: 5_000,
            max_loss: PriceText(Price(50_000 * Price::SCALE)),
            max_open_orders: 16,
        }
    }

    /// Limits that suit a maker in the sample instruments.
    #[must_use]
    pub fn maker() -> LimitsConfig {
        LimitsConfig::with_threshold(40)
    }

    /// Limits that suit a taker in the sample instruments.
    #[must_use]
    pub fn taker() -> LimitsConfig {
        LimitsConfig::with_threshold(700_000)
    }

    /// As the engine takes them: quantities in whole lots of the instrument.
    #[must_use]
    pub fn limits(&self, instrument: &Instrument) -> Limits {
        let lot = instrument.lot_size.0;
        let in_lots = |qty: u64| Qty((qty / lot * lot).max(lot));
        Limits {
            clip: in_lots(self.clip).min(instrument.max_qty),
            threshold: self.threshold,
            max_order_qty: in_lots(self.max_order),
            max_position: Qty(self.max_position.max(lot)),
            max_loss: Money(i128::from(self.max_loss.0.0)),
            max_open_orders: self.max_open_orders,
        }
    }
}

/// A trader's file, read and checked.
pub struct TraderSettings {
    /// The file's contents.
    pub config: TraderConfig,
    /// The instruments that it names.
    pub instruments: Vec<Instrument>,
    /// Limits of each instrument.
    pub limits: Vec<Limits>,
    /// The password, found where the file says.
    pub password: String,
}

impl TraderSettings {
    /// Reads the file at `path` and what it names.
    ///
    /// # Errors
    /// [`ConfigError`] in one line that says what to change.
    pub fn load(path: &Path) -> Result<TraderSettings, ConfigError> {
        let config: TraderConfig = tickpath_config::load(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let instruments = Instruments::load(&folder.join(&config.instruments))?;
        for symbol in config.instrument_limits.keys() {
            if !instruments.iter().any(|instrument| instrument.symbol.as_str() == symbol) {
                return Err(ConfigError::value(format!(
                    "instrument_limits.{symbol}: the instrument file has no such symbol"
                )));
            }
        }
        let limits = instruments
            .iter()
            .map(|instrument| {
                let own = config.instrument_limits.get(instrument.symbol.as_str());
                own.unwrap_or(&config.limits).limits(instrument)
            })
            .collect();
        let password = config.order_entry.password.resolve(Some(path))?;
        Ok(TraderSettings { config, instruments, limits, password })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "instruments = 'i.toml'\n[order_entry]\naddress = '127.0.0.1:26400'\nuser = 'TEST01'\npassword = 'test'\n";

    #[test]
    fn the_least_configuration_has_sensible_defaults() {
        let config: TraderConfig = tickpath_config::parse("trader.toml", LEAST).unwrap();
        assert_eq!(config.strategy, "maker");
        assert!(config.market_data.interface.is_loopback());
        assert_eq!(config.limits, LimitsConfig::maker());
        assert_eq!(config.disconnect_stop.0, Nanos::from_secs(10));
        assert_eq!(config.order_entry.settle_after.0, Nanos::from_secs(1));
    }

    #[test]
    fn a_wrong_key_names_its_line() {
        let text = format!("{LEAST}\n[limits]\nclib = 5\n");
        let error = tickpath_config::parse::<TraderConfig>("trader.toml", &text).unwrap_err().to_string();
        assert!(error.starts_with("trader.toml:8: unknown field `clib`"), "{error}");
    }
}

//! The configuration file of a trader.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tickpath_config::{
    ConfigError, Duration, FileKind, Fraction, IdleStrategy, Instruments, Placement, PriceText, Secret,
    beside,
};
use tickpath_feed::{ArbiterConfig, LossConfig, LossModel};
use tickpath_feedhandler::{FeedSettings, LineReader, Senders, SnapshotSources};
use tickpath_nasdaq::soupbintcp::LoginRequest;
use tickpath_trading::{EngineConfig, Limits, Money, RECONCILE_AFTER};
use tickpath_types::{Instrument, InstrumentId, InstrumentTable, Nanos, Price, Qty};

/// Maximum of [`MarketDataSection::spare_instruments`]. Each book takes 16 KiB.
const SPARE_INSTRUMENTS_MAX: u16 = 4_096;
/// Maximum of [`MarketDataSection::max_orders`].
const MAX_ORDERS_MAX: u32 = 1 << 24;

/// The configuration file of a trader.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TraderConfig {
    /// The instrument file; relative to this file.
    pub instruments: PathBuf,
    /// The strategy: `maker`, `taker` or `random`; it also sets the defaults of the limits. A program with
    /// its own strategy uses only these defaults.
    #[serde(default = "default_strategy")]
    pub strategy: String,
    /// Seed of the `random` strategy.
    #[serde(default)]
    pub seed: u64,
    /// Order entry.
    pub order_entry: OrderEntrySection,
    /// Market data input.
    #[serde(default)]
    pub market_data: MarketDataSection,
    /// Limits in each instrument; defaults depend on the strategy.
    #[serde(default)]
    pub limits: LimitsTable,
    /// Limits of single instruments, by symbol; defaults are those of `limits`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub instrument_limits: BTreeMap<String, LimitsTable>,
    /// Cancel everything and stop after this time without market data.
    pub stop_after_silence: Option<Duration>,
    /// Stop when a lost connection to the venue is not restored within this time, or the first login takes
    /// longer.
    #[serde(default = "default_disconnect_stop")]
    pub disconnect_stop: Duration,
    /// Maximum number of new orders and replacements per second.
    #[serde(default = "default_orders_per_second")]
    pub orders_per_second: u32,
    /// Assignment of agents to threads; when absent, it depends on the number of cores.
    pub placement: Option<Placement>,
}

/// `[order_entry]`: OUCH 5.0 over SoupBinTCP.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OrderEntrySection {
    /// Address of the venue's order entry.
    pub address: SocketAddrV4,
    /// User name for the login.
    pub user: String,
    /// Password of the user.
    pub password: Secret,
    /// Time after a new login in which the venue may still answer requests from the lost connection. A
    /// request counts as never received if it has no answer by then and by the venue's next message.
    #[serde(default = "default_settle_after")]
    pub settle_after: Duration,
}

/// `[market_data]`: ITCH 5.0 over MoldUDP64, as published by the venue.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct MarketDataSection {
    /// Group and port of line A.
    pub line_a: SocketAddrV4,
    /// Group and port of line B.
    pub line_b: SocketAddrV4,
    /// Address of the interface that receives the lines.
    pub interface: Ipv4Addr,
    /// Addresses that may send on the lines and to the group of snapshots; every address when empty. When
    /// absent, the interface's own for a loopback interface, otherwise that of `retransmission`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<Ipv4Addr>>,
    /// The method of reading packets: `auto`, `ring` or `sockets`.
    pub reader: LineReader,
    /// Methods of recovering lost messages; unnamed ones are not used.
    pub recovery: Vec<RecoveryConfig>,
    /// Address for requests of lost messages.
    pub retransmission: SocketAddrV4,
    /// Address of market snapshots over TCP; not used when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glimpse: Option<SocketAddrV4>,
    /// Group and port of multicast snapshots.
    pub snapshots: SocketAddrV4,
    /// Maximum number of messages in a gap that retransmission recovers. A snapshot recovers larger gaps, if
    /// available.
    pub max_gap_messages: u64,
    /// Maximum number of open orders in all books.
    pub max_orders: u32,
    /// Number of books for instruments that are not in the file, but that the venue adds while it runs. The
    /// engine only counts the updates of these instruments.
    pub spare_instruments: u16,
    /// Share of packets dropped deliberately on each line, to exercise recovery.
    pub inject_loss: Fraction,
}

/// A method of recovering lost messages. The methods are tried in the order of this list, regardless of the
/// order in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecoveryConfig {
    /// Requests for the lost messages.
    Retransmission,
    /// A snapshot over TCP, continued by the live messages.
    Glimpse,
    /// Multicast snapshots of one instrument after another.
    Multicast,
}

impl MarketDataSection {
    /// Returns true if this recovery method is configured.
    #[must_use]
    pub fn uses(&self, method: RecoveryConfig) -> bool {
        self.recovery.contains(&method)
    }

    /// Returns the addresses that may send on the lines. The venue's publisher is assumed to send from the
    /// address of `retransmission`.
    #[must_use]
    pub fn senders(&self) -> Senders {
        let publisher = *self.retransmission.ip();
        let publisher = Some(publisher).filter(|address| !address.is_loopback() && !address.is_unspecified());
        Senders::of(self.sources.as_deref(), self.interface, publisher)
    }

    /// Returns the configured sources of snapshots.
    #[must_use]
    pub fn snapshot_sources(&self) -> SnapshotSources {
        SnapshotSources {
            glimpse: self.glimpse.filter(|_| self.uses(RecoveryConfig::Glimpse)),
            channel: self.uses(RecoveryConfig::Multicast).then_some(self.snapshots),
            senders: self.senders(),
            ..SnapshotSources::none()
        }
    }

    /// Returns the feed settings for these instruments; `seed` selects the packets to drop deliberately.
    #[must_use]
    pub fn feed_settings(&self, instruments: &InstrumentTable, seed: u64) -> FeedSettings {
        let loss = LossConfig { seed, loss_ppm: self.inject_loss.ppm, common_ppm: 100_000 };
        FeedSettings {
            feed: 0,
            line_a: self.line_a,
            line_b: self.line_b,
            interface: self.interface,
            senders: self.senders(),
            reader: self.reader,
            max_instrument: InstrumentId(instruments.max_id().0.saturating_add(self.spare_instruments)),
            symbols: instruments.iter().map(|instrument| instrument.symbol).collect(),
            max_orders: self.max_orders,
            arbiter: ArbiterConfig { max_gap_messages: self.max_gap_messages(), ..ArbiterConfig::default() },
            retransmission: self.uses(RecoveryConfig::Retransmission).then_some(self.retransmission),
            snapshots: self.snapshot_sources(),
            loss: (self.inject_loss.ppm > 0).then(|| LossModel::new(&loss)),
        }
    }

    /// Returns the maximum number of messages in a gap that retransmission fills: unlimited without
    /// snapshots, 0 if only snapshots are used, else the configured maximum.
    #[must_use]
    pub fn max_gap_messages(&self) -> u64 {
        match (self.uses(RecoveryConfig::Retransmission), self.snapshot_sources().is_any()) {
            (true, true) => self.max_gap_messages,
            (false, true) => 0,
            (_, false) => u64::MAX,
        }
    }
}

/// Limits in one instrument, as a configuration file states them; each is optional.
///
/// Quantities are rounded down to whole lots of the instrument, never up: 0 forbids trading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsTable {
    /// [`Limits::clip`], up to the instrument's maximum.
    pub clip: Option<u64>,
    /// [`Limits::threshold`].
    pub threshold: Option<u64>,
    /// [`Limits::max_order_qty`].
    pub max_order: Option<u64>,
    /// [`Limits::max_position`].
    pub max_position: Option<u64>,
    /// [`Limits::max_loss`].
    pub max_loss: Option<PriceText>,
    /// [`Limits::max_open_orders`].
    pub max_open_orders: Option<u32>,
}

fn default_strategy() -> String {
    "maker".to_owned()
}

fn default_disconnect_stop() -> Duration {
    Duration(Nanos::from_secs(10))
}

fn default_settle_after() -> Duration {
    Duration(RECONCILE_AFTER)
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
            sources: None,
            reader: LineReader::Sockets,
            recovery: vec![
                RecoveryConfig::Retransmission,
                RecoveryConfig::Glimpse,
                RecoveryConfig::Multicast,
            ],
            retransmission: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 26_403),
            glimpse: None,
            snapshots: SocketAddrV4::new(Ipv4Addr::new(239, 255, 26, 3), 26_406),
            max_gap_messages: 50_000,
            max_orders: 1 << 18,
            spare_instruments: 16,
            inject_loss: Fraction::default(),
        }
    }
}

impl LimitsTable {
    /// Returns the limits of the table; those of `base` replace absent ones.
    #[must_use]
    pub fn or(&self, base: Limits) -> Limits {
        Limits {
            clip: self.clip.map_or(base.clip, Qty),
            threshold: self.threshold.unwrap_or(base.threshold),
            max_order_qty: self.max_order.map_or(base.max_order_qty, Qty),
            max_position: self.max_position.map_or(base.max_position, Qty),
            max_loss: self.max_loss.map_or(base.max_loss, |loss| Money(loss.0.0.into())),
            max_open_orders: self.max_open_orders.unwrap_or(base.max_open_orders),
        }
    }
}

impl From<Limits> for LimitsTable {
    fn from(limits: Limits) -> LimitsTable {
        LimitsTable {
            clip: Some(limits.clip.0),
            threshold: Some(limits.threshold),
            max_order: Some(limits.max_order_qty.0),
            max_position: Some(limits.max_position.0),
            // The value fits in 64 bits, because it came from a table or is a default.
            max_loss: Some(PriceText(Price(limits.max_loss.0 as i64))),
            max_open_orders: Some(limits.max_open_orders),
        }
    }
}

impl TraderConfig {
    /// Returns the limits in an instrument, not yet rounded to its lots.
    #[must_use]
    pub fn limits_of(&self, symbol: &str) -> Limits {
        let all = self.default_limits();
        self.instrument_limits.get(symbol).map_or(all, |own| own.or(all))
    }

    fn default_limits(&self) -> Limits {
        self.limits.or(if self.strategy == "taker" { Limits::taker() } else { Limits::default() })
    }

    /// Returns the configured placement, or the default one for the `cores` on which this process may run.
    #[must_use]
    pub fn placement(&self, cores: &[usize]) -> Placement {
        self.placement.clone().unwrap_or_else(|| default_placement(cores))
    }

    /// Returns the configuration with all defaults filled in, as for a host with these `cores`.
    #[must_use]
    pub fn filled(&self, cores: &[usize]) -> TraderConfig {
        let own = |symbol: &String| (symbol.clone(), self.limits_of(symbol).into());
        TraderConfig {
            limits: self.default_limits().into(),
            instrument_limits: self.instrument_limits.keys().map(own).collect(),
            placement: Some(self.placement(cores)),
            ..self.clone()
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if let Some(placement) = &self.placement {
            placement.check(&ROLES)?;
        }
        let max_orders = self.market_data.max_orders;
        if !(1..=MAX_ORDERS_MAX).contains(&max_orders) {
            return Err(ConfigError::value(format!(
                "market_data.max_orders = {max_orders} must be 1 to {MAX_ORDERS_MAX}"
            )));
        }
        let spare = self.market_data.spare_instruments;
        if spare > SPARE_INSTRUMENTS_MAX {
            return Err(ConfigError::value(format!(
                "market_data.spare_instruments = {spare} must be at most {SPARE_INSTRUMENTS_MAX}"
            )));
        }
        Ok(())
    }
}

/// Roles of a trader's agents.
const ROLES: [&str; 3] = ["feed-handler", "engine", "order-gateway"];

/// Returns the default placement: with 8 cores or more, a thread and core for each agent; with fewer, one
/// thread on the last core, because a venue on the same host uses the first.
fn default_placement(cores: &[usize]) -> Placement {
    let from_last: Vec<usize> = cores.iter().rev().copied().collect();
    if cores.len() < 8 {
        let mut placement = Placement::new(IdleStrategy::default(), &from_last, &[("trader", &ROLES)]);
        placement.observer = cores.first().copied().filter(|_| cores.len() > 1);
        return placement;
    }
    let threads: Vec<(&str, &[&str])> =
        ROLES.iter().map(|role| (*role, std::slice::from_ref(role))).collect();
    Placement::new(IdleStrategy::default(), &from_last, &threads)
}

/// A trader's configuration file and the files that it names, read and validated.
pub struct TraderSettings {
    /// The file's contents.
    pub config: TraderConfig,
    /// The instruments of the instrument file.
    pub instruments: Vec<Instrument>,
    /// Limits of each instrument, in the order of `instruments`; quantities are whole lots.
    pub limits: Vec<Limits>,
    /// The password, read from the source that the configuration names.
    pub password: String,
}

impl TraderSettings {
    /// Reads the file at `path` and the files that it names.
    ///
    /// # Errors
    /// [`ConfigError`], one line that says what to change.
    pub fn load(path: &Path) -> Result<TraderSettings, ConfigError> {
        let mut config: TraderConfig = FileKind::Trader.load(path)?;
        config.check()?;
        config.order_entry.password.make_absolute(path);
        let instruments = Instruments::load(&beside(path, &config.instruments))?;
        for symbol in config.instrument_limits.keys() {
            if !instruments.iter().any(|instrument| instrument.symbol.as_str() == symbol) {
                return Err(ConfigError::value(format!(
                    "instrument_limits.{symbol}: the instrument file has no such symbol"
                )));
            }
        }
        let mut limits = Vec::with_capacity(instruments.len());
        for instrument in &instruments {
            let own = config.limits_of(instrument.symbol.as_str());
            own.check_lots(instrument).map_err(|error| ConfigError::value(error.to_string()))?;
            limits.push(own.in_lots(instrument));
        }
        let password = config.order_entry.password.resolve(Some(path))?;
        let user = &config.order_entry.user;
        if user.is_empty() || LoginRequest::new(user, &password).is_none() {
            return Err(ConfigError::value(format!(
                "order_entry: user '{user}' must have 1 to 6 and its password at most 10 ASCII characters"
            )));
        }
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
        assert_eq!(config.limits_of("A"), Limits::default());
        assert_eq!(config.disconnect_stop.0, Nanos::from_secs(10));
        assert_eq!(config.order_entry.settle_after.0, Nanos::from_secs(1));
    }

    #[test]
    fn missing_limits_have_defaults() {
        let text = format!(
            "strategy = 'taker'\n{LEAST}\n[limits]\nclip = 50\n[instrument_limits.B]\nmax_order = 7\n"
        );
        let config: TraderConfig = tickpath_config::parse("trader.toml", &text).unwrap();
        assert_eq!(config.limits_of("A"), Limits { clip: Qty(50), ..Limits::taker() });
        assert_eq!(config.limits_of("B"), Limits { clip: Qty(50), max_order_qty: Qty(7), ..Limits::taker() });
    }

    #[test]
    fn threads_lie_on_the_cores_that_are_allowed() {
        let cores = |count: usize| (1..=count).map(|core| 2 * core).collect::<Vec<_>>();
        let pinned = |count| {
            let placement = default_placement(&cores(count));
            placement.check(&ROLES).unwrap();
            placement.threads.iter().map(|thread| thread.core).collect::<Vec<_>>()
        };
        assert_eq!((pinned(1), pinned(2)), (vec![Some(2)], vec![Some(4)]));
        assert_eq!(pinned(8), [Some(16), Some(14), Some(12)]);
        assert_eq!(default_placement(&cores(2)).observer, Some(2));
    }

    #[test]
    fn a_wrong_key_names_its_line() {
        let text = format!("{LEAST}\n[limits]\nclib = 5\n");
        let error = tickpath_config::parse::<TraderConfig>("trader.toml", &text).unwrap_err().to_string();
        assert!(error.starts_with("trader.toml:8: unknown field `clib`"), "{error}");
    }
}

//! The sections of `[market_data]` about those who come late or lost too much.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};
use tickpath_config::{ConfigError, Duration, at_least, in_range, multicast_group};
use tickpath_types::Nanos;
use tickpath_venue::RateLimit;

use super::MarketDataConfig;
use crate::market_recovery::{MarketRecoverySettings, SnapshotSettings};

/// GLIMPSE connections at a time at most, of some 66 KiB each.
const CONNECTIONS_MAX: usize = 1 << 10;
/// Least time from one instrument's snapshot to the next one's.
const INTERVAL_MIN: Duration = Duration(Nanos::from_millis(1));

/// `[market_data.requests]`: requests for retransmission that one address may make.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestsConfig {
    /// In the long run.
    pub per_second: u32,
    /// At once after a pause.
    pub burst: u32,
}

impl Default for RequestsConfig {
    fn default() -> Self {
        let RateLimit { per_second, burst } = MarketRecoverySettings::default().requests;
        RequestsConfig { per_second, burst }
    }
}

/// `[market_data.snapshots]`: the market as it stands, for those who come late or lost too much.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotsConfig {
    /// False for none at all.
    pub enabled: bool,
    /// Where GLIMPSE clients connect; a free port of the loopback interface unless it is said.
    pub glimpse: SocketAddrV4,
    /// GLIMPSE clients that are sent a snapshot or wait for one, at a time; further logins are refused, unless another
    /// address has more clients: its oldest then gives way.
    pub max_connections: usize,
    /// How long a GLIMPSE client may take; then it is disconnected.
    pub time_max: Duration,
    /// Group and port of multicast snapshots, on the interface of the lines.
    pub group: SocketAddrV4,
    /// From one instrument's multicast snapshot to the next one's.
    pub interval: Duration,
}

impl Default for SnapshotsConfig {
    fn default() -> Self {
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 26, 3), 26_406);
        let SnapshotSettings { glimpse, max_connections, time_max, group, interval } =
            SnapshotSettings::new(group);
        SnapshotsConfig {
            enabled: true,
            glimpse,
            max_connections,
            time_max: Duration(time_max),
            group,
            interval: Duration(interval),
        }
    }
}

impl MarketDataConfig {
    /// The checked settings.
    pub(super) fn recovery(&self) -> Result<MarketRecoverySettings, ConfigError> {
        let RequestsConfig { per_second, burst } = self.requests;
        if per_second == 0 || burst == 0 {
            return Err(ConfigError::value(
                "market_data.requests: per_second and burst must be at least 1, or nothing is ever sent again",
            ));
        }
        let snapshots = &self.snapshots;
        let snapshots =
            snapshots.enabled.then(|| snapshots.settings([self.line_a, self.line_b])).transpose()?;
        Ok(MarketRecoverySettings { requests: RateLimit { per_second, burst }, snapshots })
    }
}

impl SnapshotsConfig {
    fn settings(&self, lines: [SocketAddrV4; 2]) -> Result<SnapshotSettings, ConfigError> {
        let &SnapshotsConfig { glimpse, max_connections, time_max, group, interval, .. } = self;
        multicast_group("market_data.snapshots.group", group, "239.255.26.3:26406")?;
        if lines.contains(&group) {
            return Err(ConfigError::value(format!(
                "market_data.snapshots.group: {group} is a line of market data; snapshots need a group of their own"
            )));
        }
        in_range("market_data.snapshots.max_connections", max_connections, 1..=CONNECTIONS_MAX)?;
        at_least("market_data.snapshots.interval", interval, INTERVAL_MIN)?;
        at_least("market_data.snapshots.time_max", time_max, INTERVAL_MIN)?;
        Ok(SnapshotSettings { glimpse, max_connections, time_max: time_max.0, group, interval: interval.0 })
    }
}

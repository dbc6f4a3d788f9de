//! The sections of `[market_data]` for market data recovery: late joiners and clients that lost messages.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};
use tickpath_config::{Duration, at_least, in_range, multicast_group};
use tickpath_types::Nanos;
use tickpath_venue::RateLimit;

use super::{MarketDataConfig, Result};
use crate::market_recovery::{MarketRecoverySettings, SnapshotSettings};

/// Maximum number of simultaneous GLIMPSE connections, at about 66 KiB each.
const CONNECTIONS_MAX: usize = 1 << 10;
/// Minimum of `interval` and of `time_max` in `[market_data.snapshots]`.
const INTERVAL_MIN: Duration = Duration(Nanos::from_millis(1));

/// `[market_data.requests]`: limits on the retransmission requests of one address.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestsConfig {
    /// Maximum sustained rate, in requests per second.
    pub per_second: u32,
    /// Maximum burst of requests after a pause.
    pub burst: u32,
}

impl Default for RequestsConfig {
    fn default() -> Self {
        let RateLimit { per_second, burst } = MarketRecoverySettings::default().requests;
        RequestsConfig { per_second, burst }
    }
}

impl Default for SnapshotSettings {
    fn default() -> Self {
        SnapshotSettings::new(SocketAddrV4::new(Ipv4Addr::new(239, 255, 26, 3), 26_406))
    }
}

impl MarketDataConfig {
    pub(super) fn recovery(&self) -> Result<MarketRecoverySettings> {
        let RequestsConfig { per_second, burst } = self.requests;
        if per_second == 0 || burst == 0 {
            bail!(
                "market_data.requests: per_second and burst must be at least 1, or no message is retransmitted"
            );
        }
        let snapshots = Some(&self.snapshots).filter(|snapshots| snapshots.enabled);
        snapshots.map(|snapshots| snapshots.check([self.line_a, self.line_b])).transpose()?;
        let requests = RateLimit { per_second, burst };
        Ok(MarketRecoverySettings { requests, snapshots: snapshots.cloned() })
    }
}

impl SnapshotSettings {
    fn check(&self, lines: [SocketAddrV4; 2]) -> Result<()> {
        let group = self.group;
        multicast_group("market_data.snapshots.group", group, "239.255.26.3:26406")?;
        if lines.contains(&group) {
            bail!(
                "market_data.snapshots.group: {group} is a line of market data; give snapshots a separate group"
            );
        }
        in_range("market_data.snapshots.max_connections", self.max_connections, 1..=CONNECTIONS_MAX)?;
        at_least("market_data.snapshots.interval", Duration(self.interval), INTERVAL_MIN)?;
        at_least("market_data.snapshots.time_max", Duration(self.time_max), INTERVAL_MIN)
    }
}

/// Serde format of a [`Nanos`] as a duration with its unit.
pub(crate) mod nanos {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tickpath_config::Duration;
    use tickpath_types::Nanos;

    pub(crate) fn serialize<S: Serializer>(nanos: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
        Duration(*nanos).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
        Duration::deserialize(deserializer).map(|Duration(nanos)| nanos)
    }
}

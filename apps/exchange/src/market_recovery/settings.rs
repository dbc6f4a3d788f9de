//! Settings of market data recovery.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};
use tickpath_types::Nanos;
use tickpath_venue::RateLimit;

use crate::config::nanos;

/// Settings of market data recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarketRecoverySettings {
    /// Limits on the retransmission requests of one address.
    pub requests: RateLimit,
    /// Snapshots over TCP and multicast, if any.
    pub snapshots: Option<SnapshotSettings>,
}

impl Default for MarketRecoverySettings {
    /// 20,000 requests per second in bursts of up to 4,000; no snapshots.
    fn default() -> Self {
        MarketRecoverySettings { requests: RateLimit { per_second: 20_000, burst: 4_000 }, snapshots: None }
    }
}

/// `[market_data.snapshots]`: the market state, for late joiners and clients that lost messages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotSettings {
    /// Whether snapshots are sent at all.
    pub enabled: bool,
    /// Listening address of GLIMPSE; port 0 takes a free one.
    pub glimpse: SocketAddrV4,
    /// Maximum number of GLIMPSE clients that receive or await a snapshot. Further logins are refused, unless
    /// another address has more clients: its oldest client is then disconnected.
    pub max_connections: usize,
    /// Maximum time from a client's connection to the end of its snapshot; then the client is disconnected.
    #[serde(with = "nanos")]
    pub time_max: Nanos,
    /// Group and port of the multicast snapshots, on the same interface as the lines.
    pub group: SocketAddrV4,
    /// Time between the multicast snapshots of two instruments.
    #[serde(with = "nanos")]
    pub interval: Nanos,
}

impl SnapshotSettings {
    /// Returns settings with a free port on the loopback interface and this multicast group.
    #[must_use]
    pub fn new(group: SocketAddrV4) -> SnapshotSettings {
        SnapshotSettings {
            enabled: true,
            glimpse: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0),
            max_connections: 16,
            time_max: Nanos::from_secs(30),
            group,
            interval: Nanos::from_millis(50),
        }
    }
}

//! Settings of the recovery of market data.

use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};
use tickpath_types::Nanos;
use tickpath_venue::RateLimit;

use crate::config::nanos;

/// How market data can be recovered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarketRecoverySettings {
    /// Requests for retransmission that one address may make.
    pub requests: RateLimit,
    /// Snapshots over TCP and by multicast; none when absent.
    pub snapshots: Option<SnapshotSettings>,
}

impl Default for MarketRecoverySettings {
    /// 20,000 requests a second, 4,000 at once; no snapshots.
    fn default() -> Self {
        MarketRecoverySettings { requests: RateLimit { per_second: 20_000, burst: 4_000 }, snapshots: None }
    }
}

/// `[market_data.snapshots]`: the state of the market, for clients that come late or lost too much.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotSettings {
    /// False for none at all.
    pub enabled: bool,
    /// The address where GLIMPSE clients connect; port 0 takes a free one.
    pub glimpse: SocketAddrV4,
    /// GLIMPSE clients that are sent a snapshot or wait for one, at a time; further logins are refused, unless another
    /// address has more clients: its oldest then gives way.
    pub max_connections: usize,
    /// The time that a client may take from its connection to the end of its snapshot; then it is disconnected.
    #[serde(with = "nanos")]
    pub time_max: Nanos,
    /// Group and port of the multicast snapshots, on the interface of the lines.
    pub group: SocketAddrV4,
    /// From one instrument's multicast snapshot to the next one's.
    #[serde(with = "nanos")]
    pub interval: Nanos,
}

impl SnapshotSettings {
    /// On a free port of the loopback interface and this group.
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

//! The settings of an order gateway.

use std::net::SocketAddrV4;

use tickpath_types::{InstrumentTable, Nanos, SessionId};

/// Settings of an order gateway with one session: its login, instruments and reconciliation time.
#[derive(Clone)]
pub struct GatewaySettings {
    /// Name of the agent.
    pub role: &'static str,
    /// Address of the venue's order entry.
    pub address: SocketAddrV4,
    /// Name of the user who logs in.
    pub user: String,
    /// The user's password.
    pub password: String,
    /// Session id in timing stamps. If the venue writes stamps too, use the venue's id for this session.
    pub session: SessionId,
    /// The venue's instruments.
    pub instruments: InstrumentTable,
    /// Time after a new login in which the venue may still answer requests of the lost connection. The
    /// default configuration uses [`RECONCILE_AFTER`](tickpath_trading::RECONCILE_AFTER).
    pub reconcile_after: Nanos,
}

//! The settings of the measured trader.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_feed::ArbiterConfig;
use tickpath_feedhandler::{FeedSettings, LineReader, Senders, SnapshotSources};
use tickpath_trader::{AgentSettings, GatewaySettings};
use tickpath_trading::{EngineConfig, Limits, RECONCILE_AFTER};
use tickpath_types::{InstrumentTable, Qty, SessionId};

use crate::support::order_venue::QTY;
use crate::support::venue::USER;

/// Capacity of the books.
pub(super) const ORDERS_MAX: u32 = 1_024;

/// Returns the settings of a trader that reads two lines and sends its orders to `address`.
pub(super) fn trader_settings(
    instruments: &InstrumentTable,
    [line_a, line_b]: [SocketAddrV4; 2],
    address: SocketAddrV4,
) -> AgentSettings {
    let interface = Ipv4Addr::LOCALHOST;
    AgentSettings {
        feed: FeedSettings {
            feed: 0,
            line_a,
            line_b,
            interface,
            senders: Senders::of(None, interface, None),
            reader: LineReader::Sockets,
            max_instrument: instruments.max_id(),
            symbols: instruments.iter().map(|instrument| instrument.symbol).collect(),
            max_orders: ORDERS_MAX,
            arbiter: ArbiterConfig::default(),
            retransmission: None,
            snapshots: SnapshotSources::none(),
            loss: None,
        },
        engine: engine_config(),
        limits: vec![limits()],
        gateway: GatewaySettings {
            role: "order-gateway",
            address,
            user: USER.to_owned(),
            password: USER.to_owned(),
            session: SessionId(1),
            instruments: instruments.clone(),
            reconcile_after: RECONCILE_AFTER,
        },
        update_capacity: 1 << 10,
        order_capacity: 64,
    }
}

/// A configuration without a limit of the order rate.
pub(super) fn engine_config() -> EngineConfig {
    EngineConfig { orders_per_second: u32::MAX, ..EngineConfig::default() }
}

/// Limits that let the taker follow every trade.
pub(super) fn limits() -> Limits {
    Limits { threshold: 0, clip: QTY, max_position: Qty(1_000_000), ..Limits::default() }
}

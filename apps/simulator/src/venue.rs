//! The simulated venue: its addresses, instruments, users and settings.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_exchange::{LoginPolicy, Password, PreLoginLimits, UserSettings, VenueSettings};
use tickpath_matching::EngineLimits;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, Session};
use tickpath_simnet::HostId;
use tickpath_types::{Instrument, InstrumentId, InstrumentTable, Nanos, Price, Qty, Symbol};

use crate::profile::Profile;
use crate::recovery::RecoveryProfile;

/// The host of the venue.
pub(crate) const VENUE: HostId = HostId(0);
/// The endpoint of order entry.
pub(crate) const ORDER_ENTRY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7_001);
pub(crate) const RETRANSMISSION: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7_002);
/// Lines A and B.
pub(crate) const LINES: [SocketAddrV4; 2] = [
    SocketAddrV4::new(Ipv4Addr::new(239, 1, 0, 1), 8_001),
    SocketAddrV4::new(Ipv4Addr::new(239, 1, 0, 2), 8_002),
];
/// Everybody's password.
pub(crate) const PASSWORD: &str = "secret";

/// The name of the client's user at a place.
pub(crate) fn user_name(place: usize) -> String {
    format!("USER{}", place + 1)
}

/// Instruments that the venue begins with.
pub(crate) fn instruments(count: u16) -> InstrumentTable {
    let symbols = ["ALPHA", "BRAVO", "CHARLIE"];
    let instruments: Vec<Instrument> =
        (1..=count).zip(symbols).map(|(id, symbol)| instrument(id, symbol)).collect();
    InstrumentTable::new(&instruments)
}

/// An instrument.
pub(crate) fn instrument(id: u16, symbol: &str) -> Instrument {
    Instrument {
        id: InstrumentId(id),
        symbol: Symbol::new(symbol).expect("they are short"),
        tick_size: Price(100),
        lot_size: Qty(1),
        max_qty: Qty(100_000),
        reference_price: Price(1_000_000),
        collar_low: Price(900_000),
        collar_high: Price(1_100_000),
    }
}

/// The configuration of a run's venue.
pub(crate) fn venue_settings(
    profile: &Profile,
    recovery: &RecoveryProfile,
    instruments: &InstrumentTable,
) -> VenueSettings {
    let user = |place: usize| UserSettings {
        cancel_on_disconnect: profile.graces[place],
        limits: profile.limits[place],
        self_trade_prevention: profile.preventions[place],
        ..UserSettings::new(user_name(place), Password::plain(PASSWORD))
    };
    VenueSettings {
        session: Session::new("SIMULATED").expect("it is short"),
        instruments: instruments.clone(),
        order_entry: ORDER_ENTRY,
        max_connections: profile.clients + 3,
        retained_responses: 1 << 14,
        users: (0..profile.clients).map(user).collect(),
        login: LoginPolicy { delay: Nanos::from_millis(1), ..LoginPolicy::default() },
        pre_login: PreLoginLimits::default(),
        cancel_at_shutdown: false,
        line_a: LINES[0],
        line_b: LINES[1],
        interface: Ipv4Addr::LOCALHOST,
        retransmission: RETRANSMISSION,
        packet_bytes: DATAGRAM_LEN_MAX,
        heartbeat: Nanos::from_secs(1),
        retained_messages: recovery.retained_messages,
        market_recovery: recovery.market_recovery(),
        day: profile.day.clone(),
        limits: EngineLimits {
            max_open_orders: 512,
            max_open_orders_per_session: 128,
            // Users, who reads drop copies, and the venue itself.
            max_sessions: profile.clients as u16 + 2,
            max_index_pages: 64,
            max_index_pages_per_session: 16,
            max_special_orders: 512,
            max_recent_executions: 1 << 10,
            ..EngineLimits::default()
        },
        journal: None,
        prefault: false,
    }
}

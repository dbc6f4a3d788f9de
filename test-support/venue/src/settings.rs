//! Settings of a venue.

use std::net::Ipv4Addr;

use tickpath_agent::TscClock;
use tickpath_exchange::{
    DaySettings, LoginPolicy, MarketRecoverySettings, Password, PreLoginLimits, UserSettings, Venue,
    VenueSettings, VenueTracers,
};
use tickpath_matching::EngineLimits;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, Session};
use tickpath_net::free_multicast_group;
use tickpath_test_support::{ANY_PORT, instruments};
use tickpath_timing::NoTrace;
use tickpath_types::Nanos;

/// The password of every user.
pub const PASSWORD: &str = "secret";

/// Settings of a small venue in the session `TODAY`, without a journal, at free ports and groups. Its
/// instruments are [those of tests](tickpath_test_support::instrument).
#[must_use]
pub fn venue_settings(symbols: &[&str], users: &[&str]) -> VenueSettings {
    let user = |name: &&str| UserSettings::new(*name, Password::plain(PASSWORD));
    VenueSettings {
        session: Session::new("TODAY").unwrap(),
        instruments: instruments(symbols),
        order_entry: ANY_PORT,
        max_connections: 8,
        retained_responses: 1_024,
        users: users.iter().map(user).collect(),
        login: LoginPolicy::default(),
        pre_login: PreLoginLimits::default(),
        cancel_at_shutdown: false,
        line_a: free_multicast_group().unwrap(),
        line_b: free_multicast_group().unwrap(),
        interface: Ipv4Addr::LOCALHOST,
        retransmission: ANY_PORT,
        packet_bytes: DATAGRAM_LEN_MAX,
        segmented_sends: true,
        has_line_b_agent: false,
        heartbeat: Nanos::from_secs(1),
        retained_messages: 1_024,
        market_recovery: MarketRecoverySettings::default(),
        limits: EngineLimits {
            max_open_orders: 1_024,
            max_open_orders_per_session: 512,
            // One session for each user and one for the venue itself.
            max_sessions: users.len() as u16 + 1,
            max_index_pages: 16,
            max_index_pages_per_session: 8,
            ..EngineLimits::default()
        },
        day: DaySettings::default(),
        journal: None,
        prefault: false,
    }
}

/// Builds a venue without time stamps, on the system's clock.
pub fn build(settings: &VenueSettings) -> anyhow::Result<Venue> {
    let tracers = VenueTracers { order_server: NoTrace, matcher: NoTrace, publisher: NoTrace };
    Venue::build(settings, TscClock::system(), tracers)
}

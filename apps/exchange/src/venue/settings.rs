//! The settings of a venue.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_admission::{LoginPolicy, PreLoginLimits};
use tickpath_matching::EngineLimits;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, Session};
use tickpath_types::{InstrumentTable, Nanos};
use tickpath_venue::day::DaySettings;
use tickpath_venue::{Definition, UserSettings};

use crate::journal::JournalSettings;
use crate::market_recovery::MarketRecoverySettings;
use crate::order_server::RESPONSES_PER_CYCLE;

/// The settings of a venue, checked.
#[derive(Clone)]
pub struct VenueSettings {
    /// Name of the session, if the journal does not go on with one.
    pub session: Session,
    /// The instruments.
    pub instruments: InstrumentTable,
    /// The address of order entry; port 0 takes a free one.
    pub order_entry: SocketAddrV4,
    /// Clients of order entry that are logged in, at a time.
    pub max_connections: usize,
    /// Messages kept for each user; 256 at least.
    pub retained_responses: usize,
    /// The users; their sessions are 1, 2, 3 ... in this order.
    pub users: Vec<UserSettings>,
    /// How wrong passwords are answered.
    pub login: LoginPolicy,
    /// Connections that have not logged in: of order entry, of drop copies and of GLIMPSE each.
    pub pre_login: PreLoginLimits,
    /// When the venue stops, the open orders of users with `cancel_on_disconnect` are cancelled too.
    pub cancel_at_shutdown: bool,
    /// Group and port of line A.
    pub line_a: SocketAddrV4,
    /// Group and port of line B.
    pub line_b: SocketAddrV4,
    /// Interface of both lines.
    pub interface: Ipv4Addr,
    /// The address of retransmission requests; port 0 takes a free one.
    pub retransmission: SocketAddrV4,
    /// Longest datagram.
    pub packet_bytes: usize,
    /// After so long without a packet a heartbeat is sent.
    pub heartbeat: Nanos,
    /// Messages kept for retransmission.
    pub retained_messages: usize,
    /// Snapshots of the market, and how often messages may be asked for again.
    pub market_recovery: MarketRecoverySettings,
    /// Bounds of the engine.
    pub limits: EngineLimits,
    /// The trading day.
    pub day: DaySettings,
    /// The journal of the commands; without it a venue forgets everything when it stops.
    pub journal: Option<JournalSettings>,
    /// All memory is touched before the venue opens, so that no message costs a page fault.
    pub prefault: bool,
}

impl VenueSettings {
    /// A venue at free ports of the loopback interface with its memory touched and without a journal: room for one connection
    /// and one session of each user besides the venue's own, 1,024 messages kept for each of them and 2^16 for
    /// retransmission, a heartbeat each second, everything else as by default.
    #[must_use]
    pub fn on_loopback(
        session: Session,
        instruments: InstrumentTable,
        [line_a, line_b]: [SocketAddrV4; 2],
        users: Vec<UserSettings>,
    ) -> VenueSettings {
        const ANY_PORT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        VenueSettings {
            session,
            instruments,
            order_entry: ANY_PORT,
            max_connections: users.len(),
            retained_responses: 1 << 10,
            limits: EngineLimits { max_sessions: users.len() as u16 + 1, ..EngineLimits::default() },
            users,
            login: LoginPolicy::default(),
            pre_login: PreLoginLimits::default(),
            cancel_at_shutdown: false,
            line_a,
            line_b,
            interface: Ipv4Addr::LOCALHOST,
            retransmission: ANY_PORT,
            packet_bytes: DATAGRAM_LEN_MAX,
            heartbeat: Nanos::from_secs(1),
            retained_messages: 1 << 16,
            market_recovery: MarketRecoverySettings::default(),
            day: DaySettings::default(),
            journal: None,
            prefault: true,
        }
    }
}

/// The definition by which the log of the venue is read.
pub(super) fn definition(settings: &VenueSettings) -> Definition {
    Definition {
        instruments: settings.instruments.as_slice().to_vec(),
        limits: settings.limits,
        users: settings.users.iter().map(|user| user.name.clone()).collect(),
        retained_responses: retained_responses(settings),
        retained_messages: settings.retained_messages,
    }
}

pub(super) fn retained_responses(settings: &VenueSettings) -> usize {
    settings.retained_responses.max(RESPONSES_PER_CYCLE)
}

//! The checked settings of a venue.

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
    /// Name of a new session; unused if the journal continues a session.
    pub session: Session,
    /// The traded instruments.
    pub instruments: InstrumentTable,
    /// Listening address of order entry; port 0 takes a free port.
    pub order_entry: SocketAddrV4,
    /// Maximum number of logged-in order entry clients.
    pub max_connections: usize,
    /// Number of messages retained for each user; raised to 256 if lower.
    pub retained_responses: usize,
    /// The users, in the order of their sessions 1, 2, 3 ...
    pub users: Vec<UserSettings>,
    /// Delays after wrong passwords.
    pub login: LoginPolicy,
    /// Bounds on connections before login, for each of order entry, drop copy and GLIMPSE.
    pub pre_login: PreLoginLimits,
    /// True if stopping the venue cancels the open orders of users with `cancel_on_disconnect`.
    pub cancel_at_shutdown: bool,
    /// Group and port of line A.
    pub line_a: SocketAddrV4,
    /// Group and port of line B.
    pub line_b: SocketAddrV4,
    /// Address of the interface on which both lines are sent.
    pub interface: Ipv4Addr,
    /// Address that receives retransmission requests; port 0 takes a free port.
    pub retransmission: SocketAddrV4,
    /// Maximum datagram length, in bytes.
    pub packet_bytes: usize,
    /// True to send several packets by one call, if the kernel segments them (UDP GSO).
    pub segmented_sends: bool,
    /// True if a separate agent, `line-b`, sends line B. Packets then have at most 1,400 bytes.
    pub has_line_b_agent: bool,
    /// Time without a packet after which a heartbeat is sent.
    pub heartbeat: Nanos,
    /// Number of messages retained for retransmission.
    pub retained_messages: usize,
    /// Market snapshots, and limits on retransmission requests.
    pub market_recovery: MarketRecoverySettings,
    /// Limits of the engine.
    pub limits: EngineLimits,
    /// The trading day.
    pub day: DaySettings,
    /// Settings of the journal. Without a journal, a venue loses all state when it stops.
    pub journal: Option<JournalSettings>,
    /// True to touch all memory before the venue opens, so that no message causes a page fault.
    pub prefault: bool,
}

impl VenueSettings {
    /// A venue on free ports of the loopback interface, with prefaulted memory and without a journal. It has
    /// capacity for one connection and one session per user, besides session 0. It retains 1,024 messages per
    /// user and 2^16 for retransmission, and sends a heartbeat each second. All other settings have their
    /// defaults.
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
            segmented_sends: true,
            has_line_b_agent: false,
            heartbeat: Nanos::from_secs(1),
            retained_messages: 1 << 16,
            market_recovery: MarketRecoverySettings::default(),
            day: DaySettings::default(),
            journal: None,
            prefault: true,
        }
    }
}

/// The instruments, limits and users with which recovery replays the venue's log.
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

//! The sections of the configuration file of `tickpath feed`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tickpath_config::{Duration, IdleStrategy, Secret, Zone};
use tickpath_feed::{ArbiterConfig, ChannelConfig};
use tickpath_types::Nanos;

use crate::senders::Senders;

/// `[feed]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedSection {
    /// Symbols for the outputs and the final list; all when empty. Books are built for all symbols.
    pub symbols: Vec<String>,
    /// Day of the session, such as 2026-11-22: update times count from its midnight. Day of the start if absent.
    pub session_date: Option<String>,
    /// Time zone of the exchange: ET, CT, UTC, or an offset from UTC such as -05:00.
    pub time_zone: String,
    /// The idle strategy of the thread: `spin`, `yield` or `park`.
    pub idle: IdleStrategy,
    /// Core that the thread is pinned to; not pinned when absent.
    pub core: Option<usize>,
}

impl Default for FeedSection {
    fn default() -> FeedSection {
        FeedSection {
            symbols: vec![],
            session_date: None,
            time_zone: Zone::EASTERN.to_string(),
            idle: IdleStrategy::default(),
            core: None,
        }
    }
}

/// `[outputs]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputsSection {
    /// Name of the shared memory segment with the symbol cache and the update stream; none when absent.
    pub segment: Option<String>,
    /// Folder of the segment, relative to this file; the default folder when absent.
    pub folder: Option<PathBuf>,
    /// Maximum number of instruments in the segment.
    pub rows: u64,
    /// Number of updates that the stream keeps for slow readers; 0 for no stream.
    pub stream: u64,
}

impl Default for OutputsSection {
    fn default() -> OutputsSection {
        OutputsSection { segment: None, folder: None, rows: 4_096, stream: 65_536 }
    }
}

/// `[admin]`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdminSection {
    /// Unix socket for commands, relative to this file; none when absent.
    pub socket: Option<PathBuf>,
}

/// Defines the protocols of channels and their names in configuration files.
macro_rules! protocol_names {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The protocol of a channel.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
        pub enum ProtocolName {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl ProtocolName {
            /// Returns the name used in configuration files.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ProtocolName::$variant => $name,)*
                }
            }
        }
    };
}

protocol_names! {
    /// ITCH 5.0 in MoldUDP64, two lines.
    Itch = "itch",
    /// ITCH 5.0 over SoupBinTCP.
    ItchSoup = "itch-soup",
    /// NYSE XDP, Integrated Feed.
    Xdp = "xdp",
    /// IEX DEEP 1.0.
    IexDeep = "iex-deep",
    /// IEX DEEP+ 1.0.
    IexDeepPlus = "iex-deep-plus",
    /// IEX TOPS 1.6.
    IexTops = "iex-tops",
    /// IEX TOPS 1.5.
    IexTops15 = "iex-tops-1.5",
}

/// `[[channel]]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelSection {
    /// Name for display and commands; the protocol's name when absent.
    #[serde(default)]
    pub name: String,
    /// Protocol of the channel.
    pub protocol: ProtocolName,
    /// Group and port of line A.
    pub line_a: Option<SocketAddrV4>,
    /// Group and port of line B; one line when absent.
    pub line_b: Option<SocketAddrV4>,
    /// Address of the interface on which the lines arrive.
    #[serde(default = "loopback")]
    pub interface: Ipv4Addr,
    /// Addresses that may send on the lines and to the snapshot group; every address when empty. When absent,
    /// a loopback interface accepts its own address only, and other interfaces accept every address.
    pub sources: Option<Vec<Ipv4Addr>>,
    /// Maximum number of instruments.
    #[serde(default = "default_max_instruments")]
    pub max_instruments: u16,
    /// Maximum number of open orders in all books.
    #[serde(default = "default_max_orders")]
    pub max_orders: u32,
    /// Time that the other line has to fill a gap.
    #[serde(default = "default_reorder_wait")]
    pub reorder_wait: Duration,
    /// Time-out of the first request for a gap; each repetition doubles it.
    #[serde(default = "default_request_timeout")]
    pub request_timeout: Duration,
    /// Maximum number of unanswered requests; after that the messages count as lost.
    #[serde(default = "default_max_requests")]
    pub max_requests: u32,
    /// Maximum number of messages per request.
    #[serde(default = "default_request_messages")]
    pub request_messages: u16,
    /// Maximum gap, in messages, to fill by requests. A snapshot fills larger gaps, if available.
    #[serde(default = "default_max_gap")]
    pub max_gap: u64,
    /// Maximum number of messages held while a gap before them is open.
    #[serde(default = "default_hold")]
    pub hold_messages: usize,
    /// Maximum number of messages held for books that wait for a snapshot.
    #[serde(default = "default_hold")]
    pub hold_snapshot: usize,
    /// Compare the data of both lines, byte by byte.
    #[serde(default)]
    pub compare_lines: bool,
    /// Resync suspect books without a command.
    #[serde(default = "yes")]
    pub resync_suspects: bool,
    /// `itch`: the MoldUDP64 request server.
    pub retransmission: Option<SocketAddrV4>,
    /// `itch`: GLIMPSE, snapshots over SoupBinTCP.
    pub glimpse: Option<SocketAddrV4>,
    /// `itch`: group and port of multicast snapshots.
    pub snapshots: Option<SocketAddrV4>,
    /// `xdp`: the request server, over TCP.
    pub request_server: Option<SocketAddrV4>,
    /// `xdp`: group and port of retransmissions.
    pub retransmission_group: Option<SocketAddrV4>,
    /// `xdp`: group and port of refreshes.
    pub refresh_group: Option<SocketAddrV4>,
    /// `xdp`: source id of the requester, assigned by the market: up to 10 characters.
    #[serde(default = "default_source_id")]
    pub source_id: String,
    /// `xdp`: product of the feed; NYSE Integrated is 11.
    #[serde(default = "default_product")]
    pub product: u8,
    /// `xdp`: number of the channel.
    #[serde(default = "default_channel_id")]
    pub channel_id: u8,
    /// `iex-...`: gap fill over UDP.
    pub gap_fill: Option<SocketAddrV4>,
    /// `iex-...`: SNAP, snapshots over TCP.
    pub snap: Option<SocketAddrV4>,
    /// `iex-...`: token for SNAP: `env:NAME`, `file:PATH`.
    pub token: Option<Secret>,
    /// `itch-soup`: the server.
    pub server: Option<SocketAddrV4>,
    /// `itch-soup` and GLIMPSE: the user.
    #[serde(default = "default_user")]
    pub user: String,
    /// `itch-soup` and GLIMPSE: the user's password: `env:NAME`, `file:PATH`.
    pub password: Option<Secret>,
}

/// Defines functions that return serde defaults.
macro_rules! defaults {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(fn $name() -> $type {
            $value
        })*
    };
}

defaults! {
    loopback: Ipv4Addr = Ipv4Addr::LOCALHOST;
    default_max_instruments: u16 = 1_024;
    default_max_orders: u32 = 1 << 20;
    default_reorder_wait: Duration = Duration(Nanos::from_millis(1));
    default_request_timeout: Duration = Duration(Nanos::from_millis(20));
    default_max_requests: u32 = 8;
    default_request_messages: u16 = 1_000;
    default_max_gap: u64 = 100_000;
    default_hold: usize = 65_536;
    yes: bool = true;
    default_source_id: String = "TICKPATH".to_owned();
    default_product: u8 = 11;
    default_channel_id: u8 = 1;
    default_user: String = "FEED".to_owned();
}

impl ChannelSection {
    /// Returns the addresses that may send on the lines.
    #[must_use]
    pub fn senders(&self) -> Senders {
        Senders::of(self.sources.as_deref(), self.interface, None)
    }

    /// Returns a section with this name and protocol, and the default of every other key.
    ///
    /// # Panics
    /// Never: every other key has a default.
    #[must_use]
    pub fn new(name: &str, protocol: ProtocolName) -> ChannelSection {
        let keys = serde_json::json!({"name": name, "protocol": protocol});
        serde_json::from_value(keys).expect("every other key has a default")
    }

    /// Converts the section to the configuration of a [`tickpath_feed::Channel`].
    #[must_use]
    pub fn core(&self) -> ChannelConfig {
        let recovers = |kind| {
            let mut keys = self.server_keys().into_iter();
            keys.any(|(_, recovers, is_set)| is_set && recovers == kind)
        };
        let (has_requests, has_snapshots) = (recovers(Recovers::Messages), recovers(Recovers::Books));
        let arbiter = ArbiterConfig {
            hold_messages: self.hold_messages,
            reorder_wait: self.reorder_wait.0,
            request_timeout: self.request_timeout.0,
            max_requests: if has_requests { self.max_requests } else { 0 },
            max_request_messages: self.request_messages,
            max_gap_messages: if has_snapshots { self.max_gap } else { u64::MAX },
            compare_lines: self.compare_lines,
        };
        let hold_snapshot = has_snapshots.then_some(self.hold_snapshot);
        ChannelConfig { resync_suspects: self.resync_suspects, ..ChannelConfig::new(arbiter, hold_snapshot) }
    }

    /// Returns the protocol-specific keys, each with the kind of loss it recovers and whether it is set.
    pub(super) const fn server_keys(&self) -> [(&'static str, Recovers, bool); 9] {
        [
            ("retransmission", Recovers::Messages, self.retransmission.is_some()),
            ("glimpse", Recovers::Books, self.glimpse.is_some()),
            ("snapshots", Recovers::Books, self.snapshots.is_some()),
            ("request_server", Recovers::Messages, self.request_server.is_some()),
            ("retransmission_group", Recovers::Nothing, self.retransmission_group.is_some()),
            ("refresh_group", Recovers::Books, self.refresh_group.is_some()),
            ("gap_fill", Recovers::Messages, self.gap_fill.is_some()),
            ("snap", Recovers::Books, self.snap.is_some()),
            ("token", Recovers::Nothing, self.token.is_some()),
        ]
    }
}

/// The kind of loss that a recovery server repairs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Recovers {
    /// Messages, by retransmission on request.
    Messages,
    /// Books, by snapshots.
    Books,
    /// Nothing: the key only completes another, as `token` completes `snap`.
    Nothing,
}

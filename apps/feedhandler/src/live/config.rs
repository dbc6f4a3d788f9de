//! The configuration file of `tickpath feed`.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tickpath_config::{ConfigError, Date, Duration, FileKind, IdleConfig, Secret, Zone, beside};
use tickpath_feed::{ArbiterConfig, ChannelConfig};
use tickpath_iex::Feed;
use tickpath_types::{Nanos, Symbol};

use crate::senders::Senders;

/// Channels of one handler at most.
pub const CHANNELS_MAX: usize = 64;
/// Open orders that the books of one channel can be told to hold.
const MAX_ORDERS_MAX: u32 = 1 << 26;
/// Messages that can be told to be held.
const HOLD_MAX: usize = 1 << 22;
const DAY: Nanos = Nanos::from_secs(86_400);

/// A feed handler as its file describes it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LiveConfig {
    /// What is common to all channels.
    #[serde(default)]
    pub feed: FeedSection,
    /// What other processes read.
    #[serde(default)]
    pub outputs: OutputsSection,
    /// Where commands come from.
    #[serde(default)]
    pub admin: AdminSection,
    /// The channels.
    #[serde(rename = "channel", default)]
    pub channels: Vec<ChannelSection>,
}

/// `[feed]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedSection {
    /// Symbols that go to the outputs and are shown at the end; all when empty. Books are built of all.
    pub symbols: Vec<String>,
    /// Day of the session, as 2026-11-22; that of the start when absent. Times in updates count from its midnight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_date: Option<String>,
    /// Time zone of the exchange: ET, CT, UTC, or what it is ahead of UTC, as -05:00.
    pub time_zone: String,
    /// What the thread does when nothing came: `spin`, `yield` or `park`.
    pub idle: IdleConfig,
    /// Core that the thread is pinned to; none when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<usize>,
}

impl Default for FeedSection {
    fn default() -> FeedSection {
        FeedSection {
            symbols: vec![],
            session_date: None,
            time_zone: Zone::EASTERN.to_string(),
            idle: IdleConfig::default(),
            core: None,
        }
    }
}

/// `[outputs]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputsSection {
    /// Name of the segment in shared memory that has the symbol cache and the stream of updates; none when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
    /// Folder of the segment, relative to this file; the usual one when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Instruments that the segment has room for.
    pub rows: u64,
    /// Updates that the stream keeps for slow readers; 0 for no stream.
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
    /// Unix socket that takes commands, relative to this file; none when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
}

/// What a channel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum ProtocolName {
    /// ITCH 5.0 in MoldUDP64, two lines.
    #[serde(rename = "itch")]
    Itch,
    /// ITCH 5.0 over SoupBinTCP.
    #[serde(rename = "itch-soup")]
    ItchSoup,
    /// NYSE XDP, Integrated Feed.
    #[serde(rename = "xdp")]
    Xdp,
    /// IEX DEEP 1.0.
    #[serde(rename = "iex-deep")]
    IexDeep,
    /// IEX DEEP+ 1.0.
    #[serde(rename = "iex-deep-plus")]
    IexDeepPlus,
    /// IEX TOPS 1.6.
    #[serde(rename = "iex-tops")]
    IexTops,
    /// IEX TOPS 1.5.
    #[serde(rename = "iex-tops-1.5")]
    IexTops15,
}

impl ProtocolName {
    /// The feed of IEX that it is, if it is one.
    #[must_use]
    pub const fn iex_feed(self) -> Option<Feed> {
        Some(match self {
            ProtocolName::IexDeep => Feed::Deep10,
            ProtocolName::IexDeepPlus => Feed::DeepPlus10,
            ProtocolName::IexTops => Feed::Tops16,
            ProtocolName::IexTops15 => Feed::Tops15,
            ProtocolName::Itch | ProtocolName::ItchSoup | ProtocolName::Xdp => return None,
        })
    }

    /// As a file names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ProtocolName::Itch => "itch",
            ProtocolName::ItchSoup => "itch-soup",
            ProtocolName::Xdp => "xdp",
            ProtocolName::IexDeep => "iex-deep",
            ProtocolName::IexDeepPlus => "iex-deep-plus",
            ProtocolName::IexTops => "iex-tops",
            ProtocolName::IexTops15 => "iex-tops-1.5",
        }
    }
}

/// `[[channel]]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelSection {
    /// Name in what is shown and commanded; the protocol's when absent.
    #[serde(default)]
    pub name: String,
    /// What it carries.
    pub protocol: ProtocolName,
    /// Group and port of line A.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_a: Option<SocketAddrV4>,
    /// Group and port of line B; one line when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_b: Option<SocketAddrV4>,
    /// Address of the interface that they come in by.
    #[serde(default = "loopback")]
    pub interface: Ipv4Addr,
    /// Addresses that may send on the lines and to the group of snapshots; every address when empty. When absent the
    /// interface's own where that is a loopback interface, and every address elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<Ipv4Addr>>,
    /// Instruments at most.
    #[serde(default = "default_max_instruments")]
    pub max_instruments: u16,
    /// Open orders in all books at most.
    #[serde(default = "default_max_orders")]
    pub max_orders: u32,
    /// How long the other line may take to close a gap.
    #[serde(default = "default_reorder_wait")]
    pub reorder_wait: Duration,
    /// How long the answer to a first request may take.
    #[serde(default = "default_request_timeout")]
    pub request_timeout: Duration,
    /// Requests without an answer after which messages count as lost.
    #[serde(default = "default_max_requests")]
    pub max_requests: u32,
    /// Messages asked for in one request.
    #[serde(default = "default_request_messages")]
    pub request_messages: u16,
    /// Gaps of more messages are healed by a snapshot, where there are some.
    #[serde(default = "default_max_gap")]
    pub max_gap: u64,
    /// Messages held while a gap before them is open.
    #[serde(default = "default_hold")]
    pub hold_messages: usize,
    /// Messages held for books that wait for a snapshot.
    #[serde(default = "default_hold")]
    pub hold_snapshot: usize,
    /// Compare what both lines bring, byte by byte.
    #[serde(default)]
    pub compare_lines: bool,
    /// Read suspect books anew by themselves.
    #[serde(default = "yes")]
    pub resync_suspects: bool,
    /// `itch`: the MoldUDP64 request server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmission: Option<SocketAddrV4>,
    /// `itch`: GLIMPSE, snapshots over SoupBinTCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glimpse: Option<SocketAddrV4>,
    /// `itch`: group and port of snapshots by multicast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<SocketAddrV4>,
    /// `xdp`: the request server, over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_server: Option<SocketAddrV4>,
    /// `xdp`: group and port of retransmissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmission_group: Option<SocketAddrV4>,
    /// `xdp`: group and port of refreshes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_group: Option<SocketAddrV4>,
    /// `xdp`: who asks, as the market knows us: up to 10 characters.
    #[serde(default = "default_source_id")]
    pub source_id: String,
    /// `xdp`: product of the feed; NYSE Integrated is 11.
    #[serde(default = "default_product")]
    pub product: u8,
    /// `xdp`: number of the channel.
    #[serde(default = "default_channel_id")]
    pub channel_id: u8,
    /// `iex-...`: gap fill over UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_fill: Option<SocketAddrV4>,
    /// `iex-...`: SNAP, snapshots over TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snap: Option<SocketAddrV4>,
    /// `iex-...`: token for SNAP: `env:NAME`, `file:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Secret>,
    /// `itch-soup`: the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<SocketAddrV4>,
    /// `itch-soup` and GLIMPSE: the user.
    #[serde(default = "default_user")]
    pub user: String,
    /// `itch-soup` and GLIMPSE: its password: `env:NAME`, `file:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Secret>,
}

const fn loopback() -> Ipv4Addr {
    Ipv4Addr::LOCALHOST
}
const fn default_max_instruments() -> u16 {
    1_024
}
const fn default_max_orders() -> u32 {
    1 << 20
}
const fn default_reorder_wait() -> Duration {
    Duration(Nanos::from_millis(1))
}
const fn default_request_timeout() -> Duration {
    Duration(Nanos::from_millis(20))
}
const fn default_max_requests() -> u32 {
    8
}
const fn default_request_messages() -> u16 {
    1_000
}
const fn default_max_gap() -> u64 {
    100_000
}
const fn default_hold() -> usize {
    65_536
}
const fn yes() -> bool {
    true
}
fn default_source_id() -> String {
    "TICKPATH".to_owned()
}
const fn default_product() -> u8 {
    11
}
const fn default_channel_id() -> u8 {
    1
}
fn default_user() -> String {
    "FEED".to_owned()
}

impl LiveConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`] in one line that says what to change.
    pub fn load(path: &Path) -> Result<LiveConfig, ConfigError> {
        let mut config: LiveConfig = FileKind::Feed.load(path)?;
        config.finish()?;
        for named in [&mut config.admin.socket, &mut config.outputs.folder].into_iter().flatten() {
            *named = beside(path, named);
        }
        for channel in &mut config.channels {
            [&mut channel.token, &mut channel.password].into_iter().flatten().for_each(|it| it.place(path));
        }
        Ok(config)
    }

    /// Whether the secrets of all channels are to be found; `file` is where they may be written out.
    ///
    /// # Errors
    /// [`ConfigError`] when one is not, or others may read it.
    pub fn check_secrets(&self, file: &Path) -> Result<(), ConfigError> {
        let secrets = self.channels.iter().flat_map(|channel| [&channel.token, &channel.password]);
        secrets.flatten().try_for_each(|secret| secret.resolve(Some(file)).map(drop))
    }

    /// Gives channels their names and checks everything.
    ///
    /// # Errors
    /// [`ConfigError::Value`] in one line that says what to change.
    pub fn finish(&mut self) -> Result<(), ConfigError> {
        if self.channels.is_empty() || self.channels.len() > CHANNELS_MAX {
            return Err(ConfigError::value(format!(
                "name 1 to {CHANNELS_MAX} channels, each by [[channel]]"
            )));
        }
        for index in 0..self.channels.len() {
            if self.channels[index].name.is_empty() {
                self.channels[index].name = self.channels[index].protocol.as_str().to_owned();
            }
            let (before, channel) = (&self.channels[..index], &self.channels[index]);
            if before.iter().any(|other| other.name == channel.name) {
                return Err(ConfigError::value(format!(
                    "two channels are called '{}': give one another name",
                    channel.name
                )));
            }
            channel.check()?;
        }
        self.symbols()?;
        self.midnight(Nanos::ZERO)?;
        if self.outputs.rows == 0 || self.outputs.rows > 1 << 16 {
            return Err(ConfigError::value("outputs.rows: 1 to 65536"));
        }
        Ok(())
    }

    /// The symbols that are asked for; all when there is none.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for text that is no symbol.
    pub fn symbols(&self) -> Result<Vec<Symbol>, ConfigError> {
        let symbol = |text: &String| {
            Symbol::new(text).map_err(|error| ConfigError::value(format!("feed.symbols: {error}")))
        };
        self.feed.symbols.iter().map(symbol).collect()
    }

    /// The midnight that times in updates count from, since the Unix epoch; `now` is the time of the start.
    ///
    /// # Errors
    /// [`ConfigError::Value`] when date or time zone are none.
    pub fn midnight(&self, now: Nanos) -> Result<Nanos, ConfigError> {
        let wrong =
            |key: &str, error: &dyn std::fmt::Display| ConfigError::value(format!("feed.{key}: {error}"));
        let zone: Zone = self.feed.time_zone.parse().map_err(|error| wrong("time_zone", &error))?;
        let date = match &self.feed.session_date {
            Some(date) => date.parse::<Date>().map_err(|error| wrong("session_date", &error))?,
            None => zone.date_at(now.0),
        };
        Ok(Nanos(zone.utc_ns(date.day() * DAY.0)))
    }
}

impl ChannelSection {
    /// Addresses that may send on the lines.
    #[must_use]
    pub fn senders(&self) -> Senders {
        Senders::of(self.sources.as_deref(), self.interface, None)
    }

    /// A channel of this protocol with every default.
    #[must_use]
    pub fn new(name: &str, protocol: ProtocolName) -> ChannelSection {
        ChannelSection {
            name: name.to_owned(),
            protocol,
            line_a: None,
            line_b: None,
            interface: loopback(),
            sources: None,
            max_instruments: default_max_instruments(),
            max_orders: default_max_orders(),
            reorder_wait: default_reorder_wait(),
            request_timeout: default_request_timeout(),
            max_requests: default_max_requests(),
            request_messages: default_request_messages(),
            max_gap: default_max_gap(),
            hold_messages: default_hold(),
            hold_snapshot: default_hold(),
            compare_lines: false,
            resync_suspects: true,
            retransmission: None,
            glimpse: None,
            snapshots: None,
            request_server: None,
            retransmission_group: None,
            refresh_group: None,
            source_id: default_source_id(),
            product: default_product(),
            channel_id: default_channel_id(),
            gap_fill: None,
            snap: None,
            token: None,
            server: None,
            user: default_user(),
            password: None,
        }
    }

    /// True when somebody can be asked for lost messages.
    #[must_use]
    pub const fn has_requests(&self) -> bool {
        self.retransmission.is_some() || self.request_server.is_some() || self.gap_fill.is_some()
    }

    /// True when there are snapshots.
    #[must_use]
    pub const fn has_snapshots(&self) -> bool {
        self.glimpse.is_some()
            || self.snapshots.is_some()
            || self.refresh_group.is_some()
            || self.snap.is_some()
    }

    /// Bounds and waiting times of its core.
    #[must_use]
    pub fn core(&self) -> ChannelConfig {
        let (has_requests, has_snapshots) = (self.has_requests(), self.has_snapshots());
        ChannelConfig {
            arbiter: ArbiterConfig {
                hold_messages: self.hold_messages,
                reorder_wait: self.reorder_wait.0,
                request_timeout: self.request_timeout.0,
                max_requests: if has_requests { self.max_requests } else { 0 },
                max_request_messages: self.request_messages,
                max_gap_messages: if has_snapshots { self.max_gap } else { u64::MAX },
                compare_lines: self.compare_lines,
            },
            hold_snapshot: has_snapshots.then_some(self.hold_snapshot),
            resync_suspects: self.resync_suspects,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: String| Err(ConfigError::value(format!("channel '{}': {what}", self.name)));
        let is_soup = self.protocol == ProtocolName::ItchSoup;
        if is_soup != self.server.is_some() || is_soup == self.line_a.is_some() {
            return wrong(match is_soup {
                true => "itch-soup needs server, and no lines".to_owned(),
                false => "name its line_a, and no server".to_owned(),
            });
        }
        if self.line_b.is_some() && self.line_b == self.line_a {
            return wrong("line_a and line_b are the same: leave line_b out".to_owned());
        }
        let groups =
            [self.line_a, self.line_b, self.snapshots, self.retransmission_group, self.refresh_group];
        if let Some(group) = groups.iter().flatten().find(|group| !group.ip().is_multicast()) {
            return wrong(format!("{group} is no multicast group: use one of 224.0.0.0 to 239.255.255.255"));
        }
        if let Some(key) = self.other_key() {
            return wrong(format!(
                "{key} is of another protocol than {}: leave it out",
                self.protocol.as_str()
            ));
        }
        if self.request_server.is_some()
            && self.retransmission_group.is_none()
            && self.refresh_group.is_none()
        {
            return wrong("request_server answers by multicast: name retransmission_group".to_owned());
        }
        if self.snap.is_some() && self.token.is_none() {
            return wrong("snap needs a token: token = \"env:NAME\"".to_owned());
        }
        if !(1..=u16::MAX - 1).contains(&self.max_instruments) {
            return wrong("max_instruments: 1 to 65534".to_owned());
        }
        if !(1..=MAX_ORDERS_MAX).contains(&self.max_orders) {
            return wrong(format!("max_orders: 1 to {MAX_ORDERS_MAX}"));
        }
        if [self.hold_messages, self.hold_snapshot].iter().any(|count| !(1..=HOLD_MAX).contains(count)) {
            return wrong(format!("hold_messages and hold_snapshot: 1 to {HOLD_MAX}"));
        }
        if self.request_messages == 0 || self.request_messages > 1_000 {
            return wrong("request_messages: 1 to 1000".to_owned());
        }
        if self.request_timeout.0 == Nanos::ZERO {
            return wrong(
                "request_timeout: more than 0, or requests would follow each other at once".to_owned(),
            );
        }
        if self.source_id.is_empty() || self.source_id.len() > 10 || !self.source_id.is_ascii() {
            return wrong("source_id: 1 to 10 characters".to_owned());
        }
        Ok(())
    }

    /// A key that says something to another protocol only.
    fn other_key(&self) -> Option<&'static str> {
        let of_itch = self.protocol == ProtocolName::Itch;
        let of_xdp = self.protocol == ProtocolName::Xdp;
        let of_iex = self.protocol.iex_feed().is_some();
        [
            ("retransmission", self.retransmission.is_some(), of_itch),
            ("glimpse", self.glimpse.is_some(), of_itch),
            ("snapshots", self.snapshots.is_some(), of_itch),
            ("request_server", self.request_server.is_some(), of_xdp),
            ("retransmission_group", self.retransmission_group.is_some(), of_xdp),
            ("refresh_group", self.refresh_group.is_some(), of_xdp),
            ("gap_fill", self.gap_fill.is_some(), of_iex),
            ("snap", self.snap.is_some(), of_iex),
            ("token", self.token.is_some(), of_iex),
        ]
        .into_iter()
        .find_map(|(key, is_set, fits)| (is_set && !fits).then_some(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LiveConfig, String> {
        let mut config: LiveConfig =
            tickpath_config::parse("feed.toml", text).map_err(|error| error.to_string())?;
        config.finish().map_err(|error| error.to_string())?;
        Ok(config)
    }

    const ITCH: &str = "[[channel]]\nprotocol = \"itch\"\nline_a = \"239.255.0.1:5000\"\n";

    #[test]
    fn a_channel_needs_no_more_than_its_protocol_and_a_line() {
        let config = read(ITCH).unwrap();
        let channel = &config.channels[0];
        assert_eq!((channel.name.as_str(), channel.interface), ("itch", Ipv4Addr::LOCALHOST));
        let core = channel.core();
        assert_eq!((core.arbiter.max_requests, core.hold_snapshot), (0, None));
        assert_eq!(core.arbiter.max_gap_messages, u64::MAX, "nothing else would heal it");
        let again = read(&tickpath_config::to_toml(&config)).unwrap();
        assert_eq!(tickpath_config::to_toml(&again), tickpath_config::to_toml(&config));
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line_that_says_what_to_do() {
        for (text, says) in [
            ("", "name 1 to 64 channels"),
            ("[[channel]]\nprotocol = \"itch\"\n", "name its line_a"),
            ("[[channel]]\nprotocol = \"itch-soup\"\n", "needs server"),
            (&format!("{ITCH}gap_fill = \"127.0.0.1:1\"\n"), "gap_fill is of another protocol"),
            (&format!("{ITCH}line_b = \"127.0.0.1:5000\"\n"), "no multicast group"),
            (&format!("{ITCH}line_b = \"239.255.0.1:5000\"\n"), "the same"),
            (&format!("{ITCH}{ITCH}"), "two channels are called 'itch'"),
            (&format!("{ITCH}lines = 3\n"), "unknown field `lines`"),
            (&format!("{ITCH}max_orders = 0\n"), "max_orders"),
            (&format!("{ITCH}request_timeout = \"0s\"\n"), "request_timeout"),
            (&format!("{ITCH}[feed]\ntime_zone = \"EST\"\n"), "feed.time_zone: 'EST' is not a time zone"),
            (&format!("{ITCH}[feed]\nsession_date = \"2026-02-29\"\n"), "write YYYY-MM-DD"),
            (&format!("{ITCH}[feed]\nsymbols = [\"TOOLONGNAME\"]\n"), "symbol"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn midnight_is_the_exchanges() {
        let at = |date: Option<&str>, zone: &str, now: u64| {
            let mut config = read(ITCH).unwrap();
            config.feed.session_date = date.map(str::to_owned);
            config.feed.time_zone = zone.to_owned();
            config.midnight(Nanos::from_secs(now)).unwrap().0 / 1_000_000_000
        };
        assert_eq!(at(Some("1970-01-02"), "UTC", 0), 86_400);
        assert_eq!(at(Some("2026-11-22"), "-05:00", 0), 1_795_323_600);
        assert_eq!(at(Some("2026-11-22"), "ET", 0), 1_795_323_600);
        assert_eq!(at(Some("2026-07-01"), "ET", 0), 1_782_878_400, "summer");
        // 03:00 UTC is still the day before in New York.
        assert_eq!(at(None, "ET", 1_795_316_400), 1_795_237_200);
    }
}

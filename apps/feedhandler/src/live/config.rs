//! The configuration file of `tickpath feed`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tickpath_config::{ConfigError, Date, FileKind, Zone, beside};
use tickpath_net::Kernel;
use tickpath_types::{Nanos, Symbol};

use super::protocols;
use super::section::{AdminSection, ChannelSection, FeedSection, OutputsSection};

/// Maximum number of channels of one handler.
pub const CHANNELS_MAX: usize = 64;
/// Maximum configurable number of open orders in the books of one channel.
const MAX_ORDERS_MAX: u32 = 1 << 26;
/// Maximum configurable number of messages held during a gap or until a snapshot.
const HOLD_MAX: usize = 1 << 22;
const DAY: Nanos = Nanos::from_secs(86_400);

/// The configuration of a feed handler.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LiveConfig {
    /// Settings shared by all channels.
    #[serde(default)]
    pub feed: FeedSection,
    /// Outputs for other processes.
    #[serde(default)]
    pub outputs: OutputsSection,
    /// The admin socket.
    #[serde(default)]
    pub admin: AdminSection,
    /// The channels.
    #[serde(rename = "channel", default)]
    pub channels: Vec<ChannelSection>,
}

impl LiveConfig {
    /// Loads and checks the configuration file at `path`.
    ///
    /// # Errors
    /// [`ConfigError`] of one line that says what to change.
    pub fn load(path: &Path) -> Result<LiveConfig, ConfigError> {
        let mut config: LiveConfig = FileKind::Feed.load(path)?;
        config.finish()?;
        for named in [&mut config.admin.socket, &mut config.outputs.folder].into_iter().flatten() {
            *named = beside(path, named);
        }
        for channel in &mut config.channels {
            [&mut channel.token, &mut channel.password]
                .into_iter()
                .flatten()
                .for_each(|it| it.make_absolute(path));
        }
        Ok(config)
    }

    /// Checks that the secrets of all channels exist; `file` is the file that may contain secrets.
    ///
    /// # Errors
    /// [`ConfigError`] when a secret is missing or others may read it.
    pub fn check_secrets(&self, file: &Path) -> Result<(), ConfigError> {
        let secrets = self.channels.iter().flat_map(|channel| [&channel.token, &channel.password]);
        secrets.flatten().try_for_each(|secret| secret.resolve(Some(file)).map(drop))
    }

    /// Sets the default names of channels, and checks the whole configuration.
    ///
    /// # Errors
    /// [`ConfigError::Value`] of one line that says what to change.
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
            check_channel(channel)?;
        }
        self.symbols()?;
        self.midnight(Nanos::ZERO)?;
        if self.outputs.rows == 0 || self.outputs.rows > 1 << 16 {
            return Err(ConfigError::value("outputs.rows: 1 to 65536"));
        }
        Ok(())
    }

    /// Returns the configured symbols; empty if all symbols are to be published.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for text that is not a symbol.
    pub fn symbols(&self) -> Result<Vec<Symbol>, ConfigError> {
        let symbol = |text: &String| {
            Symbol::new(text).map_err(|error| ConfigError::value(format!("feed.symbols: {error}")))
        };
        self.feed.symbols.iter().map(symbol).collect()
    }

    /// Returns the midnight from which update times count, as time since the Unix epoch. It is the start of
    /// the session date, or of the day of `now` if no date is configured.
    ///
    /// # Errors
    /// [`ConfigError::Value`] when the date or time zone is not valid.
    pub fn midnight(&self, now: Nanos) -> Result<Nanos, ConfigError> {
        let invalid =
            |key: &str, error: &dyn std::fmt::Display| ConfigError::value(format!("feed.{key}: {error}"));
        let zone: Zone = self.feed.time_zone.parse().map_err(|error| invalid("time_zone", &error))?;
        let date = match &self.feed.session_date {
            Some(date) => date.parse::<Date>().map_err(|error| invalid("session_date", &error))?,
            None => zone.date_at(now.0),
        };
        Ok(Nanos(zone.utc_ns(date.day() * DAY.0)))
    }
}

/// Checks one channel. Some keys are valid only for certain protocols.
fn check_channel(channel: &ChannelSection) -> Result<(), ConfigError> {
    let invalid = |problem: String| Err(ConfigError::value(format!("channel '{}': {problem}", channel.name)));
    let (name, protocol) = (channel.protocol.as_str(), protocols::protocol::<Kernel>(channel.protocol));
    let is_stream = protocol.is_stream();
    if is_stream != channel.server.is_some() || is_stream == channel.line_a.is_some() {
        return invalid(match is_stream {
            true => format!("{name} needs server, and neither line_a nor line_b"),
            false => "name its line_a, and leave server out".to_owned(),
        });
    }
    if channel.line_b.is_some() && channel.line_b == channel.line_a {
        return invalid("line_a and line_b are the same: leave line_b out".to_owned());
    }
    let groups = [
        channel.line_a,
        channel.line_b,
        channel.snapshots,
        channel.retransmission_group,
        channel.refresh_group,
    ];
    if let Some(group) = groups.iter().flatten().find(|group| !group.ip().is_multicast()) {
        return invalid(format!("{group} is not a multicast group: use one of 224.0.0.0 to 239.255.255.255"));
    }
    for (key, _, is_set) in channel.server_keys() {
        if is_set && !protocol.server_keys().contains(&key) {
            return invalid(format!("{key} is of another protocol than {name}: leave it out"));
        }
    }
    if let Err(problem) = protocol.check(channel) {
        return invalid(problem.to_owned());
    }
    check_bounds(channel).or_else(invalid)
}

/// Checks the numeric values of a channel; the error names the key that is invalid.
fn check_bounds(channel: &ChannelSection) -> Result<(), String> {
    if !(1..=u16::MAX - 1).contains(&channel.max_instruments) {
        return Err("max_instruments: 1 to 65534".to_owned());
    }
    if !(1..=MAX_ORDERS_MAX).contains(&channel.max_orders) {
        return Err(format!("max_orders: 1 to {MAX_ORDERS_MAX}"));
    }
    if [channel.hold_messages, channel.hold_snapshot].iter().any(|count| !(1..=HOLD_MAX).contains(count)) {
        return Err(format!("hold_messages and hold_snapshot: 1 to {HOLD_MAX}"));
    }
    if channel.request_messages == 0 || channel.request_messages > 1_000 {
        return Err("request_messages: 1 to 1000".to_owned());
    }
    if channel.request_timeout.0 == Nanos::ZERO {
        return Err("request_timeout: more than 0, or requests would follow each other at once".to_owned());
    }
    if channel.source_id.is_empty() || channel.source_id.len() > 10 || !channel.source_id.is_ascii() {
        return Err("source_id: 1 to 10 characters".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn read(text: &str) -> Result<LiveConfig, String> {
        let mut config: LiveConfig =
            tickpath_config::parse("feed.toml", text).map_err(|error| error.to_string())?;
        config.finish().map_err(|error| error.to_string())?;
        Ok(config)
    }

    const ITCH: &str = "[[channel]]\nprotocol = \"itch\"\nline_a = \"239.255.0.1:5000\"\n";

    #[test]
    fn a_channel_needs_only_a_protocol_and_a_line() {
        let config = read(ITCH).unwrap();
        let channel = &config.channels[0];
        assert_eq!((channel.name.as_str(), channel.interface), ("itch", Ipv4Addr::LOCALHOST));
        let core = channel.core();
        assert_eq!((core.arbiter.max_requests, core.hold_snapshot), (0, None));
        assert_eq!(core.arbiter.max_gap_messages, u64::MAX, "nothing else would heal it");
        let reread = read(&tickpath_config::to_toml(&config)).unwrap();
        assert_eq!(tickpath_config::to_toml(&reread), tickpath_config::to_toml(&config));
    }

    #[test]
    fn invalid_configurations_are_refused_in_one_line() {
        for (text, expected) in [
            ("", "name 1 to 64 channels"),
            ("[[channel]]\nprotocol = \"itch\"\n", "name its line_a"),
            ("[[channel]]\nprotocol = \"itch-soup\"\n", "needs server"),
            (&format!("{ITCH}gap_fill = \"127.0.0.1:1\"\n"), "gap_fill is of another protocol"),
            (&format!("{ITCH}line_b = \"127.0.0.1:5000\"\n"), "not a multicast group"),
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
            assert!(error.contains(expected), "{text}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn midnight_is_in_the_time_zone_of_the_exchange() {
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

//! The venue and its connections.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tickpath_config::{ByteSize, ConfigError, Duration, TradingEndpoint, as_text};
use tickpath_types::Nanos;
use tickpath_web::WebUrl;

use super::{FeedsConfig, between, duration};

/// Maximum number of channels on one connection, set by the venue.
const SUBSCRIPTIONS_MAX: u32 = 500;
/// Maximum of `venue.matching_rate` and `venue.matching_burst`.
const MATCHING_MAX: u32 = 100_000;
/// Maximum number of levels per book side that clients receive.
const DEPTH_MAX: u32 = 1_000;

/// Transport of orders to the venue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// JSON-RPC over the WebSocket.
    #[default]
    WebSocket,
    /// FIX 4.4.
    Fix,
}

/// Interval at which the venue publishes changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interval {
    /// Immediately; only for authenticated connections.
    #[default]
    #[serde(rename = "raw")]
    Raw,
    /// Every 100 ms.
    #[serde(rename = "100ms")]
    Ms100,
    /// Aggregated over about a second.
    #[serde(rename = "agg2")]
    Agg2,
}

impl Interval {
    /// Name in channel names (Deribit API v2, subscriptions).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Interval::Raw => "raw",
            Interval::Ms100 => "100ms",
            Interval::Agg2 => "agg2",
        }
    }
}

/// The venue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VenueConfig {
    /// Name of the venue, as clients see it.
    pub exchange: String,
    /// Transport of orders. Market data and execution reports use the WebSocket in any case.
    pub transport: Transport,
    /// WebSocket URI.
    pub ws_uri: String,
    /// FIX endpoint, `tcp://host:port` or `tls://host:port`; used if `transport` is `fix`.
    pub fix_uri: Option<FixUri>,
    /// Trusted certificates in place of the system's, PEM.
    pub ca_file: Option<PathBuf>,
    /// HTTP proxy to connect through, `host:port`.
    pub proxy: Option<String>,
    /// Time for the venue to answer a request.
    pub request_timeout: Duration,
    /// Maximum pause before reconnecting; the first pause is 250 ms.
    pub reconnect_pause_max: Duration,
    /// Has the venue cancel a connection's orders when the connection is lost.
    pub cancel_on_disconnect: bool,
    /// Allows new orders in an instrument with an open order that is unreadable and may be this gateway's.
    pub trade_beside_unreadable: bool,
    /// Interval of WebSocket pings; their round trip is the external latency.
    pub ws_ping_interval: Duration,
    /// Orders, edits and cancels per second that the venue accepts from an account; more end the connection.
    pub matching_rate: u32,
    /// Orders, edits and cancels that the venue accepts at once.
    pub matching_burst: u32,
    /// Heartbeat interval of FIX sessions in both directions; whole seconds.
    pub fix_ping_interval: Duration,
    /// Maximum number of channels per connection; further channels use another connection.
    pub subscriptions_max: u32,
    /// Maximum number of channels per subscribe request.
    pub subscribe_batch: u32,
    /// Number of levels per book side that clients receive.
    pub depth: u32,
    /// Interval of ticker channels.
    pub ticker_interval: Interval,
    /// Interval of book and trade channels.
    pub book_interval: Interval,
    /// Time for a new subscription to deliver the whole book; then the book is requested again.
    pub book_timeout: Duration,
    /// Buffer for requests that wait for the venue, in bytes; requests that do not fit are rejected.
    pub encode_buffer: ByteSize,
    /// Maximum length of a message from the venue; a longer one ends the connection.
    pub decode_buffer: ByteSize,
    /// Channels and candles subscribed for each instrument.
    pub feeds: FeedsConfig,
}

impl Default for VenueConfig {
    fn default() -> VenueConfig {
        VenueConfig {
            exchange: "deribit".to_owned(),
            transport: Transport::WebSocket,
            ws_uri: "wss://test.deribit.com/ws/api/v2".to_owned(),
            fix_uri: None,
            ca_file: None,
            proxy: None,
            request_timeout: Duration(Nanos::from_secs(15)),
            reconnect_pause_max: Duration(Nanos::from_secs(30)),
            cancel_on_disconnect: true,
            trade_beside_unreadable: false,
            ws_ping_interval: Duration(Nanos::from_secs(5)),
            matching_rate: 5,
            matching_burst: 20,
            fix_ping_interval: Duration(Nanos::from_secs(5)),
            subscriptions_max: 256,
            subscribe_batch: 56,
            depth: 20,
            ticker_interval: Interval::Ms100,
            book_interval: Interval::Raw,
            book_timeout: Duration(Nanos::from_secs(90)),
            encode_buffer: ByteSize(1 << 20),
            decode_buffer: ByteSize(16 << 20),
            feeds: FeedsConfig::default(),
        }
    }
}

impl VenueConfig {
    /// Returns the parsed WebSocket URI.
    ///
    /// # Errors
    /// [`ConfigError::Value`] when it is not a WebSocket URI.
    pub fn ws_url(&self) -> Result<WebUrl, ConfigError> {
        self.ws_uri.parse().map_err(|error| ConfigError::value(format!("venue.ws_uri: {error}")))
    }

    /// Transport of orders, for display: `the WebSocket`, or `FIX` and its endpoint.
    #[must_use]
    pub fn order_door(&self) -> String {
        match (self.transport, &self.fix_uri) {
            (Transport::Fix, Some(uri)) => format!("FIX, {uri}"),
            _ => "the WebSocket".to_owned(),
        }
    }

    /// Whether all its endpoints are on this machine.
    pub(super) fn is_loopback(&self) -> Result<bool, ConfigError> {
        Ok(self.places(false)?.iter().all(|place| place.is_loopback))
    }

    /// Returns the WebSocket endpoint, and the FIX endpoint if one is configured.
    pub(super) fn places(&self, production: bool) -> Result<Vec<Place>, ConfigError> {
        let url = self.ws_url()?;
        // A proxy resolves this machine's name to its own machine.
        let is_loopback = url.is_loopback() && self.proxy.is_none();
        let (host, is_tls) = (url.host().to_owned(), url.is_tls());
        let mut places = vec![Place { host, is_loopback, is_tls, production }];
        places.extend(self.fix_uri.as_ref().map(|uri| Place {
            host: uri.host.clone(),
            is_loopback: uri.is_loopback() && self.proxy.is_none(),
            is_tls: uri.is_tls,
            production,
        }));
        Ok(places)
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.ws_url()?;
        if self.transport == Transport::Fix && self.fix_uri.is_none() {
            return Err(ConfigError::value(
                "venue.transport is \"fix\", and venue.fix_uri names no address: write tcp://host:port or tls://host:port",
            ));
        }
        let second = Nanos::from_secs(1);
        duration(
            "venue.request_timeout",
            self.request_timeout,
            Nanos::from_millis(100),
            Nanos::from_secs(300),
        )?;
        duration(
            "venue.reconnect_pause_max",
            self.reconnect_pause_max,
            Nanos::from_millis(250),
            Nanos::from_secs(600),
        )?;
        duration("venue.ws_ping_interval", self.ws_ping_interval, second, Nanos::from_secs(60))?;
        duration("venue.fix_ping_interval", self.fix_ping_interval, second, Nanos::from_secs(60))?;
        if !self.fix_ping_interval.0.0.is_multiple_of(second.0) {
            return Err(ConfigError::value(format!(
                "venue.fix_ping_interval is {}: FIX counts in whole seconds",
                self.fix_ping_interval
            )));
        }
        let count = |key: &str, value: u32, most: u32| {
            between(&format!("venue.{key}"), value.into(), 1, most.into(), &format!("1 to {most}"))
        };
        count("subscriptions_max", self.subscriptions_max, SUBSCRIPTIONS_MAX)?;
        count("subscribe_batch", self.subscribe_batch, self.subscriptions_max)?;
        count("depth", self.depth, DEPTH_MAX)?;
        count("matching_rate", self.matching_rate, MATCHING_MAX)?;
        count("matching_burst", self.matching_burst, MATCHING_MAX)?;
        duration("venue.book_timeout", self.book_timeout, second, Nanos::from_secs(3_600))?;
        self.feeds.check()?;
        self.check_buffers()
    }

    fn check_buffers(&self) -> Result<(), ConfigError> {
        for (key, value) in [("encode_buffer", self.encode_buffer), ("decode_buffer", self.decode_buffer)] {
            // The venue takes requests of 32 kB; a list of instruments comes as one message of some MiB.
            if !(ByteSize(64 << 10)..=ByteSize(1 << 30)).contains(&value) {
                return Err(ConfigError::value(format!("venue.{key} is {value}: write 64KiB to 1GiB")));
            }
        }
        Ok(())
    }
}

/// An endpoint, described for the check whether orders trade real money.
pub(super) struct Place {
    host: String,
    is_loopback: bool,
    is_tls: bool,
    production: bool,
}

impl Place {
    pub(super) fn as_place(&self) -> TradingEndpoint<'_> {
        let Place { is_loopback, is_tls, production, .. } = *self;
        TradingEndpoint { host: &self.host, is_loopback, is_tls, production }
    }
}

/// A FIX endpoint: `tcp://host:port` or `tls://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixUri {
    /// Name or IPv4 address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether it uses TLS.
    pub is_tls: bool,
}

as_text!(FixUri);

impl FixUri {
    /// Whether its host is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost"
            || self.host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for FixUri {
    type Err = String;

    fn from_str(text: &str) -> Result<FixUri, String> {
        let parts = || {
            let (scheme, rest) = text.split_once("://")?;
            let is_tls = match scheme {
                "tcp" => false,
                "tls" => true,
                _ => return None,
            };
            let (host, port) = rest.split_once(':')?;
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
            let is_host = !host.is_empty() && host.bytes().all(is_plain);
            let port = port.parse().ok().filter(|port| *port != 0)?;
            is_host.then(|| FixUri { host: host.to_owned(), port, is_tls })
        };
        parts().ok_or_else(|| format!("{text:?} is no FIX address: write tcp://host:port or tls://host:port"))
    }
}

impl fmt::Display for FixUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "tls" } else { "tcp" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

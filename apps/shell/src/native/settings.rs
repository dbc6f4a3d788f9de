//! The native venue's address and settings.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use tickpath_config::{Instruments, Secret, beside};
use tickpath_deribit::session::Key;
use tickpath_nasdaq::soupbintcp::LoginRequest;
use tickpath_trader::MarketDataSection;
use tickpath_types::{InstrumentTable, Nanos};

/// The scheme of a native venue's address.
const SCHEME: &str = "ouch://";

/// The order entry of a native venue: `ouch://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeUrl {
    host: String,
    port: u16,
}

impl NativeUrl {
    /// Whether a text starts with `ouch://`.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// The name or IPv4 address.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether the host is `localhost` or an address of 127.0.0.0/8.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for NativeUrl {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<NativeUrl> {
        let form = || format!("{text:?} is no address of a native venue: write ouch://HOST:PORT");
        let (host, port) =
            text.strip_prefix(SCHEME).and_then(|rest| rest.rsplit_once(':')).with_context(form)?;
        let port: u16 =
            port.trim_end_matches('/').parse().ok().filter(|port| *port > 0).with_context(form)?;
        let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
        ensure!(is_name && !host.is_empty(), form());
        Ok(NativeUrl { host: host.to_owned(), port })
    }
}

impl fmt::Display for NativeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}:{}", self.host, self.port)
    }
}

/// `[native]`: settings of a native venue (`ouch://`) besides its address.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeConfig {
    /// The venue's instrument file; relative to this file.
    pub instruments: PathBuf,
    /// The venue's drop copies, the source of orders and positions.
    pub drop_copy: SocketAddrV4,
    /// The user who reads the drop copies; by default the trading user.
    pub drop_copy_user: Option<String>,
    /// The reader's password: `env:NAME` or `file:PATH`.
    pub drop_copy_password: Option<Secret>,
    /// The venue's market data; without it there is no `ticker`, no `book` and no market channel.
    pub market_data: Option<MarketDataSection>,
}

/// A native venue with its user, validated.
#[derive(Clone)]
pub struct NativeSettings {
    /// The order entry port.
    pub address: SocketAddrV4,
    /// The user and its password, if they are known.
    pub key: Option<Key>,
    /// The venue's instruments.
    pub instruments: InstrumentTable,
    /// Its drop copies.
    pub drop_copy: SocketAddrV4,
    /// The login for the drop copies; the trading user's if `None`.
    pub reader: Option<LoginRequest>,
    /// Its market data.
    pub market_data: Option<MarketDataSection>,
    /// Time-out of a request.
    pub request_timeout: Nanos,
}

impl fmt::Debug for NativeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeSettings").field("address", &self.address).finish_non_exhaustive()
    }
}

impl NativeSettings {
    /// Loads the settings; `file` is the file of the configuration.
    ///
    /// # Errors
    /// A setting that is missing or unreadable.
    pub fn load(
        url: &NativeUrl,
        config: Option<&NativeConfig>,
        file: Option<&Path>,
        key: Option<Key>,
        request_timeout: Nanos,
    ) -> anyhow::Result<NativeSettings> {
        let (config, instruments) = NativeSettings::check(url, config, file)?;
        let reader = match (&config.drop_copy_user, &config.drop_copy_password) {
            (Some(user), Some(password)) => {
                let password = password.resolve(file)?;
                Some(LoginRequest::new(user, &password).with_context(|| too_long(user))?)
            }
            _ => None,
        };
        Ok(NativeSettings {
            address: tickpath_web::resolve(&url.host, url.port)?,
            key,
            instruments,
            drop_copy: config.drop_copy,
            reader,
            market_data: config.market_data.clone(),
            request_timeout,
        })
    }

    /// Checks that the configuration is complete; returns it with the instruments.
    ///
    /// # Errors
    /// A setting that is missing or unreadable.
    pub fn check<'c>(
        url: &NativeUrl,
        config: Option<&'c NativeConfig>,
        file: Option<&Path>,
    ) -> anyhow::Result<(&'c NativeConfig, InstrumentTable)> {
        let config = config.with_context(|| {
            format!("{url} needs [native] in the configuration file, with instruments and drop_copy")
        })?;
        let is_half = config.drop_copy_user.is_some() != config.drop_copy_password.is_some();
        ensure!(!is_half, "name both native.drop_copy_user and native.drop_copy_password, or neither");
        let named = &config.instruments;
        let instruments = file.map_or_else(|| named.clone(), |file| beside(file, named));
        let instruments = Instruments::load(&instruments)?;
        Ok((config, InstrumentTable::new(&instruments)))
    }

    /// The login for the drop copies, starting at the first one.
    ///
    /// # Errors
    /// No user, or a user or password too long for the protocol.
    pub fn reader(&self) -> Result<LoginRequest, String> {
        if let Some(reader) = self.reader {
            return Ok(reader);
        }
        let key = self.key.as_ref().ok_or("no user: see help auth")?;
        LoginRequest::new(&key.client_id, key.secret()).ok_or_else(|| too_long(&key.client_id))
    }
}

fn too_long(user: &str) -> String {
    format!("user {user:?}: a name has at most 6 and a password at most 10 ASCII characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_one_form() {
        let url: NativeUrl = "ouch://127.0.0.1:26400".parse().unwrap();
        assert_eq!(
            (url.host(), url.is_loopback(), url.to_string().as_str()),
            ("127.0.0.1", true, "ouch://127.0.0.1:26400")
        );
        assert!(!"ouch://venue.example:1/".parse::<NativeUrl>().unwrap().is_loopback());
        for wrong in [
            "ouch://",
            "ouch://host",
            "ouch://host:0",
            "ouch://:7",
            "ouch://h:99999",
            "ouch://u@h:1",
            "tcp://h:1",
        ] {
            let error = wrong.parse::<NativeUrl>().unwrap_err().to_string();
            assert!(error.contains("ouch://HOST:PORT"), "{wrong}: {error}");
        }
    }
}

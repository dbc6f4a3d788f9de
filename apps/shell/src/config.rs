//! The shell's configuration: venue, credentials and order limits.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{bail, ensure};
use serde::{Deserialize, Serialize, Serializer};
use tickpath_config::{
    ByteSize, ConfigError, Duration, FileKind, Secret, TradingEndpoint, absolute, as_text, beside,
};
use tickpath_deribit::number::Decimal;
use tickpath_deribit::session::{Grant, Key};
use tickpath_deribit_link::Route;
use tickpath_types::Nanos;
use tickpath_web::{TlsClient, WebUrl};

use crate::native::{NativeConfig, NativeSettings, NativeUrl};

/// The test environment.
pub const TEST_URL: &str = "wss://test.deribit.com/ws/api/v2";
/// Upper bound of the length of a scope, in characters.
const SCOPE_LEN_MAX: usize = 500;
/// The variables that hold the key unless the configuration names another source.
const KEY_VARIABLES: [&str; 2] = ["TICKPATH_CLIENT_ID", "TICKPATH_CLIENT_SECRET"];

/// A decimal, parsed from text without floating point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecimalText(pub Decimal);

as_text!(DecimalText);

impl FromStr for DecimalText {
    type Err = String;

    fn from_str(text: &str) -> Result<DecimalText, String> {
        text.parse().map(DecimalText).map_err(|error| format!("{text:?}: {error}"))
    }
}

impl std::fmt::Display for DecimalText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The login method, by Deribit's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrantName(pub Grant);

as_text!(GrantName);

impl GrantName {
    const SIGNATURE: &str = "client_signature";
    const CREDENTIALS: &str = "client_credentials";
}

impl FromStr for GrantName {
    type Err = String;

    fn from_str(text: &str) -> Result<GrantName, String> {
        match text {
            GrantName::SIGNATURE => Ok(GrantName(Grant::Signature)),
            GrantName::CREDENTIALS => Ok(GrantName(Grant::Credentials)),
            _ => Err(format!(
                "{text:?}: client_signature (the secret is never sent) or client_credentials (it is: where the clock \
                 is wrong)"
            )),
        }
    }
}

impl std::fmt::Display for GrantName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self.0 {
            Grant::Signature => GrantName::SIGNATURE,
            Grant::Credentials => GrantName::CREDENTIALS,
        })
    }
}

/// A venue's address and protocol.
#[derive(Clone, Debug)]
pub enum VenueUrl {
    /// Deribit's dialect over a WebSocket.
    Deribit(WebUrl),
    /// A native venue of this project: OUCH, drop copies, GLIMPSE.
    Native(NativeUrl),
}

impl VenueUrl {
    /// The name or IPv4 address.
    #[must_use]
    pub fn host(&self) -> &str {
        match self {
            VenueUrl::Deribit(url) => url.host(),
            VenueUrl::Native(url) => url.host(),
        }
    }

    /// Whether it is a native venue of this project.
    #[must_use]
    pub fn is_native(&self) -> bool {
        matches!(self, VenueUrl::Native(_))
    }
}

impl std::fmt::Display for VenueUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            VenueUrl::Deribit(url) => url.fmt(f),
            VenueUrl::Native(url) => url.fmt(f),
        }
    }
}

/// The shell's configuration file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShellConfig {
    /// The venue: a WebSocket with Deribit's API, or `ouch://HOST:PORT` of a native venue.
    pub url: String,
    /// Certificates to trust in place of the machine's own, PEM.
    pub ca_file: Option<PathBuf>,
    /// An HTTP proxy to connect through, `host:port`.
    pub proxy: Option<String>,
    /// Real money: required for every venue that is neither on this machine nor a test environment.
    pub production: bool,
    /// The key's id, or a native venue's user: the value itself, `env:NAME` or `file:PATH`.
    #[serde(serialize_with = "id_as_configured")]
    pub client_id: Option<Secret>,
    /// The key's secret, or the password: `env:NAME` or `file:PATH`.
    pub client_secret: Option<Secret>,
    /// Login method: `client_signature`, or `client_credentials`, which sends the secret itself.
    pub grant: GrantName,
    /// Scope requested at login, such as `account:read_write trade:read_write`; by default the full scope.
    pub scope: Option<String>,
    /// The venue cancels this connection's orders when it ends.
    pub cancel_on_disconnect: bool,
    /// Time-out of a request.
    pub request_timeout: Duration,
    /// Memory for the message history of `show`.
    pub history: ByteSize,
    /// Limits of each order.
    pub limits: Limits,
    /// Further settings of a native venue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeConfig>,
    /// The file that the configuration was read from, if any: `native.instruments` is relative to it.
    #[serde(skip)]
    pub file: Option<PathBuf>,
}

/// Serializes a key's id or a user's name, which is not secret.
#[expect(clippy::ref_option, reason = "serde passes the field")]
fn id_as_configured<S: Serializer>(id: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    match id {
        Some(id) => id.serialize_shown(serializer),
        None => serializer.serialize_none(),
    }
}

/// Limits of each order, checked before it is sent; an absent limit is not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Amount of an order, in the unit of its instrument.
    pub order_size_max: Option<DecimalText>,
    /// Value of an order, in the currency of its price; for inverse futures the amount, in USD; for inverse
    /// options the value of the underlying.
    pub notional_max: Option<DecimalText>,
    /// Open orders of the account, including the new one.
    pub open_orders_max: Option<u32>,
}

impl Default for ShellConfig {
    fn default() -> ShellConfig {
        ShellConfig {
            url: TEST_URL.to_owned(),
            ca_file: None,
            proxy: None,
            production: false,
            client_id: None,
            client_secret: None,
            grant: GrantName::default(),
            scope: None,
            cancel_on_disconnect: true,
            request_timeout: Duration(Nanos::from_secs(10)),
            history: ByteSize(512 << 10),
            limits: Limits::default(),
            native: None,
            file: None,
        }
    }
}

impl ShellConfig {
    /// Reads a file. Relative paths, also those of secrets, are relative to its folder.
    ///
    /// # Errors
    /// [`ConfigError`] if it cannot be read or is not a shell configuration.
    pub fn load(path: &Path) -> Result<ShellConfig, ConfigError> {
        let mut config: ShellConfig = FileKind::Shell.load(path)?;
        if let Some(ca_file) = &mut config.ca_file {
            *ca_file = absolute(&beside(path, ca_file));
        }
        let copies = config.native.as_mut().and_then(|native| native.drop_copy_password.as_mut());
        let secrets = [config.client_id.as_mut(), config.client_secret.as_mut(), copies];
        secrets.into_iter().flatten().for_each(|secret| secret.make_absolute(path));
        config.file = Some(path.to_owned());
        Ok(config)
    }

    /// Returns the venue of either kind, after checking that trading there is intended.
    ///
    /// # Errors
    /// An invalid address; a venue of real money without `production = true` and all limits, or with a
    /// WebSocket without TLS.
    pub fn checked_venue(&self) -> anyhow::Result<VenueUrl> {
        if !NativeUrl::is_meant(&self.url) {
            return self.checked_url().map(VenueUrl::Deribit);
        }
        let url: NativeUrl = self.url.parse()?;
        // The protocol has no TLS: remote native venues are reached over private lines.
        self.check_place(url.host(), url.is_loopback(), true)?;
        Ok(VenueUrl::Native(url))
    }

    /// Returns a copy with another address. `production = true` is kept only if the host is the same.
    #[must_use]
    pub fn with_url(&self, url: &str) -> ShellConfig {
        let host = |url: &str| match NativeUrl::is_meant(url) {
            true => url.parse::<NativeUrl>().ok().map(|url| url.host().to_owned()),
            false => url.parse::<WebUrl>().ok().map(|url| url.host().to_owned()),
        };
        let is_same = host(&self.url).is_some() && host(&self.url) == host(url);
        ShellConfig { url: url.to_owned(), production: self.production && is_same, ..self.clone() }
    }

    /// Whether a shell can start with it, as far as can be checked without a key and a connection.
    ///
    /// # Errors
    /// Those of [`checked_venue`](ShellConfig::checked_venue); native settings that are missing or
    /// unreadable; settings of the other kind of venue.
    pub fn check(&self) -> anyhow::Result<()> {
        match self.checked_venue()? {
            VenueUrl::Deribit(url) => {
                ensure!(self.native.is_none(), "{url} is no native venue: leave [native] out");
            }
            VenueUrl::Native(url) => {
                let (native, file) = (self.native.as_ref(), self.file.as_deref());
                let is_web = self.ca_file.is_some() || self.proxy.is_some();
                ensure!(!is_web, "{url} is reached without TLS and proxy: leave ca_file and proxy out");
                let has_words = self.scope.is_some() || self.grant != GrantName::default();
                ensure!(!has_words, "{url} takes a user and a password: leave grant and scope out");
                NativeSettings::check(&url, native, file)?;
            }
        }
        Ok(())
    }

    /// Whether a login sends the secret itself.
    #[must_use]
    pub fn sends_secret(&self) -> bool {
        self.grant.0 == Grant::Credentials
    }

    /// Checks that the login method is valid for the address.
    fn check_login(&self, url: &WebUrl) -> anyhow::Result<()> {
        let is_private = url.is_tls() || url.is_loopback();
        ensure!(
            is_private || !self.sends_secret(),
            "grant = \"client_credentials\" sends the secret itself: use wss://, or client_signature"
        );
        let Some(scope) = &self.scope else { return Ok(()) };
        let is_word = |word: &str| {
            word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'_' | b'-' | b'.'))
        };
        let mut words = scope.split_ascii_whitespace().peekable();
        ensure!(
            scope.len() <= SCOPE_LEN_MAX && words.peek().is_some() && words.all(is_word),
            "scope: words like account:read_write trade:read_write, {SCOPE_LEN_MAX} characters at most; or leave it out"
        );
        let has = |wanted: &str| scope.split_ascii_whitespace().any(|word| word == wanted);
        ensure!(
            !self.cancel_on_disconnect || !has("trade:read_write") || has("account:read_write"),
            "scope: trade:read_write needs account:read_write beside it, so that the venue cancels orders with their \
             connection; or say cancel_on_disconnect = false"
        );
        Ok(())
    }

    /// Returns the venue's address, after checking that trading there is intended.
    ///
    /// # Errors
    /// An invalid address; a venue of real money without `production = true`, TLS and all limits; an invalid
    /// login method.
    pub fn checked_url(&self) -> anyhow::Result<WebUrl> {
        let url: WebUrl = self.url.parse()?;
        self.check_place(url.host(), url.is_loopback(), url.is_tls())?;
        self.check_login(&url)?;
        Ok(url)
    }

    /// Checks that trading there is intended.
    fn check_place(&self, host: &str, is_loopback: bool, is_tls: bool) -> anyhow::Result<()> {
        let place = TradingEndpoint { host, is_loopback, is_tls, production: self.production };
        place.check(&[
            ("limits.order_size_max", self.limits.order_size_max.is_some()),
            ("limits.notional_max", self.limits.notional_max.is_some()),
            ("limits.open_orders_max", self.limits.open_orders_max.is_some()),
        ])?;
        Ok(())
    }

    /// The key from `file`, the configuration or the environment; `None` if none of them names one.
    ///
    /// # Errors
    /// An incomplete key, or a file that others can read.
    pub fn key(&self, config: Option<&Path>, file: Option<&Path>) -> anyhow::Result<Option<Key>> {
        if let Some(path) = file {
            return KeyFile::load(path).map(Some);
        }
        let [id_variable, secret_variable] = KEY_VARIABLES;
        match (&self.client_id, &self.client_secret) {
            (Some(id), Some(secret)) => {
                // The id of a key is no secret: a file that others can read may hold it.
                let client_id = id.resolve_shown(config)?;
                Ok(Some(Key::new(client_id, secret.resolve(config)?)))
            }
            (None, None) => match (std::env::var(id_variable), std::env::var(secret_variable)) {
                (Ok(client_id), Ok(secret)) => Ok(Some(Key::new(client_id, secret))),
                (Err(_), Err(_)) => Ok(None),
                _ => bail!("set both {id_variable} and {secret_variable}, or neither"),
            },
            _ => bail!("name both client_id and client_secret, or neither"),
        }
    }

    /// Describes the source of [`key`](ShellConfig::key).
    #[must_use]
    pub fn key_place(&self, config: Option<&Path>, file: Option<&Path>) -> String {
        let [id_variable, secret_variable] = KEY_VARIABLES;
        match (file, config) {
            (Some(path), _) => path.display().to_string(),
            (None, Some(path)) if self.client_secret.is_some() => {
                format!("client_id and client_secret of {}", path.display())
            }
            _ if self.client_secret.is_some() => {
                "client_id and client_secret of the configuration".to_owned()
            }
            _ => format!("the environment: {id_variable} and {secret_variable}"),
        }
    }

    /// The route to the venue. Reading certificates takes milliseconds.
    ///
    /// # Errors
    /// An unreadable file, or an invalid proxy.
    pub fn route(&self, url: &WebUrl, tls: &mut Option<TlsClient>) -> anyhow::Result<Route> {
        if url.is_tls() && tls.is_none() {
            *tls = Some(match &self.ca_file {
                Some(path) => TlsClient::with_ca_file(path)?,
                None => TlsClient::with_system_roots()?,
            });
        }
        let proxy = self.proxy.as_deref().map(str::parse).transpose()?;
        Ok(Route { url: url.clone(), proxy, tls: tls.clone() })
    }
}

/// A file that holds only a key; other users must not be able to read it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    client_id: String,
    client_secret: Secret,
}

impl KeyFile {
    fn load(path: &Path) -> anyhow::Result<Key> {
        let file: KeyFile = tickpath_config::load(path).map_err(|error| match error {
            // The original message would quote the line, possibly with the secret.
            ConfigError::Syntax { line, .. } => anyhow::anyhow!(
                "{}:{line}: write client_id = \"...\" and client_secret = \"...\", and nothing else",
                path.display()
            ),
            other => other.into(),
        })?;
        Ok(Key::new(file.client_id, file.client_secret.resolve(Some(path))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> ShellConfig {
        tickpath_config::parse("shell.toml", text).unwrap()
    }

    #[test]
    fn real_money_needs_words_tls_and_limits() {
        assert!(config("").checked_url().unwrap().is_tls());
        assert!(config("url = 'ws://127.0.0.1:9/'").checked_url().is_ok());
        let url = "url = 'wss://www.deribit.com/ws/api/v2'";
        let limits = ["order_size_max = '10'", "notional_max = '1000.5'", "open_orders_max = 3"];
        let mut text = url.to_owned();
        assert!(config(&text).checked_url().unwrap_err().to_string().contains("production = true"));
        text.push_str("\nproduction = true\n[limits]\n");
        for limit in limits {
            let error = config(&text).checked_url().unwrap_err().to_string();
            assert!(error.contains(limit.split(' ').next().unwrap()), "{error}");
            text.push_str(limit);
            text.push('\n');
        }
        assert!(config(&text).checked_url().is_ok());
        let error = config(&text.replace("wss", "ws")).checked_url().unwrap_err().to_string();
        assert!(error.contains("wss://"), "{error}");
        // A name that only resembles the test environment's.
        assert!(config("url = 'wss://www.test.deribit.example/'").checked_url().is_err());
    }

    #[test]
    fn paths_of_a_file_begin_at_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shell.toml");
        let text = "ca_file = 'ca.pem'\nclient_id = 'file:id'\nclient_secret = 'file:kept/secret'\n";
        std::fs::write(&file, text).unwrap();
        std::fs::write(folder.path().join("id"), "anna\n").unwrap();
        let config = ShellConfig::load(&file).unwrap();
        assert_eq!(config.ca_file, Some(folder.path().join("ca.pem")));
        let error = config.key(Some(&file), None).unwrap_err().to_string();
        let secret = folder.path().join("kept/secret");
        assert!(error.contains(secret.to_str().unwrap()), "{error}");
        // A configuration in the current folder has no folder in its path; messages show the absolute path.
        let none = ShellConfig::load(Path::new("nowhere.toml")).unwrap_err().to_string();
        assert!(none.contains(std::env::current_dir().unwrap().to_str().unwrap()), "{none}");
    }

    #[test]
    fn a_login_can_be_told_how_and_for_what() {
        let base = "url = 'ws://127.0.0.1:9/'";
        let sound =
            config(&format!("{base}\ngrant = 'client_credentials'\nscope = 'trade:read session:desk-1'"));
        sound.check().unwrap();
        assert_eq!(sound.grant, GrantName(Grant::Credentials));
        let again = config(&tickpath_config::to_toml(&sound));
        assert_eq!((again.grant, again.scope), (sound.grant, sound.scope));
        for (more, words) in [
            ("scope = ''", "account:read"),
            ("scope = ' '", "account:read"),
            ("scope = 'trade:read,account:read'", "account:read"),
            (&format!("scope = '{}'", "x".repeat(501)), "500"),
        ] {
            let error = config(&format!("{base}\n{more}")).check().unwrap_err().to_string();
            assert!(error.contains(words), "{more}: {error}");
        }
        let scope = format!("{base}\nscope = 'account:read trade:read_write'");
        let error = config(&scope).check().unwrap_err().to_string();
        assert!(error.contains("account:read_write") && error.contains("cancel_on_disconnect"), "{error}");
        config(&format!("{scope}\ncancel_on_disconnect = false")).check().unwrap();
        config(&scope.replace("account:read ", "account:read_write ")).check().unwrap();
        let open = "url = 'ws://test.deribit.com/'\ngrant = 'client_credentials'";
        assert!(config(open).check().unwrap_err().to_string().contains("wss://"));
        let error =
            tickpath_config::parse::<ShellConfig>("s.toml", "grant = 'password'").unwrap_err().to_string();
        assert!(error.contains("client_signature"), "{error}");
    }

    #[test]
    fn real_money_is_meant_for_one_venue() {
        let limits = "order_size_max = '10'\nnotional_max = '1000.5'\nopen_orders_max = 3";
        let text = format!("url = 'wss://a.example/x'\nproduction = true\n[limits]\n{limits}");
        let config = config(&text);
        assert!(config.with_url("wss://a.example/y").checked_venue().is_ok());
        assert!(config.with_url("wss://test.deribit.com/ws/api/v2").checked_venue().is_ok());
        for other in ["wss://b.example/x", "ouch://b.example:1"] {
            let error = config.with_url(other).checked_venue().unwrap_err().to_string();
            assert!(error.contains("production = true"), "{error}");
        }
    }

    #[test]
    fn the_sample_is_as_the_defaults_with_limits() {
        let sample = config(include_str!("../../../configs/shell.toml"));
        assert!(sample.checked_url().is_ok());
        // The commented scope of the sample is a valid one.
        let text = include_str!("../../../configs/shell.toml").replace("# scope = ", "scope = ");
        let scope = config(&text).scope.expect("the sample names one");
        assert!(config(&text).checked_url().is_ok(), "{scope}");
        assert_eq!(sample.limits.open_orders_max, Some(20));
        let again = tickpath_config::to_toml(&ShellConfig { limits: Limits::default(), ..sample });
        assert_eq!(again, tickpath_config::to_toml(&ShellConfig::default()));
    }

    #[test]
    fn a_native_venue_beyond_this_machine_needs_words_and_limits_too() {
        let text = "url = 'ouch://venue.example:26400'";
        assert!(config(text).checked_venue().unwrap_err().to_string().contains("production = true"));
        let text = format!("{text}\nproduction = true\n[limits]\norder_size_max = '1'\nnotional_max = '1'");
        assert!(config(&text).checked_venue().unwrap_err().to_string().contains("open_orders_max"));
        assert!(config(&format!("{text}\nopen_orders_max = 1")).checked_venue().unwrap().is_native());
        assert!(config("url = 'ouch://127.0.0.1:1'").checked_venue().is_ok());
        let error = config("url = 'ouch://127.0.0.1:1'").check().unwrap_err().to_string();
        assert!(error.contains("[native]"), "{error}");
    }

    #[test]
    fn the_native_sample_can_be_used() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/shell-native.toml");
        let sample: ShellConfig = tickpath_config::load(&path).unwrap();
        ShellConfig { file: Some(path.clone()), ..sample.clone() }.check().unwrap();
        assert_eq!(sample.key(Some(&path), None).unwrap().unwrap().client_id, "ANNA");
        let proxied = ShellConfig { file: Some(path), proxy: Some("p:1".to_owned()), ..sample };
        assert!(proxied.check().unwrap_err().to_string().contains("proxy"));
    }

    #[test]
    fn a_key_comes_from_files_that_nobody_else_reads() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        std::fs::write(&path, "client_id = 'me'\nclient_secret = 'hunter2'\n").unwrap();
        let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o644);
        let error = ShellConfig::default().key(None, Some(&path)).unwrap_err().to_string();
        assert!(error.contains("chmod 600") && !error.contains("hunter2"), "{error}");
        mode(0o600);
        let key = ShellConfig::default().key(None, Some(&path)).unwrap().unwrap();
        assert_eq!((key.client_id.as_str(), key.secret()), ("me", "hunter2"));
        std::fs::write(&path, "client_secret hunter2").unwrap();
        let error = ShellConfig::default().key(None, Some(&path)).unwrap_err().to_string();
        assert!(!error.contains("hunter2") && error.contains("keys.toml:1"), "{error}");
        let half = config("client_id = 'me'");
        assert!(half.key(None, None).unwrap_err().to_string().contains("both"));
        let text = tickpath_config::to_toml(&config("client_id = 'me'\nclient_secret = 'hunter2'"));
        assert!(!text.contains("hunter2"), "{text}");
    }
}

//! The configuration file of the gateway.
//!
//! ```
//! use tickpath_gateway::config::GatewayConfig;
//!
//! let text = r#"
//! [venue]
//! ws_uri = "ws://127.0.0.1:26420/ws/api/v2"
//! [accounts.A1]
//! login = "anna"
//! secret = "test"
//! [users.trader]
//! password = "test"
//! accounts = ["A1"]
//! "#;
//! let config = GatewayConfig::parse("gateway.toml", text)?;
//! assert_eq!(config.users["trader"].request_limit, 10);
//! # Ok::<(), tickpath_config::ConfigError>(())
//! ```

mod accounts;
mod amount;
mod feeds;
mod flags;
mod logging;
mod patterns;
mod settings;
mod symbols;
mod test;
mod users;
mod venue;

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tickpath_config::{ConfigError, Duration, FileKind, IdleStrategy, absolute, beside, folder_of};
use tickpath_types::Nanos;

pub use accounts::{AccountConfig, Caps, Grant};
pub use amount::{AMOUNT_SCALE, Amount};
pub use feeds::{FeedsConfig, Resolution};
pub use flags::{Overrides, metrics_address};
pub use logging::EventLogConfig;
pub use patterns::Patterns;
pub use symbols::SymbolsConfig;
pub use test::TestSwitches;
pub use users::UserConfig;
pub use venue::{FixUri, Interval, Transport, VenueConfig};

/// Maximum number of accounts.
pub const ACCOUNTS_MAX: usize = 64;
/// Maximum number of users.
pub const USERS_MAX: usize = 256;
/// Maximum length of the name of the gateway, an account or a user, in bytes.
pub const NAME_LEN_MAX: usize = 32;
/// Maximum of `clients.pre_login_max`.
const PRE_LOGIN_MAX: u32 = 1 << 10;
/// Maximum number of clients connected at a time.
const CLIENTS_MAX: u32 = 1_024;
/// Maximum number of items of a ring; the minimum is [`RING_MIN`].
const RING_MAX: u32 = 1 << 20;
/// Minimum number of items of a ring: a download starts with more than a handful of events.
const RING_MIN: u32 = 64;
/// Minimum number of candle series in the broadcast ring, so that one series does not overrun a slow reader.
const SERIES_IN_RING: u32 = 4;

/// A gateway's configuration file. Relative paths, those of secrets included, start at that file's folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// Name of the gateway, also of its sockets, shared-memory segment, log and metrics. 1 to 32 letters,
    /// digits, `-` or `_`.
    pub name: String,
    /// Unix socket that clients connect to; `NAME.sock` when absent.
    pub client_listen_address: Option<PathBuf>,
    /// Address of the HTTP metrics server; no metrics server when absent.
    pub metrics_listen_address: Option<SocketAddrV4>,
    /// Admin socket, a Unix socket, for `tickpath gateway kill` and `release`; `NAME.admin.sock` when absent.
    pub admin_listen_address: Option<PathBuf>,
    /// Folder of the kill switch's marker. When absent, the folder of the admin socket or the client socket
    /// if one is configured, otherwise `~/.local/state/tickpath`.
    pub state_folder: Option<PathBuf>,
    /// Real money: required for every venue that is neither on this machine nor a test environment.
    pub production: bool,
    /// Dry run: orders are checked and acknowledged, and none reaches the venue.
    pub dry_run: bool,
    /// Loop of the gateway's thread.
    #[serde(rename = "loop")]
    pub duty_cycle: LoopConfig,
    /// Limits and timeouts that apply to every client.
    pub clients: ClientsConfig,
    /// The venue and its connections.
    pub venue: VenueConfig,
    /// The instruments that the gateway uses.
    pub symbols: SymbolsConfig,
    /// Order limits for each account that does not set its own.
    pub limits: Caps,
    /// The log of all messages.
    pub event_log: EventLogConfig,
    /// Deliberate failures, for tests against a venue on this machine.
    #[serde(skip_serializing_if = "TestSwitches::is_off")]
    pub test: TestSwitches,
    /// The accounts at the venue, by name.
    pub accounts: BTreeMap<String, AccountConfig>,
    /// The users of the gateway, by name.
    pub users: BTreeMap<String, UserConfig>,
    /// Folder of the configuration file; default folder of the sockets.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// The loop that the gateway's agents run in.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoopConfig {
    /// Strategy between duty cycles that found no work.
    pub idle: IdleStrategy,
    /// Interval at which timers are checked.
    pub timer_interval: Duration,
    /// Core that the thread is pinned to; not pinned when absent.
    pub core: Option<usize>,
}

/// Limits and timeouts that apply to every client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientsConfig {
    /// Maximum number of connected clients; a further one is refused.
    pub max: u32,
    /// Maximum number of events queued in a client's ring; a client further behind is disconnected.
    pub events_max: u32,
    /// Maximum number of requests queued in a client's ring; beyond it the client library reports it full.
    pub requests_max: u32,
    /// Maximum number of market data events that a client may lag behind before it loses some.
    pub market_data_max: u32,
    /// Interval at which each client is pinged.
    pub heartbeat: Duration,
    /// Time within which a caller must log in.
    pub login_timeout: Duration,
    /// Maximum number of callers before login; a further one evicts the oldest of the process with the most.
    pub pre_login_max: u32,
    /// Maximum number of callers before login per process; a further one evicts the process's oldest.
    pub pre_login_per_process: u32,
    /// Cancels a client's orders when it disconnects or is disconnected.
    pub cancel_on_disconnect: bool,
    /// With `cancel_on_disconnect`: time for a user's clients to return to orders that an earlier instance of
    /// the gateway entered for them. After it these orders are cancelled.
    pub return_patience: Duration,
    /// Maximum number of open orders of all clients together; a further one is refused.
    pub orders_max: u32,
}

impl Default for GatewayConfig {
    fn default() -> GatewayConfig {
        GatewayConfig {
            name: "deribit".to_owned(),
            client_listen_address: None,
            metrics_listen_address: None,
            admin_listen_address: None,
            state_folder: None,
            production: false,
            dry_run: false,
            duty_cycle: LoopConfig::default(),
            clients: ClientsConfig::default(),
            venue: VenueConfig::default(),
            symbols: SymbolsConfig::default(),
            limits: Caps::default(),
            event_log: EventLogConfig::default(),
            test: TestSwitches::default(),
            accounts: BTreeMap::new(),
            users: BTreeMap::new(),
            folder: PathBuf::new(),
        }
    }
}

impl Default for LoopConfig {
    fn default() -> LoopConfig {
        LoopConfig { idle: IdleStrategy::Yield, timer_interval: Duration(Nanos(250)), core: None }
    }
}

impl Default for ClientsConfig {
    fn default() -> ClientsConfig {
        ClientsConfig {
            max: 64,
            events_max: 1 << 14,
            requests_max: 1 << 10,
            market_data_max: 1 << 16,
            heartbeat: Duration(Nanos::from_secs(1)),
            login_timeout: Duration(Nanos::from_secs(5)),
            pre_login_max: 128,
            pre_login_per_process: 64,
            cancel_on_disconnect: true,
            return_patience: Duration(Nanos::from_secs(30)),
            orders_max: 1 << 14,
        }
    }
}

impl GatewayConfig {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`ConfigError`]: one line that says what to change.
    pub fn load(path: &Path) -> Result<GatewayConfig, ConfigError> {
        GatewayConfig::load_with(path, &Overrides::default())
    }

    /// Reads and checks a file, with `overrides` in place of its values.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_with(path: &Path, overrides: &Overrides) -> Result<GatewayConfig, ConfigError> {
        let mut config: GatewayConfig = FileKind::Gateway.load(path).map_err(without_venue_ports)?;
        config.place(path);
        overrides.apply(&mut config);
        config.checked().map_err(|error| error.in_file(path))
    }

    /// Parses and checks `text`; errors name it `file`.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn parse(file: &str, text: &str) -> Result<GatewayConfig, ConfigError> {
        tickpath_config::parse::<GatewayConfig>(file, text).map_err(without_venue_ports)?.checked()
    }

    /// Resolves relative paths against the folder of `file`; the command line's flags are applied later.
    fn place(&mut self, file: &Path) {
        self.folder = beside(file, Path::new(""));
        for socket in [&mut self.client_listen_address, &mut self.admin_listen_address].into_iter().flatten()
        {
            // Stays relative to keep it short: a socket path has at most 108 bytes.
            *socket = beside(file, socket);
        }
        let folders = [&mut self.state_folder, &mut self.event_log.folder, &mut self.venue.ca_file];
        for path in folders.into_iter().flatten() {
            *path = absolute(&beside(file, path));
        }
        for account in self.accounts.values_mut() {
            account.login.make_absolute(file);
            account.secret.make_absolute(file);
        }
        self.users.values_mut().for_each(|user| user.password.make_absolute(file));
    }

    fn checked(self) -> Result<GatewayConfig, ConfigError> {
        self.check()?;
        Ok(self)
    }

    /// Checks that all values can be used together. [`load`](Self::load) does this.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn check(&self) -> Result<(), ConfigError> {
        check_name("name", &self.name)?;
        self.check_loop()?;
        self.check_clients()?;
        self.venue.check()?;
        self.symbols.check()?;
        self.event_log.check()?;
        self.check_accounts()?;
        self.check_users()?;
        self.check_downloads()?;
        self.check_money()?;
        if let Some(address) = self.metrics_listen_address.filter(|address| !address.ip().is_loopback()) {
            return Err(ConfigError::value(format!(
                "metrics_listen_address {address}: metrics are served on the loopback interface alone (127.0.0.1)"
            )));
        }
        if !self.test.is_off() && !self.venue.is_loopback()? {
            return Err(ConfigError::value(
                "[test] is for a venue on this machine: leave it out, or name 127.0.0.1 in venue.ws_uri",
            ));
        }
        Ok(())
    }

    fn check_loop(&self) -> Result<(), ConfigError> {
        let interval = self.duty_cycle.timer_interval.0;
        between("loop.timer_interval", interval.0, 0, Nanos::from_millis(10).0, "10ms at most")
    }

    fn check_clients(&self) -> Result<(), ConfigError> {
        let clients = &self.clients;
        let count = |name, value: u32, least: u32, most: u32| {
            between(name, value.into(), least.into(), most.into(), &format!("{least} to {most}"))
        };
        count("clients.max", clients.max, 1, CLIENTS_MAX)?;
        count("clients.events_max", clients.events_max, RING_MIN, RING_MAX)?;
        count("clients.requests_max", clients.requests_max, 1, RING_MAX)?;
        count("clients.market_data_max", clients.market_data_max, RING_MIN, RING_MAX)?;
        count("clients.orders_max", clients.orders_max, 1, RING_MAX)?;
        count("clients.pre_login_max", clients.pre_login_max, 1, PRE_LOGIN_MAX)?;
        count("clients.pre_login_per_process", clients.pre_login_per_process, 1, clients.pre_login_max)?;
        duration(
            "clients.return_patience",
            clients.return_patience,
            Nanos::from_secs(1),
            Nanos::from_secs(86_400),
        )?;
        duration("clients.heartbeat", clients.heartbeat, Nanos::from_millis(10), Nanos::from_secs(60))?;
        duration(
            "clients.login_timeout",
            clients.login_timeout,
            Nanos::from_millis(100),
            Nanos::from_secs(60),
        )
    }

    /// Checks that the events of one download step and one candle series fit the clients' rings.
    fn check_downloads(&self) -> Result<(), ConfigError> {
        let (levels, accounts, feeds) = (self.venue.depth, self.accounts.len(), &self.venue.feeds);
        let lengths = feeds.time_series.len();
        let least = tickpath_gateway_core::ring_needed(levels as usize, lengths, accounts);
        if (self.clients.events_max as usize) < least {
            let of_candles = if lengths > 0 {
                format!(", {lengths} lengths of candles (venue.feeds.time_series)")
            } else {
                String::new()
            };
            return Err(ConfigError::value(format!(
                "clients.events_max is {}: write {least} at least, for {levels} levels (venue.depth){of_candles} and {accounts} accounts",
                self.clients.events_max
            )));
        }
        let candles = if lengths > 0 { feeds.time_series_length } else { 0 };
        let least = (candles * SERIES_IN_RING).next_power_of_two();
        if self.clients.market_data_max < least {
            return Err(ConfigError::value(format!(
                "clients.market_data_max is {}: write {least} at least, as {candles} candles (venue.feeds.time_series_length) are sent at once",
                self.clients.market_data_max
            )));
        }
        Ok(())
    }

    fn check_accounts(&self) -> Result<(), ConfigError> {
        let accounts = &self.accounts;
        if accounts.is_empty() || accounts.len() > ACCOUNTS_MAX {
            return Err(ConfigError::value(format!(
                "there are {} accounts: name 1 to {ACCOUNTS_MAX} as [accounts.NAME] with login and secret",
                accounts.len()
            )));
        }
        for (name, account) in accounts {
            check_name("account", name)?;
            account.check(name)?;
        }
        let masters = accounts.values().filter(|account| account.master).count();
        if masters > 1 {
            return Err(ConfigError::value(
                "more than one account has master = true: only one may request market data",
            ));
        }
        Ok(())
    }

    fn check_users(&self) -> Result<(), ConfigError> {
        let users = &self.users;
        if users.is_empty() || users.len() > USERS_MAX {
            return Err(ConfigError::value(format!(
                "there are {} users: name 1 to {USERS_MAX} as [users.NAME] with password and accounts",
                users.len()
            )));
        }
        for (name, user) in users {
            check_name("user", name)?;
            user.check(name, &self.accounts)?;
        }
        self.check_quoters()
    }

    /// Checks who may quote: one user per account, as its quotes are cancelled together, and only with
    /// `cancel_on_disconnect`, as quotes end with their connection.
    fn check_quoters(&self) -> Result<(), ConfigError> {
        let quoters = || self.users.iter().filter(|(_, user)| user.mmp_group.is_some());
        for account in self.accounts.keys() {
            let mut of_account = quoters().filter(|(_, user)| user.accounts.contains(account));
            if let (Some((one, _)), Some((other, _))) = (of_account.next(), of_account.next()) {
                return Err(ConfigError::value(format!(
                    "users.{one} and users.{other} both quote at {account}: leave mmp_group to one of them"
                )));
            }
        }
        match quoters().next() {
            Some((name, _)) if !self.venue.cancel_on_disconnect => Err(ConfigError::value(format!(
                "users.{name}.mmp_group is set, and the venue accepts quotes only with venue.cancel_on_disconnect = true"
            ))),
            _ => Ok(()),
        }
    }

    /// Rejects a real-money venue without `production`, TLS and all limits of every account.
    fn check_money(&self) -> Result<(), ConfigError> {
        for (name, account) in &self.accounts {
            let caps = self.caps_of(account);
            let stated = |key: &str| format!("limits.{key} (or accounts.{name}.limits.{key})");
            let names = ["order_size_max", "notional_max", "open_orders_max"].map(stated);
            let is_stated =
                [caps.order_size_max.is_some(), caps.notional_max.is_some(), caps.open_orders_max.is_some()];
            let limits: Vec<(&str, bool)> = names.iter().map(String::as_str).zip(is_stated).collect();
            for place in self.venue.places(self.production)? {
                place.as_place().check(&limits)?;
            }
        }
        Ok(())
    }

    /// Order limits of `account`: its own values, completed by those of `[limits]`.
    #[must_use]
    pub fn caps_of(&self, account: &AccountConfig) -> Caps {
        account.limits.or(&self.limits)
    }

    /// The account whose connection subscribes to market data: the master, or the first by name.
    #[must_use]
    pub fn master(&self) -> Option<(&str, &AccountConfig)> {
        let master = self.accounts.iter().find(|(_, account)| account.master);
        master.or_else(|| self.accounts.iter().next()).map(|(name, account)| (name.as_str(), account))
    }

    /// Unix socket that clients connect to.
    #[must_use]
    pub fn client_socket(&self) -> PathBuf {
        self.client_listen_address.clone().unwrap_or_else(|| self.folder.join(format!("{}.sock", self.name)))
    }

    /// Folder of the kill switch's marker. It does not depend on the current folder, unless a socket's path
    /// does.
    #[must_use]
    pub fn state_folder(&self) -> PathBuf {
        let beside = |socket: &Option<PathBuf>| Some(folder_of(socket.as_deref()?).to_owned());
        self.state_folder
            .clone()
            .or_else(|| beside(&self.admin_listen_address))
            .or_else(|| beside(&self.client_listen_address))
            .unwrap_or_else(usual_state_folder)
    }

    /// The admin socket.
    #[must_use]
    pub fn admin_socket(&self) -> PathBuf {
        self.admin_listen_address
            .clone()
            .unwrap_or_else(|| self.folder.join(format!("{}.admin.sock", self.name)))
    }
}

/// Folder for a user's persistent program state (XDG base directories).
pub(crate) fn usual_state_folder() -> PathBuf {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = of("XDG_STATE_HOME").or_else(|| of("HOME").map(|home| home.join(".local/state")));
    home.unwrap_or_else(|| PathBuf::from("/var/tmp")).join("tickpath")
}

/// Keys of other gateways' flags that this gateway does not support.
const FOREIGN_KEYS: [&str; 6] = [
    "multicast_port",
    "udp_snapshot_port",
    "udp_incremental_port",
    "udp_snapshot_timeout",
    "local_interface",
    "multicast",
];

/// Replaces the error for a key of another kind of gateway by one that says why this gateway lacks it.
fn without_venue_ports(error: ConfigError) -> ConfigError {
    match error {
        ConfigError::Syntax { file, line, message }
            if FOREIGN_KEYS.iter().any(|key| message.contains(&format!("unknown field `{key}`"))) =>
        {
            let message = "this gateway takes market data from the venue's WebSocket and has no multicast ports: leave it out";
            ConfigError::Syntax { file, line, message: message.to_owned() }
        }
        other => other,
    }
}

fn check_name(what: &str, name: &str) -> Result<(), ConfigError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(ConfigError::value(format!(
        "{what} {name:?}: a name has 1 to {NAME_LEN_MAX} letters, digits, - or _"
    )))
}

fn between(name: &str, value: u64, least: u64, most: u64, allowed: &str) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ConfigError::value(format!("{name} is {value}: write {allowed}")))
}

fn duration(name: &str, value: Duration, least: Nanos, most: Nanos) -> Result<(), ConfigError> {
    if (least..=most).contains(&value.0) {
        return Ok(());
    }
    let (least, most) = (Duration(least), Duration(most));
    Err(ConfigError::value(format!("{name} is {value}: write {least} to {most}")))
}

#[cfg(test)]
mod tests;

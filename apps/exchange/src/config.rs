//! The configuration file of a venue.

/// Returns a [`ConfigError`] with this text, which says what to change.
macro_rules! bail {
    ($($text:tt)+) => { return Err(tickpath_config::ConfigError::value(format!($($text)+))) };
}

mod day;
mod drop_copy;
mod journal;
mod market_recovery;
mod users;

pub use day::{DayConfig, PhaseConfig, StepConfig, TimeOfDay, TimeZone};
pub use journal::{JournalConfig, PolicyConfig};
pub use market_recovery::RequestsConfig;
pub(crate) use market_recovery::nanos;
pub(crate) use users::RATE_MAX;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tickpath_admission::LoginPolicy;
use tickpath_config::{
    ConfigError, Duration, FileKind, IdleStrategy, Instruments, Placement, PreLoginConfig, PriceText, Secret,
    TEST_PASSWORD, at_least, beside, in_range, multicast_group,
};
use tickpath_journal::SessionName;
use tickpath_matching::EngineLimits;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, HEADER_LEN, Session};
use tickpath_types::{InstrumentId, InstrumentTable, Nanos, SelfTradePrevention, Symbol};
use tickpath_venue::{UserSettings, parse_session_name, session_name_at};

use crate::drop_copy::DropCopySettings;
use crate::journal::JournalSettings;
use crate::market_recovery::SnapshotSettings;
use crate::venue::VenueSettings;

/// Maximum number of simultaneous connections, at about 50 KiB each.
const CONNECTIONS_MAX: usize = 1 << 12;
/// Maximum number of users.
const USERS_MAX: usize = 1 << 10;
/// Maximum number of order entry messages retained for all users together, at some hundred bytes each.
const RETAINED_RESPONSES_MAX: usize = 1 << 26;
/// Maximum number of market data messages retained for retransmission, at 64 bytes each.
const RETAINED_MESSAGES_MAX: usize = 1 << 26;
/// Maximum number of open orders, at some hundred bytes each.
pub(crate) const OPEN_ORDERS_MAX: u32 = 1 << 22;
/// Maximum number of instruments, including those added at run time.
const INSTRUMENTS_MAX: u16 = 4_096;
/// The engine's session capacity is a multiple of this number.
const SESSIONS_STEP: u16 = 64;
/// Minimum heartbeat interval; shorter intervals add only load.
const HEARTBEAT_MIN: Duration = Duration(Nanos::from_millis(1));
const ROLES: [&str; 3] = ["order-server", "matcher", "publisher"];
/// Role of the agent that sends line B. Without it, the publisher sends line B.
const LINE_B_ROLE: &str = "line-b";

type Result<T, E = ConfigError> = std::result::Result<T, E>;

/// The configuration of a venue.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExchangeConfig {
    /// Name of the session of order entry and market data, 1 to 10 letters, digits, `-` or `_`. When absent,
    /// the journal's name, or for a new session a name made from the time. Clients tell from the name whether
    /// their sequence numbers are still valid, so a new session needs a name that was never used before.
    pub session: Option<String>,
    /// The instrument file; relative to this file.
    pub instruments: PathBuf,
    /// The order entry endpoint.
    #[serde(default)]
    pub order_entry: OrderEntryConfig,
    /// Limits for connections that have not logged in. Each endpoint has the same limits.
    #[serde(default)]
    pub pre_login: PreLoginConfig,
    /// Market data publishing.
    #[serde(default)]
    pub market_data: MarketDataConfig,
    /// Limits of the matching engine.
    #[serde(default)]
    pub matching: MatchingConfig,
    /// The trading day.
    #[serde(default)]
    pub day: DayConfig,
    /// The journal, which stores every command before it takes effect.
    #[serde(default)]
    pub journal: JournalConfig,
    /// Endpoint for drop copies of the messages to users; disabled when absent.
    pub drop_copy: Option<DropCopySettings>,
    /// Admin socket for commands to the running venue; disabled when absent.
    pub admin: Option<AdminConfig>,
    /// Allocates all memory at the start, so that no message causes a page fault. This takes some 150 MB more
    /// with the default limits.
    #[serde(default)]
    pub prefault: bool,
    /// The Deribit front, which parses this table itself; none when absent.
    pub deribit: Option<toml::Table>,
    /// Background order flow, which the program sends to the venue as one of its users; none when absent.
    pub background_flow: Option<BackgroundFlowConfig>,
    /// Assignment of agents to threads; when absent, it depends on the number of cores. The agent `line-b` is
    /// optional: it sends line B in place of the publisher.
    pub placement: Option<Placement>,
}

/// Seeded background order flow, the counterparty for traders at an otherwise empty venue.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackgroundFlowConfig {
    /// New orders per second over all instruments, 1 to 100000; cancels and replacements come in addition.
    pub rate: u32,
    /// Random seed, which determines the whole flow.
    pub seed: u64,
    /// The user that enters the orders, one of `[order_entry]`.
    pub user: String,
}

impl Default for BackgroundFlowConfig {
    fn default() -> Self {
        BackgroundFlowConfig { rate: 1_000, seed: 1, user: "FLOW".to_owned() }
    }
}

impl BackgroundFlowConfig {
    /// Maximum of `rate`.
    pub const RATE_MAX: u32 = 100_000;

    /// Returns the password of the user that enters the flow.
    ///
    /// # Errors
    /// [`ConfigError`] when the rate is out of range, or the file lacks the user or the user's password.
    pub fn password(&self, entry: &OrderEntryConfig, file: Option<&Path>) -> Result<String> {
        let name = &self.user;
        in_range("background_flow.rate", self.rate, 1..=Self::RATE_MAX)?;
        if entry.test_users.iter().any(|user| user.eq_ignore_ascii_case(name)) {
            return Ok(TEST_PASSWORD.to_owned());
        }
        let Some(user) = entry.users.iter().find(|user| user.name.eq_ignore_ascii_case(name)) else {
            bail!(
                "background flow needs the user '{name}': add it to order_entry.test_users, after all others"
            );
        };
        match &user.password {
            Some(password) => password.resolve(file),
            None => Err(ConfigError::value(format!(
                "background flow logs in as '{name}', which has a password_hash: give it a password"
            ))),
        }
    }
}

/// The order entry endpoint: OUCH 5.0 over SoupBinTCP.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OrderEntryConfig {
    /// Listening address.
    pub address: SocketAddrV4,
    /// Maximum number of logged-in clients; further logins are refused.
    pub max_connections: usize,
    /// Messages retained per user for a client that reconnects or reads slowly; 256 at least.
    pub retained_messages: usize,
    /// Users with a public password; for a venue on the loopback interface only.
    pub test_users: Vec<String>,
    /// Time from a user's disconnection to the cancellation of its open orders, unless it reconnects before.
    /// When absent, the orders stay. This is the default for all users.
    pub cancel_on_disconnect: Option<Duration>,
    /// When the venue stops, it also cancels the open orders of users with `cancel_on_disconnect`.
    pub cancel_at_shutdown: bool,
    /// Handling of wrong passwords.
    pub logins: LoginConfig,
    /// Default limits of a user.
    #[serde(skip_serializing_if = "LimitsConfig::is_empty")]
    pub limits: LimitsConfig,
    /// Users with individual passwords.
    #[serde(rename = "user", skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<UserConfig>,
}

/// One `[[order_entry.user]]`, with a password or its hash.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct UserConfig {
    /// Name of the user, at most 6 characters.
    pub name: String,
    /// Password of the user, at most 10 characters.
    pub password: Option<Secret>,
    /// The argon2 hash of the lower-case password, as `tickpath admin hash-password` prints it.
    pub password_hash: Option<String>,
    /// Endpoints where the user may log in.
    #[serde(default = "order_entry_only")]
    pub ports: Vec<PortConfig>,
    /// Symbols of the instruments that the user may trade; all when absent.
    pub instruments: Option<Vec<String>>,
    /// Overrides `cancel_on_disconnect` of `[order_entry]` for this user; `"never"` disables it.
    pub cancel_on_disconnect: Option<CancelConfig>,
    /// Overrides the limits of `[order_entry]` for this user.
    #[serde(default, skip_serializing_if = "LimitsConfig::is_empty")]
    pub limits: LimitsConfig,
    /// Self-trade prevention: handling of trades between the user's own orders. When absent, they trade.
    pub self_trade_prevention: Option<SelfTradeConfig>,
    /// Names of the users whose drop copies this user receives; all users when absent.
    pub copies_of: Option<Vec<String>>,
}

/// Self-trade prevention: handling of an order that would trade with another order of the same user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SelfTradeConfig {
    /// The remaining quantity of the incoming order is cancelled.
    CancelNewest,
    /// The resting order is cancelled.
    CancelOldest,
    /// Both orders are cancelled.
    CancelBoth,
    /// Both quantities are reduced by the smaller one.
    Decrement,
}

impl From<SelfTradeConfig> for SelfTradePrevention {
    fn from(config: SelfTradeConfig) -> Self {
        match config {
            SelfTradeConfig::CancelNewest => SelfTradePrevention::CancelNewest,
            SelfTradeConfig::CancelOldest => SelfTradePrevention::CancelOldest,
            SelfTradeConfig::CancelBoth => SelfTradePrevention::CancelBoth,
            SelfTradeConfig::Decrement => SelfTradePrevention::Decrement,
        }
    }
}

/// An endpoint of the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PortConfig {
    /// Order entry.
    OrderEntry,
    /// The drop copy endpoint, which sends copies of the messages to users.
    DropCopy,
    /// The Deribit front, with the keys of `[deribit]`.
    Deribit,
}

/// Delay of cancel on disconnect: a duration, or `never`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum CancelConfig {
    /// Open orders are cancelled this long after the disconnection.
    After(Duration),
    /// Open orders stay.
    Never,
}

impl TryFrom<String> for CancelConfig {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self> {
        if text == "never" { Ok(CancelConfig::Never) } else { text.parse().map(CancelConfig::After) }
    }
}

impl From<CancelConfig> for String {
    fn from(config: CancelConfig) -> String {
        match config {
            CancelConfig::After(grace) => grace.to_string(),
            CancelConfig::Never => "never".to_owned(),
        }
    }
}

/// Limits of a user; no limit when absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Maximum sustained rate, in messages per second.
    pub messages_per_second: Option<u32>,
    /// Maximum burst of messages after a pause; one second's messages when absent.
    pub burst: Option<u32>,
    /// Maximum number of open orders.
    pub open_orders: Option<u32>,
    /// Maximum quantity of one order.
    pub order_qty: Option<u64>,
    /// Maximum price times quantity of one order.
    pub order_notional: Option<PriceText>,
}

/// Handling of wrong passwords.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoginConfig {
    /// Delay of a password check after the third wrong password in a row for a user from one address. Each
    /// further one doubles it, up to 32 times this value. An address where the user's password was right
    /// before is exempt from the doubling.
    pub delay: Duration,
    /// Time without an attempt after which the count of wrong passwords restarts at 0.
    pub forgive_after: Duration,
    /// Maximum number of pairs of user and address whose attempts are remembered.
    pub records_max: usize,
}

/// The admin socket for commands to the running venue.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AdminConfig {
    /// The Unix socket; relative to this file. Its owner and root may use it.
    pub socket: PathBuf,
    /// Maximum time that a draining venue waits for its clients to disconnect before it stops.
    #[serde(default = "drain_default")]
    pub drain: Duration,
}

/// Market data publishing: ITCH 5.0 over MoldUDP64 on two multicast lines.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct MarketDataConfig {
    /// Group and port of line A.
    pub line_a: SocketAddrV4,
    /// Group and port of line B.
    pub line_b: SocketAddrV4,
    /// Address of the sending interface of both lines.
    pub interface: Ipv4Addr,
    /// Address that receives retransmission requests.
    pub retransmission: SocketAddrV4,
    /// Maximum datagram length, in bytes.
    pub packet_bytes: usize,
    /// Sends several packets by one system call, if more messages wait than one packet holds and the kernel
    /// can segment (UDP GSO). Receivers' sockets get separate datagrams. Switch this off if a program on the
    /// venue's host reads the lines by a packet ring or captures them, because it would get them as one packet.
    pub segmented_sends: bool,
    /// Time without a packet after which a heartbeat is sent.
    pub heartbeat: Duration,
    /// Messages retained for retransmission, at 64 bytes each.
    pub retained_messages: usize,
    /// Limits on the retransmission requests of one address.
    pub requests: RequestsConfig,
    /// Snapshots over TCP and multicast.
    pub snapshots: SnapshotSettings,
}

/// Limits of the matching engine.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct MatchingConfig {
    /// Maximum number of open orders of all users; further ones are rejected.
    pub max_open_orders: u32,
    /// Maximum number of open orders of one user; further ones are rejected.
    pub max_open_orders_per_user: u32,
    /// Instruments that may be added at run time, in addition to those of the file; further ones are refused.
    pub spare_instruments: u16,
}

/// Returns the ids of the instruments with these symbols; `list` names the list in errors.
fn instrument_ids(
    symbols: Option<&[String]>,
    table: &InstrumentTable,
    list: &str,
) -> Result<Option<Vec<InstrumentId>>> {
    let find = |text: &String| {
        Symbol::new(text)
            .ok()
            .and_then(|symbol| table.find(symbol))
            .ok_or_else(|| ConfigError::value(format!("{list}: there is no instrument '{text}'")))
    };
    symbols.map(|symbols| symbols.iter().map(find).collect()).transpose()
}

fn checked_session(name: &str) -> Result<Session> {
    parse_session_name(name).ok_or_else(|| {
        ConfigError::value(format!("session '{name}' must be 1 to 10 ASCII letters, digits, - or _"))
    })
}

fn journal_session(session: Session) -> SessionName {
    SessionName::new(&session.to_string()).expect("a session name of the wire protocol is valid in a journal")
}

/// Makes a session name from the current time, so that it was almost certainly never used before.
fn new_session() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    session_name_at(since_epoch.as_millis())
}

impl Default for OrderEntryConfig {
    fn default() -> Self {
        OrderEntryConfig {
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 26_400),
            max_connections: 64,
            retained_messages: 1 << 16,
            test_users: Vec::new(),
            cancel_on_disconnect: None,
            cancel_at_shutdown: false,
            logins: LoginConfig::default(),
            limits: LimitsConfig::default(),
            users: Vec::new(),
        }
    }
}

impl Default for LoginConfig {
    fn default() -> Self {
        let LoginPolicy { delay, forgive_after, records_max } = LoginPolicy::default();
        LoginConfig { delay: Duration(delay), forgive_after: Duration(forgive_after), records_max }
    }
}

fn drain_default() -> Duration {
    Duration(Nanos::from_secs(10))
}

fn order_entry_only() -> Vec<PortConfig> {
    vec![PortConfig::OrderEntry]
}

impl Default for MarketDataConfig {
    fn default() -> Self {
        MarketDataConfig {
            line_a: SocketAddrV4::new(Ipv4Addr::new(239, 255, 26, 1), 26_401),
            line_b: SocketAddrV4::new(Ipv4Addr::new(239, 255, 26, 2), 26_402),
            interface: Ipv4Addr::LOCALHOST,
            retransmission: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 26_403),
            packet_bytes: DATAGRAM_LEN_MAX,
            segmented_sends: true,
            heartbeat: Duration(Nanos::from_secs(1)),
            retained_messages: 1 << 20,
            requests: RequestsConfig::default(),
            snapshots: SnapshotSettings::default(),
        }
    }
}

impl Default for MatchingConfig {
    fn default() -> Self {
        let limits = EngineLimits::default();
        MatchingConfig {
            max_open_orders: limits.max_open_orders,
            max_open_orders_per_user: limits.max_open_orders_per_session,
            spare_instruments: 16,
        }
    }
}

impl MatchingConfig {
    fn instruments_max(&self, instruments: &InstrumentTable) -> Result<u16> {
        let (max_id, spare) = (instruments.max_id().0, self.spare_instruments);
        max_id.checked_add(spare).filter(|max| *max <= INSTRUMENTS_MAX).ok_or_else(|| {
            ConfigError::value(format!(
                "matching.spare_instruments: {max_id} instruments of the file and {spare} spare ones exceed \
                 {INSTRUMENTS_MAX}: configure fewer"
            ))
        })
    }
}

impl ExchangeConfig {
    /// Loads the file at `path` and the files that it names.
    ///
    /// # Errors
    /// [`ConfigError`] of one line that says what to change.
    pub fn load(path: &Path) -> Result<(ExchangeConfig, VenueSettings)> {
        let mut config: ExchangeConfig = FileKind::Venue.load(path)?;
        if let Some(admin) = &mut config.admin {
            admin.socket = beside(path, &admin.socket);
        }
        config.journal.folder = beside(path, &config.journal.folder);
        let passwords = config.order_entry.users.iter_mut().filter_map(|user| user.password.as_mut());
        passwords.for_each(|password| password.make_absolute(path));
        let instruments = Instruments::load(&beside(path, &config.instruments))?;
        let settings = config.settings(InstrumentTable::new(&instruments), Some(path))?;
        Ok((config, settings))
    }

    /// Checks the configuration and returns the settings. `file` is the configuration file, which others
    /// must not be able to read if it contains passwords.
    ///
    /// # Errors
    /// [`ConfigError::Value`], which says what to change.
    pub fn settings(&self, instruments: InstrumentTable, file: Option<&Path>) -> Result<VenueSettings> {
        let named = self.session.as_deref().map(checked_session).transpose()?;
        let session = named.map_or_else(|| checked_session(&new_session()), Ok)?;
        let users = self.order_entry.users(&instruments, file)?;
        let login = self.order_entry.logins.policy()?;
        let data = &self.market_data;
        multicast_group("market_data.line_a", data.line_a, "239.255.26.1:26401")?;
        multicast_group("market_data.line_b", data.line_b, "239.255.26.1:26401")?;
        if !(HEADER_LEN + 64..=65_507).contains(&data.packet_bytes) {
            bail!("market_data.packet_bytes must be 84 to 65507; 1400 passes any network");
        }
        self.check_bounds(users.len())?;
        if let Some(placement) = &self.placement {
            self.check_placement(placement)?;
        }
        let day = self.day.settings(&instruments)?;
        let mut journal = self.journal.settings(named.map(journal_session))?;
        if let Some(drop_copy) = &self.drop_copy {
            drop_copy.add_to(journal.as_mut(), &users)?;
        }
        self.check_deribit(&users, journal.as_ref())?;
        if let Some(journal) = journal.as_mut().filter(|_| self.deribit.is_some()) {
            // The Deribit front reads the log from the first command, so keep the whole log.
            journal.keep_snapshots = usize::MAX;
        }
        let limits = EngineLimits {
            max_instruments: self.matching.instruments_max(&instruments)?,
            max_open_orders: self.matching.max_open_orders,
            max_open_orders_per_session: self.matching.max_open_orders_per_user,
            // This maximum is fixed once the journal's session begins, so reserve capacity for more users.
            max_sessions: (users.len() as u16 + 1).next_multiple_of(SESSIONS_STEP),
            ..EngineLimits::default()
        };
        Ok(VenueSettings {
            session,
            instruments,
            order_entry: self.order_entry.address,
            max_connections: self.order_entry.max_connections,
            retained_responses: self.order_entry.retained_messages,
            users,
            login,
            pre_login: self.pre_login.limits()?,
            cancel_at_shutdown: self.order_entry.cancel_at_shutdown,
            line_a: data.line_a,
            line_b: data.line_b,
            interface: data.interface,
            retransmission: data.retransmission,
            packet_bytes: data.packet_bytes,
            segmented_sends: data.segmented_sends,
            has_line_b_agent: self.placement.as_ref().is_some_and(|placement| placement.names(LINE_B_ROLE)),
            heartbeat: data.heartbeat.0,
            retained_messages: data.retained_messages,
            market_recovery: data.recovery()?,
            day,
            limits,
            journal,
            prefault: self.prefault,
        })
    }

    /// Checks that the Deribit front has a user, and a journal from which to compute its account state.
    fn check_deribit(&self, users: &[UserSettings], journal: Option<&JournalSettings>) -> Result<()> {
        let user = users.iter().find(|user| user.ports.deribit);
        let problem = match (&self.deribit, user, journal) {
            (None, None, _) => return Ok(()),
            (None, Some(user), _) => {
                bail!("user '{}' has the port deribit: add [deribit], or name another port", user.name);
            }
            (Some(_), None, _) => {
                "no user has this port: add [[order_entry.user]] with ports = [\"deribit\"]"
            }
            (Some(_), Some(_), None) => "it reads the journal: choose another journal.policy than off",
            _ if !self.day.schedule.is_empty() => {
                "Deribit's instruments trade around the clock: take the schedule out of [day]"
            }
            _ => return Ok(()),
        };
        Err(ConfigError::value(format!("deribit: {problem}")))
    }

    /// Checks that the placement names every agent, and the agent of line B only if packets are not too long.
    fn check_placement(&self, placement: &Placement) -> Result<()> {
        if !placement.names(LINE_B_ROLE) {
            return placement.check(&ROLES);
        }
        if self.market_data.packet_bytes > DATAGRAM_LEN_MAX {
            bail!(
                "market_data.packet_bytes must be at most {DATAGRAM_LEN_MAX} if a thread runs the agent '{LINE_B_ROLE}'"
            );
        }
        placement.check(&[&ROLES[..], &[LINE_B_ROLE]].concat())
    }

    /// Checks the bounds on memory, because all memory is allocated at the start.
    fn check_bounds(&self, users: usize) -> Result<()> {
        let (entry, data, matching) = (&self.order_entry, &self.market_data, &self.matching);
        let retained_max = RETAINED_RESPONSES_MAX / users.max(1);
        let per_user = matching.max_open_orders_per_user;
        in_range("the number of users", users, 1..=USERS_MAX)?;
        in_range("order_entry.max_connections", entry.max_connections, 1..=CONNECTIONS_MAX)?;
        in_range("order_entry.retained_messages", entry.retained_messages, 1..=retained_max)?;
        in_range("market_data.retained_messages", data.retained_messages, 1..=RETAINED_MESSAGES_MAX)?;
        in_range("matching.max_open_orders", matching.max_open_orders, 1..=OPEN_ORDERS_MAX)?;
        in_range("matching.max_open_orders_per_user", per_user, 1..=OPEN_ORDERS_MAX)?;
        at_least("market_data.heartbeat", data.heartbeat, HEARTBEAT_MIN)
    }

    /// Returns the configuration with all defaults filled in, for a process that may run on `cores`.
    #[must_use]
    pub fn filled(&self, cores: &[usize]) -> ExchangeConfig {
        ExchangeConfig { placement: Some(self.placement(cores)), ..self.clone() }
    }

    /// Returns true if a separate agent sends line B, for a process that may run on `cores`.
    #[must_use]
    pub fn has_line_b_agent(&self, cores: &[usize]) -> bool {
        self.placement(cores).names(LINE_B_ROLE)
    }

    /// Returns the configured placement, or the default for a process that may run on `cores`.
    #[must_use]
    pub fn placement(&self, cores: &[usize]) -> Placement {
        let may_split_lines = self.market_data.packet_bytes <= DATAGRAM_LEN_MAX;
        self.placement.clone().unwrap_or_else(|| default_placement(cores, may_split_lines))
    }
}

/// The default placement: one thread on fewer than 4 cores, so that a trader has the others; two on 4 to 7; a
/// thread per agent on more, with an agent for line B if `may_split_lines`. All threads sleep while idle.
fn default_placement(cores: &[usize], may_split_lines: bool) -> Placement {
    let cycle = ["order-server", "matcher", "order-server", "publisher"];
    match cores.len() {
        0..4 => Placement::new(IdleStrategy::default(), cores, &[("venue", &cycle)]),
        4..8 => Placement::new(
            IdleStrategy::default(),
            cores,
            &[("venue", &["order-server", "matcher"]), ("publisher", &["publisher"])],
        ),
        _ => {
            let mut threads: Vec<(&str, &[&str])> = vec![
                ("order-server", &["order-server"]),
                ("matcher", &["matcher"]),
                ("publisher", &["publisher"]),
            ];
            if may_split_lines {
                threads.push((LINE_B_ROLE, &[LINE_B_ROLE]));
            }
            Placement::new(IdleStrategy::default(), cores, &threads)
        }
    }
}

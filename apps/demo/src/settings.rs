//! The settings of a demonstration.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tickpath_config::{
    ConfigError, FileKind, Fraction, IdleStrategy, InstrumentConfig, Instruments, Placement, Speed,
    TEST_PASSWORD, beside,
};
use tickpath_exchange::{AdminConfig, OrderEntryConfig, UserConfig, UserPorts, UserSettings};
use tickpath_feedhandler::LineReader;
use tickpath_flowgen::BackgroundFlowConfig;
use tickpath_monitor::Mode;
use tickpath_trader::LimitsTable;
use tickpath_trading::Limits;
use tickpath_types::{Instrument, InstrumentTable, Nanos};

/// Instrument file of a demonstration that configures no instruments.
const INSTRUMENTS: &str = include_str!("../../../configs/instruments.toml");

/// Default rate of the background flow's new orders per second.
const RATE_DEFAULT: u64 = 20_000;
/// Default trading time in seconds.
const SECONDS_DEFAULT: u64 = 20;
/// Maximum trading time in seconds: a year.
const SECONDS_MAX: u64 = 365 * 86_400;
/// Default share of packets deliberately lost on each line.
const LOSS_DEFAULT: Fraction = Fraction { ppm: 1_000 };

/// Roles of the venue's agents and of the feed handler.
const VENUE_ROLES: [&str; 4] = ["order-server", "matcher", "publisher", "feed-handler"];
/// Role of the gateway with the sessions of all traders.
pub(crate) const ORDER_GATEWAY: &str = "order-gateway";
/// Roles of the traders beside the background flow: the engines, then the gateway, so that every engine decides
/// on a packet before requests are written. The taker decides first, because its orders are most urgent.
pub(crate) const BACKGROUND_FLOW_TRADERS: [&str; 3] = ["taker", "maker", ORDER_GATEWAY];
/// Roles of the trader beside a recorded flow: its engine, then the gateway.
pub(crate) const FLOW_TRADERS: [&str; 2] = ["probe", ORDER_GATEWAY];
/// Users of the participants that the demonstration itself starts.
pub(crate) const OWN_USERS: [&str; 7] = ["MAKER", "TAKER", "CROWD1", "CROWD2", "PROBE", "FLOWM", "FLOWT"];
/// Role of the background flow's agent.
pub(crate) const BACKGROUND_FLOW: &str = "crowd";
/// Role of a recorded flow's agent.
pub(crate) const FLOW: &str = "flow";

/// The configuration file of a demonstration; flags override it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DemoConfig {
    /// New orders of the background flow per second.
    pub rate: Option<u64>,
    /// Seed of the background flow and of the packet losses.
    pub seed: Option<u64>,
    /// Trading time in seconds; without it a recorded flow is played to its end.
    pub seconds: Option<u64>,
    /// Share of packets deliberately lost on each line.
    pub loss: Option<Fraction>,
    /// The instruments; the built-in ones when empty.
    #[serde(rename = "instrument")]
    pub instruments: Vec<InstrumentConfig>,
    /// Limits of the maker; an absent one has the maker's default.
    pub maker: LimitsTable,
    /// Limits of the taker; an absent one has the taker's default.
    pub taker: LimitsTable,
    /// Method of reading market data: `auto`, `ring` or `sockets`.
    pub reader: LineReader,
    /// Users who may join, in addition to the market's own participants.
    pub order_entry: GuestsConfig,
    /// Admin socket for commands to the running venue; disabled when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin: Option<AdminConfig>,
    /// Assignment of agents to threads. One for crowd, maker and taker is adapted to a recorded flow.
    pub placement: Option<Placement>,
    /// Path of the configuration file, which may contain plain-text secrets.
    #[serde(skip)]
    file: Option<PathBuf>,
}

/// Users who may join a demonstration, and the order entry address of the venue.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuestsConfig {
    /// The venue's address for orders; a free port of the loopback interface when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddrV4>,
    /// Users with a public password.
    pub test_users: Vec<String>,
    /// Users with individual passwords, as in a venue's configuration.
    #[serde(rename = "user", skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<UserConfig>,
}

impl Default for GuestsConfig {
    fn default() -> Self {
        let test_users = ["TEST01", "TEST02"].map(str::to_owned).to_vec();
        GuestsConfig { address: None, test_users, users: Vec::new() }
    }
}

impl GuestsConfig {
    /// Returns the order entry address; without a configured one, a free port of the loopback interface.
    pub(crate) fn address(&self) -> SocketAddrV4 {
        self.address.unwrap_or(SocketAddrV4::new(DemoSettings::INTERFACE, 0))
    }

    /// Returns the validated settings of the users who may join.
    pub(crate) fn settings(
        &self,
        instruments: &InstrumentTable,
        file: Option<&Path>,
    ) -> Result<Vec<UserSettings>, ConfigError> {
        if self.test_users.is_empty() && self.users.is_empty() {
            return Ok(Vec::new());
        }
        let entry = OrderEntryConfig {
            address: self.address(),
            test_users: self.test_users.clone(),
            users: self.users.clone(),
            ..OrderEntryConfig::default()
        };
        let users = entry.users(instruments, file)?;
        let order_entry_alone = UserPorts::default();
        for user in &users {
            if OWN_USERS.iter().any(|own| own.eq_ignore_ascii_case(&user.name)) {
                return Err(ConfigError::value(format!(
                    "user '{}' is one of the market's own participants: choose another name",
                    user.name
                )));
            }
            if user.ports != order_entry_alone {
                return Err(ConfigError::value(format!(
                    "user '{}': a demo has no other port than order_entry",
                    user.name
                )));
            }
        }
        Ok(users)
    }

    /// Describes in one line the names and test password with which guests may log in.
    pub(crate) fn describe(&self) -> String {
        let test = match self.test_users.as_slice() {
            [] => String::new(),
            users => format!("{} with password '{TEST_PASSWORD}'", users.join(", ")),
        };
        let own: Vec<&str> = self.users.iter().map(|user| user.name.as_str()).collect();
        match (test.is_empty(), own.is_empty()) {
            (true, true) => "no user may join".to_owned(),
            (false, true) => test,
            (true, false) => own.join(", "),
            (false, false) => format!("{test}; {}", own.join(", ")),
        }
    }
}

/// The checked settings of a demonstration.
#[derive(Clone, Debug)]
pub struct DemoSettings {
    /// New orders of the background flow per second; cancels, reductions and replacements come in addition.
    pub rate: u64,
    /// Seed of the background flow and of the packet losses.
    pub seed: u64,
    /// Maximum trading time; when `None`, trading lasts until the run is stopped or a recorded flow ends.
    pub duration: Option<Nanos>,
    /// Share of packets lost on each line, in parts per million.
    pub loss_ppm: u32,
    /// Share of a line's losses, in parts per million, that also affect the other line.
    pub common_loss_ppm: u32,
    /// Path of a recorded order flow to play instead of the background flow; `None` for background flow.
    pub flow: Option<PathBuf>,
    /// Playback speed of the recorded flow.
    pub speed: Speed,
    /// The traded instruments; ignored with a recorded flow, which has its own.
    pub instruments: Vec<Instrument>,
    /// Risk limits of the maker in each instrument.
    pub maker: Limits,
    /// Risk limits of the taker in each instrument.
    pub taker: Limits,
    /// Assignment of agents to threads; when `None`, it depends on the number of cores.
    pub placement: Option<Placement>,
    /// Method of reading market data.
    pub reader: LineReader,
    /// Display of the running market.
    pub view: ViewMode,
    /// Users who may join.
    pub guests: GuestsConfig,
    /// The admin socket; disabled when `None`.
    pub admin: Option<AdminConfig>,
    /// Path of the configuration file, which may contain plain-text secrets.
    pub file: Option<PathBuf>,
    /// Folder of the venue's journal; when `None`, a temporary folder that is removed at the end.
    pub journal: Option<PathBuf>,
}

/// The display of the running market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewMode {
    /// No display.
    Silent,
    /// Display in this mode of `tickpath-monitor`.
    Monitor(Mode),
}

impl DemoConfig {
    /// Loads a configuration file, or returns the defaults without one.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be read.
    pub fn load(file: Option<&Path>) -> Result<DemoConfig, ConfigError> {
        let Some(path) = file else { return Ok(DemoConfig::default()) };
        let mut config: DemoConfig = FileKind::Demo.load(path)?;
        if let Some(admin) = &mut config.admin {
            admin.socket = beside(path, &admin.socket);
        }
        let passwords = config.order_entry.users.iter_mut().filter_map(|user| user.password.as_mut());
        passwords.for_each(|password| password.make_absolute(path));
        config.file = Some(path.to_owned());
        Ok(config)
    }

    /// Returns the validated settings of a market with background flow.
    ///
    /// # Errors
    /// [`ConfigError::Value`], which says what to change.
    pub fn settings(&self) -> Result<DemoSettings, ConfigError> {
        let rate =
            in_range("rate", self.rate.unwrap_or(RATE_DEFAULT), BackgroundFlowConfig::RATE_MAX.into())?;
        let seconds = in_range("seconds", self.seconds.unwrap_or(SECONDS_DEFAULT), SECONDS_MAX)?;
        if let Some(placement) = &self.placement {
            check_placement(placement)?;
        }
        let instruments = self.listed_instruments()?.definitions()?;
        let (maker, taker) = (self.maker.or(Limits::default()), self.taker.or(Limits::taker()));
        for (instrument, limits) in instruments.iter().flat_map(|it| [(it, maker), (it, taker)]) {
            limits.check_lots(instrument).map_err(|error| ConfigError::value(error.to_string()))?;
        }
        self.order_entry.settings(&InstrumentTable::new(&instruments), self.file.as_deref())?;
        Ok(DemoSettings {
            guests: self.order_entry.clone(),
            admin: self.admin.clone(),
            file: self.file.clone(),
            rate,
            seed: self.seed.unwrap_or(1),
            duration: Some(Nanos::from_secs(seconds)),
            loss_ppm: self.loss.unwrap_or(LOSS_DEFAULT).ppm,
            common_loss_ppm: 100_000,
            flow: None,
            speed: Speed::Max,
            instruments,
            maker,
            taker,
            placement: self.placement.clone(),
            journal: None,
            reader: self.reader,
            view: ViewMode::Monitor(Mode::Auto),
        })
    }

    /// Returns the configuration with all defaults filled in, for a process that may run on `cores`.
    ///
    /// # Errors
    /// As [`settings`](Self::settings).
    pub fn filled(&self, cores: &[usize]) -> Result<DemoConfig, ConfigError> {
        let settings = self.settings()?;
        let placement = self.placement.clone();
        Ok(DemoConfig {
            rate: Some(settings.rate),
            seed: Some(settings.seed),
            seconds: Some(self.seconds.unwrap_or(SECONDS_DEFAULT)),
            loss: Some(Fraction { ppm: settings.loss_ppm }),
            instruments: self.listed_instruments()?.instruments,
            maker: settings.maker.into(),
            taker: settings.taker.into(),
            reader: settings.reader,
            order_entry: self.order_entry.clone(),
            admin: self.admin.clone(),
            file: self.file.clone(),
            placement: Some(
                placement
                    .unwrap_or_else(|| default_placement(cores, BACKGROUND_FLOW, &BACKGROUND_FLOW_TRADERS)),
            ),
        })
    }

    fn listed_instruments(&self) -> Result<Instruments, ConfigError> {
        if self.instruments.is_empty() {
            return tickpath_config::parse("the built-in instruments", INSTRUMENTS);
        }
        Ok(Instruments { instruments: self.instruments.clone() })
    }
}

fn in_range(name: &str, value: u64, max: u64) -> Result<u64, ConfigError> {
    if (1..=max).contains(&value) {
        return Ok(value);
    }
    Err(ConfigError::value(format!("{name} must be at least 1 and at most {max}: {value} is not")))
}

/// Checks that a placement names exactly the agents of one of the markets: with background or recorded flow.
fn check_placement(placement: &Placement) -> Result<(), ConfigError> {
    if is_for_flow(placement) {
        Ok(())
    } else {
        placement.check(&roles(&BACKGROUND_FLOW_TRADERS, BACKGROUND_FLOW))
    }
}

fn is_for_flow(placement: &Placement) -> bool {
    placement.check(&roles(&FLOW_TRADERS, FLOW)).is_ok()
}

/// Returns the roles of all agents of a market with these traders and this source of orders.
fn roles(traders: &[&'static str], source: &'static str) -> Vec<&'static str> {
    [&VENUE_ROLES, traders, &[source]].concat()
}

/// Maps a role of a market with background flow to the role that replaces it in a market with a recorded
/// flow; `None` for the taker.
fn role_beside_flow(role: &str) -> Option<&str> {
    let [taker, maker, _] = BACKGROUND_FLOW_TRADERS;
    let [probe, _] = FLOW_TRADERS;
    match role {
        BACKGROUND_FLOW => Some(FLOW),
        role if role == maker => Some(probe),
        role => (role != taker).then_some(role),
    }
}

impl DemoSettings {
    /// Loads the settings of a configuration file, or returns the defaults without one.
    ///
    /// # Errors
    /// [`ConfigError`] when the file is invalid.
    pub fn load(file: Option<&Path>) -> Result<DemoSettings, ConfigError> {
        DemoConfig::load(file)?.settings()
    }

    /// The placement of the agents: as configured, or the default for a host with these `cores`.
    ///
    /// A placement for background flow also serves a recorded flow, which replaces the background flow. The
    /// probe then replaces the maker, and the taker is omitted.
    ///
    /// # Errors
    /// [`ConfigError::Value`] when the configured placement is for a recorded flow, but none is played.
    pub(crate) fn placement_on(&self, cores: &[usize]) -> Result<Placement, ConfigError> {
        match (&self.placement, self.flow.is_some()) {
            (None, true) => Ok(default_placement(cores, FLOW, &FLOW_TRADERS)),
            (None, false) => Ok(default_placement(cores, BACKGROUND_FLOW, &BACKGROUND_FLOW_TRADERS)),
            (Some(placement), is_flow) if is_flow == is_for_flow(placement) => Ok(placement.clone()),
            (Some(placement), true) => Ok(placement.with_roles(role_beside_flow)),
            (Some(_), false) => Err(ConfigError::value(format!(
                "the placement is for a recorded flow: name one with --flow, or place {} and {BACKGROUND_FLOW} in place of {} and \
                 {FLOW}",
                BACKGROUND_FLOW_TRADERS.join(", "),
                FLOW_TRADERS.join(", ")
            ))),
        }
    }

    /// Interface address of all endpoints; a demonstration's packets never leave the machine.
    pub(crate) const INTERFACE: Ipv4Addr = Ipv4Addr::LOCALHOST;
}

/// Returns the default placement on the `cores` that this process may use. `source` is the role of the
/// background or recorded flow; `traders` has the role of each engine, followed by that of the gateway.
pub(crate) fn default_placement(cores: &[usize], source: &str, traders: &[&str]) -> Placement {
    // On few cores, the source runs beside the venue: its TCP writes would evict the traders' cached code.
    let venue = ["order-server", "matcher", "order-server", "publisher", source];
    let trader: Vec<&str> = std::iter::once("feed-handler").chain(traders.iter().copied()).collect();
    match cores.len() {
        // Run the observer beside the venue: it evicts caches, which delays a trader more than the venue.
        0..4 => Placement::new(IdleStrategy::Yield, cores, &[("venue", &venue), ("trader", &trader)])
            .observed_beside("venue"),
        4..8 => Placement::new(
            IdleStrategy::Yield,
            cores,
            &[
                ("venue", &["order-server", "matcher"]),
                ("publisher", &["publisher"]),
                ("trader", &trader),
                ("source", &[source]),
            ],
        )
        .observed_beside("source"),
        _ => {
            let (gateways, engines): (Vec<&str>, Vec<&str>) =
                traders.iter().partition(|role| **role == ORDER_GATEWAY);
            Placement::new(
                IdleStrategy::Spin,
                cores,
                &[
                    ("order-server", &["order-server"]),
                    ("matcher", &["matcher"]),
                    ("publisher", &["publisher"]),
                    ("feed-handler", &["feed-handler"]),
                    ("engines", &engines),
                    ("order-gateway", &gateways),
                    ("source", &[source]),
                ],
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_instruments_trade() {
        let settings = DemoSettings::load(None).unwrap();
        assert_eq!(settings.instruments.len(), 8);
        assert_eq!((settings.rate, settings.loss_ppm), (20_000, 1_000));
    }

    fn settings_with_placement(threads: &[(&str, &[&str])], flow: Option<PathBuf>) -> DemoSettings {
        let placement = Placement::new(IdleStrategy::Yield, &[0, 1, 2], threads).observed_beside("source");
        DemoSettings { placement: Some(placement), flow, ..DemoSettings::load(None).unwrap() }
    }

    #[test]
    fn a_placement_for_background_flow_serves_a_recorded_flow() {
        let threads: [(&str, &[&str]); 3] = [
            ("trader", &["order-gateway", "feed-handler", "maker", "order-gateway"]),
            ("other", &["taker"]),
            ("source", &["order-server", "matcher", "order-server", "publisher", "crowd"]),
        ];
        let placement = settings_with_placement(&threads, Some(PathBuf::new())).placement_on(&[]).unwrap();
        placement.check(&roles(&FLOW_TRADERS, FLOW)).unwrap();
        let agents = |thread: usize| placement.threads[thread].agents.join(" ");
        assert_eq!(agents(0), "order-gateway feed-handler probe order-gateway");
        assert_eq!(agents(1), "order-server matcher order-server publisher flow");
        assert_eq!(
            (placement.threads.len(), placement.observer),
            (2, Some(2)),
            "no agent is left on a thread"
        );
        let own = settings_with_placement(&threads, None);
        assert_eq!(own.placement_on(&[]).unwrap(), own.placement.unwrap());
    }

    #[test]
    fn a_placement_for_a_recorded_flow_needs_one() {
        let threads: [(&str, &[&str]); 1] = [("source", &roles(&FLOW_TRADERS, FLOW))];
        let with = settings_with_placement(&threads, Some(PathBuf::new()));
        assert_eq!(with.placement_on(&[]).unwrap(), with.placement.unwrap());
        let error = settings_with_placement(&threads, None).placement_on(&[]).unwrap_err().to_string();
        assert!(error.contains("--flow") && error.contains("order-gateway and crowd"), "{error}");
    }

    #[test]
    fn every_agent_is_placed_on_any_host() {
        let traders = BACKGROUND_FLOW_TRADERS;
        for count in 1..=16 {
            let cores: Vec<usize> = (1..=count).collect();
            let placement = default_placement(&cores, "crowd", &traders);
            let placed: Vec<&String> = placement.threads.iter().flat_map(|thread| &thread.agents).collect();
            for role in
                traders.iter().chain(&["crowd", "order-server", "matcher", "publisher", "feed-handler"])
            {
                assert!(placed.iter().any(|placed| placed == role), "{role} on {count} cores");
            }
            let pinned: Vec<usize> = placement.threads.iter().filter_map(|thread| thread.core).collect();
            let expected = if count >= placement.threads.len() { placement.threads.len() } else { 0 };
            assert_eq!(pinned, cores[..expected], "the cores that are allowed, in turn");
        }
    }
}

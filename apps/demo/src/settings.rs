//! What a demonstration is told.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tickpath_config::{
    ConfigError, FileKind, Fraction, IdleStrategy, InstrumentConfig, Instruments, Placement, Speed,
    TEST_PASSWORD, beside,
};
use tickpath_exchange::{AdminConfig, OrderEntryConfig, UserConfig, UserPorts, UserSettings};
use tickpath_feedhandler::LineReader;
use tickpath_flowgen::CrowdConfig;
use tickpath_monitor::Mode;
use tickpath_trader::LimitsTable;
use tickpath_trading::Limits;
use tickpath_types::{Instrument, InstrumentTable, Nanos};

/// Instruments of a demonstration that names no others.
const INSTRUMENTS: &str = include_str!("../../../configs/instruments.toml");

/// New orders of the crowd a second, unless told otherwise.
const RATE_DEFAULT: u64 = 20_000;
/// How long the market trades, unless told otherwise.
const SECONDS_DEFAULT: u64 = 20;
/// Longest time that can be asked for: a year.
const SECONDS_MAX: u64 = 365 * 86_400;
/// Packets lost on each line, unless told otherwise.
const LOSS_DEFAULT: Fraction = Fraction { ppm: 1_000 };

/// The venue's agents, and whoever listens to it.
const VENUE_ROLES: [&str; 4] = ["order-server", "matcher", "publisher", "feed-handler"];
/// Traders in the crowd's market, engines and gateways in turn.
pub(crate) const CROWD_TRADERS: [&str; 4] = ["maker", "maker-gateway", "taker", "taker-gateway"];
/// Traders beside a recorded flow.
pub(crate) const FLOW_TRADERS: [&str; 2] = ["probe", "probe-gateway"];
/// Users of the market's own participants.
pub(crate) const OWN_USERS: [&str; 7] = ["MAKER", "TAKER", "CROWD1", "CROWD2", "PROBE", "FLOWM", "FLOWT"];
/// Agent of the crowd.
pub(crate) const CROWD: &str = "crowd";
/// Agent of a recorded flow.
pub(crate) const FLOW: &str = "flow";

/// The configuration file of a demonstration; flags override it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DemoConfig {
    /// New orders of the crowd a second.
    pub rate: Option<u64>,
    /// Seed of the crowd and of the losses.
    pub seed: Option<u64>,
    /// How long the market trades, in seconds; a recorded flow without it is played to its end.
    pub seconds: Option<u64>,
    /// Packets lost on each line.
    pub loss: Option<Fraction>,
    /// The instruments; those built in when there are none.
    #[serde(rename = "instrument")]
    pub instruments: Vec<InstrumentConfig>,
    /// Limits of the maker; what is not given suits it.
    pub maker: LimitsTable,
    /// Limits of the taker; what is not given suits it.
    pub taker: LimitsTable,
    /// How market data is read: `auto`, `ring` or `sockets`.
    pub reader: LineReader,
    /// Users who may join, beside the market's own participants.
    pub order_entry: GuestsConfig,
    /// Commands to the running venue; none are taken when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin: Option<AdminConfig>,
    /// Which agents run on which threads; one with the crowd, the maker and the taker serves a recorded flow too.
    pub placement: Option<Placement>,
    /// The file, in which secrets may be written out.
    #[serde(skip)]
    file: Option<PathBuf>,
}

/// Users who may join a demonstration, and the address.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuestsConfig {
    /// The venue's address for orders; on a free port of the loopback interface when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<SocketAddrV4>,
    /// Users whose password is public.
    pub test_users: Vec<String>,
    /// Users with a password of their own, as those of a venue's configuration.
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
    /// A free port, where the file names none.
    pub(crate) fn address(&self) -> SocketAddrV4 {
        self.address.unwrap_or(SocketAddrV4::new(DemoSettings::INTERFACE, 0))
    }

    /// The checked users.
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

    /// How guests log in, in a line.
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

/// A demonstration, ready to run.
#[derive(Clone, Debug)]
pub struct DemoSettings {
    /// New orders of the crowd a second; cancels, reductions and replacements come in addition.
    pub rate: u64,
    /// Seed of the crowd and of the losses.
    pub seed: u64,
    /// How long the market trades at most; until it is stopped, or a recorded flow ends, when `None`.
    pub duration: Option<Nanos>,
    /// Packets lost on each line, parts in a million.
    pub loss_ppm: u32,
    /// Share of these losses that strikes both lines, parts in a million.
    pub common_loss_ppm: u32,
    /// A recorded order flow that drives the venue in place of the crowd.
    pub flow: Option<PathBuf>,
    /// How fast it is played.
    pub speed: Speed,
    /// What is traded; a recorded flow brings its own.
    pub instruments: Vec<Instrument>,
    /// Limits of the maker in each instrument.
    pub maker: Limits,
    /// Limits of the taker in each instrument.
    pub taker: Limits,
    /// Which agents run on which threads; by the number of cores when `None`.
    pub placement: Option<Placement>,
    /// How market data is read.
    pub reader: LineReader,
    /// How the market is shown while it runs.
    pub view: ViewMode,
    /// Users who may join.
    pub guests: GuestsConfig,
    /// Commands to the running venue.
    pub admin: Option<AdminConfig>,
    /// The configuration file, where secrets may be written out.
    pub file: Option<PathBuf>,
    /// Where the venue's journal is kept; in a temporary folder, removed at the end, when `None`.
    pub journal: Option<PathBuf>,
}

/// How the market is shown while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewMode {
    /// Not at all.
    Silent,
    /// As the monitor does.
    Monitor(Mode),
}

impl DemoConfig {
    /// What a configuration file says, or nothing.
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
        passwords.for_each(|password| password.place(path));
        config.file = Some(path.to_owned());
        Ok(config)
    }

    /// The checked settings, of a market with a crowd.
    ///
    /// # Errors
    /// [`ConfigError::Value`] naming what to change.
    pub fn settings(&self) -> Result<DemoSettings, ConfigError> {
        let rate = in_range("rate", self.rate.unwrap_or(RATE_DEFAULT), CrowdConfig::RATE_MAX.into())?;
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

    /// The same with every default filled in, as for a host with these `cores`.
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
            placement: Some(placement.unwrap_or_else(|| default_placement(cores, CROWD, &CROWD_TRADERS))),
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

/// A placement is for a crowd or for a recorded flow.
fn check_placement(placement: &Placement) -> Result<(), ConfigError> {
    if is_for_flow(placement) { Ok(()) } else { placement.check(&roles(&CROWD_TRADERS, CROWD)) }
}

fn is_for_flow(placement: &Placement) -> bool {
    placement.check(&roles(&FLOW_TRADERS, FLOW)).is_ok()
}

/// Every agent of a market with these traders and this source of orders.
fn roles(traders: &[&'static str], source: &'static str) -> Vec<&'static str> {
    [&VENUE_ROLES, traders, &[source]].concat()
}

/// Who takes the place of an agent of the crowd's market beside a recorded flow; nobody takes the taker's.
fn role_beside_flow(role: &str) -> Option<&str> {
    let [maker, maker_gateway, ..] = CROWD_TRADERS;
    let [probe, probe_gateway] = FLOW_TRADERS;
    match role {
        CROWD => Some(FLOW),
        role if role == maker => Some(probe),
        role if role == maker_gateway => Some(probe_gateway),
        role => (!CROWD_TRADERS.contains(&role)).then_some(role),
    }
}

impl DemoSettings {
    /// The settings of a configuration file, or the default ones.
    ///
    /// # Errors
    /// [`ConfigError`] when the file is wrong.
    pub fn load(file: Option<&Path>) -> Result<DemoSettings, ConfigError> {
        DemoConfig::load(file)?.settings()
    }

    /// Where the agents run: as the configuration says, or as suits a host on whose `cores` this process may run.
    ///
    /// One placement serves both kinds of market: beside a recorded flow, the flow stands where it has the crowd, and
    /// the probe where it has the maker.
    ///
    /// # Errors
    /// [`ConfigError::Value`] when it is for a recorded flow and there is none.
    pub(crate) fn placement_on(&self, cores: &[usize]) -> Result<Placement, ConfigError> {
        match (&self.placement, self.flow.is_some()) {
            (None, true) => Ok(default_placement(cores, FLOW, &FLOW_TRADERS)),
            (None, false) => Ok(default_placement(cores, CROWD, &CROWD_TRADERS)),
            (Some(placement), is_flow) if is_flow == is_for_flow(placement) => Ok(placement.clone()),
            (Some(placement), true) => Ok(placement.with_roles(role_beside_flow)),
            (Some(_), false) => Err(ConfigError::value(format!(
                "the placement is for a recorded flow: name one with --flow, or place {} and {CROWD} in place of {} and \
                 {FLOW}",
                CROWD_TRADERS.join(", "),
                FLOW_TRADERS.join(", ")
            ))),
        }
    }

    /// Address of everything: nothing of a demonstration leaves the machine.
    pub(crate) const INTERFACE: Ipv4Addr = Ipv4Addr::LOCALHOST;
}

/// Threads that suit a host on whose `cores` this process may run; `source` is the crowd's or the flow's agent,
/// `traders` the engines and gateways in turn.
pub(crate) fn default_placement(cores: &[usize], source: &str, traders: &[&str]) -> Placement {
    // The source writes to TCP most of all: on the traders' core its writes would drive their code out of the caches.
    let venue = ["order-server", "matcher", "order-server", "publisher", source];
    let trader: Vec<&str> = std::iter::once("feed-handler").chain(traders.iter().copied()).collect();
    match cores.len() {
        // The observer turns over whatever cache it runs beside, which costs an order more than an answer.
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
            let (engines, gateways): (Vec<&str>, Vec<&str>) =
                traders.iter().partition(|role| !role.ends_with("-gateway"));
            Placement::new(
                IdleStrategy::Spin,
                cores,
                &[
                    ("order-server", &["order-server"]),
                    ("matcher", &["matcher"]),
                    ("publisher", &["publisher"]),
                    ("feed-handler", &["feed-handler"]),
                    ("engines", &engines),
                    ("gateways", &gateways),
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

    fn placed_so(threads: &[(&str, &[&str])], flow: Option<PathBuf>) -> DemoSettings {
        let placement = Placement::new(IdleStrategy::Yield, &[0, 1, 2], threads).observed_beside("source");
        DemoSettings { placement: Some(placement), flow, ..DemoSettings::load(None).unwrap() }
    }

    #[test]
    fn a_placement_for_the_crowd_serves_a_recorded_flow() {
        let threads: [(&str, &[&str]); 3] = [
            ("trader", &["taker", "maker-gateway", "feed-handler", "maker", "maker-gateway"]),
            ("other", &["taker-gateway"]),
            ("source", &["order-server", "matcher", "order-server", "publisher", "crowd"]),
        ];
        let placement = placed_so(&threads, Some(PathBuf::new())).placement_on(&[]).unwrap();
        placement.check(&roles(&FLOW_TRADERS, FLOW)).unwrap();
        let agents = |thread: usize| placement.threads[thread].agents.join(" ");
        assert_eq!(agents(0), "probe-gateway feed-handler probe probe-gateway");
        assert_eq!(agents(1), "order-server matcher order-server publisher flow");
        assert_eq!((placement.threads.len(), placement.observer), (2, Some(2)), "nobody is left on a thread");
        let own = placed_so(&threads, None);
        assert_eq!(own.placement_on(&[]).unwrap(), own.placement.unwrap());
    }

    #[test]
    fn a_placement_for_a_recorded_flow_needs_one() {
        let threads: [(&str, &[&str]); 1] = [("source", &roles(&FLOW_TRADERS, FLOW))];
        let with = placed_so(&threads, Some(PathBuf::new()));
        assert_eq!(with.placement_on(&[]).unwrap(), with.placement.unwrap());
        let error = placed_so(&threads, None).placement_on(&[]).unwrap_err().to_string();
        assert!(error.contains("--flow") && error.contains("taker-gateway and crowd"), "{error}");
    }

    #[test]
    fn every_agent_is_placed_on_any_host() {
        let traders = ["maker", "maker-gateway", "taker", "taker-gateway"];
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

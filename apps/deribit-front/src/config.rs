//! The table `[deribit]` of a venue's configuration.

mod faults;
mod per_address;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tickpath_admission::PreLoginLimits;
use tickpath_config::{ConfigError, Secret, TEST_PASSWORD, absolute, beside};
use tickpath_deribit::codes::{Kind, OptionType};
use tickpath_deribit::number::Decimal;
use tickpath_derivatives::{Contract, Money, Style};
use tickpath_exchange::VenueSettings;
use tickpath_types::{Price, SessionId, Symbol};

pub use self::faults::FaultsConfig;
pub use self::per_address::ConnectionsPerAddress;
use crate::faults::FaultPlan;
use crate::labels::LABELS_MAX;
use crate::listing::Listing;
use crate::scope::Scope;

/// Connections at a time at most.
const CONNECTIONS_MAX: usize = 4_096;
/// Digits after the decimal point of rates: they are kept in millionths.
const RATE_DECIMALS: u8 = 6;
/// Greatest volatility of an option, in hundredths of a percent.
const VOLATILITY_MAX: i64 = 100_000;
/// Greatest movement of an index in a second, in millionths.
const STEP_PPM_MAX: u32 = 10_000;

/// The front as the venue's file describes it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeribitConfig {
    /// Where clients connect, WebSocket and HTTP alike.
    #[serde(default = "default_address")]
    pub address: SocketAddrV4,
    /// Where clients connect that speak FIX 4.4; nobody does when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix_address: Option<SocketAddrV4>,
    /// What the front shows to clients, who then must speak TLS; they speak TCP alone when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// Connections at a time, and as many by FIX; further ones are closed at once.
    #[serde(default = "default_connections")]
    pub max_connections: usize,
    /// Connections of one address at a time; a further one is answered with status 429 and closed. 32 when absent, and
    /// then of other machines alone: what runs on the venue's own has no bound but `max_connections`. As many by FIX,
    /// where further ones are closed at once.
    pub max_connections_per_address: Option<usize>,
    /// What the replies say of the venue.
    #[serde(default = "yes")]
    pub testnet: bool,
    /// Of the simulated indices.
    #[serde(default)]
    pub seed: u64,
    /// How far from the mark price an order may be, as a part of it.
    #[serde(default = "default_band")]
    pub band: String,
    /// What becomes of an order beyond that: `reject`, or `clamp` to the end of the band.
    #[serde(default)]
    pub beyond_band: BeyondBand,
    /// Requests to the matching engine a second, for each account.
    #[serde(default = "default_rate")]
    pub matching_rate: u64,
    /// The same at once after a pause.
    #[serde(default = "default_burst")]
    pub matching_burst: u64,
    /// Different labels, and ClOrdIDs by FIX, of one account; an order with a further one is refused.
    #[serde(default = "default_labels")]
    pub max_labels: usize,
    /// How long an access token is good, in seconds.
    #[serde(default = "default_expiry")]
    pub token_expires_s: u64,
    /// The underlyings.
    pub index: Vec<IndexConfig>,
    /// What is traded.
    pub instrument: Vec<ListingConfig>,
    /// Who may authenticate.
    pub key: Vec<KeyConfig>,
    /// What accounts begin with.
    #[serde(default)]
    pub account: Vec<AccountConfig>,
    /// What is to go wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsConfig>,
}

/// What becomes of an order whose price is beyond the band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BeyondBand {
    /// It is refused with 10005 or 10007.
    #[default]
    Reject,
    /// Its price is that of the end of the band.
    Clamp,
}

/// `[deribit.tls]`: files relative to the venue's.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate and those that lead to its root, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub private_key: PathBuf,
}

/// One `[[deribit.index]]`: a simulated price.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct IndexConfig {
    /// As `btc_usd`.
    pub name: String,
    /// Where it begins.
    pub price: String,
    /// How far it moves in a second at most, in millionths.
    #[serde(default)]
    pub step_ppm: u32,
}

/// One `[[deribit.instrument]]`: what an instrument of the venue is to Deribit's clients.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListingConfig {
    /// As clients name it.
    pub name: String,
    /// Its symbol in the venue's instrument file.
    pub symbol: String,
    /// `future`, `option` or `spot`.
    pub kind: KindConfig,
    /// The underlying currency.
    pub base: String,
    /// The currency of its price.
    pub quote: String,
    /// The currency that profit is paid in: the base's makes it an inverse contract. The quote's when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settlement: Option<String>,
    /// `perpetual`, `month`, `week` or `day`; of futures and options.
    #[serde(default)]
    pub period: String,
    /// Name of its index.
    pub index: String,
    /// Of one contract; the least amount when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_size: Option<String>,
    /// Least amount, and the step of amounts.
    pub min_trade_amount: String,
    /// Digits after the decimal point that one unit of the venue's price is the last of.
    #[serde(default = "four")]
    pub price_decimals: u8,
    /// Other steps at higher prices than the venue's tick, lowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tick_size_steps: Vec<TickStepConfig>,
    /// Part of the value that the resting side pays.
    #[serde(default = "zero")]
    pub maker_commission: String,
    /// Part of the value that the incoming side pays.
    #[serde(default = "zero")]
    pub taker_commission: String,
    /// Part of the value that delivery costs: of futures, and of options likewise as a trade.
    #[serde(default = "zero")]
    pub delivery_commission: String,
    /// Part of the value that a forced execution costs, which the insurance fund gets.
    #[serde(default = "default_liquidation")]
    pub liquidation_commission: String,
    /// Part of the value that opening takes.
    #[serde(default = "default_initial")]
    pub initial_margin: String,
    /// Part of the value that keeping takes.
    #[serde(default = "default_maintenance")]
    pub maintenance_margin: String,
    /// When it expires, in milliseconds since 1970; of futures that are no perpetuals, and of options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_timestamp: Option<u64>,
    /// When it was listed, in milliseconds since 1970; September 2020 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<u64>,
    /// Of options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strike: Option<String>,
    /// Of options: the volatility that the simulated market prices it by until it is traded, in percent.
    #[serde(default = "default_volatility")]
    pub volatility: String,
    /// Of options: `call` or `put`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option_type: Option<String>,
}

/// One of `tick_size_steps`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TickStepConfig {
    /// Prices above this one ...
    pub above_price: String,
    /// ... are multiples of this one.
    pub tick_size: String,
}

/// What an instrument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KindConfig {
    /// A future or a perpetual.
    Future,
    /// An option.
    Option,
    /// A pair of currencies.
    Spot,
}

/// One `[[deribit.key]]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KeyConfig {
    /// Its id, which is public.
    pub client_id: String,
    /// Its secret.
    pub client_secret: Secret,
    /// The venue's user that it acts for, who has the port `deribit`.
    pub user: String,
    /// What it may do; everything when absent.
    #[serde(default = "default_scope")]
    pub scope: String,
}

/// One `[[deribit.account]]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AccountConfig {
    /// The venue's user.
    pub user: String,
    /// What it has of each currency at first.
    #[serde(default)]
    pub balances: BTreeMap<String, String>,
}

fn default_address() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, 26_420)
}

fn default_connections() -> usize {
    64
}

fn yes() -> bool {
    true
}

fn default_band() -> String {
    "0.05".to_owned()
}

fn default_rate() -> u64 {
    5
}

fn default_burst() -> u64 {
    20
}

fn default_labels() -> usize {
    1_000_000
}

fn default_expiry() -> u64 {
    900
}

fn four() -> u8 {
    4
}

fn zero() -> String {
    "0".to_owned()
}

fn default_liquidation() -> String {
    "0.0075".to_owned()
}

fn default_volatility() -> String {
    "60".to_owned()
}

fn default_initial() -> String {
    "0.02".to_owned()
}

fn default_maintenance() -> String {
    "0.01".to_owned()
}

fn default_scope() -> String {
    "account:read_write trade:read_write wallet:read_write".to_owned()
}

/// The front as it is set up, checked.
#[derive(Clone, Debug)]
pub struct FrontSettings {
    /// Where clients connect; port 0 takes a free one.
    pub address: SocketAddrV4,
    /// Where clients by FIX connect, if any may.
    pub fix_address: Option<SocketAddrV4>,
    /// Certificate and private key, where clients must speak TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Connections at a time, and as many by FIX.
    pub max_connections: usize,
    /// Connections of one address at a time.
    pub per_address: ConnectionsPerAddress,
    /// Connections that have made no request, and by FIX those that have not logged on: as the venue's.
    pub pre_login: PreLoginLimits,
    /// What the replies say of the venue.
    pub testnet: bool,
    /// Of the simulated indices.
    pub seed: u64,
    /// How far from the mark price an order may be, in millionths of it.
    pub band_ppm: u32,
    /// What becomes of orders beyond that.
    pub beyond_band: BeyondBand,
    /// Requests to the matching engine a second, and at once, for each account.
    pub matching: (u64, u64),
    /// Different labels of one account.
    pub max_labels: usize,
    /// How long an access token is good, in seconds.
    pub token_expires_s: u64,
    /// Name, first price in 10^-4, and greatest movement in a second in millionths.
    pub indices: Vec<(String, i64, u32)>,
    /// What is traded.
    pub listings: Vec<Listing>,
    /// Who may authenticate.
    pub keys: Vec<KeySettings>,
    /// Who trades.
    pub accounts: Vec<AccountSettings>,
    /// What is to go wrong.
    pub faults: FaultPlan,
}

/// A key, checked.
#[derive(Clone)]
pub struct KeySettings {
    /// Its id.
    pub client_id: String,
    /// Its secret.
    pub secret: String,
    /// Place of its account.
    pub account: usize,
    /// What it may do at most.
    pub scope: Scope,
}

impl std::fmt::Debug for KeySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeySettings").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// An account, checked.
#[derive(Clone, Debug)]
pub struct AccountSettings {
    /// The venue's user.
    pub user: String,
    /// Its session in the log.
    pub session: SessionId,
    /// What it has at first.
    pub balances: BTreeMap<String, Money>,
}

impl DeribitConfig {
    /// Reads the table.
    ///
    /// # Errors
    /// [`ConfigError`] naming what is wrong.
    pub fn from_table(table: &toml::Table) -> Result<DeribitConfig, ConfigError> {
        let config: Result<DeribitConfig, toml::de::Error> = table.clone().try_into();
        config.map_err(|error| ConfigError::value(format!("deribit: {}", error.message())))
    }

    /// The table of a venue's file, where it has one. Relative paths and places of secrets begin at that file's folder.
    ///
    /// # Errors
    /// [`ConfigError`] with the line that is wrong.
    pub fn load(file: &Path) -> Result<Option<DeribitConfig>, ConfigError> {
        /// The venue reads what is beside it.
        #[derive(Deserialize)]
        struct VenueFile {
            deribit: Option<DeribitConfig>,
        }
        let mut config = tickpath_config::load::<VenueFile>(file)?.deribit;
        if let Some(config) = &mut config {
            config.place(file);
        }
        Ok(config)
    }

    fn place(&mut self, file: &Path) {
        if let Some(tls) = &mut self.tls {
            for path in [&mut tls.certificate, &mut tls.private_key] {
                *path = absolute(&beside(file, path));
            }
        }
        self.key.iter_mut().for_each(|key| key.client_secret.place(file));
    }

    /// The checked settings for a venue; `file` is where secrets may be written out.
    ///
    /// # Errors
    /// [`ConfigError::Value`] naming what to change.
    pub fn settings(&self, venue: &VenueSettings, file: Option<&Path>) -> Result<FrontSettings, ConfigError> {
        if !(1..=CONNECTIONS_MAX).contains(&self.max_connections) {
            return Err(value(format!("max_connections must be 1 to {CONNECTIONS_MAX}")));
        }
        if self.max_connections_per_address == Some(0) {
            return Err(value("max_connections_per_address must be above 0".to_owned()));
        }
        if self.matching_rate == 0 || self.matching_burst == 0 || self.token_expires_s == 0 {
            return Err(value(
                "matching_rate, matching_burst and token_expires_s must be above 0".to_owned(),
            ));
        }
        if !(1..=LABELS_MAX).contains(&self.max_labels) {
            return Err(value(format!("max_labels must be 1 to {LABELS_MAX}")));
        }
        let band_ppm = ppm("band", &self.band)?;
        if !(1..1_000_000).contains(&band_ppm) {
            return Err(value("band must be above 0 and below 1".to_owned()));
        }
        let indices = self.index.iter().map(IndexConfig::settings).collect::<Result<Vec<_>, _>>()?;
        let listings: Vec<Listing> = self
            .instrument
            .iter()
            .map(|listing| listing.settings(venue, &indices))
            .collect::<Result<_, _>>()?;
        for (place, listing) in listings.iter().enumerate() {
            if listings[..place].iter().any(|other| other.name == listing.name || other.id == listing.id) {
                return Err(value(format!("instrument {} is there twice", listing.name)));
            }
        }
        let accounts = self.accounts(venue)?;
        let keys = self.keys(&accounts, file)?;
        Ok(FrontSettings {
            address: self.address,
            fix_address: self.fix_address,
            tls: self.tls.as_ref().map(|tls| {
                let beside = |path| file.map_or_else(|| PathBuf::clone(path), |file| beside(file, path));
                (beside(&tls.certificate), beside(&tls.private_key))
            }),
            max_connections: self.max_connections,
            per_address: ConnectionsPerAddress::of(self.max_connections_per_address),
            pre_login: venue.pre_login,
            testnet: self.testnet,
            seed: self.seed,
            band_ppm: band_ppm as u32,
            beyond_band: self.beyond_band,
            matching: (self.matching_rate, self.matching_burst),
            max_labels: self.max_labels,
            token_expires_s: self.token_expires_s,
            indices,
            listings,
            keys,
            accounts,
            faults: self
                .faults
                .clone()
                .unwrap_or_default()
                .plan([self.address].into_iter().chain(self.fix_address))?,
        })
    }

    /// Every user of the venue who has this door.
    fn accounts(&self, venue: &VenueSettings) -> Result<Vec<AccountSettings>, ConfigError> {
        let users = venue.users.iter().zip((1..).map(SessionId)).filter(|(user, _)| user.ports.deribit);
        let mut accounts: Vec<AccountSettings> = users
            .map(|(user, session)| AccountSettings {
                user: user.name.clone(),
                session,
                balances: BTreeMap::new(),
            })
            .collect();
        for config in &self.account {
            let account = &mut accounts[find_user(&config.user, &venue_names(venue))?];
            for (currency, amount) in &config.balances {
                let amount = Money::parse(amount).ok_or_else(|| {
                    value(format!("account {}: '{amount}' {currency} is no amount", config.user))
                })?;
                account.balances.insert(currency.to_uppercase(), amount);
            }
        }
        Ok(accounts)
    }

    fn keys(
        &self,
        accounts: &[AccountSettings],
        file: Option<&Path>,
    ) -> Result<Vec<KeySettings>, ConfigError> {
        let names: Vec<&str> = accounts.iter().map(|account| account.user.as_str()).collect();
        let mut keys: Vec<KeySettings> = Vec::new();
        for key in &self.key {
            if key.client_id.is_empty() || keys.iter().any(|other| other.client_id == key.client_id) {
                return Err(value(format!("key '{}' must have an id of its own", key.client_id)));
            }
            let secret = key.client_secret.resolve(file)?;
            if secret.is_empty() {
                return Err(value(format!("key '{}' has no secret", key.client_id)));
            }
            let doors = [Some(self.address), self.fix_address];
            let open = doors.into_iter().flatten().find(|address| !address.ip().is_loopback());
            if let Some(address) = open.filter(|_| secret == TEST_PASSWORD) {
                return Err(value(format!(
                    "key '{}' has a public secret and {address} is not the loopback interface: give it another",
                    key.client_id
                )));
            }
            keys.push(KeySettings {
                client_id: key.client_id.clone(),
                secret,
                account: find_user(&key.user, &names)?,
                scope: Scope::parse(&key.scope),
            });
        }
        Ok(keys)
    }
}

fn venue_names(venue: &VenueSettings) -> Vec<&str> {
    venue.users.iter().filter(|user| user.ports.deribit).map(|user| user.name.as_str()).collect()
}

fn find_user(name: &str, names: &[&str]) -> Result<usize, ConfigError> {
    names.iter().position(|known| known.eq_ignore_ascii_case(name)).ok_or_else(|| {
        value(format!("no user '{name}' has the port: add [[order_entry.user]] with ports = [\"deribit\"]"))
    })
}

fn value(problem: String) -> ConfigError {
    ConfigError::value(format!("deribit: {problem}"))
}

fn decimal(name: &str, text: &str) -> Result<Decimal, ConfigError> {
    text.parse().map_err(|_| value(format!("{name}: '{text}' is no number")))
}

/// A part, in millionths.
fn ppm(name: &str, text: &str) -> Result<i32, ConfigError> {
    let units = decimal(name, text)?.units(RATE_DECIMALS).ok();
    let part = units.and_then(|units| i32::try_from(units).ok()).filter(|ppm| ppm.abs() <= 1_000_000);
    part.ok_or_else(|| {
        value(format!("{name}: '{text}' must be -1 to 1, with at most {RATE_DECIMALS} decimals"))
    })
}

impl IndexConfig {
    fn settings(&self) -> Result<(String, i64, u32), ConfigError> {
        let price = decimal(&self.name, &self.price)?.units(4).ok().filter(|price| *price > 0);
        let Some(price) = price else {
            return Err(value(format!(
                "index {}: the price must be above 0, with at most 4 decimals",
                self.name
            )));
        };
        if self.step_ppm > STEP_PPM_MAX {
            return Err(value(format!("index {}: step_ppm must be at most {STEP_PPM_MAX}", self.name)));
        }
        Ok((self.name.clone(), price, self.step_ppm))
    }
}

impl ListingConfig {
    fn settings(
        &self,
        venue: &VenueSettings,
        indices: &[(String, i64, u32)],
    ) -> Result<Listing, ConfigError> {
        let name = &self.name;
        let problem = |what: &str| value(format!("instrument {name}: {what}"));
        let id = Symbol::new(&self.symbol).ok().and_then(|symbol| venue.instruments.find(symbol));
        let instrument = id.and_then(|id| venue.instruments.get(id));
        let Some(instrument) = instrument else {
            return Err(problem(&format!("the venue has no instrument '{}'", self.symbol)));
        };
        let Some(index) = indices.iter().position(|(index, ..)| *index == self.index) else {
            return Err(problem(&format!("there is no [[deribit.index]] '{}'", self.index)));
        };
        let settlement = self.settlement.as_ref().unwrap_or(&self.quote);
        let is_inverse = *settlement == self.base && self.base != self.quote;
        let style = match self.kind {
            KindConfig::Spot => Style::Spot,
            KindConfig::Future if is_inverse => Style::Inverse,
            KindConfig::Future => Style::Linear,
            KindConfig::Option if *settlement == self.base => Style::InverseOption,
            KindConfig::Option => Style::LinearOption,
        };
        let min_trade_amount = decimal(name, &self.min_trade_amount)?;
        let contract_size = decimal(name, self.contract_size.as_ref().unwrap_or(&self.min_trade_amount))?;
        if min_trade_amount.mantissa() <= 0 || contract_size.mantissa() <= 0 || instrument.lot_size.0 != 1 {
            return Err(problem(
                "min_trade_amount and contract_size must be above 0, and the venue's lot_size 1",
            ));
        }
        if self.price_decimals > 12 || min_trade_amount.scale() > 12 {
            return Err(problem("12 digits after a decimal point at most"));
        }
        let option_type = match self.option_type.as_deref() {
            Some("call") => Some(OptionType::Call),
            Some("put") => Some(OptionType::Put),
            None => None,
            Some(_) => return Err(problem("option_type must be call or put")),
        };
        let is_option = self.kind == KindConfig::Option;
        let strike = self.strike.as_deref().map(|strike| decimal(name, strike)).transpose()?;
        if is_option != (option_type.is_some() && strike.is_some()) {
            return Err(problem("an option needs option_type and strike, and nothing else has them"));
        }
        if self.expiration_timestamp.is_none()
            && (is_option || self.kind == KindConfig::Future)
            && self.period != "perpetual"
        {
            return Err(problem("name an expiration_timestamp, or period = \"perpetual\""));
        }
        let margin = |what, text: &str| Ok(ppm(what, text)?.unsigned_abs());
        Ok(Listing {
            name: name.clone(),
            id: instrument.id,
            contract: Contract {
                style,
                price_decimals: self.price_decimals,
                amount_step: min_trade_amount.mantissa().unsigned_abs(),
                amount_decimals: min_trade_amount.scale(),
                initial_margin_ppm: margin("initial_margin", &self.initial_margin)?,
                maintenance_margin_ppm: margin("maintenance_margin", &self.maintenance_margin)?,
                maker_fee_ppm: ppm("maker_commission", &self.maker_commission)?,
                taker_fee_ppm: ppm("taker_commission", &self.taker_commission)?,
            },
            kind: match self.kind {
                KindConfig::Future => Kind::Future,
                KindConfig::Option => Kind::Option,
                KindConfig::Spot => Kind::Spot,
            },
            base: self.base.clone(),
            quote: if style == Style::InverseOption { self.base.clone() } else { self.quote.clone() },
            settlement: settlement.clone(),
            period: self.period.clone(),
            index,
            max_qty: instrument.max_qty,
            contract_size,
            min_trade_amount,
            tick: instrument.tick_size,
            tick_steps: self.tick_steps(instrument.tick_size)?,
            collar: (instrument.collar_low, instrument.collar_high),
            creation_ms: self.creation_timestamp.unwrap_or(Listing::CREATION_MS),
            expiration_ms: self.expiration_timestamp,
            strike,
            option_type,
            volatility: self.volatility()?,
            maker: decimal(name, &self.maker_commission)?,
            taker: decimal(name, &self.taker_commission)?,
            delivery_fee_ppm: ppm("delivery_commission", &self.delivery_commission)?,
            liquidation: decimal(name, &self.liquidation_commission)?,
            liquidation_fee_ppm: ppm("liquidation_commission", &self.liquidation_commission)?,
        })
    }

    fn volatility(&self) -> Result<f64, ConfigError> {
        let percent = decimal(&self.name, &self.volatility)?
            .units(2)
            .ok()
            .filter(|hundredths| (1..=VOLATILITY_MAX).contains(hundredths));
        let percent = percent.ok_or_else(|| {
            value(format!(
                "instrument {}: volatility must be 0.01 to 1000 percent, with at most 2 decimals",
                self.name
            ))
        })?;
        Ok(percent as f64 / 10_000.0)
    }

    /// The steps above the first tick. Each begins at a multiple of its own tick, which is one of the tick below it: a price
    /// that is rounded stays on its side of it.
    fn tick_steps(&self, first: Price) -> Result<Vec<(Price, Price)>, ConfigError> {
        let name = &self.name;
        let units = |text: &str| {
            let units = decimal(name, text)?.units(self.price_decimals).ok().filter(|units| *units > 0);
            units.ok_or_else(|| {
                value(format!("instrument {name}: tick_size_steps: '{text}' must be above 0 and in the venue's units of price"))
            })
        };
        let mut steps: Vec<(Price, Price)> = Vec::new();
        for step in &self.tick_size_steps {
            let (above, tick) = (units(&step.above_price)?, units(&step.tick_size)?);
            let (after, below) = steps.last().map_or((0, first.0), |(above, tick)| (above.0, tick.0));
            if above <= after || above % tick != 0 || tick <= below || tick % below != 0 {
                return Err(value(format!(
                    "instrument {name}: tick_size_steps: above_price must rise and be a multiple of its tick_size, and each \
                     tick_size a multiple of the one below it"
                )));
            }
            steps.push((Price(above), Price(tick)));
        }
        Ok(steps)
    }
}

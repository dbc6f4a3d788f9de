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

/// Maximum number of simultaneous connections.
const CONNECTIONS_MAX: usize = 4_096;
/// Number of decimals of rates, which are stored in millionths.
const RATE_DECIMALS: u8 = 6;
/// Maximum volatility of an option, in hundredths of a percent.
const VOLATILITY_MAX: i64 = 100_000;
/// Maximum movement of an index per second, in millionths.
const STEP_PPM_MAX: u32 = 10_000;

/// The front's configuration, as written in the venue's file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeribitConfig {
    /// Address of the WebSocket and HTTP port.
    #[serde(default = "default_address")]
    pub address: SocketAddrV4,
    /// Address of the FIX 4.4 port; FIX is disabled when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix_address: Option<SocketAddrV4>,
    /// Certificate and key of the front. Clients must use TLS when present, and plain TCP when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// Maximum number of connections, counted separately for FIX; further ones are closed at once.
    #[serde(default = "default_connections")]
    pub max_connections: usize,
    /// Maximum number of simultaneous connections of one address; a further one gets status 429 and is
    /// closed. Default: 32 for other machines; clients on the venue's machine are bounded only by
    /// `max_connections`. FIX connections are counted separately, and further ones are closed at once.
    pub max_connections_per_address: Option<usize>,
    /// Value of `testnet` in the replies.
    #[serde(default = "yes")]
    pub testnet: bool,
    /// Seed of the simulated indices.
    #[serde(default)]
    pub seed: u64,
    /// Maximum distance of an order's price from the mark price, as a fraction of the mark price.
    #[serde(default = "default_band")]
    pub band: String,
    /// Action for an order outside the band: `reject`, or `clamp` to the limit of the band.
    #[serde(default)]
    pub beyond_band: BeyondBand,
    /// Requests to the matching engine per second, for each account.
    #[serde(default = "default_rate")]
    pub matching_rate: u64,
    /// Maximum burst of these requests after a pause.
    #[serde(default = "default_burst")]
    pub matching_burst: u64,
    /// Maximum number of labels and FIX ClOrdIDs of one account; an order with a further one is rejected.
    #[serde(default = "default_labels")]
    pub max_labels: usize,
    /// Lifetime of an access token, in seconds.
    #[serde(default = "default_expiry")]
    pub token_expires_s: u64,
    /// The simulated indices.
    pub index: Vec<IndexConfig>,
    /// The listed instruments.
    pub instrument: Vec<ListingConfig>,
    /// The API keys that may authenticate.
    pub key: Vec<KeyConfig>,
    /// Initial balances of the accounts.
    #[serde(default)]
    pub account: Vec<AccountConfig>,
    /// Fault injection; disabled when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faults: Option<FaultsConfig>,
}

/// Action for an order whose price is outside the band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BeyondBand {
    /// The order is rejected with 10005 or 10007.
    #[default]
    Reject,
    /// The price is set to the limit of the band.
    Clamp,
}

/// `[deribit.tls]`: paths are relative to the venue's file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate and its chain up to the root, PEM.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub private_key: PathBuf,
}

/// One `[[deribit.index]]`: a simulated index price.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct IndexConfig {
    /// Name, such as `btc_usd`.
    pub name: String,
    /// Initial price.
    pub price: String,
    /// Maximum movement per second, in millionths.
    #[serde(default)]
    pub step_ppm: u32,
}

/// One `[[deribit.instrument]]`: an instrument of the venue as listed for Deribit clients.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListingConfig {
    /// Name used by clients.
    pub name: String,
    /// Its symbol in the venue's instrument file.
    pub symbol: String,
    /// `future`, `option` or `spot`.
    pub kind: KindConfig,
    /// The underlying currency.
    pub base: String,
    /// The currency of its price.
    pub quote: String,
    /// Currency of profits, by default the quote currency; the base currency makes an inverse contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settlement: Option<String>,
    /// `perpetual`, `month`, `week` or `day`; for futures and options.
    #[serde(default)]
    pub period: String,
    /// Name of its index.
    pub index: String,
    /// Size of one contract; `min_trade_amount` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_size: Option<String>,
    /// Minimum amount, which is also the amount step.
    pub min_trade_amount: String,
    /// Number of decimals of one unit of the venue's price.
    #[serde(default = "four")]
    pub price_decimals: u8,
    /// Larger ticks at higher prices, lowest price first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tick_size_steps: Vec<TickStepConfig>,
    /// Maker fee, as a fraction of the value.
    #[serde(default = "zero")]
    pub maker_commission: String,
    /// Taker fee, as a fraction of the value.
    #[serde(default = "zero")]
    pub taker_commission: String,
    /// Delivery fee of futures and options, as a fraction of the value; for options like a trade fee.
    #[serde(default = "zero")]
    pub delivery_commission: String,
    /// Liquidation fee, as a fraction of the value; paid to the insurance fund.
    #[serde(default = "default_liquidation")]
    pub liquidation_commission: String,
    /// Initial margin, as a fraction of the value.
    #[serde(default = "default_initial")]
    pub initial_margin: String,
    /// Maintenance margin, as a fraction of the value.
    #[serde(default = "default_maintenance")]
    pub maintenance_margin: String,
    /// Expiry in milliseconds since 1970; for dated futures and options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_timestamp: Option<u64>,
    /// Listing time in milliseconds since 1970; September 2020 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<u64>,
    /// Strike price of an option.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strike: Option<String>,
    /// Volatility at which the simulated market prices an option until it is traded, in percent.
    #[serde(default = "default_volatility")]
    pub volatility: String,
    /// Option type: `call` or `put`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option_type: Option<String>,
}

/// One of `tick_size_steps`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TickStepConfig {
    /// Lower bound of the step: it applies to prices above this one.
    pub above_price: String,
    /// Tick size above that price.
    pub tick_size: String,
}

/// Kind of an instrument.
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
    /// The client secret.
    pub client_secret: Secret,
    /// Venue user that the key acts for; the user must have the port `deribit`.
    pub user: String,
    /// Scope of the key; everything when absent.
    #[serde(default = "default_scope")]
    pub scope: String,
}

/// One `[[deribit.account]]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AccountConfig {
    /// The venue's user.
    pub user: String,
    /// Initial balance of each currency.
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

/// The front's checked settings.
#[derive(Clone, Debug)]
pub struct FrontSettings {
    /// Address of the WebSocket and HTTP port; port 0 selects a free port.
    pub address: SocketAddrV4,
    /// Address of the FIX port, if enabled.
    pub fix_address: Option<SocketAddrV4>,
    /// Certificate and private key, if clients must use TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Maximum number of simultaneous connections, counted separately for FIX.
    pub max_connections: usize,
    /// Maximum number of simultaneous connections of one address.
    pub per_address: ConnectionsPerAddress,
    /// Limits for connections without a request, and for FIX connections without a Logon; those of the venue.
    pub pre_login: PreLoginLimits,
    /// Value of `testnet` in the replies.
    pub testnet: bool,
    /// Seed of the simulated indices.
    pub seed: u64,
    /// Maximum distance of an order's price from the mark price, in millionths of the mark price.
    pub band_ppm: u32,
    /// Action for orders outside the band.
    pub beyond_band: BeyondBand,
    /// Requests to the matching engine for each account: per second, and maximum burst.
    pub matching: (u64, u64),
    /// Maximum number of different labels of one account.
    pub max_labels: usize,
    /// Lifetime of an access token, in seconds.
    pub token_expires_s: u64,
    /// Name, initial price in 10^-4, and maximum movement per second in millionths.
    pub indices: Vec<(String, i64, u32)>,
    /// The listed instruments.
    pub listings: Vec<Listing>,
    /// The API keys that may authenticate.
    pub keys: Vec<KeySettings>,
    /// The trading accounts.
    pub accounts: Vec<AccountSettings>,
    /// The faults to inject.
    pub faults: FaultPlan,
}

/// A checked API key.
#[derive(Clone)]
pub struct KeySettings {
    /// Its client id.
    pub client_id: String,
    /// Its client secret.
    pub secret: String,
    /// Place of its account.
    pub account: usize,
    /// Maximum scope of its logins.
    pub scope: Scope,
}

impl std::fmt::Debug for KeySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeySettings").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}

/// A checked account.
#[derive(Clone, Debug)]
pub struct AccountSettings {
    /// The venue's user.
    pub user: String,
    /// Its session in the log.
    pub session: SessionId,
    /// Initial balance of each currency.
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

    /// Loads the table of a venue's file, if present. Relative paths start at that file's folder.
    ///
    /// # Errors
    /// [`ConfigError`] with the line of the problem.
    pub fn load(file: &Path) -> Result<Option<DeribitConfig>, ConfigError> {
        /// The venue itself reads the other tables of the file.
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
        self.key.iter_mut().for_each(|key| key.client_secret.make_absolute(file));
    }

    /// Checks the table for a venue; returns the settings. `file` is its file, which may contain secrets.
    ///
    /// # Errors
    /// [`ConfigError::Value`] naming the value to change.
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

    /// Returns an account for every venue user with the port `deribit`.
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
                return Err(value(format!("key '{}' must have a separate id", key.client_id)));
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

/// Parses a fraction from -1 to 1 into millionths.
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

    /// Returns the ticks above the first one. A step begins at a multiple of its tick, which is a multiple of
    /// the tick below it. A rounded price therefore stays on its side of the step.
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

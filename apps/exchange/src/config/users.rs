//! Validation of the users and their limits.

use std::path::Path;

use tickpath_admission::LoginPolicy;
use tickpath_config::{ConfigError, TEST_PASSWORD, in_range};
use tickpath_nasdaq::soupbintcp;
use tickpath_types::{InstrumentTable, Nanos, Qty};
use tickpath_venue::{Password, RateLimit, UserLimits, UserPorts, UserSettings, check_names};

use super::{
    CancelConfig, LimitsConfig, LoginConfig, OPEN_ORDERS_MAX, OrderEntryConfig, PortConfig, Result,
    UserConfig, instrument_ids,
};
use crate::login::hashed_password;

/// Maximum of `messages_per_second` and of `burst`.
pub(crate) const RATE_MAX: u32 = 10_000_000;
/// Maximum of `records_max`. Each login searches all records.
const RECORDS_MAX: usize = 1 << 14;
/// Maximum of `delay`. Even 32 times this value is below SoupBinTCP's login timeout.
const DELAY_MAX: Nanos = Nanos::from_millis(500);
/// Maximum of `forgive_after`.
const FORGIVE_AFTER_MAX: Nanos = Nanos::from_secs(24 * 3_600);

impl OrderEntryConfig {
    /// Checks the users and returns their settings. `file` is the configuration file, which others must not
    /// be able to read if it contains passwords.
    ///
    /// # Errors
    /// [`ConfigError::Value`], which says what to change.
    pub fn users(&self, instruments: &InstrumentTable, file: Option<&Path>) -> Result<Vec<UserSettings>> {
        let mut users = Vec::new();
        if !self.test_users.is_empty() && !self.address.ip().is_loopback() {
            bail!(
                "order_entry.test_users have a public password and {} is not the loopback interface: \
                 configure users with separate passwords",
                self.address
            );
        }
        let all = self.limits.limits("order_entry.limits")?;
        let cancel_on_disconnect = self.cancel_on_disconnect.map(|grace| grace.0);
        for name in &self.test_users {
            users.push(UserSettings {
                limits: all,
                cancel_on_disconnect,
                ..UserSettings::new(name, Password::plain(TEST_PASSWORD))
            });
        }
        for user in &self.users {
            let limits = self.limits.overridden_by(&user.limits);
            let ports = user.user_ports()?;
            // The front itself cancels its users' orders on disconnect: only it knows their connections.
            let cancel_on_disconnect = cancel_on_disconnect.filter(|_| !ports.deribit);
            users.push(UserSettings {
                name: user.name.clone(),
                password: user.password(file)?,
                ports,
                instruments: instrument_ids(
                    user.instruments.as_deref(),
                    instruments,
                    &format!("user '{}'", user.name),
                )?,
                limits: limits.limits(&format!("the limits of user '{}'", user.name))?,
                cancel_on_disconnect: match user.cancel_on_disconnect {
                    Some(CancelConfig::After(grace)) => Some(grace.0).filter(|_| !ports.deribit),
                    Some(CancelConfig::Never) => None,
                    None => cancel_on_disconnect,
                },
                self_trade_prevention: user.self_trade_prevention.map(Into::into).unwrap_or_default(),
                copies_of: user.copies_of.clone(),
            });
        }
        if users.is_empty() {
            bail!("order_entry names no user: add test_users = [\"TEST01\"] or [[order_entry.user]]");
        }
        check_names(&users).map_err(ConfigError::value)?;
        Ok(users)
    }
}

impl UserConfig {
    fn password(&self, file: Option<&Path>) -> Result<Password> {
        let name = &self.name;
        match (&self.password, &self.password_hash) {
            (Some(password), None) => {
                let password = password.resolve(file)?;
                if soupbintcp::Password::new(&password).is_none() || password.is_empty() {
                    bail!("the password of user '{name}' must have 1 to 10 ASCII characters");
                }
                Ok(Password::plain(password))
            }
            // Deribit clients log in with keys, so a user with only that port needs no password.
            (None, None) if self.ports == [PortConfig::Deribit] => Ok(Password::plain("")),
            (None, Some(hash)) => hashed_password(hash)
                .map_err(|error| ConfigError::value(format!("the password_hash of user '{name}': {error}"))),
            _ => Err(ConfigError::value(format!(
                "user '{name}' needs a password or a password_hash, and not both"
            ))),
        }
    }

    fn user_ports(&self) -> Result<UserPorts> {
        if self.ports.is_empty() {
            let name = &self.name;
            bail!("user '{name}' has no port: name ports, e.g. [\"order_entry\"]");
        }
        let has = |port| self.ports.contains(&port);
        let (order_entry, deribit) = (has(PortConfig::OrderEntry), has(PortConfig::Deribit));
        if order_entry && deribit {
            bail!(
                "user '{}' may enter orders at one endpoint only: remove order_entry or deribit from its ports",
                self.name
            );
        }
        Ok(UserPorts { order_entry, drop_copy: has(PortConfig::DropCopy), deribit })
    }
}

impl LimitsConfig {
    pub(super) fn is_empty(&self) -> bool {
        *self == LimitsConfig::default()
    }

    /// Returns these limits, except that limits set in `user` replace them.
    fn overridden_by(&self, user: &LimitsConfig) -> LimitsConfig {
        let has_rate = user.messages_per_second.is_some();
        LimitsConfig {
            messages_per_second: user.messages_per_second.or(self.messages_per_second),
            // If the user sets another rate, the inherited burst does not apply.
            burst: user.burst.or(self.burst.filter(|_| !has_rate)),
            open_orders: user.open_orders.or(self.open_orders),
            order_qty: user.order_qty.or(self.order_qty),
            order_notional: user.order_notional.or(self.order_notional),
        }
    }

    fn limits(&self, context: &str) -> Result<UserLimits> {
        let bounds = [
            ("messages_per_second", self.messages_per_second, RATE_MAX),
            ("burst", self.burst, RATE_MAX),
            ("open_orders", self.open_orders, OPEN_ORDERS_MAX),
        ];
        for (name, value, max) in bounds {
            value.map_or(Ok(()), |value| in_range(&format!("{context}: {name}"), value, 1..=max))?;
        }
        if self.burst.is_some() && self.messages_per_second.is_none() {
            bail!("{context}: a burst needs messages_per_second");
        }
        if self.order_qty == Some(0) || self.order_notional.is_some_and(|notional| notional.0.0 <= 0) {
            bail!("{context}: order_qty and order_notional must be above 0");
        }
        let rate = self
            .messages_per_second
            .map(|per_second| RateLimit { per_second, burst: self.burst.unwrap_or(per_second) });
        Ok(UserLimits {
            rate,
            open_orders: self.open_orders,
            order_qty: self.order_qty.map(Qty),
            order_notional: self.order_notional.map(|notional| notional.0.0.unsigned_abs()),
        })
    }
}

impl LoginConfig {
    pub(super) fn policy(&self) -> Result<LoginPolicy> {
        let LoginConfig { delay, forgive_after, records_max } = *self;
        in_range("order_entry.logins.records_max", records_max, 1..=RECORDS_MAX)?;
        if delay.0 > DELAY_MAX || forgive_after.0 > FORGIVE_AFTER_MAX {
            bail!("order_entry.logins: delay must be at most 500ms, and forgive_after at most 24h");
        }
        Ok(LoginPolicy { delay: delay.0, forgive_after: forgive_after.0, records_max })
    }
}

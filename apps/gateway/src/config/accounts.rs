//! Accounts at the venue.

use serde::{Deserialize, Serialize};
use tickpath_config::{ConfigError, Secret};

use super::{Amount, Patterns};

/// One account at the venue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountConfig {
    /// Subscribes to market data through this account's connection; at most one. Default: the first by name.
    #[serde(default)]
    pub master: bool,
    /// Id of the key: a literal, `env:NAME` or `file:PATH`. It is not secret, and is shown.
    #[serde(serialize_with = "Secret::serialize_shown")]
    pub login: Secret,
    /// Secret of the key: `env:NAME` or `file:PATH`, or a literal in a file that only its owner can read.
    pub secret: Secret,
    /// Login method.
    #[serde(default)]
    pub grant: Grant,
    /// Scope that the login requests, as `trade:read_write account:read`; all rights of the key when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The instruments that it may trade; all when absent.
    #[serde(default = "Patterns::all")]
    pub symbols: Patterns,
    /// Order limits of this account, in place of `[limits]`.
    #[serde(default)]
    pub limits: Caps,
}

impl AccountConfig {
    pub(super) fn check(&self, name: &str) -> Result<(), ConfigError> {
        self.symbols.compile(&format!("accounts.{name}.symbols"))?;
        match &self.scope {
            Some(scope) => check_scope(scope)
                .map_err(|what| ConfigError::value(format!("accounts.{name}.scope is {scope:?}: {what}"))),
            None => Ok(()),
        }
    }
}

/// Login method (Deribit API v2, `public/auth`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// Signs with the secret, which is never sent.
    #[default]
    ClientSignature,
    /// Sends the secret: for a host whose clock is unreliable, as a signature is valid for a minute.
    ClientCredentials,
}

/// Checks a scope; the error says what to do.
fn check_scope(scope: &str) -> Result<(), String> {
    let words: Vec<&str> = scope.split_ascii_whitespace().collect();
    if words.is_empty() {
        return Err(
            "leave it out for all that the key may do, or write words such as trade:read_write".to_owned()
        );
    }
    let kind = |word: &str| word.split_once(':').map_or(word, |(kind, _)| kind).to_owned();
    for (place, word) in words.iter().enumerate() {
        let is_known = match word.split_once(':') {
            Some(("account" | "trade" | "wallet" | "block_trade" | "block_rfq", access)) => {
                matches!(access, "read" | "read_write" | "none")
            }
            Some(("session" | "ip", value)) => !value.is_empty(),
            Some(("expires", value)) => value.parse().is_ok_and(|seconds: u32| seconds > 0),
            Some(_) => false,
            None => matches!(*word, "connection" | "mainaccount"),
        };
        if !is_known {
            return Err(format!(
                "{word} is no word of it: write such as connection, session:NAME, expires:SECONDS, account:read, trade:read_write"
            ));
        }
        if words[..place].iter().any(|earlier| kind(earlier) == kind(word)) {
            return Err(format!("it says {} twice: leave one of them", kind(word)));
        }
    }
    if words.contains(&"trade:none") {
        return Err(
            "with trade:none the venue reports no orders: write trade:read to watch, trade:read_write to trade"
                .to_owned(),
        );
    }
    // A scope that names some access grants only the access that it names.
    let names = |kinds: &[&str]| words.iter().any(|word| kinds.contains(&kind(word).as_str()));
    if names(&["account", "wallet"]) && !names(&["trade"]) {
        return Err(
            "without a trade scope the venue reports no orders: write trade:read to watch, trade:read_write to trade"
                .to_owned(),
        );
    }
    Ok(())
}

/// Order limits, checked before an order leaves; a limit that is absent is not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caps {
    /// Maximum amount of an order, in its instrument's unit.
    pub order_size_max: Option<Amount>,
    /// Maximum value of an order, in the currency of its price; for inverse futures the amount in USD; for
    /// inverse options and combinations the value of the underlying. A sell order is valued at the market
    /// price where that is above its own.
    pub notional_max: Option<Amount>,
    /// Maximum number of open orders of the account, the new one included.
    pub open_orders_max: Option<u32>,
    /// Holds back all orders until a risk manager has published limits for the account.
    pub wait_for_risk_limits: Option<bool>,
}

impl Caps {
    /// Returns these limits, completed by those of `others`.
    #[must_use]
    pub fn or(&self, others: &Caps) -> Caps {
        Caps {
            order_size_max: self.order_size_max.or(others.order_size_max),
            notional_max: self.notional_max.or(others.notional_max),
            open_orders_max: self.open_orders_max.or(others.open_orders_max),
            wait_for_risk_limits: self.wait_for_risk_limits.or(others.wait_for_risk_limits),
        }
    }
}

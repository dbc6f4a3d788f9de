//! Accounts at the venue.

use serde::{Deserialize, Serialize};
use tickpath_config::{ConfigError, Secret};

use super::{Amount, Patterns};

/// One account at the venue.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountConfig {
    /// The account whose connection asks for market data; one at most. Where none says so, the first by name.
    #[serde(default)]
    pub master: bool,
    /// Id of the key: itself, `env:NAME` or `file:PATH`. It is no secret, and is shown.
    #[serde(serialize_with = "Secret::serialize_shown")]
    pub login: Secret,
    /// The key's secret: `env:NAME` or `file:PATH`, or itself in a file that nobody else may read.
    pub secret: Secret,
    /// How the key is shown at login.
    #[serde(default)]
    pub grant: Grant,
    /// What the login is to allow, as `trade:read_write account:read`; all that the key may do when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The instruments it may trade; all when absent.
    #[serde(default = "Patterns::all")]
    pub symbols: Patterns,
    /// What none of its orders may exceed, in place of `[limits]`.
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

/// How the key is shown at login (Deribit API v2, `public/auth`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// By a signature: the secret is never sent.
    #[default]
    ClientSignature,
    /// By the secret itself: where the clock is no good, as a signature is valid for a minute.
    ClientCredentials,
}

/// Whether a scope is one; what to do where it is not.
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
            "with trade:none nothing is told of orders: write trade:read to watch, trade:read_write to trade"
                .to_owned(),
        );
    }
    // Where some access is named, the venue grants what is named alone.
    let names = |kinds: &[&str]| words.iter().any(|word| kinds.contains(&kind(word).as_str()));
    if names(&["account", "wallet"]) && !names(&["trade"]) {
        return Err(
            "without a word on trade nothing is told of orders: write trade:read to watch, trade:read_write to trade"
                .to_owned(),
        );
    }
    Ok(())
}

/// What no order may exceed; each is checked before an order leaves, where it is stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Caps {
    /// Amount of an order, as its instrument counts it.
    pub order_size_max: Option<Amount>,
    /// Value of an order, in the currency that its price is in; of inverse futures the amount, in USD; of inverse options
    /// and of combinations the value of the underlying. Of a sale it is reckoned with the market's price where its own is
    /// lower.
    pub notional_max: Option<Amount>,
    /// Open orders of the account, with the new one.
    pub open_orders_max: Option<u32>,
    /// No order leaves before a risk manager has published limits for the account.
    pub wait_for_risk_limits: Option<bool>,
}

impl Caps {
    /// These, and `others` where these say nothing.
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

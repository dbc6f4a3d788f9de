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
    /// The instruments it may trade; all when absent.
    #[serde(default = "Patterns::all")]
    pub symbols: Patterns,
    /// What none of its orders may exceed, in place of `[limits]`.
    #[serde(default)]
    pub limits: Caps,
}

impl AccountConfig {
    pub(super) fn check(&self, name: &str) -> Result<(), ConfigError> {
        self.symbols.compile(&format!("accounts.{name}.symbols")).map(drop)
    }
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

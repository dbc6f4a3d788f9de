//! The users of the gateway.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use tickpath_config::{ConfigError, Duration, Secret};
use tickpath_types::Nanos;

use super::patterns::one_or_many;
use super::{AccountConfig, Patterns, between, duration};

/// Maximum number of requests within a monitor period: the time of each is kept.
const REQUEST_LIMIT_MAX: u32 = 1 << 16;

/// Maximum length of a market maker protection group, in characters.
const GROUP_LEN_MAX: usize = 24;

/// One user of the gateway.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserConfig {
    /// The password or its argon2 hash: `env:NAME` or `file:PATH`, or a literal in a file that only its owner
    /// can read.
    pub password: Secret,
    /// The accounts that it may trade with; when absent, it receives only market data.
    #[serde(default, deserialize_with = "one_or_many")]
    pub accounts: Vec<String>,
    /// The instruments that it may trade; all when absent. Market data covers all of `symbols` for all users.
    #[serde(default = "Patterns::all")]
    pub symbols: Patterns,
    /// The group of market maker protection that it quotes in, as the venue knows it; no mass quotes when
    /// absent. At most one user quotes at an account.
    pub mmp_group: Option<String>,
    /// Allows market maker protection on its single orders; an `mmp_group` implies it.
    #[serde(default)]
    pub mmp: bool,
    /// Allows it to publish limits for its accounts.
    #[serde(default)]
    pub risk_manager: bool,
    /// Period over which requests are counted.
    #[serde(
        default = "UserConfig::monitor_period",
        alias = "monitor_period_secs",
        deserialize_with = "seconds"
    )]
    pub monitor_period: Duration,
    /// Time for which a user is refused after exceeding the request limit.
    #[serde(default = "UserConfig::ban_period", alias = "ban_period_secs", deserialize_with = "seconds")]
    pub ban_period: Duration,
    /// Maximum number of requests within the monitor period; one more starts a ban.
    #[serde(default = "UserConfig::request_limit")]
    pub request_limit: u32,
}

impl UserConfig {
    fn monitor_period() -> Duration {
        Duration(Nanos::from_secs(60))
    }

    fn ban_period() -> Duration {
        Duration(Nanos::from_secs(300))
    }

    fn request_limit() -> u32 {
        10
    }

    fn check_group(&self, name: &str) -> Result<(), ConfigError> {
        let Some(group) = &self.mmp_group else { return Ok(()) };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if group.is_empty() || group.len() > GROUP_LEN_MAX || !group.bytes().all(is_plain) {
            return Err(ConfigError::value(format!(
                "users.{name}.mmp_group is {group:?}: write 1 to {GROUP_LEN_MAX} letters, digits, dots, dashes or underscores"
            )));
        }
        if self.accounts.is_empty() {
            return Err(ConfigError::value(format!(
                "users.{name} quotes at no account: name one in users.{name}.accounts"
            )));
        }
        Ok(())
    }

    pub(super) fn check(
        &self,
        name: &str,
        accounts: &BTreeMap<String, AccountConfig>,
    ) -> Result<(), ConfigError> {
        let key = |key: &str| format!("users.{name}.{key}");
        self.symbols.compile(&key("symbols"))?;
        if let Some(account) = self.accounts.iter().find(|account| !accounts.contains_key(*account)) {
            return Err(ConfigError::value(format!(
                "users.{name}.accounts names {account}, which there is not: write it as [accounts.{account}]"
            )));
        }
        if self.risk_manager && self.accounts.is_empty() {
            return Err(ConfigError::value(format!(
                "users.{name} is a risk manager of no account: name them in users.{name}.accounts"
            )));
        }
        if self.mmp && self.accounts.is_empty() {
            return Err(ConfigError::value(format!(
                "users.{name}.mmp is for orders, and the user has no account: name one in users.{name}.accounts"
            )));
        }
        self.check_group(name)?;
        let (least, most) = (Nanos::from_millis(1), Nanos::from_secs(86_400));
        duration(&key("monitor_period"), self.monitor_period, least, most)?;
        duration(&key("ban_period"), self.ban_period, least, most)?;
        let limit = u64::from(self.request_limit);
        let allowed = format!("1 to {REQUEST_LIMIT_MAX}");
        between(&key("request_limit"), limit, 1, REQUEST_LIMIT_MAX.into(), &allowed)
    }
}

/// Reads a duration as text, or a whole number of seconds.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "write a duration such as \"60s\", or a whole number of seconds")]
    enum Written {
        Seconds(u32),
        Text(String),
    }
    match Written::deserialize(deserializer)? {
        Written::Seconds(seconds) => Ok(Duration(Nanos::from_secs(seconds.into()))),
        Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

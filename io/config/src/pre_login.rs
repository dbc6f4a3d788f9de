//! `[pre_login]`: limits for connections that have not logged in.

use serde::{Deserialize, Serialize};
use tickpath_admission::PreLoginLimits;

use crate::{ConfigError, Duration, in_range};

/// Maximum of [`PreLoginConfig::connections`]. A connection takes up to 66 KiB of memory.
const CONNECTIONS_MAX: usize = 1 << 10;

/// Limits for connections of each endpoint that have not logged in. Logged-in connections do not count, so
/// silent connections do not displace clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct PreLoginConfig {
    /// Maximum number of connections; a further one closes the oldest of the address that has the most.
    pub connections: usize,
    /// Maximum number of connections of one address; a further one closes its oldest.
    pub per_address: usize,
    /// Time that a connection has for its login.
    pub deadline: Duration,
}

impl Default for PreLoginConfig {
    fn default() -> Self {
        let PreLoginLimits { connections, per_address, deadline } = PreLoginLimits::default();
        PreLoginConfig { connections, per_address, deadline: Duration(deadline) }
    }
}

impl PreLoginConfig {
    /// Returns the checked limits.
    ///
    /// # Errors
    /// [`ConfigError::Value`] that names what to change.
    pub fn limits(&self) -> Result<PreLoginLimits, ConfigError> {
        let PreLoginConfig { connections, per_address, deadline } = *self;
        in_range("pre_login.connections", connections, 1..=CONNECTIONS_MAX)?;
        if !(1..=connections).contains(&per_address) {
            return Err(ConfigError::value(format!(
                "pre_login.per_address must be 1 to {connections}, the pre_login.connections: {per_address} is not"
            )));
        }
        if !(100_000_000..=60_000_000_000).contains(&deadline.0.0) {
            return Err(ConfigError::value(format!(
                "pre_login.deadline must be 100ms to 60s: {deadline} is not"
            )));
        }
        Ok(PreLoginLimits { connections, per_address, deadline: deadline.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_limits_are_rejected_in_one_line() {
        let limits = |text: &str| crate::parse::<PreLoginConfig>("a.toml", text)?.limits();
        assert_eq!(limits("").unwrap(), PreLoginLimits::default());
        for (text, expected) in [
            ("connections = 0", "connections must be 1 to 1024"),
            ("connections = 1025", "connections must be 1 to 1024"),
            ("connections = 8", "per_address must be 1 to 8"),
            ("per_address = 0", "per_address must be 1 to 128"),
            ("deadline = '99ms'", "deadline must be 100ms to 60s"),
            ("deadline = '61s'", "deadline must be 100ms to 60s"),
        ] {
            let error = limits(text).unwrap_err().to_string();
            assert!(error.contains(expected) && error.lines().count() == 1, "{text}: {error}");
        }
    }
}

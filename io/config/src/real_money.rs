//! The guard against trading real money by accident.

use crate::ConfigError;

/// The venue of a trading program, and the configured permission to trade there.
///
/// ```
/// use tickpath_config::TradingEndpoint;
///
/// let endpoint = TradingEndpoint { host: "www.deribit.com", is_loopback: false, is_tls: true, production: false };
/// let error = endpoint.check(&[("limits.order_size_max", true)]).unwrap_err();
/// assert!(error.to_string().contains("production = true"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TradingEndpoint<'a> {
    /// Name or address of the venue.
    pub host: &'a str,
    /// True when the venue is on this machine.
    pub is_loopback: bool,
    /// True when the connection is encrypted.
    pub is_tls: bool,
    /// True when the configuration says `production = true`.
    pub production: bool,
}

impl TradingEndpoint<'_> {
    /// Returns whether no real money is at stake: the venue is on this machine, or its host name begins with
    /// `test.` or `fix-test.`, like the names of the venue's test environments.
    #[must_use]
    pub fn is_test(&self) -> bool {
        self.is_loopback || self.host.starts_with("test.") || self.host.starts_with("fix-test.")
    }

    /// Checks that trading at the venue is intended. A test environment is always accepted. Other venues
    /// require `production`, TLS, and all `limits`, given as the name of each and whether it is configured.
    ///
    /// # Errors
    /// [`ConfigError::Value`] that says what to configure.
    pub fn check(&self, limits: &[(&str, bool)]) -> Result<(), ConfigError> {
        let host = self.host;
        if self.is_test() {
            return Ok(());
        }
        let refused = |message: String| Err(ConfigError::value(message));
        if !self.production {
            return refused(format!(
                "{host} is not a test environment: write production = true in the configuration file to trade real money"
            ));
        }
        if !self.is_tls {
            return refused(format!(
                "{host} trades real money: use an encrypted connection (wss://, tls://)"
            ));
        }
        match limits.iter().find(|(_, is_stated)| !is_stated) {
            Some((name, _)) => {
                refused(format!("{host} trades real money: set {name} in the configuration file"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_real_venues_need_confirmation() {
        let real =
            TradingEndpoint { host: "www.deribit.com", is_loopback: false, is_tls: true, production: true };
        let error_of = |endpoint: TradingEndpoint<'_>, stated| {
            endpoint.check(&[("limits.a", true), ("limits.b", stated)]).err().map(|error| error.to_string())
        };
        assert_eq!(error_of(real, true), None);
        assert!(error_of(real, false).unwrap().contains("set limits.b"));
        assert!(error_of(TradingEndpoint { is_tls: false, ..real }, true).unwrap().contains("wss://"));
        assert!(
            error_of(TradingEndpoint { production: false, ..real }, true)
                .unwrap()
                .contains("production = true")
        );
        for host in ["test.deribit.com", "fix-test.deribit.com"] {
            let test = TradingEndpoint { host, is_loopback: false, is_tls: false, production: false };
            assert_eq!(error_of(test, false), None);
        }
        // A host name that only resembles those of test environments is rejected.
        for host in ["www.test.deribit.example", "testing.example", "a.fix-test.example"] {
            assert!(error_of(TradingEndpoint { host, production: false, ..real }, true).is_some(), "{host}");
        }
        assert_eq!(error_of(TradingEndpoint { is_loopback: true, production: false, ..real }, false), None);
    }
}

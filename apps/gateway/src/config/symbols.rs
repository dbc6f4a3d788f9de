//! The instruments that the gateway uses.

use serde::{Deserialize, Serialize};
use tickpath_config::ConfigError;
use tickpath_gateway_core::SymbolFilter;

use super::Patterns;

/// Instruments selected by regular expressions that match their names.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SymbolsConfig {
    /// Patterns of the instruments to use; one expression or a list.
    pub include: Patterns,
    /// Patterns of the instruments to leave out of these.
    pub exclude: Patterns,
}

impl Default for SymbolsConfig {
    fn default() -> SymbolsConfig {
        SymbolsConfig { include: Patterns::all(), exclude: Patterns::default() }
    }
}

impl SymbolsConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.include.0.is_empty() {
            return Err(ConfigError::value(
                "symbols.include is empty: name the instruments, e.g. [\"BTC-.*\"]",
            ));
        }
        self.filter().map(drop)
    }

    /// Compiles the patterns.
    ///
    /// # Errors
    /// [`ConfigError::Value`] with the pattern that is not a regular expression.
    pub fn filter(&self) -> Result<SymbolFilter, ConfigError> {
        Ok(SymbolFilter {
            include: self.include.compile("symbols.include")?,
            exclude: self.exclude.compile("symbols.exclude")?,
        })
    }
}

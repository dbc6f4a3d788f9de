//! The instruments that are there at all.

use serde::{Deserialize, Serialize};
use tickpath_config::ConfigError;
use tickpath_gateway_core::SymbolFilter;

use super::Patterns;

/// Instruments by the regular expressions that match their names.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SymbolsConfig {
    /// Those that are there; written as one expression or as a list.
    pub include: Patterns,
    /// Those of them that are not.
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

    /// Ready to be asked.
    ///
    /// # Errors
    /// [`ConfigError::Value`] with the expression that is none.
    pub fn filter(&self) -> Result<SymbolFilter, ConfigError> {
        Ok(SymbolFilter {
            include: self.include.compile("symbols.include")?,
            exclude: self.exclude.compile("symbols.exclude")?,
        })
    }
}

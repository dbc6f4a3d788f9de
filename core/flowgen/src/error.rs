//! Settings that cannot be used.

/// A generator cannot be made of these settings: the message names the setting, its value and what to choose.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

impl ConfigError {
    pub(crate) fn unless(holds: bool, message: impl FnOnce() -> String) -> Result<(), ConfigError> {
        if holds { Ok(()) } else { Err(ConfigError(message())) }
    }
}

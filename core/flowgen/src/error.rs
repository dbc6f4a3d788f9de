//! Errors of invalid settings.

/// Invalid settings of a generator. The message names the setting, its value, and a valid choice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub(crate) String);

impl ConfigError {
    pub(crate) fn unless(holds: bool, message: impl FnOnce() -> String) -> Result<(), ConfigError> {
        if holds { Ok(()) } else { Err(ConfigError(message())) }
    }
}

//! Logins of users. A separate thread checks passwords, since a hash takes milliseconds.

mod login;
mod password;

pub use login::{CHECKS_MAX, CheckAnswer, LoginChecker};
pub use password::{PasswordError, UserPassword};
pub use tickpath_gateway_protocol::frame::PASSWORD_LEN_MAX;

use std::path::Path;

use tickpath_config::ConfigError;

use crate::config::GatewayConfig;

/// Reads all users with their passwords, sorted by name; a user's index is its number.
///
/// # Errors
/// [`ConfigError`] if a password is missing, or a hash is invalid.
pub fn passwords(
    config: &GatewayConfig,
    file: Option<&Path>,
) -> Result<Vec<(String, UserPassword)>, ConfigError> {
    let read = |(name, user): (&String, &crate::config::UserConfig)| {
        let text = user.password.resolve(file)?;
        let password = UserPassword::new(&text)
            .map_err(|error| ConfigError::value(format!("users.{name}.password: {error}")))?;
        Ok((name.clone(), password))
    };
    config.users.iter().map(read).collect()
}

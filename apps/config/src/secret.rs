//! Passwords that never show.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::{Deserialize, Serialize, Serializer};

use crate::ConfigError;

/// The password of a venue's test users: public, and good only for a venue on the loopback interface.
pub const TEST_PASSWORD: &str = "test";

/// What stands in a written configuration in place of a password that stood there itself: whoever uses it is told
/// to set this variable.
pub const HIDDEN_PASSWORD: &str = "env:TICKPATH_PASSWORD_NOT_SHOWN";

/// What a password's argon2 hash begins with.
const HASH_MARK: &str = "$argon2";

/// A secret named in a configuration: `env:NAME`, `file:PATH`, or itself.
///
/// A secret written out in a configuration is accepted only when nobody else can read that file; the
/// public [`TEST_PASSWORD`] and a password's argon2 hash are accepted anywhere. Never printed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A secret as a configuration names it.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself; `config` is the file that names it.
    ///
    /// # Errors
    /// [`ConfigError::Value`] when the named variable or file is missing or readable by others, or the
    /// secret stands in a configuration that others can read.
    pub fn resolve(&self, config: Option<&Path>) -> Result<String, ConfigError> {
        if let Some(name) = self.0.strip_prefix("env:") {
            return std::env::var(name).map_err(|_| {
                ConfigError::value(format!("set the environment variable {name}: a password is kept there"))
            });
        }
        if let Some(path) = self.0.strip_prefix("file:") {
            let path = Path::new(path);
            require_private(path)?;
            let text = std::fs::read_to_string(path)
                .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
            return Ok(text.trim_end().to_owned());
        }
        let is_public = self.0 == TEST_PASSWORD || self.0.starts_with(HASH_MARK);
        if let Some(config) = config.filter(|_| !is_public) {
            require_private(config)?;
        }
        Ok(self.0.clone())
    }
}

impl Secret {
    /// Writes it as it stands in the configuration: of what may be kept elsewhere as secrets are, and is none.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize_shown<S: Serializer>(shown: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&shown.0)
    }
}

impl Serialize for Secret {
    /// Where it is kept; [`HIDDEN_PASSWORD`] when it was written out.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_a_place = self.0.starts_with("env:") || self.0.starts_with("file:");
        serializer.serialize_str(if is_a_place || self.0 == TEST_PASSWORD {
            &self.0
        } else {
            HIDDEN_PASSWORD
        })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

fn require_private(path: &Path) -> Result<(), ConfigError> {
    let metadata =
        std::fs::metadata(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(ConfigError::value(format!("{path} holds a password and others may read it: run chmod 600 {path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_password_needs_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("trader.toml");
        std::fs::write(&config, "x").unwrap();
        let set_mode =
            |mode| std::fs::set_permissions(&config, std::fs::Permissions::from_mode(mode)).unwrap();

        set_mode(0o644);
        let error = Secret::new("hunter2").resolve(Some(&config)).unwrap_err().to_string();
        assert!(error.contains("chmod 600") && !error.contains("hunter2"), "{error}");
        assert_eq!(Secret::new(TEST_PASSWORD).resolve(Some(&config)).unwrap(), TEST_PASSWORD);
        assert!(Secret::new("$argon2id$v=19$x").resolve(Some(&config)).is_ok());
        let file = Secret::new(format!("file:{}", config.display()));
        assert!(file.resolve(None).is_err());

        set_mode(0o600);
        assert_eq!(Secret::new("hunter2").resolve(Some(&config)).unwrap(), "hunter2");
        assert_eq!(file.resolve(None).unwrap(), "x");
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(..)");
    }

    #[test]
    fn a_missing_variable_is_named() {
        let error = Secret::new("env:TICKPATH_NO_SUCH").resolve(None).unwrap_err().to_string();
        assert!(error.contains("TICKPATH_NO_SUCH"), "{error}");
    }
}

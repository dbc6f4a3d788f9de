//! Secrets that are never printed.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

use crate::ConfigError;
use crate::load::read_text;
use crate::paths::{absolute, beside};

/// The password of a venue's test users: public, and accepted only by a venue on the loopback interface.
pub const TEST_PASSWORD: &str = "test";

/// Serialized in place of a password whose text is in the configuration. A program that loads the result
/// reports that it needs this environment variable.
pub const HIDDEN_PASSWORD: &str = "env:TICKPATH_PASSWORD_NOT_SHOWN";

/// Prefix of a reference to a secret in an environment variable; the variable's name follows.
const ENV: &str = "env:";

/// Prefix of a reference to a secret in a file; the file's path follows.
const FILE: &str = "file:";

/// Maximum length of a secret's file, in bytes.
const SECRET_LEN_MAX: u64 = 64 << 10;

/// Prefix of a password's argon2 hash.
const HASH_MARK: &str = "$argon2";

/// A secret: `env:NAME`, `file:PATH`, or the text itself. Relative paths begin at the configuration's folder.
///
/// A configuration may contain the text of a secret only when no other user can read the file; the
/// public [`TEST_PASSWORD`] and a password's argon2 hash are accepted anywhere. Never printed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret from its configured text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// Returns the secret's value. `config` is the file that names the secret; `None` for the command line or
    /// an environment variable: then a relative path begins at the current folder.
    ///
    /// # Errors
    /// [`ConfigError`] when the named variable or file is missing, or others can read that file or the
    /// configuration that contains the secret.
    pub fn resolve(&self, config: Option<&Path>) -> Result<String, ConfigError> {
        if let Some(path) = self.path(config) {
            require_private(&path)?;
        }
        let is_written = !self.0.starts_with(ENV) && !self.0.starts_with(FILE);
        let is_public = self.0 == TEST_PASSWORD || self.0.starts_with(HASH_MARK);
        if let Some(config) = config.filter(|_| is_written && !is_public) {
            require_private(config)?;
        }
        self.resolve_shown(config)
    }

    /// Makes a relative `file:` path absolute. It begins at the folder of the file `config`.
    pub fn make_absolute(&mut self, config: &Path) {
        if let Some(path) = self.path(Some(config)) {
            self.0 = format!("{FILE}{}", absolute(&path).display());
        }
    }

    /// Returns the file that holds the secret, if any.
    fn path(&self, config: Option<&Path>) -> Option<PathBuf> {
        let path = Path::new(self.0.strip_prefix(FILE)?);
        Some(config.map_or_else(|| path.to_owned(), |config| beside(config, path)))
    }

    /// Returns the value of a setting that is configured like a secret but is not one, such as a key's id.
    ///
    /// # Errors
    /// [`ConfigError`] when the named variable or file is missing.
    pub fn resolve_shown(&self, config: Option<&Path>) -> Result<String, ConfigError> {
        if let Some(name) = self.0.strip_prefix(ENV) {
            return std::env::var(name).map_err(|_| {
                ConfigError::value(format!("set the environment variable {name}: a password is kept there"))
            });
        }
        match self.path(config) {
            Some(path) => {
                let text =
                    read_text(&path, SECRET_LEN_MAX).map_err(|source| ConfigError::Read { path, source })?;
                Ok(text.trim_end().to_owned())
            }
            None => Ok(self.0.clone()),
        }
    }

    /// Serializes the configured text of a setting that is configured like a secret but is not secret.
    ///
    /// # Errors
    /// The error of the serializer.
    pub fn serialize_shown<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Serialize for Secret {
    /// Serializes `env:`, `file:` and the test password unchanged, and any other text as [`HIDDEN_PASSWORD`].
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_a_place = self.0.starts_with(ENV) || self.0.starts_with(FILE);
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
    let path = absolute(path);
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
    fn a_relative_path_is_relative_to_the_file_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("some.toml");
        let kept = folder.path().join("kept");
        std::fs::write(&kept, "hunter2\n").unwrap();
        let mut secret = Secret::new("file:kept");
        let error = secret.resolve(Some(&config)).unwrap_err().to_string();
        assert!(error.contains(&format!("chmod 600 {}", kept.display())), "{error}");
        assert_eq!(secret.resolve_shown(Some(&config)).unwrap(), "hunter2");
        std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(secret.resolve(Some(&config)).unwrap(), "hunter2");
        let here = std::env::current_dir().unwrap().join("kept");
        let error = secret.resolve(None).unwrap_err().to_string();
        assert!(error.contains(here.to_str().unwrap()), "{error}");
        secret.make_absolute(&config);
        assert_eq!(secret, Secret::new(format!("file:{}", kept.display())));
        assert_eq!(secret.resolve(None).unwrap(), "hunter2");
        let mut written = Secret::new("env:X");
        written.make_absolute(&config);
        assert_eq!(written, Secret::new("env:X"));
    }

    #[test]
    fn a_missing_variable_is_named() {
        let error = Secret::new("env:TICKPATH_NO_SUCH").resolve(None).unwrap_err().to_string();
        assert!(error.contains("TICKPATH_NO_SUCH"), "{error}");
    }
}

//! Errors of configurations.

use std::path::{Path, PathBuf};

use crate::paths::absolute;

/// Error in a configuration. Its message is one line that says what to change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read: check its path and permissions.
    #[error("cannot read {path}: {source}", path = absolute(path).display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file does not exist: correct its path, or begin with the sample.
    #[error("there is no file {path}: correct the path, or begin with {sample}", path = absolute(path).display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// Path of the shipped sample.
        sample: &'static str,
    },
    /// A line of the file is invalid: correct it.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// The fault, and the expected syntax.
        message: String,
    },
    /// A value is well-formed but not usable: change it as the message says.
    #[error("{0}")]
    Value(String),
}

impl ConfigError {
    /// Adds the file's path to the message of a [`ConfigError::Value`]; other errors already name their file.
    #[must_use]
    pub fn in_file(self, path: &Path) -> ConfigError {
        match self {
            ConfigError::Value(message) => ConfigError::Value(format!("{}: {message}", path.display())),
            named => named,
        }
    }

    /// Returns a [`ConfigError::Value`].
    pub fn value(message: impl Into<String>) -> ConfigError {
        ConfigError::Value(message.into())
    }
}

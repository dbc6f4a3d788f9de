//! What can be wrong with a configuration.

use std::path::{Path, PathBuf};

use crate::paths::absolute;

/// A configuration that cannot be used, said in one line with what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read: check its path and permissions.
    #[error("cannot read {path}: {source}", path = absolute(path).display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no such file: correct its path, or begin with the sample.
    #[error("there is no file {path}: correct the path, or begin with {sample}", path = absolute(path).display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The sample that ships.
        sample: &'static str,
    },
    /// The text is not what is expected there: mend the named line.
    #[error("{file}:{line}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong and what is expected.
        message: String,
    },
    /// A value is well formed and cannot be used: change it as the message says.
    #[error("{0}")]
    Value(String),
}

impl ConfigError {
    /// The same with the file that a value stands in, where it does not name one.
    #[must_use]
    pub fn in_file(self, path: &Path) -> ConfigError {
        match self {
            ConfigError::Value(message) => ConfigError::Value(format!("{}: {message}", path.display())),
            named => named,
        }
    }

    /// A [`ConfigError::Value`].
    pub fn value(message: impl Into<String>) -> ConfigError {
        ConfigError::Value(message.into())
    }
}

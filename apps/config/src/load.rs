//! Reading a file into its type.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ConfigError;

/// Reads the file at `path`.
///
/// # Errors
/// [`ConfigError`] when it cannot be read or is not a `T`.
pub fn load<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    parse(&path.display().to_string(), &text)
}

/// Reads `text`, naming it `file` in errors.
///
/// # Errors
/// [`ConfigError::Syntax`] with the line when it is not a `T`.
pub fn parse<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start).min(text.len());
        ConfigError::Syntax {
            file: file.to_owned(),
            line: 1 + text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count(),
            message: error.message().lines().collect::<Vec<_>>().join("; "),
        }
    })
}

/// Where a path leads that stands in the file `config`: a relative one begins at that file's folder.
#[must_use]
pub fn beside(config: &Path, named: &Path) -> PathBuf {
    config.parent().unwrap_or(Path::new("")).join(named)
}

/// A path as it reads from any folder; as it is where the current folder is not known.
#[must_use]
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Writes a configuration as [`parse`] reads it.
///
/// # Panics
/// When the type has no form in TOML.
#[must_use]
pub fn to_toml<T: Serialize>(config: &T) -> String {
    toml::to_string(config).expect("a configuration is read from TOML and can be written as such")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        #[allow(dead_code, reason = "only its presence matters")]
        rate: u32,
    }

    #[test]
    fn a_wrong_key_is_one_line_with_its_place() {
        let error = parse::<Sample>("demo.toml", "rate = 1\nrats = 2\n").unwrap_err().to_string();
        assert!(error.starts_with("demo.toml:2: unknown field `rats`"), "{error}");
        assert_eq!(error.lines().count(), 1);
    }

    #[test]
    fn a_path_begins_at_the_file_that_names_it() {
        for (config, named, leads_to) in [
            ("configs/x.toml", "logs", "configs/logs"),
            ("configs/x.toml", "../logs", "configs/../logs"),
            ("x.toml", "logs", "logs"),
            ("/etc/x.toml", "logs", "/etc/logs"),
            ("/etc/x.toml", "/var/logs", "/var/logs"),
        ] {
            assert_eq!(beside(Path::new(config), Path::new(named)), Path::new(leads_to));
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = load::<Sample>(Path::new("/nowhere/x.toml")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/x.toml"), "{error}");
    }
}

//! The kinds of configuration files, distinguished by their keys.

use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::ConfigError;
use crate::load::{load, parse};

tickpath_types::enumerated! {
    /// Kind of a configuration file: the command that reads it, or the instrument file.
    pub enum FileKind {
        /// Read by `tickpath exchange`.
        Venue,
        /// Read by `tickpath trader`.
        Trader,
        /// Read by `tickpath feed`.
        Feed,
        /// Read by `tickpath shell`.
        Shell,
        /// Read by `tickpath gateway`.
        Gateway,
        /// Read by `tickpath demo`.
        Demo,
        /// The instrument file. The files of venues and traders contain its path.
        Instruments,
    }
}

impl FileKind {
    /// Detects the kind of a file from keys that only one kind has; `None` if it has no such key.
    #[must_use]
    pub fn of(table: &toml::Table) -> Option<FileKind> {
        let has = |keys: &[&str]| keys.iter().any(|key| table.contains_key(*key));
        let logs_in =
            table.get("order_entry").and_then(|entry| entry.get("user")).is_some_and(toml::Value::is_str);
        let is_list = has(&["instrument"]) && table.len() == 1;
        [
            (logs_in || has(&["strategy"]), FileKind::Trader),
            (has(&["channel", "outputs", "feed"]), FileKind::Feed),
            (has(&["users", "accounts"]), FileKind::Gateway),
            (has(&["url", "client_id"]), FileKind::Shell),
            (has(&["instruments"]), FileKind::Venue),
            (is_list, FileKind::Instruments),
            (has(&["rate", "seed", "seconds", "loss", "maker", "taker", "reader"]), FileKind::Demo),
        ]
        .into_iter()
        .find_map(|(is_kind, kind)| is_kind.then_some(kind))
    }

    /// Returns the kind's description, its command, and its sample.
    const fn facts(self) -> (&'static str, Option<&'static str>, &'static str) {
        match self {
            FileKind::Venue => ("a venue's configuration", Some("exchange"), "configs/exchange.toml"),
            FileKind::Trader => ("a trader's configuration", Some("trader"), "configs/trader.toml"),
            FileKind::Feed => ("a feed handler's configuration", Some("feed"), "configs/feed.toml"),
            FileKind::Shell => ("a shell's configuration", Some("shell"), "configs/shell.toml"),
            FileKind::Gateway => ("a gateway's configuration", Some("gateway"), "configs/gateway.toml"),
            FileKind::Demo => ("a demo's configuration", Some("demo"), "configs/demo.toml"),
            FileKind::Instruments => ("an instrument file", None, "configs/instruments.toml"),
        }
    }

    /// Returns the command that reads the file; `None` for the instrument file, to which other files refer.
    #[must_use]
    pub const fn command(self) -> Option<&'static str> {
        self.facts().1
    }

    /// Returns the path of the shipped sample.
    #[must_use]
    pub const fn sample(self) -> &'static str {
        self.facts().2
    }

    /// Loads the file at `path`, which should be of this kind.
    ///
    /// # Errors
    /// [`ConfigError`] when the file cannot be read or is not a `T`. If the file is of another kind, the
    /// error names that kind.
    pub fn load<T: DeserializeOwned>(self, path: &Path) -> Result<T, ConfigError> {
        load(path).map_err(|error| match error {
            ConfigError::Read { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
                ConfigError::Missing { path, sample: self.sample() }
            }
            ConfigError::Syntax { .. } => self.other_kind(path).unwrap_or(error),
            _ => error,
        })
    }

    /// Returns an error that names the kind of the file at `path`, if that kind is not `self`.
    fn other_kind(self, path: &Path) -> Option<ConfigError> {
        let text = std::fs::read_to_string(path).ok()?;
        let found = FileKind::of(&parse("", &text).ok()?).filter(|found| *found != self)?;
        let instead = match found.command() {
            Some(command) => format!("use it with tickpath {command}"),
            None => "name it in the file of a venue or a trader".to_owned(),
        };
        Some(ConfigError::value(format!(
            "{} is {found}: {instead}, and give {self} here, such as {}",
            path.display(),
            self.sample()
        )))
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.facts().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_of_its_kind() {
        let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        let kind = |name: &str| FileKind::of(&load(&configs.join(name)).unwrap());
        for found in FileKind::ALL {
            let name = found.sample().strip_prefix("configs/").unwrap();
            assert_eq!(kind(name), Some(found), "{name}");
        }
        for (name, found) in [
            ("deribit.toml", FileKind::Venue),
            ("exchange-day.toml", FileKind::Venue),
            ("deribit-instruments.toml", FileKind::Instruments),
            ("shell-native.toml", FileKind::Shell),
        ] {
            assert_eq!(kind(name), Some(found), "{name}");
        }
    }

    #[test]
    fn an_error_of_the_right_kind_keeps_its_position() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Trader {
            #[allow(dead_code, reason = "only its presence matters")]
            strategy: String,
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.toml");
        for (text, expected) in [
            ("strategy = 'maker'\nrats = 1\n", "x.toml:2: unknown field `rats`"),
            ("strategy =\n", "x.toml:1: "),
            ("words = 1\n", "x.toml:1: unknown field `words`"),
            ("rate = 1\n", "is a demo's configuration: use it with tickpath demo, and give a trader's"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = FileKind::Trader.load::<Trader>(&path).unwrap_err().to_string();
            assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
        }
        let error = FileKind::Trader.load::<Trader>(&folder.path().join("y.toml")).unwrap_err().to_string();
        assert!(error.contains("y.toml") && error.contains("configs/trader.toml"), "{error}");
    }
}

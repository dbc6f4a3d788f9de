//! Symbols by regular expressions.

use regex::Regex;
use serde::{Deserialize, Deserializer, Serialize};
use tickpath_config::ConfigError;
use tickpath_gateway_core::Matcher;

/// Patterns of one list at most: each is tried on each symbol that the venue has.
const PATTERNS_MAX: usize = 1_024;
/// Memory of one compiled pattern at most, in bytes.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// Regular expressions, of which one has to match the whole symbol; written as one or as a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Patterns(pub Vec<String>);

impl Patterns {
    /// Of these.
    #[must_use]
    pub fn new(list: &[&str]) -> Patterns {
        Patterns(list.iter().map(|text| (*text).to_owned()).collect())
    }

    /// Of everything.
    #[must_use]
    pub fn all() -> Patterns {
        Patterns::new(&[".*"])
    }

    /// Ready to be asked; `key` names them in errors.
    ///
    /// # Errors
    /// [`ConfigError::Value`] with the expression that is none.
    pub fn compile(&self, key: &str) -> Result<Matcher, ConfigError> {
        if self.0.len() > PATTERNS_MAX {
            return Err(ConfigError::value(format!("{key} has more than {PATTERNS_MAX} patterns")));
        }
        let list: Result<Vec<Regex>, ConfigError> = self.0.iter().map(|text| compile(key, text)).collect();
        Ok(Matcher(list?))
    }
}

fn compile(key: &str, text: &str) -> Result<Regex, ConfigError> {
    let whole = format!("^(?:{text})$");
    regex::RegexBuilder::new(&whole).size_limit(PATTERN_SIZE_MAX).build().map_err(|error| {
        let reason = error.to_string();
        let last = reason.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
        ConfigError::value(format!("{key}: {text:?} is no regular expression: {last}"))
    })
}

impl<'de> Deserialize<'de> for Patterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Patterns, D::Error> {
        one_or_many(deserializer).map(Patterns)
    }
}

/// A text, or a list of texts.
pub(super) fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "write a text, or a list of texts")]
    enum Written {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::One(text) => vec![text],
        Written::Many(list) => list,
    })
}

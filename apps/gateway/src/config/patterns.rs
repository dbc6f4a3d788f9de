//! Symbol selection by regular expressions.

use regex::Regex;
use serde::{Deserialize, Deserializer, Serialize};
use tickpath_config::ConfigError;
use tickpath_gateway_core::Matcher;

/// Maximum number of patterns in a list: each is tried on each symbol of the venue.
const PATTERNS_MAX: usize = 1_024;
/// Maximum memory of one compiled pattern, in bytes.
const PATTERN_SIZE_MAX: usize = 1 << 20;

/// Regular expressions, of which one must match the whole symbol; written as one string or as a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Patterns(pub Vec<String>);

impl Patterns {
    /// Creates a list of these patterns.
    #[must_use]
    pub fn new(list: &[&str]) -> Patterns {
        Patterns(list.iter().map(|text| (*text).to_owned()).collect())
    }

    /// Matches every symbol.
    #[must_use]
    pub fn all() -> Patterns {
        Patterns::new(&[".*"])
    }

    /// Compiles the patterns; errors name them `key`.
    ///
    /// # Errors
    /// [`ConfigError::Value`] with the pattern that is not a regular expression.
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

/// Reads a string, or a list of strings.
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

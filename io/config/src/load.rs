//! Loading of configuration files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ConfigError;

/// Maximum length of a configuration file, or of another hand-written file that is read completely, in bytes.
pub const TEXT_LEN_MAX: u64 = 16 << 20;

/// Reads UTF-8 text of at most `len_max` bytes from a file, a pipe or a device.
///
/// # Errors
/// The system's error, or an error when the text is longer or not UTF-8.
pub fn read_text(path: &Path, len_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(len_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > len_max {
        return Err(io::Error::other(format!("it has more than {len_max} bytes: is it the right file?")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// Loads the TOML file at `path`.
///
/// # Errors
/// [`ConfigError`] when the file cannot be read or is not a `T`.
pub fn load<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = read_text(path, TEXT_LEN_MAX)
        .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    parse(&path.display().to_string(), &text)
}

/// Parses the TOML in `text`. Errors give `file` as the name of the file that contains it.
///
/// # Errors
/// [`ConfigError::Syntax`] with the line when the text is not a `T`.
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

/// Returns a configuration as TOML, which [`parse`] reads.
///
/// # Panics
/// When the type cannot be represented in TOML.
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
    fn a_wrong_key_is_one_line_with_its_position() {
        let error = parse::<Sample>("demo.toml", "rate = 1\nrats = 2\n").unwrap_err().to_string();
        assert!(error.starts_with("demo.toml:2: unknown field `rats`"), "{error}");
        assert_eq!(error.lines().count(), 1);
    }

    #[test]
    fn endless_files_are_read_up_to_the_limit() {
        let error = load::<Sample>(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("cannot read /dev/zero: it has more than 16777216 bytes"), "{error}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = load::<Sample>(Path::new("/nowhere/x.toml")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/x.toml"), "{error}");
    }
}

//! Checks of configured values, with the same wording in all programs.

use std::fmt::Display;
use std::net::SocketAddrV4;
use std::ops::RangeInclusive;

use crate::ConfigError;

/// Checks that the value called `name` is in a range.
///
/// # Errors
/// [`ConfigError::Value`] with the range.
pub fn in_range<T: PartialOrd + Display>(
    name: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), ConfigError> {
    let (start, end) = (range.start(), range.end());
    ensure(range.contains(&value), || format!("{name} must be {start} to {end}: {value} is not"))
}

/// Checks that the value called `name` is not below `min`.
///
/// # Errors
/// [`ConfigError::Value`] with the bound.
pub fn at_least<T: PartialOrd + Display>(name: &str, value: T, min: T) -> Result<(), ConfigError> {
    ensure(value >= min, || format!("{name} must be at least {min}: {value} is less"))
}

/// Checks that the address called `name` is a multicast group. The error gives `example` as a valid group.
///
/// # Errors
/// [`ConfigError::Value`] with the example.
pub fn multicast_group(name: &str, group: SocketAddrV4, example: &str) -> Result<(), ConfigError> {
    ensure(group.ip().is_multicast(), || format!("{name}: {group} is not a multicast group, e.g. {example}"))
}

fn ensure(is_right: bool, message: impl FnOnce() -> String) -> Result<(), ConfigError> {
    if is_right { Ok(()) } else { Err(ConfigError::value(message())) }
}

//! Human-readable values: `250ns`, `64MiB`, `0.1%`, `"100.25"`.

use std::fmt;
use std::str::FromStr;

use tickpath_types::{Nanos, ParsePriceError, Price};

use crate::ConfigError;

/// Splits a value such as `64MiB` into its number and its unit.
fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// Returns a decimal times `scale`, exactly. `None` when `number` is not a decimal, or the product is not a
/// whole number or overflows.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() {
        return None;
    }
    let mut value = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let mut place = scale;
    for digit in fraction.bytes() {
        let digit = u64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
        // `place` is the weight of the digit. If the weight is not a whole number, the digit must be 0.
        let is_whole = place != 0 && place.is_multiple_of(10);
        place = if is_whole { place / 10 } else { 0 };
        if place == 0 && digit != 0 {
            return None;
        }
        value = value.checked_add(digit * place)?;
    }
    Some(value)
}

/// Implements serde through the type's `FromStr` and `Display`, so that a serialized value deserializes to
/// the same value.
#[macro_export]
macro_rules! as_text {
    ($name:ident) => {
        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as ::serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(::serde::de::Error::custom)
            }
        }
    };
}

/// Units of durations, in nanoseconds.
const TIMES: &[(u64, &str)] = &[
    (3_600_000_000_000, "h"),
    (60_000_000_000, "m"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
    (1_000, "us"),
    (1, "ns"),
];
/// Units of sizes, in bytes.
const SIZES: &[(u64, &str)] = &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];

fn scale_of(units: &[(u64, &str)], unit: &str) -> Option<u64> {
    units.iter().find(|(_, name)| *name == unit).map(|(scale, _)| *scale)
}

/// Writes a value in the largest unit in which it is a whole number; writes 0 in the smallest unit.
fn write_in(units: &[(u64, &str)], value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_whole = |scale: u64| scale == 1 || value != 0 && value.is_multiple_of(scale);
    let (scale, unit) =
        units.iter().find(|(scale, _)| is_whole(*scale)).expect("all are whole in the smallest");
    write!(f, "{}{unit}", value / scale)
}

/// A duration: a number and one of `ns`, `us`, `ms`, `s`, `m`, `h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub Nanos);

as_text!(Duration);

impl FromStr for Duration {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split_unit(text);
        let scale = scale_of(TIMES, if unit == "µs" { "us" } else { unit });
        scale.and_then(|scale| scaled(number, scale)).map(|value| Duration(Nanos(value))).ok_or_else(|| {
            ConfigError::value(format!("'{text}' is not a duration: write e.g. 250ns, 10us, 5ms, 20s, 1m"))
        })
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in(TIMES, self.0.0, f)
    }
}

/// A number of bytes: a whole number and one of `B`, `KiB`, `MiB`, `GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

as_text!(ByteSize);

impl FromStr for ByteSize {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split_unit(text);
        let size = scale_of(SIZES, unit).and_then(|scale| number.parse::<u64>().ok()?.checked_mul(scale));
        size.map(ByteSize).ok_or_else(|| {
            ConfigError::value(format!("'{text}' is not a size: write e.g. 512B, 64KiB, 64MiB, 1GiB"))
        })
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_in(SIZES, self.0, f)
    }
}

/// A fraction between 0% and 100%, stored in parts per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fraction {
    /// Parts per million.
    pub ppm: u32,
}

as_text!(Fraction);

impl FromStr for Fraction {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split_unit(text);
        let scale = match unit {
            "%" => Some(10_000),
            "ppm" => Some(1),
            "" if number == "0" => Some(0),
            _ => None,
        };
        scale
            .and_then(|scale| scaled(number, scale))
            .filter(|ppm| *ppm <= 1_000_000)
            .and_then(|ppm| u32::try_from(ppm).ok())
            .map(|ppm| Fraction { ppm })
            .ok_or_else(|| {
                ConfigError::value(format!(
                    "'{text}' is not a share of 0% to 100%: write e.g. 0.1%, 5%, 250ppm"
                ))
            })
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.ppm / 10_000;
        let rest = format!("{:04}", self.ppm % 10_000);
        match rest.trim_end_matches('0') {
            "" => write!(f, "{whole}%"),
            places => write!(f, "{whole}.{places}%"),
        }
    }
}

/// A price that is serialized as text, so that no floating-point conversion occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceText(pub Price);

as_text!(PriceText);

impl FromStr for PriceText {
    type Err = ParsePriceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Price::parse(text).map(PriceText)
    }
}

impl fmt::Display for PriceText {
    /// Writes the price with two decimals, or more if needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let (whole, places) = text.split_once('.').unwrap_or((&text, ""));
        write!(f, "{whole}.{:0<2}", places.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, nanos) in
            [("250ns", 250), ("1.5us", 1_500), ("5 ms", 5_000_000), ("20s", 20_000_000_000), ("0s", 0)]
        {
            assert_eq!(text.parse::<Duration>().unwrap().0, Nanos(nanos), "{text}");
        }
        for text in [
            "",
            "5",
            "5 parsecs",
            "-1s",
            "1.5ns",
            "1.05ns",
            "1.00001ns",
            "s",
            "1.x s",
            "99999999999999999999s",
        ] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
        assert_eq!("1.0ns".parse::<Duration>().unwrap().0, Nanos(1), "zeros say nothing");
        assert_eq!("0.000000001s".parse::<Duration>().unwrap().0, Nanos(1));
        assert_eq!(Duration(Nanos(1_500)).to_string(), "1500ns");
        assert_eq!(Duration(Nanos::from_secs(60)).to_string(), "1m");
    }

    #[test]
    fn sizes_and_fractions() {
        assert_eq!("64MiB".parse::<ByteSize>().unwrap(), ByteSize(64 << 20));
        assert!("64MB".parse::<ByteSize>().is_err());
        assert_eq!(ByteSize(3 << 10).to_string(), "3KiB");
        for (text, ppm) in [("0.1%", 1_000), ("0", 0), ("100%", 1_000_000), ("250ppm", 250), ("0.0001%", 1)] {
            assert_eq!(text.parse::<Fraction>().unwrap().ppm, ppm, "{text}");
        }
        for text in ["101%", "0.1", "0.00001%", "0.000001%", "0.10000001%", "1.05ppm", "-1%", "%"] {
            assert!(text.parse::<Fraction>().is_err(), "{text}");
        }
        assert_eq!(Fraction { ppm: 1_000 }.to_string(), "0.1%");
        assert_eq!(Fraction { ppm: 50_000 }.to_string(), "5%");
    }

    #[test]
    fn prices_have_at_least_two_decimals() {
        for (text, written) in
            [("100", "100.00"), ("0.005", "0.005"), ("1.25", "1.25"), ("-0.0001", "-0.0001")]
        {
            let price: PriceText = text.parse().unwrap();
            assert_eq!(price.to_string(), written);
            assert_eq!(price.to_string().parse::<PriceText>().unwrap(), price);
        }
    }
}

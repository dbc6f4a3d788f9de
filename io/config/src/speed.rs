//! The playback speed of recorded data.

use std::fmt;
use std::str::FromStr;

use crate::ConfigError;

/// Playback speed of recorded data: `max`, or a multiple of real time such as `10x`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speed {
    /// As fast as possible.
    #[default]
    Max,
    /// Multiple of the recorded speed, in hundredths: 100 is the recorded speed. Never 0.
    Hundredths(u64),
}

impl FromStr for Speed {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "max" {
            return Ok(Speed::Max);
        }
        let hundredths = text.strip_suffix('x').and_then(hundredths).filter(|hundredths| *hundredths != 0);
        hundredths
            .map(Speed::Hundredths)
            .ok_or_else(|| ConfigError::value(format!("'{text}' is not a speed: write max, 1x, 10x or 0.5x")))
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Speed::Max => f.write_str("max"),
            Speed::Hundredths(hundredths) if hundredths.is_multiple_of(100) => {
                write!(f, "{}x", hundredths / 100)
            }
            Speed::Hundredths(hundredths) => write!(f, "{}.{:02}x", hundredths / 100, hundredths % 100),
        }
    }
}

/// Parses a number with at most two decimals; returns it in hundredths.
fn hundredths(number: &str) -> Option<u64> {
    let (whole, places) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || places.len() > 2 {
        return None;
    }
    // Rejects signs, which `parse` would accept.
    let digits = format!("{whole}{places:0<2}");
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_exact_multiples() {
        for (text, speed) in [
            ("max", Speed::Max),
            ("1x", Speed::Hundredths(100)),
            ("0.5x", Speed::Hundredths(50)),
            ("12.25x", Speed::Hundredths(1_225)),
        ] {
            assert_eq!(text.parse::<Speed>().unwrap(), speed, "{text}");
            assert_eq!(speed.to_string().parse::<Speed>().unwrap(), speed);
        }
        for text in ["", "x", "1", "0x", "0.00x", "-1x", "+1x", "1.234x", "1.+5x", "fast", ".5x"] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
    }
}

//! Lengths of candles.

use std::fmt;

const MINUTE_SECS: u32 = 60;
/// Names and minutes (Deribit API v2, `chart.trades`, `public/get_tradingview_chart_data`).
const ALL: [(&str, u32); Resolution::COUNT] = [
    ("1", 1),
    ("3", 3),
    ("5", 5),
    ("10", 10),
    ("15", 15),
    ("30", 30),
    ("60", 60),
    ("120", 120),
    ("180", 180),
    ("360", 360),
    ("720", 720),
    ("1D", 1_440),
];

/// Length of a candle: minutes, or one day.
///
/// ```
/// use tickpath_deribit::resolution::Resolution;
///
/// let day = Resolution::named("1D").unwrap();
/// assert_eq!((day.name(), day.secs()), ("1D", 86_400));
/// assert_eq!(Resolution::named("2"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resolution(u8);

impl Resolution {
    /// Number of lengths.
    pub const COUNT: usize = 12;

    /// All lengths, in ascending order.
    pub fn all() -> impl Iterator<Item = Resolution> {
        (0..Resolution::COUNT as u8).map(Resolution)
    }

    /// Length with this name; `None` if the venue does not support it.
    #[must_use]
    pub fn named(name: &str) -> Option<Resolution> {
        ALL.iter().position(|(known, _)| *known == name).map(|place| Resolution(place as u8))
    }

    /// Name in channels and params.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ALL[self.0 as usize].0
    }

    /// Length in seconds.
    #[must_use]
    pub const fn secs(self) -> u32 {
        ALL[self.0 as usize].1 * MINUTE_SECS
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name_and_no_other_text_is_one() {
        for one in Resolution::all() {
            assert_eq!(Resolution::named(one.name()), Some(one));
            let is_of_minutes = one.name().parse() == Ok(one.secs() / MINUTE_SECS);
            assert!(is_of_minutes || (one.name(), one.secs()) == ("1D", 86_400), "{one}");
        }
        assert!(Resolution::all().is_sorted_by_key(Resolution::secs));
        for other in ["", "0", "2", "01", "1d", "1440", "-1"] {
            assert_eq!(Resolution::named(other), None, "{other}");
        }
    }
}

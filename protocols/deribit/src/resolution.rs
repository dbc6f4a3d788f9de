//! Lengths of candles.

use std::fmt;

const MINUTE_SECS: u32 = 60;
/// As the venue names them, and in minutes (Deribit API v2, `chart.trades`, `public/get_tradingview_chart_data`).
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

/// A length that candles have: minutes, or a day.
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
    /// How many there are.
    pub const COUNT: usize = 12;

    /// All of them, the shortest first.
    pub fn all() -> impl Iterator<Item = Resolution> {
        (0..Resolution::COUNT as u8).map(Resolution)
    }

    /// The one of a name; none where the venue has no such.
    #[must_use]
    pub fn named(name: &str) -> Option<Resolution> {
        ALL.iter().position(|(known, _)| *known == name).map(|place| Resolution(place as u8))
    }

    /// As channels and params name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ALL[self.0 as usize].0
    }

    /// In seconds.
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

//! Time zones of exchanges.

use std::fmt;
use std::str::FromStr;

use crate::Date;

const SECONDS_PER_DAY: i64 = 86_400;
const SECONDS_PER_HOUR: i64 = 3_600;
const NS_PER_SEC: i64 = 1_000_000_000;

/// Time zone of an exchange's local clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Fixed offset from UTC, in seconds; positive when ahead.
    Fixed(i32),
    /// A zone of the United States, with summer time.
    UnitedStates {
        /// Hours behind UTC in winter (5 for Eastern, 6 for Central); one less in summer.
        hours_behind: u8,
    },
}

impl Zone {
    /// Coordinated Universal Time.
    pub const UTC: Zone = Zone::Fixed(0);
    /// Eastern Time, the zone of New York.
    pub const EASTERN: Zone = Zone::UnitedStates { hours_behind: 5 };
    /// Central Time, the zone of Chicago.
    pub const CENTRAL: Zone = Zone::UnitedStates { hours_behind: 6 };

    /// Parses `+HH:MM` or `-HH:MM` into seconds ahead of UTC; `None` for other text.
    #[must_use]
    pub fn offset_s(text: &str) -> Option<i32> {
        let (sign, rest) = match text.strip_prefix('+') {
            Some(rest) => (1, rest),
            None => (-1, text.strip_prefix('-')?),
        };
        let (hours, minutes) = rest.split_once(':')?;
        let digits = |part: &str| {
            let is_two = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
            is_two.then(|| part.parse::<i32>().ok())?
        };
        let (hours, minutes) = (digits(hours)?, digits(minutes)?);
        (hours <= 14 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
    }

    /// Offset from UTC at the UTC time `utc_ns`, in seconds; positive when ahead.
    ///
    /// Source: the Uniform Time Act of the United States as amended. Summer time since 2007 is from the
    /// second Sunday of March to the first Sunday of November, 1987 to 2006 from the first Sunday of April to
    /// the last Sunday of October; clocks change at 02:00. Earlier years use the rule of 1987.
    #[must_use]
    pub fn ahead_of_utc_s(self, utc_ns: u64) -> i64 {
        match self {
            Zone::Fixed(seconds) => i64::from(seconds),
            Zone::UnitedStates { hours_behind } => {
                let standard = -i64::from(hours_behind) * SECONDS_PER_HOUR;
                let local = (utc_ns / NS_PER_SEC as u64).cast_signed() + standard;
                let (year, ..) = Date::of_day((local / SECONDS_PER_DAY).max(0).cast_unsigned()).parts();
                // `start` and `end` are in standard time; summer time ends at 01:00 standard time.
                let start = summer_start(year) * SECONDS_PER_DAY + 2 * SECONDS_PER_HOUR;
                let end = summer_end(year) * SECONDS_PER_DAY + SECONDS_PER_HOUR;
                if (start..end).contains(&local) { standard + SECONDS_PER_HOUR } else { standard }
            }
        }
    }

    /// Local date at the UTC time `utc_ns`.
    #[must_use]
    pub fn date_at(self, utc_ns: u64) -> Date {
        Date::of_day(self.local_ns(utc_ns) / (SECONDS_PER_DAY * NS_PER_SEC) as u64)
    }

    /// Local time at the UTC time `utc_ns`, as nanoseconds since 1970-01-01.
    #[must_use]
    pub fn local_ns(self, utc_ns: u64) -> u64 {
        utc_ns.saturating_add_signed(self.ahead_of_utc_s(utc_ns).saturating_mul(NS_PER_SEC))
    }

    /// UTC time of a local time (nanoseconds since 1970-01-01). If the local time occurs twice, at the end of
    /// summer time, the earlier UTC time is returned.
    #[must_use]
    pub fn utc_ns(self, local_ns: u64) -> u64 {
        // Assume summer time first. If it does not apply at the result, standard time applies.
        let back = |seconds: i64| local_ns.saturating_add_signed((-seconds).saturating_mul(NS_PER_SEC));
        match self {
            Zone::Fixed(seconds) => back(i64::from(seconds)),
            Zone::UnitedStates { hours_behind } => {
                let standard = -i64::from(hours_behind) * SECONDS_PER_HOUR;
                let summer = back(standard + SECONDS_PER_HOUR);
                if self.ahead_of_utc_s(summer) > standard { summer } else { back(standard) }
            }
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Zone::UTC => f.write_str("UTC"),
            Zone::EASTERN => f.write_str("ET"),
            Zone::CENTRAL => f.write_str("CT"),
            Zone::UnitedStates { hours_behind } => write!(f, "US-{hours_behind}"),
            Zone::Fixed(seconds) => {
                let sign = if seconds < 0 { '-' } else { '+' };
                let minutes = seconds.unsigned_abs() / 60;
                write!(f, "UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

/// The text is not a time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a time zone: write ET (New York), CT (Chicago), UTC, or hours ahead such as +01:00")]
pub struct ParseZoneError {
    text: String,
}

impl FromStr for Zone {
    type Err = ParseZoneError;

    fn from_str(text: &str) -> Result<Zone, ParseZoneError> {
        match text.to_ascii_uppercase().as_str() {
            "ET" | "EASTERN" | "AMERICA/NEW_YORK" => Ok(Zone::EASTERN),
            "CT" | "CENTRAL" | "AMERICA/CHICAGO" => Ok(Zone::CENTRAL),
            "UTC" | "Z" => Ok(Zone::UTC),
            other => {
                Zone::offset_s(other).map(Zone::Fixed).ok_or_else(|| ParseZoneError { text: text.to_owned() })
            }
        }
    }
}

/// The first Sunday on or after `day`; days count from 1970-01-01, a Thursday.
const fn sunday_from(day: i64) -> i64 {
    day + (10 - day.rem_euclid(7)) % 7
}

fn summer_start(year: u64) -> i64 {
    sunday_from(if year >= 2007 { day_of(year, 3, 8) } else { day_of(year, 4, 1) })
}

fn summer_end(year: u64) -> i64 {
    sunday_from(if year >= 2007 { day_of(year, 11, 1) } else { day_of(year, 10, 25) })
}

fn day_of(year: u64, month: u64, day: u64) -> i64 {
    Date::new(year, month, day).map_or(0, Date::day).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> u64 {
        let (day, time) = text.split_once(' ').unwrap();
        let day: Date = day.parse().unwrap();
        let mut seconds = 0;
        for part in time.split(':') {
            seconds = seconds * 60 + part.parse::<u64>().unwrap();
        }
        (day.day() * 86_400 + seconds) * 1_000_000_000
    }

    #[test]
    fn clocks_change_at_the_statutory_times() {
        // The offsets are those of `TZ=America/New_York date -d @...`, on both sides of clock changes.
        for (time, hours) in [
            ("2023-03-12 06:59:59", -5),
            ("2023-03-12 07:00:00", -4),
            ("2023-11-05 05:59:59", -4),
            ("2023-11-05 06:00:00", -5),
            ("2019-12-30 09:00:00", -5),
            ("2017-04-25 15:03:18", -4),
            ("2006-04-02 06:59:59", -5),
            ("2006-04-02 07:00:00", -4),
            ("2006-10-29 06:00:00", -5),
            ("2026-03-08 07:00:00", -4),
            ("2026-11-01 06:00:00", -5),
        ] {
            assert_eq!(Zone::EASTERN.ahead_of_utc_s(utc(time)), hours * 3_600, "{time}");
        }
        assert_eq!(Zone::CENTRAL.ahead_of_utc_s(utc("2023-03-12 08:00:00")), -5 * 3_600);
        assert_eq!(Zone::EASTERN.date_at(utc("2023-08-23 03:59:59")).to_string(), "2023-08-22");
        assert_eq!(Zone::EASTERN.date_at(utc("2023-08-23 04:00:00")).to_string(), "2023-08-23");
    }

    #[test]
    fn local_times_convert_back_to_utc() {
        for zone in [Zone::UTC, Zone::EASTERN, Zone::CENTRAL, Zone::Fixed(3_600)] {
            for hour in 0..24 * 400 {
                let time = utc("2022-12-20 00:00:00") + hour * 3_600_000_000_000;
                let again = zone.utc_ns(zone.local_ns(time));
                // The local hour before the end of summer time occurs twice.
                assert!(again == time || time - again == 3_600_000_000_000, "{zone} {hour}");
            }
        }
    }

    #[test]
    fn zones_are_read() {
        for (text, shown) in
            [("et", "ET"), ("CT", "CT"), ("utc", "UTC"), ("+01:00", "UTC+01:00"), ("-03:30", "UTC-03:30")]
        {
            assert_eq!(text.parse::<Zone>().unwrap().to_string(), shown);
        }
        for text in ["", "EDT", "+1", "+15:00", "01:00"] {
            assert!(text.parse::<Zone>().is_err(), "{text}");
        }
    }
}

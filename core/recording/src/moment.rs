//! Times of a recording in text form.

use std::fmt;
use std::str::FromStr;

use tickpath_types::{Date, Zone};

use crate::TimeBase;

const NS_PER_SEC: u64 = 1_000_000_000;
const NS_PER_DAY: u64 = 86_400 * NS_PER_SEC;
/// A time of day, perhaps with a date: `09:30:00`, `15:59:59.999999999`, `2023-12-25T23:00:00`.
///
/// The time is in the exchange's zone (Eastern Time for ITCH, LOBSTER and captures, UTC for DBN), unless
/// another zone is requested. Without a date it is on the session's day, or on the recording's first day if
/// the session's day is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Days since 1970-01-01; `None` without a date.
    day: Option<u64>,
    /// Nanoseconds since midnight.
    ns: u64,
}

/// Parse error: the text is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a time: write HH:MM:SS, with a fraction or a date before it if need be, e.g. 09:30:00.5 or 2023-12-25T23:00:00"
)]
pub struct ParseMomentError {
    text: String,
}

impl FromStr for Moment {
    type Err = ParseMomentError;

    fn from_str(text: &str) -> Result<Moment, ParseMomentError> {
        let (date, time) = match text.split_once('T') {
            Some((date, time)) => (Some(date), time),
            None => (None, text),
        };
        let day = date.map(str::parse::<Date>).transpose();
        match (day, parse_time(time)) {
            (Ok(day), Some(ns)) => Ok(Moment { day: day.map(Date::day), ns }),
            _ => Err(ParseMomentError { text: text.to_owned() }),
        }
    }
}

impl Moment {
    /// Converts to the recording's time base; `first_ns` is the time of the recording's first message.
    /// Returns `None` if the conversion needs the session's date and that is unknown.
    pub(crate) fn in_recording(self, calendar: &Calendar, first_ns: u64) -> Option<u64> {
        match (calendar.base, self.day) {
            (TimeBase::Midnight, day) if calendar.zone != calendar.midnight => {
                let session = calendar.date?.day();
                let utc_ns = calendar.zone.utc_ns(day.unwrap_or(session) * NS_PER_DAY + self.ns);
                Some(utc_ns.saturating_sub(calendar.midnight_ns()?))
            }
            (TimeBase::Midnight, None) => Some(self.ns),
            (TimeBase::Midnight, Some(day)) => {
                let session = calendar.date?.day();
                // A day before the session's day precedes all times; a day after it follows them all.
                Some(match day.cmp(&session) {
                    std::cmp::Ordering::Less => 0,
                    std::cmp::Ordering::Equal => self.ns,
                    std::cmp::Ordering::Greater => u64::MAX - 1,
                })
            }
            (TimeBase::UnixEpoch, day) => {
                let zone = calendar.zone;
                let day = day.or(calendar.date.map(Date::day)).unwrap_or(zone.date_at(first_ns).day());
                Some(zone.utc_ns(day * NS_PER_DAY + self.ns))
            }
        }
    }
}

/// Converts `HH:MM:SS`, with up to nine decimals, to nanoseconds since midnight. Hour 24 is valid, since the
/// day on which clocks go back has 25 hours.
fn parse_time(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, part)| (whole, Some(part)));
    let mut parts = whole.split(':');
    let mut next = |max: u64| {
        let part = parts.next().filter(|part| part.len() == 2)?;
        digits(part).filter(|value| *value <= max)
    };
    let seconds = next(24)? * 3_600 + next(59)? * 60 + next(59)?;
    let ns = match fraction {
        Some(part) if (1..=9).contains(&part.len()) => digits(&format!("{part:0<9}"))?,
        Some(_) => return None,
        None => 0,
    };
    parts.next().is_none().then_some(seconds * NS_PER_SEC + ns)
}

fn digits(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Epoch, time zones and session date of a recording's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// The epoch of the times.
    pub base: TimeBase,
    /// Time zone of `--from`, `--to` and the report.
    pub zone: Zone,
    /// Time zone of the midnight from which times count: New York for ITCH and LOBSTER, UTC for a Tickpath
    /// venue.
    pub midnight: Zone,
    /// The day of the session, if known.
    pub date: Option<Date>,
}

impl Calendar {
    /// Start of the session's day, in nanoseconds since 1970-01-01 UTC; `None` if the day is unknown.
    fn midnight_ns(&self) -> Option<u64> {
        self.date.map(|session| self.midnight.utc_ns(session.day() * NS_PER_DAY))
    }

    /// Nanoseconds to add to a recorded time to count from 1970-01-01 UTC; 0 if the day is unknown.
    #[must_use]
    pub fn epoch_offset_ns(&self) -> u64 {
        match self.base {
            TimeBase::UnixEpoch => 0,
            TimeBase::Midnight => self.midnight_ns().unwrap_or(0),
        }
    }
}

/// A time of a recording, for a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedTime {
    /// Time in the recording's time base.
    pub ns: u64,
    /// Epoch, time zones and session date of the recording.
    pub calendar: Calendar,
}

impl fmt::Display for RecordedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Calendar { base, zone, midnight, .. } = self.calendar;
        let local_ns = match (base, self.calendar.midnight_ns()) {
            (TimeBase::UnixEpoch, _) => Some(zone.local_ns(self.ns)),
            (TimeBase::Midnight, Some(midnight_ns)) => {
                Some(zone.local_ns(midnight_ns.saturating_add(self.ns)))
            }
            (TimeBase::Midnight, None) => None,
        };
        let of_day = match local_ns {
            Some(local_ns) => {
                write!(f, "{} ", Date::of_day(local_ns / NS_PER_DAY))?;
                local_ns % NS_PER_DAY
            }
            None => self.ns,
        };
        let seconds = of_day / NS_PER_SEC;
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(f, "{hour:02}:{minute:02}:{second:02}.{:09}", of_day % NS_PER_SEC)?;
        match local_ns {
            Some(_) => write!(f, " {zone}"),
            // Without a date the time cannot be converted to `zone`: it remains in the zone of its midnight.
            None if zone != midnight => write!(f, " {midnight}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(base: TimeBase, zone: Zone, date: Option<&str>) -> Calendar {
        Calendar { base, zone, midnight: Zone::EASTERN, date: date.map(|date| date.parse().unwrap()) }
    }

    #[test]
    fn times_are_exact() {
        let calendar = calendar(TimeBase::Midnight, Zone::EASTERN, None);
        let ns = |text: &str| text.parse::<Moment>().unwrap().in_recording(&calendar, 0);
        assert_eq!(ns("09:30:00"), Some(34_200 * NS_PER_SEC));
        assert_eq!(ns("09:30:00.5"), Some(34_200 * NS_PER_SEC + 500_000_000));
        assert_eq!(ns("00:00:00.000000001"), Some(1));
        assert_eq!(ns("2023-12-25T00:00:00"), None);
        let times = ["", "9:30:00", "09:30", "09:60:00", "25:00:00", "09:30:00.", "09:30:00.1234567890", "x"];
        let others = ["-1:00:00", "2023-02-29T00:00:00", "2023-13-01T00:00:00", "09:30:00:00"];
        for text in times.into_iter().chain(others) {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let calendar = calendar(TimeBase::UnixEpoch, Zone::UTC, None);
        let day = |text: &str| text.parse::<Moment>().unwrap().in_recording(&calendar, 0).unwrap();
        // Expected values from `date -u -d ... +%s`.
        for (text, seconds) in [
            ("1970-01-01T00:00:00", 0),
            ("2000-02-29T00:00:00", 951_782_400),
            ("2023-12-25T13:00:05", 1_703_509_205),
            ("2100-03-01T00:00:00", 4_107_542_400),
        ] {
            assert_eq!(day(text), seconds * NS_PER_SEC, "{text}");
            let shown = RecordedTime { ns: day(text), calendar }.to_string();
            assert_eq!(shown, format!("{}.000000000 UTC", text.replace('T', " ")));
        }
        let noon: Moment = "12:00:00".parse().unwrap();
        assert_eq!(noon.in_recording(&calendar, 3 * NS_PER_DAY + 5), Some(7 * NS_PER_DAY / 2));
    }

    #[test]
    fn times_from_midnight_are_the_exchanges_whatever_zone_people_mean() {
        let opened = 34_200 * NS_PER_SEC;
        // Half past nine in New York is 13:30 UTC in summer and 14:30 in winter.
        for (date, utc) in [("2023-08-22", "13:30:00"), ("2023-12-22", "14:30:00")] {
            let calendar = calendar(TimeBase::Midnight, Zone::UTC, Some(date));
            assert_eq!(utc.parse::<Moment>().unwrap().in_recording(&calendar, 0), Some(opened));
            let dated: Moment = format!("{date}T{utc}").parse().unwrap();
            assert_eq!(dated.in_recording(&calendar, 0), Some(opened));
            let shown = RecordedTime { ns: opened, calendar }.to_string();
            assert_eq!(shown, format!("{date} {utc}.000000000 UTC"));
        }
        // Without a date, times cannot be converted between zones.
        let undated = calendar(TimeBase::Midnight, Zone::UTC, None);
        assert_eq!("13:30:00".parse::<Moment>().unwrap().in_recording(&undated, 0), None);
        assert_eq!(RecordedTime { ns: opened, calendar: undated }.to_string(), "09:30:00.000000000 ET");
    }

    #[test]
    fn the_session_date_and_the_zone_give_times_their_meaning() {
        let eastern = |base, date| calendar(base, Zone::EASTERN, date);
        let open: Moment = "09:30:00".parse().unwrap();
        let dated: Moment = "2023-08-22T09:30:00".parse().unwrap();
        let late: Moment = "2023-08-23T00:00:00".parse().unwrap();
        let midnight = eastern(TimeBase::Midnight, Some("2023-08-22"));
        assert_eq!(dated.in_recording(&midnight, 0), open.in_recording(&midnight, 0));
        assert_eq!(late.in_recording(&midnight, 0), Some(u64::MAX - 1));
        // 09:30 in New York, which is 13:30 UTC in summer.
        let opened = 1_692_711_000 * NS_PER_SEC;
        for calendar in [eastern(TimeBase::UnixEpoch, None), eastern(TimeBase::UnixEpoch, Some("2023-08-22"))]
        {
            assert_eq!(open.in_recording(&calendar, opened + 5), Some(opened));
            let shown = RecordedTime { ns: opened, calendar }.to_string();
            assert_eq!(shown, "2023-08-22 09:30:00.000000000 ET");
        }
    }
}

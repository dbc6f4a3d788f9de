//! Calendar days.

use std::fmt;
use std::str::FromStr;

/// A day of the Gregorian calendar, from 1970-01-01 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// Days since 1970-01-01.
    day: u64,
}

impl Date {
    /// The day with this number of days since 1970-01-01.
    #[must_use]
    pub const fn of_day(day: u64) -> Date {
        Date { day }
    }

    /// Days since 1970-01-01.
    #[must_use]
    pub const fn day(self) -> u64 {
        self.day
    }

    /// Date from year (1970 or later), month and day of the month (from 1); `None` if there is no such day.
    pub(crate) fn new(year: u64, month: u64, day: u64) -> Option<Date> {
        if year < 1970 || !(1..=12).contains(&month) || !(1..=month_len(year, month)).contains(&day) {
            return None;
        }
        let of_year = (1..month).map(|month| month_len(year, month)).sum::<u64>() + day - 1;
        Some(Date { day: days_before_year(year) + of_year })
    }

    /// Year, month and day.
    pub(crate) fn parts(self) -> (u64, u64, u64) {
        let mut year = 1970 + self.day / 366;
        while days_before_year(year + 1) <= self.day {
            year += 1;
        }
        let mut left = self.day - days_before_year(year);
        let mut month = 1;
        while left >= month_len(year, month) {
            left -= month_len(year, month);
            month += 1;
        }
        (year, month, left + 1)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.parts();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// The text is not a date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a date: write YYYY-MM-DD, e.g. 2023-08-22")]
pub struct ParseDateError {
    text: String,
}

impl FromStr for Date {
    type Err = ParseDateError;

    fn from_str(text: &str) -> Result<Date, ParseDateError> {
        parse(text).ok_or_else(|| ParseDateError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<Date> {
    let mut parts = text.split('-');
    let mut next = |len: usize| {
        let part = parts.next().filter(|part| part.len() == len)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<u64>().ok())?
    };
    let (year, month, day) = (next(4)?, next(2)?, next(2)?);
    parts.next().is_none().then(|| Date::new(year, month, day))?
}

/// Number of days from 1970-01-01 to January 1 of a year (1970 or later).
fn days_before_year(year: u64) -> u64 {
    let leap_years = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leap_years(year - 1) - leap_years(1969)
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn month_len(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_match_the_calendar() {
        // Expected days: the output of `date -u -d ... +%s`, divided by 86400.
        for (text, day) in
            [("1970-01-01", 0), ("2000-02-29", 11_016), ("2023-12-25", 19_716), ("2100-03-01", 47_541)]
        {
            let date: Date = text.parse().unwrap();
            assert_eq!((date.day(), date.to_string().as_str()), (day, text));
        }
        for text in [
            "",
            "2023-02-29",
            "23-02-01",
            "2023-2-01",
            "2023-13-01",
            "2023-01-00",
            "1969-12-31",
            "2023-01-01-",
        ] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
    }
}

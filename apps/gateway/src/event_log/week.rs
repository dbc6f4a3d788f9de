//! ISO 8601 weeks.

use tickpath_config::Date;
use tickpath_types::Nanos;

const DAY_NS: u64 = 86_400_000_000_000;

/// The ISO week of a time since the Unix epoch, in UTC: `2026-W47`.
#[must_use]
pub fn week_of(utc: Nanos) -> String {
    let day = utc.0 / DAY_NS;
    // 1970-01-01 was a Thursday; a week belongs to the year of its Thursday.
    let weekday = (day + 3) % 7;
    let thursday = day + 3 - weekday;
    let text = Date::of_day(thursday).to_string();
    let year = &text[..4];
    let first: Date = format!("{year}-01-01").parse().expect("every year has a first of January");
    format!("{year}-W{:02}", (thursday - first.day()) / 7 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weeks_are_those_of_the_calendar() {
        for (date, week) in [
            ("1970-01-01", "1970-W01"),
            ("2026-11-22", "2026-W47"),
            ("2026-11-23", "2026-W48"),
            ("2026-01-01", "2026-W01"),
            ("2025-12-29", "2026-W01"),
            ("2025-12-28", "2025-W52"),
            ("2027-01-03", "2026-W53"),
            ("2027-01-04", "2027-W01"),
            ("2024-12-31", "2025-W01"),
            ("2021-01-03", "2020-W53"),
        ] {
            let day = date.parse::<Date>().unwrap().day();
            assert_eq!(week_of(Nanos(day * DAY_NS)), week, "{date}");
            assert_eq!(week_of(Nanos((day + 1) * DAY_NS - 1)), week, "{date}");
        }
    }
}

//! UTCTimestamp: `YYYYMMDD-HH:MM:SS` with optional milliseconds; further decimals are accepted as well.

use tickpath_types::Nanos;

/// Length of a written time, in bytes.
pub const TIME_LEN_MAX: usize = 21;

const SECS_PER_DAY: u64 = 86_400;
/// Last year accepted; nanoseconds since 1970 would fit until 2554.
const YEAR_MAX: u64 = 2550;
/// Last second of `YEAR_MAX`.
const SECS_MAX: u64 = 18_334_598_399;

/// Parses a UTCTimestamp as nanoseconds since the Unix epoch; `None` if malformed, before 1970 or after 2550.
///
/// One to nine decimals are accepted. Second 60, a leap second, is the first of the next minute.
#[inline]
#[must_use]
pub fn parse_time(text: &[u8]) -> Option<Nanos> {
    let (head, fraction) = text.split_at_checked(17)?;
    if (head[8], head[11], head[14]) != (b'-', b':', b':') {
        return None;
    }
    let days = days_since_epoch(&head[..8])?;
    let (hour, minute, second) = (number(&head[9..11])?, number(&head[12..14])?, number(&head[15..])?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let secs = days * SECS_PER_DAY + hour * 3600 + minute * 60 + second;
    let nanos = nanos_of(fraction)?;
    (secs <= SECS_MAX).then_some(Nanos(secs * 1_000_000_000 + nanos))
}

/// Parses `YYYYMMDD`, a LocalMktDate, as the start of this day in nanoseconds since the Unix epoch; `None` as
/// for [`parse_time`].
#[must_use]
pub fn parse_date(text: &[u8]) -> Option<Nanos> {
    let days = if text.len() == 8 { days_since_epoch(text)? } else { return None };
    Some(Nanos(days * SECS_PER_DAY * 1_000_000_000))
}

/// Number of days from 1 January 1970 to a date of eight characters.
fn days_since_epoch(text: &[u8]) -> Option<u64> {
    let (year, month, day) = (number(&text[..4])?, number(&text[4..6])?, number(&text[6..])?);
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let day_max = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1970..=YEAR_MAX).contains(&year) || !(1..=day_max).contains(&day) {
        return None;
    }
    // A year that begins in March ends with the leap day.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - DAYS_TO_EPOCH)
}

/// Number of days from 1 March of the year 0 to 1 January 1970.
const DAYS_TO_EPOCH: u64 = 719_468;

fn nanos_of(fraction: &[u8]) -> Option<u64> {
    let digits = match fraction {
        [] => return Some(0),
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => digits,
        _ => return None,
    };
    Some(number(digits)? * 10_u64.pow(9 - digits.len() as u32))
}

#[inline]
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Some(number * 10 + u64::from(digit - b'0')),
        _ => None,
    })
}

/// Writes a time with milliseconds, as in FIX 4.4; further decimals are truncated.
///
/// A time after 2550 is written as the last second of that year.
#[inline]
pub fn write_time(time: Nanos, out: &mut [u8; TIME_LEN_MAX]) -> &[u8] {
    let time = time.0.min(SECS_MAX * 1_000_000_000 + 999_999_999);
    let (secs, nanos) = (time / 1_000_000_000, time % 1_000_000_000);
    let (days, of_day) = (secs / SECS_PER_DAY, secs % SECS_PER_DAY);
    let (year, month, day) = date(days);
    out.copy_from_slice(b"00000000-00:00:00.000");
    digits(&mut out[..4], year);
    digits(&mut out[4..6], month);
    digits(&mut out[6..8], day);
    digits(&mut out[9..11], of_day / 3600);
    digits(&mut out[12..14], of_day / 60 % 60);
    digits(&mut out[15..17], of_day % 60);
    digits(&mut out[18..], nanos / 1_000_000);
    out
}

/// Year, month and day of a number of days since 1 January 1970.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_TO_EPOCH;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[inline]
fn digits(out: &mut [u8], mut number: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, nanos: u64) {
        assert_eq!(parse_time(text.as_bytes()), Some(Nanos(nanos)), "{text}");
        assert_eq!(write_time(Nanos(nanos), &mut [0; TIME_LEN_MAX]), text.as_bytes());
    }

    #[test]
    fn times_are_read_and_written() {
        check("19700101-00:00:00.000", 0);
        check("20190908-17:18:38.983", 1_567_963_118_983_000_000);
        check("20000301-00:00:00.000", 951_868_800_000_000_000);
        check("25501231-23:59:59.000", 18_334_598_399_000_000_000);
        // Other implementations send more decimals.
        for (text, nanos) in [
            ("20240229-23:59:59.123456", 1_709_251_199_123_456_000),
            ("20240229-23:59:59.123456789", 1_709_251_199_123_456_789),
        ] {
            assert_eq!(parse_time(text.as_bytes()), Some(Nanos(nanos)));
            assert_eq!(write_time(Nanos(nanos), &mut [0; TIME_LEN_MAX]), b"20240229-23:59:59.123");
        }
        assert_eq!(parse_time(b"19700101-00:00:01"), Some(Nanos::from_secs(1)));
        assert_eq!(parse_time(b"19700101-00:00:00.5"), Some(Nanos(500_000_000)));
        assert_eq!(parse_date(b"19700102"), Some(Nanos::DAY));
        assert_eq!((parse_date(b"1970010"), parse_date(b"19700132")), (None, None));
        assert_eq!(parse_time(b"19701231-23:59:60"), parse_time(b"19710101-00:00:00"));
    }

    #[test]
    fn every_day_is_written_as_it_is_read() {
        for day in 0..212_000_u64 {
            let time = Nanos(day * SECS_PER_DAY * 1_000_000_000);
            let mut out = [0; TIME_LEN_MAX];
            assert_eq!(parse_time(write_time(time, &mut out)), Some(time));
        }
        assert_eq!(&write_time(Nanos::MAX, &mut [0; TIME_LEN_MAX])[..8], b"25501231");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "20190908",
            "20190908-17:18",
            "20190908 17:18:38",
            "20190931-00:00:00",
            "20190229-00:00:00",
            "20191301-00:00:00",
            "20190100-00:00:00",
            "20190101-24:00:00",
            "20190101-00:60:00",
            "20190101-00:00:61",
            "20190101-00:00:00.",
            "20190101-00:00:00.0000000001",
            "20190101-00:00:00,5",
            "19691231-23:59:59",
            "26000101-00:00:00",
            "2019010a-00:00:00",
        ] {
            assert_eq!(parse_time(text.as_bytes()), None, "{text}");
        }
    }
}

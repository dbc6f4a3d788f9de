//! Numbers in readable form: thousand separators, exact prices, short units.

use std::time::Duration;

/// Formats `1234567` as `1,234,567`.
pub use tickpath_config::thousands as count;
use tickpath_types::Price;

/// Minimum number of decimals of a price.
const PRICE_DECIMALS_MIN: usize = 2;

/// Formats a signed count with thousands separators and `+` or `-`; zero has no sign.
pub fn signed(value: i64) -> String {
    with_sign(value.is_negative(), value != 0, count(value.unsigned_abs()))
}

/// Formats a rate, rounded to a whole number per second.
pub fn rate(value: f64) -> String {
    // The cast saturates: a negative or NaN rate shows as 0.
    count(value.round() as u64)
}

/// Formats a rate in at most six characters: `987`, `12.3k`, `1.23M`.
pub fn short_rate(value: f64) -> String {
    match value {
        v if v < 1e3 => rate(v),
        v if v < 1e6 => three_digits(v / 1e3, "k"),
        v if v < 1e9 => three_digits(v / 1e6, "M"),
        v => three_digits(v / 1e9, "G"),
    }
}

/// Returns the smallest number of decimals, at least two, that shows each of `prices` exactly.
pub fn price_decimals(prices: impl IntoIterator<Item = i128>) -> usize {
    prices.into_iter().map(decimals_needed).max().unwrap_or(0).max(PRICE_DECIMALS_MIN)
}

/// Formats a price with thousands separators.
pub fn price(price: Price, decimals: usize) -> String {
    decimal(i128::from(price.0), decimals)
}

/// Formats an amount in price units with `decimals` decimals and `+` or `-`; zero has no sign.
pub fn money(value: i128, decimals: usize) -> String {
    with_sign(value.is_negative(), value != 0, decimal_magnitude(value.unsigned_abs(), decimals))
}

/// Formats a latency with three significant digits: `850ns`, `12.3us`, `1.20ms`.
pub fn latency(ns: u64) -> String {
    match ns as f64 {
        _ if ns < 1_000 => format!("{ns}ns"),
        v if v < 999_500.0 => three_digits(v / 1e3, "us"),
        v if v < 999_500_000.0 => three_digits(v / 1e6, "ms"),
        v => three_digits(v / 1e9, "s"),
    }
}

/// Formats nanoseconds as microseconds without a unit, for table columns: `0.850`, `12.3`, `1,204`.
pub fn micros(ns: u64) -> String {
    match ns as f64 / 1e3 {
        v if v < 0.9995 => format!("{v:.3}"),
        v if v < 99.95 => three_digits(v, ""),
        v => count(v.round() as u64),
    }
}

/// Formats a duration as `01:23`, or from one hour on as `1:02:03`.
pub fn clock(time: Duration) -> String {
    let secs = time.as_secs();
    let (hours, minutes, seconds) = (secs / 3600, secs / 60 % 60, secs % 60);
    if hours == 0 {
        format!("{minutes:02}:{seconds:02}")
    } else {
        format!("{hours}:{minutes:02}:{seconds:02}")
    }
}

/// Formats a fraction, clamped to 0..=1, as a percentage, e.g. `82%`; NaN shows as `0%`.
pub fn percent(part: f64) -> String {
    format!("{:.0}%", clamp_part(part) * 100.0)
}

/// Clamps a fraction to 0..=1; NaN gives 0.
pub fn clamp_part(part: f64) -> f64 {
    if part.is_nan() { 0.0 } else { part.clamp(0.0, 1.0) }
}

/// Removes control characters, so that a name cannot move the cursor or break a line.
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

fn decimal(value: i128, decimals: usize) -> String {
    let sign = if value.is_negative() { "-" } else { "" };
    format!("{sign}{}", decimal_magnitude(value.unsigned_abs(), decimals))
}

fn decimal_magnitude(magnitude: u128, decimals: usize) -> String {
    let scale = u128::from(Price::SCALE.unsigned_abs());
    let fraction = format!("{:04}", magnitude % scale);
    format!("{}.{}", count(magnitude / scale), &fraction[..decimals])
}

fn decimals_needed(value: i128) -> usize {
    let mut fraction = value.unsigned_abs() % u128::from(Price::SCALE.unsigned_abs());
    let mut decimals = Price::DECIMALS;
    while decimals > 0 && fraction.is_multiple_of(10) {
        fraction /= 10;
        decimals -= 1;
    }
    decimals
}

fn with_sign(is_negative: bool, is_nonzero: bool, magnitude: String) -> String {
    match (is_negative, is_nonzero) {
        (true, _) => format!("-{magnitude}"),
        (false, true) => format!("+{magnitude}"),
        (false, false) => magnitude,
    }
}

fn three_digits(value: f64, unit: &str) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}{unit}"),
        v if v < 99.95 => format!("{v:.1}{unit}"),
        v => format!("{v:.0}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_rates_are_grouped() {
        assert_eq!(signed(i64::MIN), "-9,223,372,036,854,775,808");
        assert_eq!((signed(1_234), signed(0)), ("+1,234".into(), "0".into()));
        assert_eq!((rate(12_345.6), rate(-1.0), rate(f64::NAN)), ("12,346".into(), "0".into(), "0".into()));
        assert_eq!((short_rate(987.0), short_rate(12_345.0)), ("987".into(), "12.3k".into()));
        assert_eq!(short_rate(1_234_567.0), "1.23M");
    }

    #[test]
    fn prices_and_money_are_exact() {
        assert_eq!(price_decimals([1_000_000, 1_002_500]), 2);
        assert_eq!(price_decimals([1_002_510, 0]), 3);
        assert_eq!(price_decimals([1, 0]), 4);
        assert_eq!(price(Price(12_345_002_500), 2), "1,234,500.25");
        assert_eq!(price(Price(-5_000), 4), "-0.5000");
        assert_eq!(money(-123_456_789, 4), "-12,345.6789");
        assert_eq!((money(0, 2), money(2_500, 2)), ("0.00".into(), "+0.25".into()));
        assert_eq!(money(i128::MIN, 4).len(), "-17014118346046923173168730371588410.5728".len() + 11);
    }

    #[test]
    fn times_pick_their_unit() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1.00us"),
            (12_345, "12.3us"),
            (99_960, "100us"),
            (999_499, "999us"),
            (999_500, "1.00ms"),
            (1_204_000, "1.20ms"),
            (999_499_999, "999ms"),
            (2_500_000_000, "2.50s"),
        ] {
            assert_eq!(latency(ns), text);
        }
        for (ns, text) in [
            (0, "0.000"),
            (850, "0.850"),
            (1_000, "1.00"),
            (12_345, "12.3"),
            (99_960, "100"),
            (1_204_000, "1,204"),
        ] {
            assert_eq!(micros(ns), text);
        }
        assert_eq!(clock(Duration::from_secs(83)), "01:23");
        assert_eq!(clock(Duration::from_secs(3_723)), "1:02:03");
        assert_eq!(
            (percent(0.824), percent(f64::NAN), percent(7.0)),
            ("82%".into(), "0%".into(), "100%".into())
        );
    }

    #[test]
    fn control_characters_are_dropped() {
        assert_eq!(printable("a\x1b[31mb\nc"), "a[31mbc");
    }
}

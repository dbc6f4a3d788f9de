//! Conversion between ticks of the time-stamp counter and nanoseconds.
//!
//! This module reads no clocks: `io/agent` takes the samples.

use tickpath_types::Nanos;

/// The time-stamp counter and the wall clock, read at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSample {
    /// Value of the time-stamp counter.
    pub tsc: u64,
    /// Wall-clock time since the Unix epoch.
    pub utc: Nanos,
}

/// The linear conversion of ticks of the time-stamp counter to time.
///
/// A conversion is one fixed-point multiplication with 62 significant bits. Its rounding error is below a
/// nanosecond even over a year, so larger errors come from the rate and the sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    anchor: ClockSample,
    nanos_per_tick: Ratio,
    ticks_per_nano: Ratio,
}

/// The rate is outside a time-stamp counter's range (1 MHz to 100 GHz): a clock was set between the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{ticks} ticks in {nanos} ns is no rate of a time-stamp counter: take the samples again")]
pub struct CalibrationError {
    /// Ticks between the samples.
    pub ticks: u64,
    /// Nanoseconds between the samples.
    pub nanos: u64,
}

impl Calibration {
    /// Creates a calibration with the rate `ticks / time`; it converts the sample `anchor` exactly.
    ///
    /// # Errors
    /// [`CalibrationError`] if the rate is below 1 MHz or above 100 GHz.
    pub fn from_rate(ticks: u64, time: Nanos, anchor: ClockSample) -> Result<Calibration, CalibrationError> {
        let (per_tick_max, per_nano_max) = (1_000, 100);
        let (wide_ticks, wide_nanos) = (u128::from(ticks), u128::from(time.0));
        if ticks == 0 || wide_nanos > wide_ticks * per_tick_max || wide_ticks > wide_nanos * per_nano_max {
            return Err(CalibrationError { ticks, nanos: time.0 });
        }
        Ok(Calibration {
            anchor,
            nanos_per_tick: Ratio::new(time.0, ticks),
            ticks_per_nano: Ratio::new(ticks, time.0),
        })
    }

    /// Returns the calibration for a counter that already counts nanoseconds since the Unix epoch: the system
    /// clock or simulated time.
    #[must_use]
    pub fn identity() -> Calibration {
        let one = Ratio::new(1, 1);
        let epoch = ClockSample { tsc: 0, utc: Nanos::ZERO };
        Calibration { anchor: epoch, nanos_per_tick: one, ticks_per_nano: one }
    }

    /// The time since the Unix epoch at which the counter has the value `tsc`.
    #[inline]
    #[must_use]
    pub fn utc(&self, tsc: u64) -> Nanos {
        let ticks = tsc.wrapping_sub(self.anchor.tsc) as i64;
        Nanos(self.anchor.utc.0.saturating_add_signed(self.signed_nanos(ticks)))
    }

    /// Converts a time since the Unix epoch, such as a kernel's timestamp, to the counter's value.
    #[inline]
    #[must_use]
    pub fn tsc(&self, utc: Nanos) -> u64 {
        let nanos = utc.0.wrapping_sub(self.anchor.utc.0) as i64;
        let ticks = self.ticks_per_nano.of(nanos.unsigned_abs());
        if nanos < 0 { self.anchor.tsc.wrapping_sub(ticks) } else { self.anchor.tsc.wrapping_add(ticks) }
    }

    /// The duration of `ticks`, to the nearest nanosecond.
    #[inline]
    #[must_use]
    pub fn nanos(&self, ticks: u64) -> Nanos {
        Nanos(self.nanos_per_tick.of(ticks))
    }

    /// Converts a signed number of ticks to nanoseconds.
    #[inline]
    #[must_use]
    pub fn signed_nanos(&self, ticks: i64) -> i64 {
        let magnitude = self.nanos_per_tick.of(ticks.unsigned_abs()).min(i64::MAX as u64) as i64;
        if ticks < 0 { -magnitude } else { magnitude }
    }

    /// Converts a fractional number of ticks, such as a mean, to nanoseconds.
    pub(crate) fn fractional_nanos(&self, ticks: f64) -> f64 {
        ticks * self.nanos_per_tick.as_f64()
    }

    /// Converts a duration to ticks, rounded to the nearest tick.
    #[inline]
    #[must_use]
    pub fn ticks(&self, time: Nanos) -> u64 {
        self.ticks_per_nano.of(time.0)
    }

    /// Rate of the counter, in ticks per second.
    #[must_use]
    pub fn ticks_per_second(&self) -> u64 {
        self.ticks_per_nano.of(1_000_000_000)
    }

    /// Deviation of this conversion from a later sample, in parts per million of the time since the anchor:
    /// positive when the conversion is ahead of the clock. `None` for a sample at or before the anchor.
    #[must_use]
    pub fn drift_ppm(&self, sample: ClockSample) -> Option<f64> {
        let elapsed = sample.utc.0.checked_sub(self.anchor.utc.0).filter(|elapsed| *elapsed > 0)?;
        let ahead = self.utc(sample.tsc).0.wrapping_sub(sample.utc.0) as i64;
        Some(ahead as f64 / elapsed as f64 * 1e6)
    }
}

/// A positive factor in fixed point: `mult / 2^shift`, with `mult` from 2^62 to below 2^63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio {
    mult: u64,
    shift: u32,
}

impl Ratio {
    /// Creates the ratio `num / den`: both are positive, and neither exceeds 1,000 times the other.
    fn new(num: u64, den: u64) -> Ratio {
        let (num, den) = (u128::from(num), u128::from(den));
        // Start with a quotient of at most 63 bits, and double it until it has 63 bits.
        let mut shift = 52;
        while (num << (shift + 1)) / den < 1 << 63 {
            shift += 1;
        }
        Ratio { mult: ((num << shift) / den) as u64, shift }
    }

    fn as_f64(self) -> f64 {
        self.mult as f64 / 2_f64.powi(self.shift as i32)
    }

    /// Returns `value` times this ratio, rounded to the nearest integer; saturates.
    #[inline]
    fn of(self, value: u64) -> u64 {
        let product = u128::from(value) * u128::from(self.mult) + (1 << (self.shift - 1));
        u64::try_from(product >> self.shift).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NS: u64 = 86_400_000_000_000;
    const ANCHOR: ClockSample = ClockSample { tsc: 7_777_777_777, utc: Nanos(1_763_000_000_000_000_000) };

    fn calibration(ticks: u64, nanos: u64) -> Calibration {
        Calibration::from_rate(ticks, Nanos(nanos), ANCHOR).unwrap()
    }

    #[test]
    fn durations_are_exact_to_the_nearest_nanosecond_over_days() {
        let rates =
            [(26, 10), (2_599_999_983, 999_999_991), (24_000_000, 1_000_000_000), (1, 1), (3, 1), (5, 7)];
        for (num, den) in rates {
            let calibration = calibration(num, den);
            for ns in [0, 1, 9, 10, 999, 1_000_003, 60_000_000_000, DAY_NS, 30 * DAY_NS, 365 * DAY_NS + 7] {
                let ticks = (u128::from(ns) * u128::from(num) / u128::from(den)) as u64;
                let exact =
                    (u128::from(ticks) * u128::from(den) * 2 + u128::from(num)) / (u128::from(num) * 2);
                let off = calibration.nanos(ticks).0.abs_diff(exact as u64);
                // Beyond a day, a result with a fraction near one half may be rounded the other way.
                assert!(off <= u64::from(ns > DAY_NS), "{num}/{den} {ns}: off by {off}");
                let back = calibration.ticks(calibration.nanos(ticks));
                assert!(back.abs_diff(ticks) <= num.div_ceil(den), "{num}/{den} {ns}");
            }
        }
    }

    #[test]
    fn instants_lie_on_the_line_on_both_sides_of_the_anchor() {
        let calibration = calibration(26, 10);
        assert_eq!(calibration.utc(ANCHOR.tsc), ANCHOR.utc);
        assert_eq!(calibration.utc(ANCHOR.tsc + 260), Nanos(ANCHOR.utc.0 + 100));
        assert_eq!(calibration.utc(ANCHOR.tsc - 260), Nanos(ANCHOR.utc.0 - 100));
        for offset in [-i64::from(u32::MAX), -1, 0, 1, 5 * DAY_NS as i64] {
            let utc = Nanos(ANCHOR.utc.0.saturating_add_signed(offset));
            assert_eq!(calibration.utc(calibration.tsc(utc)), utc);
        }
        assert_eq!(calibration.ticks_per_second(), 2_600_000_000);
        assert_eq!(calibration.signed_nanos(-26), -10);
    }

    #[test]
    fn plausible_rates_have_bounds() {
        for (ticks, nanos, is_fine) in [
            (1, 1_000, true),
            (1, 1_001, false),
            (100, 1, true),
            (101, 1, false),
            (0, 1, false),
            (1, 0, false),
        ] {
            assert_eq!(
                Calibration::from_rate(ticks, Nanos(nanos), ANCHOR).is_ok(),
                is_fine,
                "{ticks}/{nanos}"
            );
        }
    }

    #[test]
    fn drift_is_signed_parts_per_million() {
        let calibration = calibration(26, 10);
        let after_1s = |extra_ticks| ClockSample {
            tsc: ANCHOR.tsc + 2_600_000_000 + extra_ticks,
            utc: ANCHOR.utc + Nanos(1_000_000_000),
        };
        assert_eq!(calibration.drift_ppm(after_1s(0)), Some(0.0));
        assert_eq!(calibration.drift_ppm(after_1s(26_000)), Some(10.0));
        let behind = ClockSample { tsc: ANCHOR.tsc + 2_599_740_000, ..after_1s(0) };
        assert_eq!(calibration.drift_ppm(behind), Some(-100.0));
        assert_eq!(calibration.drift_ppm(ANCHOR), None);
    }

    #[test]
    fn the_identity_counts_nanoseconds() {
        let identity = Calibration::identity();
        assert_eq!(identity.utc(123), Nanos(123));
        assert_eq!(identity.tsc(Nanos(u64::from(u32::MAX))), u64::from(u32::MAX));
        assert_eq!(identity.nanos(1 << 40), Nanos(1 << 40));
    }
}

//! Times and durations.

use std::fmt;
use std::ops::{Add, Sub};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A time or a duration in nanoseconds.
///
/// The origin of a time depends on the use. The `now` that agents receive counts from the Unix epoch. A time
/// in a command or an event counts from the latest midnight: it stays below [`Nanos::DAY`] and restarts from
/// zero each day.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
)]
#[repr(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The time at the origin, or a duration of zero.
    pub const ZERO: Nanos = Nanos(0);
    /// 24 hours.
    pub const DAY: Nanos = Nanos::from_secs(86_400);
    /// The latest time that can be represented.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// Duration of `micros` microseconds.
    #[must_use]
    #[inline]
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros * 1_000)
    }

    /// Duration of `millis` milliseconds.
    #[must_use]
    #[inline]
    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// Duration of `secs` seconds.
    #[must_use]
    #[inline]
    pub const fn from_secs(secs: u64) -> Nanos {
        Nanos(secs * 1_000_000_000)
    }

    /// Duration since `earlier`; zero if `earlier` is later.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// Time of day, for a time that counts from a midnight; every day has 24 hours.
    #[must_use]
    #[inline]
    pub const fn time_of_day(self) -> Nanos {
        Nanos(self.0 % Self::DAY.0)
    }

    /// This time or duration in seconds, for rates and for display.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Nanos {
    type Output = Nanos;

    #[inline]
    fn add(self, rhs: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(rhs.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;

    #[inline]
    fn sub(self, rhs: Nanos) -> Nanos {
        self.since(rhs)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0..10_000 => format!("{}ns", self.0),
            10_000..10_000_000 => format!("{:.1}us", self.0 as f64 / 1e3),
            10_000_000..10_000_000_000 => format!("{:.1}ms", self.0 as f64 / 1e6),
            _ => format!("{:.1}s", self.0 as f64 / 1e9),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_and_display_picks_a_unit() {
        assert_eq!(Nanos(5) - Nanos(7), Nanos::ZERO);
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
        assert_eq!((Nanos::DAY + Nanos(7)).time_of_day(), Nanos(7));
        assert_eq!((Nanos::DAY - Nanos(1)).time_of_day(), Nanos::DAY - Nanos(1));
        assert_eq!(Nanos(250).to_string(), "250ns");
        assert_eq!(Nanos::from_micros(25).to_string(), "25.0us");
        assert_eq!(Nanos::from_secs(20).to_string(), "20.0s");
    }
}

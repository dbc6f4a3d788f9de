//! The program's clock, and an estimate of the venue's.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tickpath_types::Nanos;

/// Age up to which an estimate of the venue's clock beats a newer one that is behind it.
const AGE_MAX: Nanos = Nanos::from_secs(60);
/// Upper bound of valid timestamps, in microseconds since 1970.
const YEAR_3000_US: u64 = 32_503_680_000_000_000;

/// The program's monotonic clock and the time of day.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts a clock at zero.
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Time since the start of the program.
    #[must_use]
    pub fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn unix_ms() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The venue's clock, estimated from its replies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VenueClock {
    /// The time when a reply arrived, and its send time by the venue, in microseconds since 1970.
    told: Option<(Nanos, u64)>,
}

impl VenueClock {
    /// Records a reply that the venue sent at `us_out`.
    pub(crate) fn hear(&mut self, at: Nanos, us_out: u64) {
        if !(1..YEAR_3000_US).contains(&us_out) {
            return;
        }
        // A delayed reply carries an old time. A clock that was set back is accepted only after `AGE_MAX`.
        let is_behind = self.told.is_some_and(|(then, us)| {
            let since = at.since(then);
            since < AGE_MAX && us_out < us.saturating_add(since.0 / 1_000)
        });
        if !is_behind {
            self.told = Some((at, us_out));
        }
    }

    /// The venue's time in milliseconds since 1970, late by the delay of a reply; `None` before the first.
    pub(crate) fn now_ms(&self, now: Nanos) -> Option<u64> {
        let (at, us) = self.told?;
        Some(us.saturating_add(now.since(at).0 / 1_000) / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_was_long_on_its_way_does_not_set_the_clock_back() {
        let mut clock = VenueClock::default();
        let second = Nanos::from_secs;
        assert_eq!(clock.now_ms(second(1)), None);
        for (at, us_out, ms) in [
            (1, 5_000_000, 5_000),
            (2, 6_001_000, 6_001),
            // Sent five seconds ago.
            (7, 6_002_000, 11_001),
            // Not a valid time.
            (8, u64::MAX, 12_001),
            // A venue clock that was set back is accepted after a minute.
            (70, 7_000_000, 7_000),
        ] {
            clock.hear(second(at), us_out);
            assert_eq!(clock.now_ms(second(at)), Some(ms), "{at}");
        }
    }
}

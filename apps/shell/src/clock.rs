//! The time of this program, and what is known of the venue's.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tickpath_types::Nanos;

/// How long what a reply told of the venue's clock is believed rather than a later one that is behind it.
const AGE_MAX: Nanos = Nanos::from_secs(60);
/// Microseconds from 1970 to a time that is none any more.
const YEAR_3000_US: u64 = 32_503_680_000_000_000;

/// The time of the program, and that of the day.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// One that begins now.
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Time since the program's start.
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

/// The venue's clock as far as its replies tell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VenueClock {
    /// When a reply came, and when the venue says that it sent it, in microseconds since 1970.
    told: Option<(Nanos, u64)>,
}

impl VenueClock {
    /// A reply came that was sent at `us_out`.
    pub(crate) fn hear(&mut self, at: Nanos, us_out: u64) {
        if !(1..YEAR_3000_US).contains(&us_out) {
            return;
        }
        // A reply that was long on its way tells of a time that is over; a clock that was set back is believed later.
        let is_behind = self.told.is_some_and(|(then, us)| {
            let since = at.since(then);
            since < AGE_MAX && us_out < us.saturating_add(since.0 / 1_000)
        });
        if !is_behind {
            self.told = Some((at, us_out));
        }
    }

    /// Milliseconds since 1970 by it, none before the first reply: behind it by what a reply takes on its way.
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
            // No time at all.
            (8, u64::MAX, 12_001),
            // A clock that was set back is that of the venue all the same.
            (70, 7_000_000, 7_000),
        ] {
            clock.hear(second(at), us_out);
            assert_eq!(clock.now_ms(second(at)), Some(ms), "{at}");
        }
    }
}

//! Fault injection: random faults, independent for each client.

use tickpath_types::{Nanos, Rng};

use super::settings::FaultSettings;

/// Maximum number of ticks omitted by one gap.
const GAP_MAX: u64 = 5;
/// Minimum duration of a stall; the maximum is twice as long.
const STALL_MIN: Nanos = Nanos::from_millis(200);
const PPM: u64 = 1_000_000;

/// A fault to inject into a client's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TickFault {
    /// Omit this number of ticks, beginning with the tick at the fault's place.
    Gap(u64),
    /// Flip the bit with this index, modulo the number of bits of a tick.
    Corrupt(usize),
}

/// A fault to inject into a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkFault {
    /// Send nothing until this time.
    StallUntil(Nanos),
    /// Disconnect.
    Disconnect,
}

/// The next fault of each kind for one client: tick faults by place, connection faults by time.
#[derive(Debug)]
pub(super) struct Faults {
    settings: FaultSettings,
    rng: Rng,
    gap_at: u64,
    corrupt_at: u64,
    stall_at: Nanos,
    disconnect_at: Nanos,
}

impl Faults {
    /// Creates the fault schedule of the client with number `client`, from `place` and `now` on.
    pub(super) fn new(settings: FaultSettings, seed: u64, client: u64, place: u64, now: Nanos) -> Faults {
        let rng = Rng::new(seed ^ client.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let never = Nanos::MAX;
        let mut faults =
            Faults { settings, rng, gap_at: 0, corrupt_at: 0, stall_at: never, disconnect_at: never };
        faults.begin(place, now);
        faults
    }

    /// Draws the place or time of the next fault of each kind, from `place` and `now` on.
    fn begin(&mut self, place: u64, now: Nanos) {
        self.gap_at = place.saturating_add(self.ticks_until(self.settings.gaps.ppm));
        self.corrupt_at = place.saturating_add(self.ticks_until(self.settings.corrupt.ppm));
        self.stall_at = self.time_after(now, self.settings.stall);
        self.disconnect_at = self.time_after(now, self.settings.disconnect);
    }

    /// Returns the place of the next tick with a fault, from `place` on. A fault before `place` was missed,
    /// so a new one is drawn.
    pub(super) fn next_place(&mut self, place: u64) -> u64 {
        if self.gap_at < place {
            self.gap_at = place.saturating_add(self.ticks_until(self.settings.gaps.ppm));
        }
        if self.corrupt_at < place {
            self.corrupt_at = place.saturating_add(self.ticks_until(self.settings.corrupt.ppm));
        }
        self.gap_at.min(self.corrupt_at)
    }

    /// Returns the fault at `place`, which must be the next place with a fault, and draws the following one.
    pub(super) fn take(&mut self, place: u64) -> TickFault {
        if self.gap_at <= place {
            self.gap_at = place.saturating_add(GAP_MAX + self.ticks_until(self.settings.gaps.ppm));
            return TickFault::Gap(1 + self.rng.below(GAP_MAX));
        }
        self.corrupt_at = place.saturating_add(1 + self.ticks_until(self.settings.corrupt.ppm));
        TickFault::Corrupt(self.rng.below(u64::MAX) as usize)
    }

    /// Returns the connection fault that is due, if any.
    pub(super) fn due(&mut self, now: Nanos) -> Option<LinkFault> {
        if now >= self.disconnect_at {
            self.disconnect_at = self.time_after(now, self.settings.disconnect);
            return Some(LinkFault::Disconnect);
        }
        if now >= self.stall_at {
            let end = now + Nanos(STALL_MIN.0 + self.rng.below(STALL_MIN.0));
            self.stall_at = self.time_after(end, self.settings.stall);
            return Some(LinkFault::StallUntil(end));
        }
        None
    }

    /// Draws the number of ticks before the next fault, if on average `ppm` of a million ticks have one.
    fn ticks_until(&mut self, ppm: u32) -> u64 {
        if ppm == 0 {
            return u64::MAX / 2;
        }
        self.rng.exponential(PPM / u64::from(ppm))
    }

    fn time_after(&mut self, now: Nanos, mean: Nanos) -> Nanos {
        if mean == Nanos::ZERO { Nanos::MAX } else { now + Nanos(self.rng.exponential(mean.0)) }
    }
}

#[cfg(test)]
mod tests {
    use tickpath_config::Fraction;

    use super::*;

    #[test]
    fn faults_have_the_configured_frequency() {
        let settings = FaultSettings {
            gaps: Fraction { ppm: 1_000 },
            corrupt: Fraction { ppm: 2_000 },
            stall: Nanos::from_secs(1),
            disconnect: Nanos::from_secs(10),
        };
        let mut faults = Faults::new(settings, 7, 1, 0, Nanos::ZERO);
        let (mut place, mut gaps, mut corrupt) = (0, 0, 0);
        while place < 1_000_000 {
            place = faults.next_place(place).max(place);
            match faults.take(place) {
                TickFault::Gap(count) => {
                    assert!((1..=GAP_MAX).contains(&count));
                    gaps += 1;
                    place += count;
                }
                TickFault::Corrupt(_) => {
                    corrupt += 1;
                    place += 1;
                }
            }
        }
        assert!((850..1_150).contains(&gaps) && (1_800..2_200).contains(&corrupt), "{gaps} {corrupt}");
        let (mut stalls, mut disconnects) = (0, 0);
        for millis in 0..1_000_000 {
            match faults.due(Nanos::from_millis(millis)) {
                Some(LinkFault::StallUntil(end)) => {
                    let time = end.since(Nanos::from_millis(millis));
                    assert!(time >= STALL_MIN && time.0 <= 2 * STALL_MIN.0);
                    stalls += 1;
                }
                Some(LinkFault::Disconnect) => disconnects += 1,
                None => {}
            }
        }
        assert!((600..1_000).contains(&stalls) && (60..140).contains(&disconnects), "{stalls} {disconnects}");
    }

    #[test]
    fn no_faults_without_settings() {
        let mut faults = Faults::new(FaultSettings::default(), 7, 1, 5, Nanos(9));
        assert!(faults.next_place(1 << 40) > 1 << 50);
        assert_eq!(faults.due(Nanos::from_secs(1 << 30)), None);
    }
}

//! Converts the kernel's receive time stamps to ticks of the time-stamp counter.

use tickpath_timing::ClockSample;
use tickpath_types::Nanos;

use crate::clock::TscClock;

/// Maximum age of the anchor, the latest common sample of the counter and the system clock.
///
/// A time service may slew the system clock by up to 500 ppm, which is 5 us over this age. Usually the
/// clock's rate is only some ppm off, which is some tens of nanoseconds.
const ANCHOR_AGE_MAX: Nanos = Nanos::from_millis(10);

/// Turns kernel time stamps (`CLOCK_REALTIME`) into ticks, following the system clock.
///
/// Each agent that reads sockets has one. A fixed calibration drifts from a disciplined system clock: one
/// part per million is 60 us after a minute, more than the whole path through the kernel. So the clocks are
/// compared again every 10 ms of use. A comparison takes about half a microsecond.
#[derive(Clone, Debug)]
pub struct KernelTime {
    clock: TscClock,
    anchor: ClockSample,
    anchor_ticks_max: u64,
}

impl KernelTime {
    /// Creates a converter, and compares the counter with the system clock.
    #[must_use]
    pub fn new(clock: TscClock) -> KernelTime {
        KernelTime { clock, anchor: clock.sample(), anchor_ticks_max: clock.nanos_to_ticks(ANCHOR_AGE_MAX) }
    }

    /// Returns the ticks at which the kernel's clock read `kernel_ns` (since the Unix epoch). `now_ticks` is
    /// a recent reading of [`TscClock::ticks`].
    #[inline]
    pub fn ticks(&mut self, kernel_ns: u64, now_ticks: u64) -> u64 {
        if now_ticks.wrapping_sub(self.anchor.tsc) as i64 > self.anchor_ticks_max as i64 {
            self.anchor = self.clock.sample();
        }
        let since_anchor = kernel_ns.wrapping_sub(self.anchor.utc.0) as i64;
        let ticks = self.clock.nanos_to_ticks(Nanos(since_anchor.unsigned_abs()));
        match since_anchor < 0 {
            true => self.anchor.tsc.wrapping_sub(ticks),
            false => self.anchor.tsc.wrapping_add(ticks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_on_both_sides_of_the_anchor_have_the_right_distance() {
        let clock = TscClock::shared();
        let mut kernel_time = KernelTime::new(clock);
        let anchor = kernel_time.anchor;
        let (early, late) = (anchor.utc.0 - 1_000_000, anchor.utc.0 + 2_000_000);
        let early = kernel_time.ticks(early, anchor.tsc);
        let late = kernel_time.ticks(late, anchor.tsc);
        assert_eq!(kernel_time.ticks(anchor.utc.0, anchor.tsc), anchor.tsc);
        assert_eq!(clock.ticks_to_nanos(anchor.tsc - early), Nanos::from_millis(1));
        assert_eq!(clock.ticks_to_nanos(late - anchor.tsc), Nanos::from_millis(2));
    }

    #[test]
    fn the_anchor_is_renewed_only_after_its_age() {
        let mut kernel_time = KernelTime::new(TscClock::shared());
        let anchor = kernel_time.anchor;
        kernel_time.ticks(anchor.utc.0, anchor.tsc + kernel_time.anchor_ticks_max);
        assert_eq!(kernel_time.anchor, anchor);
        kernel_time.ticks(anchor.utc.0, anchor.tsc + kernel_time.anchor_ticks_max + 1);
        assert!(kernel_time.anchor.tsc > anchor.tsc);
    }
}

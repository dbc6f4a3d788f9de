//! Time for agents: the CPU's time-stamp counter, calibrated to the system clock.

use std::cell::Cell;
use std::fmt;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tickpath_lockfree::cpu;
use tickpath_timing::{Calibration, ClockSample};
use tickpath_types::Nanos;

use crate::host::TscFacts;

/// Duration of a calibration. Its start and its end are measured to within about 20 ns, half the width of a
/// `bracket`. So the error of the rate is below 0.5 ppm. Repeated calibrations differ by only some hundredths
/// of that.
const CALIBRATION_TIME: Duration = Duration::from_millis(80);
/// Number of attempts of `bracket` at the start, and at the end, of a calibration.
const CALIBRATION_BRACKETS: usize = 256;
/// Number of attempts of `bracket` for a [`sample`](TscClock::sample): few, because agents wait for it.
const SAMPLE_BRACKETS: usize = 8;

thread_local! {
    static SIMULATED: Cell<Nanos> = const { Cell::new(Nanos::ZERO) };
}

/// The time source of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// The time-stamp counter: one instruction, about 10 ns.
    Tsc,
    /// `CLOCK_MONOTONIC`, because the counter is not invariant here: about twice the cost of a counter read
    /// if the kernel's clock is in the vDSO, and 20 to 100 times if each read is a system call.
    System,
    /// The last time set on this thread by [`TscClock::simulate`].
    Simulated,
}

impl fmt::Display for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ClockSource::Tsc => "time-stamp counter",
            ClockSource::System => {
                "system clock (the time-stamp counter is not invariant here: each reading costs 20 ns or more)"
            }
            ClockSource::Simulated => "simulated time",
        })
    }
}

/// A clock that costs one time-stamp read and one multiplication; a small `Copy` handle.
///
/// The rate comes from `CLOCK_MONOTONIC_RAW`, which no time service adjusts, and the epoch from
/// `CLOCK_REALTIME`. Neither is adjusted later, so `now` never jumps; [`drift`](TscClock::drift) reports the
/// difference from the system clock. For the kernel's receive time stamps use
/// [`KernelTime`](crate::KernelTime), which follows the system clock.
#[derive(Clone, Copy, Debug)]
pub struct TscClock {
    calibration: Calibration,
    calibrated_at: Nanos,
    source: ClockSource,
}

/// Difference between a [`TscClock`] and the system clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Time since the calibration.
    pub elapsed: Nanos,
    /// Nanoseconds by which the [`TscClock`] is ahead of the system clock; negative when behind.
    pub ahead_ns: i64,
    /// `ahead_ns` in parts per million of `elapsed`; mostly noise within a second of the calibration.
    pub ppm: f64,
}

impl TscClock {
    /// Returns the clock of this process, calibrated by the first caller (about 80 ms).
    #[must_use]
    pub fn shared() -> TscClock {
        static SHARED: OnceLock<TscClock> = OnceLock::new();
        *SHARED.get_or_init(TscClock::calibrate)
    }

    /// Calibrates a clock, in about 80 ms. Returns the system clock if the counter is not invariant.
    #[must_use]
    pub fn calibrate() -> TscClock {
        if !TscFacts::read().is_usable() {
            return TscClock::system();
        }
        let start = bracket(CALIBRATION_BRACKETS, ClockId::CLOCK_MONOTONIC_RAW);
        thread::sleep(CALIBRATION_TIME);
        let end = bracket(CALIBRATION_BRACKETS, ClockId::CLOCK_MONOTONIC_RAW);
        let anchor = bracket(CALIBRATION_BRACKETS, ClockId::CLOCK_REALTIME);
        let ticks = end.tsc.saturating_sub(start.tsc);
        match Calibration::from_rate(ticks, end.utc - start.utc, anchor) {
            Ok(calibration) => TscClock { calibration, calibrated_at: anchor.utc, source: ClockSource::Tsc },
            Err(_) => TscClock::system(), // a counter without a plausible rate is not invariant
        }
    }

    /// Returns a clock that reads the system clock; its ticks are nanoseconds.
    #[must_use]
    pub fn system() -> TscClock {
        let (tsc, utc) = (monotonic_ns(), system_time(ClockId::CLOCK_REALTIME));
        TscClock::of_nanoseconds(ClockSample { tsc, utc }, ClockSource::System)
    }

    /// Returns a clock with the time set by [`TscClock::simulate`] on this thread; its ticks are nanoseconds.
    #[must_use]
    pub fn simulated() -> TscClock {
        TscClock::of_nanoseconds(ClockSample { tsc: 0, utc: Nanos::ZERO }, ClockSource::Simulated)
    }

    fn of_nanoseconds(anchor: ClockSample, source: ClockSource) -> TscClock {
        let calibration = Calibration::from_rate(1, Nanos(1), anchor).expect("a nanosecond is a nanosecond");
        TscClock { calibration, calibrated_at: anchor.utc, source }
    }

    /// Sets the time of [simulated](TscClock::simulated) clocks on this thread.
    pub fn simulate(now: Nanos) {
        SIMULATED.set(now);
    }

    /// Returns the time since the Unix epoch.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.at(self.ticks())
    }

    /// Returns the value of the counter, whose rate is [`Calibration::ticks_per_second`].
    #[inline]
    #[must_use]
    pub fn ticks(&self) -> u64 {
        if self.source == ClockSource::Tsc { cpu::rdtsc() } else { self.nanoseconds() }
    }

    #[inline(never)]
    fn nanoseconds(&self) -> u64 {
        match self.source {
            ClockSource::Simulated => SIMULATED.get().0,
            _ => monotonic_ns(),
        }
    }

    /// Returns the time since the Unix epoch at which [`ticks`](TscClock::ticks) had this value.
    #[inline]
    #[must_use]
    pub fn at(&self, ticks: u64) -> Nanos {
        self.calibration.utc(ticks)
    }

    /// Converts a duration in ticks to nanoseconds.
    #[inline]
    #[must_use]
    pub fn ticks_to_nanos(&self, ticks: u64) -> Nanos {
        self.calibration.nanos(ticks)
    }

    /// Converts a duration to ticks.
    #[inline]
    #[must_use]
    pub fn nanos_to_ticks(&self, time: Nanos) -> u64 {
        self.calibration.ticks(time)
    }

    /// The conversion between ticks and time, for reports and trace files.
    #[must_use]
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// The time source.
    #[must_use]
    pub fn source(&self) -> ClockSource {
        self.source
    }

    /// Reads the counter and the system clock at the same moment, to within a few tens of nanoseconds.
    /// Takes about half a microsecond.
    #[must_use]
    pub fn sample(&self) -> ClockSample {
        match self.source {
            ClockSource::Tsc => bracket(SAMPLE_BRACKETS, ClockId::CLOCK_REALTIME),
            ClockSource::System => {
                ClockSample { tsc: monotonic_ns(), utc: system_time(ClockId::CLOCK_REALTIME) }
            }
            ClockSource::Simulated => ClockSample { tsc: SIMULATED.get().0, utc: SIMULATED.get() },
        }
    }

    /// Compares the clock with the system clock now.
    #[must_use]
    pub fn drift(&self) -> Drift {
        self.drift_at(self.sample())
    }

    fn drift_at(&self, sample: ClockSample) -> Drift {
        Drift {
            elapsed: sample.utc - self.calibrated_at,
            ahead_ns: self.at(sample.tsc).0.wrapping_sub(sample.utc.0) as i64,
            ppm: self.calibration.drift_ppm(sample).unwrap_or(0.0),
        }
    }
}

/// Reads a system clock between two readings of the counter: a bracket. Of `tries` brackets, returns the
/// narrowest.
///
/// An interrupt or a preemption widens a bracket; one bracket without either is enough.
fn bracket(tries: usize, clock: ClockId) -> ClockSample {
    let mut best = ClockSample { tsc: 0, utc: Nanos::ZERO };
    let mut tightest = u64::MAX;
    for _ in 0..tries {
        let before = cpu::rdtsc_ordered();
        let utc = system_time(clock);
        let after = cpu::rdtsc_ordered();
        let width = after.wrapping_sub(before);
        if width < tightest {
            tightest = width;
            best = ClockSample { tsc: before + width / 2, utc };
        }
    }
    best
}

fn monotonic_ns() -> u64 {
    system_time(ClockId::CLOCK_MONOTONIC).0
}

fn system_time(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock).expect("Linux has this clock since 2.6.28");
    Nanos(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exceeds the delay of a descheduled test thread, and is far below the error of a wrong epoch or rate.
    const TOLERANCE_NS: u64 = 5_000_000;

    fn assert_follows_the_system_clock(clock: TscClock) {
        let system = || system_time(ClockId::CLOCK_REALTIME).0;
        let (before, now, after) = (system(), clock.now().0, system());
        assert!(before - TOLERANCE_NS < now && now < after + TOLERANCE_NS, "{before} {now} {after}");
        let later = clock.sample();
        assert!(clock.at(later.tsc).0.abs_diff(later.utc.0) < TOLERANCE_NS);
        assert!(
            clock.calibration.tsc(later.utc).abs_diff(later.tsc) < clock.nanos_to_ticks(Nanos(TOLERANCE_NS))
        );
    }

    #[test]
    fn both_sources_follow_the_system_clock() {
        assert_follows_the_system_clock(TscClock::shared());
        assert_follows_the_system_clock(TscClock::system());
        assert_eq!(TscClock::system().ticks_to_nanos(1_000), Nanos(1_000));
    }

    #[test]
    fn simulated_time_is_set_by_the_thread() {
        let clock = TscClock::simulated();
        for now in [Nanos::from_secs(1_700_000_000), Nanos(1)] {
            TscClock::simulate(now);
            assert_eq!((clock.now(), clock.ticks(), clock.sample().utc), (now, now.0, now));
        }
    }

    #[test]
    fn the_shared_clock_is_calibrated_once() {
        assert_eq!(TscClock::shared().calibration(), TscClock::shared().calibration());
    }

    #[test]
    fn drift_is_what_the_clock_is_ahead_of_the_system_clock() {
        let clock = TscClock::system();
        let ticks = clock.calibration.tsc(clock.calibrated_at + Nanos::from_secs(10));
        let sample = ClockSample { tsc: ticks, utc: clock.calibrated_at + Nanos(9_999_900_000) };
        let drift = clock.drift_at(sample);
        assert_eq!(drift.elapsed, Nanos(9_999_900_000));
        assert_eq!(drift.ahead_ns, 100_000);
        assert!((drift.ppm - 10.0).abs() < 0.001, "{drift:?}");
    }

    #[test]
    fn a_bracket_lies_between_the_readings_around_it() {
        let before = cpu::rdtsc_ordered();
        let sample = bracket(4, ClockId::CLOCK_REALTIME);
        assert!(before <= sample.tsc && sample.tsc <= cpu::rdtsc_ordered());
    }
}

//! Paces a replay by recorded time.

use std::thread;
use std::time::{Duration, Instant};

use tickpath_agent::StopSignal;

use crate::options::Speed;

/// Longest sleep, so that a stop request is noticed soon.
const SLEEP_MAX: Duration = Duration::from_millis(50);
/// The recorded speed, 1x, in hundredths.
const HUNDREDTHS: u128 = 100;

/// Computes how many messages are due at the speed of the replay.
pub(crate) struct Pacer {
    speed: Speed,
    /// Recorded time of the first message in the window, in ns, and the time at which it was replayed.
    origin: Option<(u64, Instant)>,
}

impl Pacer {
    pub(crate) const fn new(speed: Speed) -> Pacer {
        Pacer { speed, origin: None }
    }

    /// Waits until at least one of `len` messages is due, and returns the number of due messages: all at
    /// maximum speed, `None` on a stop request. `ts_of` returns the recorded time of a message, or `None` if
    /// it is due at once.
    pub(crate) fn wait(
        &mut self,
        len: usize,
        ts_of: impl Fn(usize) -> Option<u64>,
        stop: &StopSignal,
    ) -> Option<usize> {
        let Speed::Hundredths(speed) = self.speed else { return Some(len) };
        loop {
            let now = Instant::now();
            let mut due_count = 0;
            let mut until_next = Duration::ZERO;
            while due_count < len {
                let Some(ts_ns) = ts_of(due_count) else {
                    due_count += 1;
                    continue;
                };
                let (first_ns, start) = *self.origin.get_or_insert((ts_ns, now));
                let recorded_ns = u128::from(ts_ns.saturating_sub(first_ns));
                let due = start + Duration::from_nanos((recorded_ns * HUNDREDTHS / u128::from(speed)) as u64);
                if due > now {
                    until_next = due - now;
                    break;
                }
                due_count += 1;
            }
            if due_count > 0 || len == 0 {
                return Some(due_count);
            }
            if stop.is_stopped() {
                return None;
            }
            thread::sleep(until_next.min(SLEEP_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_recorded_time_and_those_before_the_window_at_once() {
        let stop = StopSignal::new();
        let ts = [None, Some(0), Some(0), Some(40_000_000)];
        let start = Instant::now();
        let mut pacer = Pacer::new(Speed::Hundredths(200));
        assert_eq!(pacer.wait(4, |index| ts[index], &stop), Some(3));
        assert_eq!(pacer.wait(1, |_| ts[3], &stop), Some(1));
        assert!(start.elapsed() >= Duration::from_millis(20));
        assert_eq!(Pacer::new(Speed::Max).wait(4, |_| unreachable!(), &stop), Some(4));
    }

    #[test]
    fn a_wait_ends_at_a_stop_request() {
        let stop = StopSignal::new();
        let mut pacer = Pacer::new(Speed::Hundredths(100));
        assert_eq!(pacer.wait(1, |_| Some(0), &stop), Some(1));
        stop.stop();
        assert_eq!(pacer.wait(1, |_| Some(u64::MAX / 2), &stop), None);
    }
}

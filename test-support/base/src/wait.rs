//! Waiting with a deadline, instead of sleeping for a fixed time.

use std::thread;
use std::time::{Duration, Instant};

/// Timeout of one wait: far longer than any expected wait on a host under load. Only a defect reaches it.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Number of checks of [`wait_until`] without a pause (`SPINS`), and its pause between later checks.
const SPINS: u32 = 100;
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// The deadline of a wait, for loops that report more on failure than the awaited event.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// Returns the deadline [`PATIENCE`] from now.
    #[must_use]
    pub fn start() -> Deadline {
        Deadline::after(PATIENCE)
    }

    /// Returns the deadline `time` from now.
    #[must_use]
    pub fn after(time: Duration) -> Deadline {
        Deadline(Instant::now() + time)
    }

    /// Returns true once the deadline has passed, when the test must fail.
    #[must_use]
    pub fn is_over(self) -> bool {
        Instant::now() >= self.0
    }

    /// Returns the remaining time.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// Calls `poll` until it returns a result. Use it if `poll` itself does the awaited work, such as a duty
/// cycle or a read from a socket: between two calls the thread only yields.
///
/// # Panics
/// After [`PATIENCE`], with `what`.
#[track_caller]
pub fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Deadline::start();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(!deadline.is_over(), "{what}: not within {PATIENCE:?}");
        thread::yield_now();
    }
}

/// Like [`wait_for`], without a description: the panic reports the line of the call.
#[track_caller]
pub fn until<T>(poll: impl FnMut() -> Option<T>) -> T {
    wait_for("nothing came", poll)
}

/// Checks a condition until it is true, first without pauses, then every millisecond. Use it for effects of
/// other threads and processes.
///
/// # Panics
/// After [`PATIENCE`], with `what`.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Deadline::start();
    let mut spins = 0;
    while !condition() {
        assert!(!deadline.is_over(), "{what}: not within {PATIENCE:?}");
        if spins < SPINS {
            spins += 1;
            thread::yield_now();
        } else {
            thread::sleep(CHECK_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_return_the_result() {
        let mut calls = 0;
        let found = wait_for("the third call", || {
            calls += 1;
            (calls == 3).then_some(calls)
        });
        assert_eq!(found, 3);
        let start = Instant::now();
        wait_until("5 ms", || start.elapsed() > Duration::from_millis(5));
        assert!(!Deadline::start().is_over() && Deadline::start().remaining() > PATIENCE / 2);
        assert!(Deadline::after(Duration::ZERO).is_over());
    }
}

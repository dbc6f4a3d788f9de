//! Waiting with a deadline, and without a sleep that is to be long enough.

use std::thread;
use std::time::{Duration, Instant};

/// Longest time of one wait: far longer than what is waited for ever takes on a host under load. Only a defect reaches it.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Looks of [`wait_until`] before it pauses, and its pause.
const LOOKS: u32 = 100;
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// The end of a wait, for loops that say more when they fail than what they wait for.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// [`PATIENCE`] from now.
    #[must_use]
    pub fn start() -> Deadline {
        Deadline::after(PATIENCE)
    }

    /// Some time from now.
    #[must_use]
    pub fn after(time: Duration) -> Deadline {
        Deadline(Instant::now() + time)
    }

    /// Whether the time is up: the test fails.
    #[must_use]
    pub fn is_over(self) -> bool {
        Instant::now() >= self.0
    }

    /// The time that is left.
    #[must_use]
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// Calls `ask` until it finds something. For what the calls themselves bring about, as turns of agents or reads of a
/// socket: between two calls the thread only yields.
///
/// # Panics
/// After [`PATIENCE`], with `what`.
#[track_caller]
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Deadline::start();
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(!deadline.is_over(), "{what}: not within {PATIENCE:?}");
        thread::yield_now();
    }
}

/// [`wait_for`] where the line of the call says enough.
#[track_caller]
pub fn until<T>(ask: impl FnMut() -> Option<T>) -> T {
    wait_for("nothing came", ask)
}

/// Looks again and again, soon every millisecond, until something is so. For what other threads and processes bring about.
///
/// # Panics
/// After [`PATIENCE`], with `what`.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Deadline::start();
    let mut looks = 0;
    while !is_so() {
        assert!(!deadline.is_over(), "{what}: not within {PATIENCE:?}");
        if looks < LOOKS {
            looks += 1;
            thread::yield_now();
        } else {
            thread::sleep(LOOK_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_is_found() {
        let mut calls = 0;
        let found = wait_for("the third call", || {
            calls += 1;
            (calls == 3).then_some(calls)
        });
        assert_eq!(found, 3);
        let start = Instant::now();
        wait_until("5 ms", || start.elapsed() > Duration::from_millis(5));
        assert!(!Deadline::start().is_over() && Deadline::start().left() > PATIENCE / 2);
        assert!(Deadline::after(Duration::ZERO).is_over());
    }
}

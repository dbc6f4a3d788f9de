//! One flag that ends a running system.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use tickpath_lockfree::wake::Waker;

/// Exit status of a program that a second Ctrl-C ended: 128 + SIGINT, as shells report it.
const EXIT_INTERRUPTED: i32 = 130;

/// Polling interval of the thread that waits for the stop, and then makes another signal end the process.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time after the stop in which another signal counts as the same key press.
const SAME_KEY_PRESS: Duration = Duration::from_millis(300);

/// Asks a running system to stop; clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct StopSignal {
    is_raised: Arc<AtomicBool>,
    /// Wakers of threads that may be asleep when the signal is raised.
    wakers: Arc<Mutex<Vec<Waker>>>,
}

impl StopSignal {
    /// Creates a signal that only [`stop`](StopSignal::stop) raises.
    #[must_use]
    pub fn new() -> StopSignal {
        StopSignal::default()
    }

    /// Creates a signal that Ctrl-C (SIGINT) and SIGTERM raise too.
    ///
    /// If one of them arrives more than a third of a second after the stop signal was raised, by any means,
    /// the process exits immediately with status 130 and closes nothing. An earlier one counts as the same
    /// key press, because a shell may deliver a signal to a whole process group twice.
    ///
    /// # Errors
    /// The system refuses the handler.
    pub fn on_signals() -> io::Result<StopSignal> {
        let stop = StopSignal::new();
        let is_armed = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED, Arc::clone(&is_armed))?;
            flag::register(signal, Arc::clone(&stop.is_raised))?;
        }
        let raised = stop.clone();
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            while !raised.is_stopped() {
                thread::sleep(POLL_INTERVAL);
            }
            // The signal handler only sets the flag; this also wakes the threads.
            raised.stop();
            thread::sleep(SAME_KEY_PRESS);
            is_armed.store(true, Ordering::SeqCst);
        })?;
        Ok(stop)
    }

    /// Raises the signal.
    pub fn stop(&self) {
        self.is_raised.store(true, Ordering::SeqCst);
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Waker::wake_if_asleep);
    }

    /// Makes the signal wake the thread of `waker` if it sleeps.
    pub fn wake(&self, waker: &Waker) {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(waker.clone());
    }

    /// True if the signal was raised. Costs one relaxed load.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_raised.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_the_flag_and_others_do_not() {
        let stop = StopSignal::new();
        let clone = stop.clone();
        let other = StopSignal::new();
        clone.stop();
        assert!(stop.is_stopped());
        assert!(!other.is_stopped());
    }
}

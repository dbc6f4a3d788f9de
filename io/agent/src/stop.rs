//! One flag that ends a running system.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit status of a program that a second Ctrl-C ended: 128 + SIGINT, as shells report it.
const EXIT_INTERRUPTED: i32 = 130;

/// Asks a running system to stop; clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// A signal that only [`stop`](StopSignal::stop) raises.
    #[must_use]
    pub fn new() -> StopSignal {
        StopSignal::default()
    }

    /// A signal that Ctrl-C (SIGINT) and SIGTERM raise too.
    ///
    /// When one of them comes after the signal was raised, by whatever, the process exits at once with
    /// status 130 and closes nothing.
    ///
    /// # Errors
    /// The system refuses the handler.
    pub fn on_signals() -> io::Result<StopSignal> {
        let stop = StopSignal::new();
        for signal in [SIGINT, SIGTERM] {
            // Order matters: the exit looks at the flag as the previous signal left it.
            flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED, Arc::clone(&stop.0))?;
            flag::register(signal, Arc::clone(&stop.0))?;
        }
        Ok(stop)
    }

    /// Raises the signal.
    pub fn stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the signal was raised. One relaxed load.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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

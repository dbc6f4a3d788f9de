//! Ctrl-C.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Exit status after Ctrl-C, as shells report it.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Whether somebody wants this program to end.
#[derive(Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The program was told to end, and says what that means.
#[derive(Debug)]
pub struct Interrupted(pub &'static str);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted: {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

impl Interrupt {
    /// Raised by Ctrl-C, by a terminal that closes, or by a polite `kill`, which end this program no longer.
    pub fn on_signals() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))
                .context("cannot watch for Ctrl-C")?;
        }
        Ok(interrupt)
    }

    /// An error with these words once it is raised.
    pub fn check(&self, meaning: &'static str) -> Result<()> {
        match self.is_raised() {
            true => Err(Interrupted(meaning).into()),
            false => Ok(()),
        }
    }

    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub fn raised() -> Interrupt {
        Interrupt(Arc::new(AtomicBool::new(true)))
    }
}

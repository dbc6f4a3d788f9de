//! Handles Ctrl-C.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Exit status after Ctrl-C, as shells report it.
pub const EXIT_INTERRUPTED: u8 = 130;

/// Flag that is raised when the user has requested the end of this program.
#[derive(Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// Error: the program was interrupted. The text describes the consequence.
#[derive(Debug)]
pub struct Interrupted(pub &'static str);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted: {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

impl Interrupt {
    /// Creates a flag that Ctrl-C, a closing terminal and SIGTERM raise instead of ending this program.
    pub fn on_signals() -> Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))
                .context("cannot watch for Ctrl-C")?;
        }
        Ok(interrupt)
    }

    /// Returns [`Interrupted`] with `meaning` once the flag is raised.
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

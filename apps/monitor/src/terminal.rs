//! Takes over the terminal, and restores it when the view is dropped or a thread panics.

use std::io::{self, IsTerminal, Stdout, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// True while this process holds the terminal: drawing is allowed, and the terminal must be restored.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);

/// A full-screen terminal; dropping it restores the terminal.
pub struct FullScreen {
    /// The terminal to draw on.
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl FullScreen {
    /// Takes over the terminal behind standard output.
    pub fn open() -> io::Result<FullScreen> {
        if IS_ACTIVE.swap(true, Ordering::AcqRel) {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "the terminal already shows a live view: close that one first",
            ));
        }
        restore_on_panic();
        if let Err(error) = enable_raw_mode() {
            // Do not call `restore`: raw mode was not set, and standard output may not be a terminal.
            IS_ACTIVE.store(false, Ordering::Release);
            return Err(unusable(&error));
        }
        let opened = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match opened {
            Ok(terminal) => Ok(FullScreen { terminal }),
            Err(error) => {
                restore();
                Err(unusable(&error))
            }
        }
    }

    /// Returns false once a panic of any thread restored the terminal: drawing would cover the panic message.
    pub fn is_active() -> bool {
        IS_ACTIVE.load(Ordering::Acquire)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// Returns true when standard output is a terminal and `TERM` is not `dumb`.
pub fn is_capable() -> bool {
    stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn unusable(error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("the terminal cannot show the live view ({error}): use the plain one"),
    )
}

/// Restores the terminal if this process holds it; otherwise does nothing.
fn restore() {
    if IS_ACTIVE.swap(false, Ordering::AcqRel) {
        // Ignore errors: if the terminal itself is closed, there is nothing to restore.
        let _ = disable_raw_mode();
        // Clear first: after a resize some terminals carry rows over to the main screen.
        let _ = execute!(stdout(), Clear(ClearType::All), LeaveAlternateScreen, Show);
    }
}

/// Makes every later panic restore the terminal before its message is printed.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            previous(info);
        }));
    });
}

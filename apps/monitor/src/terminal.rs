//! Taking over the terminal, and giving it back however the program ends.

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

/// True while this process holds the terminal: what must be given back, and whether one may draw.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// A full-screen terminal; dropping it gives the terminal back.
pub struct FullScreen {
    /// Draws on it.
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl FullScreen {
    /// Takes over the terminal that standard output goes to.
    pub fn open() -> io::Result<FullScreen> {
        if IS_HELD.swap(true, Ordering::AcqRel) {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "the terminal already shows a live view: close that one first",
            ));
        }
        give_back_on_panic();
        if let Err(error) = enable_raw_mode() {
            // Nothing was changed, and what is there may not be a terminal: no escape codes.
            IS_HELD.store(false, Ordering::Release);
            return Err(unusable(&error));
        }
        let opened = execute!(stdout(), EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match opened {
            Ok(terminal) => Ok(FullScreen { terminal }),
            Err(error) => {
                give_back();
                Err(unusable(&error))
            }
        }
    }

    /// False once a panic of any thread gave the terminal back: what is drawn now would cover its message.
    pub fn is_held() -> bool {
        IS_HELD.load(Ordering::Acquire)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        give_back();
    }
}

/// True when standard output is a terminal that understands cursor movement.
pub fn is_capable() -> bool {
    stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn unusable(error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("the terminal cannot show the live view ({error}): use the plain one"),
    )
}

/// Restores the terminal if it is held; does nothing the second time.
fn give_back() {
    if IS_HELD.swap(false, Ordering::AcqRel) {
        // When the terminal itself is gone there is nothing to restore and nobody to tell.
        let _ = disable_raw_mode();
        // Cleared first: after a resize some terminals carry rows over to the main screen.
        let _ = execute!(stdout(), Clear(ClearType::All), LeaveAlternateScreen, Show);
    }
}

/// Makes every later panic restore the terminal before its message is printed.
fn give_back_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            give_back();
            previous(info);
        }));
    });
}

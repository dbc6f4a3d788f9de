//! A command's progress line on standard error, which is overwritten at each update.

use std::io::{IsTerminal, Write, stderr};

/// A progress line that is shown only on a terminal, and cleared on drop.
pub struct Line {
    is_terminal: bool,
    is_shown: bool,
}

impl Line {
    /// Creates an empty line.
    pub fn new() -> Line {
        Line { is_terminal: stderr().is_terminal(), is_shown: false }
    }

    /// Replaces the line by `text`; does nothing without a terminal.
    pub fn show(&mut self, text: impl FnOnce() -> String) {
        if self.is_terminal {
            self.is_shown = true;
            // A failure to write to the terminal must not stop the command.
            let _ = write!(stderr(), "\r\x1b[K{}", text());
        }
    }

    /// Clears the line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Formats a progress bar with a percentage; `total` is not 0.
pub fn bar(done: u64, total: u64) -> String {
    const LEN: u64 = 30;
    let done = done.min(total);
    let filled = (u128::from(done) * u128::from(LEN) / u128::from(total)) as usize;
    let percent = u128::from(done) * 100 / u128::from(total);
    format!("[{}{}] {percent:>3}%", "#".repeat(filled), "-".repeat(LEN as usize - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_exceeds_its_width() {
        assert_eq!(bar(0, 3), "[------------------------------]   0%");
        assert_eq!(bar(1, 3), "[##########--------------------]  33%");
        assert_eq!(bar(9, 3), "[##############################] 100%");
    }
}

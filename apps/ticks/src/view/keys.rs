//! The key bindings of the full-screen view.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::board::{Board, Sort};

/// An action that a key requests from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// End the program: `q`, or Esc.
    Quit,
    /// End the program: Ctrl-C.
    Interrupt,
    /// Reconnect, and reset the counts.
    Reconnect,
    /// Draw the same data again.
    Redraw,
}

/// Number of rows by which a page key scrolls.
const PAGE: usize = 10;
/// Maximum length of a filter, in characters.
const FILTER_LEN_MAX: usize = 8;

/// Every key and its function, for the help.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("q  Esc", "quit"),
    ("s", "sort by the next of volume, change, ticks/s, symbol"),
    ("v c t n", "sort by volume, change, ticks/s, symbol"),
    ("S", "reverse the sort order"),
    ("/", "filter symbols by letters; Esc shows all"),
    ("r", "reconnect, and reset the counters"),
    ("Up Down", "scroll; also j k, PgUp PgDn, Home End"),
    ("?", "this help"),
];

impl Board {
    /// Handles a key; returns the requested action, or `None` if the key has no function.
    pub fn on_key(&mut self, key: KeyEvent) -> Option<Action> {
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Some(Action::Interrupt);
        }
        if self.is_typing {
            return self.on_filter_key(key.code);
        }
        if self.is_help && !matches!(key.code, KeyCode::Char('q' | 'Q')) {
            self.is_help = false;
            return Some(Action::Redraw);
        }
        self.on_board_key(key.code)
    }

    fn on_board_key(&mut self, code: KeyCode) -> Option<Action> {
        let last = self.matching().saturating_sub(1);
        match code {
            KeyCode::Char('q' | 'Q') => return Some(Action::Quit),
            // Esc clears a filter; without a filter it ends the program.
            KeyCode::Esc if self.filter.is_empty() => return Some(Action::Quit),
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('r' | 'R') => return Some(Action::Reconnect),
            KeyCode::Char('?' | 'h' | 'H') => self.is_help = true,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('s') => self.order_by(self.sort.next()),
            KeyCode::Char('v') => self.order_by(Sort::Volume),
            KeyCode::Char('c') => self.order_by(Sort::Change),
            KeyCode::Char('t') => self.order_by(Sort::Ticks),
            KeyCode::Char('n') => self.order_by(Sort::Symbol),
            KeyCode::Char('S') => self.is_reversed = !self.is_reversed,
            KeyCode::Down | KeyCode::Char('j') => self.scroll = (self.scroll + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown => self.scroll = (self.scroll + PAGE).min(last),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = last,
            _ => return None,
        }
        Some(Action::Redraw)
    }

    fn order_by(&mut self, sort: Sort) {
        (self.sort, self.is_reversed, self.scroll) = (sort, false, 0);
    }

    fn on_filter_key(&mut self, code: KeyCode) -> Option<Action> {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) if letter.is_ascii_graphic() && self.filter.len() < FILTER_LEN_MAX => {
                self.filter.push(letter.to_ascii_uppercase());
            }
            _ => return None,
        }
        self.scroll = 0;
        Some(Action::Redraw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(board: &mut Board, keys: &str) -> Vec<Option<Action>> {
        let code = |key| match key {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\x08' => KeyCode::Backspace,
            letter => KeyCode::Char(letter),
        };
        keys.chars().map(|key| board.on_key(KeyEvent::new(code(key), KeyModifiers::NONE))).collect()
    }

    #[test]
    fn a_filter_is_written_kept_and_cleared() {
        let mut board = Board::new(20);
        press(&mut board, "/aqs");
        assert_eq!((board.filter.as_str(), board.is_typing), ("AQS", true));
        press(&mut board, "\x08\n");
        assert_eq!((board.filter.as_str(), board.is_typing), ("AQ", false));
        assert_eq!(press(&mut board, "\x1b\x1b"), [Some(Action::Redraw), Some(Action::Quit)]);
        press(&mut board, "/123456789é");
        assert_eq!(board.filter, "12345678");
        press(&mut board, "\x1b");
        assert_eq!((board.filter.as_str(), board.is_typing), ("", false));
    }

    #[test]
    fn keys_order_help_and_end() {
        let mut board = Board::new(20);
        let sorts = ["s", "s", "s", "s", "n"].map(|key| {
            press(&mut board, key);
            board.sort
        });
        assert_eq!(sorts, [Sort::Change, Sort::Ticks, Sort::Symbol, Sort::Volume, Sort::Symbol]);
        press(&mut board, "S?");
        assert!(board.is_reversed && board.is_help);
        assert_eq!(press(&mut board, "r"), [Some(Action::Redraw)], "it closes the help");
        assert_eq!(press(&mut board, "rqx"), [Some(Action::Reconnect), Some(Action::Quit), None]);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        for keys in ["", "/", "?"] {
            press(&mut board, keys);
            assert_eq!(board.on_key(interrupt), Some(Action::Interrupt));
        }
    }
}

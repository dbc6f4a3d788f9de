//! The view: the program opens it, passes it each snapshot, reads its keys and closes it.

use std::io::{self, Stdout, stdout};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::data::MarketView;
use crate::plain::PlainWriter;
use crate::screen::{Screen, render};
use crate::terminal::{self, FullScreen};

/// Number of instruments that Page Up and Page Down scroll by.
const PAGE: usize = 10;

/// The output mode of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// [`Mode::Tui`] when standard output is a capable terminal, else [`Mode::Plain`].
    #[default]
    Auto,
    /// Full screen on the terminal.
    Tui,
    /// One line a second on standard output.
    Plain,
}

/// The user's request, by a key or by resizing the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// End the program: `q`, Esc or Ctrl-C.
    Quit,
    /// The user scrolled, froze or resized the view: draw again with the same data.
    Redraw,
}

/// The live view. Dropping it restores the terminal, and so does a panic of any thread.
pub struct View {
    surface: Surface,
}

enum Surface {
    Tui(Box<Tui>),
    Plain(PlainWriter<Stdout>),
    Closed,
}

struct Tui {
    full_screen: FullScreen,
    screen: Screen,
    /// The data shown while frozen: that of the first draw after the user froze the view.
    frozen: Option<MarketView>,
    /// Number of instruments in the last frame: the limit of the scroll position.
    instruments: usize,
}

impl View {
    /// Opens the view; a full-screen view takes over the terminal.
    ///
    /// # Errors
    /// [`Mode::Tui`] fails without a terminal, or when another view of this process holds it; use
    /// [`Mode::Plain`]. [`Mode::Auto`] falls back to plain by itself.
    pub fn open(mode: Mode) -> io::Result<View> {
        let surface = match mode {
            Mode::Tui => Surface::Tui(Box::new(Tui::open()?)),
            Mode::Auto if terminal::is_capable() => match Tui::open() {
                Ok(tui) => Surface::Tui(Box::new(tui)),
                Err(_) => Surface::Plain(PlainWriter::new(stdout())),
            },
            Mode::Auto | Mode::Plain => Surface::Plain(PlainWriter::new(stdout())),
        };
        Ok(View { surface })
    }

    /// Returns true when the view fills the terminal: the caller must not print while such a view is open.
    #[must_use]
    pub fn is_full_screen(&self) -> bool {
        matches!(self.surface, Surface::Tui(_))
    }

    /// Shows `view`. A plain view writes at most one line per second of [`MarketView::elapsed`].
    ///
    /// Does nothing once the view is closed, or once the reader of its pipe has closed the pipe.
    ///
    /// # Errors
    /// An error of the terminal or of the file behind standard output.
    pub fn draw(&mut self, view: &MarketView) -> io::Result<()> {
        match &mut self.surface {
            Surface::Tui(tui) => tui.draw(view),
            Surface::Plain(writer) => writer.draw(view),
            Surface::Closed => Ok(()),
        }
    }

    /// Waits at most `timeout` for a key that has a function, or for a resize.
    ///
    /// A plain view reads no keys: it sleeps for `timeout` and returns `None`, so one loop serves all modes.
    ///
    /// # Errors
    /// An error of the terminal, for instance that it is closed.
    pub fn poll_key(&mut self, timeout: Duration) -> io::Result<Option<Action>> {
        match &mut self.surface {
            Surface::Tui(tui) if FullScreen::is_active() => tui.poll_key(timeout),
            _ => {
                thread::sleep(timeout);
                Ok(None)
            }
        }
    }

    /// Restores the terminal; later calls of [`draw`](View::draw) do nothing.
    pub fn close(&mut self) {
        self.surface = Surface::Closed;
    }
}

impl Tui {
    fn open() -> io::Result<Tui> {
        let full_screen = FullScreen::open()?;
        Ok(Tui { full_screen, screen: Screen::default(), frozen: None, instruments: 0 })
    }

    fn draw(&mut self, view: &MarketView) -> io::Result<()> {
        if !FullScreen::is_active() {
            return Ok(());
        }
        if self.screen.is_frozen && self.frozen.is_none() {
            self.frozen = Some(view.clone());
        }
        let shown = self.frozen.as_ref().unwrap_or(view);
        self.instruments = shown.instruments.len();
        let screen = self.screen;
        self.full_screen
            .terminal
            .draw(|frame| render(frame.area(), frame.buffer_mut(), shown, screen))
            .map(|_| ())
    }

    fn poll_key(&mut self, timeout: Duration) -> io::Result<Option<Action>> {
        let deadline = Instant::now() + timeout;
        while event::poll(deadline.saturating_duration_since(Instant::now()))? {
            let action = match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => self.on_key(key),
                Event::Resize(..) => Some(Action::Redraw),
                _ => None,
            };
            if action.is_some() {
                return Ok(action);
            }
        }
        Ok(None)
    }

    fn on_key(&mut self, key: KeyEvent) -> Option<Action> {
        let last = self.instruments.saturating_sub(1);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Some(Action::Quit),
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Some(Action::Quit),
            KeyCode::Char(' ') => {
                self.screen.is_frozen = !self.screen.is_frozen;
                self.frozen = None;
            }
            KeyCode::Down | KeyCode::Char('j') => self.screen.scroll = (self.screen.scroll + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.screen.scroll = self.screen.scroll.saturating_sub(1),
            KeyCode::PageDown => self.screen.scroll = (self.screen.scroll + PAGE).min(last),
            KeyCode::PageUp => self.screen.scroll = self.screen.scroll.saturating_sub(PAGE),
            KeyCode::Home => self.screen.scroll = 0,
            KeyCode::End => self.screen.scroll = last,
            _ => return None,
        }
        Some(Action::Redraw)
    }
}

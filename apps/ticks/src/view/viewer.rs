//! The viewer, which draws the view on a terminal or as lines, and reads keys.

use std::io::{self, Stdout, Write, stdout};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use tickpath_monitor::Mode;
use tickpath_monitor::terminal::{self, FullScreen};
use tickpath_types::Nanos;

use super::board::Board;
use super::data::TicksView;
use super::keys::Action;
use super::plain::PlainWriter;
use super::screen::render;
use crate::client::{Shared, Span};

/// The view, as a full screen on a terminal or as a line a second. Dropping it, or a panic of any thread,
/// restores the terminal.
pub struct Viewer {
    surface: Surface,
}

enum Surface {
    Tui(Box<Tui>),
    Plain(PlainWriter<Stdout>),
}

struct Tui {
    full_screen: FullScreen,
    board: Board,
}

/// A full screen of fixed size, written as escape codes to a writer instead of a terminal.
pub struct Canvas<W: Write> {
    terminal: Terminal<CrosstermBackend<W>>,
    board: Board,
}

impl<W: Write> Canvas<W> {
    /// Creates an empty screen for at most `rows_max` symbols.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn new(width: u16, height: u16, rows_max: usize, out: W) -> io::Result<Canvas<W>> {
        let viewport = Viewport::Fixed(Rect::new(0, 0, width, height));
        let terminal = Terminal::with_options(CrosstermBackend::new(out), TerminalOptions { viewport })?;
        Ok(Canvas { terminal, board: Board::new(rows_max) })
    }

    /// Writes the differences from the previous frame; returns the number of symbols shown.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn draw(&mut self, view: &TicksView) -> io::Result<usize> {
        self.board.observe(view);
        let (board, now, mut rows) = (&self.board, now(), 0);
        self.terminal.draw(|frame| rows = render(frame.area(), frame.buffer_mut(), view, board, now))?;
        Ok(rows)
    }
}

impl Viewer {
    /// Opens the view and, for a full screen, takes over the terminal. Shows at most `rows_max` symbols at
    /// once.
    ///
    /// # Errors
    /// [`Mode::Tui`] fails without a terminal. [`Mode::Auto`] and [`Mode::Plain`] do not fail.
    pub fn open(mode: Mode, rows_max: usize) -> io::Result<Viewer> {
        let tui = match mode {
            Mode::Tui => Some(FullScreen::open()?),
            Mode::Auto if terminal::is_capable() => FullScreen::open().ok(),
            Mode::Auto | Mode::Plain => None,
        };
        let surface = match tui {
            Some(full_screen) => Surface::Tui(Box::new(Tui { full_screen, board: Board::new(rows_max) })),
            None => Surface::Plain(PlainWriter::new(stdout())),
        };
        Ok(Viewer { surface })
    }

    /// Draws a new frame, or writes the lines that are due. On a full screen, records the age of each tick
    /// that is drawn for the first time as [`Span::Draw`].
    ///
    /// # Errors
    /// An error of the terminal or of the file behind standard output.
    pub fn draw(&mut self, view: &TicksView, shared: &Shared) -> io::Result<()> {
        match &mut self.surface {
            Surface::Tui(tui) => {
                tui.board.observe(view);
                let rows = tui.draw(view)?;
                let now = now();
                for time in tui.board.newly_drawn(view, rows) {
                    shared.latencies().record(Span::Draw, Nanos(time), now);
                }
                Ok(())
            }
            Surface::Plain(writer) => writer.draw(view),
        }
    }

    /// Draws the same data again with the user's current view settings; without a full screen does nothing.
    ///
    /// # Errors
    /// An error of the terminal.
    pub fn redraw(&mut self, view: &TicksView) -> io::Result<()> {
        if let Surface::Tui(tui) = &mut self.surface {
            tui.board.arrange(view);
            tui.draw(view)?;
        }
        Ok(())
    }

    /// Waits at most `timeout` for a key with a function. Without a full screen, sleeps and returns `None`.
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
}

impl Tui {
    /// Draws a frame if the terminal is active; returns the number of symbols shown.
    fn draw(&mut self, view: &TicksView) -> io::Result<usize> {
        let mut rows = 0;
        if FullScreen::is_active() {
            let (board, now) = (&self.board, now());
            self.full_screen
                .terminal
                .draw(|frame| rows = render(frame.area(), frame.buffer_mut(), view, board, now))?;
        }
        Ok(rows)
    }

    fn poll_key(&mut self, timeout: Duration) -> io::Result<Option<Action>> {
        let deadline = Instant::now() + timeout;
        while event::poll(deadline.saturating_duration_since(Instant::now()))? {
            let action = match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => self.board.on_key(key),
                Event::Resize(..) => Some(Action::Redraw),
                _ => None,
            };
            if action.is_some() {
                return Ok(action);
            }
        }
        Ok(None)
    }
}

fn now() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

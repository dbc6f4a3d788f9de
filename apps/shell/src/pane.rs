//! The subscriptions in the terminal's upper lines, while commands scroll below.

use std::io::{IsTerminal, Write, stdout};

use ratatui::crossterm::terminal;
use tickpath_types::Nanos;

use crate::link::{Link, Standing};
use crate::watch::channel_lines;

/// Lines of the pane at most, its border included.
const HEIGHT_MAX: u16 = 12;
/// Lines that are left to the commands at least.
const BELOW_MIN: u16 = 10;
/// How often it is drawn anew.
const INTERVAL: Nanos = Nanos::from_millis(200);

/// The upper lines of a terminal: the rest scrolls by itself (DECSTBM), so that line editing knows nothing of it.
#[derive(Debug)]
pub(crate) struct Pane {
    /// Lines and columns that the scrolling region was made for, and the lines of the pane.
    made_for: Option<(u16, u16, u16)>,
    drawn_at: Nanos,
    last: Vec<String>,
}

impl Pane {
    /// A pane, where standard output is a terminal that can have one.
    pub(crate) fn new() -> Option<Pane> {
        let can = stdout().is_terminal() && std::env::var("TERM").is_ok_and(|term| term != "dumb");
        can.then(|| Pane { made_for: None, drawn_at: Nanos::ZERO, last: Vec::new() })
    }

    /// Shows what the channels gave, at most five times a second; nothing where nothing is subscribed.
    pub(crate) fn draw(&mut self, link: &Link) {
        let now = link.clock().now();
        if now.since(self.drawn_at) < INTERVAL {
            return;
        }
        self.drawn_at = now;
        let Ok((columns, lines)) = terminal::size() else { return };
        let count = link.channels().len();
        let Some(wanted) = height(count, lines) else { return self.close() };
        let rows_max = usize::from(wanted) - 1;
        let mut rows = match count > rows_max {
            true => {
                let mut rows = channel_lines(link, rows_max - 1);
                rows.push(format!("... and {} more: see subscriptions", count - rows.len()));
                rows
            }
            false => channel_lines(link, rows_max),
        };
        rows.push(border(link.standing(), columns));
        let shape = (lines, columns, wanted);
        if self.made_for == Some(shape) && self.last == rows {
            return;
        }
        let mut out = String::new();
        if self.made_for != Some(shape) {
            out.push_str(&region(self.made_for.map_or(0, |(_, _, height)| height), wanted, lines));
        }
        // The cursor's place is kept, so that whoever edits a line does not notice.
        out.push_str("\x1b7");
        for (row, text) in (1..).zip(&rows) {
            out.push_str(&format!("\x1b[{row};1H\x1b[2K{}", clipped(text, columns)));
        }
        out.push_str("\x1b8");
        write(&out);
        (self.made_for, self.last) = (Some(shape), rows);
    }

    fn close(&mut self) {
        if let Some((_, _, height)) = self.made_for.take() {
            let rows: String = (1..=height).map(|row| format!("\x1b[{row};1H\x1b[2K")).collect();
            write(&format!("\x1b7\x1b[r{rows}\x1b8"));
            self.last.clear();
        }
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        self.close();
    }
}

/// Lines that the pane of so many channels takes of a terminal; none where there is nothing to show or no room.
fn height(channels: usize, lines: u16) -> Option<u16> {
    let wanted = u16::try_from(channels + 1).unwrap_or(u16::MAX);
    let height = wanted.min(HEIGHT_MAX).min(lines.saturating_sub(BELOW_MIN));
    (channels > 0 && height >= 2).then_some(height)
}

/// Makes the lines below the pane scroll alone. What stood in the way of a larger pane is scrolled down first.
fn region(before: u16, wanted: u16, lines: u16) -> String {
    let grows = wanted.saturating_sub(before);
    let mut out = String::from("\x1b7\x1b[r\x1b8");
    if grows > 0 {
        // Lines are made at the bottom so that the cursor's line is not covered, and the cursor stays on its text.
        out.push_str(&"\x1bD".repeat(usize::from(grows)));
        out.push_str(&format!("\x1b[{grows}A\x1b7\x1b[1;1H\x1b[{grows}L\x1b8\x1b[{grows}B"));
    }
    out.push_str(&format!("\x1b7\x1b[{};{lines}r\x1b8", wanted + 1));
    out
}

/// The line below the channels. Where there is no connection it says that nothing above it is of now.
fn border(standing: Standing, columns: u16) -> String {
    let word = match standing {
        Standing::Ready => "",
        Standing::Connecting | Standing::Off => "-- not connected: this came before ",
    };
    format!("{word:-<width$}", width = usize::from(columns))
}

fn clipped(text: &str, columns: u16) -> String {
    text.chars().filter(|character| !character.is_control()).take(usize::from(columns)).collect()
}

/// In one piece, so that nothing comes between. A terminal that is gone ends the shell soon.
fn write(text: &str) {
    let mut out = stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pane_leaves_room_for_commands() {
        for (channels, lines, wanted) in [
            (0, 40, None),
            (1, 40, Some(2)),
            (5, 40, Some(6)),
            (50, 40, Some(HEIGHT_MAX)),
            (5, 13, Some(3)),
            (5, 11, None),
            (5, 0, None),
        ] {
            assert_eq!(height(channels, lines), wanted, "{channels} {lines}");
        }
    }

    #[test]
    fn the_border_says_that_there_is_no_connection() {
        assert_eq!(border(Standing::Ready, 5), "-----");
        assert!(border(Standing::Connecting, 60).starts_with("-- not connected: this came before ----"));
    }

    #[test]
    fn lines_are_clipped_and_say_nothing_to_the_terminal() {
        assert_eq!(clipped("abc\x1b[2Jdef", 5), "abc[2");
    }
}

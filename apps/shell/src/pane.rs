//! A pane with the subscriptions in the terminal's upper lines; commands scroll below it.

use std::io::{IsTerminal, Write, stdout};

use ratatui::crossterm::terminal;
use tickpath_types::Nanos;

use crate::link::{Link, Standing};
use crate::watch::channel_lines;

/// Upper bound of the pane's height, in lines, including its border.
const HEIGHT_MAX: u16 = 12;
/// Lower bound of the lines left to the commands.
const BELOW_MIN: u16 = 10;
/// Redraw interval.
const INTERVAL: Nanos = Nanos::from_millis(200);

/// The upper lines of a terminal. The rest is a scrolling region (DECSTBM), where line editing works.
#[derive(Debug)]
pub(crate) struct Pane {
    /// Lines and columns of the terminal for which the region was set, and the pane's height.
    made_for: Option<(u16, u16, u16)>,
    drawn_at: Nanos,
    last: Vec<String>,
}

impl Pane {
    /// Creates a pane if standard output is a suitable terminal.
    pub(crate) fn new() -> Option<Pane> {
        let can = stdout().is_terminal() && std::env::var("TERM").is_ok_and(|term| term != "dumb");
        can.then(|| Pane { made_for: None, drawn_at: Nanos::ZERO, last: Vec::new() })
    }

    /// The output that draws the channels' data: at most five times a second, and nothing without
    /// subscriptions.
    pub(crate) fn draw(&mut self, link: &Link) -> Option<String> {
        let now = link.clock().now();
        if now.since(self.drawn_at) < INTERVAL {
            return None;
        }
        self.drawn_at = now;
        let (columns, lines) = terminal::size().ok()?;
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
        rows.push(border(link.standing(), link.down_since_ms(), columns));
        let shape = (lines, columns, wanted);
        if self.made_for == Some(shape) && self.last == rows {
            return None;
        }
        let mut out = String::new();
        if self.made_for != Some(shape) {
            out.push_str(&region(self.made_for.map_or(0, |(_, _, height)| height), wanted, lines));
        }
        // Saves and restores the cursor, so that line editing is not disturbed.
        out.push_str("\x1b7");
        for (row, text) in (1..).zip(&rows) {
            out.push_str(&format!("\x1b[{row};1H\x1b[2K{}", clipped(text, columns)));
        }
        out.push_str("\x1b8");
        (self.made_for, self.last) = (Some(shape), rows);
        Some(out)
    }

    /// The output that removes the pane, if it is shown.
    fn close(&mut self) -> Option<String> {
        let (_, _, height) = self.made_for.take()?;
        self.last.clear();
        let rows: String = (1..=height).map(|row| format!("\x1b[{row};1H\x1b[2K")).collect();
        Some(format!("\x1b7\x1b[r{rows}\x1b8"))
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        self.close().iter().for_each(|text| write(text));
    }
}

/// Height of a pane with `channels` channels; `None` if there is nothing to show or no space.
fn height(channels: usize, lines: u16) -> Option<u16> {
    let wanted = u16::try_from(channels + 1).unwrap_or(u16::MAX);
    let height = wanted.min(HEIGHT_MAX).min(lines.saturating_sub(BELOW_MIN));
    (channels > 0 && height >= 2).then_some(height)
}

/// Restricts scrolling to the lines below the pane. A growing pane first scrolls the text in its way down.
fn region(before: u16, wanted: u16, lines: u16) -> String {
    let grows = wanted.saturating_sub(before);
    let mut out = String::from("\x1b7\x1b[r\x1b8");
    if grows > 0 {
        // Adds lines at the bottom, so that the cursor stays visible and on its text.
        out.push_str(&"\x1bD".repeat(usize::from(grows)));
        out.push_str(&format!("\x1b[{grows}A\x1b7\x1b[1;1H\x1b[{grows}L\x1b8\x1b[{grows}B"));
    }
    out.push_str(&format!("\x1b7\x1b[{};{lines}r\x1b8", wanted + 1));
    out
}

/// The line below the channels. Without a connection it says that the data is old, and since when.
fn border(standing: Standing, down_since_ms: Option<u64>, columns: u16) -> String {
    let word = match (standing, down_since_ms) {
        (Standing::Ready, _) => String::new(),
        (_, Some(since)) => format!("-- not connected since {}: this came before ", time_of_day(since)),
        _ => "-- not connected: this came before ".to_owned(),
    };
    format!("{word:-<width$}", width = usize::from(columns))
}

/// Formats milliseconds since 1970 as `21:43:26 UTC`.
fn time_of_day(unix_ms: u64) -> String {
    let second = unix_ms / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02} UTC", second / 3_600, second / 60 % 60, second % 60)
}

fn clipped(text: &str, columns: u16) -> String {
    text.chars().filter(|character| !character.is_control()).take(usize::from(columns)).collect()
}

/// Writes in one piece, so that other output cannot intervene. A closed terminal ends the shell soon.
pub(crate) fn write(text: &str) {
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
        let since = Some(1_763_848_006_999);
        assert_eq!(border(Standing::Ready, since, 5), "-----");
        let text = border(Standing::Connecting, since, 80);
        assert!(text.starts_with("-- not connected since 21:46:46 UTC: this came before ----"), "{text}");
        assert!(border(Standing::Off, None, 60).starts_with("-- not connected: this came before ----"));
    }

    #[test]
    fn lines_are_clipped_and_say_nothing_to_the_terminal() {
        assert_eq!(clipped("abc\x1b[2Jdef", 5), "abc[2");
    }
}

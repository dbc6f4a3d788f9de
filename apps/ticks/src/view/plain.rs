//! The view as lines of text without escape codes, safe to pipe: one line a second while connected.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};

use tickpath_monitor::format;

use super::data::TicksView;
use crate::client::{Count, LinkState, Span};

/// Formats the view's state, tick rate, main counters and latency as one line.
#[must_use]
pub fn plain_line(view: &TicksView) -> String {
    let mut line = format::clock(view.elapsed);
    // The results of `write!` are ignored: writing to a string does not fail.
    if let Some(planned) = view.planned {
        let _ = write!(line, " of {}", format::clock(planned));
    }
    let count = |count| format::count(view.counts.of(count));
    let _ = write!(
        line,
        " | {} | ticks {}/s | {} ticks of {} symbols | gaps {} lost {} corrupt {} skipped {} reconnects {}",
        view.state.label(),
        format::rate(view.ticks_per_s),
        count(Count::Ticks),
        view.rows.len(),
        count(Count::Gaps),
        count(Count::Lost),
        count(Count::Corrupt),
        count(Count::Skipped),
        format::count(view.counts.reconnects()),
    );
    let total = view.latency(Span::Total);
    if total.count > 0 {
        let (p50, p99) = (format::latency(total.p50_ns), format::latency(total.p99_ns));
        let _ = write!(line, " | {} p50/p99 {p50}/{p99}", Span::Total.name());
    }
    line
}

/// Writes a line each second, and each failure once. Without a connection, omits a line whose figures equal
/// those of the line before.
pub(super) struct PlainWriter<W> {
    out: W,
    second_written: Option<u64>,
    last_error_written: Option<String>,
    /// The last line written, without its time.
    status_written: String,
    /// True once the reader closed the pipe.
    is_closed: bool,
}

impl<W: Write> PlainWriter<W> {
    pub(super) fn new(out: W) -> PlainWriter<W> {
        let status_written = String::new();
        PlainWriter { out, second_written: None, last_error_written: None, status_written, is_closed: false }
    }

    /// Writes the status line and the failure, if they are due. Does nothing once the reader closed the pipe.
    pub(super) fn draw(&mut self, view: &TicksView) -> io::Result<()> {
        let mut text = String::new();
        if view.last_error.is_some() && view.last_error != self.last_error_written {
            let last_error = view.last_error.as_deref().unwrap_or_default();
            let _ = writeln!(text, "note: {}", format::printable(last_error));
        }
        // A successful connection clears the stored error, so that the same error after it is written again.
        if view.last_error.is_some() || view.state == LinkState::Live {
            self.last_error_written.clone_from(&view.last_error);
        }
        let second = view.elapsed.as_secs();
        if self.second_written != Some(second) {
            self.second_written = Some(second);
            let line = plain_line(view);
            let figures = line.split_once(" | ").map_or("", |(_, figures)| figures);
            // Without a connection, do not repeat identical figures.
            if view.state == LinkState::Live || figures != self.status_written {
                text += &line;
                text.push('\n');
                figures.clone_into(&mut self.status_written);
            }
        }
        if text.is_empty() || self.is_closed {
            return Ok(());
        }
        match self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            Err(error) => {
                Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
            }
            Ok(()) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_line_a_second_and_each_trouble_once() {
        let mut writer = PlainWriter::new(Vec::new());
        let mut view = TicksView::new("host:1", None);
        view.state = LinkState::Live;
        for (millis, last_error) in
            [(0, None), (500, Some("lost\x1b[1m")), (1000, Some("lost\x1b[1m")), (1500, None)]
        {
            view.elapsed = Duration::from_millis(millis);
            view.last_error = last_error.map(str::to_owned);
            writer.draw(&view).unwrap();
        }
        let text = String::from_utf8(writer.out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[1]), (3, "note: lost[1m"), "{text}");
        assert!(lines[0].starts_with("00:00 | live | ticks 0/s | 0 ticks of 0 symbols"), "{text}");
    }

    #[test]
    fn a_missing_server_is_one_line() {
        let mut writer = PlainWriter::new(Vec::new());
        let mut view = TicksView::new("host:1", None);
        let states = [LinkState::Connecting, LinkState::Waiting, LinkState::Waiting, LinkState::Waiting];
        for (second, state) in (0..).zip(states) {
            (view.elapsed, view.state) = (Duration::from_secs(second), state);
            writer.draw(&view).unwrap();
        }
        assert_eq!(writer.out.iter().filter(|byte| **byte == b'\n').count(), 2, "connecting, then waiting");
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
        struct FailingWriter(ErrorKind, usize);
        impl Write for FailingWriter {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                self.1 += 1;
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut view = TicksView::new("host:1", None);
        let mut writer = PlainWriter::new(FailingWriter(ErrorKind::BrokenPipe, 0));
        for second in 0..3 {
            view.elapsed = Duration::from_secs(second);
            writer.draw(&view).unwrap();
        }
        assert_eq!(writer.out.1, 1);
        let error = PlainWriter::new(FailingWriter(ErrorKind::StorageFull, 0)).draw(&view).unwrap_err();
        assert!(error.to_string().starts_with("cannot write to standard output: "), "{error}");
    }
}

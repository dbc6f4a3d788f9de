//! The view as plain lines: one a second, no escape codes, safe to pipe.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};

use crate::data::MarketView;
use crate::{format, state};

/// Returns the whole view as one line, without a line break.
#[must_use]
pub fn plain_line(view: &MarketView) -> String {
    let mut line = format::clock(view.elapsed);
    // The results of `write!` are ignored: writing to a string does not fail.
    if let Some(planned) = view.planned {
        let _ = write!(line, " of {}", format::clock(planned));
    }
    let rates = view.rates;
    for (name, value) in
        [("orders", rates.orders), ("market messages", rates.messages), ("fills", rates.fills)]
    {
        let _ = write!(line, " | {name} {}/s", format::rate(value));
    }
    let measured: Vec<String> = view
        .latency
        .iter()
        .filter(|span| span.count > 0)
        .map(|span| {
            let (p50, p99) = (format::latency(span.p50_ns), format::latency(span.p99_ns));
            format!("{} {p50}/{p99}", format::printable(&span.name))
        })
        .collect();
    if !measured.is_empty() {
        let _ = write!(line, " | p50/p99 {}", measured.join(", "));
    }
    let _ = write!(line, " | {}", state::of(view).0);
    line
}

/// Writes [`plain_line`] once per second of [`MarketView::elapsed`], and each note once.
pub struct PlainWriter<W> {
    out: W,
    second_written: Option<u64>,
    notes_written: usize,
    /// True once the reader closed the pipe.
    is_closed: bool,
}

impl<W: Write> PlainWriter<W> {
    pub fn new(out: W) -> PlainWriter<W> {
        PlainWriter { out, second_written: None, notes_written: 0, is_closed: false }
    }

    /// Writes the line and the notes that are due. Does nothing once the reader closed the pipe.
    pub fn draw(&mut self, view: &MarketView) -> io::Result<()> {
        let second = view.elapsed.as_secs();
        if self.is_closed || self.second_written == Some(second) {
            return Ok(());
        }
        let mut text = plain_line(view) + "\n";
        for note in view.notes.iter().skip(self.notes_written) {
            let _ = writeln!(text, "note: {}", format::printable(note));
        }
        self.second_written = Some(second);
        self.notes_written = view.notes.len();
        match self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(millis: u64) -> MarketView {
        MarketView { elapsed: Duration::from_millis(millis), ..MarketView::default() }
    }

    #[test]
    fn one_line_a_second_and_each_note_once() {
        let mut writer = PlainWriter::new(Vec::new());
        for millis in [0, 250, 999, 1_000, 1_250, 2_300] {
            let view = MarketView { notes: vec!["socket buffers are small\x1b[1m".into()], ..at(millis) };
            writer.draw(&view).unwrap();
        }
        let text = String::from_utf8(writer.out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[1], "note: socket buffers are small[1m");
        assert!(lines[3].starts_with("00:02 | orders 0/s"), "{text}");
    }

    /// A writer that fails like a pipe whose reader closed it, and counts the attempts to write.
    struct ClosedPipe(usize);

    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            Err(ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_ends_the_drawing_quietly() {
        let mut writer = PlainWriter::new(ClosedPipe(0));
        for second in 0..3 {
            writer.draw(&at(second * 1_000)).unwrap();
        }
        assert_eq!(writer.out.0, 1);
    }
}

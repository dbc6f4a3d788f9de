//! Standard output and standard error of a program whose reader may disconnect, or whose disk may be full.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write, stderr, stdout};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Prints one or more lines to standard output.
///
/// Once the reader of a pipe has exited (`tickpath demo | head`), prints nothing and returns no error.
///
/// # Errors
/// Any other failure to write, such as a full disk. Its message names standard output.
pub fn print_stdout(lines: impl Display) -> io::Result<()> {
    write_lines(&mut stdout(), lines)
}

fn write_lines(out: &mut impl Write, lines: impl Display) -> io::Result<()> {
    match writeln!(out, "{lines}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Returns false once the reader of standard output has exited, so that a program that prints until stopped
/// can exit too. Always true for a file.
#[must_use]
pub fn has_reader() -> bool {
    is_read(&stdout())
}

fn is_read(out: &impl AsFd) -> bool {
    let mut polled = [PollFd::new(out.as_fd(), PollFlags::empty())];
    let disconnected = PollFlags::POLLERR | PollFlags::POLLHUP;
    let is_polled = poll(&mut polled, PollTimeout::ZERO).is_ok();
    !is_polled || !polled[0].revents().is_some_and(|found| found.intersects(disconnected))
}

/// Prints one or more lines to standard error.
///
/// Ignores failures, such as a pipe without a reader, because there is no other place to report them.
pub fn print_stderr(lines: impl Display) {
    print_stderr_part(format_args!("{lines}\n"));
}

/// Prints to standard error without a newline, for a line that grows or is overwritten. Ignores failures.
pub fn print_stderr_part(text: impl Display) {
    let _ = write!(stderr(), "{text}");
}

/// Standard output of a program that continues when the output fails.
///
/// A venue continues to serve, and a trader continues to watch its orders, when the disk that stores their
/// output is full. The first failure is printed on standard error, and [`finish`](Self::finish) returns it.
#[derive(Debug, Default)]
#[must_use = "finish() says whether everything was printed"]
pub struct Console {
    failure: Option<io::Error>,
}

impl Console {
    /// Prints as [`print_stdout`] does, and records a failure. Later calls still try to print.
    pub fn print_stdout(&mut self, lines: impl Display) {
        self.record(print_stdout(lines));
    }

    fn record(&mut self, result: io::Result<()>) {
        if let Err(error) = result
            && self.failure.is_none()
        {
            print_stderr(format_args!("warning: {error}"));
            self.failure = Some(error);
        }
    }

    /// Returns an error if anything was not printed, for the program's exit code.
    ///
    /// # Errors
    /// The first failure.
    pub fn finish(self) -> io::Result<()> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// Formats `1234567` as `1,234,567`.
#[must_use]
pub fn thousands(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with its noun, plural unless the number is 1: `1 order`, `2 orders`, `1,234 orders`.
#[must_use]
pub fn counted(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", thousands(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that fails every write with an error of this kind.
    struct Refuses(ErrorKind);

    impl Write for Refuses {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error_and_a_closed_pipe_is_not() {
        let mut out = Vec::new();
        write_lines(&mut out, "one\ntwo").unwrap();
        assert_eq!(out, b"one\ntwo\n");
        write_lines(&mut Refuses(ErrorKind::BrokenPipe), "").unwrap();
        let error = write_lines(&mut Refuses(ErrorKind::StorageFull), "").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("cannot write to standard output: "), "{error}");
    }

    #[test]
    fn a_pipe_has_a_reader_until_it_disconnects() {
        let (reader, writer) = io::pipe().unwrap();
        assert!(is_read(&writer));
        drop(reader);
        assert!(!is_read(&writer));
        assert!(is_read(&tempfile::tempfile().unwrap()));
    }

    #[test]
    fn a_console_continues_and_keeps_the_first_failure() {
        let mut console = Console::default();
        console.record(Ok(()));
        for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
            console.record(write_lines(&mut Refuses(kind), ""));
        }
        console.record(Ok(()));
        assert_eq!(console.finish().unwrap_err().kind(), ErrorKind::StorageFull);
        Console::default().finish().unwrap();
    }

    #[test]
    fn one_is_singular() {
        let texts = [0, 1, 2, 1_000].map(|number| counted(number, "order"));
        assert_eq!(texts, ["0 orders", "1 order", "2 orders", "1,000 orders"]);
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0_u64, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
        assert_eq!(thousands(u64::MAX), "18,446,744,073,709,551,615");
    }
}

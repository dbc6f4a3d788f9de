//! Standard output of a program whose reader may go away.

use std::fmt::Display;
use std::io::{ErrorKind, Write, stdout};

/// Prints a line, or several, to standard output.
///
/// Once the reader of a pipe went away (`tickpath demo | head`) it does nothing: what the program is for -
/// cancelling its orders, writing its results to a file - goes on.
///
/// # Panics
/// When standard output fails for another reason, such as a full disk.
pub fn say(lines: impl Display) {
    match writeln!(stdout(), "{lines}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            panic!("cannot write to standard output: {error}")
        }
        _ => {}
    }
}

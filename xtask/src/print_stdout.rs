//! Writes to standard output.

use std::fmt::Display;
use std::io::{Write, stdout};

/// Prints one or more lines.
///
/// Ignores a closed pipe (`cargo xtask ci | head`): the work continues, and the exit code shows the result.
pub fn print_stdout(lines: impl Display) {
    let mut out = stdout();
    let _ = writeln!(out, "{lines}").and_then(|()| out.flush());
}

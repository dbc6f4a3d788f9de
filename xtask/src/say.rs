//! Standard output.

use std::fmt::Display;
use std::io::{Write, stdout};

/// Prints a line, or several.
///
/// A reader that went away (`cargo xtask ci | head`) ends nothing: work goes on to its end, and the exit code tells.
pub fn say(lines: impl Display) {
    let mut out = stdout();
    let _ = writeln!(out, "{lines}").and_then(|()| out.flush());
}

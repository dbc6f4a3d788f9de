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

/// `1234567` as `1,234,567`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0_u64, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
        assert_eq!(thousands(u64::MAX), "18,446,744,073,709,551,615");
    }
}

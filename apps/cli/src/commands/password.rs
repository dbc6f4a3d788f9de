//! Reads a password from standard input, without echo on a terminal.

use std::io::{self, BufRead, Read, stdin};

use nix::sys::termios::{self, LocalFlags, SetArg, SpecialCharacterIndices, Termios};
use tickpath_agent::StopSignal;
use tickpath_config::print_stderr;

/// Maximum number of input bytes read.
const INPUT_MAX: u64 = 256;
/// Time-out of one terminal read, in tenths of a second, after which the stop signal is checked.
const WAIT_TENTHS: u8 = 2;

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: [u8; 2] = [8, 127];
const CTRL_U: u8 = 21;

/// Returns the first line of standard input without its line end; `None` after Ctrl-C at a terminal. A
/// password on the command line would be visible to other users.
pub fn prompt() -> anyhow::Result<Option<Vec<u8>>> {
    let Some(hidden) = HiddenInput::begin()? else {
        let mut line = Vec::new();
        stdin().lock().take(INPUT_MAX).read_until(b'\n', &mut line)?;
        let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
        line.truncate(end);
        return Ok(Some(line));
    };
    print_stderr("password, which is not shown, then Enter:");
    let stop = StopSignal::on_signals()?;
    let typed = read_typed(|| {
        let mut byte = [0];
        match stdin().lock().read(&mut byte) {
            _ if stop.is_stopped() => Ok(Key::Byte(CTRL_C)),
            Ok(0) => Ok(Key::None),
            Ok(_) => Ok(Key::Byte(byte[0])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Key::None),
            Err(error) => Err(error),
        }
    });
    drop(hidden);
    Ok(typed?)
}

enum Key {
    Byte(u8),
    /// No key was typed before the time-out.
    None,
}

/// Reads the keys up to Enter; `None` after Ctrl-C.
fn read_typed(mut next: impl FnMut() -> io::Result<Key>) -> io::Result<Option<Vec<u8>>> {
    let mut typed = Vec::new();
    loop {
        let Key::Byte(byte) = next()? else { continue };
        match byte {
            b'\n' | b'\r' => return Ok(Some(typed)),
            CTRL_D if typed.is_empty() => return Ok(Some(typed)),
            CTRL_C => return Ok(None),
            CTRL_U => typed.clear(),
            byte if BACKSPACE.contains(&byte) => {
                // Remove all bytes of a multi-byte character.
                while typed.pop().is_some_and(|removed| removed & 0b1100_0000 == 0b1000_0000) {}
            }
            byte if (typed.len() as u64) < INPUT_MAX => typed.push(byte),
            _ => {}
        }
    }
}

/// Disables a terminal's echo and line mode until dropped. Ctrl-C is then a normal key, so that it cannot end
/// the program before the terminal is restored.
struct HiddenInput(Termios);

impl HiddenInput {
    /// Begins hidden input; `None` when standard input is not a terminal.
    fn begin() -> io::Result<Option<HiddenInput>> {
        let Ok(shown) = termios::tcgetattr(stdin()) else { return Ok(None) };
        let mut hidden = shown.clone();
        hidden.local_flags.remove(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG);
        hidden.control_chars[SpecialCharacterIndices::VMIN as usize] = 0;
        hidden.control_chars[SpecialCharacterIndices::VTIME as usize] = WAIT_TENTHS;
        termios::tcsetattr(stdin(), SetArg::TCSADRAIN, &hidden)?;
        Ok(Some(HiddenInput(shown)))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(stdin(), SetArg::TCSADRAIN, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[u8]) -> Option<Vec<u8>> {
        let mut keys = keys.iter();
        let mut is_pause = false;
        read_typed(|| {
            is_pause = !is_pause;
            Ok(if is_pause {
                Key::None
            } else {
                Key::Byte(*keys.next().expect("it ends with a key that ends it"))
            })
        })
        .unwrap()
    }

    #[test]
    fn keys_are_a_password() {
        for (keys, password) in [
            (&b"hunter2\n"[..], &b"hunter2"[..]),
            (b"hunter2\r", b"hunter2"),
            (b"hux\x7fnter\x082\n", b"hunte2"),
            ("a\u{e4}\x7fb\n".as_bytes(), b"ab"),
            (b"\x7f\x7fa\n", b"a"),
            (b"wrong\x15right\n", b"right"),
            (b"\x04", b""),
            (b"a\x04b\n", b"a\x04b"),
        ] {
            assert_eq!(typed(keys).as_deref(), Some(password), "{keys:?}");
        }
        assert_eq!(typed(b"hunter\x03"), None);
        assert_eq!(typed(&[vec![b'x'; 300], vec![b'\n']].concat()).unwrap().len() as u64, INPUT_MAX);
    }
}

//! Single-pass reading of the form that servers write.

use tickpath_lockfree::cpu::string_stops;

use super::{DEPTH_MAX, Scanner, Value};
use crate::number::number_len;
use crate::text::Text;

/// The unread rest of a frame, for readers of the form that servers write: plain names and strings, no
/// spaces. They read and validate known forms, or return nothing.
#[derive(Clone, Copy, Debug)]
pub struct Rest<'a> {
    pub(super) frame: &'a str,
    /// The rest of the frame.
    pub(super) bytes: &'a [u8],
    /// Number of containers that may still be nested.
    pub(super) room: u64,
}

impl<'a> Rest<'a> {
    #[inline(always)]
    pub(crate) const fn new(frame: &'a str, bytes: &'a [u8], room: u64) -> Rest<'a> {
        Rest { frame, bytes, room }
    }

    /// The arguments of [`new`](Rest::new).
    #[inline(always)]
    pub(crate) const fn parts(self) -> (&'a str, &'a [u8], u64) {
        (self.frame, self.bytes, self.room)
    }

    /// Bytes of the rest.
    #[must_use]
    #[inline(always)]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The whole frame.
    #[inline(always)]
    pub(crate) const fn frame(&self) -> &'a str {
        self.frame
    }

    /// True if a container may be opened.
    #[inline(always)]
    pub(crate) const fn has_room(&self) -> bool {
        self.room > 0
    }

    /// Offset in the frame.
    #[inline(always)]
    pub(crate) const fn at(&self) -> usize {
        self.frame.len() - self.bytes.len()
    }

    /// The rest after `literal`, if it starts with `literal`.
    #[must_use]
    #[inline(always)]
    pub fn after(self, literal: &'static str) -> Option<Rest<'a>> {
        if starts_with(self.bytes, literal.as_bytes()) { self.skip(literal.len()) } else { None }
    }

    /// The first `len` bytes, and the rest after them.
    #[inline(always)]
    pub(crate) fn split(self, len: usize) -> Option<(&'a str, Rest<'a>)> {
        let at = self.at();
        Some((self.frame.get(at..at + len)?, self.skip(len)?))
    }

    /// The rest after the first `len` bytes.
    #[inline(always)]
    pub(crate) fn skip(self, len: usize) -> Option<Rest<'a>> {
        Some(Rest { bytes: self.bytes.get(len..)?, ..self })
    }

    /// The rest after the bracket that opens a container; `None` if it is nested too deeply.
    #[inline(always)]
    pub(crate) fn open(self, bracket: &'static str) -> Option<Rest<'a>> {
        let rest = self.after(bracket)?;
        Some(Rest { room: self.room.checked_sub(1)?, ..rest })
    }

    /// The rest after a container is closed.
    #[inline(always)]
    pub(crate) const fn close(self) -> Rest<'a> {
        Rest { room: self.room + 1, ..self }
    }

    /// Reads a value of any type, for later decoding.
    #[inline]
    pub(crate) fn value(self) -> Option<(Value<'a>, Rest<'a>)> {
        let end = match self.after("null") {
            Some(end) => end,
            None => self.skip(quick_value_end(self.bytes(), 0, self.room)?)?,
        };
        Some((self.value_to(end), end))
    }

    /// The value from here to the start of `end`.
    #[inline(always)]
    pub(crate) const fn value_to(self, end: Rest<'a>) -> Value<'a> {
        // Every transport rejects frames of 4 GiB before.
        Value {
            frame: self.frame,
            start: self.at() as u32,
            end: end.at() as u32,
            depth: (DEPTH_MAX - self.room) as u32,
            is_query: false,
        }
    }

    /// Reads a string.
    #[inline(always)]
    pub(crate) fn string(self) -> Option<(Text<'a>, Rest<'a>)> {
        let at = self.at();
        let (len, has_escapes) = string_len(self.frame, at);
        let text = self.frame.get(at + 1..(at + len).checked_sub(1)?)?;
        Some((Text::borrowed(text, has_escapes), self.skip(len)?))
    }

    /// Reads the name of a member, and the rest after its colon.
    #[inline(always)]
    pub(crate) fn name(self) -> Option<(&'a str, Rest<'a>)> {
        let (at, len) = (self.at(), key_len(self.bytes));
        Some((self.frame.get(at + 1..(at + len).checked_sub(2)?)?, self.skip(len)?))
    }
}

/// Length of the name at the start of `bytes`, including quotes and colon; 0 if there is none.
#[inline(never)]
fn key_len(bytes: &[u8]) -> usize {
    quick_key_end(bytes, 0).unwrap_or(0)
}

/// Position of the first quote, backslash or control character from `at` on; the end if there is none.
#[inline(always)]
pub(super) fn string_stop(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let stops = string_stops(chunk);
        if stops != 0 {
            return at + stops.trailing_zeros() as usize;
        }
        at += 16;
    }
    string_stop_near_end(bytes, at)
}

/// True if `bytes` start with a constant text. Compares the first eight bytes first, because they identify
/// absent members.
#[inline(always)]
pub(crate) fn starts_with(bytes: &[u8], literal: &'static [u8]) -> bool {
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    match (literal.first_chunk().map(word), bytes.first_chunk().map(word)) {
        (Some(wanted), Some(found)) => found == wanted && bytes[8..].starts_with(&literal[8..]),
        _ => bytes.starts_with(literal),
    }
}

/// Length of the string at an offset of the frame, including quotes, and whether it has escapes; 0 for no
/// string. One function for all fields keeps the code of messages small for the cache.
#[inline(never)]
fn string_len(frame: &str, at: usize) -> (usize, bool) {
    let bytes = frame.as_bytes();
    if bytes.get(at) != Some(&b'"') {
        return (0, false);
    }
    let stop = string_stop(bytes, at + 1);
    if bytes.get(stop) == Some(&b'"') { (stop + 1 - at, false) } else { escaped_string_len(frame, at) }
}

/// [`string_len`] for strings that are not plain.
#[cold]
fn escaped_string_len(frame: &str, at: usize) -> (usize, bool) {
    let mut scanner = Scanner { at, ..Scanner::new(frame) };
    scanner.any_text().map_or((0, false), |text| (text.raw_len() + 2, true))
}

#[inline(never)]
fn string_stop_near_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b'"' | b'\\' | 0..0x20) {
            break;
        }
        at += 1;
    }
    at
}

/// End of the value at `at`, if it has no spaces or escapes and at most `room` nested containers. `None` for
/// any other value or invalid JSON.
fn quick_value_end(bytes: &[u8], mut at: usize, room: u64) -> Option<usize> {
    // One bit per container opened here: 1 for an object.
    let (mut kinds, mut depth) = (0_u64, 0);
    loop {
        match *bytes.get(at)? {
            b'"' => at = quick_string_end(bytes, at + 1)?,
            b'-' | b'0'..=b'9' => at += number_len(&bytes[at..])?,
            b'{' if depth < room => {
                (kinds, depth, at) = (kinds << 1 | 1, depth + 1, at + 1);
                if *bytes.get(at)? != b'}' {
                    at = quick_key_end(bytes, at)?;
                    continue;
                }
            }
            b'[' if depth < room => {
                (kinds, depth, at) = (kinds << 1, depth + 1, at + 1);
                if *bytes.get(at)? != b']' {
                    continue;
                }
            }
            b't' if bytes[at..].starts_with(b"true") => at += 4,
            b'f' if bytes[at..].starts_with(b"false") => at += 5,
            b'n' if bytes[at..].starts_with(b"null") => at += 4,
            _ => return None,
        }
        // Continue to the next value, or leave every container that ends here.
        while depth > 0 {
            match (*bytes.get(at)?, kinds & 1) {
                (b',', 0) => {
                    at += 1;
                    break;
                }
                (b',', _) => {
                    at = quick_key_end(bytes, at + 1)?;
                    break;
                }
                (b']', 0) | (b'}', 1) => (kinds, depth, at) = (kinds >> 1, depth - 1, at + 1),
                _ => return None,
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// End of the string after its closing quote; its content starts at `at`.
#[inline(always)]
fn quick_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let end = string_stop(bytes, at);
    if bytes.get(end) == Some(&b'"') { Some(end + 1) } else { None }
}

/// End of the name at `at`, after its colon.
#[inline(always)]
fn quick_key_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let end = quick_string_end(bytes, at + 1)?;
    if bytes.get(end) == Some(&b':') { Some(end + 1) } else { None }
}

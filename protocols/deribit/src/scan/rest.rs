//! Reading the form that servers write, in one look.

use tickpath_lockfree::cpu::string_stops;

use super::{DEPTH_MAX, Scanner, Value};
use crate::number::{Decimal, number_len};
use crate::text::Text;

/// What of a frame is still to be read, for readers of the form that servers write: plain names and strings, no spaces.
/// They take what they know, checked, or nothing.
#[derive(Clone, Copy, Debug)]
pub struct Rest<'a> {
    pub(super) frame: &'a str,
    pub(super) text: &'a str,
    /// Containers that may be opened within each other from here on.
    pub(super) room: u8,
}

impl<'a> Rest<'a> {
    /// Its bytes.
    #[must_use]
    #[inline(always)]
    pub const fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Bytes of the frame before it.
    #[inline(always)]
    pub(super) const fn at(&self) -> usize {
        self.frame.len() - self.text.len()
    }

    /// The rest behind `literal`, if it starts with that.
    #[must_use]
    #[inline(always)]
    pub fn after(self, literal: &'static str) -> Option<Rest<'a>> {
        Some(Rest { text: self.text.strip_prefix(literal)?, ..self })
    }

    /// The first `len` bytes and the rest behind them.
    #[inline(always)]
    pub(crate) fn split(self, len: usize) -> Option<(&'a str, Rest<'a>)> {
        let (text, rest) = self.text.split_at_checked(len)?;
        Some((text, Rest { text: rest, ..self }))
    }

    /// The rest behind the first `len` bytes.
    #[inline(always)]
    pub(crate) fn skip(self, len: usize) -> Option<Rest<'a>> {
        Some(Rest { text: self.text.get(len..)?, ..self })
    }

    /// The rest behind the bracket that opens a container; none when there are too many open.
    #[inline(always)]
    pub(crate) fn open(self, bracket: &'static str) -> Option<Rest<'a>> {
        let rest = self.after(bracket)?;
        Some(Rest { room: self.room.checked_sub(1)?, ..rest })
    }

    /// The rest behind a container, which is closed.
    #[inline(always)]
    pub(crate) const fn close(self) -> Rest<'a> {
        Rest { room: self.room + 1, ..self }
    }

    /// A value of any kind, to be read later.
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
        // Frames of 4 GiB are refused long before by every transport.
        Value {
            frame: self.frame,
            start: self.at() as u32,
            end: end.at() as u32,
            depth: DEPTH_MAX - self.room,
        }
    }

    /// A string.
    #[inline(always)]
    pub(crate) fn string(self) -> Option<(Text<'a>, Rest<'a>)> {
        let (len, has_escapes) = string_len(self.text);
        let (text, rest) = self.after("\"")?.split(len)?;
        Some((Text::borrowed(text, has_escapes), rest.after("\"")?))
    }

    /// A number, read here.
    #[inline(always)]
    pub(crate) fn decimal(self) -> Option<(Decimal, Rest<'a>)> {
        let (decimal, len) = Decimal::read_quick(self.bytes())?;
        Some((decimal, self.skip(len)?))
    }

    /// The name of a member, and the rest behind its colon.
    #[inline]
    pub(crate) fn name(self) -> Option<(&'a str, Rest<'a>)> {
        let rest = self.after("\"")?;
        let (name, rest) = rest.split(string_stop(rest.bytes(), 0))?;
        Some((name, rest.after("\":")?))
    }
}

/// The first quote, backslash or control character from `at` on; the end when there is none.
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

/// Length of the string that `text` starts with, between its quotes, and if it has escapes; of what is no string, something
/// behind which there is no quote. One function for all fields: a message's code must not crowd the cache.
#[inline(never)]
fn string_len(text: &str) -> (usize, bool) {
    let stop = string_stop(text.as_bytes(), 1);
    if text.as_bytes().get(stop) == Some(&b'\\') {
        return Scanner::new(text)
            .any_text()
            .map_or((text.len(), false), |escaped| (escaped.raw_len(), true));
    }
    (stop - 1, false)
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

/// Where the value at `at` ends, when it is written without spaces and escapes, with at most `room` containers within
/// each other. None for any other value, and what is no value.
fn quick_value_end(bytes: &[u8], mut at: usize, room: u8) -> Option<usize> {
    // One bit for each container opened here: 1 for an object.
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
        // To the next value, or out of every container that ends here.
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

/// Where the string ends whose content starts at `at`, behind its quote.
#[inline(always)]
fn quick_string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let end = string_stop(bytes, at);
    if bytes.get(end) == Some(&b'"') { Some(end + 1) } else { None }
}

/// Where the name at `at` ends, behind its colon.
#[inline(always)]
fn quick_key_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let end = quick_string_end(bytes, at + 1)?;
    if bytes.get(end) == Some(&b':') { Some(end + 1) } else { None }
}

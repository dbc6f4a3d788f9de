//! Strings in place in a frame, unescaped on reading.

use std::borrow::Cow;
use std::fmt;

use tickpath_lockfree::cpu::string_stops;

/// A borrowed string; escapes are resolved only when its characters are read.
#[derive(Clone, Copy, Default)]
pub struct Text<'a> {
    raw: &'a str,
    /// 1 if the string has escapes, otherwise 0. A whole word, because padded types are copied slowly.
    escaped: u64,
}

impl<'a> Text<'a> {
    /// Creates a string to write; writing escapes it as JSON requires.
    #[must_use]
    pub const fn new(text: &'a str) -> Text<'a> {
        Text { raw: text, escaped: 0 }
    }

    /// Creates a string from the content of a JSON string that the scanner has validated.
    pub(crate) const fn borrowed(raw: &'a str, has_escapes: bool) -> Text<'a> {
        Text { raw, escaped: has_escapes as u64 }
    }

    const fn has_escapes(self) -> bool {
        self.escaped != 0
    }

    /// Number of bytes between the quotes, as received.
    pub(crate) const fn raw_len(self) -> usize {
        self.raw.len()
    }

    /// The string if it has no escapes: names, codes and ids never need any.
    #[must_use]
    pub const fn plain(self) -> Option<&'a str> {
        if self.has_escapes() { None } else { Some(self.raw) }
    }

    /// The string, borrowed if it has no escapes.
    #[must_use]
    pub fn to_cow(self) -> Cow<'a, str> {
        match self.plain() {
            Some(plain) => Cow::Borrowed(plain),
            None => Cow::Owned(self.chars().collect()),
        }
    }

    /// True for the empty string.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// Characters of the string. An escaped unpaired surrogate becomes U+FFFD.
    pub fn chars(self) -> impl Iterator<Item = char> + 'a {
        let mut rest = self.raw.chars();
        std::iter::from_fn(move || {
            let next = rest.next()?;
            if next != '\\' || !self.has_escapes() {
                return Some(next);
            }
            Some(match rest.next()? {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => unescape_unicode(&mut rest),
                // A quote, a backslash or a slash.
                other => other,
            })
        })
    }

    /// Copies the string into `buffer` and returns the copy; `None` if the buffer is too small.
    pub(crate) fn copy_into(self, buffer: &mut [u8]) -> Option<&str> {
        let mut len = 0;
        for character in self.chars() {
            let room = buffer.get_mut(len..len + character.len_utf8())?;
            len += character.encode_utf8(room).len();
        }
        std::str::from_utf8(&buffer[..len]).ok()
    }

    /// Appends the string as JSON.
    pub fn write(self, out: &mut Vec<u8>) {
        out.reserve(self.raw.len() + 2);
        out.push(b'"');
        if self.has_escapes() {
            // Received as JSON, and written unchanged as JSON.
            out.extend_from_slice(self.raw.as_bytes());
        } else {
            write_escaped(self.raw, out);
        }
        out.push(b'"');
    }
}

fn hex4(rest: &mut std::str::Chars<'_>) -> Option<u32> {
    let mut value = 0;
    for _ in 0..4 {
        value = value * 16 + rest.next()?.to_digit(16)?;
    }
    Some(value)
}

fn unescape_unicode(rest: &mut std::str::Chars<'_>) -> char {
    let Some(first) = hex4(rest) else { return char::REPLACEMENT_CHARACTER };
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER);
    }
    let mut after = rest.clone();
    let second =
        if after.next() == Some('\\') && after.next() == Some('u') { hex4(&mut after) } else { None };
    match second {
        Some(second @ 0xdc00..0xe000) => {
            *rest = after;
            let value = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        _ => char::REPLACEMENT_CHARACTER,
    }
}

/// True if JSON has the text as it is. Sixteen bytes at a time: texts are short and rarely need an escape.
#[inline]
fn is_plain(text: &[u8]) -> bool {
    let Some(last) = text.last_chunk() else {
        return text.iter().fold(true, |all, byte| all & !matches!(byte, b'"' | b'\\' | 0..0x20));
    };
    // The last sixteen bytes may overlap those before them.
    text.as_chunks().0.iter().fold(string_stops(last), |stops, chunk| stops | string_stops(chunk)) == 0
}

fn write_escaped(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    if is_plain(text.as_bytes()) {
        return out.extend_from_slice(text.as_bytes());
    }
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
            _ => out.push(byte),
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Text<'_>) -> bool {
        match (self.plain(), other.plain()) {
            (Some(a), Some(b)) => a == b,
            _ => self.chars().eq(other.chars()),
        }
    }
}

impl Eq for Text<'_> {}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        *self == Text::new(other)
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == Text::new(other)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Text<'a> {
        Text::new(text)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_cow())
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_cow(), f)
    }
}

/// A string that is never displayed: a client's secret, a token, a signature.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Secret<'a>(Text<'a>);

impl<'a> Secret<'a> {
    /// Creates a secret to write.
    #[must_use]
    pub const fn new(text: &'a str) -> Secret<'a> {
        Secret(Text::new(text))
    }

    pub(crate) const fn from_text(text: Text<'a>) -> Secret<'a> {
        Secret(text)
    }

    /// The string itself: do not log it or store it unprotected.
    #[must_use]
    pub const fn expose(self) -> Text<'a> {
        self.0
    }
}

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_resolved_when_read_and_made_when_written() {
        let text = Text::borrowed(r#"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud800x\udc00"#, true);
        let plain = "a\"\\/\u{8}\u{c}\n\r\t\u{e9}\u{1f600}\u{fffd}x\u{fffd}";
        assert_eq!(text.to_string(), plain);
        assert_eq!((text, text.plain()), (Text::new(plain), None));
        let mut out = Vec::new();
        Text::new("q\"\\\u{1}\n\u{e9}").write(&mut out);
        assert_eq!(String::from_utf8(out.clone()).unwrap(), "\"q\\\"\\\\\\u0001\\u000a\u{e9}\"");
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), "q\"\\\u{1}\n\u{e9}");
        assert_eq!(text.copy_into(&mut [0; 8]), None);
        assert_eq!(Text::borrowed(r"public\/auth", true).copy_into(&mut [0; 11]), Some("public/auth"));
    }

    #[test]
    fn a_character_to_escape_is_found_at_every_place() {
        for len in 0..40 {
            for (place, byte) in (0..len).flat_map(|place| [(place, b'"'), (place, b'\\'), (place, 0x1f)]) {
                let mut bytes = vec![b'~'; len];
                bytes[place] = byte;
                assert!(!is_plain(&bytes), "{byte} at {place} of {len}");
            }
            assert!(is_plain(&vec![b' '; len]) && is_plain(&vec![0xff; len]), "{len}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("AMANDASECRECT")), "[secret]");
    }
}

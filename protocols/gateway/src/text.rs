//! Text in a field of fixed length.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Up to `N` bytes of printable ASCII (space to `~`), then zeros.
///
/// Another process may have written arbitrary bytes; only the printable ones are shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Text<const N: usize>([u8; N]);

const fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Number of printable bytes at the start. Checks eight at a time.
#[inline]
fn printable_len(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // Sets the highest bit of bytes above `~` and below the space. The lowest of these bits is exact, because
        // a byte without it causes neither a carry nor a borrow.
        let flags = (word | word.wrapping_add(ONES) | word.wrapping_sub(ONES * 0x20)) & (ONES * 0x80);
        if flags != 0 {
            return 8 * index + flags.trailing_zeros() as usize / 8;
        }
    }
    8 * words.len() + rest.iter().take_while(|byte| is_printable(**byte)).count()
}

impl<const N: usize> Text<N> {
    /// The empty text.
    pub const EMPTY: Text<N> = Text([0; N]);

    /// The whole text; `None` if it is longer than `N` bytes or holds a byte that is not printable ASCII.
    #[must_use]
    pub fn new(text: &str) -> Option<Text<N>> {
        let is_text = text.len() <= N && text.bytes().all(is_printable);
        is_text.then(|| Text::cut(text))
    }

    /// The start of the text, cut to `N` bytes, with `?` for each byte that is not printable ASCII. For
    /// display only, never for names that are compared.
    #[must_use]
    pub fn cut(text: &str) -> Text<N> {
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().zip(text.bytes()) {
            *to = if is_printable(from) { from } else { b'?' };
        }
        Text(bytes)
    }

    /// The text, up to the first byte that is not printable.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0[..printable_len(&self.0)]).unwrap_or_default()
    }

    /// Whether there is nothing to show.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        N == 0 || !is_printable(self.0[0])
    }

    /// Whether it is printable text followed by zeros, as [`Text::new`] makes it.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.0[self.as_str().len()..].iter().all(|byte| *byte == 0)
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Text<N> {
        Text::EMPTY
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_kept_whole_or_not_at_all() {
        assert_eq!(Text::<4>::new("ABCD").map(|it| it.to_string()).as_deref(), Some("ABCD"));
        assert_eq!(Text::<4>::new(""), Some(Text::EMPTY));
        for text in ["ABCDE", "é", "a\n", "\u{7f}"] {
            assert_eq!(Text::<4>::new(text), None, "{text}");
        }
    }

    #[test]
    fn every_byte_ends_the_text_or_does_not_at_any_place() {
        for place in 0..21 {
            for byte in 0..=255 {
                let mut bytes = [b'~'; 21];
                bytes[place] = byte;
                let len = if is_printable(byte) { 21 } else { place };
                assert_eq!(printable_len(&bytes), len, "{byte} at {place}");
                // Bytes after the first that is not printable have no effect.
                bytes[place..].fill(byte);
                assert_eq!(printable_len(&bytes), len, "{byte} from {place}");
            }
        }
    }

    #[test]
    fn what_people_read_is_cut_and_printable() {
        assert_eq!(Text::<4>::cut("a\nbcdef").as_str(), "a?bc");
        assert_eq!(Text::<3>::cut("é").as_str(), "??");
    }

    #[test]
    fn bytes_of_others_are_shown_as_far_as_they_are_text() {
        for (bytes, shown, is_valid) in [
            (*b"AB\0\0", "AB", true),
            (*b"A\0B\0", "A", false),
            (*b"\x1b[2J", "", false),
            ([255; 4], "", false),
        ] {
            let text: Text<4> = Text(bytes);
            assert_eq!(
                (text.as_str(), text.is_valid(), text.is_empty()),
                (shown, is_valid, shown.is_empty())
            );
        }
    }
}

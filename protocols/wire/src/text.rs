//! Text fields of fixed width.

use std::fmt;

use tickpath_types::Symbol;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Bits;

/// ASCII text of fixed width, left-justified and padded with spaces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Alpha<const N: usize>(pub [u8; N]);

/// A symbol in 8 bytes, padded with spaces.
pub type Stock = Alpha<8>;

/// Returns `text` padded on the right to `N` bytes; `None` when it is longer or not ASCII.
#[must_use]
pub fn padded<const N: usize>(text: &str, padding: u8) -> Option<[u8; N]> {
    let mut field = [padding; N];
    field.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    text.is_ascii().then_some(field)
}

impl<const N: usize> Alpha<N> {
    /// The field filled with spaces.
    pub const BLANK: Self = Alpha([b' '; N]);

    /// Pads `text`; `None` when it is longer than the field or not ASCII.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        padded(text, b' ').map(Alpha)
    }

    /// Returns the field as text, without trailing spaces; empty if it is not UTF-8.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("").trim_end()
    }
}

impl<const N: usize> Default for Alpha<N> {
    fn default() -> Self {
        Self::BLANK
    }
}

impl<const N: usize> From<[u8; N]> for Alpha<N> {
    #[inline]
    fn from(bytes: [u8; N]) -> Self {
        Alpha(bytes)
    }
}

impl<const N: usize> fmt::Debug for Alpha<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl<const N: usize> Bits for Alpha<N> {
    #[inline]
    fn bits(&self) -> u64 {
        const { assert!(N <= 8) };
        let mut word = [0; 8];
        word[..N].copy_from_slice(&self.0);
        u64::from_be_bytes(word)
    }
}

impl Stock {
    /// Returns the symbol; its bytes are as received and need not be printable.
    #[inline]
    #[must_use]
    pub const fn get(self) -> Symbol {
        Symbol(self.0)
    }
}

impl From<Symbol> for Stock {
    #[inline]
    fn from(symbol: Symbol) -> Self {
        Alpha(symbol.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_padded_and_shown_without_padding() {
        let mpid = Alpha::<4>::new("AB").unwrap();
        assert_eq!((mpid.0, mpid.as_str()), (*b"AB  ", "AB"));
        assert_eq!(Alpha::<4>::new("ABCDE"), None);
        assert_eq!(Alpha::<4>::new("é"), None);
        assert_eq!(format!("{:?}", Alpha([0xff, b'A'])), "\"\\xffA\"");
    }
}

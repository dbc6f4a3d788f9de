//! Names of a segment's rows.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Maximum length of a name, in characters.
pub const SYMBOL_LEN_MAX: usize = 48;

/// The name of a row: ASCII, padded with zero bytes. All zeros mean a row without a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SymbolName {
    text: [u8; SYMBOL_LEN_MAX],
    /// Zero.
    reserved: u64,
}

impl SymbolName {
    /// Creates a name from text; `None` when it is empty, longer than [`SYMBOL_LEN_MAX`], or has a character
    /// outside `!`..`~`.
    #[must_use]
    pub fn new(text: &str) -> Option<SymbolName> {
        let mut name = SymbolName::new_zeroed();
        name.text.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        (name.as_str() == Some(text)).then_some(name)
    }

    /// Returns the name as text; `None` when it is empty or, since any process may have written it, invalid.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        let len = self.text.iter().position(|byte| *byte == 0).unwrap_or(SYMBOL_LEN_MAX);
        let (text, rest) = self.text.split_at(len);
        let is_name = len > 0 && text.iter().all(u8::is_ascii_graphic) && rest.iter().all(|byte| *byte == 0);
        std::str::from_utf8(text).ok().filter(|_| is_name)
    }

    /// Returns whether the row was never named.
    #[must_use]
    pub fn is_unnamed(&self) -> bool {
        *self == SymbolName::new_zeroed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_on_both_sides() {
        let longest = "X".repeat(SYMBOL_LEN_MAX);
        for good in ["A", "BTC-PERPETUAL", longest.as_str()] {
            assert_eq!(SymbolName::new(good).unwrap().as_str(), Some(good));
        }
        for bad in ["", "A B", "\u{e9}", "\x1b[2J", "A\0", &format!("{longest}X")] {
            assert!(SymbolName::new(bad).is_none(), "{bad:?}");
        }
        let mut hostile = SymbolName::new("AB").unwrap();
        hostile.text[5] = b'C';
        assert_eq!(hostile.as_str(), None);
        assert!(SymbolName::new_zeroed().is_unnamed() && !hostile.is_unnamed());
    }
}

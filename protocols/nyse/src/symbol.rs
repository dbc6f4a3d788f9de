//! Text fields of fixed width: symbol, firm and source id.

use std::fmt;

use tickpath_types::Symbol;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Declares types of left-aligned text of fixed width.
macro_rules! text {
    ($( $(#[$doc:meta])* $name:ident($len:literal) padded with $pad:literal )+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(transparent)]
        pub struct $name(pub [u8; $len]);

        impl $name {
            /// The field that contains only padding.
            pub const NONE: $name = $name([$pad; $len]);

            /// Pads `text`; `None` when it is too long or not ASCII.
            #[must_use]
            pub fn new(text: &str) -> Option<$name> {
                tickpath_wire::padded(text, $pad).map($name)
            }

            /// Returns the text without its padding; empty if it is not UTF-8.
            #[must_use]
            pub fn as_str(&self) -> &str {
                std::str::from_utf8(&self.0).unwrap_or("").trim_end_matches(['\0', ' '])
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.as_str())
            }
        }
    )+ };
}

text! {
    /// A symbol in NYSE's form, up to 11 characters padded with NUL, such as `ACP` or `BRK A`.
    XdpSymbol(11) padded with 0
    /// The firm that entered an order, 5 characters padded with blanks.
    Firm(5) padded with b' '
    /// Source id of a client of the request server, up to 10 characters padded with NUL.
    SourceId(10) padded with 0
}

impl XdpSymbol {
    /// Converts to a [`Symbol`], with a point instead of the blank between root and suffix. `None` when the
    /// text is empty, longer than eight characters, or contains a non-printable one.
    #[must_use]
    pub fn symbol(&self) -> Option<Symbol> {
        let text = self.as_str();
        let mut joined = [0; 8];
        let joined = joined.get_mut(..text.len())?;
        for (to, from) in joined.iter_mut().zip(text.bytes()) {
            *to = if from == b' ' { b'.' } else { from };
        }
        Symbol::new(std::str::from_utf8(joined).ok()?).ok()
    }
}

impl From<Symbol> for XdpSymbol {
    fn from(symbol: Symbol) -> XdpSymbol {
        XdpSymbol::new(symbol.as_str()).expect("eight characters of ASCII have room in eleven")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_lose_their_padding_and_blank() {
        assert_eq!(XdpSymbol(*b"ACP\0\0\0\0\0\0\0\0").symbol(), Symbol::new("ACP").ok());
        assert_eq!(XdpSymbol::new("BRK A").unwrap().symbol(), Symbol::new("BRK.A").ok());
        assert_eq!(XdpSymbol::new("EIGHTCHRS").unwrap().symbol(), None);
        assert_eq!(XdpSymbol::NONE.symbol(), None);
        assert_eq!(XdpSymbol([0xff; 11]).symbol(), None);
        assert_eq!(XdpSymbol::from(Symbol::new("ABCDEFGH").unwrap()).as_str(), "ABCDEFGH");
        assert!(XdpSymbol::new("TWELVE CHARS").is_none() && Firm::new("É").is_none());
    }
}

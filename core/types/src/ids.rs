//! Identifiers, each with a distinct type so that one cannot be passed for another.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// The id of an instrument at one venue, dense from 1: ITCH's stock locate. 0 marks messages about the
    /// whole system.
    InstrumentId(u16)
}
id! {
    /// The venue's id of an order: ITCH's order reference number, dense from 1 within a session.
    OrderId(u64)
}
id! {
    /// The venue's id of an execution: the match number of ITCH and OUCH, dense from 1.
    MatchId(u64)
}
id! {
    /// A position in a numbered stream, counted from 1: the command log or a market data session.
    Sequence(u64)
}
id! {
    /// An order entry session: one per user. It is the same over all logins of the user, because its
    /// `UserRefNum`s continue from one login to the next.
    SessionId(u16)
}
id! {
    /// The client's number of an order or request, strictly increasing within a session: OUCH's UserRefNum.
    UserRefNum(u32)
}

impl Sequence {
    /// The following sequence number.
    #[must_use]
    #[inline]
    pub const fn next(self) -> Sequence {
        Sequence(self.0 + 1)
    }
}

/// The client's text for an order, which the venue echoes but does not interpret: OUCH's ClOrdID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientOrderId(pub [u8; 14]);

impl Default for ClientOrderId {
    #[inline]
    fn default() -> Self {
        ClientOrderId([b' '; 14])
    }
}

macro_rules! padded_text {
    ($(#[$doc:meta])* $name:ident($len:literal)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub [u8; $len]);

        impl $name {
            /// Pads a text with spaces; `None` if the text is too long.
            fn padded(text: &str) -> Option<$name> {
                let mut padded = [b' '; $len];
                padded.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
                Some($name(padded))
            }

            /// The text without its padding; empty if it is not valid UTF-8.
            #[must_use]
            pub fn as_str(&self) -> &str {
                std::str::from_utf8(&self.0).unwrap_or("").trim_end()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.as_str())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

padded_text! {
    /// A ticker of at most 8 printable ASCII characters, padded with spaces as ITCH and OUCH carry it.
    Symbol(8)
}
padded_text! {
    /// A user's name of at most 6 ASCII characters, padded with spaces as SoupBinTCP carries it.
    UserName(6)
}

impl Symbol {
    /// Creates a symbol from text.
    ///
    /// # Errors
    /// [`SymbolError`] if the text is empty, longer than 8 characters, or has a character outside `!`..`~`.
    pub fn new(text: &str) -> Result<Symbol, SymbolError> {
        let is_symbol = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let symbol = Symbol::padded(text).filter(|_| is_symbol);
        symbol.ok_or_else(|| SymbolError { text: text.to_owned() })
    }
}

impl UserName {
    /// Creates a user name from text; `None` if it is empty, longer than 6 characters, has leading or
    /// trailing spaces, or is not printable ASCII.
    #[must_use]
    pub fn new(text: &str) -> Option<UserName> {
        let is_bare = !text.is_empty() && text.trim() == text;
        let is_printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        UserName::padded(text).filter(|_| is_bare && is_printable)
    }
}

/// The text is not a symbol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a symbol: use 1 to 8 printable ASCII characters without spaces")]
pub struct SymbolError {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_padded_and_checked() {
        assert_eq!(Symbol::new("ALPHA").unwrap().0, *b"ALPHA   ");
        assert_eq!(Symbol::new("ALPHA").unwrap().to_string(), "ALPHA");
        for bad in ["", "NINECHARS", "A B", "É"] {
            assert!(Symbol::new(bad).is_err(), "{bad}");
        }
        assert_eq!(Sequence(1).next(), Sequence(2));
    }

    #[test]
    fn names_of_users_are_padded_and_checked() {
        assert_eq!(UserName::new("Anna B").unwrap().to_string(), "Anna B");
        let name = UserName::new("BERT").unwrap();
        assert_eq!((name.0, format!("{name:?}")), (*b"BERT  ", "\"BERT\"".to_owned()));
        for bad in ["", "SEVENCH", " A", "A ", "\u{c9}"] {
            assert!(UserName::new(bad).is_none(), "{bad}");
        }
    }
}

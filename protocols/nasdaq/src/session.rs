//! The session name of MoldUDP64 and SoupBinTCP.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A session's name: 10 ASCII characters, kept left-justified and padded with spaces.
///
/// A session is one numbered stream of messages, usually one trading day of one feed or one port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Session(pub [u8; 10]);

impl Session {
    /// Ten spaces; in a SoupBinTCP login, a request for the current session.
    pub const BLANK: Session = Session([b' '; 10]);

    /// Creates a name; `None` when `text` is longer than 10 bytes or has a character outside `!`..`~`.
    #[must_use]
    pub fn new(text: &str) -> Option<Session> {
        let mut session = Session::BLANK;
        session.0.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        text.bytes().all(|byte| byte.is_ascii_graphic()).then_some(session)
    }

    /// Returns the name without its padding; empty if it is not UTF-8.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("").trim_matches(' ')
    }

    /// Moves the padding of a name received by SoupBinTCP from the left to the right.
    pub(crate) fn left_justified(mut self) -> Session {
        let padding = self.0.iter().take_while(|byte| **byte == b' ').count();
        self.0.rotate_left(padding);
        self
    }

    /// Moves the padding from the right to the left, as SoupBinTCP requires.
    pub(crate) fn right_justified(mut self) -> Session {
        let padding = self.0.iter().rev().take_while(|byte| **byte == b' ').count();
        self.0.rotate_right(padding);
        self
    }
}

impl Default for Session {
    fn default() -> Self {
        Session::BLANK
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_padded_on_either_side() {
        let session = Session::new("DAY1").unwrap();
        assert_eq!(session.0, *b"DAY1      ");
        assert_eq!(session.right_justified().0, *b"      DAY1");
        assert_eq!(session.right_justified().left_justified(), session);
        assert_eq!(session.to_string(), "DAY1");
        assert_eq!(Session::new("ELEVENCHARS"), None);
        assert_eq!(Session::new("A B"), None);
        assert_eq!(Session::new(""), Some(Session::BLANK));
        assert_eq!(Session::BLANK.left_justified(), Session::BLANK);
        assert_eq!(Session::BLANK.right_justified(), Session::BLANK);
    }
}

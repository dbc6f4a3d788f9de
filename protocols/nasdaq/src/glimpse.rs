//! The GLIMPSE 5.0 message End of Snapshot, which has the sequence number of the next live message.
//!
//! A snapshot is a sequence of [`itch50`](crate::itch50) messages - directory, trading actions, then an add
//! order for every resting order - followed by this message.
//!
//! ```
//! use tickpath_nasdaq::glimpse::EndOfSnapshot;
//! use tickpath_types::Sequence;
//! use zerocopy::{FromBytes, IntoBytes};
//!
//! let end = EndOfSnapshot::of(Sequence(42));
//! assert_eq!(end.as_bytes(), b"G                  42");
//! assert_eq!(EndOfSnapshot::ref_from_bytes(end.as_bytes()).unwrap().sequence(), Some(Sequence(42)));
//! ```

use tickpath_types::Sequence;
use tickpath_wire::message;

use crate::soupbintcp::{ascii_number, parse_ascii_number};
use crate::wire::Alpha;

message! {
    /// End of Snapshot (`G`).
    ///
    /// Source: Nasdaq GLIMPSE 5.0 of 13 February 2026, "End of Snapshot"; 21 bytes. Unlike ITCH
    /// messages, it has neither a stock locate nor a timestamp.
    EndOfSnapshot = b'G', 21 {
        /// Sequence number of the first live message to apply, 20 digits padded with spaces.
        1 sequence_text: Alpha<20>,
    }
}

impl EndOfSnapshot {
    /// Creates the message that ends a snapshot; `sequence` is the number of the first live message to apply.
    #[must_use]
    pub fn of(sequence: Sequence) -> EndOfSnapshot {
        EndOfSnapshot::new(Alpha(ascii_number(sequence.0)))
    }

    /// Returns the sequence number of the first live message to apply; `None` if the field is not a number.
    #[must_use]
    pub fn sequence(&self) -> Option<Sequence> {
        parse_ascii_number(&self.sequence_text.0).map(Sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_accepted_on_both_sides_and_invalid_names_are_not() {
        assert_eq!(EndOfSnapshot::of(Sequence(u64::MAX)).sequence(), Some(Sequence(u64::MAX)));
        for (text, sequence) in [
            (b"00000000000000000042", Some(Sequence(42))),
            (b"42                  ", Some(Sequence(42))),
            (b"                    ", None),
            (b"18446744073709551616", None),
            (b"                  -1", None),
        ] {
            assert_eq!(EndOfSnapshot::new(*text).sequence(), sequence);
        }
    }
}

//! A drop copy: a user's name, the sequence number of a message to that user, and a copy of the message.
//!
//! `docs/drop-copy.md` specifies the protocol of this project's venue: SoupBinTCP, with one drop copy in each
//! sequenced packet.

use tickpath_wire::Malformed;

use crate::ouch50;
use crate::soupbintcp::BufferTooShort;

/// Length of the user's name, in bytes.
const NAME_LEN: usize = 6;
/// Length in bytes of the name and the sequence number, which precede the message.
pub const HEADER_LEN: usize = NAME_LEN + 8;
/// Maximum length of a drop copy, in bytes.
pub const COPY_LEN_MAX: usize = HEADER_LEN + ouch50::MESSAGE_LEN_MAX;

/// A received drop copy; `docs/drop-copy.md` has its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropCopy<'a> {
    /// Name of the user who received the message, without trailing spaces.
    pub user: &'a str,
    /// Sequence number of the message in that user's session; the first is 1.
    pub number: u64,
    /// The OUCH message, byte for byte as the user received it.
    pub message: &'a [u8],
}

impl<'a> DropCopy<'a> {
    /// Parses the payload of a sequenced packet.
    ///
    /// # Errors
    /// [`Malformed`] when the payload is shorter than the header, or the name is blank or unprintable.
    pub fn parse(bytes: &'a [u8]) -> Result<DropCopy<'a>, Malformed> {
        let error = Malformed("a drop copy that does not begin with a user's name and a number");
        let (name, rest) = bytes.split_first_chunk::<NAME_LEN>().ok_or(error)?;
        let (number, message) = rest.split_first_chunk().ok_or(error)?;
        let is_name = name.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
        let user = std::str::from_utf8(name.trim_ascii_end()).ok().filter(|user| is_name && !user.is_empty());
        Ok(DropCopy { user: user.ok_or(error)?, number: u64::from_be_bytes(*number), message })
    }

    /// Writes the drop copy at the start of `out`; returns its length. Truncates a user name over 6 bytes.
    ///
    /// # Errors
    /// [`BufferTooShort`]: nothing was written.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooShort> {
        let len = HEADER_LEN + self.message.len();
        let too_short = BufferTooShort { needed: len, len: out.len() };
        let (header, message) = out.get_mut(..len).ok_or(too_short)?.split_at_mut(HEADER_LEN);
        let (name, number) = header.split_at_mut(NAME_LEN);
        let user = self.user.as_bytes().iter().chain(std::iter::repeat(&b' '));
        name.iter_mut().zip(user).for_each(|(to, byte)| *to = *byte);
        number.copy_from_slice(&self.number.to_be_bytes());
        message.copy_from_slice(self.message);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of the example drop copy in `docs/drop-copy.md`.
    fn example() -> Vec<u8> {
        let text = include_str!("../../../docs/drop-copy.md");
        let hex = text.split("```hex\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let bytes = hex.lines().flat_map(|line| line.split('|').next().unwrap().split_whitespace());
        bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
    }

    #[test]
    fn the_example_of_the_document_is_decoded_and_encoded() {
        let bytes = example();
        let copy = DropCopy::parse(&bytes).unwrap();
        assert_eq!((copy.user, copy.number), ("ANNA", 258));
        let answer = crate::ouch50::decode_event(copy.message, |_| None).unwrap();
        let crate::ouch50::Answer::Order(answer) = answer else { panic!("{answer:?}") };
        let tickpath_types::OrderEventKind::Executed { user_ref, qty, price, match_id, .. } = answer.kind
        else {
            panic!("{answer:?}")
        };
        assert_eq!((user_ref.0, qty.0, price.0, match_id.0), (7, 100, 1_000_000, 42));
        let mut out = [0; COPY_LEN_MAX];
        let len = copy.encode(&mut out).unwrap();
        assert_eq!(out[..len], bytes);
        let short = &mut out[..len - 1];
        assert_eq!(copy.encode(short), Err(BufferTooShort { needed: len, len: len - 1 }));
    }

    #[test]
    fn truncated_copies_and_copies_without_a_user_are_errors() {
        let bytes = example();
        for len in 0..HEADER_LEN {
            assert!(DropCopy::parse(&bytes[..len]).is_err());
        }
        for (place, byte) in [(0, b' '), (1, 0), (2, 0xFF)] {
            let mut bad = bytes.clone();
            bad[place] = byte;
            if byte == b' ' {
                bad[..NAME_LEN].fill(byte);
            }
            assert!(DropCopy::parse(&bad).is_err(), "{byte}");
        }
    }
}

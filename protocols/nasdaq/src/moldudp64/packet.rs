//! Parses downstream packets.

use tickpath_types::Sequence;
use tickpath_wire::Malformed;
use zerocopy::FromBytes;

use super::{BLOCK_PREFIX_LEN, END_OF_SESSION, Header, Session};

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Carries at least one message.
    Messages,
    /// Carries no message: shows that the line is alive, and states the next sequence number.
    Heartbeat,
    /// Reports the end of the session and the sequence number after its last message.
    EndOfSession,
}

/// A downstream packet; its header and the lengths of all its messages have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    header: &'a Header,
    blocks: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Parses a datagram. Checks the header, the message count, and that the messages fill the datagram.
    ///
    /// # Errors
    /// [`Malformed`]: drop the datagram. Read its messages from the other line (A or B), or request them.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let Ok((header, blocks)) = Header::ref_from_prefix(datagram) else {
            return Err(Malformed("a packet shorter than its header"));
        };
        let packet = Packet { header, blocks };
        let count = packet.message_count();
        if header.sequence.get().checked_add(u64::from(count)).is_none() {
            return Err(Malformed("message numbers past the largest number"));
        }
        let mut rest = blocks;
        for _ in 0..count {
            (_, rest) = split_block(rest).ok_or(Malformed("a packet that ends within its messages"))?;
        }
        if rest.is_empty() { Ok(packet) } else { Err(Malformed("bytes after the last message")) }
    }

    /// Returns the name of the session.
    #[inline]
    #[must_use]
    pub const fn session(&self) -> Session {
        self.header.session
    }

    /// Returns the sequence number of the first message, or of the next message if the packet has none.
    #[inline]
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        Sequence(self.header.sequence.get())
    }

    /// Returns the number of messages; 0 for a heartbeat and for the end of the session.
    #[inline]
    #[must_use]
    pub const fn message_count(&self) -> u16 {
        match self.header.message_count.get() {
            END_OF_SESSION => 0,
            count => count,
        }
    }

    /// Returns the sequence number that follows the packet's last message.
    #[inline]
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        Sequence(self.header.sequence.get() + self.message_count() as u64)
    }

    /// Returns the kind of the packet.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self.header.message_count.get() {
            0 => Kind::Heartbeat,
            END_OF_SESSION => Kind::EndOfSession,
            _ => Kind::Messages,
        }
    }

    /// Returns the messages with their sequence numbers. Empty messages are included.
    #[inline]
    #[must_use]
    pub const fn messages(&self) -> Messages<'a> {
        Messages { next: self.header.sequence.get(), left: self.message_count(), blocks: self.blocks }
    }
}

/// The messages of a [`Packet`] with their sequence numbers.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    next: u64,
    left: u16,
    blocks: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = (Sequence, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let (message, rest) = split_block(self.blocks)?;
        let sequence = Sequence(self.next);
        self.blocks = rest;
        self.left -= 1;
        self.next += 1;
        Some((sequence, message))
    }
}

/// Returns the first message of `blocks` and the blocks after it; `None` when that message is incomplete.
#[inline]
fn split_block(blocks: &[u8]) -> Option<(&[u8], &[u8])> {
    let (prefix, rest) = blocks.split_first_chunk::<BLOCK_PREFIX_LEN>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*prefix)))
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::super::HEADER_LEN;
    use super::*;

    /// A packet of session SESSION001 from sequence number 5, with the messages "abc" and "d".
    const VECTOR: &[u8] = b"SESSION001\0\0\0\0\0\0\0\x05\0\x02\0\x03abc\0\x01d";
    const TRAILING: Malformed = Malformed("bytes after the last message");

    #[test]
    fn the_published_vector_is_read() {
        let packet = Packet::parse(VECTOR).unwrap();
        assert_eq!(packet.session(), Session::new("SESSION001").unwrap());
        assert_eq!((packet.sequence(), packet.next_sequence()), (Sequence(5), Sequence(7)));
        assert_eq!(packet.kind(), Kind::Messages);
        let messages: Vec<_> = packet.messages().collect();
        assert_eq!(messages, [(Sequence(5), &b"abc"[..]), (Sequence(6), &b"d"[..])]);
        assert_eq!(packet.messages().count(), 2);
    }

    #[test]
    fn every_truncation_is_an_error_and_so_is_every_byte_too_much() {
        for len in 0..VECTOR.len() {
            let error = Packet::parse(&VECTOR[..len]).unwrap_err();
            let is_headless = len < HEADER_LEN;
            assert_eq!(error.0.contains("header"), is_headless, "{len}: {error}");
            assert_eq!(error.0.contains("ends within"), !is_headless, "{len}: {error}");
        }
        let long = [VECTOR, &[0]].concat();
        assert_eq!(Packet::parse(&long), Err(TRAILING));
    }

    #[test]
    fn heartbeat_and_end_of_session_carry_no_message() {
        let session = Session::new("DAY").unwrap();
        let heartbeat = Header::heartbeat(session, Sequence(9));
        let packet = Packet::parse(heartbeat.as_bytes()).unwrap();
        assert_eq!((packet.kind(), packet.next_sequence()), (Kind::Heartbeat, Sequence(9)));
        let end = Header::end_of_session(session, Sequence(u64::MAX));
        let packet = Packet::parse(end.as_bytes()).unwrap();
        assert_eq!((packet.kind(), packet.next_sequence()), (Kind::EndOfSession, Sequence(u64::MAX)));
        assert_eq!(packet.messages().count(), 0);
        let trailing = [end.as_bytes(), b"\0\0"].concat();
        assert_eq!(Packet::parse(&trailing), Err(TRAILING));
    }

    #[test]
    fn numbers_do_not_wrap() {
        let mut datagram = VECTOR.to_vec();
        datagram[10..18].copy_from_slice(&(u64::MAX - 1).to_be_bytes());
        assert_eq!(Packet::parse(&datagram), Err(Malformed("message numbers past the largest number")));
        datagram[10..18].copy_from_slice(&(u64::MAX - 2).to_be_bytes());
        assert_eq!(Packet::parse(&datagram).unwrap().next_sequence(), Sequence(u64::MAX));
    }

    #[test]
    fn an_empty_message_takes_a_number() {
        let packet = Packet::parse(b"SESSION001\0\0\0\0\0\0\0\x01\0\x02\0\0\0\x01x").unwrap();
        assert_eq!(packet.messages().map(|(_, message)| message.len()).collect::<Vec<_>>(), [0, 1]);
    }
}

//! Builds downstream packets, which carry messages to subscribers.

use tickpath_types::Sequence;
use zerocopy::IntoBytes;

use super::{BLOCK_PREFIX_LEN, HEADER_LEN, Header, MESSAGE_COUNT_MAX, Session};

/// The reason why a message was not added. Send the packet, start another and push the message again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The buffer has no space for the message.
    #[error("the message needs {needed} bytes and {remaining} are left: send the packet first")]
    NoCapacity {
        /// Length of the message, in bytes.
        needed: usize,
        /// Length of the longest message that fits, in bytes.
        remaining: usize,
    },
    /// The packet already has [`MESSAGE_COUNT_MAX`] messages.
    #[error("the packet has {MESSAGE_COUNT_MAX} messages: send it first")]
    TooMany,
}

/// Builds one packet at a time in a buffer.
///
/// The buffer is any type that provides bytes, such as an owned array or a slice of a larger batch. Its
/// length is the packet's maximum length. The builder allocates nothing and writes each message in place.
#[derive(Clone, Debug)]
pub struct PacketBuilder<B> {
    buffer: B,
    session: Session,
    sequence: Sequence,
    message_count: u16,
    len: usize,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> PacketBuilder<B> {
    /// Starts a packet whose first message will have sequence number `sequence`.
    ///
    /// # Panics
    /// When the buffer is shorter than a header, [`HEADER_LEN`].
    #[must_use]
    pub fn new(buffer: B, session: Session, sequence: Sequence) -> Self {
        assert!(buffer.as_ref().len() >= HEADER_LEN, "a packet needs {HEADER_LEN} bytes for its header");
        PacketBuilder { buffer, session, sequence, message_count: 0, len: HEADER_LEN }
    }

    /// Starts the next packet in the same buffer; its sequence numbers continue after this packet's.
    #[inline]
    pub fn start_next(&mut self) {
        self.sequence = self.next_sequence();
        self.message_count = 0;
        self.len = HEADER_LEN;
    }

    /// Adds a message.
    ///
    /// # Errors
    /// [`PushError`] when the message does not fit; the packet is then unchanged.
    #[inline]
    pub fn push(&mut self, message: &[u8]) -> Result<(), PushError> {
        let remaining = self.remaining();
        self.push_with(|space| {
            let refused = PushError::NoCapacity { needed: message.len(), remaining };
            space.get_mut(..message.len()).ok_or(refused)?.copy_from_slice(message);
            Ok(message.len())
        })
    }

    /// Adds the message that `write` writes at the start of a buffer of [`remaining`](Self::remaining) bytes.
    /// `write` returns the message's length.
    ///
    /// # Errors
    /// The error of `write`, or [`PushError`] if the packet accepts no message; the packet is then unchanged.
    ///
    /// # Panics
    /// When `write` returns more than the buffer's length.
    #[inline]
    pub fn push_with<E: From<PushError>>(
        &mut self,
        write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        if self.message_count == MESSAGE_COUNT_MAX {
            return Err(PushError::TooMany.into());
        }
        let Some((prefix, space)) =
            self.buffer.as_mut()[self.len..].split_first_chunk_mut::<BLOCK_PREFIX_LEN>()
        else {
            return Err(PushError::NoCapacity { needed: 0, remaining: 0 }.into());
        };
        let space_len = space.len().min(usize::from(u16::MAX));
        let message_len = write(&mut space[..space_len])?;
        assert!(message_len <= space_len, "the writer says that it wrote past its room");
        *prefix = (message_len as u16).to_be_bytes();
        self.len += BLOCK_PREFIX_LEN + message_len;
        self.message_count += 1;
        Ok(())
    }

    /// Returns the length of the longest message that fits, in bytes.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        (self.buffer.as_ref().len() - self.len).saturating_sub(BLOCK_PREFIX_LEN).min(usize::from(u16::MAX))
    }

    /// Returns true if a message of `message_len` bytes fits.
    #[inline]
    #[must_use]
    pub fn has_capacity_for(&self, message_len: usize) -> bool {
        self.message_count < MESSAGE_COUNT_MAX
            && message_len <= usize::from(u16::MAX)
            && self.len + BLOCK_PREFIX_LEN + message_len <= self.buffer.as_ref().len()
    }

    /// Returns the length of the packet so far, header included, in bytes.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true while the packet has no message.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.message_count == 0
    }

    /// Returns the packet's number of messages.
    #[inline]
    #[must_use]
    pub const fn message_count(&self) -> u16 {
        self.message_count
    }

    /// Returns the sequence number of the packet's first message.
    #[inline]
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Returns the sequence number of the next message to be pushed.
    #[inline]
    #[must_use]
    pub const fn next_sequence(&self) -> Sequence {
        Sequence(self.sequence.0 + self.message_count as u64)
    }

    /// Writes the header and returns the datagram. A packet without messages is a heartbeat.
    #[inline]
    pub fn finish(&mut self) -> &[u8] {
        let header = Header::new(self.session, self.sequence, self.message_count);
        let buffer = self.buffer.as_mut();
        buffer[..HEADER_LEN].copy_from_slice(header.as_bytes());
        &buffer[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::super::Packet;
    use super::*;

    fn builder<const N: usize>() -> PacketBuilder<[u8; N]> {
        PacketBuilder::new([0xee; N], Session::new("SESSION001").unwrap(), Sequence(5))
    }

    #[test]
    fn the_published_vector_is_written() {
        let mut builder = builder::<64>();
        builder.push(b"abc").unwrap();
        builder.push(b"d").unwrap();
        assert_eq!(builder.finish(), b"SESSION001\0\0\0\0\0\0\0\x05\0\x02\0\x03abc\0\x01d");
        builder.start_next();
        assert_eq!(builder.finish(), b"SESSION001\0\0\0\0\0\0\0\x07\0\0", "an empty packet is a heartbeat");
    }

    #[test]
    fn a_packet_rejects_a_message_that_does_not_fit() {
        let mut builder = builder::<{ HEADER_LEN + 2 + 3 + 2 + 1 }>();
        assert!(builder.has_capacity_for(6) && !builder.has_capacity_for(7));
        builder.push(b"abc").unwrap();
        assert_eq!(builder.remaining(), 1);
        let before = builder.len();
        assert_eq!(builder.push(b"de"), Err(PushError::NoCapacity { needed: 2, remaining: 1 }));
        assert_eq!((builder.len(), builder.message_count()), (before, 1), "unchanged");
        builder.push(b"d").unwrap();
        assert_eq!(builder.remaining(), 0);
        assert_eq!(builder.push(b""), Err(PushError::NoCapacity { needed: 0, remaining: 0 }));
        assert_eq!(Packet::parse(builder.finish()).unwrap().messages().count(), 2);
    }

    #[test]
    fn the_count_stops_before_the_end_of_session_marker() {
        let mut builder = PacketBuilder::new(vec![0; 200_000], Session::BLANK, Sequence(1));
        for _ in 0..MESSAGE_COUNT_MAX {
            builder.push(b"").unwrap();
        }
        assert_eq!(builder.push(b""), Err(PushError::TooMany));
        assert!(!builder.has_capacity_for(0));
        assert_eq!(Packet::parse(builder.finish()).unwrap().message_count(), MESSAGE_COUNT_MAX);
    }

    #[test]
    fn a_failed_write_leaves_the_packet_unchanged() {
        let mut builder = builder::<64>();
        let refused = builder.push_with(|_| Err::<usize, _>(PushError::TooMany));
        assert_eq!(refused, Err(PushError::TooMany));
        assert!(builder.is_empty());
        builder
            .push_with(|space| {
                space[..2].copy_from_slice(b"ok");
                Ok::<_, PushError>(2)
            })
            .unwrap();
        assert_eq!(builder.next_sequence(), Sequence(6));
    }
}

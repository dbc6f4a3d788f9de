//! Builds XDP packets from encoded messages.

use zerocopy::byteorder::little_endian::{U16, U32};
use zerocopy::{Immutable, IntoBytes};

use crate::{DeliveryFlag, HEADER_LEN, Header, MESSAGE_HEADER_LEN, PACKET_LEN_MAX, SendTime};

/// The reason why a message was not added to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The packet has no space for the message, or already has the maximum number of messages. Send the
    /// packet, start another and push the message again.
    #[error("the message needs {needed} bytes and {remaining} are left: send the packet first")]
    NoCapacity {
        /// Length of the message, in bytes.
        needed: usize,
        /// Length of the longest message that fits, in bytes.
        remaining: usize,
    },
    /// The header of the message does not state the message's length.
    #[error("the message of {len} bytes states another length: encode it again")]
    NotAMessage {
        /// Length of the message, in bytes.
        len: usize,
    },
}

/// Builds packets of at most [`PACKET_LEN_MAX`] bytes, one after the other in the same buffer.
#[derive(Clone, Debug)]
pub struct PacketBuilder<B> {
    buffer: B,
    sequence: u32,
    message_count: u8,
    len: usize,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> PacketBuilder<B> {
    /// Starts a packet whose first message will have sequence number `sequence`.
    ///
    /// # Panics
    /// When the buffer is shorter than a header, [`HEADER_LEN`].
    #[must_use]
    pub fn new(buffer: B, sequence: u32) -> PacketBuilder<B> {
        assert!(buffer.as_ref().len() >= HEADER_LEN, "a packet needs {HEADER_LEN} bytes for its header");
        PacketBuilder { buffer, sequence, message_count: 0, len: HEADER_LEN }
    }

    /// Starts the next packet in the same buffer; its sequence numbers continue after this packet's.
    pub fn start_next(&mut self) {
        self.start_at(self.next_sequence());
    }

    /// Starts a packet in the same buffer whose first message will have sequence number `sequence`.
    pub fn start_at(&mut self, sequence: u32) {
        (self.sequence, self.message_count, self.len) = (sequence, 0, HEADER_LEN);
    }

    /// Adds a message.
    ///
    /// # Errors
    /// [`PushError`]; the packet is then unchanged.
    #[inline]
    pub fn push<M: IntoBytes + Immutable>(&mut self, message: &M) -> Result<(), PushError> {
        self.push_bytes(message.as_bytes())
    }

    /// Adds a message, which must begin with its header.
    ///
    /// # Errors
    /// [`PushError`]; the packet is then unchanged.
    #[inline]
    pub fn push_bytes(&mut self, message: &[u8]) -> Result<(), PushError> {
        let len = message.len();
        let size = message.first_chunk().map(|size| usize::from(u16::from_le_bytes(*size)));
        if len < MESSAGE_HEADER_LEN || size != Some(len) {
            return Err(PushError::NotAMessage { len });
        }
        let remaining = self.remaining();
        if len > remaining {
            return Err(PushError::NoCapacity { needed: len, remaining });
        }
        self.buffer.as_mut()[self.len..][..len].copy_from_slice(message);
        self.len += len;
        self.message_count += 1;
        Ok(())
    }

    /// Returns the length of the longest message that fits, in bytes; 0 at the maximum message count.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        if self.message_count == u8::MAX {
            return 0;
        }
        self.buffer.as_ref().len().min(PACKET_LEN_MAX) - self.len
    }

    /// Returns true while the packet has no message.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.message_count == 0
    }

    /// Returns the number of messages in the packet.
    #[inline]
    #[must_use]
    pub const fn message_count(&self) -> u8 {
        self.message_count
    }

    /// Returns the packet's length so far with its header, in bytes.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns the sequence number of the packet's first message.
    #[inline]
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Returns the sequence number of the next message to be pushed.
    #[inline]
    #[must_use]
    pub const fn next_sequence(&self) -> u32 {
        self.sequence.wrapping_add(self.message_count as u32)
    }

    /// Writes the header and returns the packet. Use [`DeliveryFlag::HEARTBEAT`] only for a packet without
    /// messages.
    pub fn finish(&mut self, flag: DeliveryFlag, time: SendTime) -> &[u8] {
        let header = Header {
            pkt_size: U16::new(u16::try_from(self.len).expect("a packet has at most 1400 bytes")),
            delivery_flag: flag,
            number_msgs: self.message_count,
            seq_num: U32::new(self.sequence),
            send_time: U32::new(time.secs),
            send_time_ns: U32::new(time.nanos),
        };
        let buffer = self.buffer.as_mut();
        buffer[..HEADER_LEN].copy_from_slice(header.as_bytes());
        &buffer[..self.len]
    }
}

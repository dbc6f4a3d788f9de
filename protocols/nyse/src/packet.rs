//! Parses XDP packets and splits them into messages.

use tickpath_wire::{Malformed, layout};
use zerocopy::FromBytes;
use zerocopy::byteorder::little_endian::{U16, U32};

use crate::DeliveryFlag;

/// Length of the longest packet, in bytes.
pub const PACKET_LEN_MAX: usize = 1400;
/// Length of a packet's header, in bytes.
pub const HEADER_LEN: usize = size_of::<Header>();
/// Length of a message's header, in bytes: its size and its type.
pub const MESSAGE_HEADER_LEN: usize = 4;

layout! {
    /// A packet's header.
    ///
    /// Source: NYSE XDP Common Client Specification, "Packet Header"; 16 bytes, little-endian.
    Header, 16 => {
        /// Length of the packet with this header, in bytes.
        0 pkt_size: U16,
        /// The kind of the packet.
        2 delivery_flag: DeliveryFlag,
        /// Number of messages in the packet.
        3 number_msgs: u8,
        /// Sequence number of the first message, or of the next message if the packet has none.
        4 seq_num: U32,
        /// Send time, in seconds since the Unix epoch.
        8 send_time: U32,
        /// Send time, nanoseconds within the second.
        12 send_time_ns: U32,
    }
}

/// The send time of a packet: seconds since the Unix epoch, and nanoseconds within the second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SendTime {
    /// Seconds since the Unix epoch.
    pub secs: u32,
    /// Nanoseconds within the second, below 10^9.
    pub nanos: u32,
}

impl SendTime {
    /// Returns the time in nanoseconds since the Unix epoch.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.secs as u64 * 1_000_000_000 + self.nanos as u64
    }

    /// Converts nanoseconds since the Unix epoch; the seconds saturate at 32 bits.
    #[inline]
    #[must_use]
    pub const fn of_nanos(nanos: u64) -> SendTime {
        let secs = nanos / 1_000_000_000;
        let secs = if secs > u32::MAX as u64 { u32::MAX } else { secs as u32 };
        SendTime { secs, nanos: (nanos % 1_000_000_000) as u32 }
    }
}

/// A packet: [`Packet::parse`] has checked all of it, [`Packet::parse_header`] only its header and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    header: &'a Header,
    body: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Checks all of a datagram: the header, the length, and that the messages fill it.
    ///
    /// # Errors
    /// [`Malformed`]: drop the datagram; take its messages from the other line, or request a retransmission.
    #[inline]
    pub fn parse(datagram: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let packet = Packet::parse_header(datagram)?;
        let mut rest = packet.body;
        for _ in 0..packet.header.number_msgs {
            (_, rest) =
                split_message(rest).ok_or(Malformed("a message that does not lie within its packet"))?;
        }
        if rest.is_empty() { Ok(packet) } else { Err(Malformed("bytes after the last message")) }
    }

    /// Checks only a datagram's header and its length. After iterating over the messages, the caller checks
    /// with [`Messages::finish`] that they were complete.
    ///
    /// # Errors
    /// [`Malformed`]: drop the datagram; take its messages from the other line, or request a retransmission.
    #[inline]
    pub fn parse_header(datagram: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let Ok((header, body)) = Header::ref_from_prefix(datagram) else {
            return Err(Malformed("a packet shorter than its header"));
        };
        if usize::from(header.pkt_size.get()) != datagram.len() {
            return Err(Malformed("a packet of another length than its header says"));
        }
        Ok(Packet { header, body })
    }

    /// Returns the header of the packet.
    #[inline]
    #[must_use]
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// Returns the kind of the packet.
    #[inline]
    #[must_use]
    pub const fn delivery_flag(&self) -> DeliveryFlag {
        self.header.delivery_flag
    }

    /// Returns the sequence number of the first message, or of the next message if the packet has none.
    #[inline]
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.header.seq_num.get()
    }

    /// Returns the number of messages; 0 for a heartbeat.
    #[inline]
    #[must_use]
    pub const fn message_count(&self) -> u8 {
        self.header.number_msgs
    }

    /// Returns the send time of the packet.
    #[inline]
    #[must_use]
    pub const fn send_time(&self) -> SendTime {
        SendTime { secs: self.header.send_time.get(), nanos: self.header.send_time_ns.get() }
    }

    /// Returns the messages with their sequence numbers, which have 32 bits and wrap.
    #[inline]
    #[must_use]
    pub const fn messages(&self) -> Messages<'a> {
        Messages { next: self.header.seq_num.get(), left: self.header.number_msgs, rest: self.body }
    }
}

/// The messages of a [`Packet`] with their sequence numbers.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    next: u32,
    left: u8,
    rest: &'a [u8],
}

impl<'a> Messages<'a> {
    /// Call this after the iteration: it returns true if the packet held exactly as many messages as its
    /// header states.
    #[inline]
    #[must_use]
    pub const fn finish(&self) -> bool {
        self.left == 0 && self.rest.is_empty()
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = (u32, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(u32, &'a [u8])> {
        if self.left == 0 {
            return None;
        }
        let (message, rest) = split_message(self.rest)?;
        let sequence = self.next;
        self.next = sequence.wrapping_add(1);
        self.left -= 1;
        self.rest = rest;
        Some((sequence, message))
    }
}

/// Splits `bytes` after its first message, header included; `None` if that message is incomplete.
#[inline]
fn split_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = usize::from(u16::from_le_bytes(*bytes.first_chunk()?));
    if size < MESSAGE_HEADER_LEN {
        return None;
    }
    bytes.split_at_checked(size)
}

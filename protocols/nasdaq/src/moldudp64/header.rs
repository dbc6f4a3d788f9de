//! The header of a downstream packet.

use tickpath_types::Sequence;
use tickpath_wire::layout;
use zerocopy::byteorder::big_endian::{U16, U64};

use super::{END_OF_SESSION, Session};

layout! {
    /// The header of every downstream packet; a heartbeat or an end of session consists of the header alone.
    ///
    /// Source: MoldUDP64 1.00, "Downstream Packet"; 20 bytes, big-endian.
    Header, 20 => {
        /// Name of the session.
        0 session: Session,
        /// Sequence number of the first message, or of the next message if the packet has none.
        10 sequence: U64,
        /// Number of messages that follow; 0 marks a heartbeat, 0xffff the end of the session.
        18 message_count: U16,
    }
}

impl Header {
    /// Creates the header for `message_count` messages, the first of them with sequence number `sequence`.
    #[inline]
    #[must_use]
    pub fn new(session: Session, sequence: Sequence, message_count: u16) -> Header {
        Header { session, sequence: U64::new(sequence.0), message_count: U16::new(message_count) }
    }

    /// Creates a heartbeat, which a publisher sends about once a second on an idle line. `next` is the
    /// sequence number of the next message.
    #[must_use]
    pub fn heartbeat(session: Session, next: Sequence) -> Header {
        Header::new(session, next, 0)
    }

    /// Creates an end of session; `next` is the sequence number after the last message. The publisher repeats
    /// this packet for a while, so that subscribers can still request lost messages.
    #[must_use]
    pub fn end_of_session(session: Session, next: Sequence) -> Header {
        Header::new(session, next, END_OF_SESSION)
    }
}

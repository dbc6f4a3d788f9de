//! Asking for messages that were lost.

use tickpath_types::Sequence;
use zerocopy::FromBytes;

use super::{HEADER_LEN, Header, MESSAGE_COUNT_MAX, Session};

/// A request for messages, sent to the re-request server.
///
/// The server answers to the address that it came from, with ordinary downstream packets that may hold
/// fewer messages than were asked for; it never says no. Ask again after a time-out, for what is still
/// missing.
///
/// Source: MoldUDP64 1.00, "Request Packet"; 20 bytes, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The session.
    pub session: Session,
    /// Number of the first message wanted.
    pub sequence: Sequence,
    /// How many are wanted.
    pub message_count: u16,
}

/// A datagram is not a request: count it and drop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// It is not as long as a request.
    #[error("a request has {HEADER_LEN} bytes and this has {len}: drop it")]
    WrongLength {
        /// Length of the datagram.
        len: usize,
    },
    /// It asks for nothing, or for more than a packet can count.
    #[error("a request is for 1 to {MESSAGE_COUNT_MAX} messages and this is for {message_count}: drop it")]
    BadCount {
        /// How many it asks for.
        message_count: u16,
    },
    /// Its messages would be numbered past the largest number.
    #[error("{message_count} messages from {sequence} run past the largest number: drop it")]
    SequenceOverflow {
        /// Number of the first message.
        sequence: u64,
        /// How many it asks for.
        message_count: u16,
    },
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// [`RequestError`] says what is wrong with it.
    pub fn parse(datagram: &[u8]) -> Result<Request, RequestError> {
        let Ok(header) = Header::ref_from_bytes(datagram) else {
            return Err(RequestError::WrongLength { len: datagram.len() });
        };
        let (sequence, message_count) = (header.sequence.get(), header.message_count.get());
        if message_count == 0 || message_count > MESSAGE_COUNT_MAX {
            return Err(RequestError::BadCount { message_count });
        }
        if sequence.checked_add(u64::from(message_count)).is_none() {
            return Err(RequestError::SequenceOverflow { sequence, message_count });
        }
        Ok(Request { session: header.session, sequence: Sequence(sequence), message_count })
    }

    /// The datagram to send.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        zerocopy::transmute!(Header::new(self.session, self.sequence, self.message_count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let request = Request {
            session: Session::new("SESSION001").unwrap(),
            sequence: Sequence(5),
            message_count: MESSAGE_COUNT_MAX,
        };
        let bytes = request.to_bytes();
        assert_eq!(&bytes, b"SESSION001\0\0\0\0\0\0\0\x05\xff\xfe");
        assert_eq!(Request::parse(&bytes), Ok(request));
        for len in 0..bytes.len() {
            assert_eq!(Request::parse(&bytes[..len]), Err(RequestError::WrongLength { len }));
        }
    }

    #[test]
    fn senseless_requests_are_refused() {
        for message_count in [0, 0xffff] {
            let bytes = Request { session: Session::BLANK, sequence: Sequence(1), message_count }.to_bytes();
            assert_eq!(Request::parse(&bytes), Err(RequestError::BadCount { message_count }));
        }
        let sequence = Sequence(u64::MAX);
        let bytes = Request { session: Session::BLANK, sequence, message_count: 1 }.to_bytes();
        assert!(matches!(Request::parse(&bytes), Err(RequestError::SequenceOverflow { .. })));
    }
}

//! Requests for lost messages.

use tickpath_types::Sequence;
use tickpath_wire::Malformed;
use zerocopy::FromBytes;

use super::{HEADER_LEN, Header, MESSAGE_COUNT_MAX, Session};

/// A request for messages, sent to the retransmission server.
///
/// The server answers to the request's source address with ordinary downstream packets. These may hold fewer
/// messages than requested, and the server sends no error. After a timeout, request the missing messages
/// again.
///
/// Source: MoldUDP64 1.00, "Request Packet"; 20 bytes, big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Name of the session.
    pub session: Session,
    /// Sequence number of the first requested message.
    pub sequence: Sequence,
    /// Number of requested messages.
    pub message_count: u16,
}

const WRONG_LENGTH: Malformed = Malformed("a request of another length than 20 bytes");
const BAD_COUNT: Malformed = Malformed("a request for no message, or for more than a packet can count");

impl Request {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Malformed`]: drop the datagram.
    pub fn parse(datagram: &[u8]) -> Result<Request, Malformed> {
        let header = Header::ref_from_bytes(datagram).map_err(|_| WRONG_LENGTH)?;
        let (sequence, message_count) = (header.sequence.get(), header.message_count.get());
        if message_count == 0 || message_count > MESSAGE_COUNT_MAX {
            return Err(BAD_COUNT);
        }
        if sequence.checked_add(u64::from(message_count)).is_none() {
            return Err(Malformed("message numbers past the largest number"));
        }
        Ok(Request { session: header.session, sequence: Sequence(sequence), message_count })
    }

    /// Encodes the request as a datagram.
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
            assert_eq!(Request::parse(&bytes[..len]), Err(WRONG_LENGTH));
        }
    }

    #[test]
    fn invalid_requests_are_rejected() {
        for message_count in [0, 0xffff] {
            let bytes = Request { session: Session::BLANK, sequence: Sequence(1), message_count }.to_bytes();
            assert_eq!(Request::parse(&bytes), Err(BAD_COUNT));
        }
        let sequence = Sequence(u64::MAX);
        let bytes = Request { session: Session::BLANK, sequence, message_count: 1 }.to_bytes();
        assert_eq!(Request::parse(&bytes), Err(Malformed("message numbers past the largest number")));
    }
}

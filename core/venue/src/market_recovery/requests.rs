//! Requests for published messages, and the packets that answer them.

use std::collections::VecDeque;
use std::ops::Range;

use tickpath_nasdaq::moldudp64::{PacketBuilder, Request, Session};
use tickpath_types::{Nanos, Sequence};

use crate::retransmission_limits::RequestLimits;
use crate::token_bucket::RateLimit;

const PENDING_MAX: usize = 64;
/// Maximum number of datagrams read per poll; above `PENDING_MAX`, so that excess requests are dropped.
pub const REQUESTS_PER_POLL: usize = 2 * PENDING_MAX;

/// Requests for messages of a market data session; each is answered by one packet.
///
/// The packet has as many of the messages as fit; a client that needs more sends another request. So one
/// 20-byte request causes at most one packet, and a client that waits for each packet gets no message twice.
///
/// The request rate is limited per host address, `H`; answers go to a socket address, `P`.
pub struct RetransmissionQueue<P, H> {
    session: Session,
    limits: RequestLimits<H>,
    /// Address of each requester, and the requested range of messages.
    pending: VecDeque<(P, Range<u64>)>,
    packet: Box<[u8]>,
}

/// The reason why a request is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// The datagram is not a request.
    Malformed,
    /// The request is for another session.
    OtherSession,
    /// The requester's address exceeds its request rate.
    Limited,
}

/// The answer to a retransmission request.
pub struct Answer<'a, P> {
    /// Address of the requester.
    pub to: P,
    /// Number of messages in the packet. 0 if the first is unpublished or overwritten: do not send it.
    pub message_count: u16,
    /// The packet.
    pub datagram: &'a [u8],
}

impl<P, H: Copy + PartialEq> RetransmissionQueue<P, H> {
    /// A queue for a session. Answers have at most `packet_bytes` bytes; `limit` applies per host address.
    #[must_use]
    pub fn new(session: Session, packet_bytes: usize, limit: RateLimit) -> Self {
        RetransmissionQueue {
            session,
            limits: RequestLimits::new(limit),
            pending: VecDeque::with_capacity(PENDING_MAX),
            packet: vec![1; packet_bytes].into_boxed_slice(),
        }
    }

    /// Decodes and checks a datagram that came from the address `from`.
    ///
    /// # Errors
    /// [`RequestFault`] when the datagram is to be dropped.
    pub fn check(&mut self, now: Nanos, from: H, datagram: &[u8]) -> Result<Request, RequestFault> {
        let request = Request::parse(datagram).map_err(|_| RequestFault::Malformed)?;
        if request.session != self.session {
            return Err(RequestFault::OtherSession);
        }
        if !self.limits.allow(now, from) {
            return Err(RequestFault::Limited);
        }
        Ok(request)
    }

    /// Queues the request for `first..end` by the address `to`; false when the queue is full.
    pub fn push(&mut self, to: P, first: u64, end: u64) -> bool {
        let has_capacity = self.pending.len() < PENDING_MAX;
        if has_capacity {
            self.pending.push_back((to, first..end));
        }
        has_capacity
    }

    /// Takes the oldest request and builds its answer; `message` returns a kept message by sequence number.
    pub fn poll_answer<'m>(&mut self, message: impl Fn(u64) -> Option<&'m [u8]>) -> Option<Answer<'_, P>> {
        let (to, requested) = self.pending.pop_front()?;
        let mut packet = PacketBuilder::new(&mut self.packet[..], self.session, Sequence(requested.start));
        for message in requested.map_while(message) {
            if packet.push(message).is_err() {
                break;
            }
        }
        let (message_count, len) = (packet.message_count(), packet.finish().len());
        Some(Answer { to, message_count, datagram: &self.packet[..len] })
    }
}

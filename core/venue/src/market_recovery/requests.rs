//! Requests for published messages, and the packets that answer them.

use std::collections::VecDeque;
use std::ops::Range;

use tickpath_nasdaq::moldudp64::{PacketBuilder, Request, Session};
use tickpath_types::{Nanos, Sequence};

use crate::retransmission_limits::RequestLimits;
use crate::token_bucket::RateLimit;

const PENDING_MAX: usize = 64;
/// Maximum number of requests per poll of a socket: more than may wait, so that a flood is dropped.
pub const REQUESTS_PER_POLL: usize = 2 * PENDING_MAX;

/// Requests of a market data session, until each is answered by one packet.
///
/// The packet has as many messages as fit: a client that needs more requests again. So no client gets more
/// than a packet for 20 bytes, and one that requests again after each packet gets nothing twice.
///
/// Requests are limited by the address of a host, `H`, and answered to an address of a socket, `P`.
pub struct RetransmissionQueue<P, H> {
    session: Session,
    limits: RequestLimits<H>,
    /// Addresses, and the messages that they requested.
    pending: VecDeque<(P, Range<u64>)>,
    packet: Box<[u8]>,
}

/// The reason why a request is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// It is not a request.
    Malformed,
    /// It is for another session.
    OtherSession,
    /// Its address exceeds its request rate.
    Limited,
}

/// The answer to a request.
pub struct Answer<'a, P> {
    /// Address of the requester.
    pub to: P,
    /// Messages in the packet; 0 when the requested ones are unpublished or overwritten: then nothing is sent.
    pub message_count: u16,
    /// The packet.
    pub datagram: &'a [u8],
}

impl<P, H: Copy + PartialEq> RetransmissionQueue<P, H> {
    /// A queue for a session; answers have at most `packet_bytes`, and `limit` applies to each address.
    #[must_use]
    pub fn new(session: Session, packet_bytes: usize, limit: RateLimit) -> Self {
        RetransmissionQueue {
            session,
            limits: RequestLimits::new(limit),
            pending: VecDeque::with_capacity(PENDING_MAX),
            packet: vec![1; packet_bytes].into_boxed_slice(),
        }
    }

    /// The request in a datagram that came from an address.
    ///
    /// # Errors
    /// [`RequestFault`] when it is to be dropped.
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

    /// Queues the messages `first..end` for an address; false when the queue is full.
    pub fn push(&mut self, to: P, first: u64, end: u64) -> bool {
        let has_capacity = self.pending.len() < PENDING_MAX;
        if has_capacity {
            self.pending.push_back((to, first..end));
        }
        has_capacity
    }

    /// The answer to the oldest request, from the kept messages.
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

//! Order entry client: exchanges OUCH messages over SoupBinTCP and can resume on a new connection.

use tickpath_types::{InstrumentTable, Nanos, OrderRequest, UserRefNum};

use super::{AccountQuery, Answer, EncodeError, OrderAnswer, Outbound, decode_event, encode_request};
use crate::soupbintcp::{
    BufferTooShort, CONTROL_LEN_MAX, ClientEvent, ClientSession, LoginRejectReason, LoginRequest,
    SessionError,
};

/// Size of the send buffer in bytes.
const SEND_BUFFER: usize = 16 * 1024;

/// The reason why a client's connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The venue refused the login: the [`LoginRejectReason`] states what to check.
    #[error("the venue refused the login: {0:?}")]
    LoginRejected(LoginRejectReason),
    /// The venue has ended the session.
    #[error("the session has ended")]
    EndOfSession,
    /// The venue violated the protocol or was silent for too long: connect again.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// Order entry client; after a lost connection, [`reconnect`](Client::reconnect) continues on a new one.
///
/// Performs no IO and reads no clock. Bytes to send are [queued](Client::queued) in one buffer; received
/// bytes enter through [`handle_bytes`](Client::handle_bytes). Allocates only at creation.
#[derive(Debug)]
pub struct Client {
    soup: ClientSession,
    instruments: InstrumentTable,
    out: Box<[u8]>,
    out_len: usize,
    has_debug_message: bool,
    next_user_ref: Option<UserRefNum>,
    query_answered: Option<Nanos>,
    unknown_answers: u64,
}

impl Client {
    /// Creates a client on a connection that was established at `now`.
    #[must_use]
    pub fn new(login: LoginRequest, instruments: InstrumentTable, now: Nanos) -> Client {
        Client {
            soup: ClientSession::new(login, now),
            instruments,
            // Write to every page now, so that the first requests cause no page faults.
            out: vec![1; SEND_BUFFER].into_boxed_slice(),
            out_len: 0,
            has_debug_message: false,
            next_user_ref: None,
            query_answered: None,
            unknown_answers: 0,
        }
    }

    /// Returns a login request for a new connection; it resumes after the last sequenced message received.
    #[must_use]
    pub fn resume(&self) -> LoginRequest {
        self.soup.resume()
    }

    /// Continues on a new connection that was established at `now`.
    pub fn reconnect(&mut self, login: LoginRequest, now: Nanos) {
        self.soup = ClientSession::new(login, now);
    }

    /// Returns true while requests may be sent: after the venue accepted the login.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.soup.is_active()
    }

    /// Appends a request to the queued bytes.
    ///
    /// # Errors
    /// [`EncodeError`]: the request is not queued. [`EncodeError::BufferTooShort`]: the queue is full.
    #[inline]
    pub fn queue(&mut self, request: &OrderRequest) -> Result<(), EncodeError> {
        let instruments = &self.instruments;
        self.out_len += self.soup.frame_message_with(&mut self.out[self.out_len..], |space| {
            encode_request(request, |id| instruments.symbol(id), space)
        })?;
        Ok(())
    }

    /// Queues a query for the UserRefNum of the user's next order; once the venue has answered,
    /// [`next_user_ref`](Self::next_user_ref) returns it.
    ///
    /// # Errors
    /// The errors of [`queue`](Self::queue).
    #[cold]
    pub fn query_account(&mut self) -> Result<(), EncodeError> {
        self.out_len += self.soup.frame_message_with(&mut self.out[self.out_len..], |space| {
            *space.first_mut().ok_or(BufferTooShort { needed: 1, len: 0 })? = AccountQuery::TYPE;
            Ok::<usize, EncodeError>(1)
        })?;
        Ok(())
    }

    /// Returns the queued bytes, to be sent.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> &[u8] {
        &self.out[..self.out_len]
    }

    /// Discards the queued bytes, after they were sent.
    #[inline]
    pub const fn discard(&mut self) {
        self.out_len = 0;
    }

    /// Records that the queued bytes are sent at `now`, which postpones the next heartbeat.
    #[inline]
    pub fn sent(&mut self, now: Nanos) {
        self.soup.sent(now);
    }

    /// Decodes `bytes`, passes each order event to `on_answer`, and returns the number of bytes consumed.
    ///
    /// # Errors
    /// [`ClientError`]: the connection is over.
    #[inline]
    pub fn handle_bytes(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        mut on_answer: impl FnMut(&OrderAnswer),
    ) -> Result<usize, ClientError> {
        let mut taken = 0;
        while let Some((event, len)) = self.soup.handle_bytes(now, &bytes[taken..])? {
            match event {
                ClientEvent::Message { message, .. } => {
                    match decode_event(message, |symbol| self.instruments.find(symbol)) {
                        Ok(Answer::Order(answer)) => on_answer(&answer),
                        // Ignore system events: market data and order answers show whether the venue is open.
                        Ok(Answer::Other(Outbound::SystemEvent(..))) => {}
                        Ok(Answer::Other(Outbound::QueryResponse(answer, ..))) => {
                            self.next_user_ref = Some(answer.next_user_ref.get());
                            self.query_answered = Some(answer.timestamp.get());
                        }
                        Ok(Answer::Other(_)) | Err(_) => self.unknown_answers += 1,
                    }
                }
                ClientEvent::LoginRejected(reason) => return Err(ClientError::LoginRejected(reason)),
                ClientEvent::EndOfSession => return Err(ClientError::EndOfSession),
                ClientEvent::Debug(_) => self.has_debug_message = true,
                ClientEvent::LoginAccepted { .. } | ClientEvent::Unsequenced(_) | ClientEvent::Heartbeat => {}
            }
            taken += len;
        }
        Ok(taken)
    }

    /// Fails if the venue was silent for too long or did not answer the login in time. Otherwise queues the
    /// login or the heartbeat, if one is due.
    ///
    /// # Errors
    /// [`SessionError`]: the connection is over.
    #[cold]
    pub fn handle_timeout(&mut self, now: Nanos) -> Result<(), SessionError> {
        self.soup.handle_timeout(now)?;
        self.queue_control(now);
        Ok(())
    }

    /// Queues the logout, which ends the connection.
    pub fn logout(&mut self, now: Nanos) {
        self.soup.logout();
        self.queue_control(now);
    }

    /// Queues the control packet that is due, if any. If it does not fit the queue, a later call queues it.
    fn queue_control(&mut self, now: Nanos) {
        let space = &mut self.out[self.out_len..];
        if space.len() >= CONTROL_LEN_MAX {
            self.out_len += self.soup.poll_transmit(now, space);
        }
    }

    /// Returns true if the venue has sent a debug packet (text) since the last call. This project's venue
    /// sends one when it refuses a request because its journal is full.
    pub const fn take_debug_message(&mut self) -> bool {
        std::mem::replace(&mut self.has_debug_message, false)
    }

    /// Returns the UserRefNum for the user's next order, from the venue's last query answer; 0 when none is
    /// left, `None` before the first answer.
    #[must_use]
    pub const fn next_user_ref(&self) -> Option<UserRefNum> {
        self.next_user_ref
    }

    /// Returns and clears the time, since midnight, of the venue's answer to the last query. The venue
    /// answers in order: once this time is present, all requests sent before the query were answered.
    pub const fn take_query_answer(&mut self) -> Option<Nanos> {
        self.query_answered.take()
    }

    /// Returns the sequence number of the next message from the venue.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        self.soup.next_sequence().0
    }

    /// Returns the number of ignored messages: invalid ones, and valid ones without an equivalent order
    /// event. System events and query answers do not count.
    #[must_use]
    pub const fn unknown_answers(&self) -> u64 {
        self.unknown_answers
    }
}

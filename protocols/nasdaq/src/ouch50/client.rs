//! The client's end of order entry: OUCH messages in one SoupBinTCP connection after another.

use tickpath_types::{InstrumentTable, Nanos, OrderRequest, UserRefNum};

use super::{AccountQuery, Answer, EncodeError, OrderAnswer, Outbound, decode_event, encode_request};
use crate::soupbintcp::{
    BufferTooShort, ClientEvent, ClientSession, LoginRejectReason, LoginRequest, SessionError,
};

/// Bytes of requests gathered for one write.
const SEND_BUFFER: usize = 16 * 1024;

/// The connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The venue refused the login: correct what it says.
    #[error("the venue refused the login: {0:?}")]
    LoginRejected(LoginRejectReason),
    /// The venue has ended the session.
    #[error("the session has ended")]
    EndOfSession,
    /// The venue broke the protocol or fell silent: connect again.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// The client's end of order entry, over one connection after another.
///
/// Performs no IO and reads no clock. What is to be sent is [queued](Client::queued) in one buffer; what was received comes in
/// by [`handle_bytes`](Client::handle_bytes). It allocates when it is made.
#[derive(Debug)]
pub struct Client {
    soup: ClientSession,
    instruments: InstrumentTable,
    out: Box<[u8]>,
    out_len: usize,
    has_notice: bool,
    next_user_ref: Option<UserRefNum>,
    query_answered: Option<Nanos>,
    unknown_answers: u64,
}

impl Client {
    /// A client on a connection that is made at `now`.
    #[must_use]
    pub fn new(login: LoginRequest, instruments: InstrumentTable, now: Nanos) -> Client {
        Client {
            soup: ClientSession::new(login, now),
            instruments,
            // A pattern other than zero touches every page here, and not with the first requests.
            out: vec![1; SEND_BUFFER].into_boxed_slice(),
            out_len: 0,
            has_notice: false,
            next_user_ref: None,
            query_answered: None,
            unknown_answers: 0,
        }
    }

    /// How to log in again so that no numbered message is missed or seen twice.
    #[must_use]
    pub fn resume(&self) -> LoginRequest {
        self.soup.resume()
    }

    /// Another connection was made at `now`.
    pub fn reconnect(&mut self, login: LoginRequest, now: Nanos) {
        self.soup = ClientSession::new(login, now);
    }

    /// True once the venue let the user in, and while requests may be sent.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.soup.is_active()
    }

    /// Puts a request behind those that are queued.
    ///
    /// # Errors
    /// [`EncodeError`], with [`EncodeError::BufferTooShort`] when too many wait; the request is not taken.
    #[inline]
    pub fn queue(&mut self, request: &OrderRequest) -> Result<(), EncodeError> {
        let instruments = &self.instruments;
        self.out_len += self.soup.frame_message_with(&mut self.out[self.out_len..], |room| {
            encode_request(request, |id| instruments.symbol(id), room)
        })?;
        Ok(())
    }

    /// Queues the question which number the user's next order is to have; [`next_user_ref`](Self::next_user_ref) has the
    /// answer once it came.
    ///
    /// # Errors
    /// As [`queue`](Self::queue).
    #[cold]
    pub fn query_account(&mut self) -> Result<(), EncodeError> {
        self.out_len += self.soup.frame_message_with(&mut self.out[self.out_len..], |room| {
            *room.first_mut().ok_or(BufferTooShort { needed: 1, len: 0 })? = AccountQuery::TYPE;
            Ok::<usize, EncodeError>(1)
        })?;
        Ok(())
    }

    /// The queued bytes, to be sent.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> &[u8] {
        &self.out[..self.out_len]
    }

    /// Forgets what is queued.
    #[inline]
    pub const fn discard(&mut self) {
        self.out_len = 0;
    }

    /// The queued bytes are sent now: no heartbeat is due for a while.
    #[inline]
    pub fn sent(&mut self, now: Nanos) {
        self.soup.sent(now);
    }

    /// Takes what was received and not yet consumed, and gives its answers one by one; returns how many bytes it took.
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
                        // Market data and the answers to orders say whether orders are taken.
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
                ClientEvent::Debug(_) => self.has_notice = true,
                ClientEvent::LoginAccepted { .. } | ClientEvent::Unsequenced(_) | ClientEvent::Heartbeat => {}
            }
            taken += len;
        }
        Ok(taken)
    }

    /// Gives up when the venue was silent, or did not answer the login, for as long as it may; otherwise queues the login or
    /// the heartbeat that is due.
    ///
    /// # Errors
    /// [`SessionError`]: the connection is over.
    #[cold]
    pub fn handle_timeout(&mut self, now: Nanos) -> Result<(), SessionError> {
        self.soup.handle_timeout(now)?;
        self.queue_control(now);
        Ok(())
    }

    /// Queues the logout; the connection is over.
    pub fn logout(&mut self, now: Nanos) {
        self.soup.logout();
        self.queue_control(now);
    }

    fn queue_control(&mut self, now: Nanos) {
        self.out_len += self.soup.poll_transmit(now, &mut self.out[self.out_len..]);
    }

    /// Whether the venue has sent text for people (a debug packet) since the last call. This project's venue drops a
    /// request that way which it has no room to record.
    pub const fn take_notice(&mut self) -> bool {
        std::mem::replace(&mut self.has_notice, false)
    }

    /// The number of the user's next order, as the venue said when it was asked; 0 when it has used the last.
    #[must_use]
    pub const fn next_user_ref(&self) -> Option<UserRefNum> {
        self.next_user_ref
    }

    /// The venue's time, since midnight, of its answer to the last query, once. Whatever the venue had to say of requests
    /// that were sent before that query was read before: its log keeps the order.
    pub const fn take_query_answer(&mut self) -> Option<Nanos> {
        self.query_answered.take()
    }

    /// Number that the venue's next message will have, from 1: the messages received plus one.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        self.soup.next_sequence().0
    }

    /// Answers that were no answers about an order: OUCH of another kind, or none.
    #[must_use]
    pub const fn unknown_answers(&self) -> u64 {
        self.unknown_answers
    }
}

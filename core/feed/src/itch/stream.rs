//! A client for ITCH over SoupBinTCP.

use tickpath_book::BooksById;
use tickpath_nasdaq::moldudp64::Request;
use tickpath_nasdaq::soupbintcp::{ClientEvent, ClientSession, LoginRejectReason, LoginRequest, Session};
use tickpath_types::{Nanos, Sequence};

use crate::builder::BookBuilder;
use crate::framing::MoldUdp64;
use crate::instruments::UpdateListener;
use crate::message_books::MessageBooks;
use crate::recovery::{
    Recovering, RecoveryClient, RecoveryCounters, RecoveryInput, SocketCounters, SocketNeeds, StreamCounters,
    StreamProgress,
};

/// Wait between the end of a session and the next login.
const ENDED_WAIT: Nanos = Nanos::from_secs(10);

type Target<'a, B, L> = Recovering<'a, BookBuilder<B>, MoldUdp64, L>;

/// Reads one lossless stream of ITCH messages, and resumes it after a lost connection.
pub struct SoupStream {
    login: LoginRequest,
    /// The protocol state of the current connection; `None` while disconnected.
    connection: Option<Box<ClientSession>>,
    /// The session that the books were built from.
    session: Option<Session>,
    /// True if the server no longer has `session`: the client requests the current session.
    is_session_unavailable: bool,
    /// True if the client must request the session from its first message.
    is_incomplete: bool,
    /// True from the server's end-of-session packet until its next message or another session.
    has_ended: bool,
    counters: StreamCounters,
    refusals: u64,
}

impl SoupStream {
    /// Creates a stream from the start of the server's current session.
    #[must_use]
    pub fn new(login: LoginRequest) -> SoupStream {
        SoupStream {
            login,
            connection: None,
            session: None,
            is_session_unavailable: false,
            is_incomplete: false,
            has_ended: false,
            counters: StreamCounters { next: Sequence(1), ..StreamCounters::default() },
            refusals: 0,
        }
    }

    /// Handles the server's login response: the stream continues with message `next` of `session`.
    fn log_on<B: BooksById, L: UpdateListener>(
        &mut self,
        session: Session,
        next: Sequence,
        target: &mut Target<'_, B, L>,
    ) {
        let (channel, out) = (&mut *target.channel, &mut *target.out);
        let is_other = self.session.replace(session).is_some_and(|before| before != session);
        self.is_session_unavailable = false;
        if is_other {
            channel.follow(out);
            (self.counters.next, self.has_ended) = (Sequence(1), false);
        } else if next < self.counters.next {
            // The books contain messages that the server no longer has: start over.
            self.counters.jumps_back += 1;
            channel.books_mut().handle_restart(out);
            self.counters.next = Sequence(1);
            if next > self.counters.next {
                self.is_incomplete = true;
                return;
            }
        }
        let books = channel.books_mut();
        books.instruments_mut().handle_recovering(false, out);
        if next > self.counters.next {
            // The server no longer has the messages before `next`.
            self.counters.lost += next.0 - self.counters.next.0;
            books.handle_lost(out);
        }
        self.counters.next = next;
    }
}

impl RecoveryClient for SoupStream {
    type Request = Request;
    const MESSAGES_PER_TURN: usize = 256;

    fn handle_request(&mut self, _: Request) {}

    fn needs(&self) -> SocketNeeds {
        SocketNeeds { connection: true, ..SocketNeeds::default() }
    }

    fn is_silent(&mut self, now: Nanos) -> bool {
        self.connection.as_mut().is_some_and(|connection| connection.handle_timeout(now).is_err())
    }

    fn counters(&self, sockets: &SocketCounters) -> RecoveryCounters {
        let SocketCounters { connections, failures, .. } = *sockets;
        RecoveryCounters { refusals: self.refusals, connections, failures, ..RecoveryCounters::default() }
    }

    fn stream(&self) -> Option<StreamCounters> {
        Some(self.counters)
    }
}

impl<B: BooksById, L: UpdateListener> RecoveryInput<Target<'_, B, L>> for SoupStream {
    fn handle_connected(&mut self, now: Nanos, _: &mut Target<'_, B, L>) {
        let mut login = self.login;
        if let Some(session) = self.session.filter(|_| !self.is_session_unavailable) {
            (login.session, login.sequence) = (session, self.counters.next);
        }
        self.is_incomplete = false;
        self.connection = Some(Box::new(ClientSession::new(login, now)));
    }

    fn poll_transmit(&mut self, now: Nanos, _: &mut Target<'_, B, L>, buffer: &mut [u8]) -> usize {
        self.connection.as_mut().map_or(0, |connection| connection.poll_transmit(now, buffer))
    }

    fn handle_bytes(&mut self, now: Nanos, bytes: &[u8], target: &mut Target<'_, B, L>) -> StreamProgress {
        let Some(connection) = self.connection.as_mut().filter(|_| !self.is_incomplete) else {
            return StreamProgress::Failed;
        };
        let (event, used) = match connection.handle_bytes(now, bytes) {
            Ok(Some(found)) => found,
            Ok(None) => return StreamProgress::Incomplete,
            Err(_) => return StreamProgress::Failed,
        };
        self.counters.packets += 1;
        match event {
            ClientEvent::Message { sequence, message } => {
                self.counters.messages += 1;
                self.counters.next = sequence.next();
                self.has_ended = false;
                target.channel.handle_stream(sequence, std::iter::once(message), target.out);
            }
            ClientEvent::LoginAccepted { session, next_sequence } => {
                self.log_on(session, next_sequence, target);
                return StreamProgress::Accepted(used);
            }
            ClientEvent::EndOfSession => {
                self.counters.ended_sessions += u64::from(!self.has_ended);
                (self.has_ended, self.connection) = (true, None);
                return StreamProgress::WaitUntil(now + ENDED_WAIT);
            }
            ClientEvent::LoginRejected(reason) => {
                self.refusals += 1;
                self.is_session_unavailable = reason == LoginRejectReason::SESSION_NOT_AVAILABLE;
                return StreamProgress::Failed;
            }
            ClientEvent::Heartbeat | ClientEvent::Debug(_) | ClientEvent::Unsequenced(_) => {}
        }
        StreamProgress::Consumed(used)
    }

    fn handle_disconnected(&mut self, _: Nanos, target: &mut Target<'_, B, L>) {
        if self.connection.take().is_some() && !self.has_ended {
            target.channel.books_mut().instruments_mut().handle_recovering(true, target.out);
        }
    }
}

//! A client's end of order entry: OUCH over SoupBinTCP over TCP.

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use tickpath_faults::failpoint;
use tickpath_nasdaq::ouch50::{self, Answer, EncodeError, OrderAnswer, Outbound};
use tickpath_nasdaq::soupbintcp::{ClientConfig, ClientEvent, ClientSession, LoginRejectReason, SendError};
use tickpath_net::{BufferSizes, Fill, Kernel, NetError, Network, SendOutcome, TcpConnection};
use tickpath_types::{InstrumentTable, Nanos, OrderRequest, Sequence, UserRefNum};

/// What a login asks for to be told what is new, and nothing that was.
const NEW_ALONE: Sequence = Sequence(0);
/// Bytes of requests gathered for one write.
const SEND_BUFFER: usize = 16 * 1024;
/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(2);
/// How often timers are looked at.
const TIMER_INTERVAL: Nanos = Nanos::from_millis(100);

/// Why order entry is over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderEntryError {
    /// Nobody listens, or not yet: start the venue first, or correct the address.
    #[error(transparent)]
    Connect(#[from] NetError),
    /// The name or the password is too long or not ASCII.
    #[error("user '{name}': a name has at most 6 and a password at most 10 ASCII characters")]
    Credentials {
        /// The user.
        name: String,
    },
    /// The venue refused the login: correct what it says.
    #[error("the venue refused the login of '{name}': {reason:?}")]
    LoginRejected {
        /// The user.
        name: String,
        /// What the venue said.
        reason: LoginRejectReason,
    },
    /// Nobody has answered for so long: is the venue running there, or does something on the way drop packets?
    #[error("nobody answers at {address} within {} s: is the venue running there?", timeout.0 / 1_000_000_000)]
    ConnectTimeout {
        /// Where.
        address: SocketAddrV4,
        /// For how long.
        timeout: Nanos,
    },
    /// The venue closed the connection or fell silent: connect again.
    #[error("the venue's order entry is gone ({reason}): connect again")]
    Disconnected {
        /// What was noticed.
        reason: String,
    },
    /// The user has used the last order number of the day: trade as another user, or wait for the next day.
    #[error(
        "'{name}' has used all order numbers of the day: trade as another user, or wait for the next day"
    )]
    NumbersExhausted {
        /// The user.
        name: String,
    },
    /// The requests come faster than the venue takes them: send fewer.
    #[error("the venue does not take requests as fast as they come: send fewer")]
    Backpressured,
    /// The request cannot be written: its instrument is unknown or a field is too large.
    #[error("a request cannot be written: {0}")]
    Encode(#[from] EncodeError),
}

/// How the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// It was given up.
    Down,
    /// It is being made again, until then at the longest.
    Connecting {
        deadline: Nanos,
    },
    Up,
}

/// One logged-in connection to a venue's order entry. Nothing blocks after [`connect`](Self::connect), and nothing
/// is allocated: a connection after the first uses its buffers.
pub struct OrderEntry<N: Network = Kernel> {
    name: String,
    tcp: TcpConnection<N>,
    soup: ClientSession,
    instruments: InstrumentTable,
    out: Box<[u8]>,
    out_len: usize,
    next_timers: Nanos,
    link: Link,
    /// The venue has sent text for people since it was last looked at.
    has_notice: bool,
    /// What the venue said when it was asked.
    next_user_ref: Option<UserRefNum>,
    /// When it said so, by its own clock, until that is looked at.
    query_answered: Option<Nanos>,
    /// Answers that the vocabulary has no word for, or that were no OUCH.
    unknown_answers: u64,
}

impl OrderEntry {
    /// Connects, waiting up to two seconds, and asks to log in, from the first message of the session; the answer
    /// comes by [`poll`](Self::poll).
    ///
    /// # Errors
    /// [`OrderEntryError::Connect`] and [`OrderEntryError::Credentials`].
    pub fn connect(
        address: SocketAddrV4,
        name: &str,
        password: &str,
        instruments: InstrumentTable,
        now: Nanos,
    ) -> Result<OrderEntry, OrderEntryError> {
        let config = credentials(name, password)?;
        let timeout = Duration::from_nanos(CONNECT_TIMEOUT.0);
        let tcp = TcpConnection::connect(address, timeout, BufferSizes::default())?;
        Ok(OrderEntry::of(tcp, Link::Up, name, config, instruments, now))
    }
}

impl<N: Network> OrderEntry<N> {
    /// The same on any network, without waiting: [`poll_connected`](Self::poll_connected) says when the connection
    /// stands.
    ///
    /// # Errors
    /// As [`connect`](OrderEntry::connect).
    pub fn begin_on(
        network: N,
        address: SocketAddrV4,
        name: &str,
        password: &str,
        instruments: InstrumentTable,
        now: Nanos,
    ) -> Result<OrderEntry<N>, OrderEntryError> {
        let config = credentials(name, password)?;
        let tcp = TcpConnection::begin_on(network, address, BufferSizes::default())?;
        let link = Link::Connecting { deadline: now + CONNECT_TIMEOUT };
        Ok(OrderEntry::of(tcp, link, name, config, instruments, now))
    }

    fn of(
        tcp: TcpConnection<N>,
        link: Link,
        name: &str,
        config: ClientConfig,
        instruments: InstrumentTable,
        now: Nanos,
    ) -> OrderEntry<N> {
        OrderEntry {
            name: name.to_owned(),
            tcp,
            soup: ClientSession::new(config, now),
            instruments,
            out: vec![1; SEND_BUFFER].into_boxed_slice(),
            out_len: 0,
            next_timers: Nanos::ZERO,
            link,
            has_notice: false,
            next_user_ref: None,
            query_answered: None,
            unknown_answers: 0,
        }
    }

    /// Before the login: asks for what is new alone, and not for the session from its start.
    #[must_use]
    pub fn only_new(self, now: Nanos) -> OrderEntry<N> {
        let mut config = self.soup.resume();
        config.login.sequence = NEW_ALONE;
        OrderEntry { soup: ClientSession::new(config, now), ..self }
    }

    /// Begins to connect again, to go on where the session stood: no numbered message is missed or seen twice.
    /// Waits for nothing: [`poll_connected`](Self::poll_connected) says when the connection stands.
    /// Requests that were queued and not sent are dropped: nobody knows whether they are still wanted.
    ///
    /// # Errors
    /// [`OrderEntryError::Connect`].
    pub fn start_reconnecting(&mut self, address: SocketAddrV4, now: Nanos) -> Result<(), OrderEntryError> {
        self.disconnect();
        self.tcp.start_connecting(address)?;
        self.link = Link::Connecting { deadline: now + CONNECT_TIMEOUT };
        Ok(())
    }

    /// Whether the connection stands; one that is being made again is asked after by two system calls.
    ///
    /// # Errors
    /// [`OrderEntryError::Connect`] and [`OrderEntryError::ConnectTimeout`]: it is given up.
    #[inline]
    pub fn poll_connected(&mut self, now: Nanos) -> Result<bool, OrderEntryError> {
        match self.link {
            Link::Up => Ok(true),
            Link::Down => Ok(false),
            Link::Connecting { deadline } => self.go_on_connecting(deadline, now),
        }
    }

    #[cold]
    fn go_on_connecting(&mut self, deadline: Nanos, now: Nanos) -> Result<bool, OrderEntryError> {
        let address = self.tcp.peer_address();
        match self.tcp.poll_connected() {
            Ok(true) => {
                let config = self.soup.resume();
                failpoint!(AnswerAskedForAgain: mut config => if config.login.sequence.0 > 1 {
                    config.login.sequence.0 -= 1;
                });
                self.soup = ClientSession::new(config, now);
                self.next_timers = Nanos::ZERO;
                self.link = Link::Up;
                Ok(true)
            }
            Ok(false) if now < deadline => Ok(false),
            Ok(false) => {
                self.disconnect();
                Err(OrderEntryError::ConnectTimeout { address, timeout: CONNECT_TIMEOUT })
            }
            Err(error) => {
                self.disconnect();
                Err(error.into())
            }
        }
    }

    /// Gives the connection up, until [`start_reconnecting`](Self::start_reconnecting), tells the venue so, and
    /// forgets what is queued.
    pub fn disconnect(&mut self) {
        self.link = Link::Down;
        self.tcp.close();
        self.discard();
    }

    /// Descriptor that is readable when something is received; none in a simulation.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.tcp.descriptor()
    }

    /// True while the connection stands, as far as is known.
    #[inline]
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.link == Link::Up
    }

    /// True while the connection is being made again.
    #[must_use]
    pub const fn is_connecting(&self) -> bool {
        matches!(self.link, Link::Connecting { .. })
    }

    /// True once the venue let the user in, and while requests may be sent.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.is_connected() && self.soup.is_active()
    }

    /// Puts a request behind those that the next [`flush`](Self::flush) sends.
    ///
    /// # Errors
    /// [`OrderEntryError::Encode`] when it cannot be written, [`OrderEntryError::Backpressured`] when too
    /// many wait; the request is not taken.
    #[inline]
    pub fn queue(&mut self, request: &OrderRequest) -> Result<(), OrderEntryError> {
        let instruments = &self.instruments;
        let room = &mut self.out[self.out_len..];
        let len = self
            .soup
            .frame_message_with(room, |room| {
                ouch50::encode_request(request, |id| instruments.symbol(id), room)
            })
            .map_err(|error| match error {
                EncodeError::BufferTooShort(_) => OrderEntryError::Backpressured,
                other => OrderEntryError::Encode(other),
            })?;
        self.out_len += len;
        Ok(())
    }

    /// Asks the venue which number the user's next order is to have; [`next_user_ref`](Self::next_user_ref) has the
    /// answer once it came.
    ///
    /// # Errors
    /// As [`queue`](Self::queue) and [`flush`](Self::flush).
    #[cold]
    pub fn query_account(&mut self, now: Nanos) -> Result<(), OrderEntryError> {
        let room = &mut self.out[self.out_len..];
        self.out_len += self.soup.frame_message_with(room, |room| {
            *room.first_mut().ok_or(OrderEntryError::Backpressured)? = ouch50::AccountQuery::TYPE;
            Ok::<usize, OrderEntryError>(1)
        })?;
        self.flush(now)
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

    /// Forgets what is queued.
    pub fn discard(&mut self) {
        self.out_len = 0;
    }

    /// Bytes that are queued.
    #[must_use]
    pub const fn queued_len(&self) -> usize {
        self.out_len
    }

    /// Hands everything that is queued to TCP by one write.
    ///
    /// # Errors
    /// [`OrderEntryError::Disconnected`], or [`OrderEntryError::Backpressured`] when TCP has no room; the
    /// requests then stay queued.
    #[inline]
    pub fn flush(&mut self, now: Nanos) -> Result<(), OrderEntryError> {
        if self.out_len == 0 {
            return Ok(());
        }
        self.soup.sent(now);
        match self.tcp.send(&self.out[..self.out_len]) {
            Ok(SendOutcome::Sent | SendOutcome::Pending) => {
                self.out_len = 0;
                Ok(())
            }
            Ok(SendOutcome::Backpressured) => Err(OrderEntryError::Backpressured),
            Ok(SendOutcome::Closed) => Err(self.disconnected("the connection was closed")),
            Err(error) => Err(self.disconnected(error)),
        }
    }

    /// Reads what the venue sent and gives its answers one by one; `on_read` is called once, right after the
    /// read and only when it brought something. Returns how many answers there were.
    ///
    /// # Errors
    /// [`OrderEntryError::LoginRejected`] and [`OrderEntryError::Disconnected`]: the connection is over.
    #[inline]
    pub fn poll<C>(
        &mut self,
        now: Nanos,
        context: &mut C,
        on_read: impl FnOnce(&mut C),
        mut on_answer: impl FnMut(&mut C, &OrderAnswer),
    ) -> Result<usize, OrderEntryError> {
        if self.tcp.pending_len() > 0 {
            self.send_rest()?;
        }
        let fill = match self.tcp.fill() {
            Ok(Fill::Empty) => return self.run_due_timers(now).map(|()| 0),
            Ok(fill) => fill,
            Err(error) => return Err(self.disconnected(error)),
        };
        on_read(context);
        let mut answers = 0;
        loop {
            let (event, used) = match self.soup.handle_bytes(now, self.tcp.received()) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(error) => return Err(self.disconnected(error)),
            };
            match event {
                ClientEvent::Message { message, .. } => {
                    match ouch50::decode_event(message, |symbol| self.instruments.find(symbol)) {
                        Ok(Answer::Order(answer)) => {
                            on_answer(context, &answer);
                            answers += 1;
                        }
                        // Whether orders are taken is told by market data, and by the answers to them.
                        Ok(Answer::Other(Outbound::SystemEvent(..))) => {}
                        Ok(Answer::Other(Outbound::QueryResponse(answer, ..))) => {
                            self.next_user_ref = Some(answer.next_user_ref.get());
                            self.query_answered = Some(answer.timestamp.get());
                        }
                        Ok(Answer::Other(_)) | Err(_) => self.unknown_answers += 1,
                    }
                }
                ClientEvent::LoginRejected(reason) => {
                    return Err(OrderEntryError::LoginRejected { name: self.name.clone(), reason });
                }
                ClientEvent::EndOfSession => return Err(self.disconnected("the session has ended")),
                ClientEvent::Debug(_) => self.has_notice = true,
                ClientEvent::LoginAccepted { .. } | ClientEvent::Unsequenced(_) | ClientEvent::Heartbeat => {}
            }
            self.tcp.consume(used);
        }
        // After the reading: what has come is no silence, however late it is looked at.
        if fill != Fill::Closed {
            self.run_due_timers(now)?;
        }
        match fill {
            Fill::Closed if self.soup.is_active() => Err(self.disconnected("the connection was closed")),
            Fill::Closed => {
                Err(self.disconnected("closed before the login was answered: is the venue full?"))
            }
            _ => Ok(answers),
        }
    }

    /// Logs out; what was queued is sent before. Nothing happens while the connection is given up.
    pub fn logout(&mut self, now: Nanos) {
        if !self.is_connected() {
            return;
        }
        // The connection ends either way.
        let _ = self.flush(now);
        self.soup.logout();
        let _ = self.transmit(now);
    }

    /// Number that the venue's next message will have, from 1: the messages received plus one.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.soup.next_sequence().0
    }

    /// Answers that were no answers about an order.
    #[must_use]
    pub const fn unknown_answers(&self) -> u64 {
        self.unknown_answers
    }

    /// Hands TCP what it did not take of an earlier write: nothing that is to be sent waits for the next request.
    #[cold]
    fn send_rest(&mut self) -> Result<(), OrderEntryError> {
        match self.tcp.flush_pending() {
            Ok(SendOutcome::Closed) => Err(self.disconnected("the connection was closed")),
            Ok(_) => Ok(()),
            Err(error) => Err(self.disconnected(error)),
        }
    }

    #[inline]
    fn run_due_timers(&mut self, now: Nanos) -> Result<(), OrderEntryError> {
        if now >= self.next_timers { self.run_timers(now) } else { Ok(()) }
    }

    #[cold]
    fn run_timers(&mut self, now: Nanos) -> Result<(), OrderEntryError> {
        self.next_timers = now + TIMER_INTERVAL;
        if let Err(error) = self.soup.handle_timeout(now) {
            return Err(self.disconnected(error));
        }
        self.transmit(now)
    }

    fn transmit(&mut self, now: Nanos) -> Result<(), OrderEntryError> {
        let len = self.soup.poll_transmit(now, &mut self.out[self.out_len..]);
        self.out_len += len;
        self.flush(now)
    }

    #[cold]
    fn disconnected(&self, reason: impl std::fmt::Display) -> OrderEntryError {
        OrderEntryError::Disconnected { reason: reason.to_string() }
    }
}

impl AsFd for OrderEntry {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }
}

fn credentials(name: &str, password: &str) -> Result<ClientConfig, OrderEntryError> {
    ClientConfig::new(name, password).ok_or_else(|| OrderEntryError::Credentials { name: name.to_owned() })
}

impl From<SendError> for OrderEntryError {
    fn from(error: SendError) -> Self {
        OrderEntryError::Encode(error.into())
    }
}

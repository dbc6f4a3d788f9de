//! The client side of order entry: OUCH over SoupBinTCP over TCP.

use std::fmt::Display;
use std::net::SocketAddrV4;
use std::os::fd::BorrowedFd;

use tickpath_faults::failpoint;
use tickpath_nasdaq::ouch50::{Client, ClientError, EncodeError, OrderAnswer};
use tickpath_nasdaq::soupbintcp::{LoginRejectReason, LoginRequest};
use tickpath_net::{
    ClientState, Fill, Kernel, NetError, Network, ReconnectConfig, ReconnectingClient, SendOutcome,
    TcpConnection,
};
use tickpath_types::{InstrumentTable, Nanos, OrderRequest, Sequence};

/// Sequence number in a login that requests only new messages.
const NEW_MESSAGES_ONLY: Sequence = Sequence(0);
/// Maximum duration of a connection attempt.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(2);
/// Reconnects without an automatic wait: the owner chooses the time of the next attempt.
const RECONNECT: ReconnectConfig = ReconnectConfig::fixed(CONNECT_TIMEOUT, Nanos::ZERO);
const CLOSED: &str = "the connection was closed";
/// Interval between checks of the session's timers: heartbeats and the venue's silence.
const TIMER_INTERVAL: Nanos = Nanos::from_millis(100);

/// The reason why order entry ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderEntryError {
    /// There is no listener at the address: start the venue first, or correct the address.
    #[error(transparent)]
    Connect(#[from] NetError),
    /// The name or the password is too long or not ASCII.
    #[error("user '{name}': a name has at most 6 and a password at most 10 ASCII characters")]
    Credentials {
        /// Name of the user.
        name: String,
    },
    /// The venue refused the login: correct it according to the reason.
    #[error("the venue refused the login of '{name}': {reason:?}")]
    LoginRejected {
        /// Name of the user.
        name: String,
        /// The venue's reason for the refusal.
        reason: LoginRejectReason,
    },
    /// The venue did not answer in time: check that it runs at this address and that no firewall drops
    /// packets.
    #[error("no answer from {address} within {} s: is the venue running there?", timeout.0 / 1_000_000_000)]
    ConnectTimeout {
        /// Address of the venue.
        address: SocketAddrV4,
        /// Time-out of the connection attempt.
        timeout: Nanos,
    },
    /// The venue closed the connection or stopped sending: connect again.
    #[error("the order entry connection is lost ({reason}): connect again")]
    Disconnected {
        /// Cause of the lost connection.
        reason: String,
    },
    /// The user has used the last UserRefNum of the day: trade as another user, or wait for the next day.
    #[error(
        "'{name}' has used all order numbers of the day: trade as another user, or wait for the next day"
    )]
    NumbersExhausted {
        /// Name of the user.
        name: String,
    },
    /// Requests are sent faster than the venue accepts them: send fewer.
    #[error("the venue reads requests more slowly than they are sent: send fewer")]
    Backpressured,
    /// The request cannot be encoded: its instrument is unknown or a field is too large.
    #[error("a request cannot be encoded: {0}")]
    Encode(EncodeError),
}

/// One user's connection to a venue's order entry. Nothing blocks or allocates after
/// [`connect`](Self::connect): reconnecting reuses the buffers.
pub struct OrderEntry<N: Network = Kernel> {
    name: String,
    address: SocketAddrV4,
    link: ReconnectingClient<N>,
    client: Client,
    next_timers: Nanos,
}

impl OrderEntry {
    /// Connects, waiting up to two seconds, and prepares a login that requests all messages of the session.
    /// [`poll`](Self::poll) sends it and reads the answer.
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
        let client = client(name, password, instruments, now)?;
        let link = ReconnectingClient::connect(address, RECONNECT)?;
        Ok(OrderEntry { name: name.to_owned(), address, link, client, next_timers: Nanos::ZERO })
    }
}

impl<N: Network> OrderEntry<N> {
    /// As `connect`, on any network, without waiting: call [`poll_connected`](Self::poll_connected) until the
    /// connection is established.
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
        let client = client(name, password, instruments, now)?;
        let mut link = ReconnectingClient::new(network, address, RECONNECT);
        if link.poll(now) == ClientState::Failed {
            return Err(connect_error(&mut link, address));
        }
        Ok(OrderEntry { name: name.to_owned(), address, link, client, next_timers: Nanos::ZERO })
    }

    /// Changes the login so that it requests only new messages, not all of the session. Call it before the
    /// login is sent.
    #[must_use]
    pub fn only_new(mut self, now: Nanos) -> OrderEntry<N> {
        let mut login = self.client.resume();
        login.sequence = NEW_MESSAGES_ONLY;
        self.client.reconnect(login, now);
        self
    }

    /// Returns true when the connection is established. Reconnects a lost connection when due; the new login
    /// resumes after the last message, so that no numbered message is missed or repeated. Never waits.
    ///
    /// # Errors
    /// [`OrderEntryError::Connect`] and [`OrderEntryError::ConnectTimeout`]: the attempt failed.
    #[inline]
    pub fn poll_connected(&mut self, now: Nanos) -> Result<bool, OrderEntryError> {
        if self.is_connected() { Ok(true) } else { self.continue_connecting(now) }
    }

    #[cold]
    fn continue_connecting(&mut self, now: Nanos) -> Result<bool, OrderEntryError> {
        let was_waiting = self.link.is_waiting();
        let mut state = self.link.poll(now);
        if was_waiting && state == ClientState::Connecting {
            state = self.link.poll(now);
        }
        match state {
            ClientState::Connected => {
                let login = self.client.resume();
                failpoint!(AnswerAskedForAgain: mut login => if login.sequence.0 > 1 {
                    login.sequence.0 -= 1;
                });
                self.client.reconnect(login, now);
                self.next_timers = Nanos::ZERO;
                Ok(true)
            }
            ClientState::Established => Ok(true),
            ClientState::Waiting | ClientState::Connecting => Ok(false),
            ClientState::Failed => Err(connect_error(&mut self.link, self.address)),
        }
    }

    /// Closes the connection and drops queued and unsent requests, which may be out of date.
    /// [`poll_connected`](Self::poll_connected) reconnects from `until` on.
    pub fn disconnect(&mut self, until: Nanos) {
        self.link.wait_until(until);
        self.client.discard();
    }

    /// Returns the descriptor that is readable when data has arrived; `None` if unconnected or simulated.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.link.established()?.descriptor()
    }

    /// Returns the session, which outlasts connections. It holds received messages and queued requests.
    #[inline]
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the session, to drop queued requests and to take the venue's messages.
    #[inline]
    pub const fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Returns true from the establishment of the connection until its loss is noticed.
    #[inline]
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.link.established().is_some()
    }

    /// Returns true while connected with an accepted login: requests may be sent.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.is_connected() && self.client.is_active()
    }

    /// Appends a request to those that the next [`flush`](Self::flush) sends.
    ///
    /// # Errors
    /// [`OrderEntryError::Encode`] if the request cannot be encoded, [`OrderEntryError::Backpressured`] if
    /// too many are queued already. The request is then not queued.
    #[inline]
    pub fn queue(&mut self, request: &OrderRequest) -> Result<(), OrderEntryError> {
        Ok(self.client.queue(request)?)
    }

    /// Queries the venue for the UserRefNum of the user's next order;
    /// [`next_user_ref`](Client::next_user_ref) returns it once the answer has arrived.
    ///
    /// # Errors
    /// As [`queue`](Self::queue) and [`flush`](Self::flush).
    #[cold]
    pub fn query_account(&mut self, now: Nanos) -> Result<(), OrderEntryError> {
        self.client.query_account()?;
        self.flush(now)
    }

    /// Passes all queued requests to TCP in one write.
    ///
    /// # Errors
    /// [`OrderEntryError::Disconnected`], or [`OrderEntryError::Backpressured`] when TCP's buffer is full;
    /// the requests then remain queued.
    #[inline]
    pub fn flush(&mut self, now: Nanos) -> Result<(), OrderEntryError> {
        if self.client.queued().is_empty() {
            return Ok(());
        }
        self.client.sent(now);
        let tcp = self.link.connection().ok_or_else(|| disconnected(CLOSED))?;
        match tcp.send(self.client.queued()).map_err(disconnected)? {
            SendOutcome::Sent | SendOutcome::Pending => {
                self.client.discard();
                Ok(())
            }
            SendOutcome::Backpressured => Err(OrderEntryError::Backpressured),
            SendOutcome::Closed => Err(disconnected(CLOSED)),
        }
    }

    /// Reads the venue's messages and passes each answer to `on_answer`; calls `on_read` once, right after
    /// the read and only when there was data. Returns the number of answers.
    ///
    /// # Errors
    /// [`OrderEntryError::LoginRejected`] and [`OrderEntryError::Disconnected`]: the connection has ended.
    #[inline]
    pub fn poll<C>(
        &mut self,
        now: Nanos,
        context: &mut C,
        on_read: impl FnOnce(&mut C),
        mut on_answer: impl FnMut(&mut C, &OrderAnswer),
    ) -> Result<usize, OrderEntryError> {
        let tcp = self.link.connection().ok_or_else(|| disconnected(CLOSED))?;
        if tcp.pending_len() > 0 {
            flush_remainder(tcp)?;
        }
        let fill = tcp.fill().map_err(disconnected)?;
        if fill == Fill::Empty {
            return self.run_due_timers(now).map(|()| 0);
        }
        on_read(context);
        let mut answers = 0;
        let taken = self.client.handle_bytes(now, tcp.received(), |answer| {
            on_answer(context, answer);
            answers += 1;
        });
        match taken {
            Ok(taken) => tcp.consume(taken),
            Err(ClientError::LoginRejected(reason)) => {
                return Err(OrderEntryError::LoginRejected { name: self.name.clone(), reason });
            }
            Err(error) => return Err(disconnected(error)),
        }
        match fill {
            Fill::Closed if self.client.is_active() => Err(disconnected(CLOSED)),
            Fill::Closed => Err(disconnected("closed before the login was answered: is the venue full?")),
            // Check timers after the read, so that data that arrived but was read late does not count as
            // silence.
            _ => self.run_due_timers(now).map(|()| answers),
        }
    }

    /// Logs out, after sending queued requests. Does nothing without a connection.
    pub fn logout(&mut self, now: Nanos) {
        if !self.is_connected() {
            return;
        }
        // The connection ends, whether or not the writes succeed.
        let _ = self.flush(now);
        self.client.logout(now);
        let _ = self.flush(now);
    }

    #[inline]
    fn run_due_timers(&mut self, now: Nanos) -> Result<(), OrderEntryError> {
        if now >= self.next_timers { self.run_timers(now) } else { Ok(()) }
    }

    #[cold]
    fn run_timers(&mut self, now: Nanos) -> Result<(), OrderEntryError> {
        self.next_timers = now + TIMER_INTERVAL;
        self.client.handle_timeout(now).map_err(disconnected)?;
        match self.flush(now) {
            // TCP has unsent bytes, which serve as a sign of life; the heartbeat follows them.
            Err(OrderEntryError::Backpressured) => Ok(()),
            flushed => flushed,
        }
    }
}

/// Passes the remainder of an earlier write to TCP, so that it does not wait for the next request.
#[cold]
fn flush_remainder<N: Network>(tcp: &mut TcpConnection<N>) -> Result<(), OrderEntryError> {
    match tcp.flush_pending().map_err(disconnected)? {
        SendOutcome::Closed => Err(disconnected(CLOSED)),
        _ => Ok(()),
    }
}

#[cold]
fn disconnected(reason: impl Display) -> OrderEntryError {
    OrderEntryError::Disconnected { reason: reason.to_string() }
}

/// Returns the reason why the latest connection attempt failed.
fn connect_error<N: Network>(link: &mut ReconnectingClient<N>, address: SocketAddrV4) -> OrderEntryError {
    let timed_out = OrderEntryError::ConnectTimeout { address, timeout: CONNECT_TIMEOUT };
    link.take_error().map_or(timed_out, OrderEntryError::Connect)
}

fn client(
    name: &str,
    password: &str,
    instruments: InstrumentTable,
    now: Nanos,
) -> Result<Client, OrderEntryError> {
    let login = LoginRequest::new(name, password);
    let login = login.ok_or_else(|| OrderEntryError::Credentials { name: name.to_owned() })?;
    Ok(Client::new(login, instruments, now))
}

impl From<EncodeError> for OrderEntryError {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::BufferTooShort(_) => OrderEntryError::Backpressured,
            other => OrderEntryError::Encode(other),
        }
    }
}

//! A client's end of order entry: OUCH over SoupBinTCP over TCP.

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

/// What a login asks for to be told what is new, and nothing that was.
const NEW_ALONE: Sequence = Sequence(0);
/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Nanos = Nanos::from_secs(2);
/// The time of the next attempt is the owner's choice.
const RECONNECT: ReconnectConfig = ReconnectConfig::fixed(CONNECT_TIMEOUT, Nanos::ZERO);
const CLOSED: &str = "the connection was closed";
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
    Encode(EncodeError),
}

/// One logged-in connection to a venue's order entry. Nothing blocks after [`connect`](Self::connect), and nothing
/// is allocated: a connection after the first uses its buffers.
pub struct OrderEntry<N: Network = Kernel> {
    name: String,
    address: SocketAddrV4,
    link: ReconnectingClient<N>,
    client: Client,
    next_timers: Nanos,
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
        let client = client(name, password, instruments, now)?;
        let link = ReconnectingClient::connect(address, RECONNECT)?;
        Ok(OrderEntry { name: name.to_owned(), address, link, client, next_timers: Nanos::ZERO })
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
        let client = client(name, password, instruments, now)?;
        let mut link = ReconnectingClient::new(network, address, RECONNECT);
        if link.poll(now) == ClientState::Failed {
            return Err(connect_error(&mut link, address));
        }
        Ok(OrderEntry { name: name.to_owned(), address, link, client, next_timers: Nanos::ZERO })
    }

    /// Before the login: asks for what is new alone, and not for the session from its start.
    #[must_use]
    pub fn only_new(mut self, now: Nanos) -> OrderEntry<N> {
        let mut login = self.client.resume();
        login.sequence = NEW_ALONE;
        self.client.reconnect(login, now);
        self
    }

    /// Whether the connection stands. One that was lost is made again, once that is due, to go on where the session stood:
    /// no numbered message is missed or seen twice. Waits for nothing.
    ///
    /// # Errors
    /// [`OrderEntryError::Connect`] and [`OrderEntryError::ConnectTimeout`]: the attempt is given up.
    #[inline]
    pub fn poll_connected(&mut self, now: Nanos) -> Result<bool, OrderEntryError> {
        if self.is_connected() { Ok(true) } else { self.go_on_connecting(now) }
    }

    #[cold]
    fn go_on_connecting(&mut self, now: Nanos) -> Result<bool, OrderEntryError> {
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

    /// Gives the connection up, until it is made again by [`poll_connected`](Self::poll_connected) at `until`. Requests that
    /// were queued and not sent are dropped, as they may be out of date.
    pub fn disconnect(&mut self, until: Nanos) {
        self.link.wait_until(until);
        self.client.discard();
    }

    /// Descriptor that is readable when something is received; none in a simulation, and without a connection.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.link.established()?.descriptor()
    }

    /// The session over all connections: what the venue said, and what is queued.
    #[inline]
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The session, to forget what is queued and to take what the venue said.
    #[inline]
    pub const fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    /// True while the connection stands, as far as is known.
    #[inline]
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.link.established().is_some()
    }

    /// True once the venue let the user in, and while requests may be sent.
    #[inline]
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.is_connected() && self.client.is_active()
    }

    /// Puts a request behind those that the next [`flush`](Self::flush) sends.
    ///
    /// # Errors
    /// [`OrderEntryError::Encode`] when it cannot be written, [`OrderEntryError::Backpressured`] when too
    /// many wait; the request is not taken.
    #[inline]
    pub fn queue(&mut self, request: &OrderRequest) -> Result<(), OrderEntryError> {
        Ok(self.client.queue(request)?)
    }

    /// Asks the venue which number the user's next order is to have; [`next_user_ref`](Client::next_user_ref) has the
    /// answer once it came.
    ///
    /// # Errors
    /// As [`queue`](Self::queue) and [`flush`](Self::flush).
    #[cold]
    pub fn query_account(&mut self, now: Nanos) -> Result<(), OrderEntryError> {
        self.client.query_account()?;
        self.flush(now)
    }

    /// Hands everything that is queued to TCP by one write.
    ///
    /// # Errors
    /// [`OrderEntryError::Disconnected`], or [`OrderEntryError::Backpressured`] when TCP has no room; the
    /// requests then stay queued.
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
        let tcp = self.link.connection().ok_or_else(|| disconnected(CLOSED))?;
        if tcp.pending_len() > 0 {
            send_rest(tcp)?;
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
            // After the reading: what has come is no silence, however late it is looked at.
            _ => self.run_due_timers(now).map(|()| answers),
        }
    }

    /// Logs out; what was queued is sent before. Nothing happens while the connection is given up.
    pub fn logout(&mut self, now: Nanos) {
        if !self.is_connected() {
            return;
        }
        // The connection ends either way.
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
        self.flush(now)
    }
}

/// Hands TCP what it did not take of an earlier write: nothing that is to be sent waits for the next request.
#[cold]
fn send_rest<N: Network>(tcp: &mut TcpConnection<N>) -> Result<(), OrderEntryError> {
    match tcp.flush_pending().map_err(disconnected)? {
        SendOutcome::Closed => Err(disconnected(CLOSED)),
        _ => Ok(()),
    }
}

#[cold]
fn disconnected(reason: impl Display) -> OrderEntryError {
    OrderEntryError::Disconnected { reason: reason.to_string() }
}

/// Why the latest attempt failed.
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

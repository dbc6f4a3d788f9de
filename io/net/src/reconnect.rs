//! A TCP client that connects again after failures and lost connections.

use std::net::SocketAddrV4;
use std::time::Duration;

use tickpath_types::Nanos;

use crate::error::NetError;
use crate::network::{Kernel, Network};
use crate::tcp::{BufferSizes, TcpConnection};

/// Timeouts and bounds of a [`ReconnectingClient`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconnectConfig {
    /// Sizes of the connection's buffers.
    pub buffers: BufferSizes,
    /// Maximum time from the start of an attempt until the connection is established.
    pub connect_timeout: Nanos,
    /// Wait after the first failure or [`retry`](ReconnectingClient::retry); doubles with each further one.
    pub wait_min: Nanos,
    /// Maximum wait before another attempt.
    pub wait_max: Nanos,
    /// Minimum wait after a failure, but not after a [`retry`](ReconnectingClient::retry).
    pub failure_wait_min: Nanos,
}

impl ReconnectConfig {
    /// Creates a configuration with the same wait after each failure, and buffers of the default sizes.
    #[must_use]
    pub const fn fixed(connect_timeout: Nanos, wait: Nanos) -> ReconnectConfig {
        ReconnectConfig {
            buffers: BufferSizes::DEFAULT,
            connect_timeout,
            wait_min: wait,
            wait_max: wait,
            failure_wait_min: wait,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting { until: Nanos },
    Connecting { deadline: Nanos },
    Established,
}

/// The state of the connection after [`ReconnectingClient::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ClientState {
    /// The next attempt is not due yet.
    Waiting,
    /// An attempt is in progress.
    Connecting,
    /// The connection has been established by this call.
    Connected,
    /// The connection was established before.
    Established,
    /// The attempt failed in this call.
    Failed,
}

/// Maintains one connection to a server. Waits between attempts, longer after each failure, and counts
/// attempts and failures.
///
/// Never blocks, except in [`connect`](ReconnectingClient::connect). Allocates only for the first attempt:
/// all connections use the same buffers.
#[derive(Debug)]
pub struct ReconnectingClient<N: Network = Kernel> {
    network: N,
    server: SocketAddrV4,
    config: ReconnectConfig,
    state: State,
    next_wait: Nanos,
    connection: Option<TcpConnection<N>>,
    error: Option<NetError>,
    attempts: u64,
    failures: u64,
}

impl ReconnectingClient {
    /// Connects to the server, waiting at most the connect timeout, and returns the connected client.
    ///
    /// # Errors
    /// [`NetError::Connect`] when the server does not answer in time.
    pub fn connect(server: SocketAddrV4, config: ReconnectConfig) -> Result<ReconnectingClient, NetError> {
        let timeout = Duration::from_nanos(config.connect_timeout.0);
        let connection = Some(TcpConnection::connect(server, timeout, config.buffers)?);
        let client = ReconnectingClient::new(Kernel, server, config);
        Ok(ReconnectingClient { connection, state: State::Established, attempts: 1, ..client })
    }
}

impl<N: Network> ReconnectingClient<N> {
    /// Creates a client whose first attempt is due immediately.
    #[must_use]
    pub fn new(network: N, server: SocketAddrV4, config: ReconnectConfig) -> ReconnectingClient<N> {
        ReconnectingClient {
            network,
            server,
            config,
            state: State::Waiting { until: Nanos::ZERO },
            next_wait: config.wait_min,
            connection: None,
            error: None,
            attempts: 0,
            failures: 0,
        }
    }

    /// Begins an attempt that is due, or checks the one in progress.
    pub fn poll(&mut self, now: Nanos) -> ClientState {
        match self.state {
            State::Waiting { until } if now < until => ClientState::Waiting,
            State::Waiting { .. } => self.begin(now),
            State::Connecting { deadline } => {
                match self.connection.as_mut().map(TcpConnection::poll_connected) {
                    Some(Ok(true)) => {
                        self.state = State::Established;
                        ClientState::Connected
                    }
                    Some(Ok(false)) if now < deadline => ClientState::Connecting,
                    outcome => self.failed(now, outcome.and_then(Result::err)),
                }
            }
            State::Established => ClientState::Established,
        }
    }

    fn begin(&mut self, now: Nanos) -> ClientState {
        self.attempts += 1;
        let begun = match &mut self.connection {
            Some(connection) => connection.start_connecting(self.server),
            none => TcpConnection::begin_on(self.network.clone(), self.server, self.config.buffers)
                .map(|begun| *none = Some(begun)),
        };
        if let Err(error) = begun {
            return self.failed(now, Some(error));
        }
        self.state = State::Connecting { deadline: now + self.config.connect_timeout };
        ClientState::Connecting
    }

    /// The connection, while it is established.
    #[inline]
    pub fn connection(&mut self) -> Option<&mut TcpConnection<N>> {
        self.connection.as_mut().filter(|_| self.state == State::Established)
    }

    /// The connection, while it is established, for reading.
    #[inline]
    #[must_use]
    pub fn established(&self) -> Option<&TcpConnection<N>> {
        self.connection.as_ref().filter(|_| self.state == State::Established)
    }

    /// True while there is neither a connection nor an attempt.
    #[must_use]
    pub const fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// Takes the reason why the latest attempt failed; `None` if the server did not answer in time.
    pub const fn take_error(&mut self) -> Option<NetError> {
        self.error.take()
    }

    fn failed(&mut self, now: Nanos, error: Option<NetError>) -> ClientState {
        self.error = error;
        self.fail(now);
        ClientState::Failed
    }

    /// Closes the connection, counts a failure, and schedules the next attempt after a wait.
    pub fn fail(&mut self, now: Nanos) {
        self.failures += 1;
        self.back_off(now, self.config.failure_wait_min);
    }

    /// Closes the connection and schedules the next attempt after a wait, without counting a failure. For a
    /// server that has no data yet.
    pub fn retry(&mut self, now: Nanos) {
        self.back_off(now, Nanos::ZERO);
    }

    fn back_off(&mut self, now: Nanos, least: Nanos) {
        let wait = self.next_wait.max(least);
        self.next_wait = Nanos(2 * wait.0).min(self.config.wait_max);
        self.wait_until(now + wait);
    }

    /// Closes a connection that is no longer needed. The next attempt is due immediately, and later waits
    /// start from `wait_min` again.
    pub fn finish(&mut self, now: Nanos) {
        self.reset_wait();
        self.wait_until(now);
    }

    /// Resets the next wait to `wait_min`. Call this when the server answers.
    pub const fn reset_wait(&mut self) {
        self.next_wait = self.config.wait_min;
    }

    /// Closes the connection. The next attempt is due at `until`.
    pub fn wait_until(&mut self, until: Nanos) {
        if let Some(connection) = &mut self.connection {
            connection.close();
        }
        self.state = State::Waiting { until };
    }

    /// Number of attempts so far.
    #[must_use]
    pub const fn attempts(&self) -> u64 {
        self.attempts
    }

    /// Number of failed attempts, and of connections closed by [`fail`](ReconnectingClient::fail).
    #[must_use]
    pub const fn failures(&self) -> u64 {
        self.failures
    }
}

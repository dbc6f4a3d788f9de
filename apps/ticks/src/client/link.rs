//! The client's thread, which connects, reads, and reconnects.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thiserror::Error;
use tickpath_config::thousands;
use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::{EndReason, Heartbeat, Hello, Refused, RefusedReason};
use tickpath_ticks::parser::StreamError;
use tickpath_ticks::request::encode_subscribe;
use tickpath_types::{Nanos, Symbol};
use zerocopy::IntoBytes;

use super::backoff::Backoff;
use super::csv::CsvFile;
use super::feed::{Feed, SegmentPlace};
use super::shared::{Count, LinkState, Shared};

/// Timeout of an attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for the server's hello, and for the grant of the subscription.
const ANSWER_TIMEOUT: Nanos = Nanos::from_secs(5);
/// Number of heartbeat intervals without data from the server after which the connection is lost.
const SILENT_INTERVALS: u64 = 5;
/// Interval of [`Link::run_maintenance`], and read timeout of the socket. After the server's hello, half its
/// heartbeat interval is used if that is shorter.
const MAINTENANCE_INTERVAL: Duration = Duration::from_millis(50);
/// Interval at which the client's clock is corrected by its drift from the system's clock.
const CLOCK_INTERVAL: Nanos = Nanos::from_secs(1);
/// Request id of the subscription, the only request on a connection.
const REQUEST: u32 = 1;

/// The server to connect to, and the subscription.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Host and port of the server.
    pub address: String,
    /// The symbols to subscribe to; empty for all symbols.
    pub symbols: Vec<Symbol>,
    /// The segment that shares the cache with other processes, if any.
    pub segment: Option<SegmentPlace>,
    /// True if the client reconnects after a connection is lost.
    pub reconnects: bool,
    /// Seed of the random delays between attempts to connect.
    pub seed: u64,
}

/// The reason for which the client ended by itself.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server does not use the protocol, or uses another version of it.
    #[error("{address}: {error}")]
    Stream {
        /// The server's address.
        address: String,
        /// [`StreamError::NotTicks`] or [`StreamError::Version`].
        error: StreamError,
    },
    /// The server refuses this client or its request.
    #[error("{address} refuses: {reason}{}", limit_text(*limit))]
    Refused {
        /// The server's address.
        address: String,
        /// The reason as text.
        reason: String,
        /// The limit that was exceeded; 0 if none.
        limit: u32,
    },
    /// The connection is lost, and the client is configured not to reconnect.
    #[error("{0}")]
    ConnectionLost(String),
    /// A failure in this process, for instance to create the shared-memory segment.
    #[error(transparent)]
    Local(anyhow::Error),
}

fn limit_text(limit: u32) -> String {
    if limit == 0 { String::new() } else { format!(" ({})", thousands(limit)) }
}

/// The reason for the end of a connection.
enum ConnectionEnd {
    /// The user stopped the client.
    Stopped,
    /// The user requested an immediate reconnect.
    Reconnect,
    /// The connection was lost or could not be established; another attempt may succeed.
    Lost(String),
    /// Another attempt would fail as well.
    Fatal(ClientError),
}

/// A running client.
pub struct Client {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), ClientError>>,
}

impl Client {
    /// Starts the client's thread, which publishes its state in [`shared`](Client::shared), and copies every
    /// tick to `csv` if it is given.
    ///
    /// # Errors
    /// The system cannot create a thread.
    pub fn start(config: ClientConfig, csv: Option<&mut CsvFile>) -> io::Result<Client> {
        let shared = Arc::new(Shared::default());
        let mut feed = Feed::new(Arc::clone(&shared), config.segment.clone());
        if let Some(producer) = csv.and_then(CsvFile::take_producer) {
            feed.copy_to(producer);
        }
        let link = Link {
            backoff: Backoff::new(config.seed),
            shared: Arc::clone(&shared),
            feed,
            had_session: false,
            config,
        };
        let thread = thread::Builder::new().name("ticks-client".to_owned()).spawn(move || link.run())?;
        Ok(Client { shared, thread })
    }

    /// Returns the state that the thread publishes.
    #[must_use]
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Requests the client to reconnect immediately.
    pub fn reconnect(&self) {
        self.shared.request_reconnect();
        self.thread.thread().unpark();
    }

    /// Returns true once the thread has ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the thread, closes the connection, and returns the outcome.
    ///
    /// # Errors
    /// [`ClientError`] if the thread had already ended by itself.
    pub fn finish(self) -> Result<(), ClientError> {
        self.shared.request_stop();
        self.thread.thread().unpark();
        match self.thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

struct Link {
    config: ClientConfig,
    backoff: Backoff,
    shared: Arc<Shared>,
    feed: Feed,
    /// True once a hello arrived on any connection, which shows that the address is that of a ticks server.
    had_session: bool,
}

impl Link {
    fn run(mut self) -> Result<(), ClientError> {
        let result = self.run_connections();
        self.feed.restart();
        self.shared.set_state(LinkState::Ended);
        result
    }

    fn run_connections(&mut self) -> Result<(), ClientError> {
        loop {
            let end = self.run_connection();
            self.feed.restart();
            match end {
                ConnectionEnd::Stopped => return Ok(()),
                ConnectionEnd::Reconnect => self.backoff.reset(),
                ConnectionEnd::Fatal(error) => return Err(error),
                ConnectionEnd::Lost(error) => {
                    self.shared.add(Count::Failures, 1);
                    if !self.config.reconnects {
                        return Err(ClientError::ConnectionLost(error));
                    }
                    self.shared.set_last_error(Some(error));
                    if self.wait() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Waits until the next attempt to connect is due or requested. Returns true if the client must stop.
    fn wait(&mut self) -> bool {
        let delay = self.backoff.next_delay();
        let until = Instant::now() + delay;
        self.shared.set_retry_at(self.feed.sink.clock.now() + Nanos(delay.as_nanos() as u64));
        self.shared.set_state(LinkState::Waiting);
        while !self.shared.is_stop_requested() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            if self.shared.take_reconnect() {
                self.backoff.reset();
                return false;
            }
            thread::park_timeout(left);
        }
        true
    }

    fn run_connection(&mut self) -> ConnectionEnd {
        self.shared.set_state(LinkState::Connecting);
        self.shared.add(Count::Attempts, 1);
        let address = self.config.address.clone();
        let lost = |what: &str, error: io::Error| ConnectionEnd::Lost(format!("{address}: {what}: {error}"));
        let stream = match connect(&address) {
            Ok(stream) => stream,
            Err(error) => return lost("cannot connect", error),
        };
        let now = self.feed.sink.clock.now();
        let connection = Connection {
            stream,
            request: Vec::new(),
            began: now,
            received: now,
            sent: now,
            maintenance_interval: MAINTENANCE_INTERVAL,
        };
        match self.serve(connection) {
            Ok(end) => end,
            Err(error) => lost("the connection is lost", error),
        }
    }

    /// Sends the hello, then reads and does the periodic work until the connection ends.
    fn serve(&mut self, mut connection: Connection) -> io::Result<ConnectionEnd> {
        let (mut maintenance_at, mut clock_at) = (Nanos::ZERO, Nanos::ZERO);
        connection.send(with_checksum(Hello::client(0, connection.began)).as_bytes(), connection.began)?;
        loop {
            let len = match connection.stream.read(self.feed.buffer()) {
                Ok(0) => return Ok(self.closed()),
                Ok(len) => len,
                Err(error) if is_no_data(&error) => 0,
                Err(error) => return Err(error),
            };
            let now = self.feed.sink.clock.now();
            if len > 0 {
                connection.received = now;
                self.shared.add(Count::Reads, 1);
                let fed = self.feed.commit(len, now);
                if let Some(end) = self.handle_session(&mut connection, now)? {
                    return Ok(end);
                }
                if let Err(error) = fed {
                    return Ok(self.cannot_read(error));
                }
            }
            if now >= maintenance_at {
                maintenance_at = now + Nanos(connection.maintenance_interval.as_nanos() as u64);
                if let Some(end) = self.run_maintenance(&mut connection, now)? {
                    return Ok(end);
                }
            }
            if now >= clock_at {
                clock_at = now + CLOCK_INTERVAL;
                self.feed.sink.clock.correct();
            }
        }
    }

    /// Handles the session messages that were just parsed: refusal, hello, grant and End of Stream.
    #[inline]
    fn handle_session(
        &mut self,
        connection: &mut Connection,
        now: Nanos,
    ) -> io::Result<Option<ConnectionEnd>> {
        let sink = &mut self.feed.sink;
        if let Some(failure) = sink.failure.take() {
            return Ok(Some(ConnectionEnd::Fatal(ClientError::Local(failure))));
        }
        if let Some(refused) = sink.refused {
            return Ok(Some(self.refused(&refused)));
        }
        if let Some(hello) = sink.hello.filter(|_| connection.request.is_empty()) {
            self.had_session = true;
            connection.set_poll_interval(Duration::from_millis(hello.heartbeat_ms.get().into()))?;
            encode_subscribe(REQUEST, &self.config.symbols, &mut connection.request);
            self.shared.set_state(LinkState::Subscribing);
            connection.send_request(now)?;
        }
        if self.feed.sink.is_subscribed && self.shared.state() != LinkState::Live {
            self.shared.add(Count::Subscriptions, 1);
            self.shared.set_last_error(None);
            self.shared.set_state(LinkState::Live);
            self.backoff.reset();
        }
        if let Some(reason) = self.feed.sink.ended {
            let address = &self.config.address;
            return Ok(Some(match reason {
                EndReason::ServerStops => ConnectionEnd::Lost(format!("{address}: the server stopped")),
                reason => ConnectionEnd::Lost(format!("{address} ended the stream: {reason}")),
            }));
        }
        Ok(None)
    }

    /// Does the periodic work: checks stop and reconnect requests and timeouts, and sends heartbeats.
    fn run_maintenance(
        &mut self,
        connection: &mut Connection,
        now: Nanos,
    ) -> io::Result<Option<ConnectionEnd>> {
        if self.shared.is_stop_requested() {
            return Ok(Some(ConnectionEnd::Stopped));
        }
        if self.shared.take_reconnect() {
            return Ok(Some(ConnectionEnd::Reconnect));
        }
        self.feed.sink.update_heartbeat(now);
        let address = &self.config.address;
        let Some(hello) = self.feed.sink.hello.filter(|_| self.feed.sink.is_subscribed) else {
            let is_late = now.since(connection.began) > ANSWER_TIMEOUT;
            return Ok(is_late.then(|| {
                ConnectionEnd::Lost(format!("{address}: no answer: give the address of a ticks server"))
            }));
        };
        let interval = Nanos::from_millis(u64::from(hello.heartbeat_ms.get().max(1)));
        if now.since(connection.received).0 > interval.0 * SILENT_INTERVALS {
            let silent = now.since(connection.received);
            return Ok(Some(ConnectionEnd::Lost(format!("{address}: no data received for {silent}"))));
        }
        if now.since(connection.sent) >= interval {
            connection.send(with_checksum(Heartbeat::new(0, Nanos::ZERO)).as_bytes(), now)?;
        }
        Ok(None)
    }

    fn refused(&self, refused: &Refused) -> ConnectionEnd {
        let address = self.config.address.clone();
        let reason = refused.reason();
        let text = reason.map_or_else(|| "unknown reason".to_owned(), |it| it.to_string());
        match reason {
            Some(RefusedReason::ClientsFull | RefusedReason::Malformed) | None => {
                ConnectionEnd::Lost(format!("{address} refuses: {text}"))
            }
            Some(_) => ConnectionEnd::Fatal(ClientError::Refused {
                address,
                reason: text,
                limit: refused.limit.get(),
            }),
        }
    }

    /// Decides whether a retry can succeed after an error in the stream. It cannot if the version differs, or
    /// if the peer does not use the protocol and never sent a hello.
    fn cannot_read(&self, error: StreamError) -> ConnectionEnd {
        let address = self.config.address.clone();
        match error {
            StreamError::NotTicks if self.had_session => ConnectionEnd::Lost(format!("{address}: {error}")),
            StreamError::NotTicks | StreamError::Version(_) => {
                ConnectionEnd::Fatal(ClientError::Stream { address, error })
            }
            _ => ConnectionEnd::Lost(format!("{address}: {error}")),
        }
    }

    fn closed(&self) -> ConnectionEnd {
        let address = &self.config.address;
        ConnectionEnd::Lost(format!("{address}: the server closed the connection and gave no reason"))
    }
}

struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    began: Nanos,
    received: Nanos,
    sent: Nanos,
    maintenance_interval: Duration,
}

impl Connection {
    fn send(&mut self, bytes: &[u8], now: Nanos) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.sent = now;
        Ok(())
    }

    /// Sets the maintenance interval and the read timeout to at most half a heartbeat interval.
    fn set_poll_interval(&mut self, heartbeat: Duration) -> io::Result<()> {
        self.maintenance_interval = MAINTENANCE_INTERVAL.min(heartbeat / 2).max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(self.maintenance_interval))
    }

    fn send_request(&mut self, now: Nanos) -> io::Result<()> {
        self.stream.write_all(&self.request)?;
        self.sent = now;
        Ok(())
    }
}

/// Connects to the first of the host's addresses that accepts a connection.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(ErrorKind::NotFound, "the host name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                tickpath_net::keep_alive(&stream)?;
                stream.set_read_timeout(Some(MAINTENANCE_INTERVAL))?;
                stream.set_write_timeout(Some(CONNECT_TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn is_no_data(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

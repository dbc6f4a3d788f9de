//! The thread that connects, reads, and connects again.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use thiserror::Error;
use tickpath_config::thousands;
use tickpath_ticks::message::{EndReason, Heartbeat, Hello, Refused, RefusedReason};
use tickpath_ticks::parser::StreamError;
use tickpath_ticks::request::encode_subscribe;
use tickpath_ticks::seal::seal;
use tickpath_types::{Nanos, Symbol};
use zerocopy::IntoBytes;

use super::backoff::Backoff;
use super::csv::CsvFile;
use super::feed::{Feed, SegmentPlace};
use super::shared::{Count, LinkState, Shared};

/// How long an attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the server may take to say hello, and to grant the subscription.
const ANSWER_TIMEOUT: Nanos = Nanos::from_secs(5);
/// Silent heartbeat intervals after which the server is given up.
const SILENT_INTERVALS: u64 = 5;
/// How often heartbeats and time-outs are looked at, and how long a read waits at most; twice in an interval of heartbeats where
/// that is more often.
const CARE_INTERVAL: Duration = Duration::from_millis(50);
/// How often the clock is compared with the system's.
const CLOCK_INTERVAL: Nanos = Nanos::from_secs(1);
/// The number of the one request that is made on a connection.
const REQUEST: u32 = 1;

/// What to connect to, and what to ask for.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Host and port.
    pub address: String,
    /// The symbols to subscribe; none: all.
    pub symbols: Vec<Symbol>,
    /// Where the cache is shared with other processes, if at all.
    pub segment: Option<SegmentPlace>,
    /// Whether a lost connection is made again.
    pub reconnects: bool,
    /// Seed of the delays between attempts.
    pub seed: u64,
}

/// The client has ended by itself.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nothing there speaks the protocol, or not in this version.
    #[error("{address}: {error}")]
    Stream {
        /// The server's address.
        address: String,
        /// What was wrong.
        error: StreamError,
    },
    /// The server does not take this client, or its request.
    #[error("{address} refuses: {reason}{}", limit_text(*limit))]
    Refused {
        /// The server's address.
        address: String,
        /// Why, in words.
        reason: String,
        /// The limit that was exceeded; 0 where there is none.
        limit: u32,
    },
    /// The connection is gone and none is to be made again.
    #[error("{0}")]
    Gone(String),
    /// The segment could not be made, or something else on this side.
    #[error(transparent)]
    Own(anyhow::Error),
}

fn limit_text(limit: u32) -> String {
    if limit == 0 { String::new() } else { format!(" ({})", thousands(limit)) }
}

/// How a connection ended.
enum End {
    /// Somebody asked for it.
    Stopped,
    /// Somebody asked for another one at once.
    Again,
    /// It was lost, or could not be made; another attempt may help.
    Lost(String),
    /// Another attempt does not help.
    Fatal(ClientError),
}

/// A running client.
pub struct Client {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), ClientError>>,
}

impl Client {
    /// Starts the thread; what it does is seen in [`shared`](Client::shared). Ticks are copied to `csv` as well.
    ///
    /// # Errors
    /// The system has no thread.
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

    /// What the thread shows.
    #[must_use]
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Has the connection made anew, at once.
    pub fn reconnect(&self) {
        self.shared.ask_to_reconnect();
        self.thread.thread().unpark();
    }

    /// True once the thread has ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the thread, closes the connection, and says how it went.
    ///
    /// # Errors
    /// [`ClientError`] when it had ended by itself before.
    pub fn finish(self) -> Result<(), ClientError> {
        self.shared.ask_to_stop();
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
    /// True once a server said hello: what is there speaks the protocol.
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
                End::Stopped => return Ok(()),
                End::Again => self.backoff.reset(),
                End::Fatal(error) => return Err(error),
                End::Lost(trouble) => {
                    self.shared.add(Count::Failures, 1);
                    if !self.config.reconnects {
                        return Err(ClientError::Gone(trouble));
                    }
                    self.shared.set_trouble(Some(trouble));
                    if self.wait() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Waits before the next attempt; true when the client is to stop.
    fn wait(&mut self) -> bool {
        let delay = self.backoff.next_delay();
        let until = Instant::now() + delay;
        self.shared.set_retry_at(self.feed.sink.clock.now() + Nanos(delay.as_nanos() as u64));
        self.shared.set_state(LinkState::Waiting);
        while !self.shared.is_to_stop() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            if self.shared.takes_reconnect() {
                self.backoff.reset();
                return false;
            }
            thread::park_timeout(left);
        }
        true
    }

    fn run_connection(&mut self) -> End {
        self.shared.set_state(LinkState::Connecting);
        self.shared.add(Count::Attempts, 1);
        let address = self.config.address.clone();
        let lost = |what: &str, error: io::Error| End::Lost(format!("{address}: {what}: {error}"));
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
            care: CARE_INTERVAL,
        };
        match self.serve(connection) {
            Ok(end) => end,
            Err(error) => lost("the connection is lost", error),
        }
    }

    /// Reads until the connection ends, one way or the other.
    fn serve(&mut self, mut connection: Connection) -> io::Result<End> {
        let (mut care_at, mut clock_at) = (Nanos::ZERO, Nanos::ZERO);
        connection.send(seal(Hello::client(0, connection.began)).as_bytes(), connection.began)?;
        loop {
            let len = match connection.stream.read(self.feed.room()) {
                Ok(0) => return Ok(self.closed()),
                Ok(len) => len,
                Err(error) if is_nothing_there(&error) => 0,
                Err(error) => return Err(error),
            };
            let now = self.feed.sink.clock.now();
            if len > 0 {
                connection.received = now;
                self.shared.add(Count::Reads, 1);
                let fed = self.feed.commit(len, now);
                if let Some(end) = self.look_at_session(&mut connection, now)? {
                    return Ok(end);
                }
                if let Err(error) = fed {
                    return Ok(self.cannot_read(error));
                }
            }
            if now >= care_at {
                care_at = now + Nanos(connection.care.as_nanos() as u64);
                if let Some(end) = self.care(&mut connection, now)? {
                    return Ok(end);
                }
            }
            if now >= clock_at {
                clock_at = now + CLOCK_INTERVAL;
                self.feed.sink.clock.correct();
            }
        }
    }

    /// What the messages that just came ask for.
    #[inline]
    fn look_at_session(&mut self, connection: &mut Connection, now: Nanos) -> io::Result<Option<End>> {
        let sink = &mut self.feed.sink;
        if let Some(failure) = sink.failure.take() {
            return Ok(Some(End::Fatal(ClientError::Own(failure))));
        }
        if let Some(refused) = sink.refused {
            return Ok(Some(self.refused(&refused)));
        }
        if let Some(hello) = sink.hello.filter(|_| connection.request.is_empty()) {
            self.had_session = true;
            connection.look_more_often(Duration::from_millis(hello.heartbeat_ms.get().into()))?;
            encode_subscribe(REQUEST, &self.config.symbols, &mut connection.request);
            self.shared.set_state(LinkState::Subscribing);
            connection.send_request(now)?;
        }
        if self.feed.sink.is_subscribed && self.shared.state() != LinkState::Live {
            self.shared.add(Count::Subscriptions, 1);
            self.shared.set_trouble(None);
            self.shared.set_state(LinkState::Live);
            self.backoff.reset();
        }
        if let Some(reason) = self.feed.sink.ended {
            let address = &self.config.address;
            return Ok(Some(match reason {
                EndReason::ServerStops => End::Lost(format!("{address}: the server stopped")),
                reason => End::Lost(format!("{address} ended the stream: {reason}")),
            }));
        }
        Ok(None)
    }

    /// What is to be done now and then.
    fn care(&mut self, connection: &mut Connection, now: Nanos) -> io::Result<Option<End>> {
        if self.shared.is_to_stop() {
            return Ok(Some(End::Stopped));
        }
        if self.shared.takes_reconnect() {
            return Ok(Some(End::Again));
        }
        self.feed.sink.show_sign_of_life(now);
        let address = &self.config.address;
        let Some(hello) = self.feed.sink.hello.filter(|_| self.feed.sink.is_subscribed) else {
            let is_late = now.since(connection.began) > ANSWER_TIMEOUT;
            return Ok(is_late.then(|| End::Lost(format!("{address}: no answer: is it a ticks server?"))));
        };
        let interval = Nanos::from_millis(u64::from(hello.heartbeat_ms.get().max(1)));
        if now.since(connection.received).0 > interval.0 * SILENT_INTERVALS {
            let silent = now.since(connection.received);
            return Ok(Some(End::Lost(format!("{address}: nothing came for {silent}"))));
        }
        if now.since(connection.sent) >= interval {
            connection.send(seal(Heartbeat::new(0, Nanos::ZERO)).as_bytes(), now)?;
        }
        Ok(None)
    }

    fn refused(&self, refused: &Refused) -> End {
        let address = self.config.address.clone();
        let reason = refused.reason();
        let words = reason.map_or_else(|| "for a reason that is not known".to_owned(), |it| it.to_string());
        match reason {
            Some(RefusedReason::ClientsFull | RefusedReason::Malformed) | None => {
                End::Lost(format!("{address} refuses: {words}"))
            }
            Some(_) => {
                End::Fatal(ClientError::Refused { address, reason: words, limit: refused.limit.get() })
            }
        }
    }

    /// The stream cannot be read on. Who never said hello is something else, and will be the next time.
    fn cannot_read(&self, error: StreamError) -> End {
        let address = self.config.address.clone();
        match error {
            StreamError::NotTicks if self.had_session => End::Lost(format!("{address}: {error}")),
            StreamError::NotTicks | StreamError::Version(_) => {
                End::Fatal(ClientError::Stream { address, error })
            }
            _ => End::Lost(format!("{address}: {error}")),
        }
    }

    fn closed(&self) -> End {
        let address = &self.config.address;
        End::Lost(format!("{address}: the server closed the connection without a word"))
    }
}

struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    began: Nanos,
    received: Nanos,
    sent: Nanos,
    care: Duration,
}

impl Connection {
    fn send(&mut self, bytes: &[u8], now: Nanos) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.sent = now;
        Ok(())
    }

    /// At least twice in an interval of heartbeats.
    fn look_more_often(&mut self, heartbeat: Duration) -> io::Result<()> {
        self.care = CARE_INTERVAL.min(heartbeat / 2).max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(self.care))
    }

    fn send_request(&mut self, now: Nanos) -> io::Result<()> {
        self.stream.write_all(&self.request)?;
        self.sent = now;
        Ok(())
    }
}

/// To the first of the host's addresses that answers.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                tickpath_net::keep_alive(&stream)?;
                stream.set_read_timeout(Some(CARE_INTERVAL))?;
                stream.set_write_timeout(Some(CONNECT_TIMEOUT))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn is_nothing_there(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

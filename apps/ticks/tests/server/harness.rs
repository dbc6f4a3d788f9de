//! A ticks server that runs on a thread, and a client that records the messages it receives.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tickpath_agent::{Agent, StopSignal, TscClock};
use tickpath_flowgen::{MarketRegime, TickGeneratorConfig};
use tickpath_test_support::{Deadline, PATIENCE};
use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::{
    EndOfStream, EndReason, Hello, Refused, RefusedReason, Skipped, Subscribed, SymbolDefinition, Tick,
};
use tickpath_ticks::parser::{Gap, TickListener, TickParser};
use tickpath_ticks::request::encode_subscribe;
use tickpath_ticks_app::server::{ServeSettings, ServerCounters, SlowClient, TickRate, TicksServer};
use tickpath_types::{Nanos, Symbol};
use zerocopy::IntoBytes;

/// Returns settings of a server with ten symbols and 20,000 ticks a second.
pub fn settings() -> ServeSettings {
    let market = TickGeneratorConfig::market(MarketRegime::Neutral, 10, 7);
    ServeSettings {
        rate: TickRate::PerSecond(20_000),
        // The backlog retains thirteen seconds of ticks, so that a busy machine causes no omissions.
        backlog: 1 << 19,
        heartbeat_ms: 10_000,
        coalesce: Nanos::from_millis(1),
        ..ServeSettings::new(market)
    }
}

/// A server that runs until it is stopped.
pub struct Server {
    pub address: SocketAddrV4,
    stop: StopSignal,
    thread: JoinHandle<ServerCounters>,
}

impl Server {
    pub fn start(settings: &ServeSettings) -> Server {
        let clock = TscClock::shared();
        let mut server = TicksServer::open(settings, clock).unwrap();
        let (address, stop) = (server.local_address(), StopSignal::new());
        let is_stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !is_stopped.is_stopped() {
                if server.do_work(clock.now()).unwrap() == 0 {
                    // Sleep, because tests share their cores.
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            while !server.finish(clock.now()).unwrap() {
                std::thread::sleep(Duration::from_micros(200));
            }
            *server.counters()
        });
        Server { address, stop, thread }
    }

    pub fn stop(self) -> ServerCounters {
        self.stop.stop();
        self.thread.join().unwrap()
    }

    /// Requests the server's stop without waiting for it, so that the test can still read the last messages.
    pub fn request_stop(&self) {
        self.stop.stop();
    }
}

/// The messages and errors that a client received.
#[derive(Default)]
pub struct Received {
    pub hello: Option<Hello>,
    pub subscribed: Vec<Subscribed>,
    pub symbols: Vec<SymbolDefinition>,
    pub ticks: Vec<Tick>,
    pub skipped: Vec<Skipped>,
    pub refused: Vec<(u32, RefusedReason, u32)>,
    pub ends: Vec<EndReason>,
    pub gaps: Vec<Gap>,
    pub corrupt: u64,
    pub heartbeats: u64,
}

impl TickListener for Received {
    fn on_ticks(&mut self, ticks: &[Tick]) {
        self.ticks.extend(ticks);
    }
    fn on_hello(&mut self, hello: &Hello) {
        self.hello = Some(*hello);
    }
    fn on_symbol(&mut self, symbol: &SymbolDefinition) {
        self.symbols.push(*symbol);
    }
    fn on_heartbeat(&mut self, _: &tickpath_ticks::message::Heartbeat) {
        self.heartbeats += 1;
    }
    fn on_subscribed(&mut self, subscribed: &Subscribed) {
        self.subscribed.push(*subscribed);
    }
    fn on_refused(&mut self, refused: &Refused) {
        self.refused.push((refused.request.get(), refused.reason().unwrap(), refused.limit.get()));
    }
    fn on_skipped(&mut self, skipped: &Skipped) {
        self.skipped.push(*skipped);
    }
    fn on_end_of_stream(&mut self, end: &EndOfStream) {
        self.ends.push(end.reason().unwrap());
    }
    fn on_gap(&mut self, gap: Gap) {
        self.gaps.push(gap);
    }
    fn on_corrupt(&mut self) {
        self.corrupt += 1;
    }
}

/// A client that runs on the test's thread.
pub struct Client {
    pub stream: TcpStream,
    pub parser: TickParser,
    pub received: Received,
    /// True once the server has closed the connection.
    pub is_closed: bool,
    last_sent: Instant,
}

impl Client {
    /// Connects without sending anything.
    pub fn connect(server: &Server) -> Client {
        Client::of(TcpStream::connect(server.address).unwrap())
    }

    /// Connects from `address`, an address of this machine.
    pub fn connect_from(server: &Server, address: Ipv4Addr) -> Client {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddrV4::new(address, 0).into()).unwrap();
        socket.connect(&server.address.into()).unwrap();
        Client::of(socket.into())
    }

    fn of(stream: TcpStream) -> Client {
        stream.set_nonblocking(true).unwrap();
        let (parser, received) = (TickParser::new(), Received::default());
        Client { stream, parser, received, is_closed: false, last_sent: Instant::now() }
    }

    /// Connects, sends a hello, and requests `symbols`, or all symbols if it is empty.
    pub fn subscribe(server: &Server, symbols: &[Symbol]) -> Client {
        Client::connect(server).subscribed(symbols)
    }

    /// Sends a hello and requests symbols.
    pub fn subscribed(mut self, symbols: &[Symbol]) -> Client {
        self.send(with_checksum(Hello::client(0, Nanos(1))).as_bytes());
        self.request_symbols(1, symbols);
        self
    }

    pub fn request_symbols(&mut self, request: u32, symbols: &[Symbol]) {
        let mut bytes = Vec::new();
        encode_subscribe(request, symbols, &mut bytes);
        self.send(&bytes);
    }

    /// Writes all bytes, unless the server has closed the connection.
    pub fn send(&mut self, mut bytes: &[u8]) {
        self.last_sent = Instant::now();
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.listen_once(),
                Err(_) => return,
            }
        }
    }

    /// Reads the available bytes. Sends a heartbeat if nothing was sent for half a second.
    pub fn listen_once(&mut self) {
        if self.last_sent.elapsed() > Duration::from_millis(500) {
            self.last_sent = Instant::now();
            let heartbeat = with_checksum(tickpath_ticks::message::Heartbeat::new(0, Nanos(0)));
            // This fails if the server has closed the connection, which the read below detects.
            let _ = self.stream.write(heartbeat.as_bytes());
        }
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.is_closed = true,
            Ok(count) => self.parser.feed(&buffer[..count], &mut self.received).unwrap(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_micros(200))
            }
            Err(_) => self.is_closed = true,
        }
    }

    /// Reads until `is_done` returns true; panics with `what` if that takes too long.
    pub fn listen_until(&mut self, what: &str, mut is_done: impl FnMut(&Client) -> bool) {
        let deadline = Deadline::start();
        while !is_done(self) {
            assert!(!deadline.is_over(), "{what}: not within {PATIENCE:?}");
            assert!(!self.is_closed || is_done(self), "{what}: the connection was closed before");
            self.listen_once();
        }
    }

    pub fn listen_for(&mut self, ticks: usize) {
        self.listen_until(&format!("{ticks} ticks"), |client| client.received.ticks.len() >= ticks);
    }

    pub fn listen_to_the_end(&mut self) {
        self.listen_until("the end", |client| client.is_closed);
    }
}

/// Returns settings with which a client soon falls behind: a million ticks a second, and small buffers.
pub fn slow(policy: SlowClient) -> ServeSettings {
    ServeSettings {
        slow_client: policy,
        rate: TickRate::PerSecond(1_000_000),
        send_buffer: Some(4 << 10),
        backlog: 1 << 12,
        ..settings()
    }
}

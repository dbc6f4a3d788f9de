//! A scripted server on a free loopback port: the test performs each of its actions.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use tickpath_test_support::{PATIENCE, listen, realtime_ns, wait_until};
use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::*;
use tickpath_ticks::request::{RequestListener, RequestParser, SubscribePart};
use tickpath_ticks_app::client::{Client, ClientConfig, Counts, LinkState, Shared};
use tickpath_types::{InstrumentId, Nanos, Price, Side, Symbol};
use zerocopy::IntoBytes;

pub fn now() -> Nanos {
    Nanos(realtime_ns())
}

pub struct Server {
    listener: TcpListener,
    heartbeat_ms: u16,
}

impl Server {
    /// Starts a server with a heartbeat interval so long that clients never time out.
    pub fn start() -> Server {
        Server { listener: listen().0, heartbeat_ms: 60_000 }
    }

    /// Starts a server with a heartbeat interval so short that clients time out after half a second.
    pub fn start_impatient() -> Server {
        Server { heartbeat_ms: 100, ..Server::start() }
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Accepts the next client.
    pub fn accept(&self) -> Peer {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Peer {
            stream,
            parser: RequestParser::new(1000),
            messages: ClientMessages::default(),
            heartbeat_ms: self.heartbeat_ms,
        }
    }

    /// Accepts the next client and subscribes it to instruments 1 to 3 of a session.
    pub fn accept_subscribed(&self, session: u64, next_sequence: u64) -> Peer {
        let mut peer = self.accept();
        peer.subscribe(session, next_sequence);
        peer
    }
}

/// Summary of the messages that a client sent.
#[derive(Default)]
pub struct ClientMessages {
    pub hellos: usize,
    pub names: Vec<String>,
    pub requests: usize,
    pub heartbeats: usize,
}

impl RequestListener for ClientMessages {
    fn on_hello(&mut self, _: &Hello) {
        self.hellos += 1;
    }
    fn on_subscribe(&mut self, part: SubscribePart<'_>) {
        self.names.extend(part.names.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned()));
        self.requests += usize::from(part.is_last);
    }
    fn on_too_many(&mut self, _: u32, total: u32) {
        panic!("{total} symbols were requested");
    }
    fn on_heartbeat(&mut self) {
        self.heartbeats += 1;
    }
}

/// The server's end of the connection to one client.
pub struct Peer {
    stream: TcpStream,
    parser: RequestParser,
    heartbeat_ms: u16,
    pub messages: ClientMessages,
}

/// Names of the instruments 1 to 3 in every session of this server.
pub const SYMBOLS: [&str; 3] = ["ALPHA", "BRAVO", "CHARLIE"];

impl Peer {
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Reads the client's messages until `is_enough` returns true.
    #[track_caller]
    pub fn read_until(&mut self, is_enough: impl Fn(&ClientMessages) -> bool) {
        let mut buffer = [0; 4096];
        while !is_enough(&self.messages) {
            let len = self.stream.read(&mut buffer).unwrap();
            assert!(len > 0, "the client closed the connection");
            self.parser.feed(&buffer[..len], &mut self.messages).unwrap();
        }
    }

    pub fn hello(&mut self, session: u64, next_sequence: u64) {
        let count = SYMBOLS.len() as u16;
        self.send(
            with_checksum(Hello::server(next_sequence, session, self.heartbeat_ms, count, now())).as_bytes(),
        );
    }

    pub fn subscribe(&mut self, session: u64, next_sequence: u64) {
        self.hello(session, next_sequence);
        self.read_until(|messages| messages.requests > 0);
        let scope = if self.messages.names.is_empty() { Scope::All } else { Scope::Listed };
        let count = SYMBOLS.len() as u32;
        self.send(with_checksum(Subscribed::new(next_sequence, 1, scope, count)).as_bytes());
        for (index, name) in SYMBOLS.iter().enumerate() {
            let place = Place {
                instrument: InstrumentId(index as u16 + 1),
                symbol_sequence: next_sequence as u32,
                sequence: next_sequence,
            };
            let symbol = Symbol::new(name).unwrap();
            let definition = SymbolDefinition::new(place, symbol, Price(1_000_000), Price(100), 0);
            self.send(with_checksum(definition).as_bytes());
        }
    }

    /// Waits until the client has closed the connection.
    pub fn wait_for_close(mut self) {
        let mut buffer = [0; 4096];
        while self.stream.read(&mut buffer).is_ok_and(|len| len > 0) {}
    }
}

pub fn place(sequence: u64, instrument: u16) -> Place {
    Place { instrument: InstrumentId(instrument), symbol_sequence: sequence as u32, sequence }
}

pub fn quote(sequence: u64, instrument: u16) -> Vec<u8> {
    let bid = Price(1_000_000 + sequence as i64 * 100);
    let ask = Price(bid.0 + 200);
    with_checksum(Quote::new(place(sequence, instrument), now(), (bid, 300), (ask, 200), 1_000))
        .as_bytes()
        .to_vec()
}

pub fn trade(sequence: u64, instrument: u16, volume: u64) -> Vec<u8> {
    let price = Price(1_000_000 + sequence as i64 * 100);
    let trade = Trade::new(place(sequence, instrument), now(), price, 100, Some(Side::Buy), volume, 1_000);
    with_checksum(trade).as_bytes().to_vec()
}

pub fn end_of_stream(next_sequence: u64) -> Vec<u8> {
    with_checksum(EndOfStream::new(next_sequence, EndReason::ServerStops, now())).as_bytes().to_vec()
}

pub fn config(address: SocketAddr) -> ClientConfig {
    ClientConfig {
        address: address.to_string(),
        symbols: Vec::new(),
        segment: None,
        reconnects: true,
        seed: 7,
    }
}

pub fn client(server: &Server) -> Client {
    Client::start(config(server.address()), None).unwrap()
}

/// Waits until `is_done` returns true for the client's counters, and returns them.
#[track_caller]
pub fn wait_for_counts(shared: &Shared, is_done: impl Fn(&Counts) -> bool) -> Counts {
    wait_until("the counters", || is_done(&shared.counts()));
    shared.counts()
}

#[track_caller]
pub fn wait_for_state(shared: &Shared, state: LinkState) {
    wait_until(state.label(), || shared.state() == state);
}

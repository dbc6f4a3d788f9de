//! Tests of ITCH over SoupBinTCP: a broken and resumed stream, a new session, sequence numbers that go back.

use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};

use tickpath_book::{BookLimits, BooksById, Indexed};
use tickpath_feed::{BookBuilder, IgnoreUpdates, MessageBooks};
use tickpath_feedhandler::live::{ProtocolName, ResyncOutcome};
use tickpath_nasdaq::itch50::market_event_message;
use tickpath_reference::ReferenceBooks;
use tickpath_test_support::{listen_nonblocking, soup};
use tickpath_types::{
    BookHealth, Instrument, InstrumentId, MarketEvent, MarketEventKind, Nanos, OrderId, Price, Qty, Sequence,
    Side, Symbol,
};

use crate::rig::{Rig, all_live};

/// A server of one session that serves one client at a time.
struct Server {
    listener: TcpListener,
    address: SocketAddrV4,
    client: Option<TcpStream>,
    session: &'static str,
    messages: Vec<Vec<u8>>,
    /// Sequence number of the first message that the server still has.
    first: usize,
    /// Number of messages after which the next connection breaks; `None` if it does not break.
    breaks_after: Option<usize>,
    logins: Vec<(String, usize)>,
}

impl Server {
    fn open(messages: Vec<Vec<u8>>) -> Server {
        let (listener, address) = listen_nonblocking();
        let (client, session, first) = (None, "MONDAY", 1);
        Server { listener, address, client, session, messages, first, breaks_after: None, logins: vec![] }
    }

    /// Answers a pending login with the messages from the requested one on.
    fn serve(&mut self) {
        if let Ok((client, _)) = self.listener.accept() {
            client.set_nonblocking(true).unwrap();
            self.client = Some(client);
        }
        let Some(client) = &mut self.client else { return };
        let mut bytes = [0; 256];
        let Ok(count) = client.read(&mut bytes) else { return };
        if count < 49 || bytes[2] != b'L' {
            return;
        }
        let field =
            |range: std::ops::Range<usize>| std::str::from_utf8(&bytes[range]).unwrap().trim().to_owned();
        let (session, requested): (_, usize) = (field(19..29), field(29..49).parse().unwrap());
        self.logins.push((session.clone(), requested));
        if !session.is_empty() && session != self.session {
            client.write_all(&soup::packet(b'J', b"S")).unwrap();
            self.client = None;
            return;
        }
        let next = requested.clamp(self.first, self.messages.len() + 1);
        let mut answer = soup::login_accepted(self.session, next as u64);
        let end = self.breaks_after.take().map_or(self.messages.len(), |count| next - 1 + count);
        self.messages[next - 1..end].iter().for_each(|message| answer.extend(soup::packet(b'S', message)));
        client.write_all(&answer).unwrap();
        if end < self.messages.len() {
            self.client = None;
        }
    }

    fn end_session(&mut self) {
        self.client.as_mut().unwrap().write_all(&soup::packet(b'Z', b"")).unwrap();
        self.client = None;
    }
}

fn event(kind: MarketEventKind) -> Vec<u8> {
    let instrument = Instrument::in_cents(InstrumentId(1), Symbol::new("ALPHA").unwrap(), Price(1_000_000));
    let (sequence, command, ts) = (Sequence(1), Sequence(1), Nanos(1));
    let event = MarketEvent { sequence, command, ts, instrument: instrument.id, kind };
    market_event_message(&event, Some(&instrument)).unwrap().to_vec()
}

/// Returns a directory message, and `orders` bids of `qty`.
fn day(orders: u64, qty: u64) -> Vec<Vec<u8>> {
    let add = |order| MarketEventKind::Add {
        order_id: OrderId(order),
        side: Side::Buy,
        price: Price(1_000_000 - 100 * order as i64),
        qty: Qty(qty),
    };
    std::iter::once(MarketEventKind::Directory).chain((1..=orders).map(add)).map(event).collect()
}

fn state_hash(messages: &[Vec<u8>]) -> u64 {
    let mut books =
        BookBuilder::new(Indexed::<ReferenceBooks>::new(BookLimits::new(InstrumentId(16), 4_096)));
    messages.iter().for_each(|message| books.handle_message(Sequence(1), message, &mut IgnoreUpdates));
    books.books().state_hash()
}

fn rig(server: &Server) -> Rig {
    let address = server.address;
    Rig::open(ProtocolName::ItchSoup, |section| {
        (section.line_a, section.line_b, section.server) = (None, None, Some(address));
    })
}

#[test]
fn a_broken_stream_continues_with_the_next_message() {
    let mut server = Server::open(day(600, 10));
    server.breaks_after = Some(300);
    let mut rig = rig(&server);
    rig.until("the first part", || server.serve(), |status| status.next_sequence == 301);
    let status = rig.until("all of it", || server.serve(), |status| status.next_sequence == 602);
    let status = if all_live(&status) { status } else { rig.until("live books", || (), all_live) };
    assert_eq!(server.logins, [(String::new(), 1), ("MONDAY".to_owned(), 301)]);
    assert_eq!((status.recovery.connections, status.recovery.failures), (2, 1));
    assert_eq!(rig.resync("ALPHA"), ResyncOutcome::NoSnapshots);
    assert_eq!(rig.resync("BRAVO"), ResyncOutcome::Unknown);
    let (status, books) = rig.close();
    assert_eq!(status.state_hash, state_hash(&server.messages));
    let [book] = &books[..] else { panic!("{books:?}") };
    assert_eq!((book.symbol.as_str(), book.health), ("ALPHA", BookHealth::Live));
}

#[test]
fn a_lost_connection_changes_the_health_of_the_books() {
    let mut server = Server::open(day(10, 10));
    let mut rig = rig(&server);
    rig.until("all of it", || server.serve(), |status| status.next_sequence == 12);
    server.client = None;
    let status = rig.until("the loss", || (), |status| status.health[1] == 1);
    assert!(!status.is_consistent());
    rig.until("the connection", || server.serve(), all_live);
}

#[test]
fn a_new_session_is_followed() {
    let mut server = Server::open(day(10, 10));
    let mut rig = rig(&server);
    rig.until("all of it", || server.serve(), |status| status.next_sequence == 12);
    server.end_session();
    let status = rig.until("the end", || (), |status| status.channel.ended_sessions == 1);
    assert!(all_live(&status), "nothing of it is missing");
    (server.session, server.messages) = ("TUESDAY", day(20, 30));
    let status = rig.until("the new session", || server.serve(), |status| status.next_sequence == 22);
    assert_eq!((status.channel.session_changes, status.channel.ended_sessions), (1, 1));
    rig.until("live books", || server.serve(), all_live);
    let (status, _) = rig.close();
    assert_eq!(status.state_hash, state_hash(&server.messages), "nothing of the old session is left");
}

#[test]
fn a_server_with_fewer_messages_is_read_from_its_first() {
    let mut server = Server::open(day(10, 10));
    let mut rig = rig(&server);
    rig.until("all of it", || server.serve(), |status| status.next_sequence == 12);
    // The server lost the end of its session, and different messages follow.
    (server.client, server.messages) = (None, day(5, 30));
    let status = rig.until(
        "what it has",
        || server.serve(),
        |status| status.next_sequence == 7 && status.health == [1, 0, 0, 0],
    );
    assert_eq!(status.lines.jumps_back, 1);
    let (status, _) = rig.close();
    assert_eq!(status.state_hash, state_hash(&server.messages));
}

#[test]
fn messages_removed_at_the_server_count_as_lost() {
    let mut server = Server::open(day(10, 10));
    let mut rig = rig(&server);
    rig.until("all of it", || server.serve(), |status| status.next_sequence == 12);
    (server.client, server.first, server.messages) = (None, 15, day(20, 10));
    let status = rig.until("the rest", || server.serve(), |status| status.next_sequence == 22);
    assert_eq!((status.lines.messages_lost, status.is_consistent()), (3, false));
    let (_, books) = rig.close();
    let [book] = &books[..] else { panic!("{books:?}") };
    assert_eq!((book.symbol.as_str(), book.health), ("ALPHA", BookHealth::Stale));
}

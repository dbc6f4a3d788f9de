//! Tests of ITCH channels: losses on both lines, session changes, unauthorised senders, snapshots.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};

use tickpath_book::{BookLimits, BooksById, FastBooks, Indexed, OrderBooks};
use tickpath_feed::{BookBuilder, IgnoreUpdates, MessageBooks};
use tickpath_feedhandler::live::{LiveConfig, ProtocolName, ResyncOutcome};
use tickpath_matching::Owner;
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::{AddOrder, Message, OrderDelete, market_event_message};
use tickpath_nasdaq::moldudp64::{PacketBuilder, Request, Session};
use tickpath_nasdaq::wire::{Shares, ShortPrice};
use tickpath_net::{SendStatus, UdpEndpoint};
use tickpath_reference::ReferenceBooks;
use tickpath_shm::{Folder, SegmentName, SegmentReader};
use tickpath_test_support::{ANY_PORT, listen_nonblocking, soup};
use tickpath_types::{BookHealth, InstrumentId, InstrumentTable, Nanos, OrderId, Sequence, Side};
use zerocopy::IntoBytes;

use crate::rig::{Rig, all_live};

const INSTRUMENTS: u16 = 3;
const PER_PACKET: usize = 5;

/// The messages that a venue published, the hash of its final books, and its symbols.
struct Recording {
    messages: Vec<Vec<u8>>,
    state_hash: u64,
    symbols: Vec<String>,
}

fn recording() -> Recording {
    let workload = Workload::generate(&WorkloadConfig {
        seed: 11,
        instrument_count: INSTRUMENTS,
        session_count: 2,
        open_order_count: 200,
        command_count: 800,
        ..WorkloadConfig::default()
    });
    let (engine, events) = workload.published::<FastBooks<Owner>>();
    let table = InstrumentTable::new(&workload.instruments);
    let messages =
        events.iter().map(|event| market_event_message(event, table.get(event.instrument)).unwrap().to_vec());
    let symbols = workload.instruments.iter().map(|instrument| instrument.symbol.to_string()).collect();
    Recording { messages: messages.collect(), state_hash: engine.books().state_hash(), symbols }
}

fn session(name: &str) -> Session {
    Session::new(name).unwrap()
}

fn packet(session: Session, first: u64, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = PacketBuilder::new([0; 1_400], session, Sequence(first));
    messages.iter().for_each(|message| builder.push(message).unwrap());
    builder.finish().to_vec()
}

/// Request server that answers from a recording.
struct RequestServer {
    endpoint: UdpEndpoint,
    messages: Vec<Vec<u8>>,
    request_count: usize,
}

impl RequestServer {
    fn new(messages: &[Vec<u8>]) -> RequestServer {
        let endpoint = UdpEndpoint::bind(ANY_PORT).unwrap();
        RequestServer { endpoint, messages: messages.to_vec(), request_count: 0 }
    }

    fn serve(&mut self) {
        let mut bytes = [0; 64];
        while let Ok(Some(received)) = self.endpoint.recv_from(&mut bytes) {
            let request = Request::parse(&bytes[..received.len]).unwrap();
            self.request_count += 1;
            let first = request.sequence.0 as usize - 1;
            let end = (first + usize::from(request.message_count).min(PER_PACKET)).min(self.messages.len());
            let answer = packet(request.session, first as u64 + 1, &self.messages[first..end]);
            assert_eq!(self.endpoint.send_to(&answer, received.from).unwrap(), SendStatus::Sent);
        }
    }
}

#[test]
fn losses_on_both_lines_are_requested() {
    let recording = recording();
    let mut server = RequestServer::new(&recording.messages);
    let address = server.endpoint.local_address();
    let mut rig = Rig::open(ProtocolName::Itch, |section| section.retransmission = Some(address));
    let chunks: Vec<_> = recording.messages.chunks(PER_PACKET).collect();
    let packet = |index: usize| packet(session("DAY"), (index * PER_PACKET) as u64 + 1, chunks[index]);
    let last = chunks.len() - 1;
    // The first packet arrives, so that the session for requests is known. The last packet arrives too.
    let is_lost = |index: usize, every: usize| index.is_multiple_of(every) && index != 0 && index != last;
    for index in 0..=chunks.len() {
        if index <= last && !is_lost(index, 3) {
            rig.send(0, &packet(index));
        }
        // Line B is one packet behind.
        if index > 0 && !is_lost(index - 1, 5) {
            rig.send(1, &packet(index - 1));
        }
        server.serve();
    }
    assert!(last > 45, "some are lost on both lines");
    let count = recording.messages.len() as u64;
    let status = rig.until("all messages", || server.serve(), |status| status.next_sequence == count + 1);
    assert!(all_live(&status), "{status:#?}");
    assert!(server.request_count > 0 && status.lines.gaps_healed_by_retransmission > 0);
    assert!(status.lines.gaps_healed_by_line > 0 && status.lines.messages_lost == 0);
    assert!(status.lines.lines[1].skew.count > 0, "copies of line B were timed");
    let (status, books) = rig.close();
    assert_eq!(status.state_hash, recording.state_hash);
    assert_eq!(books.len(), usize::from(INSTRUMENTS));
}

#[test]
fn losses_without_a_request_server_remain() {
    let recording = recording();
    let mut rig = Rig::open(ProtocolName::Itch, |_| {});
    for (index, messages) in
        recording.messages.chunks(PER_PACKET).enumerate().filter(|(index, _)| *index != 9)
    {
        rig.send_both(&packet(session("DAY"), (index * PER_PACKET) as u64 + 1, messages));
    }
    let count = recording.messages.len() as u64;
    let status = rig.until("the end", || (), |status| status.next_sequence == count + 1);
    assert!(!status.is_consistent());
    assert_eq!(status.lines.messages_lost, PER_PACKET as u64);
    let (_, books) = rig.close();
    assert!(books.iter().all(|book| book.health >= BookHealth::Stale));
}

#[test]
fn instruments_beyond_the_limit_are_reported() {
    let recording = recording();
    let mut rig = Rig::open(ProtocolName::Itch, |section| section.max_instruments = INSTRUMENTS - 1);
    for (index, messages) in recording.messages.chunks(PER_PACKET).enumerate() {
        rig.send_both(&packet(session("DAY"), (index * PER_PACKET) as u64 + 1, messages));
    }
    let count = recording.messages.len() as u64;
    let status = rig.until("the end", || (), |status| status.next_sequence == count + 1);
    assert_eq!(status.health, [u32::from(INSTRUMENTS) - 1, 0, 0, 0]);
    assert!(status.lacks_books() && !status.is_consistent(), "{status:#?}");
}

#[test]
fn new_sessions_are_followed_and_unauthorised_sources_dropped() {
    let recording = recording();
    let mut server = RequestServer::new(&recording.messages);
    let address = server.endpoint.local_address();
    let mut rig = Rig::open(ProtocolName::Itch, |section| section.retransmission = Some(address));
    let packets = |name: &str| {
        let chunks = recording.messages.chunks(PER_PACKET).enumerate();
        let packets =
            chunks.map(|(index, chunk)| packet(session(name), (index * PER_PACKET) as u64 + 1, chunk));
        packets.collect::<Vec<_>>()
    };
    packets("MONDAY")[..20].iter().for_each(|packet| rig.send_both(packet));
    // A single packet of another session is not a session change.
    rig.send_both(&packets("STRAY")[3]);
    for packet in packets("TUESDAY") {
        rig.send_both(&packet);
        server.serve();
    }
    let count = recording.messages.len() as u64;
    let status = rig.until(
        "the new session",
        || server.serve(),
        |status| status.channel.session_changes == 1 && status.next_sequence == count + 1,
    );
    assert!(all_live(&status), "{status:#?}");
    let (status, _) = rig.close();
    assert_eq!(status.state_hash, recording.state_hash, "nothing of the old session is left");

    let mut rig = Rig::open(ProtocolName::Itch, |section| {
        section.sources = Some(vec![Ipv4Addr::new(127, 0, 0, 9)]);
    });
    packets("DAY")[..4].iter().for_each(|packet| rig.send_both(packet));
    let status = rig.until("the unauthorised packets", || (), |status| status.unauthorised == 8);
    assert_eq!((status.next_sequence, status.builder.messages), (1, 0));
}

/// A GLIMPSE server that serves the snapshot taken last.
struct Glimpse {
    listener: TcpListener,
    address: SocketAddrV4,
    clients: Vec<TcpStream>,
    snapshot: Vec<Vec<u8>>,
    served: usize,
}

impl Glimpse {
    fn open() -> Glimpse {
        let (listener, address) = listen_nonblocking();
        Glimpse { listener, address, clients: vec![], snapshot: vec![], served: 0 }
    }

    /// Takes a snapshot of the books after these messages.
    fn take(&mut self, messages: &[Vec<u8>]) {
        let limits = BookLimits::new(InstrumentId(INSTRUMENTS), 4_096);
        let mut books = BookBuilder::new(Indexed::<ReferenceBooks>::new(limits));
        self.snapshot.clear();
        for message in messages {
            books.handle_message(Sequence(1), message, &mut IgnoreUpdates);
            if matches!(
                Message::parse(message),
                Ok(Message::StockDirectory(_) | Message::StockTradingAction(_))
            ) {
                self.snapshot.push(message.clone());
            }
        }
        for id in (1..=INSTRUMENTS).map(InstrumentId) {
            let symbol = books.instrument(id).unwrap().symbol.unwrap();
            for order in Side::BOTH.into_iter().flat_map(|side| books.books().orders(id, side)) {
                let shares = Shares::try_from(order.qty).unwrap();
                let price = ShortPrice::try_from(order.price).unwrap();
                let add = AddOrder::new(id, 0_u16, Nanos(7), order.id, order.side, shares, symbol, price);
                self.snapshot.push(add.as_bytes().to_vec());
            }
        }
        let end = EndOfSnapshot::of(Sequence(messages.len() as u64 + 1));
        self.snapshot.push(end.as_bytes().to_vec());
    }

    fn serve(&mut self) {
        if let Ok((client, _)) = self.listener.accept() {
            client.set_nonblocking(true).unwrap();
            self.clients.push(client);
        }
        let mut bytes = [0; 256];
        for mut client in std::mem::take(&mut self.clients) {
            match client.read(&mut bytes) {
                Ok(count) if count >= 49 && bytes[2] == b'L' => {
                    let mut answer = soup::login_accepted("DAY", 1);
                    self.snapshot.iter().for_each(|message| answer.extend(soup::packet(b'S', message)));
                    answer.extend(soup::packet(b'Z', b""));
                    client.set_nonblocking(false).unwrap();
                    client.write_all(&answer).unwrap();
                    self.served += 1;
                }
                Ok(0) => {}
                _ => self.clients.push(client),
            }
        }
    }
}

#[test]
fn a_contradicted_book_is_reported_once_and_recovered() {
    let recording = recording();
    let mut glimpse = Glimpse::open();
    let address = glimpse.address;
    let folder = tempfile::tempdir().unwrap();
    let mut config = LiveConfig::default();
    config.outputs.segment = Some("test".to_owned());
    config.outputs.folder = Some(folder.path().to_owned());
    let mut rig = Rig::with(ProtocolName::Itch, config, |section| section.glimpse = Some(address));
    for (index, messages) in recording.messages.chunks(PER_PACKET).enumerate() {
        rig.send_both(&packet(session("DAY"), (index * PER_PACKET) as u64 + 1, messages));
    }
    let count = recording.messages.len() as u64;
    rig.until("all messages", || (), |status| status.next_sequence == count + 1 && all_live(status));

    // The next message deletes an unknown order, so its book becomes suspect. A snapshot taken after this
    // message recovers the book.
    glimpse.take(&recording.messages);
    let unknown = OrderDelete::new(InstrumentId(2), 0_u16, Nanos(9), OrderId(1 << 40)).as_bytes().to_vec();
    rig.send_both(&packet(session("DAY"), count + 1, std::slice::from_ref(&unknown)));
    let status = rig.until("a suspect book", || (), |status| status.health[3] == 1);
    assert_eq!(status.builder.unknown_order, 1);
    let books = rig.status(&mut || ()).books;
    assert_eq!(books.len(), 1);
    assert_eq!(books[0].1.symbol.as_str(), recording.symbols[1]);
    let mut messages = recording.messages.clone();
    messages.push(unknown);
    glimpse.take(&messages);
    let status = rig.until("the healed book", || glimpse.serve(), all_live);
    assert_eq!((status.channel.resyncs, status.snapshot_recovery.recovered), (1, 1));
    let suspects = rig.take_suspects();
    assert_eq!(suspects.len(), 1, "{suspects:?}");
    assert!(suspects[0].contains("about an order that does not rest"), "{suspects:?}");

    // A resync by command recovers the book from a snapshot too.
    let served = glimpse.served;
    assert_eq!(rig.resync("NOWHERE"), ResyncOutcome::Unknown);
    assert_eq!(rig.resync(&recording.symbols[0]), ResyncOutcome::Begun);
    let status =
        rig.until("the book asked for", || glimpse.serve(), |status| status.snapshot_recovery.recovered == 2);
    assert!(all_live(&status) && glimpse.served > served && status.channel.resyncs_asked == 1);

    // Other processes read the same data in shared memory.
    let folder = Folder::open(folder.path()).unwrap();
    let reader = SegmentReader::open(&folder, &SegmentName::new("test").unwrap()).unwrap();
    let quote = reader.try_read(reader.find(&recording.symbols[0]).unwrap()).unwrap();
    assert_eq!(quote.health(), BookHealth::Live);
    let (status, books) = rig.close();
    assert_eq!((status.state_hash, books.len()), (recording.state_hash, usize::from(INSTRUMENTS)));
    let reference = books_of(&recording.messages);
    let best = |side| reference.books().best(InstrumentId(1), side).map(|level| (level.price, level.qty));
    assert_eq!((quote.bid(), quote.ask()), (best(Side::Buy), best(Side::Sell)));
}

fn books_of(messages: &[Vec<u8>]) -> BookBuilder<Indexed<ReferenceBooks>> {
    let limits = BookLimits::new(InstrumentId(INSTRUMENTS), 4_096);
    let mut books = BookBuilder::new(Indexed::<ReferenceBooks>::new(limits));
    messages.iter().for_each(|message| books.handle_message(Sequence(1), message, &mut IgnoreUpdates));
    books
}

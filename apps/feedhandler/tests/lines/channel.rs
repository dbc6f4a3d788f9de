//! A test rig that sends a recorded session on two lines, answers retransmission requests, and runs a feed
//! handler.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_agent::{Invoker, TscClock};
use tickpath_book::{BooksById, FastBooks, OrderBooks};
use tickpath_feed::{ArbiterConfig, MessageBooks};
use tickpath_feedhandler::{FeedHandler, FeedSettings, FeedView, FinalFeed, Senders, SnapshotSources};
use tickpath_lockfree::broadcast;
use tickpath_matching::Owner;
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_nasdaq::itch50::market_event_message;
use tickpath_nasdaq::moldudp64::{Header, PacketBuilder, Request, Session};
use tickpath_net::{Kernel, MulticastSender, NetError, SendStatus, UdpEndpoint, free_multicast_group};
use tickpath_test_support::{ANY_PORT, Deadline};
use tickpath_timing::NoTrace;
use tickpath_types::{InstrumentId, InstrumentTable, MarketEvent, MarketUpdate, Nanos, Sequence, UpdateKind};
use zerocopy::IntoBytes;

use crate::READER;

/// Simulated duration of one duty cycle of the feed handler.
const CYCLE: Nanos = Nanos::from_micros(10);
const INSTRUMENTS: u16 = 3;
/// Numbers of messages per packet, used in rotation.
const PACKET_SIZES: [usize; 4] = [1, 7, 2, 4];

/// The messages that a venue published, and the hash of its final books.
pub struct Recording {
    pub messages: Vec<Vec<u8>>,
    pub state_hash: u64,
}

impl Recording {
    pub fn new() -> Recording {
        let workload = Workload::generate(&WorkloadConfig {
            seed: 7,
            instrument_count: INSTRUMENTS,
            session_count: 2,
            open_order_count: 300,
            command_count: 1_500,
            ..WorkloadConfig::default()
        });
        let (engine, events) = workload.published::<FastBooks<Owner>>();
        let table = InstrumentTable::new(&workload.instruments);
        let encode =
            |event: &MarketEvent| market_event_message(event, table.get(event.instrument)).unwrap().to_vec();
        Recording { messages: events.iter().map(encode).collect(), state_hash: engine.books().state_hash() }
    }

    /// Returns the packets, each as the sequence number of its first message and its number of messages.
    pub fn packets(&self) -> Vec<(u64, usize)> {
        let mut packets = vec![];
        let mut first = 0;
        for size in PACKET_SIZES.into_iter().cycle() {
            if first == self.messages.len() {
                return packets;
            }
            let count = size.min(self.messages.len() - first);
            packets.push((first as u64 + 1, count));
            first += count;
        }
        unreachable!("a cycle does not end")
    }
}

pub fn session() -> Session {
    Session::new("TODAY").unwrap()
}

/// Both lines, the retransmission server, and the feed handler.
pub struct Channel {
    pub recording: Recording,
    lines: [MulticastSender; 2],
    server: UdpEndpoint,
    /// True while the retransmission server answers.
    pub is_answering: bool,
    invoker: Invoker,
    now: Nanos,
    pub view: FeedView,
    updates: broadcast::Receiver<MarketUpdate>,
    /// Updates that the engines received since the last call of `take_received`.
    pub received: Vec<MarketUpdate>,
    /// Source address of the latest request to the server.
    requested_from: Option<SocketAddrV4>,
}

impl Channel {
    /// Opens a channel. Prints the reason and returns `None` if this process may not use a packet ring.
    pub fn open() -> Option<Channel> {
        Channel::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut FeedSettings)) -> Option<Channel> {
        let groups = [free_multicast_group().unwrap(), free_multicast_group().unwrap()];
        let server = UdpEndpoint::bind(ANY_PORT).unwrap();
        let mut settings = FeedSettings {
            feed: 0,
            line_a: groups[0],
            line_b: groups[1],
            interface: Ipv4Addr::LOCALHOST,
            senders: Senders::of(None, Ipv4Addr::LOCALHOST, None),
            reader: READER,
            max_instrument: InstrumentId(INSTRUMENTS),
            symbols: vec![],
            max_orders: 1_024,
            arbiter: ArbiterConfig { hold_messages: 1_024, ..ArbiterConfig::default() },
            retransmission: Some(server.local_address()),
            snapshots: SnapshotSources::none(),
            loss: None,
        };
        change(&mut settings);
        let view = FeedView::default();
        let (sender, updates) = broadcast::channel(1 << 13);
        let handler = match FeedHandler::open(&Kernel, &settings, sender, TscClock::system(), &view, NoTrace)
        {
            Ok(handler) => handler,
            Err(error @ NetError::PacketRing { .. }) => {
                println!("skipped: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let mut invoker = Invoker::new("feed", vec![Box::new(handler)], &[]).unwrap();
        invoker.start().unwrap();
        Some(Channel {
            recording: Recording::new(),
            lines: groups.map(|group| MulticastSender::new(group, Ipv4Addr::LOCALHOST).unwrap()),
            server,
            is_answering: true,
            invoker,
            now: Nanos::from_secs(1),
            view,
            updates,
            received: vec![],
            requested_from: None,
        })
    }

    pub fn run_cycle(&mut self) {
        self.now = self.now + CYCLE;
        self.invoker.run_once(self.now).unwrap();
        self.answer();
        self.receive_updates();
    }

    /// Returns the latest error that the feed handler reported.
    pub fn last_error(&self) -> Option<String> {
        self.invoker.counters().agents[0].last_error()
    }

    /// Warms up the feed handler, as a runner does when idle.
    pub fn warm_up(&mut self, times: usize) {
        for _ in 0..times {
            self.invoker.warm_up(self.now);
        }
        self.receive_updates();
    }

    fn receive_updates(&mut self) {
        while let Some(update) = self.updates.try_recv().unwrap() {
            self.received.push(update);
        }
    }

    /// Returns the sequence numbers of the messages whose updates the engines received since the last call.
    pub fn take_received(&mut self) -> Vec<u64> {
        of_messages(&std::mem::take(&mut self.received))
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Advances the time without running the feed handler.
    pub fn wait(&mut self, time: Nanos) {
        self.now = self.now + time;
    }

    pub fn advance(&mut self, time: Nanos) {
        let end = self.now + time;
        while self.now < end {
            self.run_cycle();
        }
    }

    pub fn until(&mut self, what: &str, mut is_so: impl FnMut(&Channel) -> bool) {
        let deadline = Deadline::start();
        while !is_so(self) {
            assert!(!deadline.is_over(), "{what} did not happen");
            self.run_cycle();
        }
    }

    /// Sends bytes on one line (0 for A, 1 for B), and runs cycles until the feed handler has read them.
    pub fn send(&mut self, line: usize, datagram: &[u8]) {
        let before = self.view.counters.packets[line].read();
        self.emit(line, datagram);
        self.until("the read", |channel| channel.view.counters.packets[line].read() > before);
    }

    /// Sends bytes on one line (0 for A, 1 for B), and does not run the feed handler.
    pub fn emit(&mut self, line: usize, datagram: &[u8]) {
        assert_eq!(self.lines[line].send(datagram).unwrap(), SendStatus::Sent);
    }

    /// Sends an unrequested datagram from the server to the source of the latest request.
    pub fn send_unsolicited(&mut self, datagram: &[u8]) {
        let to = self.requested_from.unwrap();
        assert_eq!(self.server.send_to(datagram, to).unwrap(), SendStatus::Sent);
    }

    /// Returns whether the server received a request.
    pub fn has_requested(&self) -> bool {
        self.requested_from.is_some()
    }

    /// Sends a datagram from another socket than the server's to the source of the latest request.
    pub fn send_from_another_socket(&mut self, datagram: &[u8]) {
        let to = self.requested_from.unwrap();
        let mut other = UdpEndpoint::bind(ANY_PORT).unwrap();
        assert_eq!(other.send_to(datagram, to).unwrap(), SendStatus::Sent);
    }

    /// Sends the packet with these messages on the lines that do not lose it.
    pub fn send_packet(&mut self, (first, count): (u64, usize), is_lost: [bool; 2]) {
        let datagram = self.packet(first, count);
        for (line, is_lost) in is_lost.into_iter().enumerate() {
            if !is_lost {
                self.send(line, &datagram);
            }
        }
    }

    /// Sends the whole recording. `is_lost(line, index)` is true if the line loses the packet of this index.
    pub fn send_all(&mut self, is_lost: impl Fn(usize, usize) -> bool) {
        for (place, packet) in self.recording.packets().into_iter().enumerate() {
            self.send_packet(packet, [is_lost(0, place), is_lost(1, place)]);
        }
        // The sequence number in a heartbeat reveals whether the last packet was lost.
        let next = Sequence(self.recording.messages.len() as u64 + 1);
        for line in 0..2 {
            self.send(line, Header::heartbeat(session(), next).as_bytes());
        }
    }

    pub fn packet(&self, first: u64, count: usize) -> Vec<u8> {
        let mut packet = PacketBuilder::new([0; 1_400], session(), Sequence(first));
        for message in &self.recording.messages[first as usize - 1..][..count] {
            packet.push(message).unwrap();
        }
        packet.finish().to_vec()
    }

    /// Answers each request as the retransmission server, with at most 20 messages.
    fn answer(&mut self) {
        let mut bytes = [0; 64];
        while let Some(received) = self.server.recv_from(&mut bytes).unwrap() {
            let request = Request::parse(&bytes[..received.len]).unwrap();
            assert_eq!(request.session, session());
            self.requested_from = Some(received.from);
            if self.is_answering {
                let datagram = self.packet(request.sequence.0, usize::from(request.message_count).min(20));
                assert_eq!(self.server.send_to(&datagram, received.from).unwrap(), SendStatus::Sent);
            }
        }
    }

    /// Runs cycles until every message was delivered or counted as lost, then closes.
    pub fn finish(mut self) -> (FinalFeed, Recording, Vec<MarketUpdate>) {
        let count = self.recording.messages.len() as u64;
        self.until("the last message", |channel| channel.view.counters.messages.read() == count);
        self.close()
    }

    pub fn close(mut self) -> (FinalFeed, Recording, Vec<MarketUpdate>) {
        self.run_cycle();
        self.invoker.close();
        self.receive_updates();
        let feed = self.view.result.lock().unwrap().take().unwrap();
        (feed, self.recording, self.received)
    }
}

/// Returns the sequence number of each update, except status updates.
pub fn of_messages(received: &[MarketUpdate]) -> Vec<u64> {
    received
        .iter()
        .filter(|update| update.kind() != Some(UpdateKind::Status))
        .map(|update| update.sequence)
        .collect()
}

/// Checks that the feed's books equal the venue's, order by order.
pub fn assert_equal_books(feed: &FinalFeed, recording: &Recording) {
    assert_eq!(feed.books.books().state_hash(), recording.state_hash);
    assert_eq!(feed.builder.messages, recording.messages.len() as u64);
    assert_eq!(
        feed.builder.malformed + feed.builder.unknown_order + feed.builder.crossed,
        0,
        "{:?}",
        feed.builder
    );
}

//! Tests of XDP and IEX feed handlers, which fill the gaps of lossy lines from retransmission servers.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::mpsc::sync_channel;

use tickpath_agent::Agent;
use tickpath_book::{BookLimits, BooksById, Indexed};
use tickpath_feed::{IgnoreUpdates, MessageBooks, iex, xdp};
use tickpath_feedhandler::live::{ChannelSection, ChannelStatus, LiveConfig, LiveHandler, ProtocolName};
use tickpath_flowgen::{ItchDayConfig, XdpDay, XdpDayConfig};
use tickpath_iex::gap_fill::Request;
use tickpath_iex::wire::Ticker;
use tickpath_iex::{Feed, PriceLevelUpdate, SegmentBuilder};
use tickpath_net::{
    BufferSizes, DatagramEndpoint, DatagramSender, Network, SendOutcome, SendStatus, TcpAcceptor,
    TcpConnection,
};
use tickpath_nyse::{
    DeliveryFlag, Message, Packet, PacketBuilder, RequestResponse, RequestStatus, RetransmissionRequest,
    SendTime,
};
use tickpath_reference::ReferenceBooks;
use tickpath_simnet::{DatagramFaults, HostId, StreamFaults};
use tickpath_simulator::SimNetwork;
use tickpath_types::{InstrumentId, Nanos, Price, Sequence, Side, Symbol};
use zerocopy::IntoBytes;

const PUBLISHER: HostId = HostId(1);
const HANDLER: HostId = HostId(2);
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 3), 7_001);
const LINES: [SocketAddrV4; 2] = [
    SocketAddrV4::new(Ipv4Addr::new(239, 1, 0, 1), 8_001),
    SocketAddrV4::new(Ipv4Addr::new(239, 1, 0, 2), 8_002),
];
const RETRANSMISSIONS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 1, 0, 3), 8_003);
/// Duration of a cycle.
const CYCLE: Nanos = Nanos::from_micros(20);
/// Cycles between packets.
const PACKET_CYCLES: u64 = 5;
/// Cycles between reads of the handler's status.
const STATUS_CYCLES: u64 = 1_000;
/// Number of cycles after which a run has failed.
const CYCLES_MAX: u64 = 2_000_000;
/// The time of the handler's start.
const EPOCH: Nanos = Nanos::from_secs(1_795_190_400);
const FAULTS: DatagramFaults = DatagramFaults {
    loss_ppm: 150_000,
    duplicate_ppm: 20_000,
    jitter: Nanos::from_micros(50),
    ..DatagramFaults::NONE
};
const STREAM_FAULTS: StreamFaults = StreamFaults {
    short_write_ppm: 100_000,
    short_read_ppm: 100_000,
    reset_ppm: 20_000,
    refusal_ppm: 20_000,
    ..StreamFaults::NONE
};

fn network(seed: u64) -> SimNetwork {
    let mut network = tickpath_simnet::Network::new(seed, Nanos::ZERO);
    network.set_stream_faults(STREAM_FAULTS);
    let groups = [LINES[0], LINES[1], RETRANSMISSIONS].map(Some);
    groups.into_iter().chain([None]).for_each(|group| network.set_datagram_faults(group, FAULTS));
    SimNetwork::new(network, PUBLISHER)
}

fn section(protocol: ProtocolName) -> ChannelSection {
    let mut section = ChannelSection::new("simulated", protocol);
    (section.line_a, section.line_b) = (Some(LINES[0]), Some(LINES[1]));
    (section.max_instruments, section.max_orders, section.max_requests) = (16, 4_096, 32);
    section
}

/// Publishes on both lines, with heartbeats at the end, until a handler has all messages; returns its status.
fn run(
    network: &SimNetwork,
    section: ChannelSection,
    packets: &[Vec<u8>],
    heartbeat: &[u8],
    end: u64,
    mut serve: impl FnMut(),
) -> ChannelStatus {
    let mut config = LiveConfig::default();
    config.channels.push(section);
    config.finish().unwrap();
    let (_commands, receiver) = sync_channel(1);
    let of_handler = network.of(HANDLER);
    let (mut handler, mut view) = LiveHandler::open(&of_handler, &config, None, EPOCH, receiver).unwrap();
    let mut lines = LINES.map(|group| network.sender(group, Ipv4Addr::LOCALHOST).unwrap());
    for cycle in 1..CYCLES_MAX {
        let passed = Nanos(cycle * CYCLE.0);
        network.wires().network.advance(passed);
        if cycle.is_multiple_of(PACKET_CYCLES) {
            let packet = packets.get((cycle / PACKET_CYCLES) as usize - 1).map_or(heartbeat, Vec::as_slice);
            lines.iter_mut().for_each(|line| assert_eq!(line.send(packet).unwrap(), SendStatus::Sent));
        }
        serve();
        handler.do_work(EPOCH + passed).unwrap();
        if cycle.is_multiple_of(STATUS_CYCLES) && view.channels()[0].status.next_sequence == end {
            handler.on_close();
            return view.channels()[0].status;
        }
    }
    panic!("messages are missing for ever: {:#?}", view.channels()[0].status)
}

/// Checks that the handler lost nothing and has the expected books; returns the number of gaps that the
/// server filled.
fn check(status: &ChannelStatus, state_hash: u64) -> u64 {
    assert!(status.lines.messages_lost == 0 && status.is_consistent(), "{status:#?}");
    assert_eq!(status.state_hash, state_hash, "{status:#?}");
    status.lines.gaps_healed_by_retransmission
}

/// An XDP request server: it sends the requested messages by multicast.
struct XdpServer {
    acceptor: TcpAcceptor<SimNetwork>,
    client: Option<TcpConnection<SimNetwork>>,
    retransmissions: <SimNetwork as Network>::Sender,
    messages: Vec<Vec<u8>>,
}

impl XdpServer {
    fn serve(&mut self) {
        if let Some(client) = self.acceptor.accept().unwrap() {
            self.client = Some(client);
        }
        let Some(mut client) = self.client.take() else { return };
        let _ = client.fill().unwrap();
        let size = client.received().first_chunk().map(|size| usize::from(u16::from_le_bytes(*size)));
        let bytes = size.and_then(|size| client.received().get(..size)).map(<[u8]>::to_vec);
        if let Some(bytes) = bytes {
            client.consume(bytes.len());
            let packet = Packet::parse(&bytes).unwrap();
            let (number, message) = packet.messages().next().unwrap();
            if let Ok(Message::RetransmissionRequest(request)) = Message::parse(message) {
                self.retransmit(number, &request, &mut client);
            }
        }
        self.client = Some(client).filter(|client| !client.is_closed());
    }

    fn retransmit(
        &mut self,
        number: u32,
        request: &RetransmissionRequest,
        client: &mut TcpConnection<SimNetwork>,
    ) {
        let (begin, end) = (request.begin_seq_num.get(), request.end_seq_num.get());
        let RetransmissionRequest { source_id, product_id, channel_id, .. } = *request;
        let status = RequestStatus::ACCEPTED;
        let response = RequestResponse::new(number, begin, end, source_id, product_id, channel_id, status);
        let mut packet = PacketBuilder::new([0; 64], 1);
        packet.push(&response).unwrap();
        let sent = client.send(packet.finish(DeliveryFlag::ORIGINAL, SendTime::default())).unwrap();
        assert_ne!(sent, SendOutcome::Backpressured);
        let mut packet = PacketBuilder::new([0; 1_400], begin);
        let mut send =
            |packet: &[u8]| assert_eq!(self.retransmissions.send(packet).unwrap(), SendStatus::Sent);
        for message in &self.messages[begin as usize - 1..end as usize] {
            if packet.push_bytes(message).is_err() {
                send(packet.finish(DeliveryFlag::RETRANSMISSION_PART, SendTime::default()));
                packet.start_next();
                packet.push_bytes(message).unwrap();
            }
        }
        send(packet.finish(DeliveryFlag::RETRANSMISSION_PART, SendTime::default()));
    }
}

#[test]
fn xdp_messages_that_both_lines_lose_come_from_the_request_server() {
    let mut gaps = 0;
    for seed in 1..=10 {
        let flow = ItchDayConfig { symbols: 8, live: 200, ..ItchDayConfig::itch_500().scaled(2_000) };
        let mut day = XdpDay::new(XdpDayConfig { flow, channels: 1, ..XdpDayConfig::xdp_500() }).unwrap();
        let (mut messages, mut packets) = (vec![], vec![]);
        while let Some(packet) = day.next_packet() {
            let parsed = Packet::parse(packet.bytes()).unwrap();
            messages.extend(parsed.messages().map(|(_, message)| message.to_vec()));
            packets.push(packet.bytes().to_vec());
        }
        let limits = BookLimits::new(InstrumentId(16), 4_096);
        let mut books = xdp::BookBuilder::new(Indexed::<ReferenceBooks>::new(limits), EPOCH);
        for (message, sequence) in messages.iter().zip(1..) {
            books.handle_message(Sequence(sequence), message, &mut IgnoreUpdates);
        }
        let end = messages.len() as u64 + 1;
        let mut heartbeat = PacketBuilder::new([0; 64], end as u32);
        let heartbeat = heartbeat.finish(DeliveryFlag::HEARTBEAT, SendTime::default()).to_vec();
        let network = network(seed);
        let mut server = XdpServer {
            acceptor: TcpAcceptor::bind_on(network.clone(), SERVER, BufferSizes::default()).unwrap(),
            client: None,
            retransmissions: network.sender(RETRANSMISSIONS, Ipv4Addr::LOCALHOST).unwrap(),
            messages,
        };
        let mut section = section(ProtocolName::Xdp);
        (section.request_server, section.retransmission_group) = (Some(SERVER), Some(RETRANSMISSIONS));
        let status = run(&network, section, &packets, &heartbeat, end, || server.serve());
        gaps += check(&status, books.instruments().books().state_hash());
    }
    assert!(gaps > 0, "both lines never lost the same packet");
}

/// Returns an IEX segment of `count` messages from sequence number `first` on, with the send time `sent`.
fn segment(messages: &[Vec<u8>], first: u64, count: usize, sent: Nanos) -> Vec<u8> {
    let (before, rest) = messages.split_at(first as usize - 1);
    let offset: usize = before.iter().map(|message| message.len() + 2).sum();
    let id = Feed::Deep10.protocol_id();
    let mut builder = SegmentBuilder::resuming([0; 1_400], id, 1, 77, Sequence(first), offset as u64);
    rest.iter().take(count).for_each(|message| builder.push(message).unwrap());
    builder.finish(sent).to_vec()
}

/// Returns messages that open and close price levels of three symbols on both sides; no book is crossed.
fn levels(count: u64) -> Vec<Vec<u8>> {
    let level = |index: u64| {
        let symbol = Symbol::new(["ZIEXT", "ZXIET", "ZEXIT"][(index % 3) as usize]).unwrap();
        let side = if index.is_multiple_of(2) { Side::Buy } else { Side::Sell };
        let price = Price(1_000_000 - side.sign() * 100 * (1 + (index * 7) as i64 % 10));
        let qty = if index % 5 == 4 { 0 } else { 100 + (index % 900) as u32 };
        let update = PriceLevelUpdate::of(side, true, Nanos(5), Ticker::from(symbol), qty, price);
        update.as_bytes().to_vec()
    };
    (0..count).map(level).collect()
}

/// Answers the received gap fill requests.
fn fill_gaps(endpoint: &mut impl DatagramEndpoint, messages: &[Vec<u8>]) {
    let mut bytes = [0; 2_048];
    while let Some(received) = endpoint.recv_from(&mut bytes).unwrap() {
        let (request, _) = Request::parse_prefix(&bytes[..received.len]).unwrap().unwrap();
        for range in request.ranges {
            let (first, last) = (range.first.get() as u64, range.last.get() as u64);
            for start in (first..=last).step_by(20) {
                let count = (last + 1 - start).min(20) as usize;
                let answer = segment(messages, start, count, Nanos(1));
                assert_eq!(endpoint.send_to(&answer, received.from).unwrap(), SendStatus::Sent);
            }
        }
    }
}

#[test]
fn iex_messages_that_both_lines_lose_come_from_gap_fill() {
    let mut gaps = 0;
    for seed in 1..=10 {
        let messages = levels(2_000);
        let limits = BookLimits::new(InstrumentId(16), 4_096);
        let mut books = iex::BookBuilder::new(Feed::Deep10, Indexed::<ReferenceBooks>::new(limits));
        for (message, sequence) in messages.iter().zip(1..) {
            books.handle_message(Sequence(sequence), message, &mut IgnoreUpdates);
        }
        let end = messages.len() as u64 + 1;
        let packet = |first| segment(&messages, first, 10, Nanos(first));
        let packets: Vec<_> = (1..end).step_by(10).map(packet).collect();
        let heartbeat = segment(&messages, end, 0, Nanos(end));
        let network = network(seed);
        let mut endpoint = network.endpoint(SERVER).unwrap();
        let mut section = section(ProtocolName::IexDeep);
        section.gap_fill = Some(SERVER);
        let serve = || fill_gaps(&mut endpoint, &messages);
        let status = run(&network, section, &packets, &heartbeat, end, serve);
        gaps += check(&status, books.books().state_hash());
    }
    assert!(gaps > 0, "both lines never lost the same packet");
}

//! Tests of the recovery services of XDP channels: the request server, retransmissions and refreshes.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};

use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_capture::{Packets, RecordingFile};
use tickpath_feed::{IgnoreUpdates, MessageBooks, xdp};
use tickpath_net::MulticastReceiver;
use tickpath_nyse::{
    DeliveryFlag, HEADER_LEN, HeartbeatResponse, Message, Packet, PacketBuilder, RefreshRequest,
    RequestStatus, RetransmissionRequest, SendTime, SourceId, SymbolIndexMappingRequest,
};
use tickpath_publisher::PublishOptions;
use tickpath_test_support::{connect, wait_for};
use tickpath_types::{InstrumentId, Nanos, Sequence};
use zerocopy::{Immutable, IntoBytes};

use super::recordings::xdp_day;
use super::{Publisher, is_closed, options, read_bytes, receive};

struct Feed {
    publisher: Publisher,
    messages: BTreeMap<u32, Vec<u8>>,
    retransmission: MulticastReceiver,
    refresh: MulticastReceiver,
    product: u8,
    channel: u8,
}

impl Feed {
    /// Starts a publisher of one channel and waits until it has sent the whole recording.
    fn published(change: impl FnOnce(PublishOptions) -> PublishOptions) -> Feed {
        let folder = tempfile::tempdir().unwrap();
        let file = xdp_day(folder.path(), 1);
        let mut messages = BTreeMap::new();
        let mut packets = Packets::of(RecordingFile::open(&file).unwrap());
        while let Some(packet) = packets.next_packet().unwrap() {
            let packet = Packet::parse(packet.payload).unwrap();
            messages.extend(packet.messages().map(|(sequence, message)| (sequence, message.to_vec())));
        }
        let options = change(options(&file));
        let mut line = MulticastReceiver::join(options.line_a, Ipv4Addr::LOCALHOST).unwrap();
        let publisher = Publisher::start(options);
        let join = |key| MulticastReceiver::join(publisher.address(key), Ipv4Addr::LOCALHOST).unwrap();
        let (retransmission, refresh) = (join("retransmission_group"), join("refresh_group"));
        // Wait for the heartbeat after the last message.
        let end = messages.len() as u32 + 1;
        wait_for("the end of the recording", || {
            let bytes = receive(&mut line);
            let packet = Packet::parse(&bytes).unwrap();
            (packet.delivery_flag() == DeliveryFlag::HEARTBEAT && packet.sequence() == end).then_some(())
        });
        let number = |key: &str| publisher.config[key].parse().unwrap();
        let (product, channel) = (number("product"), number("channel_id"));
        Feed { messages, retransmission, refresh, product, channel, publisher }
    }

    fn connect(&self) -> TcpStream {
        connect(self.publisher.address("request_server"))
    }
}

const SOURCE: &str = "TESTER";

fn source() -> SourceId {
    SourceId::new(SOURCE).unwrap()
}

/// Returns the next packet of a group that is not a heartbeat.
fn next_of(receiver: &mut MulticastReceiver) -> Vec<u8> {
    loop {
        let bytes = receive(receiver);
        if Packet::parse(&bytes).unwrap().delivery_flag() != DeliveryFlag::HEARTBEAT {
            return bytes;
        }
    }
}

/// Sends a request; returns the first sequence number and the status from the response.
fn ask(stream: &mut TcpStream, request: &(impl IntoBytes + Immutable)) -> (u32, RequestStatus) {
    let mut builder = PacketBuilder::new([0; 200], 77);
    builder.push(request).unwrap();
    stream.write_all(builder.finish(DeliveryFlag::ORIGINAL, SendTime::default())).unwrap();
    let mut bytes = read_bytes(stream, HEADER_LEN);
    bytes.extend(read_bytes(stream, usize::from(u16::from_le_bytes([bytes[0], bytes[1]])) - HEADER_LEN));
    let packet = Packet::parse(&bytes).unwrap();
    let (_, message) = packet.messages().next().unwrap();
    let Ok(Message::RequestResponse(response)) = Message::parse(message) else { panic!("{message:?}") };
    assert_eq!(response.request_seq_num.get(), 77);
    (response.begin_seq_num.get(), response.status)
}

#[test]
fn lost_messages_come_on_the_retransmission_channel() {
    let mut feed = Feed::published(|options| options);
    let mut stream = feed.connect();
    let (product, channel) = (feed.product, feed.channel);
    let request = |begin: u32, end: u32| RetransmissionRequest::new(begin, end, source(), product, channel);
    assert_eq!(ask(&mut stream, &request(10, 500)), (10, RequestStatus::ACCEPTED));
    let mut next = 10;
    while next <= 500 {
        let bytes = next_of(&mut feed.retransmission);
        let packet = Packet::parse(&bytes).unwrap();
        assert_eq!((packet.delivery_flag(), packet.sequence()), (DeliveryFlag::RETRANSMISSION_PART, next));
        for (sequence, message) in packet.messages() {
            assert_eq!(feed.messages[&sequence], message);
            next += 1;
        }
    }
    assert_eq!(next, 501);
    assert_eq!(ask(&mut stream, &request(7, 7)).1, RequestStatus::ACCEPTED);
    let bytes = next_of(&mut feed.retransmission);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!((packet.delivery_flag(), packet.message_count()), (DeliveryFlag::RETRANSMISSION_ONE, 1));
}

/// Covers every refusal, and every reason to close a connection.
#[test]
fn requests_are_rejected_with_the_specified_codes() {
    let feed = Feed::published(|options| PublishOptions { store_bytes: 1, ..options });
    let (product, channel) = (feed.product, feed.channel);
    let end = feed.messages.len() as u32;
    let mut stream = feed.connect();
    let mut status = |source: SourceId, begin: u32, last: u32, product: u8, channel: u8| {
        ask(&mut stream, &RetransmissionRequest::new(begin, last, source, product, channel)).1
    };
    assert_eq!(status(SourceId::NONE, 5, 6, product, channel), RequestStatus::BAD_SOURCE);
    assert_eq!(status(source(), 0, 6, product, channel), RequestStatus::BAD_RANGE);
    assert_eq!(status(source(), 6, 5, product, channel), RequestStatus::BAD_RANGE);
    assert_eq!(status(source(), end, end + 1, product, channel), RequestStatus::BAD_RANGE);
    assert_eq!(status(source(), 5, 1_005, product, channel), RequestStatus::RANGE_TOO_LARGE);
    assert_eq!(status(source(), 5, 6, product, channel), RequestStatus::TOO_OLD);
    assert_eq!(status(source(), 5, 6, product + 1, channel), RequestStatus::BAD_PRODUCT);
    assert_eq!(status(source(), 5, 6, product, channel + 1), RequestStatus::BAD_CHANNEL);
    for _ in 0..5_000 {
        assert_eq!(status(source(), end, end, product, channel), RequestStatus::ACCEPTED);
    }
    assert_eq!(status(source(), end, end, product, channel), RequestStatus::TOO_MANY_REQUESTS);
    // A message that is not a request is refused.
    let mapping = tickpath_nyse::MessageUnavailable::new(1, 2, product, channel);
    assert_eq!(ask(&mut stream, &mapping).1, RequestStatus::BAD_MESSAGE);

    // A new connection of a source replaces the old one.
    let mut newer = feed.connect();
    let mut builder = PacketBuilder::new([0; 64], 1);
    builder.push(&HeartbeatResponse::new(source())).unwrap();
    newer.write_all(builder.finish(DeliveryFlag::ORIGINAL, SendTime::default())).unwrap();
    assert!(is_closed(&mut stream));
    // An invalid packet ends the connection.
    newer.write_all(&[3, 0, 1, 2]).unwrap();
    assert!(is_closed(&mut newer));
    let mut huge = feed.connect();
    huge.write_all(&[0xff, 0xff, 1, 2]).unwrap();
    assert!(is_closed(&mut huge));
}

/// If the beginning of a range is no longer stored, the retransmission channel reports that part as
/// unavailable and sends the remaining messages.
#[test]
fn messages_no_longer_stored_are_reported_unavailable() {
    let mut feed = Feed::published(|options| PublishOptions { store_bytes: 1, ..options });
    let last = feed.messages.len() as u32;
    let mut stream = feed.connect();
    // The store of 64 KiB holds about the last 1800 messages, so the first requested ones are too old.
    let (first, end) = (last - 2_100, last - 1_400);
    let request = RetransmissionRequest::new(first, end, source(), feed.product, feed.channel);
    assert_eq!(ask(&mut stream, &request).1, RequestStatus::ACCEPTED);
    let bytes = next_of(&mut feed.retransmission);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.delivery_flag(), DeliveryFlag::UNAVAILABLE);
    let (_, message) = packet.messages().next().unwrap();
    let Ok(Message::MessageUnavailable(message)) = Message::parse(message) else { panic!() };
    let missing = (message.begin_seq_num.get(), message.end_seq_num.get());
    assert!(missing.0 == first && (last - 2_048..end).contains(&missing.1), "{missing:?}");
    let bytes = next_of(&mut feed.retransmission);
    assert_eq!(Packet::parse(&bytes).unwrap().sequence(), missing.1 + 1, "and the rest");
}

#[test]
fn a_refresh_leads_to_the_books_of_all_messages() {
    let mut feed = Feed::published(|options| options);
    let mut stream = feed.connect();
    let (product, channel) = (feed.product, feed.channel);
    assert_eq!(
        ask(&mut stream, &RefreshRequest::new(0, source(), product, channel)).1,
        RequestStatus::ACCEPTED
    );
    let limits = BookLimits::new(InstrumentId(64), 4_096);
    let books = || xdp::BookBuilder::new(PackedBooks::new(limits), Nanos::ZERO);
    let (mut all, mut refreshed) = (books(), books());
    for (sequence, message) in &feed.messages {
        all.handle_message(Sequence((*sequence).into()), message, &mut IgnoreUpdates);
    }
    let (mut symbols, mut flags) = (0, Vec::new());
    while flags.last() != Some(&DeliveryFlag::REFRESH_END) || symbols < 12 {
        let bytes = next_of(&mut feed.refresh);
        let packet = Packet::parse(&bytes).unwrap();
        flags.push(packet.delivery_flag());
        for (place, (_, message)) in packet.messages().enumerate() {
            match Message::parse(message).unwrap() {
                Message::RefreshHeader(header) => {
                    assert_eq!(place, 0, "it begins its packet");
                    let is_first = header.current_refresh_pkt.get() == 1;
                    assert_eq!(message.len(), if is_first { 16 } else { 8 });
                    symbols += usize::from(is_first);
                    if is_first {
                        assert_eq!(header.last_seq_num.get(), feed.messages.len() as u32);
                    }
                }
                _ => refreshed.handle_message(Sequence(1), message, &mut IgnoreUpdates),
            }
        }
    }
    assert_eq!((flags[0], symbols), (DeliveryFlag::REFRESH_START, 12));
    assert_eq!(refreshed.instruments().books().state_hash(), all.instruments().books().state_hash());

    // Request the mapping of one index, and the refresh of one symbol.
    let (index, _) = feed
        .messages
        .values()
        .find_map(|message| match Message::parse(message) {
            Ok(Message::SymbolIndexMapping(mapping)) => Some((mapping.symbol_index.get(), ())),
            _ => None,
        })
        .unwrap();
    let request = SymbolIndexMappingRequest::new(index, source(), product, channel, 0);
    assert_eq!(ask(&mut stream, &request).1, RequestStatus::ACCEPTED);
    let bytes = next_of(&mut feed.refresh);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!((packet.delivery_flag(), packet.message_count()), (DeliveryFlag::REFRESH_ONE, 1));
    let request = RefreshRequest::new(index, source(), product, channel);
    assert_eq!(ask(&mut stream, &request).1, RequestStatus::ACCEPTED);
    let bytes = next_of(&mut feed.refresh);
    let flag = Packet::parse(&bytes).unwrap().delivery_flag();
    assert!([DeliveryFlag::REFRESH_ONE, DeliveryFlag::REFRESH_PART].contains(&flag));
    assert_eq!(
        ask(&mut stream, &RefreshRequest::new(999_999, source(), product, channel)).1,
        RequestStatus::BAD_RANGE
    );
}

//! Tests of recovery clients without IO: the sockets that they need, their requests, the effect of answers.

use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_feed::iex::{self, IexRecovery};
use tickpath_feed::itch::ItchRecovery;
use tickpath_feed::xdp::{self, RequestSource, XdpRecovery};
use tickpath_feed::{
    ArbiterConfig, BookBuilder, Channel, ChannelConfig, Framing, IexTp, IgnoreUpdates, Line, MessageBooks,
    MoldUdp64, Recovering, RecoveryClient, RecoveryInput, SocketCounters, SocketNeeds, StreamProgress,
};
use tickpath_iex::snap::{self, ErrorCode, Frame};
use tickpath_iex::wire::Alpha;
use tickpath_iex::{Feed, SegmentBuilder};
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::moldudp64::{self, Session};
use tickpath_nasdaq::soupbintcp::LoginRequest;
use tickpath_nyse::{
    DeliveryFlag, Message, Packet, PacketBuilder, RequestResponse, RequestStatus, SendTime, SourceId,
};
use tickpath_types::{InstrumentId, Nanos, Sequence};
use zerocopy::IntoBytes;

/// The time from which the books need a snapshot.
const START: Nanos = Nanos::from_secs(1);
const NONE: SocketNeeds = SocketNeeds { connection: false, groups: [false, false] };
const CONNECTION: SocketNeeds = SocketNeeds { connection: true, ..NONE };

fn books() -> PackedBooks {
    PackedBooks::new(BookLimits::new(InstrumentId(2), 8))
}

fn channel<B: MessageBooks, F: Framing>(max_requests: u32, books: B) -> Channel<B, F> {
    let arbiter = ArbiterConfig { max_requests, hold_messages: 8, ..ArbiterConfig::default() };
    let config = ChannelConfig { resync_suspects: false, ..ChannelConfig::new(arbiter, Some(8)) };
    Channel::new(&config, books)
}

/// Loses messages 1 to 4: heartbeats show that they exist, and the wait for them expires.
fn lose<B: MessageBooks, F: Framing>(channel: &mut Channel<B, F>, heartbeat: impl Fn(u32) -> Vec<u8>) {
    channel.handle_packet(Nanos(1), Line::A, &heartbeat(1), &mut IgnoreUpdates);
    channel.handle_packet(Nanos(2), Line::A, &heartbeat(5), &mut IgnoreUpdates);
    channel.handle_timeout(START, &mut IgnoreUpdates);
}

fn soup(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u16 + 1).to_be_bytes()[..], &[kind], payload].concat()
}

#[test]
fn itch_snapshots_come_from_the_server_and_the_group_in_turns() {
    let mut channel = channel::<_, MoldUdp64>(0, BookBuilder::new(books()));
    lose(&mut channel, |sequence| {
        let sequence = Sequence(sequence.into());
        moldudp64::PacketBuilder::new([0; 64], Session::new("DAY1").unwrap(), sequence).finish().to_vec()
    });
    let mut client = ItchRecovery::new(LoginRequest::new("FEED", "").unwrap(), true, true);
    assert_eq!(client.needs(), NONE);
    let target = &mut Recovering { channel: &mut channel, out: &mut IgnoreUpdates };
    client.begin_turn(START, target);
    assert_eq!(client.needs(), CONNECTION);
    client.handle_disconnected(START, target);
    let after = |millis| START + Nanos::from_millis(millis);
    for (millis, needs) in [(19, NONE), (20, SocketNeeds { groups: [true, false], ..NONE })] {
        client.begin_turn(after(millis), target);
        assert_eq!(client.needs(), needs);
    }
    client.handle_join_failure(after(20));
    assert_eq!(client.needs(), NONE);
    client.begin_turn(after(2_020), target);
    assert_eq!(client.needs(), CONNECTION, "the server's turn again");

    client.handle_connected(after(2_020), target);
    let mut buffer = [0; 256];
    let len = client.poll_transmit(after(2_020), target, &mut buffer);
    assert_eq!(buffer[2], b'L');
    assert!(buffer[..len].windows(4).any(|bytes| bytes == b"DAY1"), "it asks for the session of the lines");
    assert!(!client.is_silent(after(4_019)) && client.is_silent(after(4_020)));
    let accepted = soup(b'A', format!("{:>10}{:>20}", "DAY1", 1).as_bytes());
    let end = soup(b'S', EndOfSnapshot::of(Sequence(5)).as_bytes());
    let consumed = StreamProgress::Consumed(accepted.len());
    assert_eq!(client.handle_bytes(after(2_021), &accepted, target), consumed);
    assert_eq!(client.handle_bytes(after(2_021), &end[..4], target), StreamProgress::Incomplete);
    assert_eq!(client.handle_bytes(after(2_021), &end, target), StreamProgress::Finished);
    client.end_turn(after(2_021), target);
    assert_eq!(client.needs(), NONE);
    assert!(!channel.needs_snapshot());
}

#[test]
fn iex_requests_a_snapshot_that_covers_the_gap() {
    let mut channel = channel::<_, IexTp>(0, iex::BookBuilder::new(Feed::Deep10, books()));
    let (protocol, session) = (Feed::Deep10.protocol_id(), 7);
    lose(&mut channel, |sequence| {
        let sequence = Sequence(sequence.into());
        SegmentBuilder::resuming([0; 64], protocol, 1, session, sequence, 0).finish(Nanos(9)).to_vec()
    });
    let mut client = IexRecovery::new(Alpha::new("token").unwrap());
    let target = &mut Recovering { channel: &mut channel, out: &mut IgnoreUpdates };
    client.begin_turn(START, target);
    assert_eq!(client.needs(), CONNECTION);
    client.handle_connected(START, target);
    let mut buffer = [0; 256];
    let len = client.poll_transmit(START, target, &mut buffer);
    let Ok(Some((Frame::Request(request), _))) = snap::next_frame(&buffer[..len]) else { panic!() };
    assert_eq!((request.session, request.minimum), (session, Sequence(4)));
    assert_eq!(client.poll_transmit(START, target, &mut buffer), 0, "once");
    for (code, progress) in
        [(ErrorCode::NOT_YET, StreamProgress::NotYet), (ErrorCode(b'?'), StreamProgress::Failed)]
    {
        let len = snap::encode(&Frame::Error(code), &mut buffer).unwrap();
        assert_eq!(client.handle_bytes(START, &buffer[..len], target), progress);
    }
    let counters = client.counters(&SocketCounters::default());
    assert_eq!((counters.snapshot_requests, counters.refusals), (1, 1));
}

#[test]
fn xdp_answers_heartbeats_and_gives_up_messages_that_are_refused() {
    let source_id = SourceId::new("ME").unwrap();
    let books = xdp::BookBuilder::new(books(), Nanos::ZERO);
    let mut channel = channel::<_, xdp::Packets>(1, books);
    let packet = |sequence| PacketBuilder::new([0; 64], sequence);
    lose(&mut channel, |sequence| {
        packet(sequence).finish(DeliveryFlag::HEARTBEAT, SendTime::default()).to_vec()
    });
    let mut client = XdpRecovery::new(RequestSource { source_id, product_id: 11, channel_id: 1 });
    assert_eq!(client.needs(), SocketNeeds { connection: true, groups: [true, false] });
    client.handle_request(channel.poll_request().unwrap());
    let target = &mut Recovering { channel: &mut channel, out: &mut IgnoreUpdates };
    client.begin_turn(START, target);
    client.handle_connected(START, target);
    let heartbeat = packet(1).finish(DeliveryFlag::HEARTBEAT, SendTime::default()).to_vec();
    let consumed = StreamProgress::Consumed(heartbeat.len());
    assert_eq!(client.handle_bytes(START, &heartbeat, target), consumed);
    let mut sent = vec![];
    loop {
        let mut buffer = [0; 256];
        let len = client.poll_transmit(START, target, &mut buffer);
        if len == 0 {
            break;
        }
        let packet = Packet::parse(&buffer[..len]).unwrap();
        let (number, message) = packet.messages().next().unwrap();
        match Message::parse(message).unwrap() {
            Message::HeartbeatResponse(_) => sent.push((number, 0, 0)),
            Message::RetransmissionRequest(it) => {
                sent.push((number, it.begin_seq_num.get(), it.end_seq_num.get()));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(sent, [(1, 0, 0), (2, 1, 4)]);
    let mut refusal = packet(2);
    let response = RequestResponse::new(2, 1, 4, source_id, 11, 1, RequestStatus::BAD_SOURCE);
    refusal.push(&response).unwrap();
    let refusal = refusal.finish(DeliveryFlag::ORIGINAL, SendTime::default()).to_vec();
    assert_eq!(client.handle_bytes(START, &refusal, target), StreamProgress::Consumed(refusal.len()));
    assert_eq!(client.counters(&SocketCounters::default()).refusals, 1);
    client.begin_turn(START, target);
    assert!(client.needs().groups[XdpRecovery::REFRESH_GROUP], "only a refresh recovers the books");
    assert_eq!(channel.line_counters().messages_lost, 4);
}

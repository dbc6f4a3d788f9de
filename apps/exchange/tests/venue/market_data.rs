//! Market data on both lines, retransmission, and address conflicts between venues.

use std::net::{Ipv4Addr, SocketAddrV4};

use tickpath_exchange::VenueSettings;
use tickpath_nasdaq::itch50::Message;
use tickpath_nasdaq::moldudp64::{Kind, Packet, Request, Session};
use tickpath_net::{MulticastReceiver, SendStatus, UdpEndpoint};
use tickpath_test_support::{ANY_PORT, wait_for};
use tickpath_types::{Nanos, Sequence, Side};

use crate::support::{Rig, build, cancel, enter, instruments, ioc, replace, request_packet, settings};

/// Number of market data messages at the start of a venue with two instruments.
const OPENING: u64 = 7;

/// A receiver of one market data line, and the datagrams received.
pub struct Line {
    receiver: MulticastReceiver,
    pub datagrams: Vec<Vec<u8>>,
}

impl Line {
    pub fn join(group: SocketAddrV4) -> Line {
        let receiver = MulticastReceiver::join(group, Ipv4Addr::LOCALHOST).unwrap();
        Line { receiver, datagrams: vec![] }
    }

    pub fn read(&mut self) {
        let mut bytes = [0; 2_048];
        while let Some(received) = self.receiver.recv(&mut bytes).unwrap() {
            self.datagrams.push(bytes[..received.len].to_vec());
        }
    }

    /// The messages received. Asserts that their sequence numbers start at 1 and have no gaps.
    pub fn messages(&self) -> Vec<Vec<u8>> {
        let mut messages = vec![];
        for datagram in &self.datagrams {
            let packet = Packet::parse(datagram).unwrap();
            assert_eq!(packet.session(), Session::new("TODAY").unwrap());
            for (sequence, message) in packet.messages() {
                assert_eq!(sequence.0, messages.len() as u64 + 1);
                messages.push(message.to_vec());
            }
        }
        messages
    }

    fn kinds(&self) -> Vec<Kind> {
        self.datagrams.iter().map(|datagram| Packet::parse(datagram).unwrap().kind()).collect()
    }
}

/// Starts a venue; returns it with receivers of both lines that joined before the first packet.
pub fn with_lines(settings: &VenueSettings) -> (Rig, Line, Line) {
    let (a, b) = (Line::join(settings.line_a), Line::join(settings.line_b));
    (Rig::with(settings), a, b)
}

/// Runs the venue until both lines have received `count` messages.
pub fn read_lines(rig: &mut Rig, a: &mut Line, b: &mut Line, count: usize) {
    rig.until("the messages on both lines", |_| {
        a.read();
        b.read();
        (a.messages().len() >= count && b.messages().len() >= count).then_some(())
    });
}

/// A message as text: its type, and the fields from which a book is built.
pub fn describe(message: &[u8]) -> String {
    match Message::parse(message).unwrap() {
        Message::SystemEvent(event) => format!("system {}", char::from(event.event_code.0)),
        Message::StockDirectory(directory) => {
            format!("directory {} {}", directory.stock_locate.get(), directory.stock.get())
        }
        Message::StockTradingAction(action) => {
            format!("trading {} {}", action.stock_locate.get(), char::from(action.trading_state.0))
        }
        Message::AddOrder(add) => format!(
            "add {} {} {} {} {} {}",
            add.stock_locate.get(),
            add.order_ref.get(),
            char::from(add.side.0),
            add.shares.get(),
            add.stock.get(),
            add.price.get()
        ),
        Message::OrderExecuted(executed) => format!(
            "executed {} {} {}",
            executed.order_ref.get(),
            executed.executed_shares.get(),
            executed.match_number.get()
        ),
        Message::OrderCancel(cancel) => {
            format!("reduced {} {}", cancel.order_ref.get(), cancel.canceled_shares.get())
        }
        Message::OrderDelete(delete) => format!("deleted {}", delete.order_ref.get()),
        Message::OrderReplace(replace) => format!(
            "replaced {} {} {} {}",
            replace.original_order_ref.get(),
            replace.new_order_ref.get(),
            replace.shares.get(),
            replace.price.get()
        ),
        other => panic!("a venue does not publish {other:?}"),
    }
}

#[test]
fn events_are_published_on_both_lines() {
    let (mut rig, mut a, mut b) = with_lines(&settings());
    let (mut anna, mut bert) = (rig.log_in("ANNA"), rig.log_in("BERT"));
    let before = rig.time_of_day();
    rig.submit(&mut anna, &enter(1, Side::Sell, 30, 1_000_000));
    rig.submit(&mut anna, &enter(2, Side::Sell, 100, 1_000_100));
    bert.request(&ioc(1, Side::Buy, 20, 1_000_000));
    rig.receive_events::<2>(&mut bert);
    rig.receive_event(&mut anna);
    rig.submit(&mut anna, &cancel(1, 25));
    rig.submit(&mut anna, &replace(2, 3, 90, 1_000_200));
    rig.submit(&mut anna, &cancel(1, 0));
    let after = rig.time_of_day();

    let expected = [
        "system O",
        "system S",
        "directory 1 ALPHA",
        "trading 1 T",
        "directory 2 BRAVO",
        "trading 2 T",
        "system Q",
        "add 1 1 S 30 ALPHA 100.0000",
        "add 1 2 S 100 ALPHA 100.0100",
        "executed 1 20 1",
        "reduced 1 5",
        "replaced 2 4 90 100.0200",
        "deleted 1",
    ];
    read_lines(&mut rig, &mut a, &mut b, expected.len());
    assert_eq!(a.messages().iter().map(|message| describe(message)).collect::<Vec<_>>(), expected);
    assert_eq!(a.datagrams, b.datagrams, "datagram for datagram");
    for message in &a.messages()[OPENING as usize..] {
        let ts = message[5..11].iter().fold(0, |ts, byte| ts << 8 | u64::from(*byte));
        assert!((before..=after).contains(&ts), "{before} {ts} {after}");
    }
    let counters = &rig.view.publisher;
    assert_eq!(counters.messages.read(), expected.len() as u64);
    assert_eq!((counters.packets.read(), counters.unsent.read()), (a.datagrams.len() as u64, 0));
}

#[test]
fn simultaneous_events_share_packets_up_to_the_maximum_length() {
    let settings = VenueSettings { packet_bytes: 200, ..settings() };
    let (mut rig, mut a, mut b) = with_lines(&settings);
    let mut anna = rig.log_in("ANNA");
    let requests: Vec<u8> =
        (1..=50).flat_map(|user_ref| request_packet(&enter(user_ref, Side::Buy, 1, 1_000_000))).collect();
    anna.send(&requests);
    read_lines(&mut rig, &mut a, &mut b, OPENING as usize + 50);
    assert_eq!(a.datagrams, b.datagrams);
    assert!(a.datagrams.iter().all(|datagram| datagram.len() <= 200));
    // A packet of 200 bytes has space for four add messages of 36 bytes, each with its length field.
    let full =
        a.datagrams.iter().filter(|datagram| Packet::parse(datagram).unwrap().message_count() == 4).count();
    assert!(full >= 12, "{full}");
}

#[test]
fn waiting_events_leave_in_runs_of_packets_and_segmentation_changes_no_datagram() {
    let requests: Vec<u8> =
        (1..=50).flat_map(|user_ref| request_packet(&enter(user_ref, Side::Buy, 1, 1_000_000))).collect();
    let datagrams_with = |segmented_sends| {
        let settings = VenueSettings { packet_bytes: 200, segmented_sends, ..settings() };
        let (mut rig, mut a, mut b) = with_lines(&settings);
        let mut anna = rig.log_in("ANNA");
        anna.send(&requests);
        read_lines(&mut rig, &mut a, &mut b, OPENING as usize + 50);
        assert_eq!(a.datagrams, b.datagrams);
        let counters = &rig.view.publisher;
        assert_eq!((counters.packets.read(), counters.unsent.read()), (a.datagrams.len() as u64, 0));
        assert_eq!(counters.is_unsegmented.read(), 0);
        let types = a.messages().iter().map(|message| message[0]).collect::<Vec<_>>();
        (a.datagrams.iter().map(Vec::len).collect::<Vec<_>>(), types)
    };
    // Packets of four add messages have equal lengths, so the limit by the first packet's length has no effect.
    let (segmented, separate) = (datagrams_with(true), datagrams_with(false));
    assert_eq!(segmented.1, separate.1);
    assert_eq!(segmented.0.iter().max(), separate.0.iter().max());
}

#[test]
fn line_b_may_have_a_separate_agent() {
    let settings = VenueSettings { has_line_b_agent: true, packet_bytes: 200, ..settings() };
    let (mut rig, mut a, mut b) = with_lines(&settings);
    let mut anna = rig.log_in("ANNA");
    let requests: Vec<u8> =
        (1..=50).flat_map(|user_ref| request_packet(&enter(user_ref, Side::Buy, 1, 1_000_000))).collect();
    anna.send(&requests);
    read_lines(&mut rig, &mut a, &mut b, OPENING as usize + 50);
    assert_eq!(a.datagrams, b.datagrams, "datagram for datagram");
    rig.close();
    for line in [&mut a, &mut b] {
        while line.kinds().last() != Some(&Kind::EndOfSession) {
            line.read();
        }
    }
    assert_eq!(a.messages(), b.messages());
    let counters = &rig.view.publisher;
    assert_eq!((counters.unsent.read(), counters.unsent_line_b.read()), (0, 0));
}

#[test]
fn a_quiet_line_sends_heartbeats_with_the_next_number() {
    let (mut rig, mut a, mut b) = with_lines(&settings());
    read_lines(&mut rig, &mut a, &mut b, OPENING as usize);
    let before = a.datagrams.len();
    for _ in 0..3 {
        rig.advance(Nanos::from_secs(1));
    }
    rig.until("three heartbeats", |_| {
        a.read();
        b.read();
        (a.datagrams.len() >= before + 3 && b.datagrams.len() >= before + 3).then_some(())
    });
    assert_eq!(a.kinds()[before..], [Kind::Heartbeat; 3]);
    for heartbeat in &a.datagrams[before..] {
        assert_eq!(Packet::parse(heartbeat).unwrap().sequence(), Sequence(OPENING + 1));
    }
    assert_eq!(a.datagrams, b.datagrams);
}

#[test]
fn the_end_of_the_session_is_published_on_both_lines() {
    let (mut rig, mut a, mut b) = with_lines(&settings());
    read_lines(&mut rig, &mut a, &mut b, OPENING as usize);
    rig.close();
    for line in [&mut a, &mut b] {
        while line.kinds().last() != Some(&Kind::EndOfSession) {
            line.read();
        }
    }
    let end = Packet::parse(a.datagrams.last().unwrap()).unwrap().sequence();
    let closing = 3;
    assert_eq!(end, Sequence(OPENING + closing + 1));
    let closing_events: Vec<u8> =
        a.messages()[OPENING as usize..].iter().map(|message| message[11]).collect();
    assert_eq!(closing_events, b"MEC", "the day ends with the session");
}

/// A client that requests retransmissions.
pub struct RetransmissionClient {
    endpoint: UdpEndpoint,
    server: SocketAddrV4,
}

impl RetransmissionClient {
    pub fn new(rig: &Rig) -> RetransmissionClient {
        let endpoint = UdpEndpoint::bind(ANY_PORT).unwrap();
        RetransmissionClient { endpoint, server: rig.endpoints.retransmission }
    }

    fn send(&mut self, datagram: &[u8]) {
        assert_eq!(self.endpoint.send_to(datagram, self.server).unwrap(), SendStatus::Sent);
    }

    pub fn request(&mut self, session: &str, sequence: u64, message_count: u16) {
        let session = Session::new(session).unwrap();
        let request = Request { session, sequence: Sequence(sequence), message_count };
        self.send(&request.to_bytes());
    }

    pub fn try_receive(&mut self) -> Option<Vec<u8>> {
        let mut bytes = [0; 2_048];
        let received = self.endpoint.recv_from(&mut bytes).unwrap()?;
        Some(bytes[..received.len].to_vec())
    }

    /// Receives answers until they have `count` messages; returns the first sequence number and the messages.
    /// An answer is a single packet, so after each answer the method requests the remaining messages.
    pub fn receive(&mut self, rig: &mut Rig, count: usize) -> (u64, Vec<Vec<u8>>) {
        let (mut first, mut messages) = (None, vec![]);
        while messages.len() < count {
            let datagram = rig.until("an answer", |_| self.try_receive());
            let packet = Packet::parse(&datagram).unwrap();
            assert_eq!(packet.session(), Session::new("TODAY").unwrap());
            for (sequence, message) in packet.messages() {
                let first = *first.get_or_insert(sequence.0);
                assert_eq!(sequence.0, first + messages.len() as u64);
                messages.push(message.to_vec());
            }
            if let (Some(first), true) = (first, messages.len() < count) {
                self.request("TODAY", first + messages.len() as u64, (count - messages.len()) as u16);
            }
        }
        (first.unwrap(), messages)
    }
}

#[test]
fn lost_messages_are_retransmitted_unchanged() {
    let (mut rig, mut a, mut b) = with_lines(&settings());
    let mut anna = rig.log_in("ANNA");
    for user_ref in 1..=93 {
        rig.submit(&mut anna, &enter(user_ref, Side::Buy, 1, 1_000_000));
    }
    read_lines(&mut rig, &mut a, &mut b, 100);
    let published = a.messages();
    let mut requester = RetransmissionClient::new(&rig);
    for (first, count) in [(1, 1), (5, 3), (100, 1), (1, 100)] {
        requester.request("TODAY", first, count);
        let expected = published[first as usize - 1..][..usize::from(count)].to_vec();
        assert_eq!(requester.receive(&mut rig, count.into()), (first, expected));
    }
    requester.request("TODAY", 99, 1_000);
    assert_eq!(requester.receive(&mut rig, 2), (99, published[98..].to_vec()), "as far as there are any");
    assert_eq!(rig.view.publisher.retransmitted.read(), 1 + 3 + 1 + 100 + 2);
    assert_eq!(rig.view.publisher.requests_dropped.read(), 0);
}

#[test]
fn invalid_requests_have_no_answer() {
    let (mut rig, mut a, mut b) = with_lines(&settings());
    read_lines(&mut rig, &mut a, &mut b, OPENING as usize);
    let mut requester = RetransmissionClient::new(&rig);
    let good = Request { session: Session::new("TODAY").unwrap(), sequence: Sequence(1), message_count: 1 };
    let good = good.to_bytes();
    let mut dropped = 0;
    for len in [0, 1, good.len() - 1] {
        requester.send(&good[..len]);
        dropped += 1;
    }
    requester.send(&[&good[..], b"x"].concat());
    requester.send(&[0xff; 300]);
    requester.request("TODAY", 1, 0);
    requester.request("TODAY", 1, u16::MAX);
    requester.request("TODAY", u64::MAX, 1);
    requester.request("MONDAY", 1, 1);
    requester.request("", 1, 1);
    dropped += 7;
    // The following requests are well-formed, but the messages do not exist.
    requester.request("TODAY", 0, 1);
    requester.request("TODAY", OPENING + 1, 1);
    requester.request("TODAY", u64::MAX - 1, 1);
    let silent = 3;

    rig.until("the requests", |rig| (rig.view.publisher.requests.read() == dropped + silent).then_some(()));
    requester.request("TODAY", OPENING, 1);
    let (first, _) = requester.receive(&mut rig, 1);
    assert_eq!(first, OPENING, "the first answer is to the first good request");
    assert_eq!(rig.view.publisher.requests_dropped.read(), dropped);
    assert_eq!(rig.view.publisher.retransmitted.read(), 1);
}

#[test]
fn messages_no_longer_retained_are_not_sent() {
    let (mut rig, mut a, mut b) = with_lines(&VenueSettings { retained_messages: 16, ..settings() });
    let mut anna = rig.log_in("ANNA");
    for user_ref in 1..=93 {
        rig.submit(&mut anna, &enter(user_ref, Side::Buy, 1, 1_000_000));
    }
    read_lines(&mut rig, &mut a, &mut b, 100);
    let mut requester = RetransmissionClient::new(&rig);
    requester.request("TODAY", 84, 5);
    requester.request("TODAY", 85, 16);
    assert_eq!(requester.receive(&mut rig, 16).0, 85);
    assert_eq!(rig.view.publisher.retransmitted.read(), 16);
}

#[test]
fn requests_above_the_limit_are_dropped_and_counted() {
    /// Maximum number of pending requests.
    const PENDING: u64 = 64;
    const BEYOND: u64 = 20;
    const MESSAGES: u16 = 400;
    let (mut rig, mut a, mut b) = with_lines(&settings());
    let mut anna = rig.log_in("ANNA");
    for user_ref in 1..=u32::from(MESSAGES) - OPENING as u32 {
        rig.submit(&mut anna, &enter(user_ref, Side::Buy, 1, 1_000_000));
    }
    read_lines(&mut rig, &mut a, &mut b, MESSAGES.into());
    let mut requester = RetransmissionClient::new(&rig);
    for _ in 0..PENDING + BEYOND {
        requester.request("TODAY", 1, MESSAGES);
    }
    rig.until_true("the requests", |rig| rig.view.publisher.requests.read() == PENDING + BEYOND);
    assert_eq!(rig.view.publisher.requests_dropped.read(), BEYOND);
    let mut answered = 0;
    let mut packets = 0;
    while packets < PENDING {
        let datagram = rig.until("an answer to each that was taken", |_| requester.try_receive());
        answered += Packet::parse(&datagram).unwrap().messages().count() as u64;
        packets += 1;
    }
    assert_eq!(rig.view.publisher.retransmitted.read(), answered, "one packet each");
    while requester.try_receive().is_some() {}
    requester.request("TODAY", 2, 1);
    assert_eq!(requester.receive(&mut rig, 1).0, 2);
    assert_eq!(rig.view.publisher.retransmitted.read(), answered + 1, "and none to those beyond");
}

#[test]
fn messages_overwritten_before_retransmission_are_counted() {
    const REQUESTS: u64 = 60;
    let (mut rig, mut a, mut b) = with_lines(&VenueSettings { retained_messages: 16, ..settings() });
    let mut anna = rig.log_in("ANNA");
    read_lines(&mut rig, &mut a, &mut b, OPENING as usize);
    let mut requester = RetransmissionClient::new(&rig);
    (0..REQUESTS).for_each(|_| requester.request("TODAY", 1, 1));
    let publisher = rig.view.publisher.clone();
    rig.until_true("the requests", |_| publisher.requests.read() == REQUESTS);
    assert!(publisher.retransmitted.read() <= 4, "a few in each cycle");
    let orders = (1..=50).flat_map(|user_ref| request_packet(&enter(user_ref, Side::Buy, 1, 1_000_000)));
    anna.send(&orders.collect::<Vec<u8>>());
    rig.until_true("an answer or a count for each", |_| {
        publisher.retransmitted.read() + publisher.requests_unknown.read() == REQUESTS
    });
    assert!(publisher.requests_unknown.read() > 0);
}

#[test]
fn retransmissions_do_not_delay_heartbeats() {
    let (mut rig, mut a, mut b) = with_lines(&settings());
    read_lines(&mut rig, &mut a, &mut b, OPENING as usize);
    let packets = a.datagrams.len();
    let mut requester = RetransmissionClient::new(&rig);
    (0..8).for_each(|_| requester.request("TODAY", 1, 1));
    rig.advance(Nanos::from_secs(1));
    assert!((1..8).contains(&rig.view.publisher.retransmitted.read()), "others wait for the next cycle");
    // `wait_for` runs no turns, so the heartbeat was sent in the turn above.
    wait_for("the heartbeat", || {
        a.read();
        (a.datagrams.len() > packets).then_some(())
    });
    assert_eq!(a.kinds()[packets..], [Kind::Heartbeat]);
}

#[test]
fn two_venues_cannot_share_an_address() {
    let rig = Rig::new();
    for (what, settings) in [
        ("order entry", VenueSettings { order_entry: rig.endpoints.order_entry, ..settings() }),
        ("retransmission", VenueSettings { retransmission: rig.endpoints.retransmission, ..settings() }),
    ] {
        let error = format!("{:#}", build(&settings).err().unwrap());
        assert!(error.contains("is in use") && error.starts_with(what), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let remedy = VenueSettings { retransmission: rig.endpoints.retransmission, ..settings() };
    let error = format!("{:#}", build(&remedy).err().unwrap());
    assert!(error.contains("market_data") && !error.contains("--port"), "{error}");
}

#[test]
fn an_invalid_group_and_unmatchable_instruments_are_refused() {
    let no_group = VenueSettings { line_b: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1), ..settings() };
    let error = format!("{:#}", build(&no_group).err().unwrap());
    assert!(error.contains("line B") && error.contains("not a multicast group"), "{error}");
    let mut instrument = instruments().as_slice()[0];
    instrument.tick_size = tickpath_types::Price(0);
    let instruments = tickpath_types::InstrumentTable::new(&[instrument]);
    assert!(build(&VenueSettings { instruments, ..settings() }).is_err());
}

//! Scenarios of faulty lines: duplicates that differ, sequence numbers that jump back, sessions that restart.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_feed::{
    Arbiter, ArbiterConfig, BookBuilder, Channel, ChannelConfig, IexStream, IexTp, IgnoreUpdates,
    JUMP_BACK_PACKETS, Line, MessageBooks, MessageListener, MoldUdp64, UpdateListener,
};
use tickpath_iex::{Feed, SegmentBuilder};
use tickpath_nasdaq::itch50::market_event_message;
use tickpath_nasdaq::moldudp64::{PacketBuilder, Session};
use tickpath_types::{
    BookHealth, Instrument, InstrumentId, MarketEvent, MarketEventKind, MarketUpdate, Nanos, OrderId, Price,
    Qty, Sequence, Side, SuspectReason, Symbol,
};

#[derive(Debug, PartialEq, Eq)]
enum Out {
    Message(u64),
    Lost(u64, u64),
    Restart,
    Disagreement(u64, usize),
}

#[derive(Default)]
struct Seen(Vec<Out>);

impl<S> MessageListener<S> for Seen {
    fn on_message(&mut self, sequence: Sequence, _: &[u8]) {
        self.0.push(Out::Message(sequence.0));
    }
    fn on_lost(&mut self, first: Sequence, count: u64) {
        self.0.push(Out::Lost(first.0, count));
    }
    fn on_restart(&mut self) {
        self.0.push(Out::Restart);
    }
    fn on_disagreement<'a>(&mut self, first: Sequence, messages: impl Iterator<Item = &'a [u8]>) {
        self.0.push(Out::Disagreement(first.0, messages.count()));
    }
}

fn session(name: &str) -> Session {
    Session::new(name).unwrap()
}

/// Returns a MoldUDP64 packet of messages with these sequence numbers; each contains its number and `text`.
fn mold(range: std::ops::Range<u64>, text: &str) -> Vec<u8> {
    let mut builder = PacketBuilder::new([0; 1_400], session("DAY"), Sequence(range.start));
    range.for_each(|sequence| builder.push(format!("{sequence} {text}").as_bytes()).unwrap());
    builder.finish().to_vec()
}

/// Returns an IEX-TP segment of messages with these sequence numbers, sent at `sent` seconds.
fn segment(range: std::ops::Range<u64>, sent: u64) -> Vec<u8> {
    let (id, offset) = (Feed::Deep10.protocol_id(), (range.start - 1) * 3);
    let mut builder = SegmentBuilder::resuming([0; 256], id, 1, 9, Sequence(range.start), offset);
    range.for_each(|_| builder.push(b"m").unwrap());
    builder.finish(Nanos::from_secs(sent)).to_vec()
}

fn at(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

fn messages(range: std::ops::Range<u64>) -> Vec<Out> {
    range.map(Out::Message).collect()
}

#[test]
fn skew_is_measured_by_packet() {
    let (mut arbiter, mut seen) = (Arbiter::<MoldUdp64>::new(ArbiterConfig::default()), Seen::default());
    arbiter.handle_packet(at(10), Line::A, &mold(1..3, "a"), &mut seen);
    arbiter.handle_packet(at(13), Line::B, &mold(1..3, "a"), &mut seen);
    arbiter.handle_packet(at(20), Line::B, &mold(3..5, "a"), &mut seen);
    arbiter.handle_packet(at(29), Line::A, &mold(3..5, "a"), &mut seen);
    // No skew is recorded for a repetition on the same line or a packet with another range of messages.
    arbiter.handle_packet(at(30), Line::A, &mold(3..5, "a"), &mut seen);
    arbiter.handle_packet(at(31), Line::A, &mold(4..5, "a"), &mut seen);
    let [a, b, _] = arbiter.counters().lines;
    assert_eq!((a.skew.count, a.skew.max), (1, at(9)));
    assert_eq!((b.skew.count, b.skew.mean()), (1, at(3)));
    assert_eq!(seen.0, messages(1..5));
}

#[test]
fn disagreements_are_reported_and_the_first_message_counts() {
    let config = ArbiterConfig { compare_lines: true, ..ArbiterConfig::default() };
    let (mut arbiter, mut seen) = (Arbiter::<MoldUdp64>::new(config), Seen::default());
    arbiter.handle_packet(at(1), Line::A, &mold(1..4, "one"), &mut seen);
    arbiter.handle_packet(at(2), Line::B, &mold(1..4, "one"), &mut seen);
    assert_eq!(arbiter.counters().disagreements, 0);
    arbiter.handle_packet(at(3), Line::A, &mold(4..7, "one"), &mut seen);
    arbiter.handle_packet(at(4), Line::B, &mold(4..7, "two"), &mut seen);
    assert_eq!(arbiter.counters().disagreements, 1);
    let mut expected = messages(1..7);
    expected.push(Out::Disagreement(4, 3));
    assert_eq!(seen.0, expected);
}

#[test]
fn held_messages_are_always_compared() {
    let (mut arbiter, mut seen) = (Arbiter::<MoldUdp64>::new(ArbiterConfig::default()), Seen::default());
    arbiter.handle_packet(at(1), Line::A, &mold(1..2, "x"), &mut seen);
    arbiter.handle_packet(at(2), Line::A, &mold(3..5, "one"), &mut seen);
    arbiter.handle_packet(at(3), Line::B, &mold(3..5, "two"), &mut seen);
    assert_eq!(arbiter.counters().disagreements, 2);
    arbiter.handle_packet(at(4), Line::B, &mold(2..3, "x"), &mut seen);
    let expected = [
        Out::Message(1),
        Out::Disagreement(3, 1),
        Out::Disagreement(4, 1),
        Out::Message(2),
        Out::Message(3),
        Out::Message(4),
    ];
    assert_eq!(seen.0, expected);
}

#[test]
fn a_jump_back_is_a_restart_and_late_duplicates_are_not() {
    let (mut arbiter, mut seen) = (Arbiter::<MoldUdp64>::new(ArbiterConfig::default()), Seen::default());
    for first in (1..200).step_by(2) {
        arbiter.handle_packet(at(first), Line::A, &mold(first..first + 2, "a"), &mut seen);
    }
    // Line B is far behind and continues with the old sequence numbers, which is no jump back.
    for first in (1..200).step_by(2) {
        arbiter.handle_packet(at(300 + first), Line::B, &mold(first..first + 2, "a"), &mut seen);
    }
    assert_eq!((arbiter.counters().jumps_back, arbiter.counters().lines[1].backward), (0, 0));
    seen.0.clear();
    let steps = u64::from(JUMP_BACK_PACKETS);
    for step in 0..steps {
        let first = 11 + 2 * step;
        arbiter.handle_packet(at(1_000 + step), Line::A, &mold(first..first + 2, "b"), &mut seen);
        assert_eq!(seen.0.len(), usize::from(step + 1 == steps), "step {step}");
    }
    assert_eq!(seen.0, [Out::Restart]);
    assert_eq!((arbiter.counters().jumps_back, arbiter.counters().restarts), (1, 0));
    // The messages from 1 to the next packet are requested like any gap; then delivery continues.
    let first = 11 + 2 * steps;
    arbiter.handle_packet(at(2_000), Line::B, &mold(first..first + 2, "b"), &mut seen);
    arbiter.handle_timeout(at(1_000_000), &mut seen);
    assert_eq!(arbiter.poll_request().map(|request| request.sequence), Some(Sequence(1)));
    arbiter.handle_packet(at(1_000_001), Line::Recovery, &mold(1..first, "b"), &mut seen);
    assert_eq!(seen.0[1..], messages(1..first + 2));
}

#[test]
fn one_repeating_line_is_no_jump() {
    let (mut arbiter, mut seen) = (Arbiter::<MoldUdp64>::new(ArbiterConfig::default()), Seen::default());
    for first in (1..400).step_by(2) {
        arbiter.handle_packet(at(first), Line::A, &mold(first..first + 2, "a"), &mut seen);
        let again = if first < 200 { first } else { first - 150 };
        arbiter.handle_packet(at(first), Line::B, &mold(again..again + 2, "a"), &mut seen);
    }
    assert_eq!(seen.0, messages(1..401));
    assert_eq!(arbiter.counters().jumps_back, 0);
}

#[test]
fn a_packet_out_of_place_is_no_jump() {
    let (mut arbiter, mut seen) = (Arbiter::<MoldUdp64>::new(ArbiterConfig::default()), Seen::default());
    for round in 0..100 {
        let first = 1 + 4 * round;
        arbiter.handle_packet(at(round), Line::A, &mold(first + 2..first + 4, "a"), &mut seen);
        arbiter.handle_packet(at(round), Line::A, &mold(first..first + 2, "a"), &mut seen);
    }
    let counters = arbiter.counters();
    assert_eq!((counters.lines[0].backward, counters.jumps_back), (100, 0));
    assert_eq!(seen.0, messages(1..401));
}

#[test]
fn send_times_distinguish_restarts_from_duplicates() {
    let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(ArbiterConfig::default()), Seen::default());
    arbiter.handle_packet(at(1), Line::A, &segment(1..3, 100), &mut seen);
    arbiter.handle_packet(at(2), Line::A, &segment(3..5, 101), &mut seen);
    // Line B's duplicates arrive late, but were not sent later than line A's latest segment.
    arbiter.handle_packet(at(3), Line::B, &segment(1..3, 100), &mut seen);
    arbiter.handle_packet(at(4), Line::B, &segment(3..5, 101), &mut seen);
    assert_eq!(arbiter.counters().restarts, 0);
    arbiter.handle_packet(at(5), Line::A, &segment(1..2, 200), &mut seen);
    arbiter.handle_packet(at(6), Line::A, &segment(2..4, 201), &mut seen);
    arbiter.handle_packet(at(7), Line::B, &segment(1..2, 200), &mut seen);
    // A retransmission never restarts the numbering, even if it begins at message 1 and was sent later.
    arbiter.handle_packet(at(8), Line::Recovery, &segment(1..3, 300), &mut seen);
    let mut expected = messages(1..5);
    expected.push(Out::Restart);
    expected.extend(messages(1..4));
    assert_eq!(seen.0, expected);
    assert_eq!((arbiter.counters().restarts, arbiter.next_sequence()), (1, Sequence(4)));
    let stream = IexStream { protocol_id: Feed::Deep10.protocol_id(), channel: 1, session: 9 };
    assert_eq!(arbiter.session(), Some(stream));
}

#[test]
fn a_line_before_the_restart_is_ignored() {
    let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(ArbiterConfig::default()), Seen::default());
    arbiter.handle_packet(at(1), Line::A, &segment(1..5, 100), &mut seen);
    arbiter.handle_packet(at(2), Line::B, &segment(1..5, 100), &mut seen);
    arbiter.handle_packet(at(2), Line::Recovery, &segment(3..5, 100), &mut seen);
    arbiter.handle_packet(at(3), Line::A, &segment(1..3, 200), &mut seen);
    // These packets use the old numbering: messages that line A lost, a heartbeat, a retransmission.
    arbiter.handle_packet(at(4), Line::B, &segment(5..7, 101), &mut seen);
    arbiter.handle_packet(at(5), Line::B, &segment(7..7, 102), &mut seen);
    arbiter.handle_packet(at(6), Line::Recovery, &segment(6..7, 101), &mut seen);
    assert_eq!(arbiter.counters().left_behind, 3);
    assert!(!arbiter.has_gap());
    // These packets use the new numbering.
    arbiter.handle_packet(at(7), Line::B, &segment(1..3, 200), &mut seen);
    arbiter.handle_packet(at(8), Line::B, &segment(3..7, 201), &mut seen);
    arbiter.handle_packet(at(9), Line::A, &segment(3..7, 201), &mut seen);
    let mut expected = messages(1..5);
    expected.push(Out::Restart);
    expected.extend(messages(1..7));
    assert_eq!(seen.0, expected);
    // A line that missed the restart is accepted again once the new sequence numbers reach its old ones.
    let restart = segment(1..2, 300);
    arbiter.handle_packet(at(10), Line::A, &restart, &mut seen);
    arbiter.handle_packet(at(11), Line::A, &segment(2..9, 301), &mut seen);
    arbiter.handle_packet(at(12), Line::B, &segment(9..11, 302), &mut seen);
    assert_eq!((arbiter.next_sequence(), arbiter.counters().left_behind), (Sequence(11), 3));
}

#[test]
fn a_restart_lost_on_both_lines_is_detected() {
    let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(ArbiterConfig::default()), Seen::default());
    for first in (1..100).step_by(2) {
        arbiter.handle_packet(at(first), Line::A, &segment(first..first + 2, 100), &mut seen);
    }
    seen.0.clear();
    for step in 0..u64::from(JUMP_BACK_PACKETS) {
        let first = 3 + 2 * step;
        arbiter.handle_packet(at(500 + step), Line::A, &segment(first..first + 2, 200), &mut seen);
    }
    assert_eq!(seen.0, [Out::Restart]);
    // After the restart, the missing messages are requested from message 1 on.
    arbiter.handle_packet(at(600), Line::A, &segment(35..37, 201), &mut seen);
    arbiter.handle_timeout(at(1_000_000), &mut seen);
    assert_eq!(arbiter.poll_request().map(|request| (request.first, request.last)), Some((1, 34)));
}

#[derive(Default)]
struct Updates(Vec<MarketUpdate>);

impl UpdateListener for Updates {
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0.push(*update);
    }
}

fn itch(sequence: u64, kind: MarketEventKind) -> Vec<u8> {
    let instrument = Instrument::in_cents(InstrumentId(1), Symbol::new("ALPHA").unwrap(), Price(1_000_000));
    let (sequence, command, ts) = (Sequence(sequence), Sequence(sequence), Nanos(1));
    let event = MarketEvent { sequence, command, ts, instrument: instrument.id, kind };
    market_event_message(&event, Some(&instrument)).unwrap().to_vec()
}

fn add(order: u64, qty: u64) -> Vec<u8> {
    let (order_id, side) = (OrderId(order), Side::Buy);
    itch(1, MarketEventKind::Add { order_id, side, price: Price(1_000_000), qty: Qty(qty) })
}

fn channel(compare_lines: bool) -> Channel<BookBuilder<PackedBooks>> {
    let arbiter = ArbiterConfig { compare_lines, max_requests: 0, ..ArbiterConfig::default() };
    let books = BookBuilder::new(PackedBooks::new(BookLimits::new(InstrumentId(2), 16)));
    Channel::new(&ChannelConfig::new(arbiter, None), books)
}

fn itch_packet(name: &str, first: u64, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = PacketBuilder::new([0; 1_400], session(name), Sequence(first));
    messages.iter().for_each(|message| builder.push(message).unwrap());
    builder.finish().to_vec()
}

#[test]
fn disagreements_make_books_suspect_with_a_reason() {
    let (mut channel, mut updates) = (channel(true), Updates::default());
    let directory = itch(1, MarketEventKind::Directory);
    let one = itch_packet("DAY", 1, &[directory.clone(), add(1, 10)]);
    let other = itch_packet("DAY", 1, &[directory, add(1, 20)]);
    channel.handle_packet(at(1), Line::A, &one, &mut updates);
    channel.handle_packet(at(2), Line::B, &other, &mut updates);
    let state = channel.books().instrument(InstrumentId(1)).unwrap();
    assert_eq!((state.health, state.reason), (BookHealth::Suspect, Some(SuspectReason::LinesDisagree)));
    let reasons: Vec<_> = updates.0.iter().filter_map(MarketUpdate::reason).collect();
    assert_eq!(reasons, [SuspectReason::LinesDisagree], "once");
}

#[test]
fn another_session_resets_the_books() {
    let (mut channel, mut updates) = (channel(false), Updates::default());
    let directory = itch(1, MarketEventKind::Directory);
    channel.handle_packet(
        at(1),
        Line::A,
        &itch_packet("MON", 1, &[directory.clone(), add(1, 10), add(1, 10)]),
        &mut updates,
    );
    let state = channel.books().instrument(InstrumentId(1)).unwrap();
    assert_eq!(state.reason, Some(SuspectReason::DuplicateOrder));
    let next = itch_packet("TUE", 1, &[directory, add(1, 30)]);
    for step in 0..3 {
        assert_eq!(channel.counters().session_changes, 0);
        channel.handle_packet(at(2 + step), Line::A, &next, &mut updates);
    }
    assert_eq!(channel.counters().session_changes, 1);
    channel.handle_packet(at(9), Line::B, &next, &mut updates);
    let state = channel.books().instrument(InstrumentId(1)).unwrap();
    assert_eq!((state.health, state.reason), (BookHealth::Live, None));
    assert_eq!(updates.0.last().unwrap().bid(), Some((Price(1_000_000), Qty(30))));
    assert!(!channel.resync(InstrumentId(1), &mut updates), "there are no snapshots");
}

#[test]
fn a_jump_back_resets_the_books() {
    let mut channel = channel(false);
    let directory = itch(1, MarketEventKind::Directory);
    let mut messages = vec![directory];
    messages.extend((1..=16).map(|order| add(order, 10)));
    let send = |channel: &mut Channel<BookBuilder<PackedBooks>>, now: u64, numbers: std::ops::Range<u64>| {
        for number in numbers {
            let packet = itch_packet("DAY", number, std::slice::from_ref(&messages[number as usize - 1]));
            channel.handle_packet(at(now + number), Line::A, &packet, &mut IgnoreUpdates);
        }
    };
    let health = |channel: &Channel<BookBuilder<PackedBooks>>| {
        (channel.books().books().order_count(), channel.books().instrument(InstrumentId(1)).unwrap().health)
    };
    send(&mut channel, 0, 1..18);
    send(&mut channel, 100, 1..JUMP_BACK_PACKETS as u64 + 1);
    assert_eq!(channel.line_counters().jumps_back, 1);
    assert_eq!(health(&channel), (0, BookHealth::Live), "what was built is of the past");
    // Without a server, messages 1 to 16, by which the restart was detected, are lost: the book is stale.
    send(&mut channel, 200, 17..18);
    channel.handle_timeout(Nanos::from_secs(1), &mut IgnoreUpdates);
    assert_eq!(health(&channel), (1, BookHealth::Stale));
    // After this restart, the line repeats all packets from message 1, so no gap remains.
    send(&mut channel, 2_000_000, 1..JUMP_BACK_PACKETS as u64 + 1);
    send(&mut channel, 3_000_000, 1..18);
    assert_eq!(channel.line_counters().jumps_back, 2);
    assert_eq!(health(&channel), (16, BookHealth::Live));
}

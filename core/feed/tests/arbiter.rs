//! Scenarios of an arbiter: packets on each line, and the messages that it delivers.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use proptest::prelude::*;
use tickpath_feed::{
    Arbiter, ArbiterConfig, Line, MAX_AHEAD, MessageListener, RETURN_AFTER, SESSION_CHANGE_PACKETS,
};
use tickpath_nasdaq::moldudp64::{Header, PacketBuilder, Request, Session};
use tickpath_types::{Nanos, Sequence};
use zerocopy::IntoBytes;

#[derive(Debug, PartialEq, Eq)]
enum Out {
    Message(u64),
    Lost(u64, u64),
    End,
    SessionChange(Session),
}

#[derive(Default)]
struct Seen(Vec<Out>);

impl MessageListener for Seen {
    fn on_message(&mut self, sequence: Sequence, message: &[u8]) {
        assert_eq!(message, body(sequence.0), "the right bytes under the right number");
        self.0.push(Out::Message(sequence.0));
    }
    fn on_lost(&mut self, first: Sequence, count: u64) {
        self.0.push(Out::Lost(first.0, count));
    }
    fn on_end_of_session(&mut self) {
        self.0.push(Out::End);
    }
    fn on_session_change(&mut self, session: Session) {
        self.0.push(Out::SessionChange(session));
    }
}

fn session() -> Session {
    Session::new("DAY1").unwrap()
}

fn body(sequence: u64) -> Vec<u8> {
    format!("message {sequence}").into_bytes()
}

fn packet(range: std::ops::Range<u64>) -> Vec<u8> {
    let mut builder = PacketBuilder::new([0; 1400], session(), Sequence(range.start));
    range.for_each(|sequence| builder.push(&body(sequence)).unwrap());
    builder.finish().to_vec()
}

fn messages(range: std::ops::Range<u64>) -> Vec<Out> {
    range.map(Out::Message).collect()
}

fn request(sequence: u64, message_count: u16) -> Option<Request> {
    Some(Request { session: session(), sequence: Sequence(sequence), message_count })
}

struct Channel {
    arbiter: Arbiter,
    seen: Seen,
}

impl Channel {
    fn new(config: ArbiterConfig) -> Channel {
        Channel { arbiter: Arbiter::new(config), seen: Seen::default() }
    }
    fn receive(&mut self, micros: u64, line: Line, packet: &[u8]) -> Vec<Out> {
        self.arbiter.handle_packet(Nanos::from_micros(micros), line, packet, &mut self.seen);
        std::mem::take(&mut self.seen.0)
    }
    fn advance_to(&mut self, micros: u64) -> Vec<Out> {
        self.arbiter.handle_timeout(Nanos::from_micros(micros), &mut self.seen);
        std::mem::take(&mut self.seen.0)
    }
}

const CONFIG: ArbiterConfig = ArbiterConfig {
    hold_messages: 8,
    reorder_wait: Nanos::from_micros(100),
    request_timeout: Nanos::from_micros(1_000),
    max_requests: 2,
    max_request_messages: 3,
    max_gap_messages: u64::MAX,
    compare_lines: false,
};

#[test]
fn duplicates_are_dropped() {
    let mut channel = Channel::new(CONFIG);
    assert_eq!(channel.receive(1, Line::A, &packet(1..3)), messages(1..3));
    assert_eq!(channel.receive(2, Line::B, &packet(1..4)), messages(3..4), "only what is new in it");
    assert_eq!(channel.receive(3, Line::A, &packet(3..4)), []);
    let lines = channel.arbiter.counters().lines;
    assert_eq!((lines[0].first_messages, lines[0].duplicate_messages), (2, 1));
    assert_eq!((lines[1].first_messages, lines[1].duplicate_messages), (1, 2));
    assert_eq!(channel.arbiter.poll_timeout(), None);
}

#[test]
fn the_other_line_closes_a_gap_before_anything_is_requested() {
    let mut channel = Channel::new(CONFIG);
    channel.receive(1, Line::A, &packet(1..2));
    assert_eq!(channel.receive(2, Line::A, &packet(3..5)), []);
    assert!(channel.arbiter.has_gap() && !channel.arbiter.is_recovering());
    assert_eq!(channel.receive(50, Line::B, &packet(2..4)), messages(2..5));
    let counters = channel.arbiter.counters();
    assert_eq!((counters.gaps_opened, counters.gaps_healed_by_line, counters.requests), (1, 1, 0));
    assert_eq!(counters.line_losses(), 1, "line A missed message 2");
    assert_eq!(counters.longest_gap, Nanos::from_micros(48));
}

#[test]
fn requests_are_bounded() {
    let mut channel = Channel::new(CONFIG);
    channel.receive(0, Line::A, &packet(1..2));
    channel.receive(10, Line::A, &packet(6..7));
    channel.receive(11, Line::B, &packet(6..7));
    assert_eq!(channel.advance_to(109), []);
    assert_eq!(channel.arbiter.poll_request(), None, "the other line still has time");
    channel.advance_to(110);
    assert_eq!(channel.arbiter.poll_request(), request(2, 3));
    assert_eq!(channel.arbiter.poll_request(), None, "asked once");
    assert_eq!(channel.receive(150, Line::Recovery, &packet(2..4)), messages(2..4));
    assert!(channel.arbiter.is_recovering(), "messages 4 and 5 are missing as before");
    channel.advance_to(150);
    assert_eq!(channel.arbiter.poll_request(), request(4, 2), "an answer is one packet");
    assert_eq!(channel.receive(160, Line::Recovery, &packet(4..6)), messages(4..7));
    assert!(!channel.arbiter.is_recovering());
    channel.advance_to(10_000);
    assert_eq!(channel.arbiter.poll_request(), None, "nothing is missing");
    let counters = channel.arbiter.counters();
    assert_eq!((counters.gaps_opened, counters.gaps_healed_by_retransmission, counters.requests), (1, 1, 2));
}

#[test]
fn an_unanswered_request_is_repeated_and_then_the_messages_are_lost() {
    let mut channel = Channel::new(CONFIG);
    channel.receive(0, Line::A, &packet(1..2));
    channel.receive(0, Line::A, &packet(4..5));
    channel.advance_to(100);
    assert!(channel.arbiter.poll_request().is_some());
    channel.advance_to(1_100);
    assert!(channel.arbiter.poll_request().is_some(), "repeated");
    assert_eq!(channel.advance_to(3_099), [], "the repetition has twice as long");
    assert_eq!(channel.advance_to(3_100), [Out::Lost(2, 2), Out::Message(4)]);
    let counters = channel.arbiter.counters();
    assert_eq!((counters.gaps_lost, counters.messages_lost, counters.gaps_healed()), (1, 2, 0));
    assert!(!channel.arbiter.has_gap());
}

/// Maximum time in microseconds that a venue takes to send messages that it must read from its journal.
const JOURNAL_MICROS: u64 = 2_000_000;
/// Maximum number of requests that a venue queues for its journal, for all clients together.
const JOURNAL_REQUESTS: usize = 16;

/// Loses message 2, and handles each timeout before `end`; returns the times of the requests, in
/// microseconds.
fn requests_until(channel: &mut Channel, end: u64) -> Vec<u64> {
    channel.receive(0, Line::A, &packet(1..2));
    channel.receive(0, Line::A, &packet(3..4));
    let mut requests = vec![];
    while let Some(deadline) = channel.arbiter.poll_timeout().filter(|deadline| deadline.0 / 1_000 < end) {
        let micros = deadline.0 / 1_000;
        assert_eq!(channel.advance_to(micros), [], "{micros}");
        requests.extend(channel.arbiter.poll_request().map(|_| micros));
    }
    requests
}

#[test]
fn slow_answers_cause_few_requests() {
    let mut channel = Channel::new(ArbiterConfig::default());
    let requests = requests_until(&mut channel, JOURNAL_MICROS);
    assert_eq!(
        requests[..5],
        [100, 5_100, 15_100, 35_100, 75_100],
        "soon at first, for a datagram may be lost"
    );
    assert!(requests.len() < JOURNAL_REQUESTS, "{requests:?}");
    assert!(channel.arbiter.has_gap());
    assert_eq!(channel.receive(JOURNAL_MICROS, Line::Recovery, &packet(2..3)), messages(2..4));
    assert_eq!(channel.arbiter.counters().gaps_healed_by_retransmission, 1);
}

#[test]
fn unanswered_requests_end_in_a_loss() {
    let mut channel = Channel::new(ArbiterConfig::default());
    let requests = requests_until(&mut channel, JOURNAL_MICROS + 200_000);
    assert_eq!(requests.len(), 12);
    assert_eq!(requests[10..], [1_595_100, 1_915_100], "no wait is longer than 64 times the first");
    assert_eq!(channel.advance_to(2_235_099), []);
    assert_eq!(channel.advance_to(2_235_100), [Out::Lost(2, 1), Out::Message(3)]);
}

#[test]
fn an_answer_resets_the_request_count() {
    let mut channel = Channel::new(CONFIG);
    channel.receive(0, Line::A, &packet(1..2));
    channel.receive(0, Line::A, &packet(5..6));
    for (requested, answered, first) in [(100, 3_000, 2), (3_000, 5_900, 3), (5_900, 8_800, 4)] {
        channel.advance_to(requested);
        assert!(channel.arbiter.poll_request().is_some());
        channel.advance_to(requested + 1_000);
        assert_eq!(channel.arbiter.poll_request().map(|request| request.sequence), Some(Sequence(first)));
        assert!(!channel.receive(answered, Line::Recovery, &packet(first..first + 1)).is_empty());
    }
    assert_eq!((channel.arbiter.has_gap(), channel.arbiter.counters().gaps_lost), (false, 0));
}

#[test]
fn without_a_server_only_the_other_line_fills_gaps() {
    let mut channel = Channel::new(ArbiterConfig { max_requests: 0, ..CONFIG });
    channel.receive(0, Line::A, &packet(1..2));
    channel.receive(0, Line::A, &packet(3..4));
    assert_eq!(channel.advance_to(99), []);
    assert_eq!(channel.advance_to(100), [Out::Lost(2, 1), Out::Message(3)]);
    assert_eq!(channel.arbiter.poll_request(), None);
}

/// Line A loses every second message, and line B delivers each lost one just after the next loss on A.
#[test]
fn the_reorder_wait_restarts_with_each_message() {
    const INTERVAL: u64 = 60;
    for max_requests in [0, 2] {
        let mut channel = Channel::new(ArbiterConfig { max_requests, ..CONFIG });
        channel.receive(0, Line::A, &packet(1..2));
        for pair in 1..100 {
            let (lost, at) = (2 * pair, pair * INTERVAL);
            assert_eq!(channel.receive(at, Line::A, &packet(lost + 1..lost + 2)), []);
            if pair > 1 {
                let late = lost - 2..lost;
                assert_eq!(
                    channel.receive(at + INTERVAL / 2, Line::B, &packet(late.clone())),
                    messages(late)
                );
            }
            assert_eq!(channel.advance_to(at + INTERVAL - 1), [], "{pair}");
            assert_eq!(channel.arbiter.poll_request(), None, "{pair}");
        }
        // The last message is lost on both lines.
        assert_eq!(channel.advance_to(99 * INTERVAL + INTERVAL / 2 + 99), []);
        let out = channel.advance_to(99 * INTERVAL + INTERVAL / 2 + 100);
        match max_requests {
            0 => assert_eq!(out, [Out::Lost(198, 1), Out::Message(199)]),
            _ => assert_eq!((out, channel.arbiter.poll_request()), (vec![], request(198, 1))),
        }
        assert_eq!(channel.arbiter.counters().gaps_opened, 1);
    }
}

#[test]
fn a_heartbeat_reveals_lost_packets() {
    let mut channel = Channel::new(CONFIG);
    channel.receive(0, Line::A, &packet(1..2));
    let heartbeat = Header::heartbeat(session(), Sequence(4));
    assert_eq!(channel.receive(10, Line::A, heartbeat.as_bytes()), []);
    channel.advance_to(110);
    assert_eq!(channel.arbiter.poll_request(), request(2, 2));
    assert_eq!(channel.receive(150, Line::Recovery, &packet(2..4)), messages(2..4));
}

#[test]
fn the_session_ends_once_and_only_after_its_last_message() {
    let mut channel = Channel::new(CONFIG);
    let end = Header::end_of_session(session(), Sequence(3));
    channel.receive(0, Line::A, &packet(1..2));
    assert_eq!(channel.receive(1, Line::A, end.as_bytes()), []);
    assert_eq!(channel.receive(2, Line::B, &packet(2..3)), [Out::Message(2), Out::End]);
    assert_eq!(channel.receive(3, Line::B, end.as_bytes()), []);
}

#[test]
fn messages_beyond_the_reorder_buffer_are_requested_again() {
    let mut channel = Channel::new(CONFIG);
    channel.receive(0, Line::A, &packet(2..14));
    assert_eq!(channel.arbiter.counters().not_held, 5, "9 to 13 lie beyond the window of 8 that starts at 1");
    channel.advance_to(100);
    assert_eq!(channel.arbiter.poll_request(), request(1, 1));
    assert_eq!(channel.receive(120, Line::Recovery, &packet(1..2)), messages(1..9));
    channel.advance_to(120);
    assert_eq!(channel.arbiter.poll_request(), request(9, 3));
}

#[test]
fn invalid_datagrams_are_counted_and_dropped() {
    let mut channel = Channel::new(CONFIG);
    channel.receive(0, Line::A, &packet(1..2));
    let other = Header::heartbeat(Session::new("DAY2").unwrap(), Sequence(99));
    assert_eq!(channel.receive(1, Line::A, other.as_bytes()), []);
    assert_eq!(channel.receive(2, Line::B, &packet(2..4)[..30]), []);
    assert_eq!(channel.receive(3, Line::B, b""), []);
    let lines = channel.arbiter.counters().lines;
    assert_eq!((lines[0].wrong_session, lines[1].malformed), (1, 2));
    assert_eq!(channel.arbiter.next_sequence(), Sequence(2));
}

#[test]
fn a_held_message_counts_for_the_line_that_brought_it_first() {
    let mut channel = Channel::new(CONFIG);
    channel.receive(0, Line::A, &packet(3..5));
    assert_eq!(channel.receive(1, Line::B, &packet(1..6)), messages(1..6));
    let lines = channel.arbiter.counters().lines;
    assert_eq!((lines[0].first_messages, lines[0].duplicate_messages), (2, 0));
    assert_eq!((lines[1].first_messages, lines[1].duplicate_messages), (3, 2));
    assert!(!channel.arbiter.has_gap());
    // The buffer must not keep a delivered message, or it would deliver that one instead of a later one.
    assert_eq!(channel.receive(2, Line::A, &packet(7..15)), []);
    assert_eq!(channel.receive(3, Line::B, &packet(6..7)), messages(6..14));
}

#[test]
fn one_datagram_far_ahead_opens_no_gap() {
    let mut channel = Channel::new(CONFIG);
    channel.receive(0, Line::A, &packet(1..2));
    let wild = |sequence| Header::heartbeat(session(), Sequence(sequence));
    assert_eq!(channel.receive(1, Line::A, wild(1 << 63).as_bytes()), []);
    assert_eq!(
        channel.receive(2, Line::B, Header::end_of_session(session(), Sequence(1 << 40)).as_bytes()),
        []
    );
    assert_eq!(channel.receive(3, Line::A, &packet((1 << 50)..(1 << 50) + 2)), []);
    assert!(!channel.arbiter.has_gap());
    assert_eq!(channel.receive(4, Line::A, &packet(2..3)), messages(2..3));
    let lines = channel.arbiter.counters().lines;
    assert_eq!((lines[0].far_ahead, lines[1].far_ahead, lines[0].missed_messages), (2, 1, 0));
}

#[test]
fn numbers_beyond_the_bound_need_confirmation() {
    let at_once = |ahead: u64| {
        let mut channel = Channel::new(CONFIG);
        channel.receive(0, Line::A, Header::heartbeat(session(), Sequence(1 + ahead)).as_bytes());
        channel.arbiter.has_gap()
    };
    assert!(at_once(MAX_AHEAD) && !at_once(MAX_AHEAD + 1));

    // A late joiner learns the current sequence number from two packets, and requests all earlier messages.
    let mut channel = Channel::new(CONFIG);
    let now = 10 * MAX_AHEAD;
    channel.receive(0, Line::A, &packet(now..now + 1));
    assert!(!channel.arbiter.has_gap());
    channel.receive(1, Line::B, &packet(now..now + 1));
    assert!(channel.arbiter.has_gap());
    assert_eq!(channel.arbiter.counters().lines[0].far_ahead, 1);

    // The second packet confirms the current sequence number only if it is near the first.
    let mut channel = Channel::new(CONFIG);
    for sequence in [now, now + MAX_AHEAD + 1, now - 1] {
        channel.receive(0, Line::A, Header::heartbeat(session(), Sequence(sequence)).as_bytes());
        assert!(!channel.arbiter.has_gap(), "{sequence}");
    }
    channel.receive(0, Line::A, Header::heartbeat(session(), Sequence(now - 1 + MAX_AHEAD)).as_bytes());
    assert!(channel.arbiter.has_gap());
}

#[test]
fn a_session_change_is_reported_once() {
    let mut channel = Channel::new(CONFIG);
    channel.receive(0, Line::A, &packet(1..2));
    let day2 = Session::new("DAY2").unwrap();
    let other = Header::heartbeat(day2, Sequence(1));
    let strays = SESSION_CHANGE_PACKETS - 1;
    for _ in 0..2 {
        for _ in 0..strays {
            assert_eq!(channel.receive(1, Line::A, other.as_bytes()), []);
        }
        // The channel's own session continues, so the packets of the other session were stray ones.
        channel.receive(2, Line::B, &packet(1..2));
    }
    for _ in 0..SESSION_CHANGE_PACKETS {
        assert_eq!(channel.receive(3, Line::Recovery, other.as_bytes()), [], "a server's mistake");
    }
    let changes: Vec<Out> = (0..10).flat_map(|_| channel.receive(4, Line::B, other.as_bytes())).collect();
    assert_eq!(changes, [Out::SessionChange(day2)]);
    assert_eq!(channel.arbiter.counters().other_sessions, 1);
    assert_eq!(channel.receive(5, Line::A, &packet(2..3)), messages(2..3), "should it come all the same");
}

#[test]
fn two_publishers_do_not_alternate_the_session() {
    let mut channel = Channel::new(CONFIG);
    let other = Header::heartbeat(Session::new("DAY2").unwrap(), Sequence(1));
    channel.receive(0, Line::A, &packet(1..2));
    (0..SESSION_CHANGE_PACKETS).for_each(|_| drop(channel.receive(1, Line::A, other.as_bytes())));
    channel.arbiter.reset();
    assert_eq!(channel.receive(2, Line::A, &packet(1..2)), [], "it was left");
    assert_eq!(channel.receive(3, Line::A, other.as_bytes()), []);
    let quiet = RETURN_AFTER.0 / 1_000;
    for second in 1..10 {
        let micros = second * (quiet - 1);
        assert_eq!(channel.receive(micros, Line::B, other.as_bytes()), []);
        for later in [0, 1, 2, quiet - 2] {
            assert_eq!(
                channel.receive(micros + later, Line::A, &packet(1..3)),
                [],
                "the other one continues"
            );
        }
    }
    assert_eq!(channel.arbiter.counters().other_sessions, 1);
    // The other session was silent for longer than `RETURN_AFTER`.
    let changes = channel.receive(20 * quiet, Line::A, &packet(1..3));
    assert_eq!(changes, [Out::SessionChange(session())]);
    channel.arbiter.reset();
    assert_eq!(channel.receive(20 * quiet + 1, Line::A, &packet(1..3)), messages(1..3));
}

proptest! {
    /// For any loss, duplication or reordering on the lines, every message is delivered once and in order
    /// when the retransmission server answers.
    #[test]
    fn every_message_is_delivered_once_and_in_order(
        arrivals in prop::collection::vec((0_usize..60, prop::bool::ANY), 0..200),
        sizes in prop::collection::vec(1_u64..5, 60),
    ) {
        let mut starts = vec![1];
        sizes.iter().for_each(|size| starts.push(starts[starts.len() - 1] + size));
        let end = starts[60];
        let mut channel = Channel::new(ArbiterConfig { hold_messages: 32, ..CONFIG });
        let mut out = Vec::new();
        let mut micros = 0;
        for (index, on_b) in arrivals {
            micros += 7;
            let line = if on_b { Line::B } else { Line::A };
            out.extend(channel.receive(micros, line, &packet(starts[index]..starts[index + 1])));
        }
        let heartbeat = Header::heartbeat(session(), Sequence(end));
        out.extend(channel.receive(micros, Line::A, heartbeat.as_bytes()));
        for _ in 0..10_000 {
            let Some(deadline) = channel.arbiter.poll_timeout() else { break };
            micros = micros.max(deadline.0 / 1_000);
            out.extend(channel.advance_to(micros));
            if let Some(request) = channel.arbiter.poll_request() {
                let first = request.sequence.0;
                let answer = packet(first..first + u64::from(request.message_count));
                out.extend(channel.receive(micros, Line::Recovery, &answer));
            }
        }
        prop_assert_eq!(out, messages(1..end));
        let counters = channel.arbiter.counters();
        prop_assert_eq!(counters.gaps_opened, counters.gaps_healed());
        prop_assert_eq!(counters.messages_lost, 0);
        prop_assert_eq!(counters.lines.iter().map(|line| line.first_messages).sum::<u64>(), end - 1);
    }
}

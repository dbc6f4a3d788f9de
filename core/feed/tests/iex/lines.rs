//! Arbitration of IEX-TP segments from two lines.

use tickpath_feed::{Arbiter, ArbiterConfig, IexRequest, IexStream, IexTp, Line, MessageListener};
use tickpath_iex::{Feed, SegmentBuilder};
use tickpath_types::{Nanos, Sequence};

#[derive(Default)]
struct Seen {
    numbers: Vec<u64>,
    lost: u64,
    restarts: u64,
}

impl MessageListener<IexStream> for Seen {
    fn on_message(&mut self, sequence: Sequence, _: &[u8]) {
        self.numbers.push(sequence.0);
    }
    fn on_lost(&mut self, _: Sequence, count: u64) {
        self.lost += count;
    }
    fn on_restart(&mut self) {
        self.restarts += 1;
    }
}

fn segment(first: u64, count: usize, sent_s: u64) -> Vec<u8> {
    let id = Feed::Deep10.protocol_id();
    let mut builder = SegmentBuilder::resuming([0; 128], id, 1, 9, Sequence(first), (first - 1) * 3);
    (0..count).for_each(|_| builder.push(b"z").expect("there is room"));
    builder.finish(Nanos::from_secs(sent_s)).to_vec()
}

/// The lines may divide messages into segments differently: only the messages' sequence numbers count.
#[test]
fn lines_that_cut_differently_make_one_sequence() {
    let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(ArbiterConfig::default()), Seen::default());
    let mut take = |line, bytes: &[u8]| arbiter.handle_packet(Nanos(1), line, bytes, &mut seen);
    take(Line::A, &segment(1, 2, 10));
    take(Line::B, &segment(1, 5, 10));
    take(Line::A, &segment(3, 5, 11));
    take(Line::B, &segment(9, 1, 11));
    take(Line::A, &segment(8, 2, 11));
    assert_eq!(seen.numbers, (1..=9).collect::<Vec<_>>());
    assert_eq!((seen.lost, arbiter.counters().gaps_healed_by_line), (0, 1));
}

#[test]
fn a_heartbeat_reveals_a_lost_tail() {
    let config = ArbiterConfig { reorder_wait: Nanos(1), ..ArbiterConfig::default() };
    let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(config), Seen::default());
    arbiter.handle_packet(Nanos(1), Line::A, &segment(1, 2, 10), &mut seen);
    arbiter.handle_packet(Nanos(2), Line::A, &segment(6, 0, 11), &mut seen);
    arbiter.handle_timeout(Nanos(5), &mut seen);
    let request = arbiter.poll_request().expect("something is missing");
    let stream = IexStream { protocol_id: 0x8004, channel: 1, session: 9 };
    assert_eq!(request, IexRequest { stream, first: 3, last: 5 });
    arbiter.handle_packet(Nanos(6), Line::Recovery, &segment(3, 3, 11), &mut seen);
    assert_eq!((seen.numbers.len(), seen.lost), (5, 0));
}

/// Several segments may answer a request: the arbiter repeats it only if no further segment follows.
#[test]
fn a_partial_answer_delays_the_next_request() {
    let config =
        ArbiterConfig { reorder_wait: Nanos(1), max_request_messages: 9, ..ArbiterConfig::default() };
    let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(config), Seen::default());
    let mut now = 10;
    arbiter.handle_packet(Nanos(now), Line::A, &segment(21, 1, 10), &mut seen);
    let mut request_after =
        |arbiter: &mut Arbiter<IexTp>, seen: &mut Seen, wait: u64, answer: Option<u64>| {
            now += wait;
            if let Some(first) = answer {
                arbiter.handle_packet(Nanos(now), Line::Recovery, &segment(first, 3, 11), seen);
            }
            arbiter.handle_timeout(Nanos(now), seen);
            arbiter.poll_request().map(|request| (request.first, request.last))
        };
    assert_eq!(request_after(&mut arbiter, &mut seen, 5, None), Some((1, 9)));
    assert_eq!(request_after(&mut arbiter, &mut seen, 5, Some(1)), None);
    assert_eq!(request_after(&mut arbiter, &mut seen, 5, Some(4)), None);
    assert_eq!(request_after(&mut arbiter, &mut seen, 5, Some(7)), Some((10, 18)), "it came whole");
    assert_eq!(request_after(&mut arbiter, &mut seen, 5, Some(10)), None);
    let timeout = config.request_timeout.0;
    assert_eq!(request_after(&mut arbiter, &mut seen, timeout - 1, None), None);
    assert_eq!(request_after(&mut arbiter, &mut seen, 1, None), Some((13, 20)), "the rest stays away");
}

#[test]
fn a_restart_within_a_session_differs_from_a_duplicate() {
    let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(ArbiterConfig::default()), Seen::default());
    for bytes in [segment(1, 2, 10), segment(3, 4, 11), segment(1, 2, 10)] {
        arbiter.handle_packet(Nanos(1), Line::A, &bytes, &mut seen);
    }
    assert_eq!((seen.restarts, seen.numbers.len()), (0, 6));
    for bytes in [segment(1, 0, 20), segment(1, 2, 21)] {
        arbiter.handle_packet(Nanos(1), Line::A, &bytes, &mut seen);
    }
    assert_eq!((seen.restarts, &seen.numbers[6..]), (1, &[1, 2][..]));
}

#[test]
fn damaged_segments_are_counted() {
    let (mut arbiter, mut seen) = (Arbiter::<IexTp>::new(ArbiterConfig::default()), Seen::default());
    let whole = segment(1, 2, 10);
    for len in 0..whole.len() {
        arbiter.handle_packet(Nanos(1), Line::A, &whole[..len], &mut seen);
    }
    assert_eq!((arbiter.counters().lines[0].malformed, seen.numbers.len()), (whole.len() as u64, 0));
}

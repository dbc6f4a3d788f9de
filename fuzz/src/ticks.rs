//! The properties of `tickpath-ticks`'s parsers.

use tickpath_ticks::message::{Hello, SUBSCRIBE, Tick};
use tickpath_ticks::parser::{Gap, ParserStats, StreamError, TickListener, TickParser};
use tickpath_ticks::request::{RequestError, RequestListener, RequestParser, SubscribePart};

/// All messages that a listener receives.
#[derive(Default, PartialEq, Debug)]
struct ReceivedMessages {
    ticks: Vec<Tick>,
    gaps: Vec<Gap>,
    corrupt: u64,
    unknown: Vec<Vec<u8>>,
    others: u64,
}

impl TickListener for ReceivedMessages {
    fn on_ticks(&mut self, ticks: &[Tick]) {
        assert!(!ticks.is_empty() && ticks.iter().all(|tick| tick.kind().is_some()));
        self.ticks.extend(ticks);
    }
    fn on_hello(&mut self, _: &Hello) {
        self.others += 1;
    }
    fn on_gap(&mut self, gap: Gap) {
        assert!(gap.lost > 0);
        self.gaps.push(gap);
    }
    fn on_corrupt(&mut self) {
        self.corrupt += 1;
    }
    fn on_unknown(&mut self, message: &[u8]) {
        assert!(message.len() >= 24 && message.len().is_multiple_of(8));
        self.unknown.push(message.to_vec());
    }
}

/// Checks a server's stream: the same messages, counters and error in any pieces.
pub fn ticks(data: &[u8]) {
    let read = |piece_len: usize| -> (ReceivedMessages, ParserStats, Result<(), StreamError>) {
        let (mut parser, mut received) = (TickParser::new(), ReceivedMessages::default());
        let result = data.chunks(piece_len).try_for_each(|piece| parser.feed(piece, &mut received));
        // Not compared: the bytes of a piece are counted as a whole, even if a part of it is invalid.
        (received, ParserStats { bytes: 0, ..*parser.stats() }, result)
    };
    let whole = read(usize::MAX);
    for piece_len in [1, 7, 60, 100] {
        assert_eq!(read(piece_len), whole, "in pieces of {piece_len}");
    }
    let (received, stats, result) = whole;
    assert_eq!(received.ticks.len() as u64, stats.ticks);
    assert_eq!((received.gaps.len() as u64, received.corrupt), (stats.gaps, stats.corrupt));
    if let Err(error) = result {
        assert_eq!(error.to_string().lines().count(), 1);
    }
}

/// Checks a client's stream: the same requests and error in any pieces, and no more names than were
/// announced.
pub fn ticks_requests(data: &[u8]) {
    #[derive(Default, PartialEq, Debug)]
    struct Requests(Vec<String>);
    impl RequestListener for Requests {
        fn on_hello(&mut self, hello: &Hello) {
            assert_ne!(hello.header.message_type, SUBSCRIBE);
            self.0.push("hello".to_owned());
        }
        fn on_subscribe(&mut self, part: SubscribePart<'_>) {
            assert!(part.names.len() as u64 <= u64::from(part.total) && part.total <= 300);
            self.0.push(format!("{part:?}"));
        }
        fn on_too_many(&mut self, request: u32, total: u32) {
            assert!(total > 300);
            self.0.push(format!("{request} {total}"));
        }
    }
    let read = |piece_len: usize| -> (Requests, Result<(), RequestError>) {
        let (mut parser, mut requests) = (RequestParser::new(300), Requests::default());
        let result = data.chunks(piece_len).try_for_each(|piece| parser.feed(piece, &mut requests));
        (requests, result)
    };
    let whole = read(usize::MAX);
    for piece_len in [1, 13] {
        assert_eq!(read(piece_len), whole, "in pieces of {piece_len}");
    }
}

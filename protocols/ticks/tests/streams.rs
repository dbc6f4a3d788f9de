//! Tests of the tick parser on streams that are fragmented, damaged or incomplete.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use tickpath_ticks::checksum::{fill_checksums, fill_delays_and_checksums, with_checksum};
use tickpath_ticks::message::*;
use tickpath_ticks::parser::{Gap, ParserStats, RESYNC_LEN_MAX, StreamError, TickListener, TickParser};
use tickpath_types::{InstrumentId, Nanos, Price, Side, Symbol, TradingState};
use zerocopy::IntoBytes;

/// A listener that records one line for each call, or for each tick of an `on_ticks` call.
#[derive(Default)]
struct Received(Vec<String>);

impl TickListener for Received {
    fn on_ticks(&mut self, ticks: &[Tick]) {
        assert!(!ticks.is_empty());
        for tick in ticks {
            let kind = match tick.kind().expect("parsers give out listed types alone") {
                TickKind::Quote(_) => "quote",
                TickKind::Trade(_) => "trade",
                TickKind::Status(_) => "status",
            };
            self.0.push(format!("{kind} {} of {}", tick.header.sequence, tick.header.instrument));
        }
    }
    fn on_hello(&mut self, hello: &Hello) {
        self.0.push(format!("hello {}", hello.session));
    }
    fn on_symbol(&mut self, symbol: &SymbolDefinition) {
        self.0.push(format!("symbol {:?}", symbol.symbol()));
    }
    fn on_heartbeat(&mut self, heartbeat: &Heartbeat) {
        self.0.push(format!("heartbeat {}", heartbeat.header.sequence));
    }
    fn on_subscribed(&mut self, subscribed: &Subscribed) {
        self.0.push(format!("subscribed {:?}", subscribed.scope()));
    }
    fn on_refused(&mut self, refused: &Refused) {
        self.0.push(format!("refused {:?}", refused.reason()));
    }
    fn on_skipped(&mut self, skipped: &Skipped) {
        self.0.push(format!("skipped {}", skipped.count));
    }
    fn on_end_of_stream(&mut self, end: &EndOfStream) {
        self.0.push(format!("end {:?}", end.reason()));
    }
    fn on_gap(&mut self, gap: Gap) {
        self.0.push(format!("gap {}..{} of {}", gap.expected, gap.found, gap.instrument));
    }
    fn on_corrupt(&mut self) {
        self.0.push("corrupt".into());
    }
    fn on_unknown(&mut self, message: &[u8]) {
        self.0.push(format!("unknown {:02x} of {} bytes", message[0], message.len()));
    }
}

fn place(sequence: u64, instrument: u16, symbol_sequence: u32) -> Place {
    Place { instrument: InstrumentId(instrument), symbol_sequence, sequence }
}

fn quote(sequence: u64, instrument: u16, symbol_sequence: u32) -> Vec<u8> {
    let (bid, ask) = ((Price(10), 1), (Price(20), 2));
    let place = place(sequence, instrument, symbol_sequence);
    with_checksum(Quote::new(place, Nanos(sequence), bid, ask, 3)).as_bytes().to_vec()
}

fn trade(sequence: u64) -> Vec<u8> {
    let trade = Trade::new(place(sequence, 2, 1), Nanos(5), Price(15), 3, Some(Side::Sell), 9, 0);
    with_checksum(trade).as_bytes().to_vec()
}

fn hello(next_sequence: u64) -> Vec<u8> {
    with_checksum(Hello::server(next_sequence, 77, 1000, 3, Nanos(1))).as_bytes().to_vec()
}

fn heartbeat(next_sequence: u64) -> Vec<u8> {
    with_checksum(Heartbeat::new(next_sequence, Nanos(2))).as_bytes().to_vec()
}

/// Creates a message of an unlisted type.
fn unknown(message_type: u8, len: usize, sequence: u64) -> Vec<u8> {
    let mut bytes = Header::new(message_type, len, place(sequence, 1, 1)).as_bytes().to_vec();
    bytes.resize(len - CHECKSUM_LEN, 0xaa);
    let checksum = tickpath_lockfree::crc32c::checksum(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

fn read(stream: &[u8], piece_len: usize) -> (Vec<String>, ParserStats, Result<(), StreamError>) {
    let (mut parser, mut received) = (TickParser::new(), Received::default());
    let result = stream.chunks(piece_len).try_for_each(|piece| parser.feed(piece, &mut received));
    (received.0, *parser.stats(), result)
}

/// Checks that the parser makes the `expected` calls for `messages`, read at once or in pieces of a length.
#[track_caller]
fn check(messages: &[Vec<u8>], expected: &[&str]) -> ParserStats {
    let stream = messages.concat();
    let (received, stats, result) = read(&stream, usize::MAX);
    assert_eq!(
        (received.iter().map(String::as_str).collect::<Vec<_>>(), result),
        (expected.to_vec(), Ok(()))
    );
    for len in [1, 2, 7, 8, 15, 16, 17, 31, 55, 56, 57, 100, 113] {
        assert_eq!(read(&stream, len), (received.clone(), stats, Ok(())), "in pieces of {len}");
    }
    stats
}

#[test]
fn every_message_is_read() {
    let status = with_checksum(Status::new(place(3, 3, 1), Nanos(9), TradingState::Halted, 0));
    let alpha = Symbol::new("ALPHA").unwrap();
    let stats = check(
        &[
            hello(1),
            with_checksum(Subscribed::new(1, 1, Scope::All, 3)).as_bytes().to_vec(),
            with_checksum(SymbolDefinition::new(place(1, 1, 1), alpha, Price(10), Price(1), 5))
                .as_bytes()
                .to_vec(),
            quote(1, 1, 1),
            trade(2),
            status.as_bytes().to_vec(),
            heartbeat(4),
            with_checksum(Refused::new(4, 2, RefusedReason::TooManySymbols, 3)).as_bytes().to_vec(),
            with_checksum(Skipped::new(10, 6)).as_bytes().to_vec(),
            quote(10, 1, 9),
            with_checksum(EndOfStream::new(11, EndReason::ServerStops, Nanos(3))).as_bytes().to_vec(),
        ],
        &[
            "hello 77",
            "subscribed All",
            "symbol Some(\"ALPHA\")",
            "quote 1 of 1",
            "trade 2 of 2",
            "status 3 of 3",
            "heartbeat 4",
            "refused Some(TooManySymbols)",
            "skipped 6",
            "quote 10 of 1",
            "end Some(ServerStops)",
        ],
    );
    assert_eq!((stats.ticks, stats.others, stats.skipped, stats.gaps, stats.corrupt), (4, 7, 6, 0, 0));
}

#[test]
fn missing_numbers_are_a_gap_and_old_ones_are_dropped() {
    let stats = check(
        &[
            hello(5),
            quote(5, 1, 1),
            quote(9, 1, 5),
            quote(8, 1, 4),
            quote(9, 1, 5),
            quote(10, 1, 6),
            heartbeat(13),
        ],
        &[
            "hello 77",
            "quote 5 of 1",
            "gap 6..9 of 0",
            "quote 9 of 1",
            "quote 10 of 1",
            "gap 11..13 of 0",
            "heartbeat 13",
        ],
    );
    assert_eq!((stats.gaps, stats.lost, stats.duplicates), (2, 5, 2));
}

#[test]
fn each_listed_symbol_has_separate_sequence_numbers() {
    let symbol = |instrument, next| {
        let name = Symbol::new("X").unwrap();
        with_checksum(SymbolDefinition::new(place(50, instrument, next), name, Price(1), Price(1), 0))
            .as_bytes()
            .to_vec()
    };
    let stats = check(
        &[
            hello(40),
            with_checksum(Subscribed::new(50, 1, Scope::Listed, 2)).as_bytes().to_vec(),
            symbol(1, u32::MAX),
            symbol(3, 7),
            quote(60, 1, u32::MAX),
            quote(70, 1, 0),
            quote(80, 3, 9),
            quote(81, 3, 8),
            heartbeat(99),
            with_checksum(Skipped::new(120, 4)).as_bytes().to_vec(),
            quote(120, 3, 30),
            quote(121, 3, 31),
        ],
        &[
            "hello 77",
            "subscribed Listed",
            "symbol Some(\"X\")",
            "symbol Some(\"X\")",
            "quote 60 of 1",
            "quote 70 of 1",
            "gap 7..9 of 3",
            "quote 80 of 3",
            "heartbeat 99",
            "skipped 4",
            "quote 120 of 3",
            "quote 121 of 3",
        ],
    );
    assert_eq!((stats.gaps, stats.lost, stats.duplicates, stats.skipped), (1, 2, 1, 4));
}

#[test]
fn unknown_types_are_skipped_by_length_and_count_if_numbered() {
    let stats = check(
        &[
            hello(1),
            unknown(0x04, 24, 1),
            quote(2, 1, 1),
            unknown(0x7f, 2040, 3),
            unknown(0x3f, 56, 3),
            quote(4, 1, 2),
        ],
        &[
            "hello 77",
            "unknown 04 of 24 bytes",
            "quote 2 of 1",
            "unknown 7f of 2040 bytes",
            "unknown 3f of 56 bytes",
            "quote 4 of 1",
        ],
    );
    assert_eq!((stats.unknown, stats.gaps), (3, 0));
}

#[test]
fn a_damaged_byte_loses_only_its_message() {
    let whole = [hello(1), quote(1, 1, 1), quote(2, 1, 2), quote(3, 1, 3)].concat();
    for at in 112..168 {
        for bit in 0..8 {
            let mut stream = whole.clone();
            stream[at] ^= 1 << bit;
            for len in [usize::MAX, 1, 100] {
                let (received, stats, result) = read(&stream, len);
                let expected = ["hello 77", "quote 1 of 1", "corrupt", "gap 2..3 of 0", "quote 3 of 1"];
                // With a changed type or length, the message may look like the beginning of a longer one.
                let is_other = at < 114 && received.len() == 2;
                assert!(is_other || received == expected, "byte {at} bit {bit}: {received:?}");
                assert!(is_other || (stats.corrupt, stats.lost, result) == (1, 1, Ok(())));
            }
        }
    }
}

#[test]
fn the_parser_resyncs_after_removed_and_inserted_bytes() {
    let before = [hello(1), quote(1, 1, 1)].concat();
    let after = [quote(3, 1, 3), quote(4, 1, 4)].concat();
    let missing_half = [&before[..], &quote(2, 1, 2)[..24], &after[..]].concat();
    let garbage = [&before[..], &[0x5a; 800], &after[..]].concat();
    for stream in [missing_half, garbage] {
        for len in [usize::MAX, 1, 33, 100] {
            let (received, stats, result) = read(&stream, len);
            let expected =
                ["hello 77", "quote 1 of 1", "corrupt", "gap 2..3 of 0", "quote 3 of 1", "quote 4 of 1"];
            assert_eq!((received, result), (expected.map(String::from).to_vec(), Ok(())), "{len}");
            assert_eq!((stats.corrupt, stats.lost, stats.ticks), (1, 1, 3));
        }
    }
}

#[test]
fn a_stream_of_garbage_ends() {
    let garbage = vec![0; RESYNC_LEN_MAX as usize + 100];
    for len in [usize::MAX, 100, 4096] {
        let (_, stats, result) = read(&[hello(1), garbage.clone()].concat(), len);
        assert_eq!((result, stats.corrupt), (Err(StreamError::Lost), 1));
    }
    let (mut parser, mut received) = (TickParser::new(), Received::default());
    assert_eq!(parser.feed(b"HTTP/1.1 400 Bad Request\r\n", &mut received), Err(StreamError::NotTicks));
    assert_eq!(parser.feed(&hello(1), &mut received), Err(StreamError::NotTicks), "until it is restarted");
    parser.restart();
    assert_eq!(parser.feed(&hello(1), &mut received), Ok(()));
    assert_eq!(parser.feed(&hello(1), &mut received), Err(StreamError::SecondHello));
}

#[test]
fn unreadable_peers_are_distinguished() {
    let mut other_version = hello(1);
    other_version[24] = 2;
    let mut damaged = hello(1);
    damaged[33] ^= 1;
    let refused = with_checksum(Refused::new(0, 0, RefusedReason::ClientsFull, 0)).as_bytes().to_vec();
    for len in [usize::MAX, 1, 20] {
        assert_eq!(read(&other_version, len).2, Err(StreamError::Version(2)));
        assert_eq!(read(&damaged, len).2, Err(StreamError::NotTicks));
        assert_eq!(read(&quote(1, 1, 1), len).2, Err(StreamError::NotTicks));
        assert_eq!(read(&refused, len).0, ["refused Some(ClientsFull)"]);
    }
}

#[test]
fn a_truncated_stream_delivers_complete_messages() {
    let messages = [hello(1), quote(1, 1, 1), heartbeat(2), trade(2), unknown(0x60, 120, 3)];
    let stream = messages.concat();
    let mut ends = vec![0];
    messages.iter().for_each(|message| ends.push(ends.last().unwrap() + message.len()));
    for len in 0..=stream.len() {
        let (received, stats, result) = read(&stream[..len], usize::MAX);
        assert_eq!(received.len(), ends.iter().filter(|end| **end <= len).count() - 1, "{len}");
        assert_eq!((result, stats.corrupt, stats.bytes), (Ok(()), 0, len as u64));
    }
}

#[test]
fn counters_outlive_a_connection() {
    let (mut parser, mut received) = (TickParser::new(), Received::default());
    for _ in 0..2 {
        parser.feed(&[hello(1), quote(1, 1, 1), quote(2, 1, 2)].concat(), &mut received).unwrap();
        parser.feed(&[1, 2, 3], &mut received).unwrap();
        assert_eq!(parser.next_sequence(), 3);
        parser.restart();
    }
    assert_eq!((parser.stats().ticks, parser.next_sequence()), (4, 0));
}

/// Generates streams of ticks, heartbeats, `Skipped` and unlisted messages, with gaps, duplicates and damage.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let message = (0..10_u8, 0..4_u64, any::<u16>());
    proptest::collection::vec(message, 1..80).prop_map(|messages| {
        let (mut stream, mut sequence) = (hello(1), 1);
        for (kind, jump, flip) in messages {
            let mut bytes = match kind {
                0..6 => quote(sequence, 1, sequence as u32),
                6 => trade(sequence),
                7 => heartbeat(sequence),
                8 => unknown(0x05 + jump as u8, 24 + 8 * jump as usize, sequence),
                _ => with_checksum(Skipped::new(sequence, jump)).as_bytes().to_vec(),
            };
            match flip % 16 {
                0 => {
                    let at = usize::from(flip / 16) % bytes.len();
                    bytes[at] ^= 1 << (flip % 8);
                }
                1 => bytes.truncate(usize::from(flip / 16) % bytes.len() / 8 * 8),
                2 => sequence += jump,
                3 => sequence = sequence.saturating_sub(jump).max(1),
                _ => {}
            }
            sequence += u64::from(kind < 7 || kind == 8);
            stream.extend(bytes);
        }
        stream
    })
}

proptest! {
    #[test]
    fn any_fragmentation_gives_the_same_result(stream in streams(), cuts in proptest::collection::vec(1..300_usize, 1..100)) {
        let whole = read(&stream, usize::MAX);
        let (mut parser, mut received, mut rest) = (TickParser::new(), Received::default(), &stream[..]);
        let mut result = Ok(());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() || result.is_err() {
                break;
            }
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            result = parser.feed(now, &mut received);
            rest = later;
        }
        let mut stats = *parser.stats();
        if result.is_err() {
            // `bytes` counts whole pieces, so after a failure it depends on the fragmentation.
            stats.bytes = whole.1.bytes;
        }
        prop_assert_eq!((received.0, stats, result), whole);
    }

    #[test]
    fn any_bytes_after_a_hello_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..4000), len in 1..200_usize) {
        let stream = [hello(1), bytes].concat();
        let (received, stats, result) = read(&stream, len);
        prop_assert!(result.is_ok() && stats.ticks <= received.len() as u64);
    }

    #[test]
    fn checksums_filled_together_equal_those_filled_alone(prices in proptest::collection::vec(any::<i64>(), 0..20)) {
        let quotes: Vec<Quote> = prices
            .iter()
            .map(|price| Quote::new(place(1, 1, 1), Nanos(1), (Price(*price), 1), (NO_PRICE, 0), u32::MAX))
            .collect();
        let mut together: Vec<Tick> = quotes.iter().map(|quote| Tick::from(*quote)).collect();
        fill_checksums(&mut together);
        let alone: Vec<Tick> = quotes.iter().map(|quote| Tick::from(with_checksum(*quote))).collect();
        prop_assert_eq!(&together, &alone);
        // Each quote was created at 1 ns and is sent at 1,001 ns.
        fill_delays_and_checksums(&mut together, Nanos(1_001));
        let sent = |quote: &Quote| Tick::from(with_checksum(Quote { send_delay_ns: 1_000.into(), ..*quote }));
        prop_assert_eq!(together, quotes.iter().map(sent).collect::<Vec<_>>());
    }
}

//! Tests of the request parser: it parses clients' messages, and refuses invalid ones.
#![allow(clippy::unwrap_used)]

use tickpath_ticks::checksum::with_checksum;
use tickpath_ticks::message::{Heartbeat, Hello, Quote, SUBSCRIBE_NAMES_MAX};
use tickpath_ticks::request::{
    RequestError, RequestListener, RequestParser, SubscribePart, encode_subscribe,
};
use tickpath_types::{Nanos, Price, Symbol};
use zerocopy::IntoBytes;

#[derive(Default)]
struct Received(Vec<String>);

impl RequestListener for Received {
    fn on_hello(&mut self, hello: &Hello) {
        self.0.push(format!("hello {}", hello.session));
    }
    fn on_subscribe(&mut self, part: SubscribePart<'_>) {
        let position = (if part.is_first { "first" } else { "" }, if part.is_last { "last" } else { "" });
        self.0.push(format!(
            "{} of {}: {} {}{}",
            part.request,
            part.total,
            part.names.len(),
            position.0,
            position.1
        ));
    }
    fn on_too_many(&mut self, request: u32, total: u32) {
        self.0.push(format!("{request}: {total} are too many"));
    }
    fn on_heartbeat(&mut self) {
        self.0.push("heartbeat".into());
    }
}

const SYMBOLS_MAX: u32 = 600;

fn read(stream: &[u8], piece_len: usize) -> (Vec<String>, Result<(), RequestError>) {
    let (mut parser, mut received) = (RequestParser::new(SYMBOLS_MAX), Received::default());
    let result = stream.chunks(piece_len).try_for_each(|piece| parser.feed(piece, &mut received));
    (received.0, result)
}

#[track_caller]
fn check(stream: &[u8], expected: &[&str], result: Result<(), RequestError>) {
    let expected: Vec<String> = expected.iter().map(|line| (*line).to_owned()).collect();
    for len in [usize::MAX, 1, 16, 100] {
        assert_eq!(read(stream, len), (expected.clone(), result), "in pieces of {len}");
    }
}

fn hello() -> Vec<u8> {
    with_checksum(Hello::client(5, Nanos(1))).as_bytes().to_vec()
}

fn subscribe(request: u32, count: usize) -> Vec<u8> {
    let symbols: Vec<Symbol> = (0..count).map(|at| Symbol::new(&format!("S{at}")).unwrap()).collect();
    let mut out = Vec::new();
    encode_subscribe(request, &symbols, &mut out);
    out
}

fn heartbeat() -> Vec<u8> {
    with_checksum(Heartbeat::new(0, Nanos(0))).as_bytes().to_vec()
}

#[test]
fn requests_are_read_whole_and_in_parts() {
    let stream = [hello(), subscribe(1, 0), subscribe(2, 3), heartbeat(), subscribe(3, 600)].concat();
    check(
        &stream,
        &[
            "hello 5",
            "1 of 0: 0 firstlast",
            "2 of 3: 3 firstlast",
            "heartbeat",
            "3 of 600: 251 first",
            "3 of 600: 251 ",
            "3 of 600: 98 last",
        ],
        Ok(()),
    );
}

#[test]
fn a_million_symbols_are_refused_at_the_first_part() {
    let stream = [hello(), subscribe(1, 1_000), subscribe(2, 1)].concat();
    check(&stream, &["hello 5", "1: 1000 are too many", "2 of 1: 1 firstlast"], Ok(()));
    let mut million = subscribe(9, SUBSCRIBE_NAMES_MAX);
    million[20..24].copy_from_slice(&1_000_000_u32.to_le_bytes());
    let checksum = tickpath_lockfree::crc32c::checksum(&million[..2036]);
    million[2036..].copy_from_slice(&checksum.to_le_bytes());
    check(&[hello(), million].concat(), &["hello 5", "9: 1000000 are too many"], Ok(()));
}

#[test]
fn messages_out_of_place_are_refused() {
    let malformed = Err(RequestError::Malformed);
    check(b"GET / HTTP/1.1\r\n\r\n", &[], malformed);
    check(&subscribe(1, 0), &[], malformed);
    check(&heartbeat(), &[], malformed);
    check(&[hello(), hello()].concat(), &["hello 5"], malformed);
    let quote = with_checksum(Quote::new(Default::default(), Nanos(1), (Price(1), 1), (Price(2), 1), 0));
    check(&[&hello()[..], quote.as_bytes()].concat(), &["hello 5"], malformed);
    // Before a request is complete, another request, or more names than it announced, is an error.
    let part = &subscribe(1, 300)[..2040];
    check(&[&hello()[..], part, &subscribe(2, 1)].concat(), &["hello 5", "1 of 300: 251 first"], malformed);
    check(&[&hello()[..], part, part].concat(), &["hello 5", "1 of 300: 251 first"], malformed);
    let mut other = hello();
    other[24] = 9;
    check(&other, &[], Err(RequestError::Version(9)));
}

#[test]
fn every_damaged_byte_and_every_truncation_is_detected() {
    let stream = [hello(), subscribe(1, 3)].concat();
    for len in 0..stream.len() {
        let (received, result) = read(&stream[..len], usize::MAX);
        assert_eq!((received.len(), result), (usize::from(len >= 56), Ok(())), "{len}");
    }
    for at in 0..stream.len() {
        for bit in 0..8 {
            let mut damaged = stream.clone();
            damaged[at] ^= 1 << bit;
            let (received, result) = read(&damaged, usize::MAX);
            // If the flipped bit increases the length in the header, the parser waits for more bytes.
            let is_longer = at % 56 == 1;
            assert!(is_longer || result.is_err(), "byte {at} bit {bit}");
            assert!(received.len() < 2);
        }
    }
}

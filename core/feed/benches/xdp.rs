//! Time per message of NYSE's Integrated Feed: reading a capture in memory, checking packet headers and
//! sequence numbers, decoding, and building full books.
//!
//! The capture is a synthetic day. After every pass, the books must equal those of the reference model.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a bench reads the clock

use std::hint::black_box;
use std::time::Instant;

use tickpath_book::{BookLimits, BooksById, FastBooks, Indexed, PackedBooks};
use tickpath_feed::xdp::{BookBuilder, Channel, Message};
use tickpath_feed::{self as feed, IgnoreUpdates, MessageBooks};
use tickpath_flowgen::{ItchDay, ItchDayConfig, XdpDay, XdpDayConfig, append_record, pcap_header};
use tickpath_nasdaq::itch50::framing::{Frames, Lengths};
use tickpath_nyse::{Messages, Packet};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, Nanos, Sequence};

const MIDNIGHT: Nanos = Nanos::from_secs(1_795_150_800);
/// Time of day of the close, which empties all books; the capture ends before it.
const CLOSE: Nanos = Nanos::from_secs(20 * 3_600);
/// Bytes before the payload: record header, Ethernet, IPv4, UDP.
const BEFORE_PAYLOAD: usize = 16 + 14 + 20 + 8;

/// Returns a capture of the day up to [`CLOSE`], and the numbers of messages and packets in it.
fn capture(config: XdpDayConfig) -> (Vec<u8>, u64, u64) {
    let mut bytes = pcap_header().to_vec();
    let mut day = XdpDay::new(config).unwrap();
    let (mut messages, mut packets) = (0, 0);
    while let Some(packet) = day.next_packet().filter(|packet| packet.ts_ns < (MIDNIGHT.0 + CLOSE.0)) {
        append_record(&packet, &mut bytes);
        messages += u64::from(packet.message_count);
        packets += 1;
    }
    (bytes, messages, packets)
}

/// Iterator over a capture's messages; checks each channel's packet sequence numbers.
struct Walk<'a> {
    rest: &'a [u8],
    channel: Channel,
    next: [u32; 17],
    messages: Option<Messages<'a>>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = Message<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Message<'a>> {
        loop {
            if let Some((sequence, message)) = self.messages.as_mut().and_then(Messages::next) {
                return Some(Message::new(self.channel, sequence, message));
            }
            let len = u32::from_le_bytes(*self.rest.get(8..)?.first_chunk()?) as usize;
            let (record, rest) = self.rest.split_at_checked(16 + len)?;
            self.rest = rest;
            let channel = record[BEFORE_PAYLOAD - 8 - 1] - 20;
            let packet = Packet::parse_header(&record[BEFORE_PAYLOAD..]).unwrap();
            let next = &mut self.next[usize::from(channel)];
            assert!(packet.sequence() == *next, "the capture has every packet");
            *next += u32::from(packet.message_count());
            (self.channel, self.messages) = (Channel(channel), Some(packet.messages()));
        }
    }
}

fn pass<B: BooksById>(config: &ItchDayConfig, capture: &[u8], messages: u64) -> (f64, u64) {
    let limits = BookLimits::new(InstrumentId(config.symbols as u16), config.live + config.live / 4 + 1_000);
    let mut builder = BookBuilder::new(B::new(limits), MIDNIGHT);
    let start = Instant::now();
    let walk = Walk { rest: &black_box(capture)[24..], channel: Channel(0), next: [1; 17], messages: None };
    let count = builder.handle_batch(walk, &mut IgnoreUpdates);
    let elapsed = start.elapsed();
    assert_eq!((count, builder.instruments().contradictions()), (messages, 0));
    (elapsed.as_nanos() as f64 / messages as f64, builder.instruments().books().state_hash())
}

// Separate functions per type of books, so that a profiler attributes costs to each type.
#[inline(never)]
fn direct_pass(config: &ItchDayConfig, capture: &[u8], messages: u64) -> (f64, u64) {
    pass::<PackedBooks>(config, capture, messages)
}

#[inline(never)]
fn indexed_pass(config: &ItchDayConfig, capture: &[u8], messages: u64) -> (f64, u64) {
    pass::<Indexed<FastBooks<()>>>(config, capture, messages)
}

/// Returns the cost of the same order flow in ITCH, for comparison, in nanoseconds per message.
#[inline(never)]
fn itch_pass(config: &ItchDayConfig, file: &[u8]) -> f64 {
    let limits = BookLimits::new(InstrumentId(config.symbols as u16), config.live + config.live / 4 + 1_000);
    let mut builder = feed::BookBuilder::new(PackedBooks::new(limits));
    let start = Instant::now();
    let frames = Frames::new(black_box(file), Lengths::Prefixed).map_while(Result::ok);
    let count = builder.handle_batch(Sequence(1), frames, &mut IgnoreUpdates);
    assert_eq!(count, config.messages);
    start.elapsed().as_nanos() as f64 / count as f64
}

fn main() {
    // `cargo test --benches` passes no `--bench`: then run once, on a small input, as a smoke test.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (divisor, passes) = if is_bench { (4, 7) } else { (1_000, 1) };
    let flow = ItchDayConfig::itch_500().scaled(divisor);
    let flow = if is_bench { ItchDayConfig { symbols: 500, live: 200_000, ..flow } } else { flow };
    let mut itch = Vec::new();
    let mut day = ItchDay::new(flow).unwrap();
    while day.append_frames(10_000, &mut itch) > 0 {}
    for window_ns in [100_000, 1_000_000_000] {
        let config = XdpDayConfig { flow, window_ns, ..XdpDayConfig::xdp_500() };
        let (bytes, messages, packets) = capture(config);
        let (_, hash) = pass::<Indexed<ReferenceBooks>>(&flow, &bytes, messages);
        let mut best = [f64::INFINITY; 3];
        for _ in 0..passes {
            let (direct, of_direct) = direct_pass(&flow, &bytes, messages);
            let (indexed, of_indexed) = indexed_pass(&flow, &bytes, messages);
            assert_eq!([of_direct, of_indexed], [hash; 2], "the books are those of the reference model");
            let each = [direct, indexed, itch_pass(&flow, &itch)];
            best = std::array::from_fn(|at| each[at].min(best[at]));
        }
        let [direct, indexed, itch] = best;
        println!(
            "xdp: direct {direct:.1} ns, indexed {indexed:.1} ns, the same flow in ITCH {itch:.1} ns a message; \
             {messages} messages, {:.1} a packet",
            messages as f64 / packets as f64
        );
    }
}

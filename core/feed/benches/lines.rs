//! Time per message of a live channel: arbitration of two lines (full packets, in memory), decoding, and a
//! day's books, with and without a listener for updates. The final books must equal books that are built with
//! one call per message.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a bench reads the clock

use std::hint::black_box;
use std::time::Instant;

use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_feed::{
    ArbiterConfig, BookBuilder, Channel, ChannelConfig, IgnoreUpdates, Line, MessageBooks, MoldUdp64,
    UpdateListener,
};
use tickpath_flowgen::{ItchDay, ItchDayConfig};
use tickpath_nasdaq::itch50::MESSAGE_LEN_MAX;
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, PacketBuilder, Session};
use tickpath_types::{InstrumentId, MarketUpdate, Nanos, Sequence};

/// Number of packets handled from line A before the same packets of line B, like a batch from a socket.
const BATCH: usize = 32;

struct Updates(u64);

impl UpdateListener for Updates {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0 += u64::from(black_box(update).kind);
    }
}

fn limits(config: &ItchDayConfig) -> BookLimits {
    BookLimits::new(InstrumentId(config.symbols as u16), config.live * 2 + 1_000)
}

/// Returns a day's messages in full packets, and the hash of the books after them.
fn packets(config: ItchDayConfig) -> (Vec<Vec<u8>>, u64) {
    let mut builder = PacketBuilder::new([0; DATAGRAM_LEN_MAX], Session::BLANK, Sequence(1));
    let mut reference = BookBuilder::new(PackedBooks::new(limits(&config)));
    let mut packets = vec![];
    let mut day = ItchDay::new(config).unwrap();
    let mut buffer = [0; MESSAGE_LEN_MAX];
    while let Some(len) = day.next_message(&mut buffer) {
        let message = &buffer[..len];
        reference.handle_message(Sequence(1), message, &mut IgnoreUpdates);
        if !builder.has_capacity_for(message.len()) {
            packets.push(builder.finish().to_vec());
            builder.start_next();
        }
        builder.push(message).unwrap();
    }
    packets.push(builder.finish().to_vec());
    (packets, reference.books().state_hash())
}

/// Runs one pass over both lines; returns the nanoseconds per message.
fn pass(packets: &[Vec<u8>], config: &ItchDayConfig, hash: u64, out: &mut impl UpdateListener) -> f64 {
    let core = ChannelConfig::new(ArbiterConfig::default(), Some(1 << 16));
    let books = BookBuilder::new(PackedBooks::new(limits(config)));
    let mut channel = Channel::<_, MoldUdp64>::new(&core, books);
    let start = Instant::now();
    for batch in packets.chunks(BATCH) {
        for line in [Line::A, Line::B] {
            for packet in batch {
                channel.handle_packet(Nanos(1), line, packet, out);
            }
        }
    }
    let elapsed = start.elapsed();
    assert_eq!(channel.books().books().state_hash(), hash);
    elapsed.as_nanos() as f64 / config.messages as f64
}

fn main() {
    // `cargo test --benches` passes no `--bench`: then run once, on a small input, as a smoke test.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let config = ItchDayConfig::itch_8000().scaled(if is_bench { 20 } else { 2_000 });
    let (packets, hash) = packets(config);
    let (mut without_updates, mut with_updates) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..if is_bench { 7 } else { 1 } {
        without_updates = without_updates.min(pass(&packets, &config, hash, &mut IgnoreUpdates));
        with_updates = with_updates.min(pass(&packets, &config, hash, &mut Updates(0)));
    }
    println!(
        "lines: {with_updates:.1} ns a message with updates, {without_updates:.1} ns for the books alone"
    );
}

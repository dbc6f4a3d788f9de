//! Cost of the feed's core per message: arbitration, decoding, books, and the outgoing update.
//!
//! The messages come from a venue with seeded background flow, one packet for each command that causes
//! messages. After every pass, the books must equal the venue's.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // a bench reads the clock

use std::hint::black_box;
use std::time::Instant;

use tickpath_book::{BookLimits, BooksById, FastBooks, OrderBooks, PackedBooks};
use tickpath_feed::{
    Arbiter, ArbiterConfig, BookBuilder, Line, MessageBooks, MessageListener, UpdateListener,
};
use tickpath_flowgen::{BackgroundFlow, BackgroundFlowConfig};
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits};
use tickpath_nasdaq::itch50::market_event_message;
use tickpath_nasdaq::moldudp64::{PacketBuilder, Session};
use tickpath_types::{
    Instrument, InstrumentId, MarketEvent, MarketUpdate, Nanos, Price, Qty, Sequence, SessionId, Symbol,
    TradingState,
};

const INSTRUMENTS: u16 = 8;

struct Sink {
    builder: BookBuilder<PackedBooks>,
    updates: Updates,
}

#[derive(Default)]
struct Updates(u64);

impl UpdateListener for Updates {
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0 = self.0.wrapping_add(black_box(*update).sequence);
    }
}

impl MessageListener for Sink {
    fn on_message(&mut self, sequence: Sequence, message: &[u8]) {
        self.builder.handle_message(sequence, message, &mut self.updates);
    }
    fn on_lost(&mut self, _: Sequence, _: u64) {
        panic!("nothing is lost here");
    }
}

fn instruments() -> Vec<Instrument> {
    (1..=INSTRUMENTS)
        .map(|id| {
            let symbol = Symbol::new(&format!("SYM{id}")).unwrap();
            let instrument = Instrument::in_cents(InstrumentId(id), symbol, Price(1_000_000));
            Instrument { max_qty: Qty(100_000), ..instrument }
        })
        .collect()
}

/// Returns the packets of a venue with `actions` of background flow, the number of messages, and the hash of
/// the venue's books.
fn packets(actions: usize) -> (Vec<Vec<u8>>, u64, u64) {
    let instruments = instruments();
    let mut engine: Engine<FastBooks<_>> = Engine::new(&instruments, EngineLimits::default()).unwrap();
    let mut background_flow = BackgroundFlow::new(
        BackgroundFlowConfig { sessions: 1, ..BackgroundFlowConfig::default() },
        &instruments,
    )
    .unwrap();
    let mut packet = PacketBuilder::new(vec![0; 60_000], Session::BLANK, Sequence(1));
    let (mut packets, mut messages) = (Vec::new(), 0);
    let opening = instruments.iter().map(|instrument| CommandKind::OpenInstrument {
        instrument: instrument.id,
        state: TradingState::Trading,
    });
    let flow = (0..actions)
        .map(|_| CommandKind::Order(background_flow.poll(Nanos::MAX).expect("the flow is endless").request));
    for (kind, sequence) in opening.chain(flow).zip(1..) {
        let mut events: Vec<MarketEvent> = vec![];
        let command =
            Command { sequence: Sequence(sequence), session: SessionId(1), ts: Nanos(sequence), kind };
        engine.apply(&command, &mut events);
        for event in &events {
            let instrument = instruments.get(usize::from(event.instrument.0) - 1);
            packet.push(&market_event_message(event, instrument).unwrap()).unwrap();
            messages += 1;
        }
        if !packet.is_empty() {
            packets.push(packet.finish().to_vec());
            packet.start_next();
        }
    }
    (packets, messages, engine.books().state_hash())
}

fn main() {
    // `cargo test --benches` passes no `--bench`: then run once, on a small input, as a smoke test.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let (packets, messages, hash) = packets(if is_bench { 400_000 } else { 4_000 });
    let mut best = f64::INFINITY;
    for _ in 0..if is_bench { 9 } else { 1 } {
        let books = PackedBooks::new(BookLimits::new(InstrumentId(INSTRUMENTS), 1 << 18));
        let builder = BookBuilder::new(books);
        let mut sink = Sink { builder, updates: Updates::default() };
        let mut arbiter: Arbiter = Arbiter::new(ArbiterConfig::default());
        let start = Instant::now();
        for packet in &packets {
            arbiter.handle_packet(Nanos(1), Line::A, packet, &mut sink);
        }
        let elapsed = start.elapsed();
        assert_eq!(sink.builder.books().state_hash(), hash, "the books are the venue's");
        assert_eq!(arbiter.next_sequence().0, messages + 1);
        best = best.min(elapsed.as_nanos() as f64 / messages as f64);
    }
    println!("packets: {best:.1} ns a message, {messages} messages in {} packets", packets.len());
}

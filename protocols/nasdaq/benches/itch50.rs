//! Benchmarks of ITCH 5.0 in memory, on one thread: decoding messages, and publishing events into packets.
//!
//! Of 100 messages 47 add, 42 delete, 6 execute, 4 replace and 1 cancel. Their order is random, which is
//! harder for the branch predictor than a real feed. Another benchmark decodes the same messages sorted
//! into runs of one type, the easiest order to predict.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tickpath_nasdaq::itch50::framing::{Frames, Lengths};
use tickpath_nasdaq::itch50::{self, *};
use tickpath_nasdaq::moldudp64::{DATAGRAM_LEN_MAX, Packet, PacketBuilder, Session};
use tickpath_types::{
    Instrument, InstrumentId, MarketEvent, MarketEventKind, MatchId, Nanos, OrderId, Price, Qty, Sequence,
    Side, Symbol,
};

const MESSAGES: usize = 100_000;

fn events() -> Vec<MarketEvent> {
    // A linear congruential generator makes the order of types unpredictable, but the same in every run.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    (1..=MESSAGES as u64)
        .map(|sequence| {
            let (order_id, qty) = (OrderId(draw(1 << 20)), Qty(1 + draw(500)));
            let price = Price(1_000_000 + 100 * draw(1000) as i64);
            let side = if draw(2) == 0 { Side::Buy } else { Side::Sell };
            let kind = match draw(100) {
                0..47 => MarketEventKind::Add { order_id, side, price, qty },
                47..89 => MarketEventKind::Deleted { order_id },
                89..95 => MarketEventKind::Executed { order_id, qty, match_id: MatchId(sequence) },
                95..99 => MarketEventKind::Replaced {
                    old_order_id: order_id,
                    order_id: OrderId(sequence),
                    price,
                    qty,
                },
                _ => MarketEventKind::Reduced { order_id, qty },
            };
            MarketEvent {
                sequence: Sequence(sequence),
                command: Sequence(sequence),
                ts: Nanos(34_200_000_000_000 + sequence),
                instrument: InstrumentId(1),
                kind,
            }
        })
        .collect()
}

fn instrument() -> Instrument {
    Instrument {
        id: InstrumentId(1),
        symbol: Symbol::new("ALPHA").expect("a symbol"),
        tick_size: Price(100),
        lot_size: Qty(1),
        max_qty: Qty(1_000_000),
        reference_price: Price(1_000_000),
        collar_low: Price(100),
        collar_high: Price(2_000_000),
    }
}

/// Sums, over all messages, the xor of the fields that a book reads: reference, price and quantity.
#[derive(Default)]
struct Sum(u64);

impl Listener for Sum {
    fn on_add_order(&mut self, message: &AddOrder) {
        self.0 += message.order_ref.get().0 ^ message.price.get().0 as u64 ^ message.shares.get().0;
    }
    fn on_order_delete(&mut self, message: &OrderDelete) {
        self.0 += message.order_ref.get().0;
    }
    fn on_order_executed(&mut self, message: &OrderExecuted) {
        self.0 += message.order_ref.get().0 ^ message.executed_shares.get().0;
    }
    fn on_order_replace(&mut self, message: &OrderReplace) {
        self.0 += message.new_order_ref.get().0 ^ message.price.get().0 as u64 ^ message.shares.get().0;
    }
    fn on_order_cancel(&mut self, message: &OrderCancel) {
        self.0 += message.order_ref.get().0 ^ message.canceled_shares.get().0;
    }
}

/// Returns the value that [`Sum`] must have after the messages of all `events`.
fn expected(events: &[MarketEvent]) -> u64 {
    events
        .iter()
        .map(|event| match event.kind {
            MarketEventKind::Add { order_id, price, qty, .. }
            | MarketEventKind::Replaced { order_id, price, qty, .. } => order_id.0 ^ price.0 as u64 ^ qty.0,
            MarketEventKind::Executed { order_id, qty, .. } | MarketEventKind::Reduced { order_id, qty } => {
                order_id.0 ^ qty.0
            }
            MarketEventKind::Deleted { order_id } => order_id.0,
            _ => 0,
        })
        .sum()
}

/// Returns the messages of all events as a BinaryFILE, and as MoldUDP64 datagrams.
fn published(events: &[MarketEvent], instrument: &Instrument) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (mut file, mut datagrams) = (Vec::new(), Vec::new());
    let mut packet = PacketBuilder::new([0; DATAGRAM_LEN_MAX], Session::BLANK, Sequence(1));
    for event in events {
        let mut message = [0; MESSAGE_LEN_MAX];
        let len = encode_market_event(event, Some(instrument), &mut message).expect("it fits");
        file.extend((len as u16).to_be_bytes());
        file.extend(&message[..len]);
        if !packet.has_capacity_for(len) {
            datagrams.push(packet.finish().to_vec());
            packet.start_next();
        }
        packet.push(&message[..len]).expect("there is room");
    }
    datagrams.push(packet.finish().to_vec());
    (file, datagrams)
}

fn decode_file(file: &[u8]) -> u64 {
    let mut sum = Sum::default();
    for message in Frames::new(file, Lengths::Prefixed) {
        itch50::decode(message.expect("it was framed"), &mut sum).expect("it was encoded");
    }
    sum.0
}

fn decode_datagrams(datagrams: &[Vec<u8>]) -> u64 {
    let mut sum = Sum::default();
    for datagram in datagrams {
        for (_, message) in Packet::parse(datagram).expect("it was built").messages() {
            itch50::decode(message, &mut sum).expect("it was encoded");
        }
    }
    sum.0
}

/// Publishes all events through one packet buffer; returns the total number of bytes.
fn publish(events: &[MarketEvent], instrument: &Instrument) -> usize {
    let mut packet = PacketBuilder::new([0; DATAGRAM_LEN_MAX], Session::BLANK, Sequence(1));
    let mut len = 0;
    for event in events {
        if !packet.has_capacity_for(market_event_len(&event.kind)) {
            len += black_box(packet.finish()).len();
            packet.start_next();
        }
        packet.push_with(|space| encode_market_event(event, Some(instrument), space)).expect("there is room");
    }
    len + packet.finish().len()
}

fn bench(c: &mut Criterion) {
    let (events, instrument) = (events(), instrument());
    let (file, datagrams) = published(&events, &instrument);
    assert_eq!(decode_file(&file), expected(&events));
    assert_eq!(decode_datagrams(&datagrams), expected(&events));
    assert_eq!(publish(&events, &instrument), datagrams.iter().map(Vec::len).sum::<usize>());

    // The same messages sorted into runs of one type, so that branches are hardly mispredicted.
    let mut runs = events.clone();
    runs.sort_by_key(|event| market_event_len(&event.kind));
    let (file_of_runs, _) = published(&runs, &instrument);
    assert_eq!(decode_file(&file_of_runs), expected(&events));

    let mut group = c.benchmark_group("itch50");
    group.throughput(Throughput::Elements(MESSAGES as u64)).sample_size(20);
    group.bench_function("decode_file", |b| b.iter(|| decode_file(black_box(&file))));
    group.bench_function("decode_file_of_runs", |b| b.iter(|| decode_file(black_box(&file_of_runs))));
    group.bench_function("decode_datagrams", |b| b.iter(|| decode_datagrams(black_box(&datagrams))));
    group.bench_function("publish", |b| b.iter(|| publish(black_box(&events), &instrument)));
    group.bench_function("publish_runs", |b| b.iter(|| publish(black_box(&runs), &instrument)));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);

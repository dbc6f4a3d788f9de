//! Compares the builder with a reference model of maps and lists on random messages, some inconsistent.

use std::collections::{BTreeMap, HashMap};

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_book::{BookLimits, BooksById, DirectBooks, Indexed, PackedBooks};
use tickpath_feed::xdp::{BookBuilder, Message};
use tickpath_feed::{BuilderCounters, IgnoreUpdates, InstrumentState, MessageBooks};
use tickpath_nyse::{
    CrossCorrection, MarketState, PositionChange, SecurityStatusCode, SourceTimeReference, SymbolClear,
};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, MarketUpdate, Nanos, Sequence, Side};
use zerocopy::IntoBytes;

use crate::xdp::support::{
    CHANNEL, Feed, INDEX, MIDNIGHT_SECS, Updates, add_of, delete, execution, mapping, modify, replace, status,
};

#[derive(Clone, Copy, Debug)]
struct Resting {
    side: Side,
    price: u32,
    volume: u32,
    /// Time priority: larger for later orders.
    place: u64,
}

/// The orders of all symbols, changed as the specification defines.
#[derive(Default)]
struct ReferenceModel {
    orders: HashMap<(u32, u64), Resting>,
    places: u64,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add { symbol: u32, id: u64, is_buy: bool, price: u32, volume: u32 },
    Modify { symbol: u32, id: u64, price: u32, volume: u32, lost: bool },
    Delete { symbol: u32, id: u64 },
    Execute { symbol: u32, id: u64, volume: u32 },
    Replace { symbol: u32, id: u64, new_id: u64, price: u32, volume: u32 },
}

impl ReferenceModel {
    fn place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }

    fn add(&mut self, key: (u32, u64), side: Side, price: u32, volume: u32) {
        let place = self.place();
        if volume > 0 {
            self.orders.entry(key).or_insert(Resting { side, price, volume, place });
        }
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Add { symbol, id, is_buy, price, volume } => {
                self.add((symbol, id), if is_buy { Side::Buy } else { Side::Sell }, price, volume);
            }
            Operation::Modify { symbol, id, price, volume, lost } => {
                let place = self.place();
                if let Some(order) = self.orders.get_mut(&(symbol, id)) {
                    if order.price != price || lost {
                        order.place = place;
                    }
                    (order.price, order.volume) = (price, volume);
                    if volume == 0 {
                        self.orders.remove(&(symbol, id));
                    }
                }
            }
            Operation::Delete { symbol, id } => {
                self.orders.remove(&(symbol, id));
            }
            Operation::Execute { symbol, id, volume } => {
                if let Some(order) = self.orders.get_mut(&(symbol, id)) {
                    order.volume = order.volume.saturating_sub(volume);
                    if order.volume == 0 {
                        self.orders.remove(&(symbol, id));
                    }
                }
            }
            Operation::Replace { symbol, id, new_id, price, volume } => {
                if let Some(old) = self.orders.remove(&(symbol, id)) {
                    self.add((symbol, new_id), old.side, price, volume);
                }
            }
        }
    }

    /// Returns price and volume of the orders of a side, by price and time priority.
    fn orders(&self, symbol: u32, side: Side) -> Vec<(i64, u64)> {
        let mut sorted = BTreeMap::new();
        for ((of, _), order) in &self.orders {
            if *of == symbol && order.side == side {
                let price = i64::from(order.price);
                let rank = if side == Side::Buy { -price } else { price };
                sorted.insert((rank, order.place), (price, u64::from(order.volume)));
            }
        }
        sorted.into_values().collect()
    }
}

fn bytes_of(operation: Operation, seqs: &mut [u32; 2]) -> Vec<u8> {
    let mut next = |symbol: u32| {
        seqs[symbol as usize] += 1;
        seqs[symbol as usize]
    };
    let lost = |lost| if lost { PositionChange::LOST } else { PositionChange::KEPT };
    let mut bytes = match operation {
        Operation::Add { symbol, id, is_buy, price, volume } => {
            let side = if is_buy { Side::Buy } else { Side::Sell };
            add_of(symbol, next(symbol), id, side, price, volume).as_bytes().to_vec()
        }
        Operation::Modify { symbol, id, price, volume, lost: is_lost } => {
            modify(next(symbol), id, price, volume, lost(is_lost)).as_bytes().to_vec()
        }
        Operation::Delete { symbol, id } => delete(next(symbol), id).as_bytes().to_vec(),
        Operation::Execute { symbol, id, volume } => {
            execution(next(symbol), id, 100, volume).as_bytes().to_vec()
        }
        Operation::Replace { symbol, id, new_id, price, volume } => {
            replace(next(symbol), id, new_id, price, volume).as_bytes().to_vec()
        }
    };
    let (Operation::Add { symbol, .. }
    | Operation::Modify { symbol, .. }
    | Operation::Delete { symbol, .. }
    | Operation::Execute { symbol, .. }
    | Operation::Replace { symbol, .. }) = operation;
    bytes[8..12].copy_from_slice(&(INDEX + symbol).to_le_bytes());
    bytes
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let (symbol, id, price, volume) = (0..2_u32, 1..40_u64, 90..110_u32, 0..30_u32);
    let operation = (symbol, id.clone(), id, price, volume, any::<bool>(), 0..12_u8).prop_map(
        |(symbol, id, new_id, price, volume, flag, kind)| match kind {
            0..=4 => Operation::Add { symbol, id, is_buy: flag, price, volume },
            5..=6 => Operation::Modify { symbol, id, price, volume, lost: flag },
            7..=8 => Operation::Delete { symbol, id },
            9 => Operation::Execute { symbol, id, volume },
            // The two order ids may be equal here, although no venue sends that.
            _ => Operation::Replace { symbol, id, new_id, price, volume },
        },
    );
    vec(operation, 0..400)
}

/// The messages include symbol mappings between orders, malformed messages, an unknown order and a gap.
#[test]
fn messages_that_come_together_do_what_each_does_alone() {
    let with_len = |mut bytes: Vec<u8>, len: u16| {
        bytes[..2].copy_from_slice(&len.to_le_bytes());
        bytes.resize(usize::from(len), 0);
        bytes
    };
    let order = |seq, id, price| add_of(0, seq, id, Side::Buy, price, 10).as_bytes().to_vec();
    let mut sideless = order(4, 4, 100);
    sideless[32] = b'?';
    let mut cut = delete(7, 2).as_bytes().to_vec();
    cut.truncate(24);
    let messages = [
        order(1, 1, 100),
        mapping(0, "ALPHA", 4).as_bytes().to_vec(),
        order(1, 1, 100),
        mapping(0, "ALPHA", 2).as_bytes().to_vec(),
        order(2, 2, 100),
        with_len(order(3, 3, 101), 43),
        sideless,
        delete(5, 1).as_bytes().to_vec(),
        delete(6, 99).as_bytes().to_vec(),
        cut,
        with_len(delete(7, 3).as_bytes().to_vec(), 24),
        with_len(delete(7, 3).as_bytes().to_vec(), 30),
        mapping(1, "BETA", 6).as_bytes().to_vec(),
        add_of(1, 1, 5, Side::Sell, 1_000_001, 5).as_bytes().to_vec(),
        add_of(1, 2, 6, Side::Sell, 0, 5).as_bytes().to_vec(),
        add_of(1, 3, 7, Side::Sell, 1_000_100, 5).as_bytes().to_vec(),
        add_of(1, 9, 8, Side::Sell, 1_000_200, 5).as_bytes().to_vec(),
    ];
    let mut alone = Feed::new(2);
    messages.iter().for_each(|bytes| alone.send_bytes(bytes));
    assert_eq!(alone.orders(1, Side::Buy), [(2, 10_000, 10)]);
    assert_eq!(alone.orders(2, Side::Sell), [(6, 0, 5), (7, 10_001, 5), (8, 10_002, 5)]);
    let mut together = Feed::new(2);
    let numbered = (1..).zip(&messages).map(|(number, bytes)| Message::new(CHANNEL, number, bytes));
    together.builder.handle_batch(numbered, &mut together.updates);
    assert_eq!(together.updates.0, alone.updates.0);
    let of = |feed: &Feed| {
        let instruments = feed.builder.instruments();
        let states = [1, 2].map(|id| instruments.instrument(InstrumentId(id)));
        (*instruments.counters(), states, instruments.books().state_hash())
    };
    assert_eq!(of(&together), of(&alone));
}

/// A delete of an order of the symbol at any place.
fn delete_of(place: u32, seq: u32, id: u64) -> Vec<u8> {
    let mut bytes = delete(seq, id).as_bytes().to_vec();
    bytes[8..12].copy_from_slice(&(INDEX + place).to_le_bytes());
    bytes
}

fn built<B: BooksById>(messages: &[Vec<u8>], batch: usize) -> BookBuilder<B> {
    let limits = BookLimits::new(InstrumentId(2), 1_000);
    let mut builder = BookBuilder::new(B::new(limits), Nanos::from_secs(u64::from(MIDNIGHT_SECS)));
    for batch in messages.chunks(batch) {
        builder.handle_batch(batch.iter().map(|bytes| Message::new(CHANNEL, 1, bytes)), &mut IgnoreUpdates);
    }
    builder
}

type Outcome = (Vec<MarketUpdate>, BuilderCounters, [(Option<InstrumentState>, u32); 2], u64);

/// Updates, counters, states and state hash after messages, applied in batches of `batch`; 0 for each by itself.
fn outcome<B: BooksById>(messages: &[Vec<u8>], batch: usize) -> Outcome {
    let limits = BookLimits::new(InstrumentId(2), 1_000);
    let mut builder = BookBuilder::new(B::new(limits), Nanos::from_secs(u64::from(MIDNIGHT_SECS)));
    let mut updates = Updates::default();
    let numbered: Vec<_> = (1..).zip(messages).map(|(at, bytes)| Message::new(CHANNEL, at, bytes)).collect();
    if batch == 0 {
        for Message { sequence, bytes, .. } in numbered {
            builder.handle_message_on(CHANNEL, Sequence(sequence.into()), bytes, &mut updates);
        }
    } else {
        for batch in numbered.chunks(batch) {
            builder.handle_batch(batch.iter().copied(), &mut updates);
        }
    }
    let instruments = builder.instruments();
    let states = [1, 2]
        .map(|id| (instruments.instrument(InstrumentId(id)), builder.next_symbol_seq(InstrumentId(id))));
    (updates.0, *instruments.counters(), states, instruments.books().state_hash())
}

/// Returns an order message with order ids as a venue makes them.
fn with_venue_ids(mut bytes: Vec<u8>) -> Vec<u8> {
    let ids = if bytes[2] == 104 { 16..32 } else { 16..24 };
    for id in bytes[ids].chunks_mut(8) {
        (id[5], id[6]) = (11, 0x15);
    }
    bytes
}

proptest! {
    /// Among the messages are gaps, ids that two symbols share, messages of other types and damaged ones.
    #[test]
    fn groups_do_what_each_message_does_alone(
        operations in operations(),
        batch in 1_usize..80,
        has_venue_ids: bool,
        others in vec((any::<prop::sample::Index>(), 0..10_u8), 0..30),
    ) {
        let mut seqs = [1; 2];
        let mut messages: Vec<Vec<u8>> = operations.iter().map(|operation| bytes_of(*operation, &mut seqs)).collect();
        if has_venue_ids {
            messages = messages.into_iter().map(with_venue_ids).collect();
        }
        for (at, kind) in others {
            let at = at.index(messages.len() + 1);
            let cut = messages.get(at).map_or(0, Vec::len) / 2;
            let other = match kind {
                0 => mapping(1, "BETA", 2).as_bytes().to_vec(),
                1 => SymbolClear::new(MIDNIGHT_SECS, 0, INDEX, 7).as_bytes().to_vec(),
                2 => SourceTimeReference::new(1, 0, MIDNIGHT_SECS + 60).as_bytes().to_vec(),
                3 => status(1, 3, SecurityStatusCode::CLOSED, MarketState::CLOSED).as_bytes().to_vec(),
                4 => status(0, 3, SecurityStatusCode::CORE, MarketState::CORE).as_bytes().to_vec(),
                5 => CrossCorrection::new(7, INDEX, 9, 1, 1).as_bytes().to_vec(),
                6 => vec![4, 0, 200, 0],
                7 => messages.get(at).map_or(Vec::new(), |message| message[..cut].to_vec()),
                // A gap, and an unmapped symbol.
                8 => { if at < messages.len() { messages.remove(at); } continue }
                _ => delete_of(9, 1, 1),
            };
            messages.insert(at, other);
        }
        let first = [mapping(0, "ALPHA", 4), mapping(1, "BETA", 6)].map(|message| message.as_bytes().to_vec());
        let open = |place| status(place, 1, SecurityStatusCode::CORE, MarketState::CORE).as_bytes().to_vec();
        messages.splice(0..0, first.into_iter().chain([open(0), open(1)]));
        prop_assert_eq!(outcome::<PackedBooks>(&messages, batch), outcome::<DirectBooks>(&messages, 0));
    }

    #[test]
    fn the_books_are_those_of_maps_and_lists(operations in operations(), batch in 1_usize..80) {
        let mut model = ReferenceModel::default();
        let mut messages: Vec<Vec<u8>> =
            [mapping(0, "ALPHA", 4), mapping(1, "BETA", 4)].map(|message| message.as_bytes().to_vec()).into();
        let mut seqs = [0; 2];
        for operation in &operations {
            messages.push(bytes_of(*operation, &mut seqs));
            model.apply(*operation);
        }
        let direct = built::<PackedBooks>(&messages, batch);
        let indexed = built::<Indexed<ReferenceBooks>>(&messages, 1);
        for symbol in 0..2 {
            for side in Side::BOTH {
                let id = InstrumentId(symbol as u16 + 1);
                let orders: Vec<_> = direct.instruments().books().orders(id, side)
                    .map(|order| (order.price.0, order.qty.0)).collect();
                prop_assert_eq!(orders, model.orders(symbol, side));
            }
        }
        prop_assert_eq!(direct.instruments().books().state_hash(), indexed.instruments().books().state_hash());
        prop_assert_eq!(direct.instruments().counters(), indexed.instruments().counters());
        for id in [1, 2].map(InstrumentId) {
            prop_assert_eq!(direct.instruments().instrument(id), indexed.instruments().instrument(id));
        }
    }
}

/// While a group is applied, two symbols begin to share an id, and a later message of the group names it.
#[test]
fn an_id_becomes_shared_within_a_group() {
    let add = |symbol, volume| Operation::Add { symbol, id: 16, is_buy: false, price: 90, volume };
    let operations = [
        add(1, 1),
        add(0, 0),
        add(0, 1),
        Operation::Modify { symbol: 1, id: 16, price: 90, volume: 0, lost: false },
        add(0, 1),
    ];
    let mut seqs = [1; 2];
    let mut messages: Vec<Vec<u8>> =
        [mapping(0, "ALPHA", 4), mapping(1, "BETA", 4)].map(|message| message.as_bytes().to_vec()).into();
    messages.extend(operations.map(|operation| bytes_of(operation, &mut seqs)));
    // The first order rests before the group with the other messages begins.
    assert_eq!(outcome::<PackedBooks>(&messages, 4), outcome::<DirectBooks>(&messages, 0));
}

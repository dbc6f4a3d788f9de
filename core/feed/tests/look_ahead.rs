//! Messages applied in batches give the same updates, counters and books as messages applied one by one.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use std::sync::LazyLock;

use proptest::prelude::*;
use tickpath_book::{BookLimits, BooksById, DirectBooks, FastBooks, Indexed, PackedBooks};
use tickpath_feed::{BookBuilder, BuilderCounters, MessageBooks, UpdateListener};
use tickpath_flowgen::{BackgroundFlow, BackgroundFlowConfig};
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits};
use tickpath_nasdaq::itch50::{AddOrder, BuySell, OrderDelete, OrderReplace, market_event_message};
use tickpath_nasdaq::wire::Stock;
use tickpath_reference::ReferenceBooks;
use tickpath_types::{
    Instrument, InstrumentId, MarketEvent, MarketUpdate, Nanos, Price, Sequence, SessionId, Symbol,
    TradingState,
};
use zerocopy::IntoBytes;

const INSTRUMENTS: u16 = 3;

#[derive(Default)]
struct Updates(Vec<MarketUpdate>);

impl UpdateListener for Updates {
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0.push(*update);
    }
}

/// Returns the ITCH messages that a venue publishes for `actions` requests of background flow.
fn messages(actions: usize) -> Vec<Vec<u8>> {
    let instruments: Vec<Instrument> = (1..=INSTRUMENTS)
        .map(|id| {
            let symbol = Symbol::new(&format!("SYM{id}")).unwrap();
            Instrument::in_cents(InstrumentId(id), symbol, Price(1_000_000))
        })
        .collect();
    let mut engine: Engine<FastBooks<_>> = Engine::new(&instruments, EngineLimits::default()).unwrap();
    let mut background_flow = BackgroundFlow::new(
        BackgroundFlowConfig { sessions: 1, ..BackgroundFlowConfig::default() },
        &instruments,
    )
    .unwrap();
    let opening = instruments.iter().map(|instrument| CommandKind::OpenInstrument {
        instrument: instrument.id,
        state: TradingState::Trading,
    });
    let flow = (0..actions)
        .map(|_| CommandKind::Order(background_flow.poll(Nanos::MAX).expect("the flow is endless").request));
    let mut events: Vec<MarketEvent> = vec![];
    for (kind, sequence) in opening.chain(flow).zip(1..) {
        let sequence = Sequence(sequence);
        engine.apply(&Command { sequence, session: SessionId(1), ts: Nanos(sequence.0), kind }, &mut events);
    }
    let encode = |event: &MarketEvent| {
        let instrument = instruments.get(usize::from(event.instrument.0).wrapping_sub(1));
        market_event_message(event, instrument).unwrap().to_vec()
    };
    events.iter().map(encode).collect()
}

/// A short recording, whose messages a test damages.
static RECORDED: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| messages(300));

/// Updates, counters and state hash of the books after some messages.
type Outcome = (Vec<MarketUpdate>, BuilderCounters, u64);

/// Returns the outcome of the messages, applied in groups of `group`.
fn result_of<B: BooksById>(messages: &[Vec<u8>], group: usize) -> Outcome {
    let mut builder = BookBuilder::new(B::new(BookLimits::new(InstrumentId(INSTRUMENTS), 1 << 17)));
    let mut updates = Updates::default();
    let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let mut next = Sequence(1);
    for group in slices.chunks(group) {
        match group {
            [message] => builder.handle_message(next, message, &mut updates),
            group => {
                let count = builder.handle_batch(next, group.iter().copied(), &mut updates);
                assert_eq!(count, group.len() as u64);
            }
        }
        next = Sequence(next.0 + group.len() as u64);
    }
    (updates.0, *builder.counters(), builder.books().state_hash())
}

#[test]
fn a_market_ends_the_same_in_groups_of_any_size() {
    let messages = messages(6_000);
    let one_by_one = result_of::<Indexed<ReferenceBooks>>(&messages, 1);
    assert!(one_by_one.0.len() > 5_000 && one_by_one.1.unknown_order == 0);
    for group in [1, 2, 31, 32, 33, messages.len()] {
        assert_eq!(result_of::<PackedBooks>(&messages, group), one_by_one, "{group}");
        assert_eq!(result_of::<DirectBooks>(&messages, group), one_by_one, "{group}");
        assert_eq!(result_of::<Indexed<FastBooks>>(&messages, group), one_by_one, "{group}");
    }
}

/// Adds enough orders to enable full prefetch, then deletes them, and adds and replaces others.
#[test]
fn large_books_end_the_same() {
    const ORDERS: u64 = 80_000;
    let stock = Stock::new("SYM1").unwrap();
    let add = |id: u64| {
        let (locate, side) = (1 + (id % 3) as u16, [BuySell::BUY, BuySell::SELL][id as usize % 2]);
        let price = if id.is_multiple_of(2) {
            900_000 - (id * 7 % 700) as u32 * 100
        } else {
            900_100 + (id * 11 % 900) as u32 * 100
        };
        AddOrder::new(locate, 0_u16, Nanos(id), id, side, 100, stock, price).as_bytes().to_vec()
    };
    let mut messages: Vec<Vec<u8>> = (1..=ORDERS).map(add).collect();
    for id in 1..=4_000 {
        let locate = 1 + (id % 3) as u16;
        messages.push(OrderDelete::new(locate, 0_u16, Nanos(id), id).as_bytes().to_vec());
        messages.push(add(ORDERS + id));
        let replaced =
            OrderReplace::new(locate, 0_u16, Nanos(id), 6_000 + id, 2 * ORDERS + id, 50, 880_000_u32);
        messages.push(replaced.as_bytes().to_vec());
    }
    let one_by_one = result_of::<Indexed<FastBooks>>(&messages, 1);
    for group in [32, messages.len()] {
        assert_eq!(result_of::<PackedBooks>(&messages, group), one_by_one, "{group}");
        assert_eq!(result_of::<DirectBooks>(&messages, group), one_by_one, "{group}");
        assert_eq!(result_of::<Indexed<FastBooks>>(&messages, group), one_by_one, "{group}");
    }
}

proptest! {
    #[test]
    fn damage_ends_the_same(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_usize..60), 1..40)
    ) {
        let mut messages = RECORDED.clone();
        for (index, byte, at) in cuts {
            let message = index.get_mut(&mut messages);
            match message.get_mut(at) {
                Some(place) => *place = byte,
                None => message.truncate(at / 2),
            }
        }
        prop_assert_eq!(result_of::<PackedBooks>(&messages, 64), result_of::<Indexed<ReferenceBooks>>(&messages, 1));
    }
}

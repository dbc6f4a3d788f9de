use std::collections::HashMap;
use std::sync::LazyLock;

use tickpath_book::{BookLimits, BooksById, Indexed};
use tickpath_feed::{BookBuilder, IgnoreUpdates, BuilderCounters, MessageBooks};
use tickpath_nasdaq::itch50::framing::{Frames, Lengths};
use tickpath_nasdaq::itch50::{self, AddOrder, AddOrderMpid, Message};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{InstrumentId, Nanos, OrderId, Sequence, Side, SystemEventCode};
use xxhash_rust::xxh3::xxh3_64;

use super::*;

const SMALL: ItchDayConfig = ItchDayConfig { messages: 200_000, symbols: 60, live: 10_000, seed: 7 };
const HOUR: u64 = 3_600_000_000_000;

fn frames(config: ItchDayConfig) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut day = ItchDay::new(config).unwrap();
    while day.append_frames(10_000, &mut bytes) > 0 {}
    bytes
}

/// Observations of a day by a reader that checks everything.
#[derive(Default)]
struct Seen {
    builder: BuilderCounters,
    contradictions: u64,
    resting_at_end: u32,
    by_type: Vec<u64>,
    by_locate: Vec<u64>,
    /// Number of resting orders, after every thousandth message between opening and close.
    live: Vec<u32>,
    live_max: u32,
    events: Vec<(SystemEventCode, Nanos)>,
    lifetimes: Vec<u64>,
    /// Length of the longest chain of replacements.
    chain_max: u32,
    refs: Vec<u64>,
    /// Executions of orders that were not first on a best level.
    out_of_turn: u64,
    /// Invalid prices and quantities.
    void: u64,
    went_back: u64,
    /// At noon: levels of each book, and its spread in ticks if it has two sides.
    levels: Vec<usize>,
    spreads: Vec<i64>,
    /// Best bids at the opening and at the close.
    at_opening: Vec<i64>,
    at_close: Vec<i64>,
}

/// Time of an order's entry, and the number of replacements before it.
#[derive(Clone, Copy)]
struct Birth {
    ts: u64,
    chain: u32,
}

struct Reader {
    builder: BookBuilder<Indexed<ReferenceBooks>>,
    births: HashMap<u64, Birth>,
    last: Nanos,
    seen: Seen,
}

impl Reader {
    fn new(config: ItchDayConfig) -> Reader {
        let limits = BookLimits::new(InstrumentId(config.symbols as u16), 2 * config.live + 10_000);
        let (by_type, by_locate) = (vec![0; 256], vec![0; config.symbols as usize + 1]);
        let seen = Seen { by_type, by_locate, ..Seen::default() };
        let builder = BookBuilder::new(Indexed::new(limits));
        Reader { builder, births: HashMap::new(), last: Nanos::ZERO, seen }
    }

    fn read(mut self, bytes: &[u8], mut keeps: impl FnMut(u64) -> bool) -> Seen {
        for (number, message) in (1..).zip(Frames::new(bytes, Lengths::Prefixed)) {
            if keeps(number) {
                self.message(number, message.unwrap());
            }
        }
        self.seen.builder = *self.builder.counters();
        self.seen.contradictions =
            self.builder.instruments().contradictions() + self.seen.builder.unknown_type;
        self.seen.resting_at_end = self.builder.books().order_count();
        self.seen.lifetimes.sort_unstable();
        self.seen
    }

    fn message(&mut self, number: u64, bytes: &[u8]) {
        let ts = Nanos(bytes[5..11].iter().fold(0, |ts, byte| ts << 8 | u64::from(*byte)));
        self.seen.went_back += u64::from(ts < self.last);
        if self.last.0 < 12 * HOUR && ts.0 >= 12 * HOUR {
            self.look_at_noon();
        }
        self.last = ts;
        self.seen.by_type[usize::from(bytes[0])] += 1;
        self.seen.by_locate[usize::from(u16::from_be_bytes([bytes[1], bytes[2]]))] += 1;
        self.note(ts.0, &Message::parse(bytes).unwrap());
        self.builder.handle_message(Sequence(number), bytes, &mut IgnoreUpdates);
        let live = self.builder.books().order_count();
        self.seen.live_max = self.seen.live_max.max(live);
        if number.is_multiple_of(1_000) && (19 * HOUR / 2..16 * HOUR).contains(&ts.0) {
            self.seen.live.push(live);
        }
    }

    fn note(&mut self, ts: u64, message: &Message<'_>) {
        let mut positive = |is_positive: bool| self.seen.void += u64::from(!is_positive);
        match message {
            Message::SystemEvent(event) => {
                let stage = event.event_code.stage().unwrap();
                self.seen.events.push((stage, Nanos(ts)));
                match stage {
                    SystemEventCode::StartOfMarketHours => self.seen.at_opening = self.best_bids(),
                    SystemEventCode::EndOfMarketHours => self.seen.at_close = self.best_bids(),
                    _ => {}
                }
            }
            Message::AddOrder(AddOrder { price, shares, order_ref, .. })
            | Message::AddOrderMpid(AddOrderMpid { price, shares, order_ref, .. }) => {
                positive(price.get().0 > 0 && shares.get().0 > 0);
                self.born(order_ref.get().0, Birth { ts, chain: 0 });
            }
            Message::OrderReplace(replace) => {
                positive(replace.price.get().0 > 0 && replace.shares.get().0 > 0);
                let chain = self.died(replace.original_order_ref.get().0, ts) + 1;
                self.seen.chain_max = self.seen.chain_max.max(chain);
                self.born(replace.new_order_ref.get().0, Birth { ts, chain });
            }
            Message::OrderDelete(delete) => {
                self.died(delete.order_ref.get().0, ts);
            }
            Message::OrderCancel(cancel) => positive(cancel.canceled_shares.get().0 > 0),
            Message::OrderExecuted(execution) => {
                positive(execution.executed_shares.get().0 > 0);
                self.check_turn(execution.stock_locate.get(), execution.order_ref.get());
            }
            Message::OrderExecutedWithPrice(trade) => {
                positive(trade.executed_shares.get().0 > 0 && trade.execution_price.get().0 > 0);
                self.check_turn(trade.stock_locate.get(), trade.order_ref.get());
            }
            Message::NonCrossTrade(trade) => positive(trade.price.get().0 > 0 && trade.shares.get().0 > 0),
            Message::Unknown(bytes) => panic!("{bytes:?}"),
            _ => {}
        }
    }

    fn born(&mut self, order_ref: u64, birth: Birth) {
        self.seen.refs.push(order_ref);
        self.births.insert(order_ref, birth);
    }

    fn died(&mut self, order_ref: u64, ts: u64) -> u32 {
        let Some(birth) = self.births.remove(&order_ref) else { return 0 };
        self.seen.lifetimes.push(ts - birth.ts);
        birth.chain
    }

    /// Checks price-time priority: an execution must be of the first order on a best level.
    fn check_turn(&mut self, instrument: InstrumentId, order_id: OrderId) {
        let books = self.builder.books();
        let is_front = Side::BOTH
            .into_iter()
            .any(|side| books.front(instrument, side).is_some_and(|front| front.id == order_id));
        self.seen.out_of_turn += u64::from(!is_front);
    }

    fn instruments(&self) -> impl Iterator<Item = InstrumentId> + use<> {
        (1..=self.builder.books().limits().max_instrument.0).map(InstrumentId)
    }

    fn best_bids(&self) -> Vec<i64> {
        let best = |id| self.builder.books().best_price(id, Side::Buy);
        self.instruments().map(|id| best(id).map_or(0, |price| price.0)).collect()
    }

    fn look_at_noon(&mut self) {
        let books = self.builder.books();
        for id in self.instruments() {
            self.seen.levels.push(Side::BOTH.into_iter().map(|side| books.levels(id, side).count()).sum());
            if let [Some(bid), Some(ask)] = Side::BOTH.map(|side| books.best_price(id, side)) {
                self.seen.spreads.push((ask.0 - bid.0) / 100);
            }
        }
        self.seen.levels.sort_unstable();
        self.seen.spreads.sort_unstable();
    }
}

/// The small day, read once for all tests.
static SEEN: LazyLock<Seen> = LazyLock::new(|| Reader::new(SMALL).read(&frames(SMALL), |_| true));

#[test]
fn a_day_agrees_with_itself() {
    let seen = &*SEEN;
    assert_eq!(seen.builder.messages, SMALL.messages);
    assert_eq!(seen.contradictions, 0, "{:?}", seen.builder);
    assert_eq!((seen.out_of_turn, seen.void, seen.went_back), (0, 0, 0));
    for config in [
        ItchDayConfig { messages: 1_000, symbols: 1, live: 2, seed: 3 },
        ItchDayConfig { messages: 8_000, symbols: 1, live: 1_000, seed: 4 },
        ItchDayConfig { messages: 12_800, symbols: 400, live: 800, seed: 5 },
        ItchDayConfig { messages: 40_000, symbols: 1_250, live: 5_000, seed: u64::MAX },
    ] {
        let seen = Reader::new(config).read(&frames(config), |_| true);
        assert_eq!(seen.builder.messages, config.messages, "{config:?}");
        assert_eq!(seen.contradictions, 0, "{config:?}: {:?}", seen.builder);
        assert_eq!((seen.out_of_turn, seen.void, seen.went_back), (0, 0, 0), "{config:?}");
    }
}

/// Control for the test above: it detects the loss of one message in a thousand.
#[test]
fn a_day_with_messages_missing_does_not() {
    let seen = Reader::new(SMALL).read(&frames(SMALL), |number: u64| !number.is_multiple_of(1_000));
    assert!(seen.builder.unknown_order > 50, "{:?}", seen.builder);
    assert!(seen.builder.crossed > 0 && seen.out_of_turn > 0, "{:?}", seen.builder);
}

#[test]
fn a_seed_gives_the_same_day_for_ever() {
    let small = ItchDayConfig { messages: 20_000, symbols: 25, live: 1_000, seed: 1 };
    let bytes = frames(small);
    assert_eq!(bytes, frames(small));
    assert_ne!(bytes, frames(ItchDayConfig { seed: 2, ..small }));
    assert_eq!((bytes.len(), format!("{:016x}", xxh3_64(&bytes))), (616_480, "b83075d607bab7d8".to_owned()));
}

#[test]
fn the_mix_is_that_of_a_real_day() {
    let seen = &*SEEN;
    for (types, lowest, highest) in [
        ("A", 41.5, 44.5),
        ("D", 40.0, 43.5),
        ("U", 7.5, 8.5),
        ("E", 1.8, 2.2),
        ("X", 0.9, 1.1),
        ("F", 0.9, 1.1),
        ("P", 0.44, 0.56),
        ("I", 1.1, 1.7),
        ("C", 0.03, 0.07),
    ] {
        let count = seen.by_type[usize::from(types.as_bytes()[0])];
        let percent = count as f64 * 100.0 / SMALL.messages as f64;
        assert!((lowest..=highest).contains(&percent), "{types}: {percent}");
    }
    let symbols = u64::from(SMALL.symbols);
    for (message_type, count) in [(b'R', 1), (b'H', 1), (b'Y', 1), (b'L', 4), (b'Q', 2)] {
        assert_eq!(seen.by_type[usize::from(message_type)], count * symbols, "{}", message_type as char);
    }
    assert_eq!((seen.by_type[usize::from(b'S')], seen.by_type[usize::from(b'V')]), (6, 1));
}

#[test]
fn the_session_has_its_stages_at_their_times() {
    use SystemEventCode::{
        EndOfMarketHours, EndOfMessages, EndOfSystemHours, StartOfMarketHours, StartOfMessages,
        StartOfSystemHours,
    };
    let at = |hour: u64, minute: u64| Nanos::from_secs(hour * 3_600 + minute * 60);
    let expected = [
        (StartOfMessages, at(3, 4)),
        (StartOfSystemHours, at(4, 0)),
        (StartOfMarketHours, at(9, 30)),
        (EndOfMarketHours, at(16, 0)),
        (EndOfSystemHours, at(20, 0)),
        (EndOfMessages, at(20, 5)),
    ];
    assert_eq!(SEEN.events, expected);
}

#[test]
fn live_orders_rise_stay_and_fall() {
    let seen = &*SEEN;
    assert!(seen.live.len() > 100);
    let (least, most) = (*seen.live.iter().min().unwrap(), *seen.live.iter().max().unwrap());
    assert!(least >= SMALL.live * 95 / 100 && most <= SMALL.live * 103 / 100, "{least} to {most}");
    assert!(seen.live_max <= SMALL.live * 103 / 100);
    assert!(seen.resting_at_end <= SMALL.live / 10, "{}", seen.resting_at_end);
}

#[test]
fn the_counters_are_what_a_reader_counts() {
    let mut day = ItchDay::new(SMALL).unwrap();
    let mut message = [0; MESSAGE_LEN_MAX];
    while let Some(len) = day.next_message(&mut message) {
        assert_eq!(itch50::message_len(message[0]), Some(len));
    }
    assert_eq!(day.next_message(&mut message), None, "the day is over");
    let (counters, seen) = (day.counters(), &*SEEN);
    assert_eq!(counters.messages, seen.builder.messages);
    assert_eq!((counters.live, counters.live_max), (seen.resting_at_end, seen.live_max));
    assert_eq!(counters.order_refs, seen.refs.len() as u64);
    assert!(counters.by_type().all(|(kind, count)| count == seen.by_type[usize::from(kind)]));
    assert_eq!(counters.by_type().map(|(_, count)| count).sum::<u64>(), SMALL.messages);
}

#[test]
fn lifetimes_reach_from_microseconds_to_hours() {
    let lifetimes = &SEEN.lifetimes;
    let at_percent = |percent: usize| lifetimes[lifetimes.len() * percent / 100];
    assert!(at_percent(5) < 100_000, "one in twenty lives less than 100 us: {}", at_percent(5));
    assert!(at_percent(20) < 100_000_000, "{}", at_percent(20));
    assert!((1_000_000_000..HOUR / 6).contains(&at_percent(50)), "{}", at_percent(50));
    assert!(at_percent(97) > HOUR / 2 && at_percent(99) > HOUR, "{} {}", at_percent(97), at_percent(99));
    assert!(SEEN.chain_max >= 5, "{}", SEEN.chain_max);
}

#[test]
fn activity_follows_the_rank() {
    let mut counts = SEEN.by_locate[1..].to_vec();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // (rank + 8) of the 46th and of the first: 54 / 9 in the market, less while the books fill and empty.
    let ratio = counts[0] as f64 / counts[45] as f64;
    assert!((3.5..=6.5).contains(&ratio), "{ratio}");
}

#[test]
fn books_are_deep_tight_and_move() {
    let seen = &*SEEN;
    let (deepest, median) = (*seen.levels.last().unwrap(), seen.levels[seen.levels.len() / 2]);
    assert!(deepest >= 100 && (20..100).contains(&median), "{median} to {deepest} levels");
    let spread = seen.spreads[seen.spreads.len() / 2];
    assert!((1..=4).contains(&spread) && seen.spreads.len() == 60, "{spread} of {}", seen.spreads.len());
    let moved = seen.at_opening.iter().zip(&seen.at_close).filter(|(opening, close)| opening != close);
    assert!(moved.count() >= 50);
}

#[test]
fn references_grow_and_none_is_given_twice() {
    let refs = &SEEN.refs;
    assert!(refs.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(refs.iter().all(|order_ref| order_ref.is_multiple_of(4)));
    let mean_step = refs.last().unwrap() / refs.len() as u64;
    assert!((6..=12).contains(&mean_step), "{mean_step}");
}

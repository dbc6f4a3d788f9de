use std::collections::HashMap;
use std::sync::LazyLock;

use tickpath_book::{BookLimits, BooksById, Indexed};
use tickpath_feed::{BookBuilder, BuilderCounters, IgnoreUpdates, MessageBooks};
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

/// Statistics of a day's messages and books, with counts of the inconsistencies.
#[derive(Default)]
struct Observed {
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
    /// Maximum number of successive replacements of one order.
    chain_max: u32,
    refs: Vec<u64>,
    /// Number of executions of orders that were not first in the queue of a best level.
    out_of_priority: u64,
    /// Number of messages with a price or quantity that is not positive.
    invalid_values: u64,
    time_reversals: u64,
    /// At noon: number of levels of each book, and spread in ticks of each book with two sides.
    levels: Vec<usize>,
    spreads: Vec<i64>,
    /// Best bid of each book at the opening and at the close.
    at_opening: Vec<i64>,
    at_close: Vec<i64>,
}

/// Time at which an order was entered, and the number of replacements that led to it.
#[derive(Clone, Copy)]
struct OrderEntry {
    ts: u64,
    chain: u32,
}

struct Reader {
    builder: BookBuilder<Indexed<ReferenceBooks>>,
    entries: HashMap<u64, OrderEntry>,
    last: Nanos,
    observed: Observed,
}

impl Reader {
    fn new(config: ItchDayConfig) -> Reader {
        let limits = BookLimits::new(InstrumentId(config.symbols as u16), 2 * config.live + 10_000);
        let (by_type, by_locate) = (vec![0; 256], vec![0; config.symbols as usize + 1]);
        let observed = Observed { by_type, by_locate, ..Observed::default() };
        let builder = BookBuilder::new(Indexed::new(limits));
        Reader { builder, entries: HashMap::new(), last: Nanos::ZERO, observed }
    }

    fn read(mut self, bytes: &[u8], mut keeps: impl FnMut(u64) -> bool) -> Observed {
        for (number, message) in (1..).zip(Frames::new(bytes, Lengths::Prefixed)) {
            if keeps(number) {
                self.message(number, message.unwrap());
            }
        }
        self.observed.builder = *self.builder.counters();
        self.observed.contradictions =
            self.builder.instruments().contradictions() + self.observed.builder.unknown_type;
        self.observed.resting_at_end = self.builder.books().order_count();
        self.observed.lifetimes.sort_unstable();
        self.observed
    }

    fn message(&mut self, number: u64, bytes: &[u8]) {
        let ts = Nanos(bytes[5..11].iter().fold(0, |ts, byte| ts << 8 | u64::from(*byte)));
        self.observed.time_reversals += u64::from(ts < self.last);
        if self.last.0 < 12 * HOUR && ts.0 >= 12 * HOUR {
            self.sample_books_at_noon();
        }
        self.last = ts;
        self.observed.by_type[usize::from(bytes[0])] += 1;
        self.observed.by_locate[usize::from(u16::from_be_bytes([bytes[1], bytes[2]]))] += 1;
        self.record_message(ts.0, &Message::parse(bytes).unwrap());
        self.builder.handle_message(Sequence(number), bytes, &mut IgnoreUpdates);
        let live = self.builder.books().order_count();
        self.observed.live_max = self.observed.live_max.max(live);
        if number.is_multiple_of(1_000) && (19 * HOUR / 2..16 * HOUR).contains(&ts.0) {
            self.observed.live.push(live);
        }
    }

    fn record_message(&mut self, ts: u64, message: &Message<'_>) {
        let mut check_positive = |is_positive: bool| self.observed.invalid_values += u64::from(!is_positive);
        match message {
            Message::SystemEvent(event) => {
                let stage = event.event_code.stage().unwrap();
                self.observed.events.push((stage, Nanos(ts)));
                match stage {
                    SystemEventCode::StartOfMarketHours => self.observed.at_opening = self.best_bids(),
                    SystemEventCode::EndOfMarketHours => self.observed.at_close = self.best_bids(),
                    _ => {}
                }
            }
            Message::AddOrder(AddOrder { price, shares, order_ref, .. })
            | Message::AddOrderMpid(AddOrderMpid { price, shares, order_ref, .. }) => {
                check_positive(price.get().0 > 0 && shares.get().0 > 0);
                self.record_entry(order_ref.get().0, OrderEntry { ts, chain: 0 });
            }
            Message::OrderReplace(replace) => {
                check_positive(replace.price.get().0 > 0 && replace.shares.get().0 > 0);
                let chain = self.record_removal(replace.original_order_ref.get().0, ts) + 1;
                self.observed.chain_max = self.observed.chain_max.max(chain);
                self.record_entry(replace.new_order_ref.get().0, OrderEntry { ts, chain });
            }
            Message::OrderDelete(delete) => {
                self.record_removal(delete.order_ref.get().0, ts);
            }
            Message::OrderCancel(cancel) => check_positive(cancel.canceled_shares.get().0 > 0),
            Message::OrderExecuted(execution) => {
                check_positive(execution.executed_shares.get().0 > 0);
                self.check_priority(execution.stock_locate.get(), execution.order_ref.get());
            }
            Message::OrderExecutedWithPrice(trade) => {
                check_positive(trade.executed_shares.get().0 > 0 && trade.execution_price.get().0 > 0);
                self.check_priority(trade.stock_locate.get(), trade.order_ref.get());
            }
            Message::NonCrossTrade(trade) => {
                check_positive(trade.price.get().0 > 0 && trade.shares.get().0 > 0)
            }
            Message::Unknown(bytes) => panic!("{bytes:?}"),
            _ => {}
        }
    }

    fn record_entry(&mut self, order_ref: u64, entry: OrderEntry) {
        self.observed.refs.push(order_ref);
        self.entries.insert(order_ref, entry);
    }

    fn record_removal(&mut self, order_ref: u64, ts: u64) -> u32 {
        let Some(entry) = self.entries.remove(&order_ref) else { return 0 };
        self.observed.lifetimes.push(ts - entry.ts);
        entry.chain
    }

    /// Checks price-time priority: an execution must be of the first order in the queue of a best level.
    fn check_priority(&mut self, instrument: InstrumentId, order_id: OrderId) {
        let books = self.builder.books();
        let is_front = Side::BOTH
            .into_iter()
            .any(|side| books.front(instrument, side).is_some_and(|front| front.id == order_id));
        self.observed.out_of_priority += u64::from(!is_front);
    }

    fn instruments(&self) -> impl Iterator<Item = InstrumentId> + use<> {
        (1..=self.builder.books().limits().max_instrument.0).map(InstrumentId)
    }

    fn best_bids(&self) -> Vec<i64> {
        let best = |id| self.builder.books().best_price(id, Side::Buy);
        self.instruments().map(|id| best(id).map_or(0, |price| price.0)).collect()
    }

    fn sample_books_at_noon(&mut self) {
        let books = self.builder.books();
        for id in self.instruments() {
            self.observed
                .levels
                .push(Side::BOTH.into_iter().map(|side| books.levels(id, side).count()).sum());
            if let [Some(bid), Some(ask)] = Side::BOTH.map(|side| books.best_price(id, side)) {
                self.observed.spreads.push((ask.0 - bid.0) / 100);
            }
        }
        self.observed.levels.sort_unstable();
        self.observed.spreads.sort_unstable();
    }
}

/// Statistics of the day `SMALL`, computed once for all tests.
static OBSERVED: LazyLock<Observed> = LazyLock::new(|| Reader::new(SMALL).read(&frames(SMALL), |_| true));

#[test]
fn a_day_is_consistent() {
    let observed = &*OBSERVED;
    assert_eq!(observed.builder.messages, SMALL.messages);
    assert_eq!(observed.contradictions, 0, "{:?}", observed.builder);
    assert_eq!((observed.out_of_priority, observed.invalid_values, observed.time_reversals), (0, 0, 0));
    for config in [
        ItchDayConfig { messages: 1_000, symbols: 1, live: 2, seed: 3 },
        ItchDayConfig { messages: 8_000, symbols: 1, live: 1_000, seed: 4 },
        ItchDayConfig { messages: 12_800, symbols: 400, live: 800, seed: 5 },
        ItchDayConfig { messages: 40_000, symbols: 1_250, live: 5_000, seed: u64::MAX },
    ] {
        let observed = Reader::new(config).read(&frames(config), |_| true);
        assert_eq!(observed.builder.messages, config.messages, "{config:?}");
        assert_eq!(observed.contradictions, 0, "{config:?}: {:?}", observed.builder);
        assert_eq!(
            (observed.out_of_priority, observed.invalid_values, observed.time_reversals),
            (0, 0, 0),
            "{config:?}"
        );
    }
}

/// Control for `a_day_is_consistent`: its checks detect the loss of one message in a thousand.
#[test]
fn a_day_with_missing_messages_is_inconsistent() {
    let observed = Reader::new(SMALL).read(&frames(SMALL), |number: u64| !number.is_multiple_of(1_000));
    assert!(observed.builder.unknown_order > 50, "{:?}", observed.builder);
    assert!(observed.builder.crossed > 0 && observed.out_of_priority > 0, "{:?}", observed.builder);
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
    let observed = &*OBSERVED;
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
        let count = observed.by_type[usize::from(types.as_bytes()[0])];
        let percent = count as f64 * 100.0 / SMALL.messages as f64;
        assert!((lowest..=highest).contains(&percent), "{types}: {percent}");
    }
    let symbols = u64::from(SMALL.symbols);
    for (message_type, count) in [(b'R', 1), (b'H', 1), (b'Y', 1), (b'L', 4), (b'Q', 2)] {
        assert_eq!(observed.by_type[usize::from(message_type)], count * symbols, "{}", message_type as char);
    }
    assert_eq!((observed.by_type[usize::from(b'S')], observed.by_type[usize::from(b'V')]), (6, 1));
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
    assert_eq!(OBSERVED.events, expected);
}

#[test]
fn live_orders_rise_stay_and_fall() {
    let observed = &*OBSERVED;
    assert!(observed.live.len() > 100);
    let (least, most) = (*observed.live.iter().min().unwrap(), *observed.live.iter().max().unwrap());
    assert!(least >= SMALL.live * 95 / 100 && most <= SMALL.live * 103 / 100, "{least} to {most}");
    assert!(observed.live_max <= SMALL.live * 103 / 100);
    assert!(observed.resting_at_end <= SMALL.live / 10, "{}", observed.resting_at_end);
}

#[test]
fn the_counters_match_the_messages() {
    let mut day = ItchDay::new(SMALL).unwrap();
    let mut message = [0; MESSAGE_LEN_MAX];
    while let Some(len) = day.next_message(&mut message) {
        assert_eq!(itch50::message_len(message[0]), Some(len));
    }
    assert_eq!(day.next_message(&mut message), None, "the day is over");
    let (counters, observed) = (day.counters(), &*OBSERVED);
    assert_eq!(counters.messages, observed.builder.messages);
    assert_eq!((counters.live, counters.live_max), (observed.resting_at_end, observed.live_max));
    assert_eq!(counters.order_refs, observed.refs.len() as u64);
    assert!(counters.by_type().all(|(kind, count)| count == observed.by_type[usize::from(kind)]));
    assert_eq!(counters.by_type().map(|(_, count)| count).sum::<u64>(), SMALL.messages);
}

#[test]
fn lifetimes_reach_from_microseconds_to_hours() {
    let lifetimes = &OBSERVED.lifetimes;
    let at_percent = |percent: usize| lifetimes[lifetimes.len() * percent / 100];
    assert!(at_percent(5) < 100_000, "one in twenty lives less than 100 us: {}", at_percent(5));
    assert!(at_percent(20) < 100_000_000, "{}", at_percent(20));
    assert!((1_000_000_000..HOUR / 6).contains(&at_percent(50)), "{}", at_percent(50));
    assert!(at_percent(97) > HOUR / 2 && at_percent(99) > HOUR, "{} {}", at_percent(97), at_percent(99));
    assert!(OBSERVED.chain_max >= 5, "{}", OBSERVED.chain_max);
}

#[test]
fn activity_follows_the_rank() {
    let mut counts = OBSERVED.by_locate[1..].to_vec();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // Expected ratio of messages, rank 1 to rank 46: 54 / 9, but less while the books fill and empty.
    let ratio = counts[0] as f64 / counts[45] as f64;
    assert!((3.5..=6.5).contains(&ratio), "{ratio}");
}

#[test]
fn books_are_deep_tight_and_move() {
    let observed = &*OBSERVED;
    let (deepest, median) = (*observed.levels.last().unwrap(), observed.levels[observed.levels.len() / 2]);
    assert!(deepest >= 100 && (20..100).contains(&median), "{median} to {deepest} levels");
    let spread = observed.spreads[observed.spreads.len() / 2];
    assert!(
        (1..=4).contains(&spread) && observed.spreads.len() == 60,
        "{spread} of {}",
        observed.spreads.len()
    );
    let moved =
        observed.at_opening.iter().zip(&observed.at_close).filter(|(opening, close)| opening != close);
    assert!(moved.count() >= 50);
}

#[test]
fn references_increase_and_are_unique() {
    let refs = &OBSERVED.refs;
    assert!(refs.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(refs.iter().all(|order_ref| order_ref.is_multiple_of(4)));
    let mean_step = refs.last().unwrap() / refs.len() as u64;
    assert!((6..=12).contains(&mean_step), "{mean_step}");
}

//! Scenarios of books built from ITCH messages, and of messages that make them suspect.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_book::{BookLimits, BooksById, Indexed};
use tickpath_feed::{BookBuilder, BuilderCounters, MessageBooks, OtherSymbol, UpdateListener};
use tickpath_nasdaq::itch50::{OrderDelete, market_event_message};
use tickpath_reference::ReferenceBooks;
use tickpath_types::{
    BookHealth, Instrument, InstrumentId, MarketEvent, MarketEventKind, MarketUpdate, MatchId, Nanos,
    OrderId, Price, Qty, Sequence, Side, Symbol, TradingState, UpdateKind,
};
use zerocopy::IntoBytes;

const ALPHA: InstrumentId = InstrumentId(1);

#[derive(Default)]
struct Updates(Vec<MarketUpdate>);

impl UpdateListener for Updates {
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0.push(*update);
    }
}

struct Feed {
    builder: BookBuilder<Indexed<ReferenceBooks>>,
    updates: Updates,
    next: u64,
}

impl Feed {
    /// Creates a feed of one instrument that trades.
    fn open() -> Feed {
        let books = Indexed::new(BookLimits::new(InstrumentId(2), 8));
        let mut feed = Feed { builder: BookBuilder::new(books), updates: Updates::default(), next: 1 };
        feed.event(MarketEventKind::Directory);
        feed.event(MarketEventKind::TradingAction(TradingState::Trading));
        feed.updates.0.clear();
        feed
    }

    fn event(&mut self, kind: MarketEventKind) -> Option<MarketUpdate> {
        let instrument = Instrument::in_cents(ALPHA, Symbol::new("ALPHA").unwrap(), Price(1_000_000));
        let (sequence, command, ts) = (Sequence(self.next), Sequence(self.next), Nanos(77));
        let event = MarketEvent { sequence, command, ts, instrument: ALPHA, kind };
        self.message(&market_event_message(&event, Some(&instrument)).unwrap())
    }

    fn message(&mut self, bytes: &[u8]) -> Option<MarketUpdate> {
        let before = self.health();
        self.updates.0.clear();
        self.builder.handle_message(Sequence(self.next), bytes, &mut self.updates);
        self.next += 1;
        if self.health() == before {
            assert!(self.updates.0.len() <= 1);
        } else {
            assert_eq!(self.updates.0.last().unwrap().health(), self.health(), "a change is published");
        }
        self.updates.0.first().copied()
    }

    fn add(&mut self, id: u64, side: Side, price: i64, qty: u64) -> Option<MarketUpdate> {
        self.event(MarketEventKind::Add { order_id: OrderId(id), side, price: Price(price), qty: Qty(qty) })
    }

    fn health(&self) -> BookHealth {
        self.builder.instrument(ALPHA).unwrap().health
    }
}

#[test]
fn each_message_reports_its_effect_and_the_best_prices_that_it_leaves() {
    let mut feed = Feed::open();
    let update = feed.add(1, Side::Buy, 999_900, 10).unwrap();
    assert_eq!(
        (update.kind(), update.bid(), update.ask()),
        (Some(UpdateKind::Add), Some((Price(999_900), Qty(10))), None)
    );
    assert_eq!((update.sequence, update.ts_event, update.order_id), (3, 77, 1));
    feed.add(2, Side::Sell, 1_000_100, 20).unwrap();
    let trade = feed
        .event(MarketEventKind::Executed { order_id: OrderId(2), qty: Qty(5), match_id: MatchId(1) })
        .unwrap();
    assert_eq!(
        (trade.kind(), trade.price, trade.qty, trade.aggressor()),
        (Some(UpdateKind::Trade), 1_000_100, 5, Some(Side::Buy))
    );
    assert_eq!(trade.ask(), Some((Price(1_000_100), Qty(15))));
    let reduce = feed.event(MarketEventKind::Reduced { order_id: OrderId(2), qty: Qty(5) }).unwrap();
    assert_eq!((reduce.kind(), reduce.ask()), (Some(UpdateKind::Reduce), Some((Price(1_000_100), Qty(10)))));
    let replaced = MarketEventKind::Replaced {
        old_order_id: OrderId(2),
        order_id: OrderId(3),
        price: Price(1_000_200),
        qty: Qty(7),
    };
    assert_eq!(feed.event(replaced).unwrap().ask(), Some((Price(1_000_200), Qty(7))));
    assert_eq!(feed.event(MarketEventKind::Deleted { order_id: OrderId(1) }).unwrap().bid(), None);
    assert_eq!(feed.health(), BookHealth::Live);
    assert_eq!(feed.builder.books().order_count(), 1);
}

/// Each contradiction has its own counter and makes the book suspect.
#[test]
fn contradictions_are_never_silent() {
    type Contradiction = (&'static str, fn(&mut Feed), fn(&BuilderCounters) -> u64);
    let cases: &[Contradiction] = &[
        (
            "unknown order",
            |feed| _ = feed.event(MarketEventKind::Deleted { order_id: OrderId(9) }),
            |c| c.unknown_order,
        ),
        (
            "execution beyond what is left",
            |feed| {
                let executed =
                    MarketEventKind::Executed { order_id: OrderId(1), qty: Qty(11), match_id: MatchId(1) };
                assert_eq!(feed.event(executed).unwrap().bid(), None, "as far as it makes sense");
            },
            |c| c.beyond_qty,
        ),
        ("an order added twice", |feed| _ = feed.add(1, Side::Buy, 999_800, 5), |c| c.duplicate_order),
        ("crossed while trading", |feed| _ = feed.add(2, Side::Sell, 999_900, 5), |c| c.crossed),
        (
            "more orders than the books hold",
            |feed| (2..=9).for_each(|id| _ = feed.add(id, Side::Buy, 1, 1)),
            |c| c.refused,
        ),
        (
            "an order of another instrument",
            |feed| {
                let delete = OrderDelete::new(InstrumentId(2), 0_u16, Nanos(1), OrderId(1));
                assert_eq!(feed.message(delete.as_bytes()), None);
                assert_eq!(feed.builder.instrument(InstrumentId(2)).unwrap().health, BookHealth::Suspect);
                feed.event(MarketEventKind::Deleted { order_id: OrderId(9) });
            },
            |c| c.unknown_order - 1,
        ),
    ];
    for (name, act, count) in cases {
        let mut feed = Feed::open();
        feed.add(1, Side::Buy, 999_900, 10).unwrap();
        assert_eq!(feed.health(), BookHealth::Live);
        act(&mut feed);
        assert_eq!(feed.health(), BookHealth::Suspect, "{name}");
        assert_eq!(count(feed.builder.counters()), 1, "{name}");
    }
}

#[test]
fn loss_and_recovery_show_in_every_update() {
    let mut feed = Feed::open();
    feed.builder.instruments_mut().handle_recovering(true, &mut feed.updates);
    assert_eq!(feed.updates.0.pop().unwrap().health(), BookHealth::Recovering);
    feed.builder.instruments_mut().handle_recovering(true, &mut feed.updates);
    assert!(feed.updates.0.is_empty(), "said once");
    feed.builder.instruments_mut().handle_recovering(false, &mut feed.updates);
    assert_eq!(feed.updates.0.pop().unwrap().health(), BookHealth::Live);
    feed.builder.handle_lost(&mut feed.updates);
    assert_eq!(feed.add(1, Side::Buy, 999_900, 1).unwrap().health(), BookHealth::Stale);
}

#[test]
fn damaged_messages_of_any_length_are_counted_and_make_the_book_suspect() {
    let mut feed = Feed::open();
    feed.add(1, Side::Buy, 999_900, 10).unwrap();
    let (locate, ts) = (ALPHA, Nanos(1));
    let delete = OrderDelete::new(locate, 0_u16, ts, OrderId(1));
    for len in (0..delete.as_bytes().len()).chain([OrderDelete::LEN + 1]) {
        let mut bytes = delete.as_bytes().to_vec();
        bytes.resize(len, 0);
        feed.message(&bytes);
    }
    assert_eq!(feed.builder.counters().malformed, OrderDelete::LEN as u64 + 1);
    feed.message(b"zzz");
    assert_eq!(feed.builder.counters().unknown_type, 1);
    assert_eq!((feed.health(), feed.builder.books().order_count()), (BookHealth::Suspect, 1));
}

#[test]
fn a_book_with_an_unexpected_symbol_stays_suspect() {
    let [alpha, bravo, gamma] = ["ALPHA", "BRAVO", "GAMMA"].map(|symbol| Symbol::new(symbol).unwrap());
    let books = Indexed::<ReferenceBooks>::new(BookLimits::new(InstrumentId(3), 8));
    let mut builder = BookBuilder::new(books).expecting(&[alpha, bravo]);
    let mut updates = Updates::default();
    let mut sequence = 0;
    let mut name = |builder: &mut BookBuilder<_>, id, symbol| {
        sequence += 1;
        let kind = MarketEventKind::Directory;
        let instrument = Instrument::in_cents(InstrumentId(id), symbol, Price(1_000_000));
        let (command, ts, at) = (Sequence(1), Nanos(77), Sequence(sequence));
        let event = MarketEvent { sequence: at, command, ts, instrument: instrument.id, kind };
        let message = market_event_message(&event, Some(&instrument)).unwrap();
        updates.0.clear();
        builder.handle_message(at, &message, &mut updates);
        updates.0.iter().map(|update| (update.instrument, update.health())).collect::<Vec<_>>()
    };
    let health =
        |builder: &BookBuilder<_>| [1, 2, 3].map(|id| builder.instrument(InstrumentId(id)).unwrap().health);
    // No symbol is expected for the third instrument.
    for (id, symbol) in [(1, alpha), (3, gamma)] {
        assert_eq!(name(&mut builder, id, symbol), []);
    }
    assert_eq!(health(&builder), [BookHealth::Live; 3]);
    assert_eq!((builder.instruments().other_symbols().count(), builder.counters().other_symbols), (0, 0));

    assert_eq!(name(&mut builder, 2, gamma), [(2, BookHealth::Suspect)]);
    // Another directory message, with that symbol or the expected one, does not change the book's health.
    for symbol in [gamma, bravo] {
        assert_eq!(name(&mut builder, 2, symbol), []);
    }
    assert_eq!(health(&builder), [BookHealth::Live, BookHealth::Suspect, BookHealth::Live]);
    let other = OtherSymbol { instrument: InstrumentId(2), expected: bravo, named: gamma };
    assert_eq!(builder.instruments().other_symbols().collect::<Vec<_>>(), [other]);
    assert_eq!((builder.counters().other_symbols, builder.counters().refused), (1, 0));

    // An id beyond the books' limit, and id 0, which no instrument has.
    name(&mut builder, 4, gamma);
    name(&mut builder, 0, gamma);
    assert_eq!((builder.counters().other_symbols, builder.counters().refused), (1, 1));
}

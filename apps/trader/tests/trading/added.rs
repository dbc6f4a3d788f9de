//! The venue adds instruments while a trader runs: the trader ignores them and trades those it knows.

use std::collections::BTreeSet;
use std::sync::PoisonError;

use tickpath_agent::TscClock;
use tickpath_book::OrderBooks;
use tickpath_exchange::{AdminCommand, AdminOutcome, Phase, VenueSettings};
use tickpath_feed::MessageBooks;
use tickpath_matching::EngineLimits;
use tickpath_test_support::{wait_for, wait_until};
use tickpath_test_venue::{PASSWORD, RunningVenue};
use tickpath_trader::{OrderEntry, Trader};
use tickpath_trading::{RandomStrategy, TraderSnapshot};
use tickpath_types::{
    BookHealth, EnterOrder, Instrument, InstrumentId, InstrumentTable, OrderRequest, Price, Qty, Side,
    Symbol, UserRefNum,
};

use crate::site::{ALPHA, instruments, venue_settings};
use crate::threads::trader_of;

/// Session id of the user RIVAL.
const RIVAL: u16 = 2;
/// Added instruments: the trader's feed handler has a spare book for SPARE and none for BEYOND.
const SPARE: InstrumentId = InstrumentId(2);
const BEYOND: InstrumentId = InstrumentId(3);

fn added(id: InstrumentId, symbol: &str) -> Instrument {
    tickpath_test_support::instrument(id.0, symbol)
}

/// A client of the user RIVAL; its instrument table includes the added instruments.
struct Rival {
    entry: OrderEntry,
    answers: usize,
    user_ref: u32,
}

impl Rival {
    fn new(venue: &RunningVenue) -> Rival {
        let all = [*instruments().get(ALPHA).unwrap(), added(SPARE, "SPARE"), added(BEYOND, "BEYOND")];
        let (address, all) = (venue.endpoints.order_entry, InstrumentTable::new(&all));
        let now = TscClock::system().now();
        let entry = OrderEntry::connect(address, "RIVAL", PASSWORD, all, now).unwrap();
        let mut rival = Rival { entry, answers: 0, user_ref: 0 };
        wait_until("the rival's login", || {
            rival.poll();
            rival.entry.is_active()
        });
        rival
    }

    fn poll(&mut self) {
        let now = TscClock::system().now();
        self.entry.poll(now, &mut self.answers, |_| {}, |answers, _| *answers += 1).unwrap();
    }

    fn enter(&mut self, instrument: InstrumentId, side: Side, qty: u64) {
        self.user_ref += 1;
        let order =
            EnterOrder::limit(UserRefNum(self.user_ref), instrument, side, Qty(qty), Price(1_000_000));
        let before = self.answers;
        self.entry.queue(&OrderRequest::Enter(order)).unwrap();
        self.entry.flush(TscClock::system().now()).unwrap();
        wait_until("the rival's answer", || {
            self.poll();
            self.answers > before
        });
    }
}

fn snapshot(trader: &Trader) -> TraderSnapshot {
    // Retries while the engine is writing its snapshot.
    wait_for("a snapshot", || trader.view().snapshot().ok())
}

#[test]
fn a_trader_ignores_added_instruments() {
    let limits = EngineLimits { max_instruments: BEYOND.0, ..venue_settings().limits };
    let mut venue = RunningVenue::start(&VenueSettings { limits, ..venue_settings() });
    let mut trader = trader_of(&venue, "TRADER", 1);
    trader.config.market_data.spare_instruments = 1;
    let trader =
        Trader::start(&trader, RandomStrategy::new(1, Default::default()).into(), TscClock::system())
            .unwrap();
    wait_until("orders", || snapshot(&trader).counters.enters > 0);

    let mut rival = Rival::new(&venue);
    for (id, symbol) in [(SPARE, "SPARE"), (BEYOND, "BEYOND")] {
        let open = AdminCommand::Phase { phase: Phase::Open, instrument: Some(id) };
        for command in [AdminCommand::AddInstrument(added(id, symbol)), open] {
            assert!(matches!(venue.command(command), AdminOutcome::Done { .. }), "{symbol}");
        }
        rival.enter(id, Side::Buy, 30);
        rival.enter(id, Side::Sell, 10);
    }
    let before = snapshot(&trader).counters;
    wait_until("more orders, and the news of what was added", || {
        let now = snapshot(&trader).counters;
        now.enters > before.enters + 5 && now.unknown_instruments > 0
    });
    trader.stop_trading();
    wait_until("the cancels", || {
        let now = snapshot(&trader);
        now.stopped.is_some() && now.open_orders == 0
    });
    let (feed, view) = (trader.feed().clone(), trader.view().clone());
    wait_until("the latest message", || {
        let published = venue.view.publisher.messages.read();
        feed.counters.messages.read() == published
    });
    assert!(!trader.has_ended());
    trader.join().unwrap();

    let snapshot = view.snapshot().unwrap();
    // SPARE has four updates: halted, open, an order and an execution. BEYOND has one: an order, for which
    // there is no book.
    assert!(snapshot.counters.unknown_instruments >= 5, "{:?}", snapshot.counters);
    assert_eq!(snapshot.positions.len(), 1);
    let feed = feed.result.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap();
    let health = |id| feed.books.instrument(id).map(|state| state.health);
    assert_eq!(
        (health(ALPHA), health(SPARE), health(BEYOND)),
        (Some(BookHealth::Live), Some(BookHealth::Live), None)
    );
    let symbol = feed.books.instrument(SPARE).unwrap().symbol;
    assert_eq!(symbol, Some(Symbol::new("SPARE").unwrap()));

    drop(rival);
    venue.stop();
    let engine = venue.view.engine.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap();
    let owners = |id| -> BTreeSet<u16> {
        Side::BOTH
            .iter()
            .flat_map(|side| engine.books().orders(id, *side))
            .map(|(_, order)| order.data.session.0)
            .collect()
    };
    for id in [SPARE, BEYOND] {
        assert_eq!(owners(id), BTreeSet::from([RIVAL]), "no other trader trades {id}");
    }
}

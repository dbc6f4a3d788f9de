//! Scenarios of books that lost messages and recover from snapshots.

#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use tickpath_book::{BookLimits, BooksById, Indexed};
use tickpath_feed::{
    BookBuilder, MessageBooks, SNAPSHOT_AHEAD_MAX, SnapshotOutcome, SnapshotRecovery, SnapshotScope,
    UpdateListener,
};
use tickpath_matching::Owner;
use tickpath_matching::workload::{Workload, WorkloadConfig};
use tickpath_nasdaq::glimpse::EndOfSnapshot;
use tickpath_nasdaq::itch50::market_event_message;
use tickpath_reference::ReferenceBooks;
use tickpath_types::{
    BookHealth, Instrument, InstrumentId, InstrumentTable, MarketEvent, MarketEventKind, MarketUpdate, Nanos,
    OrderId, Price, Qty, Sequence, Side, Symbol,
};
use zerocopy::IntoBytes;

const INSTRUMENTS: u16 = 3;
const MARKET: SnapshotScope = SnapshotScope::Market;
const INSTRUMENT: SnapshotScope = SnapshotScope::Instrument;

type Books = Indexed<ReferenceBooks>;

#[derive(Default)]
struct Updates(Vec<MarketUpdate>);

impl UpdateListener for Updates {
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0.push(*update);
    }
}

/// A session's messages, from which snapshots of the session at any message are built.
struct Recording {
    table: InstrumentTable,
    messages: Vec<Vec<u8>>,
}

fn builder() -> BookBuilder<Books> {
    BookBuilder::new(Books::new(BookLimits::new(InstrumentId(INSTRUMENTS), 1_024)))
}

impl Recording {
    fn new() -> Recording {
        let workload = Workload::generate(&WorkloadConfig {
            seed: 11,
            instrument_count: INSTRUMENTS,
            session_count: 2,
            open_order_count: 100,
            command_count: 900,
            ..WorkloadConfig::default()
        });
        let (_, events) = workload.published::<ReferenceBooks<Owner>>();
        let table = InstrumentTable::new(&workload.instruments);
        let messages = events.iter().map(|event| encode(&table, event)).collect();
        Recording { table, messages }
    }

    fn len(&self) -> u64 {
        self.messages.len() as u64
    }

    fn message(&self, sequence: u64) -> &[u8] {
        &self.messages[sequence as usize - 1]
    }

    /// Returns the books as they are just before message `next`.
    fn books(&self, next: u64) -> BookBuilder<Books> {
        let mut builder = builder();
        for sequence in 1..next {
            builder.handle_message(Sequence(sequence), self.message(sequence), &mut Updates::default());
        }
        builder
    }

    /// Returns a snapshot of some instruments as they are just before message `next`, without its end
    /// message.
    fn state(&self, next: u64, instruments: impl IntoIterator<Item = u16>) -> Vec<Vec<u8>> {
        let builder = self.books(next);
        let mut messages = vec![];
        for id in instruments.into_iter().map(InstrumentId) {
            let state = builder.instrument(id).unwrap();
            let mut push = |kind| {
                let event = MarketEvent {
                    sequence: Sequence(1),
                    command: Sequence(1),
                    ts: Nanos(5),
                    instrument: id,
                    kind,
                };
                messages.push(encode(&self.table, &event));
            };
            push(MarketEventKind::Directory);
            state.trading.into_iter().for_each(|state| push(MarketEventKind::TradingAction(state)));
            for order in Side::BOTH.into_iter().flat_map(|side| builder.books().orders(id, side)) {
                let tickpath_book::Order { id: order_id, side, price, qty, .. } = order;
                push(MarketEventKind::Add { order_id, side, price, qty });
            }
        }
        messages
    }
}

fn encode(table: &InstrumentTable, event: &MarketEvent) -> Vec<u8> {
    market_event_message(event, table.get(event.instrument)).unwrap().to_vec()
}

fn end(next: u64) -> Vec<u8> {
    EndOfSnapshot::of(Sequence(next)).as_bytes().to_vec()
}

/// A feed with snapshot recovery.
struct Feed<'a> {
    recording: &'a Recording,
    builder: BookBuilder<Books>,
    recovery: SnapshotRecovery,
    updates: Updates,
    next: u64,
}

impl<'a> Feed<'a> {
    /// Creates a feed that received the messages before `next` and lost messages `next..then`.
    fn after_loss(recording: &'a Recording, next: u64, then: u64, held_max: usize) -> Feed<'a> {
        let recovery = SnapshotRecovery::new(InstrumentId(INSTRUMENTS), held_max);
        let mut feed = Feed {
            recording,
            builder: recording.books(next),
            recovery,
            updates: Updates::default(),
            next: then,
        };
        feed.lose(then);
        feed
    }

    fn lose(&mut self, then: u64) {
        self.next = then;
        self.builder.handle_lost(&mut self.updates);
        self.recovery.handle_lost(Sequence(then));
    }

    fn live_until(&mut self, end: u64) {
        for sequence in self.next..end {
            let message = self.recording.message(sequence);
            if self.recovery.is_active() {
                self.recovery.handle_message(
                    Sequence(sequence),
                    message,
                    &mut self.builder,
                    &mut self.updates,
                );
            } else {
                self.builder.handle_message(Sequence(sequence), message, &mut self.updates);
            }
        }
        self.next = end;
    }

    fn send_snapshot(&mut self, scope: SnapshotScope, messages: &[Vec<u8>]) -> Option<SnapshotOutcome> {
        let mut outcome = None;
        for message in messages {
            outcome = self.recovery.handle_snapshot(scope, message, &mut self.builder, &mut self.updates);
        }
        outcome
    }

    fn market_snapshot(&mut self, next: u64) -> Option<SnapshotOutcome> {
        self.recovery.begin(MARKET);
        self.send_snapshot(MARKET, &self.recording.state(next, 1..=INSTRUMENTS));
        self.send_snapshot(MARKET, &[end(next)])
    }

    fn instrument_snapshot(&mut self, id: u16, next: u64) -> Option<SnapshotOutcome> {
        self.send_snapshot(INSTRUMENT, &self.recording.state(next, [id]));
        self.send_snapshot(INSTRUMENT, &[end(next)])
    }

    fn health(&self, id: u16) -> BookHealth {
        self.builder.instrument(InstrumentId(id)).unwrap().health
    }

    /// Applies the remaining messages: the books must then equal the venue's, order by order.
    fn check(mut self) {
        let end = self.recording.len() + 1;
        self.live_until(end);
        assert_eq!(self.builder.books().state_hash(), self.recording.books(end).books().state_hash());
        assert!((1..=INSTRUMENTS).all(|id| self.health(id) == BookHealth::Live));
        assert!(!self.recovery.is_active());
        assert_eq!(self.builder.counters().unknown_order + self.builder.counters().duplicate_order, 0);
    }
}

#[test]
fn a_market_snapshot_joins_the_held_messages() {
    let recording = Recording::new();
    // Snapshots that end where the loss ends, among the held messages, after them, and further ahead.
    for snapshot in [400, 401, 450, 500, 560] {
        let mut feed = Feed::after_loss(&recording, 300, 400, 256);
        feed.live_until(500);
        assert!(feed.recovery.needs_snapshot() && feed.health(1) == BookHealth::Stale);
        assert_eq!(feed.market_snapshot(snapshot), Some(SnapshotOutcome::Recovered(3)));
        assert_eq!(feed.recovery.is_active(), snapshot > 500, "{snapshot}");
        feed.check();
    }
}

#[test]
fn a_late_joiner_needs_only_a_snapshot() {
    let recording = Recording::new();
    let mut feed = Feed::after_loss(&recording, 1, 600, 256);
    feed.live_until(640);
    assert_eq!(feed.market_snapshot(620), Some(SnapshotOutcome::Recovered(3)));
    feed.check();
}

#[test]
fn instruments_recover_separately() {
    let recording = Recording::new();
    let mut feed = Feed::after_loss(&recording, 300, 400, 1_024);
    for (id, snapshot) in [(2, 420), (3, 480), (1, 555)] {
        feed.live_until(snapshot + 30);
        assert_eq!(feed.health(id), BookHealth::Stale);
        assert_eq!(feed.instrument_snapshot(id, snapshot), Some(SnapshotOutcome::Recovered(1)));
        assert_eq!(feed.health(id), BookHealth::Live);
        assert_eq!(
            feed.instrument_snapshot(id, snapshot),
            Some(SnapshotOutcome::Ignored),
            "it needs none any more"
        );
        feed.live_until(snapshot + 50);
    }
    assert_eq!(feed.recovery.counters().recovered, 3);
    feed.check();
}

#[test]
fn a_snapshot_before_the_held_messages_is_too_old() {
    let recording = Recording::new();
    let mut feed = Feed::after_loss(&recording, 300, 400, 256);
    assert_eq!(feed.market_snapshot(399), Some(SnapshotOutcome::TooOld));
    assert_eq!(feed.instrument_snapshot(1, 399), Some(SnapshotOutcome::TooOld));
    assert_eq!((feed.recovery.waiting(), feed.recovery.counters().too_old), (3, 2));
    assert_eq!(feed.health(1), BookHealth::Stale);
    assert_eq!(feed.market_snapshot(400), Some(SnapshotOutcome::Recovered(3)));
    feed.check();
}

/// If the snapshot were accepted, the books would be live but never change again.
#[test]
fn a_snapshot_too_far_ahead_is_rejected() {
    let recording = Recording::new();
    let state = recording.state(420, 1..=INSTRUMENTS);
    let send_with_end = |feed: &mut Feed, scope, next: u64| {
        feed.recovery.begin(scope);
        feed.send_snapshot(scope, &state);
        feed.send_snapshot(scope, &[end(next)])
    };
    // The end message of a snapshot states its end in twenty digits, so any `u64` is possible.
    for next in [420 + SNAPSHOT_AHEAD_MAX + 1, u64::MAX] {
        let mut feed = Feed::after_loss(&recording, 300, 400, 256);
        feed.live_until(420);
        assert_eq!(send_with_end(&mut feed, MARKET, next), Some(SnapshotOutcome::TooFarAhead));
        assert_eq!(send_with_end(&mut feed, INSTRUMENT, next), Some(SnapshotOutcome::TooFarAhead));
        assert_eq!((feed.recovery.waiting(), feed.recovery.counters().too_far_ahead), (3, 2));
        assert_eq!(feed.health(1), BookHealth::Stale);
        feed.live_until(450);
        assert_eq!(feed.market_snapshot(430), Some(SnapshotOutcome::Recovered(3)));
        assert_eq!(send_with_end(&mut feed, MARKET, next), Some(SnapshotOutcome::Ignored), "it needs none");
        feed.check();
    }
    let mut feed = Feed::after_loss(&recording, 300, 400, 256);
    feed.live_until(420);
    let at_the_bound = send_with_end(&mut feed, MARKET, 420 + SNAPSHOT_AHEAD_MAX);
    assert_eq!(at_the_bound, Some(SnapshotOutcome::Recovered(3)));
    assert!(feed.recovery.is_active(), "until the lines have come so far");
}

#[test]
fn dropped_messages_make_older_snapshots_too_old() {
    const HELD: usize = 50;
    let recording = Recording::new();
    let about_instruments: Vec<u64> =
        (400..700).filter(|it| recording.message(*it)[1..3] != [0, 0]).collect();
    let mut feed = Feed::after_loss(&recording, 300, 400, HELD);
    feed.live_until(about_instruments[HELD - 1] + 1);
    assert_eq!(feed.recovery.counters().dropped, 0, "at the bound");
    feed.live_until(about_instruments[HELD] + 1);
    assert_eq!(feed.recovery.counters().dropped, 1, "one beyond");
    assert_eq!(feed.market_snapshot(400), Some(SnapshotOutcome::TooOld));
    assert_eq!(feed.market_snapshot(401), Some(SnapshotOutcome::Recovered(3)));
    feed.check();
}

#[test]
fn an_interrupted_snapshot_leaves_the_book_stale() {
    let recording = Recording::new();
    for scope in [MARKET, INSTRUMENT] {
        let mut feed = Feed::after_loss(&recording, 300, 400, 256);
        feed.recovery.begin(scope);
        let state = recording.state(420, [1]);
        feed.send_snapshot(scope, &state[..state.len() / 2]);
        assert_eq!(feed.health(1), BookHealth::Stale, "half a book is not trusted");
        feed.recovery.abandon();
        assert_eq!(feed.send_snapshot(scope, &state[state.len() / 2..]), None);
        assert_eq!(feed.send_snapshot(scope, &[end(420)]), Some(SnapshotOutcome::Ignored));
        assert_eq!((feed.recovery.waiting(), feed.recovery.counters().abandoned), (3, 1));
        assert_eq!(feed.market_snapshot(430), Some(SnapshotOutcome::Recovered(3)));
        feed.check();
    }
}

#[test]
fn a_loss_during_recovery_restarts_it() {
    let recording = Recording::new();
    let mut feed = Feed::after_loss(&recording, 300, 400, 256);
    feed.live_until(450);
    assert_eq!(feed.instrument_snapshot(2, 440), Some(SnapshotOutcome::Recovered(1)));
    feed.recovery.begin(MARKET);
    feed.send_snapshot(MARKET, &recording.state(600, [1, 2]));
    feed.lose(500);
    assert_eq!(feed.recovery.waiting(), 3, "the one that was healed too");
    feed.send_snapshot(MARKET, &recording.state(600, [3]));
    assert_eq!(
        feed.send_snapshot(MARKET, &[end(600)]),
        Some(SnapshotOutcome::Ignored),
        "half of it was not seen"
    );
    feed.live_until(520);
    assert_eq!(feed.market_snapshot(510), Some(SnapshotOutcome::Recovered(3)));
    feed.check();
}

#[test]
fn an_instrument_absent_from_a_market_snapshot_is_empty() {
    let recording = Recording::new();
    let mut feed = Feed::after_loss(&recording, 300, 400, 256);
    feed.recovery.begin(MARKET);
    feed.send_snapshot(MARKET, &recording.state(400, [1, 2]));
    assert_eq!(feed.send_snapshot(MARKET, &[end(400)]), Some(SnapshotOutcome::Recovered(3)));
    assert_eq!(feed.health(3), BookHealth::Live);
    for side in Side::BOTH {
        assert_eq!(feed.builder.books().orders(InstrumentId(3), side).count(), 0);
    }
}

#[test]
fn no_snapshot_recovers_a_book_with_an_unexpected_symbol() {
    let recording = Recording::new();
    let mut expected: Vec<Symbol> = recording.table.iter().map(|instrument| instrument.symbol).collect();
    expected[1] = Symbol::new("BRAVO").unwrap();
    let healths = |feed: &Feed| [1, 2, 3].map(|id| feed.health(id));
    // The unexpected symbol comes from the lines before the loss (300), or only from the snapshot (1).
    for next in [300, 1] {
        for scope in [MARKET, INSTRUMENT] {
            let mut feed = Feed::after_loss(&recording, 1, 400, 256);
            feed.builder = builder().expecting(&expected);
            for sequence in 1..next {
                let message = recording.message(sequence);
                feed.builder.handle_message(Sequence(sequence), message, &mut Updates::default());
            }
            feed.lose(400);
            feed.live_until(450);
            feed.updates.0.clear();
            match scope {
                MARKET => _ = feed.market_snapshot(420),
                INSTRUMENT => (1..=INSTRUMENTS).for_each(|id| _ = feed.instrument_snapshot(id, 420)),
            }
            assert!(!feed.recovery.needs_snapshot());
            let published: Vec<_> = feed.updates.0.iter().map(MarketUpdate::health).collect();
            let expected = [BookHealth::Live, BookHealth::Suspect, BookHealth::Live];
            assert_eq!((&published[..], healths(&feed)), (&expected[..], expected), "{next} {scope:?}");
            assert_eq!(feed.builder.counters().other_symbols, 1);
            feed.live_until(recording.len() + 1);
            assert_eq!(healths(&feed), expected);
        }
    }
}

/// Number of instruments that the venue may add later.
const SPARE: u16 = 2;

/// Creates a feed with capacity for [`SPARE`] more instruments than the recording has. The feed joins late:
/// it receives no message before `then`.
fn with_spare_instruments(recording: &Recording, then: u64, held_max: usize) -> Feed<'_> {
    let max_instrument = InstrumentId(INSTRUMENTS + SPARE);
    let builder = BookBuilder::new(Books::new(BookLimits::new(max_instrument, 1_024)));
    let recovery = SnapshotRecovery::new(max_instrument, held_max);
    let mut feed = Feed { recording, builder, recovery, updates: Updates::default(), next: then };
    feed.lose(then);
    feed
}

#[test]
fn instruments_absent_from_a_full_cycle_are_empty() {
    let recording = Recording::new();
    for snapshots in [[420, 430, 440, 450], [420; 4]] {
        let mut feed = with_spare_instruments(&recording, 400, 256);
        for (id, snapshot) in [2, 3, 1].into_iter().zip(snapshots) {
            feed.live_until(snapshot + 5);
            assert_eq!(feed.instrument_snapshot(id, snapshot), Some(SnapshotOutcome::Recovered(1)));
        }
        assert_eq!(feed.recovery.waiting(), u32::from(SPARE));
        assert_eq!(feed.instrument_snapshot(2, snapshots[3]), Some(SnapshotOutcome::Recovered(SPARE.into())));
        assert_eq!(feed.recovery.waiting(), 0);
        feed.check();
    }
}

#[test]
fn an_instrument_added_within_a_cycle_keeps_its_messages() {
    let recording = Recording::new();
    let mut feed = with_spare_instruments(&recording, 400, 256);
    feed.live_until(430);
    feed.instrument_snapshot(1, 420);
    let new = Instrument::in_cents(InstrumentId(4), Symbol::new("NEW").unwrap(), Price(1_000_000));
    let (order_id, qty) = (OrderId(1 << 40), Qty(7));
    let add = MarketEventKind::Add { order_id, side: Side::Sell, price: Price(1_000_100), qty };
    for (kind, sequence) in [MarketEventKind::Directory, add].into_iter().zip((430..).map(Sequence)) {
        let event = MarketEvent { sequence, command: Sequence(1), ts: Nanos(5), instrument: new.id, kind };
        let message = market_event_message(&event, Some(&new)).unwrap();
        feed.recovery.handle_message(sequence, &message, &mut feed.builder, &mut feed.updates);
    }
    feed.instrument_snapshot(2, 432);
    feed.instrument_snapshot(3, 432);
    assert_eq!((feed.recovery.waiting(), feed.health(4)), (2, BookHealth::Stale));
    feed.instrument_snapshot(1, 432);
    assert_eq!((feed.recovery.waiting(), feed.health(4)), (0, BookHealth::Live));
    let best = feed.builder.books().best(new.id, Side::Sell).unwrap();
    assert_eq!((best.price, best.qty), (Price(1_000_100), qty));
    assert_eq!(feed.updates.0.last().map(|update| update.instrument), Some(4), "engines are notified");
}

#[test]
fn an_interrupted_cycle_proves_no_absence() {
    let recording = Recording::new();
    let mut feed = with_spare_instruments(&recording, 400, 256);
    feed.live_until(430);
    feed.instrument_snapshot(1, 420);
    // A packet is lost after this snapshot. Later, the snapshot of instrument 2 is interrupted in the middle.
    feed.recovery.abandon();
    for (id, snapshot) in [(3, 421), (1, 422)] {
        feed.instrument_snapshot(id, snapshot);
    }
    let state = recording.state(423, [2]);
    feed.send_snapshot(INSTRUMENT, &state[..state.len() / 2]);
    for (id, snapshot) in [(3, 424), (1, 425), (2, 426)] {
        feed.instrument_snapshot(id, snapshot);
        assert_eq!(feed.recovery.waiting(), u32::from(SPARE) + u32::from(id != 2), "{id}");
    }
    assert_eq!(feed.instrument_snapshot(3, 427), Some(SnapshotOutcome::Recovered(SPARE.into())));
    feed.check();
}

#[test]
fn a_cycle_before_the_held_messages_proves_no_absence() {
    let recording = Recording::new();
    let mut feed = with_spare_instruments(&recording, 400, 50);
    feed.live_until(420);
    feed.instrument_snapshot(1, 405);
    feed.live_until(520);
    assert!(feed.recovery.counters().dropped > 0);
    for (id, outcome) in [(2, SnapshotOutcome::Recovered(1)), (3, SnapshotOutcome::Recovered(1))] {
        assert_eq!(feed.instrument_snapshot(id, 515), Some(outcome));
    }
    assert_eq!(
        feed.instrument_snapshot(1, 516),
        Some(SnapshotOutcome::Ignored),
        "an instrument may have been added at 406"
    );
    assert_eq!(
        feed.instrument_snapshot(2, 517),
        Some(SnapshotOutcome::Ignored),
        "this turn began with the first"
    );
    assert_eq!(feed.instrument_snapshot(3, 518), Some(SnapshotOutcome::Ignored));
    assert_eq!(feed.instrument_snapshot(1, 519), Some(SnapshotOutcome::Recovered(SPARE.into())));
    feed.check();
}

#[test]
fn a_snapshot_that_contradicts_itself_leaves_its_book_suspect() {
    let recording = Recording::new();
    let mut feed = Feed::after_loss(&recording, 300, 400, 256);
    let mut state = recording.state(400, 1..=INSTRUMENTS);
    let add = state.iter().find(|message| message[0] == b'A').unwrap().clone();
    state.push(add);
    feed.recovery.begin(MARKET);
    feed.send_snapshot(MARKET, &state);
    feed.send_snapshot(MARKET, &[end(400)]);
    assert_eq!(
        [1, 2, 3].map(|id| feed.health(id)),
        [BookHealth::Suspect, BookHealth::Live, BookHealth::Live]
    );
}

#[test]
fn damaged_snapshots_do_no_harm() {
    let recording = Recording::new();
    let mut feed = Feed::after_loss(&recording, 300, 400, 256);
    let far = [&b"R"[..], &[0xff; 38]].concat();
    for message in
        [vec![], b"G".to_vec(), b"Gx                   ".to_vec(), b"R".to_vec(), far, vec![0xff; 200]]
    {
        for scope in [MARKET, INSTRUMENT] {
            feed.recovery.begin(scope);
            feed.send_snapshot(scope, std::slice::from_ref(&message));
        }
    }
    assert_eq!(feed.recovery.waiting(), 3);
    feed.live_until(410);
    assert_eq!(feed.market_snapshot(405), Some(SnapshotOutcome::Recovered(3)));
    feed.check();
}

#[test]
fn a_recovered_book_is_published_once() {
    let recording = Recording::new();
    let mut feed = Feed::after_loss(&recording, 300, 400, 256);
    feed.updates.0.clear();
    feed.live_until(450);
    assert_eq!(feed.updates.0, [], "what is held is not told");
    feed.market_snapshot(430);
    let published: Vec<_> =
        feed.updates.0.iter().map(|update| (update.instrument, update.health())).collect();
    assert_eq!(published, [1, 2, 3].map(|id| (id, BookHealth::Live)));
    for update in &feed.updates.0 {
        let best = feed.builder.books().best(InstrumentId(update.instrument), Side::Buy);
        assert_eq!(update.bid.price, best.map_or(0, |level| level.price.0));
    }
}

/// If the caller uses `begin_instrument`, an instrument that no snapshot names recovers only at `end_cycle`.
#[test]
fn snapshots_without_cycles_recover_only_their_instruments() {
    let recording = Recording::new();
    let end = recording.len() + 1;
    let (mut recovery, mut builder): (SnapshotRecovery, _) =
        (SnapshotRecovery::new(InstrumentId(INSTRUMENTS), 64), builder());
    recovery.handle_lost(Sequence(end));
    for id in 1..INSTRUMENTS {
        recovery.begin(INSTRUMENT);
        recovery.begin_instrument(InstrumentId(id), &mut builder);
        for message in recording.state(end, [id]) {
            recovery.load(InstrumentId(id), &message, &mut builder);
        }
        let outcome = recovery.end(Some(Sequence(end)), &mut builder, &mut Updates::default());
        assert_eq!(outcome, SnapshotOutcome::Recovered(1));
        assert_eq!(recovery.waiting(), u32::from(INSTRUMENTS - id));
    }
    assert_eq!(recovery.end_cycle(Sequence(end), &mut builder, &mut Updates::default()), 1);
    assert!(!recovery.needs_snapshot());
}

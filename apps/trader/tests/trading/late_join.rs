//! A feed handler that starts long after the venue opened, and one without retransmission: both get the
//! venue's books from its snapshots.

use tickpath_agent::{Agent, Invoker, TscClock};
use tickpath_book::{BooksById, OrderBooks};
use tickpath_exchange::{MarketRecoverySettings, SnapshotSettings, VenueSettings};
use tickpath_feed::{ArbiterConfig, LossConfig, LossModel, MessageBooks};
use tickpath_feedhandler::{FeedHandler, FeedSettings, FeedView, Senders, SnapshotSources};
use tickpath_lockfree::broadcast;
use tickpath_net::{Kernel, free_multicast_group};
use tickpath_test_support::Deadline;
use tickpath_test_venue::{PASSWORD, build};
use tickpath_timing::NoTrace;
use tickpath_trader::OrderEntry;
use tickpath_types::{
    BookHealth, CancelOrder, EnterOrder, Nanos, OrderRequest, Price, Qty, Side, UserRefNum,
};

use crate::site::{ALPHA, instruments, venue_settings};

const STEP: Nanos = Nanos::from_micros(50);

/// An open venue with a client, and feed handlers that start on demand.
struct Market {
    agents: Vec<Invoker>,
    entry: OrderEntry,
    answers: usize,
    user_ref: u32,
    now: Nanos,
    endpoints: tickpath_exchange::Endpoints,
    venue: tickpath_exchange::VenueView,
    settings: VenueSettings,
}

impl Market {
    fn open() -> Market {
        let group = free_multicast_group().unwrap();
        let snapshots = SnapshotSettings { interval: Nanos::from_millis(5), ..SnapshotSettings::new(group) };
        let market_recovery =
            MarketRecoverySettings { snapshots: Some(snapshots), ..MarketRecoverySettings::default() };
        let settings = VenueSettings { market_recovery, ..venue_settings() };
        let venue = build(&settings).unwrap();
        let recovery: Box<dyn Agent> = Box::new(venue.market_recovery.unwrap());
        let agents = vec![started("venue", venue.agents), started("market-recovery", vec![recovery])];
        let now = TscClock::system().now();
        let address = venue.endpoints.order_entry;
        let entry = OrderEntry::connect(address, "RIVAL", PASSWORD, instruments(), now).unwrap();
        let (endpoints, venue) = (venue.endpoints, venue.view);
        let mut market = Market { agents, entry, answers: 0, user_ref: 0, now, endpoints, venue, settings };
        market.until("the login", |market| market.entry.is_active());
        market
    }

    fn feed(&mut self, change: impl FnOnce(&mut FeedSettings)) -> FeedView {
        let mut settings = FeedSettings {
            feed: 0,
            line_a: self.endpoints.line_a,
            line_b: self.endpoints.line_b,
            interface: self.settings.interface,
            senders: Senders::of(None, self.settings.interface, None),
            reader: Default::default(),
            max_instrument: ALPHA,
            symbols: vec![],
            max_orders: 1_024,
            arbiter: ArbiterConfig { max_gap_messages: 0, ..ArbiterConfig::default() },
            retransmission: None,
            snapshots: SnapshotSources::none(),
            loss: None,
        };
        change(&mut settings);
        let view = FeedView::default();
        let (sender, _) = broadcast::channel(1 << 10);
        let feed = FeedHandler::open(&Kernel, &settings, sender, TscClock::system(), &view, NoTrace).unwrap();
        self.agents.push(started("feed", vec![Box::new(feed)]));
        view
    }

    fn step(&mut self) {
        self.now = self.now + STEP;
        for agents in &mut self.agents {
            agents.run_once(self.now).unwrap();
        }
        self.entry.poll(self.now, &mut self.answers, |_| {}, |answers, _| *answers += 1).unwrap();
    }

    fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Market) -> bool) {
        let deadline = Deadline::start();
        while !condition(self) {
            assert!(!deadline.is_over(), "{what} did not happen");
            self.step();
        }
    }

    /// Enters orders on both sides, a third of which are cancelled.
    fn trade(&mut self, count: u32) {
        for _ in 0..count {
            self.user_ref += 1;
            let number = self.user_ref;
            let (side, away) = if number.is_multiple_of(2) { (Side::Buy, -100) } else { (Side::Sell, 100) };
            let qty = Qty(1 + u64::from(number % 5));
            let price = Price(1_000_000 + away * (1 + i64::from(number % 7)));
            self.send_request(&OrderRequest::Enter(EnterOrder::limit(
                UserRefNum(number),
                ALPHA,
                side,
                qty,
                price,
            )));
            if number.is_multiple_of(3) {
                self.send_request(&OrderRequest::Cancel(CancelOrder {
                    user_ref: UserRefNum(number),
                    qty: Qty::ZERO,
                }));
            }
        }
    }

    fn send_request(&mut self, request: &OrderRequest) {
        let before = self.answers;
        self.entry.queue(request).unwrap();
        self.entry.flush(self.now).unwrap();
        self.until("the answer", |market| market.answers > before);
    }

    /// Checks that every feed handler has received all messages, and that its books equal the venue's.
    fn check(mut self, feeds: &[&FeedView]) {
        let venue = self.venue.clone();
        self.until("the last message everywhere", |_| {
            let count = venue.publisher.messages.read();
            count == venue.matcher.market_events.read()
                && feeds.iter().all(|feed| {
                    feed.counters.messages.read() == count && feed.counters.snapshots.waiting.read() == 0
                })
        });
        let Market { agents, entry, .. } = self;
        drop(entry);
        agents.into_iter().for_each(|mut agents| agents.close());
        let engine = self.venue.engine.lock().unwrap().take().unwrap();
        for feed in feeds {
            let result = feed.result.lock().unwrap().take().unwrap();
            assert_eq!(result.worst_health(), BookHealth::Live);
            assert_eq!(
                result.builder.unknown_order + result.builder.duplicate_order,
                0,
                "{:?}",
                result.builder
            );
            assert_eq!(BooksById::state_hash(result.books.books()), OrderBooks::state_hash(engine.books()));
        }
    }
}

fn started(name: &str, agents: Vec<Box<dyn Agent>>) -> Invoker {
    let mut invoker = Invoker::new(name, agents, &[]).unwrap();
    invoker.start().unwrap();
    invoker
}

#[test]
fn late_feed_handlers_recover_from_either_snapshot_source() {
    let mut market = Market::open();
    market.trade(100);
    let (glimpse, channel) = (market.endpoints.glimpse, market.endpoints.snapshots);
    let by_tcp = market.feed(|feed| feed.snapshots.glimpse = glimpse);
    let by_multicast = market.feed(|feed| feed.snapshots.channel = channel);
    market.trade(60);
    for (view, what) in [(&by_tcp, "a snapshot over TCP"), (&by_multicast, "a snapshot by multicast")] {
        market.until(what, |_| view.counters.snapshots.recovered.read() == 1);
    }
    assert_eq!(by_tcp.counters.snapshots.channel_joins.read(), 0);
    assert_eq!(by_multicast.counters.snapshots.connections.read(), 0);
    market.trade(30);
    market.check(&[&by_tcp, &by_multicast]);
}

#[test]
fn losses_on_both_lines_are_recovered_by_snapshots() {
    let mut market = Market::open();
    let (glimpse, channel) = (market.endpoints.glimpse, market.endpoints.snapshots);
    let loss = LossConfig { seed: 3, loss_ppm: 50_000, common_ppm: 1_000_000 };
    let by_tcp = market.feed(|feed| {
        feed.snapshots.glimpse = glimpse;
        feed.loss = Some(LossModel::new(&loss));
    });
    let by_multicast = market.feed(|feed| {
        feed.snapshots.channel = channel;
        feed.loss = Some(LossModel::new(&loss));
    });
    market.trade(200);
    // If the last message is lost, only the next heartbeat shows it. So wait until recovery is complete.
    for view in [&by_tcp, &by_multicast] {
        assert!(view.counters.injected_losses[0].read() >= 5);
        market.until("the healing", |_| view.counters.snapshots.waiting.read() == 0);
        assert!(view.counters.messages_lost.read() >= 5 && view.counters.snapshots.recovered.read() >= 1);
    }
    market.check(&[&by_tcp, &by_multicast]);
}

//! After start-up a link's duty cycles and requests do not allocate, with or without messages.
#![allow(clippy::unwrap_used)]

use crate::running::Running;
use tickpath_agent::{CountingAllocator, TscClock, counts_allocations, thread_allocations};
use tickpath_deribit::credits::CreditPlan;
use tickpath_deribit::messages::PlaceOrder;
use tickpath_deribit::method::Method;
use tickpath_deribit::session::{Key, SessionConfig, SessionEvent};
use tickpath_deribit::text::Text;
use tickpath_deribit_link::{Link, LinkConfig, Listener, Received, Route, Standing};
use tickpath_test_support::Deadline;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const CHANNELS: [&str; 2] = ["book.BTC-PERPETUAL.raw", "user.orders.any.any.raw"];
/// Number of orders before the measurement, and during it.
const ORDERS: usize = 200;

#[derive(Default)]
struct Counts {
    replies: usize,
    news: usize,
}

impl Listener for Counts {
    fn on_event(&mut self, _at: Received, event: SessionEvent<'_>) {
        match event {
            SessionEvent::Reply { response, .. } => {
                assert!(response.outcome.is_ok());
                self.replies += 1;
            }
            SessionEvent::Notification(_) => self.news += 1,
            _ => {}
        }
    }
}

#[test]
fn a_link_does_not_allocate_once_it_runs() {
    assert!(counts_allocations());
    let folder = tempfile::tempdir().unwrap();
    let venue = Running::start(folder.path(), |text| {
        text.replace("[deribit]\n", "[deribit]\nmatching_rate = 100000\nmatching_burst = 100000\n")
    });
    let session = SessionConfig {
        matching: CreditPlan::rate(100_000, 100_000),
        ..SessionConfig::new("test", "1", Some(Key::new("anna", "test")))
    };
    let route = Route::direct(venue.url().parse().unwrap(), None);
    let mut link = Link::new(LinkConfig::new(route, session));
    CHANNELS.iter().for_each(|channel| link.subscribe(channel).unwrap());
    let (clock, mut counts) = (TscClock::shared(), Counts::default());
    link.connect(clock.now());
    let deadline = Deadline::start();
    while link.standing() != Standing::Ready || link.session().active_channels() < CHANNELS.len() {
        assert!(!deadline.is_over(), "{}", link.stage());
        link.do_work(clock.now(), &mut counts);
    }
    // Buffers grow to the size of the longest message.
    trade(&mut link, &mut counts, ORDERS);
    let before = (thread_allocations(), counts.replies, counts.news);
    trade(&mut link, &mut counts, ORDERS);
    assert_eq!(thread_allocations(), before.0);
    assert_eq!((counts.replies - before.1, counts.news - before.2), (ORDERS, 2 * ORDERS));
    drop(link);
    venue.stop();
}

/// Sends orders one after the other, each with its reply, its notification and its book update.
fn trade(link: &mut Link, counts: &mut Counts, orders: usize) {
    let clock = TscClock::shared();
    let (replies, news) = (counts.replies, counts.news);
    for number in 1..=orders {
        let order = PlaceOrder {
            label: Some(Text::new("counted")),
            ..PlaceOrder::limit("BTC-PERPETUAL", 10.into(), tickpath_deribit::number::Decimal::from(59_000))
        };
        link.request(clock.now(), Method::Buy, &order).unwrap();
        let deadline = Deadline::start();
        while counts.replies < replies + number || counts.news < news + 2 * number {
            assert!(!deadline.is_over(), "{number} {} {}", counts.replies, counts.news);
            link.do_work(clock.now(), counts);
        }
    }
}

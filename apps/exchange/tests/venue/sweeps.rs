//! An order that trades with very many orders: all events arrive in order, and nothing is allocated.

use std::sync::Arc;

use tickpath_agent::{counts_allocations, thread_allocations};
use tickpath_exchange::{FinalEngine, LogCommand, Matcher, MatcherCounters, Response};
use tickpath_lockfree::spsc;
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits};
use tickpath_timing::NoTrace;
use tickpath_types::{
    MarketEvent, MarketEventKind, Nanos, OrderEvent, OrderEventKind, OrderRequest, Sequence, SessionId, Side,
    TradingState, UserRefNum,
};

use crate::support::{ALPHA, instruments, ioc, order};

/// A matcher and its rings.
struct Bench {
    matcher: Matcher<NoTrace>,
    commands: spsc::Producer<LogCommand>,
    responses: spsc::Consumer<Response>,
    market: spsc::Consumer<MarketEvent>,
    counters: Arc<MatcherCounters>,
    sequence: Sequence,
    order_events: Vec<OrderEvent>,
    published: Vec<MarketEvent>,
}

impl Bench {
    fn new(open_orders: u32, ring: usize) -> Bench {
        let limits = EngineLimits {
            max_open_orders: open_orders,
            max_open_orders_per_session: open_orders,
            max_sessions: 3,
            max_index_pages: 64,
            max_index_pages_per_session: 64,
            ..EngineLimits::default()
        };
        let engine = Engine::new(instruments().as_slice(), limits).unwrap();
        let (commands, commands_out) = spsc::channel(64);
        let (responses_in, responses) = spsc::channel(ring);
        let (market_in, market) = spsc::channel(ring);
        let counters = Arc::<MatcherCounters>::default();
        let matcher = Matcher::new(
            engine,
            commands_out,
            responses_in,
            market_in,
            Arc::clone(&counters),
            FinalEngine::default(),
            NoTrace,
        );
        let sequence = Sequence(0);
        let (order_events, published) = (Vec::with_capacity(1 << 17), Vec::with_capacity(1 << 17));
        let mut bench =
            Bench { matcher, commands, responses, market, counters, sequence, order_events, published };
        bench.apply(0, CommandKind::OpenInstrument { instrument: ALPHA, state: TradingState::Trading });
        bench
    }

    /// Passes a command to the matcher, and runs the matcher until all resulting events are read. Returns the
    /// number of the matcher's allocations.
    fn apply(&mut self, session: u16, kind: CommandKind) -> u64 {
        self.sequence = self.sequence.next();
        let command = Command { sequence: self.sequence, session: SessionId(session), ts: Nanos(1), kind };
        self.commands.try_push(LogCommand::Engine(command)).unwrap();
        let before = thread_allocations();
        loop {
            let work = self.matcher.poll();
            let answers = self.responses.drain(usize::MAX, |response| match response {
                Response::Order(event) => self.order_events.push(*event),
                Response::Applied { is_ignored, .. } => assert!(!is_ignored),
                other => panic!("{other:?} to a query that was not sent"),
            });
            let published = self.market.drain(usize::MAX, |event| self.published.push(*event));
            if work + answers + published == 0 {
                return thread_allocations() - before;
            }
        }
    }

    /// Fills the book with `count` sell orders.
    fn fill(&mut self, count: u32) {
        for user_ref in 1..=count {
            let offer = order(user_ref, Side::Sell, 1, 1_000_000);
            self.apply(1, CommandKind::Order(OrderRequest::Enter(offer)));
        }
        assert_eq!(self.counters.delayed_events.read(), 0);
        self.order_events.clear();
        self.published.clear();
    }
}

#[test]
fn a_sweep_of_twenty_thousand_orders_is_complete_and_does_not_allocate() {
    const ORDERS: u32 = 20_000;
    let mut bench = Bench::new(ORDERS, 1 << 10);
    bench.fill(ORDERS);
    assert!(counts_allocations());
    let allocations = bench.apply(2, CommandKind::Order(ioc(1, Side::Buy, ORDERS.into(), 1_000_000)));
    assert_eq!(allocations, 0);
    assert!(bench.counters.delayed_events.read() > 50_000, "both rings were full");

    let (accepted, executed) = bench.order_events.split_first().unwrap();
    assert!(matches!(accepted.kind, OrderEventKind::Accepted { .. }));
    let (taken, given): (Vec<&OrderEvent>, Vec<&OrderEvent>) =
        executed.iter().partition(|event| event.session == SessionId(2));
    assert_eq!((taken.len(), given.len()), (ORDERS as usize, ORDERS as usize));
    let user_refs: Vec<_> = given.iter().map(|event| event.kind.user_ref()).collect();
    assert_eq!(user_refs, (1..=ORDERS).map(UserRefNum).collect::<Vec<_>>());
    assert_eq!(bench.published.len(), ORDERS as usize);
    assert!(bench.published.is_sorted_by(|a, b| a.sequence.next() == b.sequence));
}

#[test]
fn ending_all_orders_at_once_fits_the_buffers() {
    const ORDERS: u32 = 300;
    // The rings are as small as possible, so nearly all events have to wait.
    for kind in [
        CommandKind::Order(ioc(1, Side::Buy, ORDERS.into(), 1_000_000)),
        CommandKind::CancelAll { reason: tickpath_types::CancelReason::Supervisory },
    ] {
        let mut bench = Bench::new(ORDERS, 2);
        bench.fill(ORDERS);
        let is_sweep = matches!(kind, CommandKind::Order(_));
        assert_eq!(bench.apply(if is_sweep { 2 } else { 1 }, kind), 0);
        let ends = bench.published.iter().filter(|event| {
            matches!(event.kind, MarketEventKind::Executed { .. } | MarketEventKind::Deleted { .. })
        });
        assert_eq!(ends.count(), ORDERS as usize);
        assert_eq!(
            bench.order_events.len(),
            if is_sweep { 2 * ORDERS as usize + 1 } else { ORDERS as usize }
        );
    }
}

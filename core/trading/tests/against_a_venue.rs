//! Compares the order manager with the matching engine: after any requests, in any interleaving with answers
//! and other orders, both have the same open orders.
#![allow(clippy::unwrap_used)] // a failed step of a test is a failed test

use std::collections::VecDeque;

use proptest::prelude::*;
use tickpath_book::OrderBooks;
use tickpath_matching::{Command, CommandKind, Engine, EngineLimits, EventListener, Owner};
use tickpath_reference::ReferenceBooks;
use tickpath_timing::NoTrace;
use tickpath_trading::{
    Context, EngineConfig, Limits, Money, NewOrder, OrderChange, OrderUpdate, OwnState, TradeEngine,
};
use tickpath_types::{
    BookHealth, CancelReason, ClientOrderId, EnterOrder, Instrument, InstrumentId, MarketEvent, MarketUpdate,
    Nanos, OrderAttributes, OrderEvent, OrderEventKind, OrderRequest, Price, Qty, Sequence, SessionId, Side,
    Symbol, TimeInForce, TradingState, UpdateKind, UserRefNum,
};

const ONE: InstrumentId = InstrumentId(1);
/// Sessions at the venue: the trader's, and that of all other orders.
const TRADER: SessionId = SessionId(1);
const OTHERS: SessionId = SessionId(2);
const LOT: u64 = 10;

fn instrument() -> Instrument {
    Instrument {
        id: ONE,
        symbol: Symbol::new("ALPHA").unwrap(),
        tick_size: Price(1),
        lot_size: Qty(LOT),
        max_qty: Qty(200),
        reference_price: Price(100),
        collar_low: Price(95),
        collar_high: Price(105),
    }
}

/// One step of a test. Orders are chosen by their position among the trader's open orders; sizes need not be
/// multiples of the lot size.
#[derive(Clone, Debug)]
enum Step {
    Enter {
        side: Side,
        qty: u64,
        price: i64,
        is_ioc: bool,
        post_only: bool,
    },
    Replace {
        index: usize,
        qty: u64,
        price: i64,
    },
    Reduce {
        index: usize,
        qty: u64,
    },
    Cancel {
        index: usize,
    },
    CancelAll,
    Other {
        side: Side,
        lots: u64,
        price: i64,
    },
    /// The venue cancels the trader's open orders.
    Purge,
    /// Up to this number of requests in flight reach the venue.
    Send(usize),
    /// Up to this number of answers in flight reach the trader.
    Answer(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let side = prop_oneof![Just(Side::Buy), Just(Side::Sell)];
    let (qty, price, index) = (0_u64..22, 94_i64..107, 0_usize..4);
    // Mostly whole lots; sometimes one share more, which no venue accepts.
    let qty = (qty, prop::bool::weighted(0.1)).prop_map(|(lots, odd)| lots * LOT + u64::from(odd));
    prop_oneof![
        4 => (side.clone(), qty.clone(), price.clone(), prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(side, qty, price, is_ioc, post_only)| Step::Enter { side, qty, price, is_ioc, post_only }),
        6 => (index.clone(), qty.clone(), price.clone())
            .prop_map(|(index, qty, price)| Step::Replace { index, qty, price }),
        3 => (index.clone(), qty).prop_map(|(index, qty)| Step::Reduce { index, qty }),
        2 => index.prop_map(|index| Step::Cancel { index }),
        1 => Just(Step::CancelAll),
        6 => (side, 1_u64..10, price).prop_map(|(side, lots, price)| Step::Other { side, lots, price }),
        1 => Just(Step::Purge),
        6 => (1_usize..5).prop_map(Step::Send),
        6 => (1_usize..5).prop_map(Step::Answer),
    ]
}

type Action = Box<dyn FnOnce(&mut Context<'_>)>;

/// A strategy that runs a test's closure on the next market update. It records the dead orders and the net
/// executed quantity.
#[derive(Default)]
struct Scripted {
    next: Option<Action>,
    ended: Vec<UserRefNum>,
    filled: i64,
}

impl tickpath_trading::Strategy for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn on_market(&mut self, _: InstrumentId, cx: &mut Context<'_>) {
        if let Some(next) = self.next.take() {
            next(cx);
        }
    }

    fn on_order(&mut self, update: &OrderUpdate, _: &mut Context<'_>) {
        if let OrderChange::Executed { qty, .. } = update.change {
            self.filled += update.order.side.sign() * i64::try_from(qty.0).unwrap();
        }
        if !update.order.is_open() {
            self.ended.push(update.order.user_ref);
        }
    }
}

/// Answers in flight to the trader.
#[derive(Default)]
struct Answers(VecDeque<(Nanos, OrderEventKind)>);

impl EventListener for Answers {
    fn on_order_event(&mut self, event: &OrderEvent) {
        if event.session == TRADER {
            self.0.push_back((event.ts, event.kind));
        }
    }

    fn on_market_event(&mut self, _: &MarketEvent) {}
}

struct Market {
    trader: TradeEngine<Scripted, NoTrace>,
    venue: Engine<ReferenceBooks<Owner>>,
    requests: VecDeque<OrderRequest>,
    answers: Answers,
    sequence: Sequence,
    other_user_ref: u32,
}

impl Market {
    fn new() -> Market {
        let config =
            EngineConfig { orders_per_second: u32::MAX, order_burst: u32::MAX, ..EngineConfig::default() };
        let limits = Limits {
            max_order_qty: Qty(1 << 20),
            max_position: Qty(1 << 40),
            max_loss: Money(1 << 60),
            max_open_orders: 100,
            ..Limits::default()
        };
        let trader =
            TradeEngine::new(&config, &[instrument()], &[limits], Scripted::default(), NoTrace).unwrap();
        let engine_limits = EngineLimits {
            max_open_orders: 200,
            max_open_orders_per_session: 200,
            max_sessions: 3,
            max_index_pages: 100,
            max_index_pages_per_session: 50,
            ..EngineLimits::default()
        };
        let venue = Engine::new(&[instrument()], engine_limits).unwrap();
        let mut market = Market {
            trader,
            venue,
            requests: VecDeque::new(),
            answers: Answers::default(),
            sequence: Sequence(0),
            other_user_ref: 0,
        };
        market.command(OTHERS, CommandKind::OpenInstrument { instrument: ONE, state: TradingState::Trading });
        market
    }

    fn command(&mut self, session: SessionId, kind: CommandKind) {
        self.sequence = self.sequence.next();
        let command = Command { sequence: self.sequence, session, ts: Nanos(self.sequence.0), kind };
        self.venue.apply(&command, &mut self.answers);
    }

    /// Runs `act` in the strategy; a refused request is a valid outcome.
    fn act(&mut self, act: impl FnOnce(&mut Context<'_>) + 'static) {
        self.trader.strategy_mut().next = Some(Box::new(act));
        let update = MarketUpdate {
            instrument: 1,
            kind: UpdateKind::Status as u8,
            health: BookHealth::Live as u8,
            ..zerocopy::FromZeros::new_zeroed()
        };
        let mut sent = Vec::new();
        self.trader.handle_market(&update, Nanos(1), &mut sent);
        self.requests.extend(sent);
    }

    fn send(&mut self, count: usize) {
        for _ in 0..count {
            let Some(request) = self.requests.pop_front() else { break };
            self.command(TRADER, CommandKind::Order(request));
        }
    }

    fn answer(&mut self, count: usize) {
        for _ in 0..count {
            let Some((ts, event)) = self.answers.0.pop_front() else { break };
            let mut sent = Vec::new();
            self.trader.handle_order_event(&event, ts, Nanos(1), &mut sent);
            assert!(sent.is_empty(), "the strategy asks for nothing here");
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Enter { side, qty, price, is_ioc, post_only } => self.act(move |cx| {
                let order = NewOrder {
                    time_in_force: if is_ioc { TimeInForce::Ioc } else { TimeInForce::Day },
                    post_only,
                    ..NewOrder::limit(ONE, side, Qty(qty), Price(price))
                };
                _ = cx.enter(&order);
            }),
            Step::Replace { index, qty, price } => self.act(move |cx| {
                if let Some(user_ref) = nth(cx, index) {
                    _ = cx.replace(user_ref, Qty(qty), Price(price));
                }
            }),
            Step::Reduce { index, qty } => self.act(move |cx| {
                if let Some(user_ref) = nth(cx, index) {
                    _ = cx.reduce(user_ref, Qty(qty));
                }
            }),
            Step::Cancel { index } => self.act(move |cx| {
                if let Some(user_ref) = nth(cx, index) {
                    _ = cx.cancel(user_ref);
                }
            }),
            Step::CancelAll => self.act(|cx| _ = cx.cancel_all()),
            Step::Other { side, lots, price } => self.other(side, lots, price),
            Step::Purge => self.command(TRADER, CommandKind::CancelAll { reason: CancelReason::Supervisory }),
            Step::Send(count) => self.send(count),
            Step::Answer(count) => self.answer(count),
        }
    }

    fn other(&mut self, side: Side, lots: u64, price: i64) {
        self.other_user_ref += 1;
        let order = EnterOrder {
            user_ref: UserRefNum(self.other_user_ref),
            instrument: ONE,
            side,
            qty: Qty(lots * LOT),
            price: Price(price),
            time_in_force: TimeInForce::Day,
            post_only: false,
            min_qty: Qty::ZERO,
            special: None,
            attributes: OrderAttributes::default(),
            client_order_id: ClientOrderId::default(),
        };
        self.command(OTHERS, CommandKind::Order(OrderRequest::Enter(order)));
    }

    /// Returns UserRefNum, open quantity and executed quantity of each open order at the venue.
    fn open_at_the_venue(&self) -> Vec<(u32, u64, u64)> {
        let last = self.venue.last_user_ref(TRADER).0;
        (1..=last)
            .filter_map(|user_ref| {
                let handle = self.venue.find_order(TRADER, UserRefNum(user_ref))?;
                let order = self.venue.books().order(handle)?;
                Some((user_ref, order.qty.0, order.data.executed))
            })
            .collect()
    }
}

/// Returns the UserRefNum of the trader's open order at this position, bids first.
fn nth(cx: &Context<'_>, index: usize) -> Option<UserRefNum> {
    let open = Side::BOTH.into_iter().flat_map(|side| cx.orders(ONE, side));
    open.map(|order| order.user_ref).nth(index)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn manager_and_venue_agree_on_open_orders(steps in prop::collection::vec(step(), 1..120)) {
        let mut market = Market::new();
        for step in &steps {
            market.step(step);
        }
        market.send(usize::MAX);
        market.answer(usize::MAX);

        let orders = market.trader.desk().orders();
        let mut open = Vec::new();
        for side in Side::BOTH {
            let mut leaves = 0;
            for order in orders.open(ONE, side) {
                prop_assert_eq!(order.state, OwnState::Live, "order {} waits for ever", order.user_ref);
                leaves += order.leaves_qty().0;
                open.push((order.user_ref.0, order.leaves_qty().0, order.cum_qty.0));
            }
            prop_assert_eq!(orders.open_qty(ONE, side), Qty(leaves));
        }
        open.sort_unstable();
        prop_assert_eq!(open, market.open_at_the_venue());

        let counters = orders.counters();
        prop_assert_eq!((counters.unknown, counters.overfilled, counters.reopened), (0, 0, 0));
        let strategy = market.trader.strategy();
        prop_assert_eq!(market.trader.desk().positions().get(ONE).unwrap().net_qty(), strategy.filled);
        let mut ended = strategy.ended.clone();
        ended.sort_unstable();
        ended.dedup();
        prop_assert_eq!(ended.len(), strategy.ended.len(), "no order ends twice");
    }
}

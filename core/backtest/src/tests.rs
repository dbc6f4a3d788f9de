//! Own orders in recorded markets of a few orders.

use tickpath_book::{BookLimits, BooksById, Order, PackedBooks};
use tickpath_trading::{Context, EngineConfig, Limits, Money, NewOrder, OrderChange, OrderUpdate, Strategy};
use tickpath_types::{
    BookHealth, CancelOrder, CancelReason, EnterOrder, Instrument, InstrumentId, Liquidity, MarketUpdate,
    Nanos, OrderEventKind, OrderId, OrderRequest, Price, PriceLevel, Qty, RejectReason, ReplaceOrder,
    SIDE_NOT_STATED, Side, Symbol, TimeInForce, UpdateKind, UserRefNum,
};

use crate::{Backtest, BacktestConfig, Fees, Latencies, QueuePosition, RecordedChange};

const ID: InstrumentId = InstrumentId(1);

/// A recorded market of one instrument, and a venue with own orders in it.
struct Market {
    books: PackedBooks,
    venue: QueuePosition,
    answers: Vec<OrderEventKind>,
}

impl Market {
    fn new() -> Market {
        let books = PackedBooks::new(BookLimits::new(ID, 100));
        Market { books, venue: QueuePosition::new(1), answers: Vec::new() }
    }

    fn update(&self, kind: UpdateKind, id: u64, side: Side, price: i64, qty: u64) -> MarketUpdate {
        let best = |side| PriceLevel::of(self.books.best(ID, side).map(|level| (level.price, level.qty)));
        MarketUpdate {
            order_id: id,
            price,
            qty,
            bid: best(Side::Buy),
            ask: best(Side::Sell),
            instrument: ID.0,
            kind: kind as u8,
            side: side as u8,
            health: BookHealth::Live as u8,
            ..MarketUpdate::default()
        }
    }

    fn tell(&mut self, update: &MarketUpdate, replaced: u64) {
        let change = RecordedChange { update, replaced };
        self.venue.handle_change(&change, &mut |kind| self.answers.push(kind));
    }

    fn add(&mut self, id: u64, side: Side, price: i64, qty: u64) -> MarketUpdate {
        let order =
            Order { id: OrderId(id), instrument: ID, side, price: Price(price), qty: Qty(qty), data: () };
        self.books.add(order).unwrap();
        let update = self.update(UpdateKind::Add, id, side, price, qty);
        self.tell(&update, 0);
        update
    }

    /// Reduces or removes a recorded order, by a trade if `kind` says so.
    fn take(&mut self, kind: UpdateKind, id: u64, qty: u64) -> MarketUpdate {
        let order = self.books.find(OrderId(id)).unwrap();
        self.books.reduce(ID, OrderId(id), Qty(qty)).unwrap();
        let update = self.update(kind, id, order.side, order.price.0, qty);
        self.tell(&update, 0);
        update
    }

    fn replace(&mut self, id: u64, new: u64, price: i64, qty: u64) {
        let side = self.books.remove(ID, OrderId(id)).unwrap().side;
        let order =
            Order { id: OrderId(new), instrument: ID, side, price: Price(price), qty: Qty(qty), data: () };
        self.books.add(order).unwrap();
        let update = self.update(UpdateKind::Replace, new, side, price, qty);
        self.tell(&update, id);
    }

    fn request(&mut self, request: OrderRequest) {
        self.venue.handle_request(&request, &self.books, &mut |kind| self.answers.push(kind));
    }

    fn enter(&mut self, user_ref: u32, side: Side, price: i64, qty: u64) {
        self.request(OrderRequest::Enter(order(user_ref, side, price, qty)));
    }

    /// Takes the answers since the last call, without the acceptances.
    fn answers(&mut self) -> Vec<OrderEventKind> {
        let mut answers = std::mem::take(&mut self.answers);
        answers.retain(|kind| !matches!(kind, OrderEventKind::Accepted { .. }));
        answers
    }

    /// Takes the fills since the last call: number, quantity, price.
    fn fills(&mut self) -> Vec<(u32, u64, i64)> {
        let fill = |kind| match kind {
            OrderEventKind::Executed { user_ref, qty, price, .. } => (user_ref.0, qty.0, price.0),
            other => panic!("{other:?}"),
        };
        self.answers().into_iter().map(fill).collect()
    }
}

fn order(user_ref: u32, side: Side, price: i64, qty: u64) -> EnterOrder {
    EnterOrder::limit(UserRefNum(user_ref), ID, side, Qty(qty), Price(price))
}

fn canceled(user_ref: u32, decrement: u64, reason: CancelReason) -> OrderEventKind {
    OrderEventKind::Canceled { user_ref: UserRefNum(user_ref), decrement: Qty(decrement), reason }
}

#[test]
fn an_order_trades_after_the_recorded_ones_before_it() {
    let mut market = Market::new();
    market.add(1, Side::Buy, 100, 60);
    market.add(2, Side::Buy, 100, 40);
    market.enter(1, Side::Buy, 100, 10);
    market.add(3, Side::Buy, 100, 30);
    market.take(UpdateKind::Trade, 1, 60);
    market.take(UpdateKind::Trade, 2, 39);
    assert_eq!(market.fills(), [], "both were before it");
    market.take(UpdateKind::Trade, 3, 4);
    assert_eq!(market.fills(), [(1, 4, 100)], "the third was behind it");
    market.take(UpdateKind::Trade, 3, 20);
    market.take(UpdateKind::Trade, 3, 6);
    assert_eq!(market.fills(), [(1, 6, 100)], "the rest, once");
}

#[test]
fn several_own_orders_share_a_trade_by_priority() {
    let mut market = Market::new();
    market.enter(1, Side::Sell, 101, 10);
    market.add(1, Side::Sell, 101, 50);
    market.enter(2, Side::Sell, 101, 10);
    market.enter(3, Side::Sell, 100, 5);
    market.add(2, Side::Sell, 101, 50);
    market.take(UpdateKind::Trade, 1, 12);
    assert_eq!(market.fills(), [(3, 5, 100), (1, 7, 101)], "the better price, then the earlier order");
    market.take(UpdateKind::Trade, 1, 38);
    assert_eq!(market.fills(), [(1, 3, 101)], "the second own order is behind the recorded one");
    market.take(UpdateKind::Trade, 2, 9);
    assert_eq!(market.fills(), [(2, 9, 101)]);
}

#[test]
fn cancels_and_replacements_before_an_order_let_it_advance() {
    let mut market = Market::new();
    for id in 1..=3 {
        market.add(id, Side::Buy, 100, 10);
    }
    market.enter(1, Side::Buy, 100, 10);
    market.take(UpdateKind::Reduce, 1, 4);
    market.take(UpdateKind::Delete, 2, 10);
    market.replace(3, 4, 100, 10);
    market.take(UpdateKind::Trade, 1, 6);
    assert_eq!(market.fills(), []);
    market.take(UpdateKind::Trade, 4, 3);
    assert_eq!(market.fills(), [(1, 3, 100)], "the replaced order went behind it");
}

#[test]
fn a_modified_order_keeps_its_priority_only_with_less_quantity_at_its_price() {
    for (price, qty, keeps) in [(100, 9, true), (100, 10, true), (100, 11, false), (99, 10, false)] {
        let mut market = Market::new();
        market.add(1, Side::Buy, 100, 10);
        market.enter(1, Side::Buy, 100, 10);
        let update = market.update(UpdateKind::Replace, 1, Side::Buy, price, qty);
        market.tell(&update, 0);
        market.tell(&market.update(UpdateKind::Trade, 1, Side::Buy, price, 2), 0);
        let expected = if keeps { vec![] } else { vec![(1, 2, 100)] };
        assert_eq!(market.fills(), expected, "{qty} at {price}");
    }
}

#[test]
fn a_trade_at_a_worse_price_and_an_arriving_order_fill_an_order_inside_the_spread() {
    let mut market = Market::new();
    market.add(1, Side::Buy, 90, 100);
    market.add(2, Side::Sell, 110, 100);
    market.enter(1, Side::Buy, 95, 10);
    market.take(UpdateKind::Trade, 1, 4);
    assert_eq!(market.fills(), [(1, 4, 95)], "the seller would have met the better bid");
    market.add(3, Side::Sell, 96, 2);
    assert_eq!(market.fills(), [], "a tick away");
    market.add(4, Side::Sell, 95, 3);
    market.replace(4, 5, 93, 1);
    assert_eq!(market.fills(), [(1, 3, 95), (1, 1, 95)]);
}

#[test]
fn a_trade_of_a_hidden_order_fills_only_at_a_worse_price() {
    let mut market = Market::new();
    market.enter(1, Side::Buy, 95, 10);
    market.enter(2, Side::Sell, 99, 10);
    for (price, expected) in [(97, vec![]), (95, vec![]), (94, vec![(1, 1, 95)]), (100, vec![(2, 1, 99)])] {
        let trade = market.update(UpdateKind::Trade, 0, Side::Buy, price, 1);
        market.tell(&MarketUpdate { side: SIDE_NOT_STATED, ..trade }, 0);
        assert_eq!(market.fills(), expected, "{price}");
    }
}

#[test]
fn a_crossing_order_trades_at_once_at_the_levels_prices() {
    let mut market = Market::new();
    market.add(1, Side::Sell, 101, 5);
    market.add(2, Side::Sell, 102, 5);
    market.enter(1, Side::Buy, 101, 8);
    assert_eq!(market.fills(), [(1, 5, 101)]);
    market.add(3, Side::Sell, 101, 2);
    assert_eq!(market.fills(), [(1, 2, 101)], "the rest joined the queue");

    let ioc = |user_ref, price, qty| EnterOrder {
        time_in_force: TimeInForce::Ioc,
        ..order(user_ref, Side::Buy, price, qty)
    };
    market.request(OrderRequest::Enter(ioc(2, 102, 20)));
    let answers = market.answers();
    assert_eq!(answers.len(), 3);
    assert!(
        matches!(
            answers[0],
            OrderEventKind::Executed { qty: Qty(7), price: Price(101), liquidity: Liquidity::Removed, .. }
        ),
        "the recorded book did not react"
    );
    assert!(matches!(answers[1], OrderEventKind::Executed { qty: Qty(5), price: Price(102), .. }));
    assert_eq!(answers[2], canceled(2, 8, CancelReason::ImmediateOrCancel));

    market.request(OrderRequest::Enter(ioc(3, Price::MARKET.0, 1)));
    assert_eq!(market.fills(), [(3, 1, 101)]);
    market.request(OrderRequest::Enter(EnterOrder { min_qty: Qty(8), ..ioc(4, 101, 9) }));
    assert_eq!(market.answers(), [canceled(4, 9, CancelReason::ImmediateOrCancel)]);
    let post_only = |user_ref, price| EnterOrder { post_only: true, ..order(user_ref, Side::Buy, price, 3) };
    market.request(OrderRequest::Enter(post_only(5, 101)));
    assert_eq!(market.answers(), [canceled(5, 3, CancelReason::PostOnly)]);
    market.request(OrderRequest::Enter(post_only(6, 100)));
    assert_eq!(market.answers(), []);
}

#[test]
fn replacements_and_cancels_follow_the_order_that_they_change() {
    let mut market = Market::new();
    let replace = |orig, user_ref, qty, price| {
        OrderRequest::Replace(ReplaceOrder::limit(
            UserRefNum(orig),
            UserRefNum(user_ref),
            Qty(qty),
            Price(price),
        ))
    };
    let cancel =
        |user_ref, qty| OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(user_ref), qty: Qty(qty) });
    market.enter(1, Side::Buy, 100, 10);
    market.add(1, Side::Sell, 100, 4);
    assert_eq!(market.fills(), [(1, 4, 100)]);
    market.take(UpdateKind::Delete, 1, 4);
    market.request(replace(1, 2, 12, 99));
    assert!(matches!(market.answers()[..], [OrderEventKind::Replaced { orig_user_ref: UserRefNum(1), .. }]));
    market.request(cancel(2, 9));
    assert_eq!(market.answers(), [canceled(2, 3, CancelReason::User)], "4 are executed, 5 are left");
    market.request(cancel(2, 9));
    market.request(cancel(1, 0));
    assert_eq!(market.answers(), [], "the size is reached, and the replaced order is gone");
    market.add(2, Side::Sell, 99, 1);
    assert_eq!(market.fills(), [(2, 1, 99)]);
    market.request(replace(2, 3, 5, 98));
    assert_eq!(market.answers(), [canceled(2, 4, CancelReason::User)], "5 are executed: nothing is left");
    market.request(replace(2, 4, 50, 98));
    assert!(matches!(
        market.answers()[..],
        [OrderEventKind::Rejected { reason: RejectReason::UnknownOrder, .. }]
    ));
}

/// Buys once at the best ask, and notes the times of its calls.
#[derive(Default)]
struct BuysOnce {
    decided_at: Option<Nanos>,
    filled_at: Option<Nanos>,
}

impl Strategy for BuysOnce {
    fn name(&self) -> &str {
        "buys-once"
    }

    fn on_market(&mut self, instrument: InstrumentId, cx: &mut Context<'_>) {
        if let (None, Some((ask, _))) = (self.decided_at, cx.bbo(instrument).ask) {
            self.decided_at = Some(cx.now());
            cx.enter(&NewOrder::ioc(instrument, Side::Buy, Qty(10), ask)).unwrap();
        }
    }

    fn on_order(&mut self, update: &OrderUpdate, cx: &mut Context<'_>) {
        if let OrderChange::Executed { .. } = update.change {
            self.filled_at = Some(cx.now());
        }
    }
}

fn backtest<S: Strategy>(latencies: Latencies, strategy: S) -> Backtest<S> {
    let config = BacktestConfig {
        engine: EngineConfig::default(),
        latencies,
        fees: Fees { added: Money(-1), removed: Money(3) },
        timer_interval: Nanos::from_millis(1),
        sample_interval: Nanos::from_secs(1),
        seed: 1,
    };
    let instrument = Instrument {
        tick_size: Price(1),
        collar_low: Price(1),
        ..Instrument::in_cents(ID, Symbol::new("ALPHA").unwrap(), Price(100))
    };
    Backtest::new(config, &[instrument], &[Limits::default()], strategy).unwrap()
}

#[test]
fn each_leg_takes_its_time_and_the_market_moves_on_meanwhile() {
    let [market_data, request, answer] = [10, 20, 40].map(|time| crate::Latency::Constant(Nanos(time)));
    let mut backtest = backtest(Latencies { market_data, request, answer }, BuysOnce::default());
    let mut market = Market::new();
    let tell = |backtest: &mut Backtest<_>,
                market: &mut Market,
                at,
                apply: &mut dyn FnMut(&mut Market) -> MarketUpdate| {
        backtest.advance(Nanos(at), &market.books);
        let update = apply(market);
        backtest.handle_change(Nanos(at), &RecordedChange { update: &update, replaced: 0 });
    };
    tell(&mut backtest, &mut market, 1_000, &mut |market| market.add(1, Side::Sell, 101, 4));
    // The order is decided on at 1010 and reaches the venue at 1030, after this.
    tell(&mut backtest, &mut market, 1_029, &mut |market| market.add(2, Side::Sell, 99, 3));
    tell(&mut backtest, &mut market, 1_031, &mut |market| market.add(3, Side::Sell, 98, 50));
    backtest.advance(Nanos(2_000), &market.books);
    let (outcome, engine) = backtest.finish(Nanos(2_000));
    let strategy = engine.strategy();
    assert_eq!(strategy.decided_at, Some(Nanos(1_010)));
    assert_eq!(strategy.filled_at, Some(Nanos(1_070)));
    let fills: Vec<_> =
        outcome.fills.iter().map(|fill| (fill.at.0, fill.qty.0, fill.price.0, fill.net_qty)).collect();
    assert_eq!(fills, [(1_030, 3, 99, 3), (1_030, 4, 101, 7)], "what rested at 1030");
    assert_eq!(outcome.fees, Money(21), "all removed liquidity");
    assert_eq!(outcome.curve.first().map(|point| (point.at, point.pnl)), Some((Nanos(1_000), Money(0))));
}

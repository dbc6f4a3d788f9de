use tickpath_timing::Tracer;
use tickpath_types::{
    BookHealth, CancelReason, InstrumentId, MarketUpdate, Nanos, OrderRequest, Price, Qty, RejectReason, Side,
};

use crate::testing::{LIMITS, Rig, canceled, executed, quote, rejected};
use crate::{EngineConfig, Limits, MakerConfig, MarketMaker, Money, QueueFull, RequestSink};

fn rig() -> Rig<MarketMaker> {
    Rig::new(MarketMaker::new(MakerConfig::default()))
}

/// Creates a maker with accepted quotes: a bid of 100 at 100 and an ask of 100 at 110.
fn quoting() -> Rig<MarketMaker> {
    let mut rig = rig();
    assert_eq!(rig.market(quote(1, (100, 500), (110, 500))), "#1 buy 100 @100 post, #2 sell 100 @110 post");
    assert_eq!((rig.accept(1), rig.accept(2)), (String::new(), String::new()));
    rig
}

#[test]
fn it_joins_a_best_price_away_from_fair_and_fades_one_tick_near_it() {
    // Fair 105, threshold 3: both sides are 5 away.
    quoting();
    // Fair 109: 9 from the bid, 1 from the ask.
    assert_eq!(rig().market(quote(1, (100, 900), (110, 100))), "#1 buy 100 @100 post, #2 sell 100 @111 post");
    // Fair 101: 1 from the bid, 9 from the ask.
    assert_eq!(rig().market(quote(1, (100, 100), (110, 900))), "#1 buy 100 @99 post, #2 sell 100 @110 post");
    // Fair 103: both sides are 3 away, exactly the threshold.
    assert_eq!(rig().market(quote(1, (100, 100), (106, 100))), "#1 buy 100 @100 post, #2 sell 100 @106 post");
}

#[test]
fn quotes_follow_the_market_one_request_at_a_time() {
    let mut rig = quoting();
    assert_eq!(rig.market(quote(1, (100, 500), (110, 500))), "", "nothing moved");
    assert_eq!(rig.market(quote(1, (102, 500), (112, 500))), "#1->#3 100 @102, #2->#4 100 @112");
    assert_eq!(rig.market(quote(1, (104, 500), (114, 500))), "", "both wait for answers");
    assert_eq!(rig.accept_replace(1, 3), "#3->#5 100 @104", "the answer frees the bid");
}

#[test]
fn refused_requests_are_retried_on_timer_and_market_change() {
    let mut rig = quoting();
    let market = quote(1, (102, 500), (112, 500));
    assert_eq!(rig.market(market), "#1->#3 100 @102, #2->#4 100 @112");
    rig.accept_replace(1, 3);
    assert_eq!(rig.event(rejected(4, RejectReason::PriceOutsideCollar)), "", "not at once");
    assert_eq!(rig.market(market), "", "nothing is new");
    let now = rig.now;
    assert_eq!(rig.timer(now), "#2->#5 100 @112");
    assert_eq!(rig.timer(now), "", "it was requested");

    assert_eq!(rig.event(rejected(5, RejectReason::PriceOutsideCollar)), "");
    assert_eq!(
        rig.market(quote(1, (102, 500), (113, 500))),
        "#2->#6 100 @113",
        "news comes before the timer"
    );
}

#[test]
fn quotes_are_cancelled_while_the_market_is_crossed() {
    let mut rig = quoting();
    assert_eq!(rig.market(quote(1, (110, 500), (110, 500))), "cancel #1, cancel #2");
    rig.event(canceled(1, 100, CancelReason::User));
    rig.event(canceled(2, 100, CancelReason::User));
    assert_eq!(rig.market(quote(1, (112, 500), (110, 500))), "");
    assert_eq!(rig.market(quote(1, (100, 500), (110, 500))), "#3 buy 100 @100 post, #4 sell 100 @110 post");
}

#[test]
fn the_timer_retries_only_refused_requests() {
    let mut rig = quoting();
    rig.market(quote(2, (50, 500), (60, 500)));
    let now = rig.now;
    assert_eq!(rig.timer(now), "", "two orders wait for answers, two rest");
    rig.event(executed(1, 100, 100));
    assert_eq!(rig.timer(now), "");
}

#[test]
fn a_refused_pull_is_retried_on_the_timer() {
    let mut rig = quoting();
    let recovering =
        MarketUpdate { health: BookHealth::Recovering as u8, ..quote(1, (100, 500), (110, 500)) };
    rig.engine.handle_market(&recovering, rig.now, &mut FullQueue);
    assert_eq!(rig.engine.desk().counters().refused_queue, 1);
    let now = rig.now;
    assert_eq!(rig.timer(now), "cancel #1, cancel #2");
    assert_eq!(rig.timer(now), "");
}

/// A queue that is always full.
struct FullQueue;

impl<T: Tracer> RequestSink<T> for FullQueue {
    fn send(&mut self, _: &OrderRequest, _: &mut T) -> Result<(), QueueFull> {
        Err(QueueFull)
    }
}

#[test]
fn it_quotes_each_instrument_by_itself() {
    let mut rig = quoting();
    assert_eq!(rig.market(quote(2, (50, 500), (60, 500))), "#3 buy 100 @50 post, #4 sell 100 @60 post");
    assert_eq!(rig.market(quote(1, (100, 500), (110, 500))), "");
}

#[test]
fn a_filled_quote_comes_back_skewed_by_the_inventory() {
    // Long 100 of at most 1000, with 10 ticks of skew: the bid is one tick lower.
    let mut rig = Rig::new(MarketMaker::new(MakerConfig { skew_ticks: 10, ..MakerConfig::default() }));
    rig.market(quote(1, (100, 500), (110, 500)));
    rig.accept(1);
    rig.accept(2);
    assert_eq!(rig.event(executed(1, 40, 100)), "", "the rest stands, and 40 of 1000 is no tick yet");
    assert_eq!(rig.event(executed(1, 60, 100)), "#3 buy 100 @99 post");
}

#[test]
fn a_partly_filled_quote_moves_with_its_chain_counted() {
    let mut rig = quoting();
    rig.event(executed(2, 30, 110));
    assert_eq!(rig.market(quote(1, (100, 500), (112, 500))), "#2->#3 130 @112", "30 executed, 100 more");
    rig.accept_replace(2, 3);
    let ask = rig.engine.desk().orders().open(InstrumentId(1), Side::Sell).next().copied().unwrap();
    assert_eq!((ask.leaves_qty(), ask.cum_qty, ask.post_only), (Qty(100), Qty(30), true));
}

#[test]
fn a_side_at_the_position_limit_is_withdrawn() {
    let limits = Limits { max_position: Qty(150), ..LIMITS };
    let config = MakerConfig { skew_ticks: 0, ..MakerConfig::default() };
    let mut rig = Rig::with(EngineConfig::default(), limits, MarketMaker::new(config));
    rig.market(quote(1, (100, 500), (110, 500)));
    rig.accept(1);
    rig.accept(2);
    assert_eq!(rig.event(executed(1, 100, 100)), "#3 buy 50 @100 post", "room for 50 more");
    rig.accept(3);
    assert_eq!(rig.event(executed(3, 45, 100)), "cancel #3", "5 is less than a lot");
    rig.event(canceled(3, 5, CancelReason::User));
    assert_eq!(rig.market(quote(1, (99, 500), (110, 500))), "");
    assert_eq!(rig.event(executed(2, 100, 110)), "#4 buy 100 @99 post, #5 sell 100 @110 post");
}

#[test]
fn quotes_are_pulled_while_the_book_is_not_live() {
    let mut rig = quoting();
    let market = quote(1, (100, 500), (110, 500));
    let recovering = MarketUpdate { health: BookHealth::Recovering as u8, ..market };
    assert_eq!(rig.market(recovering), "cancel #1, cancel #2");
    assert_eq!(rig.event(canceled(1, 100, CancelReason::User)), "");
    assert_eq!(rig.event(canceled(2, 100, CancelReason::User)), "");
    assert_eq!(rig.market(recovering), "");
    assert_eq!(rig.market(market), "#3 buy 100 @100 post, #4 sell 100 @110 post");
}

#[test]
fn a_one_sided_market_is_left_alone() {
    assert_eq!(rig().market(quote(1, (100, 500), (110, 0))), "");
    let mut rig = quoting();
    assert_eq!(rig.market(quote(1, (120, 500), (130, 0))), "");
}

#[test]
fn post_only_cancels_are_retried_on_the_timer() {
    let mut rig = rig();
    rig.market(quote(1, (100, 500), (110, 500)));
    rig.accept(1);
    assert_eq!(rig.event(canceled(1, 100, CancelReason::PostOnly)), "");
    assert_eq!(rig.market(quote(1, (100, 500), (110, 500))), "", "nothing is new");
    let now = rig.now;
    assert_eq!(rig.timer(now), "#3 buy 100 @100 post");
}

#[test]
fn offset_and_minimum_move_are_respected() {
    let config = MakerConfig { offset_ticks: 20, min_move_ticks: 5, ..MakerConfig::default() };
    let mut rig = Rig::new(MarketMaker::new(config));
    rig.market(quote(1, (100, 500), (110, 500)));
    rig.accept(1);
    rig.accept(2);
    let prices = |rig: &Rig<MarketMaker>| {
        Side::BOTH.map(|side| rig.engine.desk().orders().open(InstrumentId(1), side).next().unwrap().price)
    };
    assert_eq!(prices(&rig), [Price(80), Price(130)]);
    assert_eq!(rig.market(quote(1, (104, 500), (114, 500))), "", "4 ticks are too few");
    assert_eq!(rig.market(quote(1, (105, 500), (115, 500))), "#1->#3 100 @85, #2->#4 100 @135");
}

#[test]
fn no_quote_beyond_the_collar() {
    let mut rig = Rig::new(MarketMaker::new(MakerConfig { offset_ticks: 20, ..MakerConfig::default() }));
    assert_eq!(rig.market(quote(1, (20, 500), (30, 500))), "#1 sell 100 @50 post");
}

#[test]
fn a_quote_through_fair_that_cannot_move_is_pulled() {
    let config = EngineConfig { orders_per_second: 1, order_burst: 2, ..EngineConfig::default() };
    let mut rig = Rig::with(config, LIMITS, MarketMaker::new(MakerConfig::default()));
    rig.market(quote(1, (100, 500), (110, 500)));
    rig.accept(1);
    rig.accept(2);
    assert_eq!(rig.market(quote(1, (102, 500), (112, 500))), "", "off by two, and no harm yet");
    assert_eq!(rig.market(quote(1, (110, 500), (120, 500))), "cancel #2", "fair is 115");
    assert_eq!(rig.engine.desk().counters().refused_rate, 4);
    let now = rig.now;
    assert_eq!(rig.timer(now), "", "too early");
    assert_eq!(rig.timer(now + Nanos::from_secs(1)), "#1->#3 100 @110", "tried again until it goes");
    assert_eq!(rig.engine.desk().counters().refused_rate, 5);
}

#[test]
fn a_replacement_chain_beyond_the_maximum_size_restarts() {
    let limits = Limits { clip: Qty(500), max_position: Qty(1_000_000), max_loss: Money(1 << 40), ..LIMITS };
    let config = MakerConfig { skew_ticks: 0, ..MakerConfig::default() };
    let mut rig = Rig::with(EngineConfig::default(), limits, MarketMaker::new(config));
    rig.market(quote(1, (100, 500), (110, 500)));
    rig.accept(1);
    rig.accept(2);
    let mut bid = 1;
    for step in 1..=20 {
        rig.event(executed(bid, 490, 100));
        let next = rig.market(quote(1, (100 - step, 500), (110, 500)));
        if next == format!("cancel #{bid}") {
            assert_eq!(step, 20, "9500 executed and 500 more make the largest order of 10000");
            return;
        }
        let replaced = next.split("->#").nth(1).and_then(|rest| rest.split(' ').next());
        let replacement = replaced.unwrap_or_else(|| panic!("{next}")).parse().unwrap();
        rig.accept_replace(bid, replacement);
        bid = replacement;
    }
    panic!("the chain never ended");
}

/// Enters bid 1, treats it as rejected after a lost connection, and enters bid 3. A test can accept bid 1
/// later.
fn with_two_bids() -> Rig<MarketMaker> {
    let mut rig = rig();
    let market = quote(1, (100, 500), (110, 500));
    assert_eq!(rig.market(market), "#1 buy 100 @100 post, #2 sell 100 @110 post");
    rig.accept(2);
    rig.engine.handle_disconnect(rig.now);
    rig.engine.handle_reconnect();
    rig.engine.handle_reconciled(rig.now, &mut Vec::new());
    let now = rig.now;
    assert_eq!(rig.timer(now), "#3 buy 100 @100 post");
    assert_eq!(rig.accept(3), "");
    rig
}

#[test]
fn the_second_live_order_of_a_side_is_cancelled() {
    let mut rig = with_two_bids();
    assert_eq!(rig.accept(1), "cancel #1", "the newer in the list, since it is open again");
    assert_eq!(rig.market(quote(1, (102, 500), (110, 500))), "", "asked once");
    assert_eq!(rig.event(canceled(1, 100, CancelReason::User)), "#3->#4 100 @102");
}

#[test]
fn a_refused_cancel_of_the_second_order_is_retried() {
    let mut rig = with_two_bids();
    let order = *rig.engine.desk().orders().open(InstrumentId(1), Side::Buy).next().unwrap();
    let first = tickpath_types::EnterOrder {
        user_ref: tickpath_types::UserRefNum(1),
        ..crate::requests::enter(
            &crate::NewOrder::limit(order.instrument, order.side, order.qty, order.price),
            order.user_ref,
            tickpath_types::ClientOrderId::default(),
        )
    };
    rig.engine.handle_order_event(&crate::testing::accepted(&first), Nanos(1), rig.now, &mut FullQueue);
    let now = rig.now;
    assert_eq!(rig.timer(now), "cancel #1");
    assert_eq!(rig.timer(now), "");
}

#[test]
fn a_quote_with_a_failed_replacement_is_entered_again() {
    let mut rig = quoting();
    assert_eq!(rig.market(quote(1, (102, 500), (110, 500))), "#1->#3 100 @102");
    // Order 1 executes in part and is cancelled while its replacement is in flight, so the replacement fails.
    rig.event(executed(1, 40, 100));
    assert_eq!(rig.event(canceled(1, 60, CancelReason::User)), "#4 buy 100 @102 post");
    rig.accept(4);
    assert_eq!(rig.market(quote(1, (104, 500), (110, 500))), "#4->#5 100 @104", "it moves on");
}

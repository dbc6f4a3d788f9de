//! The functions between a packet and its order, each timed alone with warm caches.

use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_feed::{BookBuilder, MessageBooks, UpdateListener};
use tickpath_nasdaq::itch50::encode_market_event;
use tickpath_nasdaq::ouch50::Client;
use tickpath_nasdaq::soupbintcp::{CONTROL_LEN_MAX, LoginAccepted, LoginRequest, Packet};
use tickpath_timing::{Function, StampKind, Trace};
use tickpath_trading::{EngineConfig, LiquidityTaker, QueueFull, RequestSink, TradeEngine};
use tickpath_types::{
    CancelReason, Instrument, MarketEvent, MarketEventKind, MarketUpdate, MatchId, OrderEventKind, OrderId,
    OrderRequest, OrderState, Price, Qty, Sequence, Side,
};

use super::super::prelude::*;
use super::limits;
use crate::support::order_venue::{QTY, order_of_trade};
use crate::support::venue::{REFERENCE, TICK, USER, instruments, session};

/// Number of calls of each function in a full round.
const CALLS: usize = 20_000;
/// The engine times its functions in one of this many updates.
const UPDATES_PER_TIMER: usize = 16;
const ORDER: OrderId = OrderId(2);

/// Medians in nanoseconds.
pub(super) struct Timers {
    apply: f64,
    features: f64,
    strategy: f64,
    encode: f64,
}

impl Timers {
    pub(super) fn sum(&self) -> f64 {
        self.apply + self.features + self.strategy + self.encode
    }

    pub(super) fn note(&self) -> String {
        let Timers { apply, features, strategy, encode } = self;
        format!(
            "decode and apply {apply:.0}, features {features:.0}, strategy and risk {strategy:.0}, encode {encode:.0}"
        )
    }
}

/// Times each function alone.
pub(super) fn median_timers(context: &Context) -> anyhow::Result<Timers> {
    let calls = context.effort.count(CALLS);
    let mut update = None;
    let apply = apply(context, calls, &mut update)?;
    let update = update.context("an execution makes an update")?;
    let [features, strategy] = decide(context, calls, update)?;
    Ok(Timers { apply, features, strategy, encode: encode(context, calls)? })
}

/// Keeps the latest update.
struct Latest<'a>(&'a mut Option<MarketUpdate>);

impl UpdateListener for Latest<'_> {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        *self.0 = Some(*update);
    }
}

/// Decodes and applies executions of a resting order.
fn apply(context: &Context, calls: usize, update: &mut Option<MarketUpdate>) -> anyhow::Result<f64> {
    let instruments = instruments(1);
    let instrument = &instruments.as_slice()[0];
    let mut books = BookBuilder::new(PackedBooks::new(BookLimits::new(instrument.id, 1_024)));
    let qty = Qty(1 << 31);
    for (order_id, side, price) in
        [(OrderId(1), Side::Buy, REFERENCE), (ORDER, Side::Sell, Price(REFERENCE.0 + TICK))]
    {
        let kind = MarketEventKind::Add { order_id, side, price, qty };
        let bytes = message(instrument, order_id.0, kind)?;
        books.handle_message(Sequence(order_id.0), &bytes, &mut Latest(update));
    }
    let mut ticks = Vec::with_capacity(calls);
    for number in 3..3 + calls as u64 {
        let kind = MarketEventKind::Executed { order_id: ORDER, qty: QTY, match_id: MatchId(number) };
        let bytes = message(instrument, number, kind)?;
        ticks.push(context.timed(|| {
            books.handle_message(Sequence(number), black_box(&bytes), &mut Latest(update));
            Ok(())
        })?);
        ensure!(update.is_some_and(|update| update.sequence == number), "message {number} made no update");
    }
    Ok(context.quantile_ns(&mut ticks, 0.5))
}

fn message(instrument: &Instrument, number: u64, kind: MarketEventKind) -> anyhow::Result<Vec<u8>> {
    let sequence = Sequence(number);
    let event =
        MarketEvent { sequence, command: sequence, ts: Nanos(number), instrument: instrument.id, kind };
    let mut bytes = vec![0; 64];
    let len = encode_market_event(&event, Some(instrument), &mut bytes)?;
    bytes.truncate(len);
    Ok(bytes)
}

/// Keeps the latest request.
#[derive(Default)]
struct Slot(Option<OrderRequest>);

impl RequestSink<Trace> for Slot {
    #[inline]
    fn send(&mut self, request: &OrderRequest, _: &mut Trace) -> Result<(), QueueFull> {
        self.0 = Some(*request);
        Ok(())
    }
}

/// Lets a taker decide on trades; returns the medians of its engine's timers for features and strategy. The
/// strategy's timer includes the risk checks and the order manager.
fn decide(context: &Context, calls: usize, trade: MarketUpdate) -> anyhow::Result<[f64; 2]> {
    let (trace, mut stamps) = Trace::new(1 << 8);
    let config = EngineConfig { orders_per_second: u32::MAX, ..EngineConfig::default() };
    let taker = LiquidityTaker::new(1);
    let mut engine = TradeEngine::new(&config, instruments(1).as_slice(), &[limits()], taker, trace)?;
    let (mut sink, mut ticks) = (Slot::default(), [Vec::new(), Vec::new()]);
    for number in 1..=(calls + UPDATES_PER_TIMER) as u64 {
        let update = MarketUpdate { sequence: number, ts_event: number, ..trade };
        let now = Nanos::from_micros(number);
        engine.handle_market(black_box(&update), now, &mut sink);
        // The quantity before the first trade is unknown, so the taker does not follow that one.
        let Some(OrderRequest::Enter(order)) = sink.0.take() else {
            ensure!(number == 1, "trade {number} was not followed");
            continue;
        };
        let (user_ref, decrement, reason) = (order.user_ref, order.qty, CancelReason::ImmediateOrCancel);
        let accepted = OrderEventKind::Accepted { order, order_id: OrderId(number), state: OrderState::Live };
        for event in [accepted, OrderEventKind::Canceled { user_ref, decrement, reason }] {
            engine.handle_order_event(&event, now, now, &mut sink);
        }
        tickpath_timing::Tracer::flush(engine.tracer_mut());
        stamps.drain(usize::MAX, |stamp| match stamp.decode() {
            Some(StampKind::Time { function: Function::Features, ticks: time }) => ticks[0].push(time),
            Some(StampKind::Time { function: Function::Strategy, ticks: time }) => ticks[1].push(time),
            _ => {}
        });
    }
    ensure!(ticks.iter().all(|ticks| !ticks.is_empty()), "the engine timed nothing");
    Ok(ticks.map(|mut ticks| context.quantile_ns(&mut ticks, 0.5)))
}

/// Encodes orders for an accepted session.
fn encode(context: &Context, calls: usize) -> anyhow::Result<f64> {
    let instruments = instruments(1);
    let login = LoginRequest::new(USER, USER).context("a short name")?;
    let mut client = Client::new(login, instruments.clone(), Nanos(1));
    let mut bytes = [0; CONTROL_LEN_MAX];
    let accepted = LoginAccepted { session: session()?, next_sequence: Sequence(1) };
    let len = Packet::LoginAccepted(accepted).encode(&mut bytes)?;
    client.handle_bytes(Nanos(1), &bytes[..len], |_| ())?;
    ensure!(client.is_active(), "the login is accepted");
    let mut ticks = Vec::with_capacity(calls);
    let mut order = order_of_trade(&instruments);
    for _ in 0..calls {
        order.user_ref.0 += 1;
        let request = OrderRequest::Enter(order);
        ticks.push(context.timed(|| Ok(client.queue(black_box(&request))?))?);
        ensure!(!client.queued().is_empty(), "an order was encoded");
        client.discard();
    }
    Ok(context.quantile_ns(&mut ticks, 0.5))
}

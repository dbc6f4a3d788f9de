//! The functions between a packet and its order, each timed alone with warm caches.

use tickpath_book::{BookLimits, BooksById, PackedBooks};
use tickpath_feed::{BookBuilder, MessageBooks, UpdateListener};
use tickpath_nasdaq::itch50::encode_market_event;
use tickpath_nasdaq::ouch50::Client;
use tickpath_nasdaq::soupbintcp::{CONTROL_LEN_MAX, LoginAccepted, LoginRequest, Packet};
use tickpath_timing::{Function, StampKind, Trace, Tracer};
use tickpath_trading::{LiquidityTaker, QueueFull, RequestSink, TradeEngine};
use tickpath_types::{Instrument, InstrumentTable, MarketEventKind, MarketUpdate, OrderRequest, Sequence};

use super::super::prelude::*;
use super::settings::{ORDERS_MAX, engine_config, limits};
use crate::support::order_venue::{answers_of, execution, market_event, order_of_trade, resting_orders};
use crate::support::venue::{USER, instruments, session};

/// Number of calls of each function in a full round.
const CALLS: usize = 20_000;
/// The engine times its functions in one of this many updates.
const UPDATES_PER_TIMER: usize = 16;

/// Ticks of each call, with the time of two reads of the counter.
#[derive(Default)]
pub(super) struct Timers {
    apply: Vec<u64>,
    features: Vec<u64>,
    strategy: Vec<u64>,
    encode: Vec<u64>,
}

/// Medians in nanoseconds.
pub(super) struct Medians {
    apply: f64,
    features: f64,
    strategy: f64,
    encode: f64,
}

impl Timers {
    /// Times one of `parts` parts of the calls of a round.
    pub(super) fn measure(&mut self, context: &Context, parts: usize) -> anyhow::Result<()> {
        let calls = context.effort.count(CALLS).div_ceil(parts);
        let trade = self.apply(context, calls)?;
        self.decide(calls, &trade)?;
        self.encode(context, calls)
    }

    /// Decodes and applies executions of a resting order. Returns the last update.
    fn apply(&mut self, context: &Context, calls: usize) -> anyhow::Result<MarketUpdate> {
        let instruments = instruments(1);
        let instrument = &instruments.as_slice()[0];
        let mut books = BookBuilder::new(PackedBooks::new(BookLimits::new(instrument.id, ORDERS_MAX)));
        let mut latest = Latest(None);
        for (number, kind) in (1..).zip(resting_orders()) {
            books.handle_message(Sequence(number), &message(instrument, number, kind)?, &mut latest);
        }
        for number in 3..3 + calls as u64 {
            let message = message(instrument, number, execution(number))?;
            self.apply.push(context.timed(|| {
                books.handle_message(Sequence(number), black_box(&message), &mut latest);
                Ok(())
            })?);
            ensure!(latest.0.is_some_and(|it| it.sequence == number), "message {number} made no update");
        }
        latest.0.context("a round has calls")
    }

    /// Lets a taker follow trades, and takes the times that its engine records. The time of the strategy
    /// includes risk checks, order manager, and the two reads of the counter that time the risk checks.
    fn decide(&mut self, calls: usize, trade: &MarketUpdate) -> anyhow::Result<()> {
        let (trace, mut stamps) = Trace::new(1 << 8);
        let taker = LiquidityTaker::new(1);
        let mut engine =
            TradeEngine::new(&engine_config(), instruments(1).as_slice(), &[limits()], taker, trace)?;
        let mut sink = Slot::default();
        for number in 1..=(calls + UPDATES_PER_TIMER) as u64 {
            let update = MarketUpdate { sequence: number, ts_event: number, ..*trade };
            let now = Nanos::from_micros(number);
            engine.handle_market(black_box(&update), now, &mut sink);
            // The quantity before the first trade is unknown, so the taker does not follow that one.
            let Some(OrderRequest::Enter(order)) = sink.0.take() else {
                ensure!(number == 1, "trade {number} was not followed");
                continue;
            };
            answers_of(order).iter().for_each(|answer| {
                engine.handle_order_event(answer, now, now, &mut sink);
            });
            engine.tracer_mut().flush();
            stamps.drain(usize::MAX, |stamp| match stamp.decode() {
                Some(StampKind::Time { function: Function::Features, ticks }) => self.features.push(ticks),
                Some(StampKind::Time { function: Function::Strategy, ticks }) => self.strategy.push(ticks),
                _ => {}
            });
        }
        ensure!(!self.features.is_empty() && !self.strategy.is_empty(), "the engine timed nothing");
        Ok(())
    }

    /// Encodes orders in an accepted session.
    fn encode(&mut self, context: &Context, calls: usize) -> anyhow::Result<()> {
        let instruments = instruments(1);
        let mut client = logged_in_client(&instruments)?;
        let mut order = order_of_trade(&instruments);
        for _ in 0..calls {
            order.user_ref.0 += 1;
            let request = OrderRequest::Enter(order);
            self.encode.push(context.timed(|| Ok(client.queue(black_box(&request))?))?);
            ensure!(!client.queued().is_empty(), "no order was encoded");
            client.discard();
        }
        Ok(())
    }

    pub(super) fn medians(mut self, context: &Context) -> Medians {
        let median = |ticks: &mut Vec<u64>| context.quantile_ns(ticks, 0.5);
        Medians {
            apply: median(&mut self.apply),
            features: median(&mut self.features),
            strategy: median(&mut self.strategy),
            encode: median(&mut self.encode),
        }
    }
}

impl Medians {
    pub(super) fn sum(&self) -> f64 {
        self.apply + self.features + self.strategy + self.encode
    }

    pub(super) fn note(&self) -> String {
        let Medians { apply, features, strategy, encode } = self;
        format!(
            "decode and apply {apply:.0}, features {features:.0}, strategy and risk {strategy:.0}, encode {encode:.0}"
        )
    }
}

/// Keeps the latest update.
struct Latest(Option<MarketUpdate>);

impl UpdateListener for Latest {
    #[inline]
    fn on_update(&mut self, update: &MarketUpdate) {
        self.0 = Some(*update);
    }
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

fn message(instrument: &Instrument, number: u64, kind: MarketEventKind) -> anyhow::Result<Vec<u8>> {
    let mut bytes = vec![0; 64];
    let len = encode_market_event(&market_event(instrument, number, kind), Some(instrument), &mut bytes)?;
    bytes.truncate(len);
    Ok(bytes)
}

fn logged_in_client(instruments: &InstrumentTable) -> anyhow::Result<Client> {
    let login = LoginRequest::new(USER, USER).context("a short name")?;
    let mut client = Client::new(login, instruments.clone(), Nanos(1));
    // The session takes an answer to its login only after it has requested the login.
    client.handle_timeout(Nanos(1))?;
    client.discard();
    let mut bytes = [0; CONTROL_LEN_MAX];
    let accepted = LoginAccepted { session: session()?, next_sequence: Sequence(1) };
    let len = Packet::LoginAccepted(accepted).encode(&mut bytes)?;
    client.handle_bytes(Nanos(1), &bytes[..len], |_| ())?;
    ensure!(client.is_active(), "the login is accepted");
    Ok(client)
}

//! One strategy in virtual time, between a recorded market and a fill model.

use tickpath_book::BooksById;
use tickpath_timing::NoTrace;
use tickpath_trading::{
    ConfigError, Desk, EngineConfig, Limits, Money, QueueFull, RequestSink, Strategy, TradeEngine,
};
use tickpath_types::{
    Instrument, InstrumentId, Liquidity, Nanos, OrderEventKind, OrderRequest, Price, Qty, Side,
};

use crate::latency::{Leg, NEVER};
use crate::{Latencies, QueuePosition, RecordedChange};

/// Settings of a [`Backtest`].
#[derive(Clone, Debug)]
pub struct BacktestConfig {
    /// Settings of the trade engine.
    pub engine: EngineConfig,
    /// Latency of each leg.
    pub latencies: Latencies,
    /// Fees of executions.
    pub fees: Fees,
    /// Interval of the strategy's timer.
    pub timer_interval: Nanos,
    /// Interval between two points of the P&L curve.
    pub sample_interval: Nanos,
    /// Seed of random latencies.
    pub seed: u64,
}

/// Fees for each unit of executed quantity; a negative fee is a rebate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fees {
    /// For an execution that added liquidity.
    pub added: Money,
    /// For an execution that removed liquidity.
    pub removed: Money,
}

impl Fees {
    fn of(&self, liquidity: Liquidity, qty: Qty) -> Money {
        let each = if liquidity == Liquidity::Removed { self.removed } else { self.added };
        Money(each.0 * i128::from(qty.0))
    }
}

/// An execution of an own order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BacktestFill {
    /// The venue's time, in the recording's time.
    pub at: Nanos,
    /// Id of the instrument, by the strategy.
    pub instrument: InstrumentId,
    /// Side of the order.
    pub side: Side,
    /// Price of the execution.
    pub price: Price,
    /// Executed quantity.
    pub qty: Qty,
    /// Role of the order.
    pub liquidity: Liquidity,
    /// Position after the execution, as far as the strategy knows.
    pub net_qty: i64,
}

/// A point of the P&L curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PnlPoint {
    /// Time, in the recording's time.
    pub at: Nanos,
    /// Realised and unrealised P&L of all instruments, less fees.
    pub pnl: Money,
}

/// Results of a back-test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// All executions, in the order in which the strategy learned of them.
    pub fills: Vec<BacktestFill>,
    /// The P&L curve.
    pub curve: Vec<PnlPoint>,
    /// Sum of fees; negative if rebates exceed them.
    pub fees: Money,
    /// Largest decline of the P&L below an earlier point, over points and executions.
    pub drawdown: Money,
    highest: Money,
}

/// The requests of one call of the engine.
#[derive(Debug, Default)]
struct Sent(Vec<OrderRequest>);

impl RequestSink<NoTrace> for Sent {
    fn send(&mut self, request: &OrderRequest, _: &mut NoTrace) -> Result<(), QueueFull> {
        self.0.push(*request);
        Ok(())
    }
}

/// Runs one strategy on a recorded market.
///
/// The caller passes the recording's messages in their order: before each it calls [`advance`](Self::advance) with
/// the books as they were, then it applies the message, and calls [`handle_change`](Self::handle_change). The same
/// inputs give the same results.
#[derive(Debug)]
pub struct Backtest<S> {
    engine: TradeEngine<S, NoTrace>,
    venue: QueuePosition,
    config: BacktestConfig,
    market_data: Leg<tickpath_types::MarketUpdate>,
    requests: Leg<OrderRequest>,
    answers: Leg<(OrderEventKind, Nanos)>,
    sent: Sent,
    /// Times of the next timer and of the next point of the curve; [`NEVER`] before the start.
    timer_at: Nanos,
    sample_at: Nanos,
    outcome: Outcome,
}

impl<S: Strategy> Backtest<S> {
    /// Creates a back-test of `strategy` on `instruments`, whose ids count from 1. The limits of `instruments[i]` are
    /// `limits[i]`.
    ///
    /// # Errors
    /// [`ConfigError`] when the settings are inconsistent.
    pub fn new(
        config: BacktestConfig,
        instruments: &[Instrument],
        limits: &[Limits],
        strategy: S,
    ) -> Result<Backtest<S>, ConfigError> {
        let Latencies { market_data, request, answer } = config.latencies.clone();
        let seed = config.seed;
        Ok(Backtest {
            engine: TradeEngine::new(&config.engine, instruments, limits, strategy, NoTrace)?,
            venue: QueuePosition::new(instruments.len() as u16),
            market_data: Leg::new(market_data, seed),
            requests: Leg::new(request, seed.wrapping_add(1)),
            answers: Leg::new(answer, seed.wrapping_add(2)),
            config,
            sent: Sent::default(),
            timer_at: NEVER,
            sample_at: NEVER,
            outcome: Outcome::default(),
        })
    }

    /// Sets the id of an instrument in the recorded books; without, it is the strategy's.
    pub fn set_recorded(&mut self, instrument: InstrumentId, recorded: InstrumentId) {
        self.venue.set_recorded(instrument, recorded);
    }

    /// Handles all that happens before `until`, the time of the next recorded message. `books` have the messages
    /// before it.
    pub fn advance(&mut self, until: Nanos, books: &impl BooksById) {
        if self.timer_at == NEVER {
            self.start(until);
        }
        loop {
            let [request, answer, update] =
                [self.requests.next_arrival(), self.answers.next_arrival(), self.market_data.next_arrival()];
            let now = request.min(answer).min(update).min(self.timer_at).min(self.sample_at);
            if now >= until {
                return;
            }
            // Of several events at one time, those at the venue are first.
            if now == request {
                self.reach_venue(now, books);
            } else if now == answer {
                self.take_answer(now);
            } else if now == update {
                if let Some(update) = self.market_data.receive() {
                    self.engine.handle_market(&update, now, &mut self.sent);
                    self.send(now);
                }
            } else if now == self.timer_at {
                self.timer_at = now + self.config.timer_interval;
                self.engine.handle_timer(now, &mut self.sent);
                self.send(now);
            } else {
                self.sample_at = now + self.config.sample_interval;
                self.sample(now);
            }
        }
    }

    #[cold]
    fn start(&mut self, now: Nanos) {
        self.timer_at = now + self.config.timer_interval;
        self.sample_at = now;
        self.engine.handle_start(now, &mut self.sent);
        self.send(now);
    }

    /// Handles a recorded message, which was just applied to the books.
    #[inline]
    pub fn handle_change(&mut self, at: Nanos, change: &RecordedChange<'_>) {
        let answers = &mut self.answers;
        self.venue.handle_change(change, &mut |kind| answers.send(at, (kind, at)));
        self.market_data.send(at, *change.update);
    }

    fn reach_venue(&mut self, now: Nanos, books: &impl BooksById) {
        let Some(request) = self.requests.receive() else { return };
        let answers = &mut self.answers;
        self.venue.handle_request(&request, books, &mut |kind| answers.send(now, (kind, now)));
    }

    fn take_answer(&mut self, now: Nanos) {
        let Some((kind, at)) = self.answers.receive() else { return };
        let order = self.engine.desk().orders().order(kind.user_ref()).copied();
        self.engine.handle_order_event(&kind, at, now, &mut self.sent);
        if let (OrderEventKind::Executed { qty, price, liquidity, .. }, Some(order)) = (kind, order) {
            let position = self.engine.desk().positions().get(order.instrument);
            self.outcome.fees += self.config.fees.of(liquidity, qty);
            self.outcome.fills.push(BacktestFill {
                at,
                instrument: order.instrument,
                side: order.side,
                price,
                qty,
                liquidity,
                net_qty: position.map_or(0, |position| position.net_qty()),
            });
            self.outcome.note(pnl(self.engine.desk(), self.outcome.fees));
        }
        self.send(now);
    }

    /// Sends the requests of the engine's last call.
    #[inline]
    fn send(&mut self, now: Nanos) {
        for request in self.sent.0.drain(..) {
            self.requests.send(now, request);
        }
    }

    fn sample(&mut self, now: Nanos) {
        let pnl = pnl(self.engine.desk(), self.outcome.fees);
        self.outcome.note(pnl);
        self.outcome.curve.push(PnlPoint { at: now, pnl });
    }

    /// Ends the back-test at the time of the last message, and returns the results. Messages on their way are lost.
    pub fn finish(mut self, now: Nanos) -> (Outcome, TradeEngine<S, NoTrace>) {
        self.sample(now);
        (self.outcome, self.engine)
    }
}

impl Outcome {
    fn note(&mut self, pnl: Money) {
        self.highest = self.highest.max(pnl);
        self.drawdown = self.drawdown.max(Money(self.highest.0 - pnl.0));
    }
}

/// Realised and unrealised P&L of all instruments, less fees.
fn pnl(desk: &Desk, fees: Money) -> Money {
    desk.positions().totals().pnl() - fees
}

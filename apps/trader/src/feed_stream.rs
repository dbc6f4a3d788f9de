//! Runs a strategy on the books of `tickpath feed`, which handles NASDAQ ITCH, NYSE XDP and IEX feeds.

use anyhow::Context as _;
use tickpath_agent::{Agent, AgentError};
use tickpath_lockfree::broadcast;
use tickpath_shm::SegmentReader;
use tickpath_timing::NoTrace;
use tickpath_trading::{Desk, EngineConfig, Limits, QueueFull, RequestSink, Strategy, TradeEngine};
use tickpath_types::{Instrument, InstrumentId, MarketUpdate, Nanos, OrderRequest, Price, Symbol};

/// Maximum number of market updates handled in one duty cycle.
const UPDATES_PER_CYCLE: usize = 32;
/// Interval between the strategy's timer calls.
const TIMER_INTERVAL: Nanos = Nanos::from_millis(5);

/// Runs a strategy on the stream of updates in a feed handler's segment, in any process of the same user.
///
/// The stream is bounded and never waits for a reader. If it overwrites updates that were not read yet, each
/// book is stale until its next update, which has the best prices. There is no order entry: the engine
/// refuses every order as not connected.
pub struct FeedStream<S> {
    engine: TradeEngine<S, NoTrace>,
    updates: broadcast::Receiver<MarketUpdate>,
    is_started: bool,
    lost_updates: u64,
    next_timer: Nanos,
}

impl<S: Strategy> FeedStream<S> {
    /// Creates a stream for `strategy`, with the instruments that the segment names now. The id of each is
    /// its row plus one. Instruments named later need a new `FeedStream`. `tick_size` applies to all, because
    /// a segment has no tick sizes.
    ///
    /// # Errors
    /// The segment has no stream, or names no instrument yet.
    pub fn new(segment: &SegmentReader, tick_size: Price, strategy: S) -> anyhow::Result<FeedStream<S>> {
        let updates = segment.stream().context("the segment has no stream: set outputs.stream above 0")?;
        let rows = segment.symbols().map(|(row, _)| row + 1).max();
        let rows = rows.context("the segment names no instrument yet: wait for its first market data")?;
        let instrument = |row: usize| -> anyhow::Result<Instrument> {
            let id = InstrumentId(
                u16::try_from(row + 1).context("the segment has more rows than there are instrument ids")?,
            );
            let name = segment.symbol(row);
            let symbol = name
                .as_ref()
                .and_then(|name| Symbol::new(name.as_str()?).ok())
                .unwrap_or(Symbol(*b"        "));
            let instrument = Instrument::in_cents(id, symbol, Price(0));
            Ok(Instrument { tick_size, collar_high: Price(i64::MAX), ..instrument })
        };
        let instruments = (0..rows).map(instrument).collect::<anyhow::Result<Vec<_>>>()?;
        let config = EngineConfig { disconnect_stop: None, ..EngineConfig::default() };
        let limits = vec![Limits::default(); instruments.len()];
        let engine = TradeEngine::new(&config, &instruments, &limits, strategy, NoTrace)?;
        Ok(FeedStream { engine, updates, is_started: false, lost_updates: 0, next_timer: Nanos::ZERO })
    }

    /// Returns the engine's markets, positions, orders, limits and counters.
    #[must_use]
    pub const fn desk(&self) -> &Desk {
        self.engine.desk()
    }

    /// Returns the strategy.
    #[must_use]
    pub const fn strategy(&self) -> &S {
        self.engine.strategy()
    }

    /// Returns the number of updates that the stream overwrote before they were read.
    #[must_use]
    pub const fn lost_updates(&self) -> u64 {
        self.lost_updates
    }

    fn take(&mut self, now: Nanos, update: MarketUpdate) {
        // Segment rows are numbered from 0, the engine's instruments from 1; 0 is no instrument. An update of
        // a later row is passed on too, because it may end a packet.
        let is_known = usize::from(update.instrument) < self.engine.desk().instruments().len();
        let instrument = if is_known { update.instrument + 1 } else { 0 };
        self.engine.handle_market(&MarketUpdate { instrument, ..update }, now, &mut NoOrders);
    }
}

impl<S: Strategy + Send> Agent for FeedStream<S> {
    fn do_work(&mut self, now: Nanos) -> Result<usize, AgentError> {
        if !std::mem::replace(&mut self.is_started, true) {
            self.engine.handle_disconnect(now);
            self.engine.handle_start(now, &mut NoOrders);
        }
        let mut count = 0;
        while count < UPDATES_PER_CYCLE {
            match self.updates.try_recv() {
                Ok(None) => break,
                Ok(Some(update)) => self.take(now, update),
                Err(lagged) => {
                    self.lost_updates += lagged.0;
                    self.engine.handle_lost_updates(now, &mut NoOrders);
                }
            }
            count += 1;
        }
        if now >= self.next_timer {
            self.next_timer = now + TIMER_INTERVAL;
            self.engine.handle_timer(now, &mut NoOrders);
        }
        Ok(count)
    }

    fn role_name(&self) -> &'static str {
        "engine"
    }
}

/// Accepts no request: the engine, which is not connected, sends none.
struct NoOrders;

impl RequestSink<NoTrace> for NoOrders {
    fn send(&mut self, _: &OrderRequest, _: &mut NoTrace) -> Result<(), QueueFull> {
        Err(QueueFull)
    }
}

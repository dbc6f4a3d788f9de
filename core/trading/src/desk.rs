//! The state of a trade engine, except its strategy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tickpath_types::{
    Instrument, InstrumentId, MarketUpdate, Nanos, OrderEventKind, OrderRequest, RejectReason, Sequence, Side,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{
    ConfigError, EngineConfig, Exposure, Features, Limits, OrderChange, OrderManager, OrderRate, OrderUpdate,
    Position, Positions, Risk,
};

tickpath_types::enumerated! {
    /// The reason why an engine no longer trades.
    #[non_exhaustive]
    pub enum StopReason {
        /// The kill switch was pulled.
        Killed,
        /// No market data arrived for the time [`EngineConfig::silence_stop`].
        Silence,
        /// There was no connection to the venue, or no first login, for the time
        /// [`EngineConfig::disconnect_stop`].
        Disconnected,
        /// The program shuts down.
        Shutdown,
    }
}

impl StopReason {
    /// Returns the reason's code, from 1.
    #[must_use]
    pub const fn code(self) -> u64 {
        self as u64 + 1
    }

    /// Returns the reason with this code; `None` for 0 and unknown codes.
    #[must_use]
    pub fn from_code(code: u64) -> Option<StopReason> {
        StopReason::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

/// Makes an engine cancel its orders and stop; clones share one switch.
#[derive(Clone, Debug, Default)]
pub struct KillSwitch(Arc<AtomicBool>);

impl KillSwitch {
    /// Pulls the switch permanently.
    pub fn pull(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true once the switch was pulled.
    #[must_use]
    pub fn is_pulled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct EngineCounters {
    /// Market updates received.
    pub market_updates: u64,
    /// Market updates of unknown instruments; ignored.
    pub unknown_instruments: u64,
    /// Answers and reports received from the venue.
    pub order_events: u64,
    /// Executions of own orders.
    pub fills: u64,
    /// New orders, replacements, reductions and cancels that the venue rejected.
    pub rejects: u64,
    /// New orders sent.
    pub enters: u64,
    /// Replacements sent.
    pub replaces: u64,
    /// Cancels and reductions sent.
    pub cancels: u64,
    /// Requests refused because the instrument is unknown, or the price or quantity is invalid.
    pub refused_invalid: u64,
    /// Requests refused by a risk limit; [`Risk`] counts them by limit.
    pub refused_risk: u64,
    /// Requests refused by the order manager: it is full, or the order is unknown or has a pending request.
    pub refused_order: u64,
    /// Requests refused by the rate limit, [`EngineConfig::orders_per_second`].
    pub refused_rate: u64,
    /// Requests refused because the queue to the venue was full.
    pub refused_queue: u64,
    /// Requests refused because the engine had stopped.
    pub refused_stopped: u64,
    /// Requests refused because the connection to the venue was lost.
    pub refused_disconnected: u64,
    /// Requests returned by the order gateway, because the connection was lost before it could send them.
    pub unsent: u64,
    /// Unanswered requests treated as rejected, after a lost connection or a request that the venue dropped.
    pub unanswered: u64,
}

/// Instruments, markets, positions, orders and limits of one engine.
#[derive(Debug)]
pub struct Desk {
    pub(crate) instruments: Box<[Instrument]>,
    pub(crate) features: Box<[Features]>,
    /// Instruments with an update in the current packet, each once; the capacity is the instrument count.
    changed: Vec<InstrumentId>,
    pub(crate) positions: Positions,
    pub(crate) orders: OrderManager,
    pub(crate) risk: Risk,
    pub(crate) rate: OrderRate,
    pub(crate) stopped: Option<StopReason>,
    pub(crate) is_connected: bool,
    pub(crate) counters: EngineCounters,
}

impl Desk {
    pub(crate) fn new(
        config: &EngineConfig,
        instruments: &[Instrument],
        limits: &[Limits],
    ) -> Result<Desk, ConfigError> {
        check_instruments(instruments)?;
        if limits.len() != instruments.len() {
            return Err(ConfigError::LimitsMissing { limits: limits.len(), instruments: instruments.len() });
        }
        if !(1..=EngineConfig::MAX_OPEN_ORDERS).contains(&config.max_open_orders) {
            return Err(ConfigError::MaxOpenOrders(config.max_open_orders));
        }
        let count = instruments.len();
        Ok(Desk {
            instruments: instruments.into(),
            features: vec![Features::default(); count].into(),
            changed: Vec::with_capacity(count),
            positions: Positions::new(count, config.mark_to),
            orders: OrderManager::new(
                count,
                config.max_open_orders,
                config.first_user_ref,
                config.client_order_id,
            ),
            risk: Risk::new(limits),
            rate: OrderRate::new(config.orders_per_second, config.order_burst),
            stopped: None,
            is_connected: true,
            counters: EngineCounters::default(),
        })
    }

    /// Applies a market update; returns false if its instrument is unknown.
    pub(crate) fn apply_market(&mut self, update: &MarketUpdate) -> bool {
        self.counters.market_updates += 1;
        let index = index_of(update.instrument());
        let (Some(features), Some(position)) =
            (self.features.get_mut(index), self.positions.get_mut(update.instrument()))
        else {
            self.counters.unknown_instruments += 1;
            return false;
        };
        if features.apply(update) {
            self.changed.push(update.instrument());
        }
        position.mark(features.bbo());
        true
    }

    /// Returns instrument `index`, counted from 0, of those that the packet changed, and ends the packet for
    /// it. Also returns the sequence number of its latest message.
    pub(crate) fn end_packet(&mut self, index: usize) -> Option<(InstrumentId, Option<Sequence>)> {
        let instrument = *self.changed.get(index)?;
        let message = self.features.get_mut(index_of(instrument))?.end_packet();
        Some((instrument, message))
    }

    /// Empties the list of instruments that the packet changed, after each was [ended](Self::end_packet).
    pub(crate) fn clear_changed(&mut self) {
        self.changed.clear();
    }

    pub(crate) fn apply_order_event(
        &mut self,
        event: &OrderEventKind,
        ts_event: Nanos,
    ) -> Option<OrderUpdate> {
        self.counters.order_events += 1;
        let update = self.orders.apply(event, ts_event)?;
        match update.change {
            OrderChange::Executed { qty, price, .. } => {
                self.counters.fills += 1;
                let order = &update.order;
                self.positions.get_mut(order.instrument)?.apply_fill(order.side, price, qty);
            }
            OrderChange::Broken { qty, price, .. } => {
                let order = &update.order;
                self.positions.get_mut(order.instrument)?.reverse_fill(order.side, price, qty);
            }
            OrderChange::Rejected { .. } | OrderChange::CancelRejected { .. } => self.counters.rejects += 1,
            _ => {}
        }
        Some(update)
    }

    /// Returns the rejection of the pending replacement whose original the latest order event removed, if
    /// any.
    pub(crate) fn poll_orphan(&mut self) -> Option<OrderUpdate> {
        let orphan = self.orders.poll_orphan()?;
        self.counters.rejects += 1;
        Some(orphan)
    }

    /// Treats a request that the gateway did not send as rejected. Returns the update of its order.
    pub(crate) fn apply_unsent(&mut self, request: &OrderRequest) -> Option<OrderUpdate> {
        let (user_ref, reason) = (request.user_ref(), RejectReason::NotConnected);
        self.counters.unsent += 1;
        match request.is_new_order() {
            true => self.orders.reject_undelivered(user_ref, reason),
            false => self.orders.undo_cancel(user_ref, reason),
        }
    }

    /// Searches the order table from slot `from` for a request of unknown status, and treats the first one as
    /// rejected. Returns its slot and the update of its order.
    pub(crate) fn give_up_next(&mut self, from: usize) -> Option<(usize, Option<OrderUpdate>)> {
        let (slot_index, user_ref) = self.orders.next_unresolved(from)?;
        let update = self.orders.give_up(user_ref);
        self.counters.unanswered += u64::from(update.is_some());
        Some((slot_index, update))
    }

    /// Returns the exposure that [`Risk`] uses to check an order of this instrument and side.
    #[must_use]
    pub fn exposure(&self, instrument: InstrumentId, side: Side) -> Exposure {
        Exposure {
            is_book_live: self.features(instrument).is_some_and(Features::is_live),
            net_qty: self.positions.get(instrument).map_or(0, Position::net_qty),
            pnl: self.positions.pnl(instrument),
            open_qty: self.orders.open_qty(instrument, side),
            open_orders: self.orders.open_count(instrument),
        }
    }

    /// Returns all instruments, sorted by id.
    #[must_use]
    pub fn instruments(&self) -> &[Instrument] {
        &self.instruments
    }

    /// Returns the definition of an instrument; `None` when there is no such instrument.
    #[must_use]
    pub fn instrument(&self, instrument: InstrumentId) -> Option<&Instrument> {
        self.instruments.get(index_of(instrument))
    }

    /// Returns the market state and features of an instrument; `None` when there is no such instrument.
    #[must_use]
    pub fn features(&self, instrument: InstrumentId) -> Option<&Features> {
        self.features.get(index_of(instrument))
    }

    /// Returns all positions.
    #[must_use]
    pub const fn positions(&self) -> &Positions {
        &self.positions
    }

    /// Returns the manager of own orders.
    #[must_use]
    pub const fn orders(&self) -> &OrderManager {
        &self.orders
    }

    /// Returns the risk limits and the counts of check results.
    #[must_use]
    pub const fn risk(&self) -> &Risk {
        &self.risk
    }

    /// Returns the reason why the engine no longer trades; `None` while it trades.
    #[must_use]
    pub const fn stopped(&self) -> Option<StopReason> {
        self.stopped
    }

    /// Returns false while disconnected from the venue. Requests are then refused, but own orders may
    /// execute.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &EngineCounters {
        &self.counters
    }
}

/// Returns the index of an instrument. Ids start at 1; the invalid id 0 wraps to an index out of range.
const fn index_of(instrument: InstrumentId) -> usize {
    (instrument.0 as usize).wrapping_sub(1)
}

fn check_instruments(instruments: &[Instrument]) -> Result<(), ConfigError> {
    for (expected, instrument) in (1..).zip(instruments) {
        if usize::from(instrument.id.0) != expected {
            return Err(ConfigError::InstrumentsNotDense { expected, found: instrument.id });
        }
        if instrument.tick_size.0 <= 0 || instrument.lot_size.is_zero() {
            return Err(ConfigError::NoTickOrLot(instrument.id));
        }
    }
    Ok(())
}

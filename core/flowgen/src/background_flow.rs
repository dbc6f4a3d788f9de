//! Background order flow: simulated participants that make a market.

mod config;
mod market;

use tickpath_types::{
    CancelOrder, EnterOrder, Instrument, InstrumentId, MassCancel, Nanos, OrderEventKind, OrderRequest,
    OrderState, Price, Qty, ReplaceOrder, Rng, Side, TimeInForce, UserRefNum,
};

use crate::ConfigError;
use crate::live::{LiveOrder, LiveOrders};
use crate::schedule::Schedule;
pub use config::BackgroundFlowConfig;
use config::PPM;
use market::Market;

/// Number of candidates for a cancel, replacement or reduction. The first one on the wrong side of the hidden
/// price is chosen, because participants pull stale quotes.
const CANDIDATES: usize = 4;
/// Half of the candidates are among the newest 1/16 of the orders: many orders live briefly, some live long.
const NEWEST_SHARE: usize = 16;
/// The number of open orders settles at this fraction of the maximum.
const TARGET_NUMERATOR: u64 = 3;
const TARGET_DENOMINATOR: u64 = 4;
/// Replacements and reductions per million new orders.
const REPLACE_PPM: u32 = 100_000;
const REDUCE_PPM: u32 = 50_000;
/// One resting order in this many has one of the [`JOINER_LEVELS`] prices nearest to the hidden price.
const JOINERS_ONE_IN: u64 = 16;
/// Number of prices from which one in [`JOINERS_ONE_IN`] resting orders draws its price.
const JOINER_LEVELS: u64 = 4;

/// One request of the order flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRequest {
    /// Time to send the request, since the start of the flow; never decreases.
    pub due: Nanos,
    /// Index of the sending session, from 0.
    pub session: u16,
    /// The request.
    pub request: OrderRequest,
}

/// Follow-up requests to send after a new order: cancels, replacements and reductions.
#[derive(Clone, Copy, Debug, Default)]
struct FollowUps {
    instrument: u16,
    /// Remaining cancels, replacements and reductions, in this order.
    left: [u32; 3],
    /// Due time of the next request, and the interval between requests.
    due: Nanos,
    gap: Nanos,
}

/// A seeded, endless order flow over several instruments and sessions.
///
/// Each instrument has a hidden price that follows a random walk within the collar. Resting orders have
/// random distances from it, and IOC orders cross it. Open orders are cancelled, replaced and reduced, stale
/// ones first; their number is bounded. An opening ladder makes the market two-sided at once.
///
/// The flow is open loop: due times of new orders depend only on seed and settings, not on the venue.
/// [`BackgroundFlow::on_event`] keeps the list of open orders correct. Without it, the flow also cancels
/// orders that have traded; venues ignore such cancels. A session that has used all its `UserRefNum`s, about
/// 2^32, leaves new orders to the other sessions. Once every session is exhausted, no request falls due.
/// Nothing is allocated after creation.
#[derive(Clone, Debug)]
pub struct BackgroundFlow {
    config: BackgroundFlowConfig,
    markets: Box<[Market]>,
    live: LiveOrders,
    rng: Rng,
    schedule: Schedule,
    /// Number of opening orders made so far.
    opened: u64,
    new_order_due: Nanos,
    follow_ups: FollowUps,
    waiting: Option<FlowRequest>,
}

impl BackgroundFlow {
    /// Creates a flow at the start of its opening.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting to change.
    pub fn new(
        config: BackgroundFlowConfig,
        instruments: &[Instrument],
    ) -> Result<BackgroundFlow, ConfigError> {
        config.check(instruments)?;
        let count = instruments.len();
        let opening = config.opening_len(count);
        let start = config.opening_due(opening);
        let mut schedule = Schedule::new(!config.seed, start, config.rate);
        let new_order_due = schedule.next();
        Ok(BackgroundFlow {
            config,
            markets: instruments.iter().map(|instrument| Market::new(*instrument, &config)).collect(),
            live: LiveOrders::new(config.sessions, count, config.live_orders_max as usize),
            rng: Rng::new(config.seed),
            schedule,
            opened: 0,
            new_order_due,
            follow_ups: FollowUps::default(),
            waiting: None,
        })
    }

    /// Sets a session's first `UserRefNum`; a venue accepts each only once. Call before the first request.
    pub fn number_from(&mut self, session: u16, first: UserRefNum) {
        self.live.number_from(session, first);
    }

    /// Drops a request that will not be sent, so that its order does not count as open.
    pub fn drop_unsent(&mut self, action: &FlowRequest) {
        if let OrderRequest::Enter(EnterOrder { user_ref, .. })
        | OrderRequest::Replace(ReplaceOrder { user_ref, .. }) = action.request
        {
            self.live.remove(action.session, user_ref);
        }
    }

    /// Drops the request that is not due yet, if any, and returns a mass cancel of a session; `None` if the
    /// session has no `UserRefNum` left.
    pub fn cancel_all(&mut self, session: u16) -> Option<OrderRequest> {
        if let Some(action) = self.waiting.take() {
            self.drop_unsent(&action);
        }
        let user_ref = self.live.take_user_ref(session)?;
        let (instrument, side) = (InstrumentId(0), None);
        Some(OrderRequest::MassCancel(MassCancel { user_ref, instrument, side, firm: *b"    " }))
    }

    /// Returns the next request if it is due by `elapsed` since the start of the flow; call until `None`.
    pub fn poll(&mut self, elapsed: Nanos) -> Option<FlowRequest> {
        let action = self.waiting.take().unwrap_or_else(|| self.make());
        if action.due <= elapsed {
            return Some(action);
        }
        self.waiting = Some(action);
        None
    }

    /// Processes a session's order event, so that executed orders are not cancelled later.
    pub fn on_event(&mut self, session: u16, event: &OrderEventKind) {
        let user_ref = event.user_ref();
        let Some(order) = self.live.find(session, user_ref) else { return };
        let is_closed = match *event {
            OrderEventKind::Executed { qty, .. } => {
                order.cum_qty.0 = order.cum_qty.0.saturating_add(qty.0);
                order.cum_qty >= order.qty
            }
            OrderEventKind::Canceled { decrement, .. }
            | OrderEventKind::SelfTradePrevented { decrement, .. } => {
                order.qty.0 = order.qty.0.saturating_sub(decrement.0);
                order.qty <= order.cum_qty
            }
            OrderEventKind::Accepted { state, .. } | OrderEventKind::Replaced { state, .. } => {
                state == OrderState::Dead
            }
            OrderEventKind::Rejected { .. } => true,
            OrderEventKind::Modified { .. }
            | OrderEventKind::Restated { .. }
            | OrderEventKind::Triggered { .. }
            | OrderEventKind::Broken { .. }
            | OrderEventKind::MassCanceled(_)
            | OrderEventKind::OrderEntrySet(_) => false,
        };
        if is_closed {
            self.live.remove(session, user_ref);
        }
    }

    /// Number of an instrument's open orders, as known from [`BackgroundFlow::on_event`].
    #[must_use]
    pub fn live_count(&self, instrument: InstrumentId) -> usize {
        let index = usize::from(instrument.0).wrapping_sub(1);
        if index < self.markets.len() { self.live.len(index as u16) } else { 0 }
    }

    fn make(&mut self) -> FlowRequest {
        if self.opened < self.config.opening_len(self.markets.len()) {
            return self.make_opening();
        }
        if let Some(action) = self.make_follow_up() {
            return action;
        }
        self.make_new()
    }

    /// Makes the next opening order. The orders fill the first level on both sides of every instrument, then
    /// the next level.
    fn make_opening(&mut self) -> FlowRequest {
        let index = self.opened;
        let due = self.config.opening_due(index);
        self.opened += 1;
        let count = self.markets.len() as u64;
        let side = Side::BOTH[(index % 2) as usize];
        let instrument = (index / 2 % count) as u16;
        let level = index / 2 / count % u64::from(self.config.opening_levels);
        let price = self.markets[usize::from(instrument)].passive_price(side, level);
        self.enter(due, instrument, side, Some(price))
    }

    fn make_new(&mut self) -> FlowRequest {
        let instrument = self.rng.below(self.markets.len() as u64) as u16;
        if self.live.is_full(instrument)
            && let Some(action) = self.cancel(self.new_order_due, instrument)
        {
            return action;
        }
        let due = self.new_order_due;
        self.new_order_due = self.schedule.next();
        self.walk(instrument);
        self.plan_follow_ups(instrument, due);
        let side = Side::BOTH[self.rng.below(2) as usize];
        if self.rng.chance_ppm(self.config.marketable_ppm) {
            return self.enter(due, instrument, side, None);
        }
        let level = self.sample_level();
        let price = self.markets[usize::from(instrument)].passive_price(side, level);
        self.enter(due, instrument, side, Some(price))
    }

    fn walk(&mut self, instrument: u16) {
        let step = i64::from(self.config.step_subticks);
        let market = &mut self.markets[usize::from(instrument)];
        market.walk(if self.rng.below(2) == 0 { step } else { -step });
    }

    /// Plans the requests that follow a new order; cancels keep the number of open orders near its target.
    fn plan_follow_ups(&mut self, instrument: u16, due: Nanos) {
        let target = u64::from(self.config.live_orders_max) * TARGET_NUMERATOR / TARGET_DENOMINATOR;
        let passive_ppm = PPM.saturating_sub(self.config.marketable_ppm.into());
        let cancel_ppm = passive_ppm * self.live.len(instrument) as u64 / target;
        let cancels = cancel_ppm / PPM + u64::from(self.rng.below(PPM) < cancel_ppm % PPM);
        let replaces = u32::from(self.rng.chance_ppm(REPLACE_PPM));
        let reduces = u32::from(self.rng.chance_ppm(REDUCE_PPM));
        let left = [cancels as u32, replaces, reduces];
        let gap = Nanos((self.new_order_due - due).0 / u64::from(left.iter().sum::<u32>() + 1));
        self.follow_ups = FollowUps { instrument, left, due: due + gap, gap };
    }

    fn make_follow_up(&mut self) -> Option<FlowRequest> {
        let kinds = [BackgroundFlow::cancel, BackgroundFlow::replace, BackgroundFlow::reduce];
        let FollowUps { instrument, due, gap, .. } = self.follow_ups;
        while let Some(kind) = self.follow_ups.left.iter().position(|left| *left != 0) {
            self.follow_ups.left[kind] -= 1;
            if self.live.len(instrument) != 0
                && let Some(action) = kinds[kind](self, due, instrument)
            {
                self.follow_ups.due = due + gap;
                return Some(action);
            }
        }
        None
    }

    /// Makes a new order that rests at the price `resting`; if `None`, an IOC order that crosses the hidden
    /// price.
    fn enter(&mut self, due: Nanos, instrument: u16, side: Side, resting: Option<Price>) -> FlowRequest {
        let session = self.rng.below(self.config.sessions.into()) as u16;
        let session = match resting {
            Some(_) => self.live.session_with_capacity(session),
            None => self.live.session_with_numbers(session),
        };
        let qty = self.sample_qty(instrument);
        let market = &self.markets[usize::from(instrument)];
        let price = resting.unwrap_or_else(|| market.crossing_price(side, self.rng.geometric(200)));
        let Some(user_ref) = self.live.take_user_ref(session) else { return never_due() };
        let order = EnterOrder::limit(user_ref, market.instrument.id, side, qty, price);
        let time_in_force = if resting.is_some() {
            self.live.insert(LiveOrder {
                session,
                user_ref,
                instrument,
                side,
                price,
                qty,
                cum_qty: Qty::ZERO,
            });
            TimeInForce::Day
        } else {
            TimeInForce::Ioc
        };
        FlowRequest { due, session, request: OrderRequest::Enter(EnterOrder { time_in_force, ..order }) }
    }

    /// Cancels an order; the instrument must have an open order.
    fn cancel(&mut self, due: Nanos, instrument: u16) -> Option<FlowRequest> {
        let order = self.choose(instrument);
        self.live.remove(order.session, order.user_ref);
        let request = OrderRequest::Cancel(CancelOrder { user_ref: order.user_ref, qty: Qty::ZERO });
        Some(FlowRequest { due, session: order.session, request })
    }

    /// Replaces an order, unless its new price is its old one; the instrument must have an open order.
    fn replace(&mut self, due: Nanos, instrument: u16) -> Option<FlowRequest> {
        let order = self.choose(instrument);
        let level = self.sample_level();
        let price = self.markets[usize::from(instrument)].passive_price(order.side, level);
        if price == order.price {
            return None;
        }
        let user_ref = self.live.take_user_ref(order.session)?;
        self.live.remove(order.session, order.user_ref);
        self.live.insert(LiveOrder { user_ref, price, ..order });
        let request = OrderRequest::Replace(ReplaceOrder::limit(order.user_ref, user_ref, order.qty, price));
        Some(FlowRequest { due, session: order.session, request })
    }

    /// Halves an order's known open quantity, if a lot or more is left; the instrument must have an open
    /// order.
    fn reduce(&mut self, due: Nanos, instrument: u16) -> Option<FlowRequest> {
        let order = self.choose(instrument);
        let lot = self.markets[usize::from(instrument)].instrument.lot_size.0;
        let left = order.qty.0.saturating_sub(order.cum_qty.0) / 2 / lot * lot;
        if left == 0 {
            return None;
        }
        let qty = Qty(order.cum_qty.0 + left);
        let request = OrderRequest::Cancel(CancelOrder { user_ref: order.user_ref, qty });
        Some(FlowRequest { due, session: order.session, request })
    }

    fn choose(&mut self, instrument: u16) -> LiveOrder {
        let len = self.live.len(instrument);
        let newest = len.div_ceil(NEWEST_SHARE);
        let mut chosen = None;
        for _ in 0..CANDIDATES {
            let from = if self.rng.below(2) == 0 { len - newest } else { 0 };
            let index = from + self.rng.below((len - from) as u64) as usize;
            let order = *self.live.at(instrument, index);
            if self.markets[usize::from(instrument)].is_stale(&order) {
                return order;
            }
            chosen.get_or_insert(order);
        }
        chosen.expect("there is at least one candidate")
    }

    /// Draws a resting order's distance, in ticks, from the price nearest to the hidden price. One in
    /// [`JOINERS_ONE_IN`] is below [`JOINER_LEVELS`]; the others are sums of two geometric numbers.
    fn sample_level(&mut self) -> u64 {
        if self.rng.below(JOINERS_ONE_IN) == 0 {
            return self.rng.below(JOINER_LEVELS);
        }
        let half = self.config.depth_ticks.saturating_mul(50);
        self.rng.geometric(half) + self.rng.geometric(half)
    }

    fn sample_qty(&mut self, instrument: u16) -> Qty {
        let Instrument { lot_size, max_qty, .. } = self.markets[usize::from(instrument)].instrument;
        let lots = u64::from(self.config.qty_lots) * (1 + self.rng.geometric(100));
        Qty(lots.clamp(1, max_qty.0 / lot_size.0) * lot_size.0)
    }
}

/// Returns a request that never falls due, because no session has a `UserRefNum` left.
#[cold]
fn never_due() -> FlowRequest {
    let request = OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(0), qty: Qty::ZERO });
    FlowRequest { due: Nanos::MAX, session: 0, request }
}

#[cfg(test)]
mod tests;

//! A crowd of participants: order flow that makes a market.

mod config;
mod market;

use tickpath_types::{
    CancelOrder, Draw, EnterOrder, Instrument, InstrumentId, MassCancel, Nanos, OrderEventKind, OrderRequest,
    OrderState, Price, Qty, ReplaceOrder, Side, TimeInForce, UserRefNum,
};

use crate::live::{LiveOrder, LiveOrders};
use crate::schedule::Schedule;
use config::PPM;
pub use config::{CrowdConfig, CrowdConfigError};
use market::Market;

/// Of the open orders that a cancel, replacement or reduction looks at, one on the wrong side of the hidden
/// price is chosen first: participants pull stale quotes.
const CANDIDATES: usize = 4;
/// Half of the choices are among the newest order in so many: many orders live short, some live long.
const NEWEST_SHARE: usize = 16;
/// Open orders settle at so many in this many of the most allowed.
const TARGET_NUMERATOR: u64 = 3;
const TARGET_DENOMINATOR: u64 = 4;
/// One resting order in so many is placed evenly on the first levels.
const JOINERS_ONE_IN: u64 = 16;
/// The first levels.
const JOINER_LEVELS: u64 = 4;

/// One request of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrowdAction {
    /// When it is to be sent, from the start of the flow. It never goes back.
    pub due: Nanos,
    /// Which of the crowd's sessions sends it, from 0.
    pub session: u16,
    /// What is sent.
    pub request: OrderRequest,
}

/// What a crowd made so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrowdCounters {
    /// New orders that rest, the opening included.
    pub passive: u64,
    /// New orders that trade at once or not at all.
    pub marketable: u64,
    /// Cancels.
    pub cancels: u64,
    /// Replacements.
    pub replaces: u64,
    /// Reductions.
    pub reduces: u64,
    /// New orders and replacements that were not made because no number was left: of all sessions, or of the
    /// replaced order's. After a new order that was not made the flow is over.
    pub unnumbered: u64,
}

/// What comes next besides new orders.
#[derive(Clone, Copy, Debug, Default)]
struct Chores {
    instrument: u16,
    cancels: u32,
    replaces: u32,
    reduces: u32,
    /// When the next is due, and the time between two.
    due: Nanos,
    gap: Nanos,
}

/// A seeded, endless order flow over several instruments and sessions.
///
/// Each instrument has a hidden price that walks at random within the collar. Resting orders are placed at
/// random distances from it, IOC orders trade through it, open orders are cancelled, replaced and reduced,
/// stale ones first; their number is bounded. An opening ladder makes the market two-sided at once.
///
/// The flow is open loop: when each new order is due is a function of seed and settings alone, whatever the
/// venue does. [`Crowd::on_event`] keeps the list of open orders right; without it the crowd also
/// cancels orders that have traded, which a venue ignores. A session that has used all its numbers, some 2^32,
/// leaves its new orders to the others; when all have, the flow is over and nothing more falls due. Nothing is
/// allocated after creation.
#[derive(Clone, Debug)]
pub struct Crowd {
    config: CrowdConfig,
    markets: Box<[Market]>,
    live: LiveOrders,
    draw: Draw,
    schedule: Schedule,
    /// Opening orders sent so far.
    opened: u64,
    new_order_due: Nanos,
    chores: Chores,
    waiting: Option<CrowdAction>,
    counters: CrowdCounters,
}

impl Crowd {
    /// A crowd at the start of its opening.
    ///
    /// # Errors
    /// [`CrowdConfigError`] names the setting to change.
    pub fn new(config: CrowdConfig, instruments: &[Instrument]) -> Result<Crowd, CrowdConfigError> {
        config.check(instruments)?;
        let count = instruments.len();
        let opening = config.opening_len(count);
        let start = config.opening_due(opening);
        let mut schedule = Schedule::new(!config.seed, start, config.rate, config.spacing, config.burst);
        let new_order_due = schedule.next();
        Ok(Crowd {
            config,
            markets: instruments.iter().map(|instrument| Market::new(*instrument, &config)).collect(),
            live: LiveOrders::new(config.sessions, count, config.live_orders_max as usize),
            draw: Draw::new(config.seed),
            schedule,
            opened: 0,
            new_order_due,
            chores: Chores::default(),
            waiting: None,
            counters: CrowdCounters::default(),
        })
    }

    /// Numbers the orders of a session from `first` on: a venue takes no number twice. Before the first request.
    pub fn number_from(&mut self, session: u16, first: UserRefNum) {
        self.live.number_from(session, first);
    }

    /// Drops a request that is not sent, so that its order does not count as open.
    pub fn drop_unsent(&mut self, action: &CrowdAction) {
        if let OrderRequest::Enter(EnterOrder { user_ref, .. })
        | OrderRequest::Replace(ReplaceOrder { user_ref, .. }) = action.request
        {
            self.live.remove(action.session, user_ref);
        }
    }

    /// A request to cancel everything that a session has open, in place of the next action; `None` when no number is left
    /// for it.
    pub fn cancel_all(&mut self, session: u16) -> Option<OrderRequest> {
        if let Some(action) = self.waiting.take() {
            self.drop_unsent(&action);
        }
        let user_ref = self.live.take_user_ref(session)?;
        let (instrument, side) = (InstrumentId(0), None);
        Some(OrderRequest::MassCancel(MassCancel { user_ref, instrument, side, firm: *b"    " }))
    }

    /// The next request if it is due by `elapsed` since the start of the flow; call again until `None`.
    pub fn poll(&mut self, elapsed: Nanos) -> Option<CrowdAction> {
        let action = match self.waiting.take() {
            Some(action) => action,
            None => self.make(),
        };
        if action.due <= elapsed {
            return Some(action);
        }
        self.waiting = Some(action);
        None
    }

    /// The next request, whenever it is due.
    pub fn next_action(&mut self) -> CrowdAction {
        self.waiting.take().unwrap_or_else(|| self.make())
    }

    /// Takes what the venue told a session, so that orders that traded are not cancelled later.
    pub fn on_event(&mut self, session: u16, event: &OrderEventKind) {
        let user_ref = event.user_ref();
        let Some(order) = self.live.find(session, user_ref) else { return };
        let is_gone = match *event {
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
        if is_gone {
            self.live.remove(session, user_ref);
        }
    }

    /// Open orders of an instrument, as far as the crowd knows.
    #[must_use]
    pub fn live_count(&self, instrument: InstrumentId) -> usize {
        let index = usize::from(instrument.0).wrapping_sub(1);
        if index < self.markets.len() { self.live.len(index as u16) } else { 0 }
    }

    /// When the opening is over.
    #[must_use]
    pub fn opening_end(&self) -> Nanos {
        self.config.opening_due(self.config.opening_len(self.markets.len()))
    }

    /// What it made so far.
    #[must_use]
    pub const fn counters(&self) -> &CrowdCounters {
        &self.counters
    }

    fn make(&mut self) -> CrowdAction {
        if self.opened < self.config.opening_len(self.markets.len()) {
            return self.make_opening();
        }
        if let Some(action) = self.make_chore() {
            return action;
        }
        self.make_new()
    }

    /// Both sides of every instrument at the first level, then the next level, and so round again.
    fn make_opening(&mut self) -> CrowdAction {
        let index = self.opened;
        let due = self.config.opening_due(index);
        self.opened += 1;
        let count = self.markets.len() as u64;
        let side = Side::BOTH[(index % 2) as usize];
        let instrument = (index / 2 % count) as u16;
        let level = index / 2 / count % u64::from(self.config.opening_levels);
        let price = self.markets[usize::from(instrument)].passive_price(side, level);
        self.enter_passive(due, instrument, side, price)
    }

    fn make_new(&mut self) -> CrowdAction {
        let instrument = self.draw.below(self.markets.len() as u64) as u16;
        if self.live.is_full(instrument) {
            return self.cancel(self.new_order_due, instrument);
        }
        let due = self.new_order_due;
        self.new_order_due = self.schedule.next();
        self.walk(instrument);
        self.plan_chores(instrument, due);
        let side = Side::BOTH[self.draw.below(2) as usize];
        if self.draw.chance_ppm(self.config.marketable_ppm) {
            return self.enter_marketable(due, instrument, side);
        }
        let level = self.draw_level();
        let price = self.markets[usize::from(instrument)].passive_price(side, level);
        self.enter_passive(due, instrument, side, price)
    }

    fn walk(&mut self, instrument: u16) {
        let step = i64::from(self.config.step_subticks);
        let market = &mut self.markets[usize::from(instrument)];
        market.walk(if self.draw.below(2) == 0 { step } else { -step });
    }

    /// As many cancels per new order as keep the number of open orders near its target.
    fn plan_chores(&mut self, instrument: u16, due: Nanos) {
        let target = u64::from(self.config.live_orders_max) * TARGET_NUMERATOR / TARGET_DENOMINATOR;
        let passive_ppm = PPM.saturating_sub(self.config.marketable_ppm.into());
        let cancel_ppm = passive_ppm * self.live.len(instrument) as u64 / target;
        let cancels = cancel_ppm / PPM + u64::from(self.draw.below(PPM) < cancel_ppm % PPM);
        let replaces = u32::from(self.draw.chance_ppm(self.config.replace_ppm));
        let reduces = u32::from(self.draw.chance_ppm(self.config.reduce_ppm));
        let cancels = cancels as u32;
        let gap = Nanos((self.new_order_due - due).0 / u64::from(cancels + replaces + reduces + 1));
        self.chores = Chores { instrument, cancels, replaces, reduces, due: due + gap, gap };
    }

    fn make_chore(&mut self) -> Option<CrowdAction> {
        let Chores { instrument, due, .. } = self.chores;
        loop {
            let chores = &mut self.chores;
            let is_possible = self.live.len(instrument) != 0;
            let action = if chores.cancels != 0 {
                chores.cancels -= 1;
                is_possible.then(|| self.cancel(due, instrument))
            } else if chores.replaces != 0 {
                chores.replaces -= 1;
                if is_possible { self.replace(due, instrument) } else { None }
            } else if chores.reduces != 0 {
                chores.reduces -= 1;
                if is_possible { self.reduce(due, instrument) } else { None }
            } else {
                return None;
            };
            if action.is_some() {
                self.chores.due = due + self.chores.gap;
                return action;
            }
        }
    }

    fn enter_passive(&mut self, due: Nanos, instrument: u16, side: Side, price: Price) -> CrowdAction {
        let session = self.draw.below(self.config.sessions.into()) as u16;
        let session = self.live.session_with_room(session);
        let qty = self.draw_qty(instrument);
        let Some(user_ref) = self.live.take_user_ref(session) else { return self.silence() };
        self.live.insert(LiveOrder { session, user_ref, instrument, side, price, qty, cum_qty: Qty::ZERO });
        self.counters.passive += 1;
        self.enter(due, session, instrument, side, price, qty, user_ref, TimeInForce::Day)
    }

    fn enter_marketable(&mut self, due: Nanos, instrument: u16, side: Side) -> CrowdAction {
        let session = self.draw.below(self.config.sessions.into()) as u16;
        let session = self.live.session_with_numbers(session);
        let qty = self.draw_qty(instrument);
        let reach = self.draw.geometric(200);
        let price = self.markets[usize::from(instrument)].crossing_price(side, reach);
        let Some(user_ref) = self.live.take_user_ref(session) else { return self.silence() };
        self.counters.marketable += 1;
        self.enter(due, session, instrument, side, price, qty, user_ref, TimeInForce::Ioc)
    }

    /// No session has a number left: a request that never falls due.
    #[cold]
    fn silence(&mut self) -> CrowdAction {
        self.counters.unnumbered += 1;
        let request = OrderRequest::Cancel(CancelOrder { user_ref: UserRefNum(0), qty: Qty::ZERO });
        CrowdAction { due: Nanos::MAX, session: 0, request }
    }

    #[expect(clippy::too_many_arguments, reason = "they are the fields of an order")]
    fn enter(
        &self,
        due: Nanos,
        session: u16,
        instrument: u16,
        side: Side,
        price: Price,
        qty: Qty,
        user_ref: UserRefNum,
        time_in_force: TimeInForce,
    ) -> CrowdAction {
        let instrument = self.markets[usize::from(instrument)].instrument.id;
        let order = EnterOrder::limit(user_ref, instrument, side, qty, price);
        let request = OrderRequest::Enter(EnterOrder { time_in_force, ..order });
        CrowdAction { due, session, request }
    }

    /// The instrument must have an open order.
    fn cancel(&mut self, due: Nanos, instrument: u16) -> CrowdAction {
        let order = self.choose(instrument);
        self.live.remove(order.session, order.user_ref);
        self.counters.cancels += 1;
        let request = OrderRequest::Cancel(CancelOrder { user_ref: order.user_ref, qty: Qty::ZERO });
        CrowdAction { due, session: order.session, request }
    }

    /// The instrument must have an open order.
    fn replace(&mut self, due: Nanos, instrument: u16) -> Option<CrowdAction> {
        let order = self.choose(instrument);
        let level = self.draw_level();
        let price = self.markets[usize::from(instrument)].passive_price(order.side, level);
        if price == order.price {
            return None;
        }
        let Some(user_ref) = self.live.take_user_ref(order.session) else {
            self.counters.unnumbered += 1;
            return None;
        };
        self.live.remove(order.session, order.user_ref);
        self.live.insert(LiveOrder { user_ref, price, ..order });
        self.counters.replaces += 1;
        let request = OrderRequest::Replace(ReplaceOrder::limit(order.user_ref, user_ref, order.qty, price));
        Some(CrowdAction { due, session: order.session, request })
    }

    /// To half of what is left, as far as answers have come; the instrument must have an open order.
    fn reduce(&mut self, due: Nanos, instrument: u16) -> Option<CrowdAction> {
        let order = self.choose(instrument);
        let lot = self.markets[usize::from(instrument)].instrument.lot_size.0;
        let left = order.qty.0.saturating_sub(order.cum_qty.0) / 2 / lot * lot;
        if left == 0 {
            return None;
        }
        let qty = Qty(order.cum_qty.0 + left);
        self.counters.reduces += 1;
        let request = OrderRequest::Cancel(CancelOrder { user_ref: order.user_ref, qty });
        Some(CrowdAction { due, session: order.session, request })
    }

    fn choose(&mut self, instrument: u16) -> LiveOrder {
        let len = self.live.len(instrument);
        let newest = len.div_ceil(NEWEST_SHARE);
        let mut chosen = None;
        for _ in 0..CANDIDATES {
            let from = if self.draw.below(2) == 0 { len - newest } else { 0 };
            let index = from + self.draw.below((len - from) as u64) as usize;
            let order = *self.live.at(instrument, index);
            if self.markets[usize::from(instrument)].is_stale(&order) {
                return order;
            }
            chosen.get_or_insert(order);
        }
        chosen.expect("there is at least one candidate")
    }

    /// Some resting orders join the front; the others lie in a hump around the mean depth, the sum of two
    /// geometric distances.
    fn draw_level(&mut self) -> u64 {
        if self.draw.below(JOINERS_ONE_IN) == 0 {
            return self.draw.below(JOINER_LEVELS);
        }
        let half = self.config.depth_ticks.saturating_mul(50);
        self.draw.geometric(half) + self.draw.geometric(half)
    }

    fn draw_qty(&mut self, instrument: u16) -> Qty {
        let Instrument { lot_size, max_qty, .. } = self.markets[usize::from(instrument)].instrument;
        let lots = u64::from(self.config.qty_lots) * (1 + self.draw.geometric(100));
        Qty(lots.clamp(1, max_qty.0 / lot_size.0) * lot_size.0)
    }
}

#[cfg(test)]
mod tests;

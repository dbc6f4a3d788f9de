//! The order flow of a day: chooses each message and its order, and applies it to the books.

use tickpath_book::OrderHandle;
use tickpath_nasdaq::itch50::{
    AddOrder, AddOrderMpid, BrokenTrade, BuySell, CrossType, NonCrossTrade, OrderCancel, OrderDelete,
    OrderExecuted, OrderExecutedWithPrice, OrderReplace, YesNo,
};
use tickpath_types::{MatchId, Nanos, OrderId, Price, Qty, Rng, Side};

use super::announce::{imbalance, mpid};
use super::message::{At, Buffer, NO_TRACKING, locate, put, put_message, wire_price};
use super::resting::Resting;
use super::schedule::{CLUSTER_LEN_MEAN, Schedule, Session, SessionLens, Slot};
use super::symbol::{Securities, TICK};
use super::weights::{power_law, qty, upper_below};

/// Number of messages of each kind per 100,000 messages. The rest of [`MIX_TOTAL`] are adds and deletes. The
/// imbalances before the crosses, 1.4 percent of the day, are not part of [`MIX_TOTAL`].
const MIX_TOTAL: u64 = 98_600;
const REPLACES: u64 = 8_000;
const EXECUTIONS: u64 = 2_000;
const CANCELS: u64 = 1_000;
const HIDDEN_TRADES: u64 = 500;
const PRICED_EXECUTIONS: u64 = 50;
const IMBALANCES_PER_100_000: u64 = 1_400;

/// Probability, in eighths, that an aggressor trades with another order next, unless the cluster ends.
const SWEEP_IN_EIGHT: u64 = 3;
const SWEEPS: u64 =
    EXECUTIONS * (8 * CLUSTER_LEN_MEAN - SWEEP_IN_EIGHT * (CLUSTER_LEN_MEAN - 1)) / (8 * CLUSTER_LEN_MEAN);
/// One add in this many is attributed to a market maker.
const NAMED_ONE_IN: u64 = 44;
/// One message in this many breaks the last trade.
const BROKEN_ONE_IN: u64 = 1 << 22;
/// One execution in this many is partial.
const PARTIAL_ONE_IN: u64 = 5;
/// One in this many executions at another price is marked as not printable.
const UNPRINTED_ONE_IN: u64 = 4;

/// Probability, in quarters, that a message concerns its cluster's security instead of a random one.
const LEADER_IN_FOUR: u64 = 3;
/// The reference price steps with one message of its security in this many.
const STEP_ONE_IN: u64 = 8;
/// Probability, in quarters, that `pick` takes an order on the wrong side of the reference price, if any.
const STALE_IN_FOUR: u64 = 3;
/// When `pick` chooses an order by age: median number of newer orders. New orders are preferred.
const NEWER_MEDIAN: u64 = 2;
/// Maximum move, in ticks, of a replacement that follows the market.
const MOVE_TICKS_MAX: u64 = 8;

/// Probability of an add instead of a delete, in units of 2^-16: at the target number of live orders of a
/// security, and the minimum. It falls linearly as orders exceed the target, and rises as they fall short.
const ADD_CHANCE_EVEN: i64 = 1 << 15;
const ADD_CHANCE_MIN: i64 = 3_277;
/// Distance from the target at which the probability would reach 0 or 1: 3 orders plus a 24th of the target.
const RETURN_ORDERS: i64 = 3;
const RETURN_ORDERS_PER_TARGET: i64 = 24;
/// Fraction of the pre-market's messages that fill the books, and of the post-market's that empty them.
const RAMP_NUMERATOR: u64 = 7;
const RAMP_DENOMINATOR: u64 = 8;

/// Order references are multiples of this, as in Nasdaq's files of 2019.
const REF_STEP: u64 = 4;

/// The imbalance messages before the crosses.
#[derive(Debug)]
struct Imbalances {
    /// True if the current cluster consists of imbalances.
    is_cluster: bool,
    /// Number of imbalances still to send, and of remaining messages over which they are distributed.
    left: u64,
    messages_left: u64,
    /// Security of the next imbalance.
    next: usize,
}

#[derive(Debug)]
pub(super) struct Flow {
    pub schedule: Schedule,
    pub securities: Securities,
    pub resting: Resting,
    pub rng: Rng,
    live: u64,
    last_ref: u64,
    /// Number of assigned order references.
    pub ref_count: u64,
    last_match: u64,
    /// True if a trade was reported since the last broken trade message.
    has_traded: bool,
    /// Security that most messages of the current cluster concern.
    leader: usize,
    imbalances: Imbalances,
    /// Set if the next message is another execution by the same aggressor: time, security and executed side.
    sweep: Option<(At, Side)>,
    /// The last order of each security that replaced another; it may no longer rest.
    last_replaced: Box<[Option<(OrderHandle, OrderId)>]>,
    /// Target number of live orders of all securities at this time.
    target: u64,
}

impl Flow {
    pub fn new(messages: u64, securities: u16, live: u32, seed: u64) -> Flow {
        let mut rng = Rng::new(seed);
        let lens = SessionLens::new(messages, u64::from(live));
        Flow {
            schedule: Schedule::new(lens),
            securities: Securities::new(securities, &mut rng),
            resting: Resting::new(securities, orders_max(securities, live)),
            rng,
            live: u64::from(live),
            last_ref: 0,
            ref_count: 0,
            last_match: 0,
            has_traded: false,
            leader: 0,
            imbalances: Imbalances {
                is_cluster: false,
                left: messages * IMBALANCES_PER_100_000 / 100_000,
                messages_left: Schedule::messages_before_crosses(lens),
                next: 0,
            },
            sweep: None,
            last_replaced: vec![None; usize::from(securities)].into(),
            target: 0,
        }
    }

    /// Writes the next message of the session and returns its length; `None` at the session's end.
    #[inline]
    pub fn next_message(&mut self, out: &mut Buffer) -> Option<usize> {
        let slot = self.schedule.next(&mut self.rng)?;
        if slot.is_head {
            self.begin_cluster(&slot);
        }
        if slot.has_imbalances {
            self.imbalances.messages_left = self.imbalances.messages_left.saturating_sub(1);
        }
        Some(self.message(slot.ts, out))
    }

    pub fn next_match(&mut self) -> MatchId {
        self.last_match += 1 + self.rng.below(3);
        MatchId(self.last_match)
    }

    fn begin_cluster(&mut self, slot: &Slot) {
        self.sweep = None;
        self.leader = self.any_security();
        self.imbalances.is_cluster =
            slot.has_imbalances && self.rng.below(self.imbalances.messages_left) < self.imbalances.left;
        let (sent, all) = self.schedule.progress();
        let ramp = (self.live * sent * RAMP_DENOMINATOR / (all * RAMP_NUMERATOR).max(1)).min(self.live);
        self.target = match self.schedule.session() {
            Session::PreMarket => ramp,
            Session::Market => self.live,
            Session::PostMarket => self.live - ramp,
        };
    }

    #[inline]
    fn any_security(&mut self) -> usize {
        match self.schedule.session() {
            Session::Market => self.securities.by_activity.sample(&mut self.rng),
            Session::PreMarket | Session::PostMarket => self.securities.by_live.sample(&mut self.rng),
        }
    }

    #[inline]
    fn message(&mut self, ts: Nanos, out: &mut Buffer) -> usize {
        if self.imbalances.is_cluster {
            return self.imbalance(ts, out);
        }
        if let Some((At { security, .. }, side)) = self.sweep.take()
            && let Some(front) = self.resting.front(security, side)
        {
            return self.execute(At { ts, security }, front, side, out);
        }
        let choice = self.rng.next();
        let is_leader = choice & 3 < LEADER_IN_FOUR;
        let security = if is_leader { self.leader } else { self.any_security() };
        if choice >> 2 & (STEP_ONE_IN - 1) == 0 {
            self.walk(security, choice >> 5 & 1 == 0);
        }
        self.act(At { ts, security }, upper_below(choice, MIX_TOTAL), out)
    }

    /// Performs the action selected by `choice`, below [`MIX_TOTAL`]; an add or a delete if that is
    /// impossible. Returns the length of the message.
    #[inline]
    fn act(&mut self, at: At, mut choice: u64, out: &mut Buffer) -> usize {
        for (share, act) in [
            (REPLACES, Flow::replace as fn(&mut Flow, At, &mut Buffer) -> Option<usize>),
            (SWEEPS, Flow::begin_sweep),
            (CANCELS, Flow::cancel),
            (PRICED_EXECUTIONS, Flow::execute_with_price),
        ] {
            if choice < share {
                return act(self, at, out).unwrap_or_else(|| self.add_or_delete(at, out));
            }
            choice -= share;
        }
        if choice < HIDDEN_TRADES {
            return self.trade_hidden(at, out);
        }
        if self.has_traded && self.rng.below(BROKEN_ONE_IN) == 0 {
            self.has_traded = false;
            return put_message!(out, at, BrokenTrade(self.last_match));
        }
        self.add_or_delete(at, out)
    }

    /// Moves the reference price, unless it has passed orders that still rest: they must be removed first.
    fn walk(&mut self, security: usize, is_up: bool) {
        match (is_up, self.stale_side(security)) {
            (true, Some(Side::Sell)) | (false, Some(Side::Buy)) => {}
            _ => self.securities.list[security].walk(is_up),
        }
    }

    /// The side whose best price is on the wrong side of the reference price.
    #[inline]
    fn stale_side(&self, security: usize) -> Option<Side> {
        let front = Price(self.securities.list[security].front_tick() * TICK);
        if self.resting.best(security, Side::Sell).is_some_and(|ask| ask <= front) {
            Some(Side::Sell)
        } else if self.resting.best(security, Side::Buy).is_some_and(|bid| bid > front) {
            Some(Side::Buy)
        } else {
            None
        }
    }

    /// Picks an order to delete, replace or reduce.
    #[inline]
    fn pick(&mut self, security: usize) -> Option<OrderHandle> {
        if self.rng.below(4) < STALE_IN_FOUR
            && let Some(side) = self.stale_side(security)
        {
            return self.resting.front(security, side);
        }
        let newer = power_law(&mut self.rng, NEWER_MEDIAN);
        let count = self.resting.count(security) as u64;
        self.resting.by_age(security, newer.checked_rem(count)? as usize)
    }

    #[inline]
    fn add_or_delete(&mut self, at: At, out: &mut Buffer) -> usize {
        let share = self.securities.list[at.security].live_share_q32;
        let target = ((u128::from(self.target) * u128::from(share) + (1 << 31)) >> 32) as i64;
        let missing = target - self.resting.count(at.security) as i64;
        let chance = if self.target == 0 {
            ADD_CHANCE_MIN
        } else {
            let width = RETURN_ORDERS + target / RETURN_ORDERS_PER_TARGET;
            let even = ADD_CHANCE_EVEN;
            (even + missing * even / width).clamp(ADD_CHANCE_MIN, 2 * even - ADD_CHANCE_MIN)
        };
        let is_add = (self.rng.next() >> 48) < chance.cast_unsigned();
        if (!is_add || self.resting.is_full())
            && let Some(handle) = self.pick(at.security)
        {
            let order = self.resting.remove(at.security, handle);
            return put_message!(out, at, OrderDelete(order.id));
        }
        if self.resting.is_full() { self.trade_hidden(at, out) } else { self.add(at, out) }
    }

    fn add(&mut self, at: At, out: &mut Buffer) -> usize {
        let choice = self.rng.next();
        let side = Side::BOTH[(choice & 1) as usize];
        let price = self.passive_price(at.security, side);
        let shares = qty(&mut self.rng);
        let id = self.next_ref();
        self.resting.add(at.security, id, side, price, Qty(shares));
        let stock = self.securities.list[at.security].stock;
        let (price, shares) = (wire_price(price), shares as u32);
        if upper_below(choice, NAMED_ONE_IN) == 0 {
            let mpid = mpid(choice >> 1 & 0xffff);
            return put_message!(out, at, AddOrderMpid(id, side, shares, stock, price, mpid));
        }
        put_message!(out, at, AddOrder(id, side, shares, stock, price))
    }

    fn passive_price(&mut self, security: usize, side: Side) -> Price {
        let tick = self.securities.list[security].passive_tick(side, &mut self.rng);
        self.uncrossed(security, side, Price(tick * TICK))
    }

    /// Returns `price`, or the best price that does not cross or lock the other side.
    #[inline]
    fn uncrossed(&self, security: usize, side: Side, price: Price) -> Price {
        match (side, self.resting.best(security, side.opposite())) {
            (Side::Buy, Some(ask)) => Price(price.0.min(ask.0 - TICK)),
            (Side::Sell, Some(bid)) => Price(price.0.max(bid.0 + TICK)),
            (_, None) => price,
        }
    }

    fn next_ref(&mut self) -> OrderId {
        self.ref_count += 1;
        // Most references are adjacent multiples. Skipped ones belong to hidden or immediate orders.
        let choice = self.rng.next();
        let skipped = if choice & 7 < 5 { 0 } else { 1 + upper_below(choice, 6) };
        self.last_ref += REF_STEP * (1 + skipped);
        OrderId(self.last_ref)
    }

    fn replace(&mut self, at: At, out: &mut Buffer) -> Option<usize> {
        let choice = self.rng.next();
        let chased = if choice & 0x10 == 0 { self.chased(at.security) } else { None };
        let handle = chased.or_else(|| self.pick(at.security))?;
        let old = self.resting.remove(at.security, handle);
        let price = if choice & 1 == 0 {
            self.passive_price(at.security, old.side)
        } else {
            let ticks = 1 + (power_law(&mut self.rng, 1) % MOVE_TICKS_MAX) as i64;
            let moved = old.price.0 / TICK + if choice & 2 == 0 { ticks } else { -ticks };
            let front = self.securities.list[at.security].front_tick();
            // Limits long chains of replacements: the price must leave space for a lower bid above zero.
            let tick = moved.clamp(front / 4, front * 4);
            self.uncrossed(at.security, old.side, Price(tick * TICK))
        };
        let shares = if choice & 0x0c == 0 { qty(&mut self.rng) } else { old.qty.0 };
        let id = self.next_ref();
        let handle = self.resting.add(at.security, id, old.side, price, Qty(shares));
        self.last_replaced[at.security] = Some((handle, id));
        let (shares, price) = (shares as u32, wire_price(price));
        Some(put_message!(out, at, OrderReplace(old.id, id, shares, price)))
    }

    /// The security's latest replacement order, if it still rests. Its owner follows the market, so replaces
    /// it again.
    fn chased(&self, security: usize) -> Option<OrderHandle> {
        let (handle, id) = self.last_replaced[security]?;
        self.resting.rests(handle, id).then_some(handle)
    }

    fn cancel(&mut self, at: At, out: &mut Buffer) -> Option<usize> {
        let handle = self.pick(at.security)?;
        let order = self.resting.order(handle);
        let canceled = 1 + self.rng.below(order.qty.0.checked_sub(2)? + 1);
        self.resting.reduce(handle, Qty(canceled));
        Some(put_message!(out, at, OrderCancel(order.id, canceled as u32)))
    }

    /// Returns a side with orders, preferably one that the reference price has passed, and its front order.
    fn side_that_trades(&mut self, security: usize) -> Option<(Side, OrderHandle)> {
        let random_side = Side::BOTH[(self.rng.next() & 1) as usize];
        let first = self.stale_side(security).unwrap_or(random_side);
        [first, first.opposite()].into_iter().find_map(|it| Some((it, self.resting.front(security, it)?)))
    }

    fn begin_sweep(&mut self, at: At, out: &mut Buffer) -> Option<usize> {
        let (side, front) = self.side_that_trades(at.security)?;
        Some(self.execute(at, front, side, out))
    }

    fn execute(&mut self, at: At, front: OrderHandle, side: Side, out: &mut Buffer) -> usize {
        let (id, executed) = self.take(at.security, front);
        if self.rng.below(8) < SWEEP_IN_EIGHT {
            self.sweep = Some((at, side));
        }
        let match_id = self.next_match();
        put_message!(out, at, OrderExecuted(id, executed, match_id))
    }

    /// Executes the order `front`, usually whole. Returns its id and the executed quantity.
    fn take(&mut self, security: usize, front: OrderHandle) -> (OrderId, u32) {
        let order = self.resting.order(front);
        let is_partial = order.qty.0 > 1 && self.rng.below(PARTIAL_ONE_IN) == 0;
        let executed = if is_partial { 1 + self.rng.below(order.qty.0 - 1) } else { order.qty.0 };
        if is_partial {
            self.resting.reduce(front, Qty(executed));
        } else {
            self.resting.remove(security, front);
        }
        self.has_traded = true;
        (order.id, executed as u32)
    }

    /// Executes an order that was displayed at a less aggressive price than its limit.
    fn execute_with_price(&mut self, at: At, out: &mut Buffer) -> Option<usize> {
        let (side, front) = self.side_that_trades(at.security)?;
        let price = self.resting.order(front).price;
        let opposite = self.resting.best(at.security, side.opposite()).unwrap_or(price);
        let (id, executed) = self.take(at.security, front);
        let is_printable = if self.rng.below(UNPRINTED_ONE_IN) == 0 { YesNo::NO } else { YesNo::YES };
        let match_id = self.next_match();
        let price = wire_price(Price(i64::midpoint(price.0, opposite.0)));
        Some(put_message!(out, at, OrderExecutedWithPrice(id, executed, match_id, is_printable, price)))
    }

    /// Trades against a hidden order between the best prices.
    fn trade_hidden(&mut self, at: At, out: &mut Buffer) -> usize {
        let reference = self.securities.list[at.security].reference_price();
        let best = |side| self.resting.best(at.security, side).unwrap_or(reference).0;
        let price = wire_price(Price(i64::midpoint(best(Side::Buy), best(Side::Sell))));
        let shares = qty(&mut self.rng) as u32;
        let match_id = self.next_match();
        self.has_traded = true;
        let stock = self.securities.list[at.security].stock;
        put_message!(out, at, NonCrossTrade(OrderId(0), BuySell::BUY, shares, stock, price, match_id))
    }

    /// Writes the imbalance of the next security in turn, and returns its length.
    fn imbalance(&mut self, ts: Nanos, out: &mut Buffer) -> usize {
        self.imbalances.left = self.imbalances.left.saturating_sub(1);
        let security = self.imbalances.next;
        self.imbalances.next = (security + 1) % self.securities.list.len();
        let is_early = self.schedule.session() == Session::PreMarket;
        let cross_type = if is_early { CrossType::OPENING } else { CrossType::CLOSING };
        imbalance(At { ts, security }, &self.securities.list[security], cross_type, &mut self.rng, out)
    }
}

/// Maximum number of resting orders: the target plus 10%, plus an allowance for small targets.
fn orders_max(securities: u16, live: u32) -> u32 {
    live + live / 10 + 8 * u32::from(securities)
}

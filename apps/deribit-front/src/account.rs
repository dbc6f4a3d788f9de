//! One account: its orders, trades, positions and money, derived from the log.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use tickpath_deribit::codes::{CancelReason, OrderState, OrderType};
use tickpath_deribit::credits::{CreditPlan, CreditPool, Credits};
use tickpath_derivatives::{FundingMeter, Money, Position, Style};
use tickpath_types::{
    CancelReason as EngineReason, EnterOrder, Liquidity, MatchId, Nanos, OrderEvent, OrderEventKind, Price,
    Qty, SelfTradePrevention, SessionId, Side,
};

use crate::config::AccountSettings;
use crate::front::{Guard, Handed};
use crate::ledger::Ledger;
use crate::listing::Listing;
use crate::market::{Market, Trade};
use crate::order::{Extra, Order, Terms, UserTrade};
use crate::pending::{Pending, ReplyTo, Work};

/// Number of closed orders below which each one is searched for separately.
const FEW_ORDERS: usize = 16;

/// Maximum number of closed orders kept; the oldest is dropped first.
const CLOSED_MAX: usize = 10_000;
/// Maximum number of given-up requests kept that the log has not confirmed; the oldest is dropped first.
const LATE_MAX: usize = 1_024;
/// Maximum number of trades kept; the oldest is dropped first.
const TRADES_MAX: usize = 20_000;

/// An account of the front.
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) session: SessionId,
    /// Balance of each currency, excluding unsettled profit of futures.
    pub(crate) balances: BTreeMap<String, Money>,
    /// Fees paid, by currency; negative for net rebates.
    pub(crate) fees: BTreeMap<String, Money>,
    /// Keyed by the place of the listing.
    pub(crate) positions: BTreeMap<usize, Position>,
    /// Options only: dollar value of the open quantity when it was opened, at least 0.
    pub(crate) usd_values: BTreeMap<usize, Money>,
    pub(crate) open: BTreeMap<u64, Order>,
    /// Untriggered orders, by number.
    pub(crate) waiting: BTreeMap<u64, Order>,
    /// Numbers of the labels used by the account.
    pub(crate) labels: HashSet<u32>,
    /// Triggered orders sent to the engine and not yet in the log.
    pub(crate) handed: BTreeMap<u64, Handed>,
    /// Links of orders that were in flight when the venue stopped, by engine number.
    pub(crate) links_asked: BTreeMap<u32, Box<Extra>>,
    /// Orders entered again, by their new engine number.
    pub(crate) again: BTreeMap<u32, u64>,
    /// Untriggered orders whose trigger price was reached; they are entered at the next price update.
    pub(crate) overdue: BTreeSet<u64>,
    pub(crate) closed: VecDeque<Order>,
    pub(crate) trades: VecDeque<UserTrade>,
    pub(crate) ledger: Ledger,
    /// Self-trade prevention mode, as recorded in the log.
    pub(crate) self_trading: SelfTradePrevention,
    by_ref: HashMap<u32, u64>,
    /// Next engine number.
    pub(crate) next_ref: u64,
    /// Requests sent to the engine and not yet in the log, oldest first.
    pub(crate) pending: VecDeque<Pending>,
    /// Number of in-flight cancels, by order number.
    cancelling: HashMap<u64, u32>,
    /// Requests given up after their client was notified; the log may still confirm them. Oldest first.
    pub(crate) late: VecDeque<Pending>,
    /// Whether cancel on disconnect is enabled for new connections.
    pub(crate) cancels_on_disconnect: bool,
    /// Market maker protection.
    pub(crate) guards: Vec<Guard>,
    /// Clients waiting for the log to confirm a self-trade prevention mode, and that mode; oldest first.
    pub(crate) mode_replies: VecDeque<(ReplyTo, SelfTradePrevention)>,
    /// End of the quote freeze, in milliseconds since 1970; quotes are rejected until then.
    pub(crate) quotes_frozen_ms: u64,
    matching: Credits,
    cancel_all: Credits,
    quotes: Credits,
    non_matching: Credits,
    get_instruments: Credits,
    subscribe: Credits,
    transaction_log: Credits,
}

/// Changes of one account by one command.
#[derive(Default)]
pub(crate) struct Changes {
    /// Numbers of the changed orders, without duplicates.
    pub(crate) orders: Vec<u64>,
    /// Trades, oldest first.
    pub(crate) trades: Vec<UserTrade>,
    /// Engine reject reason of the account's own request.
    pub(crate) rejected: Option<tickpath_types::RejectReason>,
    /// Number of the post-only order that would have taken liquidity.
    pub(crate) post_only: Option<u64>,
    /// Number of the order that would have traded with another order of the account.
    pub(crate) overlap: Option<u64>,
    /// Places of the listings whose position changed without a trade.
    pub(crate) positions: Vec<usize>,
}

/// Inputs for applying the events of a command.
pub(crate) struct Context<'a> {
    pub(crate) listings: &'a [Listing],
    /// Place of the listing, by instrument number.
    pub(crate) by_instrument: &'a HashMap<u16, usize>,
    /// Markets, by the place of the listing.
    pub(crate) markets: &'a [Market],
    /// Trades of the command.
    pub(crate) trades: &'a HashMap<MatchId, Trade>,
    pub(crate) now_ms: u64,
    /// Reason recorded for orders cancelled by their user.
    pub(crate) user_reason: CancelReason,
    /// Reason recorded for orders cancelled by the venue.
    pub(crate) venue_reason: CancelReason,
    /// Connection that sent the request.
    pub(crate) connection: Option<u64>,
}

impl Account {
    pub(crate) fn new(settings: &AccountSettings, (rate, burst): (u64, u64), now: Nanos) -> Account {
        let plan = |pool: CreditPool| Credits::new(pool.plan(CreditPlan::rate(rate, burst)), now);
        Account {
            name: settings.user.clone(),
            session: settings.session,
            balances: settings.balances.clone(),
            fees: BTreeMap::new(),
            positions: BTreeMap::new(),
            usd_values: BTreeMap::new(),
            open: BTreeMap::new(),
            waiting: BTreeMap::new(),
            labels: HashSet::new(),
            handed: BTreeMap::new(),
            links_asked: BTreeMap::new(),
            again: BTreeMap::new(),
            overdue: BTreeSet::new(),
            closed: VecDeque::new(),
            trades: VecDeque::new(),
            ledger: Ledger::default(),
            self_trading: SelfTradePrevention::None,
            by_ref: HashMap::new(),
            next_ref: 1,
            pending: VecDeque::new(),
            cancelling: HashMap::new(),
            late: VecDeque::new(),
            cancels_on_disconnect: false,
            guards: Vec::new(),
            mode_replies: VecDeque::new(),
            quotes_frozen_ms: 0,
            matching: plan(CreditPool::Matching),
            cancel_all: plan(CreditPool::CancelAll),
            quotes: plan(CreditPool::Quotes),
            non_matching: plan(CreditPool::NonMatching),
            get_instruments: plan(CreditPool::GetInstruments),
            subscribe: plan(CreditPool::Subscribe),
            transaction_log: plan(CreditPool::TransactionLog),
        }
    }

    pub(crate) fn note_label(&mut self, number: u32) {
        if number != 0 {
            self.labels.insert(number);
        }
    }

    /// Returns the credits that a request of the pool consumes.
    pub(crate) const fn credits(&mut self, pool: CreditPool) -> &mut Credits {
        match pool {
            CreditPool::NonMatching => &mut self.non_matching,
            CreditPool::GetInstruments => &mut self.get_instruments,
            CreditPool::Subscribe => &mut self.subscribe,
            CreditPool::TransactionLog => &mut self.transaction_log,
            CreditPool::Matching => &mut self.matching,
            CreditPool::CancelAll => &mut self.cancel_all,
            CreditPool::Quotes => &mut self.quotes,
        }
    }

    /// Returns an open, untriggered or recently closed order.
    pub(crate) fn order(&self, number: u64) -> Option<&Order> {
        let live = self.open.get(&number).or_else(|| self.waiting.get(&number));
        live.or_else(|| self.closed.iter().rev().find(|order| order.number == number))
    }

    pub(crate) fn order_mut(&mut self, number: u64) -> Option<&mut Order> {
        if self.open.contains_key(&number) {
            return self.open.get_mut(&number);
        }
        let waiting = self.waiting.get_mut(&number);
        waiting.or_else(|| self.closed.iter_mut().rev().find(|order| order.number == number))
    }

    pub(crate) fn balance(&self, currency: &str) -> Money {
        self.balances.get(currency).copied().unwrap_or_default()
    }

    pub(crate) fn position(&self, listing: usize) -> Position {
        self.positions.get(&listing).copied().unwrap_or_default()
    }

    /// Applies one event of the engine.
    pub(crate) fn apply(&mut self, event: &OrderEvent, context: &Context<'_>, changes: &mut Changes) {
        match event.kind {
            OrderEventKind::Accepted { order, .. } => self.accept(event.command.0, &order, context, changes),
            OrderEventKind::Replaced { order, orig_user_ref, .. } => {
                self.replace(orig_user_ref.0, &order, context, changes);
            }
            OrderEventKind::Canceled { user_ref, decrement, reason } => {
                self.reduce(user_ref.0, decrement, Some(reason), context, changes);
            }
            OrderEventKind::SelfTradePrevented { user_ref, decrement, .. } => {
                changes.overlap = self.by_ref.get(&user_ref.0).copied();
                self.reduce(user_ref.0, decrement, None, context, changes);
            }
            OrderEventKind::Modified { user_ref, qty, .. } => {
                if let Some(order) = self.of_ref(user_ref.0) {
                    order.qty = qty;
                    changes.note(order.number);
                }
            }
            OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id } => {
                let is_maker = !matches!(liquidity, Liquidity::Removed);
                self.execute(user_ref.0, (qty, price), is_maker, match_id, context, changes);
            }
            OrderEventKind::Rejected { reason, .. } => changes.rejected = Some(reason),
            _ => {}
        }
    }

    fn of_ref(&mut self, user_ref: u32) -> Option<&mut Order> {
        self.open.get_mut(self.by_ref.get(&user_ref)?)
    }

    fn accept(&mut self, number: u64, order: &EnterOrder, context: &Context<'_>, changes: &mut Changes) {
        let Some(listing) = context.by_instrument.get(&order.instrument.0) else { return };
        let before = self.again.remove(&order.user_ref.0).and_then(|number| self.take_closed(number));
        let number = before.as_ref().map_or(number, |order| order.number);
        self.by_ref.insert(order.user_ref.0, number);
        self.next_ref = self.next_ref.max(u64::from(order.user_ref.0) + 1);
        if let Some(before) = before {
            return self.reopen(before, order, context, changes);
        }
        self.note_label(Terms::decode(&order.client_order_id).label);
        self.open.insert(
            number,
            Order {
                number,
                listing: *listing,
                side: order.side,
                terms: Terms::decode(&order.client_order_id),
                price: order.price,
                qty: order.qty,
                filled: Qty::ZERO,
                filled_value: Money::ZERO,
                created_ms: context.now_ms,
                updated_ms: context.now_ms,
                is_replaced: false,
                state: OrderState::Open,
                cancel_reason: None,
                user_ref: order.user_ref.0,
                connection: context.connection,
                display: order.special.map(|special| special.display_qty).filter(|qty| !qty.is_zero()),
                trigger: None,
                extra: None,
            },
        );
        changes.note(number);
    }

    /// Reopens an order that was removed from the engine, with its new parameters.
    fn reopen(&mut self, before: Order, order: &EnterOrder, context: &Context<'_>, changes: &mut Changes) {
        let number = before.number;
        let again = Order {
            terms: Terms::decode(&order.client_order_id),
            price: order.price,
            qty: Qty(before.filled.0 + order.qty.0),
            updated_ms: context.now_ms,
            is_replaced: true,
            state: OrderState::Open,
            cancel_reason: None,
            user_ref: order.user_ref.0,
            display: order.special.map(|special| special.display_qty).filter(|qty| !qty.is_zero()),
            ..before
        };
        self.open.insert(number, again);
        changes.note(number);
    }

    /// Removes an order from the closed orders and returns it.
    fn take_closed(&mut self, number: u64) -> Option<Order> {
        let place = self.closed.iter().rposition(|order| order.number == number)?;
        self.closed.remove(place)
    }

    /// Drops the state kept for an engine number that never appears in the log.
    pub(crate) fn forget_asked(&mut self, user_ref: u32) {
        self.links_asked.remove(&user_ref);
        self.again.remove(&user_ref);
    }

    fn replace(&mut self, before: u32, order: &EnterOrder, context: &Context<'_>, changes: &mut Changes) {
        let Some(number) = self.by_ref.remove(&before) else { return };
        self.by_ref.insert(order.user_ref.0, number);
        self.next_ref = self.next_ref.max(u64::from(order.user_ref.0) + 1);
        let Some(known) = self.open.get_mut(&number) else { return };
        known.terms = Terms::decode(&order.client_order_id);
        (known.price, known.qty, known.user_ref) = (order.price, order.qty, order.user_ref.0);
        known.display = order.special.map(|special| special.display_qty).filter(|qty| !qty.is_zero());
        (known.is_replaced, known.updated_ms) = (true, context.now_ms);
        changes.note(number);
    }

    /// Reduces an order without a trade and closes it when nothing is left.
    fn reduce(
        &mut self,
        user_ref: u32,
        decrement: Qty,
        reason: Option<EngineReason>,
        context: &Context<'_>,
        changes: &mut Changes,
    ) {
        let Some(order) = self.of_ref(user_ref) else { return };
        order.updated_ms = context.now_ms;
        changes.note(order.number);
        if decrement < order.leaves() {
            order.qty.0 -= decrement.0;
            order.is_replaced = true;
            return;
        }
        order.state = OrderState::Cancelled;
        order.cancel_reason = match reason {
            Some(EngineReason::User | EngineReason::ImmediateOrCancel) => Some(context.user_reason),
            Some(EngineReason::PostOnly) => Some(CancelReason::EditPostOnlyReject),
            Some(EngineReason::EndOfDay) => Some(CancelReason::Settlement),
            Some(_) => Some(context.venue_reason),
            None => None,
        };
        let number = order.number;
        if reason == Some(EngineReason::PostOnly) {
            changes.post_only = Some(number);
        }
        self.close(number);
    }

    fn execute(
        &mut self,
        user_ref: u32,
        (qty, price): (Qty, Price),
        is_maker: bool,
        match_id: MatchId,
        context: &Context<'_>,
        changes: &mut Changes,
    ) {
        let Some(order) = self.of_ref(user_ref) else { return };
        let listing = &context.listings[order.listing];
        order.filled.0 += qty.0;
        order.filled_value += listing.contract.value(qty, price);
        order.updated_ms = context.now_ms;
        if order.leaves().is_zero() {
            order.state = OrderState::Filled;
        }
        let (number, place, side, terms, state) =
            (order.number, order.listing, order.side, order.terms, order.state);
        let quote = order.extra.as_ref().and_then(|extra| extra.quote());
        let public = context.trades.get(&match_id).copied().unwrap_or(Trade {
            match_id,
            seq: 0,
            at_ms: context.now_ms,
            direction: if is_maker { side.opposite() } else { side },
            price,
            qty,
            tick_direction: 1,
            index: Money::ZERO,
            mark: price,
            liquidation: None,
        });
        let fee = match terms.order_type == OrderType::Liquidation && !is_maker {
            true => {
                let value = listing.contract.value(qty, price);
                listing.contract.fee_at(listing.liquidation_fee_ppm, qty, value, public.index)
            }
            false => listing.contract.fee(qty, price, is_maker, public.index),
        };
        let meter = &context.markets[place].funding.meter;
        let before = self.position(place).size;
        let (profit, changed) = self.settle(place, listing, side, (qty, price), fee, meter);
        if listing.contract.is_option() {
            let value = match listing.contract.style {
                Style::InverseOption => {
                    listing.contract.value(qty, price).scaled(public.index.0, Money::ONE.0)
                }
                _ => listing.contract.value(qty, price),
            };
            self.note_usd_value(place, before, (side, qty), value);
        }
        let trade = UserTrade {
            listing: place,
            order: number,
            public,
            side,
            is_maker,
            fee,
            profit,
            terms,
            state,
            changed,
            balance: self.balance(&listing.settlement),
            base_balance: self.balance(&listing.base),
            position: self.position(place).size,
            quote,
        };
        changes.note(number);
        changes.trades.push(trade.clone());
        if self.trades.len() == TRADES_MAX {
            self.trades.pop_front();
        }
        self.trades.push_back(trade);
        if state == OrderState::Filled {
            self.close(number);
        }
    }

    /// Applies a trade to the position and the balances. Returns the profit and the change of the balance.
    /// The profit of a future is paid at settlement.
    fn settle(
        &mut self,
        place: usize,
        listing: &Listing,
        side: Side,
        (qty, price): (Qty, Price),
        fee: Money,
        meter: &FundingMeter,
    ) -> (Money, Money) {
        let contract = &listing.contract;
        let (value, sign) = (contract.value(qty, price), i128::from(side.sign()));
        let mut profit = Money::ZERO;
        if contract.style == Style::Spot {
            *self.balances.entry(listing.base.clone()).or_default() += Money(sign * contract.amount(qty).0);
        } else {
            let position = self.positions.entry(place).or_default();
            profit = position.trade_funded(contract, side, qty, price, meter);
        }
        let changed = if listing.is_future() { -fee } else { Money(-sign * value.0) - fee };
        *self.balances.entry(listing.settlement.clone()).or_default() += changed;
        *self.fees.entry(listing.settlement.clone()).or_default() += fee;
        (profit, changed)
    }

    /// Updates the cost basis of an option position, in dollars; a closing trade reduces it pro rata.
    fn note_usd_value(&mut self, place: usize, before: i64, (side, qty): (Side, Qty), value: Money) {
        let known = self.usd_values.entry(place).or_default();
        let is_closing = before != 0 && (before > 0) != (side == Side::Buy);
        let closed = if is_closing { qty.0.min(before.unsigned_abs()) } else { 0 };
        if closed > 0 {
            *known -= known.scaled(closed.into(), before.unsigned_abs().into());
        }
        *known += value.scaled((qty.0 - closed).into(), qty.0.max(1).into());
    }

    fn close(&mut self, number: u64) {
        let Some(order) = self.open.remove(&number) else { return };
        self.by_ref.remove(&order.user_ref);
        self.keep_closed(order);
    }

    pub(crate) fn keep_closed(&mut self, order: Order) {
        if self.closed.len() == CLOSED_MAX {
            self.closed.pop_front();
        }
        self.closed.push_back(order);
    }

    /// Returns open and recently closed orders in the order of `numbers`, in one pass over the closed ones.
    pub(crate) fn orders(&self, numbers: &[u64]) -> Vec<&Order> {
        if numbers.len() < FEW_ORDERS {
            return numbers.iter().filter_map(|number| self.order(*number)).collect();
        }
        let closed: HashMap<u64, &Order> = self.closed.iter().map(|order| (order.number, order)).collect();
        let live = |number: &u64| self.open.get(number).or_else(|| self.waiting.get(number));
        numbers.iter().filter_map(|number| live(number).or_else(|| closed.get(number).copied())).collect()
    }

    /// Returns true while a cancel of the order is in flight.
    pub(crate) fn is_cancelling(&self, order: u64) -> bool {
        self.cancelling.contains_key(&order)
    }

    /// Adds an in-flight request.
    pub(crate) fn add_pending(&mut self, pending: Pending) {
        if let Work::Cancel { number, .. } = pending.work {
            *self.cancelling.entry(number).or_default() += 1;
        }
        self.pending.push_back(pending);
    }

    /// Removes an in-flight request and returns it.
    pub(crate) fn take_pending(&mut self, place: usize) -> Option<Pending> {
        let pending = self.pending.remove(place)?;
        if let Work::Cancel { number, .. } = pending.work
            && let Some(count) = self.cancelling.get_mut(&number)
        {
            *count -= 1;
            if *count == 0 {
                self.cancelling.remove(&number);
            }
        }
        Some(pending)
    }

    /// Keeps a given-up request. A late confirmation still needs the connection, the links and the texts of
    /// the request. No reply is sent any more.
    pub(crate) fn keep_late(&mut self, pending: Pending) {
        if self.late.len() == LATE_MAX {
            self.late.pop_front();
        }
        self.late.push_back(Pending { reply: None, group: None, ..pending });
    }

    /// Removes a closed order that must not be reported.
    pub(crate) fn forget(&mut self, number: u64) {
        self.closed.retain(|order| order.number != number);
    }

    /// Ends the trading day: the engine restarts its numbering.
    pub(crate) fn begin_day(&mut self) {
        self.next_ref = 1;
        self.by_ref.clear();
        self.late.clear();
        self.links_asked.clear();
        self.again.clear();
    }
}

impl Changes {
    fn note(&mut self, number: u64) {
        if !self.orders.contains(&number) {
            self.orders.push(number);
        }
    }

    /// Returns the order of a request that was cancelled without a trade by self-trade prevention.
    pub(crate) fn refused_overlap(&self) -> Option<u64> {
        self.orders.first().copied().filter(|order| self.overlap == Some(*order) && self.trades.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.orders.is_empty() && self.trades.is_empty() && self.positions.is_empty()
    }
}

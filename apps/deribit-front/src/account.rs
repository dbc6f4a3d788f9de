//! One account: its orders, trades, positions and money, as they follow from the log.

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

/// Below so many closed orders are looked for one by one.
const FEW_ORDERS: usize = 16;

/// Closed orders that are kept; the oldest goes first.
const CLOSED_MAX: usize = 10_000;
/// Requests without the log's word that are remembered after they were given up; the oldest goes first.
const LATE_MAX: usize = 1_024;
/// Trades that are kept; the oldest goes first.
const TRADES_MAX: usize = 20_000;

/// An account of the front.
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) session: SessionId,
    /// Of each currency, without what futures won since the last settlement.
    pub(crate) balances: BTreeMap<String, Money>,
    /// What was paid, by currency; below 0 what was received.
    pub(crate) fees: BTreeMap<String, Money>,
    /// By the place of the listing.
    pub(crate) positions: BTreeMap<usize, Position>,
    /// Of options: what the open quantity was worth in dollars when it was opened, never below 0.
    pub(crate) usd_values: BTreeMap<usize, Money>,
    pub(crate) open: BTreeMap<u64, Order>,
    /// Orders that wait for a price.
    pub(crate) waiting: BTreeMap<u64, Order>,
    /// Numbers of the labels that it has used.
    pub(crate) labels: HashSet<u32>,
    /// Orders that waited and were handed to the engine, until the log has them.
    pub(crate) handed: BTreeMap<u64, Handed>,
    /// Links of orders that were on their way when the venue stopped, by the engine's numbers.
    pub(crate) links_asked: BTreeMap<u32, Box<Extra>>,
    /// Orders that are entered again, by the engine's new numbers.
    pub(crate) again: BTreeMap<u32, u64>,
    /// Orders that wait though their price has come: they are entered with the next prices.
    pub(crate) overdue: BTreeSet<u64>,
    pub(crate) closed: VecDeque<Order>,
    pub(crate) trades: VecDeque<UserTrade>,
    pub(crate) ledger: Ledger,
    /// What becomes of orders that would trade with the account's own, as the log says.
    pub(crate) self_trading: SelfTradePrevention,
    by_ref: HashMap<u32, u64>,
    /// The engine's next number.
    pub(crate) next_ref: u64,
    /// What was sent to the engine and is not in the log yet, oldest first.
    pub(crate) pending: VecDeque<Pending>,
    /// Cancels among them, by the orders that they are about.
    cancelling: HashMap<u64, u32>,
    /// The same given up, as its client was told: the log may still bring it. Oldest first.
    pub(crate) late: VecDeque<Pending>,
    /// Whether new connections begin with cancel on disconnect.
    pub(crate) cancels_on_disconnect: bool,
    /// Market maker protection.
    pub(crate) guards: Vec<Guard>,
    /// Who is answered once the log says what becomes of trades with oneself, and what was asked, oldest first.
    pub(crate) mode_replies: VecDeque<(ReplyTo, SelfTradePrevention)>,
    /// Until when no quote is taken, in milliseconds since 1970.
    pub(crate) quotes_frozen_ms: u64,
    matching: Credits,
    cancel_all: Credits,
    quotes: Credits,
    non_matching: Credits,
    get_instruments: Credits,
    subscribe: Credits,
    transaction_log: Credits,
}

/// What one command did to an account.
#[derive(Default)]
pub(crate) struct Changes {
    /// Numbers of orders, each once.
    pub(crate) orders: Vec<u64>,
    /// Trades, oldest first.
    pub(crate) trades: Vec<UserTrade>,
    /// The engine's reason, where the account's own request was refused.
    pub(crate) rejected: Option<tickpath_types::RejectReason>,
    /// An order that would have taken and must not.
    pub(crate) post_only: Option<u64>,
    /// An order that would have traded with one of the same account.
    pub(crate) overlap: Option<u64>,
    /// Instruments whose position changed without a trade.
    pub(crate) positions: Vec<usize>,
}

/// What is known when events of a command are taken.
pub(crate) struct Context<'a> {
    pub(crate) listings: &'a [Listing],
    /// Place of the listing of an instrument.
    pub(crate) by_instrument: &'a HashMap<u16, usize>,
    /// By the place of the listing.
    pub(crate) markets: &'a [Market],
    /// Trades of the command.
    pub(crate) trades: &'a HashMap<MatchId, Trade>,
    pub(crate) now_ms: u64,
    /// Why orders are cancelled that their user cancels.
    pub(crate) user_reason: CancelReason,
    /// Why orders are cancelled that the venue cancels.
    pub(crate) venue_reason: CancelReason,
    /// The connection whose request it is.
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

    /// The credits that a request takes.
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

    /// An order that is open, or was not long ago.
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

    /// Takes one answer of the engine.
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

    /// An order that the engine let go is there again, as it was changed.
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

    /// Takes an order away from those that are over.
    fn take_closed(&mut self, number: u64) -> Option<Order> {
        let place = self.closed.iter().rposition(|order| order.number == number)?;
        self.closed.remove(place)
    }

    /// What was to come under a number of the engine's does not come.
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

    /// Quantity left an order without trading; with the last of it the order is over.
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

    /// Takes a trade into the position and the balances; returns its profit, and what it changed of the balance. The profit of
    /// a future is paid at settlement.
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

    /// Takes a trade of an option that was worth so many dollars.
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

    /// Orders that are open, or were not long ago, in the order of their numbers here: all of them are looked for at once.
    pub(crate) fn orders(&self, numbers: &[u64]) -> Vec<&Order> {
        if numbers.len() < FEW_ORDERS {
            return numbers.iter().filter_map(|number| self.order(*number)).collect();
        }
        let closed: HashMap<u64, &Order> = self.closed.iter().map(|order| (order.number, order)).collect();
        let live = |number: &u64| self.open.get(number).or_else(|| self.waiting.get(number));
        numbers.iter().filter_map(|number| live(number).or_else(|| closed.get(number).copied())).collect()
    }

    /// True while a cancel of the order is on its way.
    pub(crate) fn is_cancelling(&self, order: u64) -> bool {
        self.cancelling.contains_key(&order)
    }

    /// A request is on its way.
    pub(crate) fn add_pending(&mut self, pending: Pending) {
        if let Work::Cancel { number, .. } = pending.work {
            *self.cancelling.entry(number).or_default() += 1;
        }
        self.pending.push_back(pending);
    }

    /// Takes a request away that is on its way no more.
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

    /// Keeps a request that is given up: what comes of it later has the connection, the links and the texts that were asked
    /// for. Nobody is answered any more.
    pub(crate) fn keep_late(&mut self, pending: Pending) {
        if self.late.len() == LATE_MAX {
            self.late.pop_front();
        }
        self.late.push_back(Pending { reply: None, group: None, ..pending });
    }

    /// An order that was never meant to be told of.
    pub(crate) fn forget(&mut self, number: u64) {
        self.closed.retain(|order| order.number != number);
    }

    /// The day ended: the engine counts anew.
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

    /// The order of a request of which nothing was done, because it would have traded with one of the same account.
    pub(crate) fn refused_overlap(&self) -> Option<u64> {
        self.orders.first().copied().filter(|order| self.overlap == Some(*order) && self.trades.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.orders.is_empty() && self.trades.is_empty() && self.positions.is_empty()
    }
}

//! The user's orders, trades and positions, derived from the drop copies.

use std::collections::{BTreeMap, HashMap, VecDeque};

use tickpath_nasdaq::drop_copy::DropCopy;
use tickpath_nasdaq::ouch50::{Answer, OrderAnswer, decode_event};
use tickpath_trading::{Money, Position};
use tickpath_types::{
    CancelReason, ClientOrderId, EnterOrder, InstrumentId, InstrumentTable, Liquidity, MatchId, Nanos,
    OrderEventKind, OrderState, Price, Qty, RejectReason, Side,
};

use crate::link::push_bounded;

/// Upper bound of remembered refusals; new ones displace the oldest.
const REFUSALS_MAX: usize = 1_024;
/// Number of ended orders that are kept; above it by an eighth, the oldest are removed. Open orders are
/// always kept.
const CLOSED_MAX: usize = 16_384;
/// Upper bound of remembered executions; new ones displace the oldest. Positions are not affected.
const TRADES_MAX: usize = 65_536;
/// Upper bound of changes that wait to be published; new ones displace the oldest.
const NEWS_MAX: usize = 4_096;

/// The reasons why the copies cannot be trusted, with remedies.
const COPIES_MISSING: &str = "drop copies are missing: orders and positions are not known; connect again, and tell the venue's operator";
const NOT_NAMED: &str = "drop copies tell of what native.instruments does not name: orders and positions are not known until it does";
const BROKEN_UNKNOWN: &str = "the venue made a trade void that is older than those that are kept: positions are not known; begin a new shell";

/// An order of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnOrder {
    /// The number that it was entered under; it stays the same after replacements.
    pub(super) id: u32,
    /// Its current number.
    pub(super) user_ref: u32,
    /// The current or final order; its quantity includes the executed part.
    pub(super) order: EnterOrder,
    /// The executed quantity.
    pub(super) executed: u64,
    /// The value of the executed quantity.
    pub(super) cost: Money,
    /// The open quantity; 0 for an ended order.
    pub(super) leaves: u64,
    /// True if it was replaced or reduced.
    pub(super) is_changed: bool,
    /// The reason of the last reduction.
    pub(super) cancelled: Option<CancelReason>,
    /// Entry time since midnight.
    pub(super) created: Nanos,
    /// Time of the last change since midnight.
    pub(super) updated: Nanos,
}

impl OwnOrder {
    /// True while the order is open at the venue.
    pub(super) fn is_open(&self) -> bool {
        self.leaves > 0
    }
}

/// An execution of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnTrade {
    /// Its number among the user's trades, from 1.
    pub(super) number: u64,
    /// The order's [`OwnOrder::id`].
    pub(super) id: u32,
    /// The instrument.
    pub(super) instrument: InstrumentId,
    /// The user's side.
    pub(super) side: Side,
    /// The quantity.
    pub(super) qty: Qty,
    /// The price.
    pub(super) price: Price,
    /// Whether the order rested.
    pub(super) liquidity: Liquidity,
    /// The match number, the same for both sides.
    pub(super) match_id: MatchId,
    /// Time since midnight.
    pub(super) ts: Nanos,
    /// True if the venue broke the trade.
    pub(super) is_broken: bool,
}

/// A request that the venue refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The number of the request.
    pub(super) user_ref: u32,
    /// The reason.
    pub(super) reason: RejectReason,
    /// The venue's code.
    pub(super) code: u16,
    /// The client order id of the request.
    pub(super) text: ClientOrderId,
}

/// A change, for the user's channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// An order, by its [`OwnOrder::id`].
    Order(u32),
    /// A trade, by its [`OwnTrade::number`].
    Trade(u64),
}

/// The state of one user, derived from the drop copies.
#[derive(Debug)]
pub(super) struct Account {
    user: String,
    /// Number of copies so far, of all users that the reader receives.
    pub(super) copies: u64,
    /// Sequence number of the user's last message.
    pub(super) number: u64,
    /// The reason why the state cannot be trusted, if any.
    pub(super) incomplete: Option<&'static str>,
    /// Number of messages that could not be decoded.
    pub(super) unreadable: u64,
    orders: BTreeMap<u32, OwnOrder>,
    /// Order ids by the numbers of replacements.
    ids: HashMap<u32, u32>,
    /// Number of ended orders, and whether some were removed.
    closed: usize,
    pub(super) has_forgotten: bool,
    trades: VecDeque<OwnTrade>,
    /// Number of trades, including those no longer remembered.
    pub(super) trade_count: u64,
    positions: BTreeMap<u16, Position>,
    refusals: VecDeque<Refusal>,
    /// The last mass cancel: its number, its time, and the number of cancelled orders.
    mass: Option<(u32, Nanos, u64)>,
    /// The highest number seen in use.
    pub(super) last_ref: u32,
    /// True while old copies are being read, which are not published.
    pub(super) is_catching_up: bool,
    /// Changes to publish, while a channel is subscribed.
    pub(super) news: Option<VecDeque<News>>,
}

impl Account {
    /// Creates the empty state of a user.
    pub(super) fn new(user: &str) -> Account {
        Account {
            user: user.to_owned(),
            copies: 0,
            number: 0,
            incomplete: None,
            unreadable: 0,
            orders: BTreeMap::new(),
            ids: HashMap::new(),
            closed: 0,
            has_forgotten: false,
            trades: VecDeque::new(),
            trade_count: 0,
            positions: BTreeMap::new(),
            refusals: VecDeque::new(),
            mass: None,
            last_ref: 0,
            is_catching_up: true,
            news: None,
        }
    }

    /// Applies a drop copy; copies of other users are skipped.
    pub(super) fn handle_copy(&mut self, copy: &[u8], instruments: &InstrumentTable) {
        self.copies += 1;
        let Ok(copy) = DropCopy::parse(copy) else {
            self.unreadable += 1;
            return;
        };
        if !copy.user.eq_ignore_ascii_case(&self.user) {
            return;
        }
        if copy.number != self.number + 1 {
            self.incomplete = Some(COPIES_MISSING);
        }
        self.number = copy.number;
        match decode_event(copy.message, |symbol| instruments.find(symbol)) {
            Ok(Answer::Order(answer)) => self.handle_answer(&answer),
            Ok(Answer::Other(_)) => {}
            // Mostly an instrument that the instrument file does not contain.
            Err(_) => {
                self.unreadable += 1;
                self.incomplete = Some(NOT_NAMED);
            }
        }
    }

    fn handle_answer(&mut self, answer: &OrderAnswer) {
        let ts = answer.ts;
        self.last_ref = self.last_ref.max(answer.kind.user_ref().0);
        match answer.kind {
            OrderEventKind::Accepted { order, state, .. } => {
                let leaves = if state == OrderState::Dead { 0 } else { order.qty.0 };
                let id = order.user_ref.0;
                let own = OwnOrder {
                    id,
                    user_ref: id,
                    order,
                    executed: 0,
                    cost: Money::ZERO,
                    leaves,
                    is_changed: false,
                    cancelled: None,
                    created: ts,
                    updated: ts,
                };
                self.closed += usize::from(!own.is_open());
                if let Some(before) = self.orders.insert(id, own) {
                    self.closed -= usize::from(!before.is_open());
                }
                self.forget_closed();
                self.tell(News::Order(id));
            }
            OrderEventKind::Replaced { order, orig_user_ref, state, .. } => {
                let Some(id) = self.id_of(orig_user_ref.0) else { return };
                self.ids.insert(order.user_ref.0, id);
                self.change(order.user_ref.0, ts, |own| {
                    let left = order.qty.0.saturating_sub(own.executed);
                    (own.user_ref, own.order, own.is_changed) = (order.user_ref.0, order, true);
                    own.leaves = if state == OrderState::Dead { 0 } else { left };
                });
            }
            OrderEventKind::Canceled { user_ref, decrement, reason } => {
                let was_open = self.order(user_ref.0).is_some_and(OwnOrder::is_open);
                self.change(user_ref.0, ts, |own| own.take_away(decrement, reason));
                let is_open = self.order(user_ref.0).is_some_and(OwnOrder::is_open);
                if let Some((_, at, count)) = &mut self.mass
                    && (*at, was_open, is_open) == (ts, true, false)
                {
                    *count += 1;
                }
            }
            OrderEventKind::SelfTradePrevented { user_ref, decrement, .. } => {
                self.change(user_ref.0, ts, |own| own.take_away(decrement, CancelReason::SelfTrade));
            }
            OrderEventKind::Modified { user_ref, qty, .. } => {
                self.change(user_ref.0, ts, |own| {
                    own.leaves = qty.0.saturating_sub(own.executed);
                    (own.order.qty, own.is_changed) = (qty, true);
                });
            }
            OrderEventKind::Executed { user_ref, qty, price, liquidity, match_id } => {
                self.execute(user_ref.0, ts, (qty, price), liquidity, match_id);
            }
            OrderEventKind::Broken { user_ref, match_id, .. } => self.make_void(user_ref.0, match_id),
            OrderEventKind::Rejected { user_ref, reason, client_order_id } => {
                let code = answer.reject.map_or(0, |code| code.0.get());
                push_bounded(
                    &mut self.refusals,
                    Refusal { user_ref: user_ref.0, reason, code, text: client_order_id },
                    REFUSALS_MAX,
                );
            }
            OrderEventKind::MassCanceled(request) => self.mass = Some((request.user_ref.0, ts, 0)),
            OrderEventKind::Restated { .. }
            | OrderEventKind::Triggered { .. }
            | OrderEventKind::OrderEntrySet(_) => {}
        }
    }

    fn execute(
        &mut self,
        user_ref: u32,
        ts: Nanos,
        (qty, price): (Qty, Price),
        liquidity: Liquidity,
        match_id: MatchId,
    ) {
        self.change(user_ref, ts, |own| {
            own.executed += qty.0;
            own.cost += Money::notional(price, qty);
            own.leaves = own.leaves.saturating_sub(qty.0);
        });
        let Some(own) = self.order(user_ref) else { return };
        let (id, instrument, side) = (own.id, own.order.instrument, own.order.side);
        self.positions.entry(instrument.0).or_default().apply_fill(side, price, qty);
        self.trade_count += 1;
        let number = self.trade_count;
        let trade =
            OwnTrade { number, id, instrument, side, qty, price, liquidity, match_id, ts, is_broken: false };
        push_bounded(&mut self.trades, trade, TRADES_MAX);
        self.tell(News::Trade(number));
    }

    /// Reverses an execution in position and profit; the order stays unchanged.
    fn make_void(&mut self, user_ref: u32, match_id: MatchId) {
        let Some(id) = self.id_of(user_ref) else {
            self.incomplete = Some(BROKEN_UNKNOWN);
            return;
        };
        let is_it = |trade: &&mut OwnTrade| (trade.id, trade.match_id) == (id, match_id) && !trade.is_broken;
        // Match numbers restart each day: take the latest.
        let Some(trade) = self.trades.iter_mut().rev().find(is_it) else {
            self.incomplete = Some(BROKEN_UNKNOWN);
            return;
        };
        trade.is_broken = true;
        let OwnTrade { instrument, side, price, qty, .. } = *trade;
        self.positions.entry(instrument.0).or_default().reverse_fill(side, price, qty);
    }

    fn change(&mut self, user_ref: u32, ts: Nanos, how: impl FnOnce(&mut OwnOrder)) {
        let Some(id) = self.id_of(user_ref) else { return };
        let Some(own) = self.orders.get_mut(&id) else { return };
        let was_open = own.is_open();
        how(own);
        own.updated = ts;
        match (was_open, own.is_open()) {
            (true, false) => self.closed += 1,
            (false, true) => self.closed -= 1,
            _ => {}
        }
        self.forget_closed();
        self.tell(News::Order(id));
    }

    /// Removes the oldest ended orders in batches.
    fn forget_closed(&mut self) {
        if self.closed <= CLOSED_MAX + CLOSED_MAX / 8 {
            return;
        }
        let oldest: Vec<u32> = self
            .orders
            .values()
            .filter(|own| !own.is_open())
            .take(self.closed - CLOSED_MAX)
            .map(|own| own.id)
            .collect();
        for id in oldest {
            self.orders.remove(&id);
        }
        let orders = &self.orders;
        self.ids.retain(|_, id| orders.contains_key(id));
        (self.closed, self.has_forgotten) = (CLOSED_MAX, true);
    }

    fn tell(&mut self, news: News) {
        if let Some(waiting) = self.news.as_mut().filter(|_| !self.is_catching_up) {
            push_bounded(waiting, news, NEWS_MAX);
        }
    }

    fn id_of(&self, user_ref: u32) -> Option<u32> {
        self.orders.contains_key(&user_ref).then_some(user_ref).or_else(|| self.ids.get(&user_ref).copied())
    }

    /// Finds an order by any of its numbers.
    pub(super) fn order(&self, user_ref: u32) -> Option<&OwnOrder> {
        self.orders.get(&self.id_of(user_ref)?)
    }

    /// All orders, oldest first.
    pub(super) fn orders(&self) -> impl Iterator<Item = &OwnOrder> {
        self.orders.values()
    }

    /// The remembered executions, oldest first.
    pub(super) fn trades(&self) -> impl DoubleEndedIterator<Item = &OwnTrade> {
        self.trades.iter()
    }

    /// An execution by its number; `None` if it is no longer remembered.
    pub(super) fn trade(&self, number: u64) -> Option<&OwnTrade> {
        let first = self.trades.front()?.number;
        self.trades.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    /// The refusal of a request, if any.
    pub(super) fn refusal(&self, user_ref: u32) -> Option<&Refusal> {
        self.refusals.iter().rev().find(|refusal| refusal.user_ref == user_ref)
    }

    /// Number of orders cancelled by the mass cancel of this number; `None` if it was not accepted.
    pub(super) fn mass_cancelled(&self, user_ref: u32) -> Option<u64> {
        self.mass.filter(|(of, ..)| *of == user_ref).map(|(.., count)| count)
    }

    /// Current and closed positions by instrument.
    pub(super) fn positions(&self) -> impl Iterator<Item = (InstrumentId, &Position)> {
        self.positions.iter().map(|(id, position)| (InstrumentId(*id), position))
    }

    /// The position in an instrument.
    pub(super) fn position(&self, instrument: InstrumentId) -> Position {
        self.positions.get(&instrument.0).copied().unwrap_or_default()
    }
}

impl OwnOrder {
    fn take_away(&mut self, decrement: Qty, reason: CancelReason) {
        self.leaves = self.leaves.saturating_sub(decrement.0);
        if self.is_open() {
            self.order.qty.0 = self.executed + self.leaves;
            self.is_changed = true;
        } else {
            self.cancelled = Some(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickpath_nasdaq::drop_copy::COPY_LEN_MAX;
    use tickpath_nasdaq::ouch50::{self, encode_event};
    use tickpath_types::{
        BrokenReason, Instrument, OrderEvent, OrderId, Sequence, SessionId, Symbol, UserRefNum,
    };

    struct Rig {
        account: Account,
        instruments: InstrumentTable,
        number: u64,
    }

    impl Rig {
        fn new() -> Rig {
            let symbol = Symbol::new("ALPHA").unwrap();
            let instrument = Instrument::in_cents(InstrumentId(1), symbol, Price(1_000_000));
            Rig { account: Account::new("ANNA"), instruments: InstrumentTable::new(&[instrument]), number: 0 }
        }

        fn tell(&mut self, kind: OrderEventKind) {
            self.number += 1;
            self.tell_as("anna", self.number, kind);
        }

        fn tell_as(&mut self, user: &str, number: u64, kind: OrderEventKind) {
            let event = OrderEvent {
                command: Sequence(1),
                session: SessionId(1),
                ts: Nanos(7),
                is_reply: true,
                kind,
            };
            let mut message = [0; ouch50::MESSAGE_LEN_MAX];
            let table = &self.instruments;
            let len = encode_event(&event, |id| table.symbol(id), &mut message).unwrap();
            let mut copy = [0; COPY_LEN_MAX];
            let len = DropCopy { user, number, message: &message[..len] }.encode(&mut copy).unwrap();
            self.account.handle_copy(&copy[..len], &self.instruments);
        }

        fn accept(&mut self, user_ref: u32, side: Side, qty: u64, price: i64) {
            let order =
                EnterOrder::limit(UserRefNum(user_ref), InstrumentId(1), side, Qty(qty), Price(price));
            self.tell(OrderEventKind::Accepted { order, order_id: OrderId(1), state: OrderState::Live });
        }

        fn execute(&mut self, user_ref: u32, qty: u64, price: i64, match_id: u64) {
            self.tell(OrderEventKind::Executed {
                user_ref: UserRefNum(user_ref),
                qty: Qty(qty),
                price: Price(price),
                liquidity: Liquidity::Added,
                match_id: MatchId(match_id),
            });
        }
    }

    #[test]
    fn an_order_keeps_its_id_and_positions_follow_its_executions() {
        let mut rig = Rig::new();
        rig.accept(5, Side::Buy, 100, 1_000_000);
        rig.execute(5, 30, 1_000_000, 1);
        let order = EnterOrder::limit(UserRefNum(8), InstrumentId(1), Side::Buy, Qty(80), Price(1_010_000));
        rig.tell(OrderEventKind::Replaced {
            order,
            orig_user_ref: UserRefNum(5),
            order_id: OrderId(2),
            state: OrderState::Live,
        });
        let own = *rig.account.order(8).unwrap();
        assert_eq!((own.id, own.user_ref, own.leaves, own.order.qty.0, own.is_changed), (5, 8, 50, 80, true));
        assert_eq!(rig.account.order(5), Some(&own));
        rig.execute(8, 50, 1_010_000, 2);
        assert!(!rig.account.order(5).unwrap().is_open());
        assert_eq!(rig.account.position(InstrumentId(1)).net_qty(), 80);
        assert_eq!(rig.account.trade_count, 2);
        let (user_ref, match_id, reason) = (UserRefNum(8), MatchId(2), BrokenReason::Supervisory);
        rig.tell(OrderEventKind::Broken { user_ref, match_id, reason });
        assert_eq!(rig.account.position(InstrumentId(1)).net_qty(), 30);
        assert!(rig.account.trade(2).unwrap().is_broken && rig.account.incomplete.is_none());
        assert_eq!(rig.account.last_ref, 8);
    }

    #[test]
    fn a_part_that_is_cancelled_leaves_the_rest_open() {
        let mut rig = Rig::new();
        rig.accept(1, Side::Sell, 100, 1_000_000);
        let cancel = |decrement| OrderEventKind::Canceled {
            user_ref: UserRefNum(1),
            decrement: Qty(decrement),
            reason: CancelReason::User,
        };
        rig.tell(cancel(40));
        let own = *rig.account.order(1).unwrap();
        assert_eq!((own.leaves, own.order.qty.0, own.cancelled), (60, 60, None));
        rig.tell(cancel(60));
        let own = *rig.account.order(1).unwrap();
        assert_eq!((own.leaves, own.order.qty.0, own.cancelled), (0, 60, Some(CancelReason::User)));
    }

    #[test]
    fn old_orders_are_forgotten_once_they_are_over_and_positions_stay() {
        let mut rig = Rig::new();
        rig.accept(1, Side::Buy, 100, 1_000_000);
        let last = u32::try_from(CLOSED_MAX + CLOSED_MAX / 8 + 2).unwrap();
        for user_ref in 2..=last {
            assert!(!rig.account.has_forgotten);
            rig.accept(user_ref, Side::Buy, 1, 1_000_000);
            rig.execute(user_ref, 1, 1_000_000, user_ref.into());
        }
        assert!(rig.account.has_forgotten);
        assert_eq!(rig.account.orders().filter(|own| !own.is_open()).count(), CLOSED_MAX);
        assert!(rig.account.order(1).unwrap().is_open() && rig.account.order(2).is_none());
        assert!(rig.account.order(last).is_some());
        assert_eq!(rig.account.position(InstrumentId(1)).net_qty(), i64::from(last - 1));
        // The effect of breaking a forgotten trade is unknown.
        let (user_ref, match_id, reason) = (UserRefNum(2), MatchId(2), BrokenReason::Supervisory);
        rig.tell(OrderEventKind::Broken { user_ref, match_id, reason });
        assert!(rig.account.incomplete.is_some_and(|why| why.contains("void")));
    }

    #[test]
    fn what_is_missing_or_unreadable_is_noticed_and_others_are_passed_over() {
        let mut rig = Rig::new();
        rig.accept(1, Side::Sell, 100, 1_000_000);
        let refused = OrderEventKind::Rejected {
            user_ref: UserRefNum(9),
            reason: RejectReason::Halted,
            client_order_id: ClientOrderId(*b"from-the-test "),
        };
        rig.tell_as("BERT", 77, refused);
        assert!(rig.account.refusal(9).is_none() && rig.account.incomplete.is_none());
        rig.tell(refused);
        let refusal = rig.account.refusal(9).unwrap();
        assert_eq!(
            (refusal.reason, refusal.code, refusal.text.0),
            (RejectReason::Halted, 7, *b"from-the-test ")
        );
        rig.account.handle_copy(b"short", &rig.instruments);
        assert_eq!((rig.account.unreadable, rig.account.incomplete), (1, None));
        rig.tell_as("ANNA", 9, refused);
        assert!(rig.account.incomplete.is_some());
    }
}

//! The fill model *queue position*: own orders queue among the recorded ones, and the recorded
//! market does not react to them.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use rustc_hash::FxHasher;
use tickpath_book::BooksById;
use tickpath_types::{
    CancelOrder, CancelReason, EnterOrder, InstrumentId, Liquidity, MarketUpdate, MatchId, OrderEventKind,
    OrderId, OrderRequest, OrderState, Price, Qty, RejectReason, ReplaceOrder, Side, UpdateKind, UserRefNum,
};

/// A fill model's input: a recorded message that changed a book.
#[derive(Clone, Copy, Debug)]
pub struct RecordedChange<'a> {
    /// The message, with the best prices after it, and with the strategy's id of the instrument.
    pub update: &'a MarketUpdate,
    /// Id of the order that the message replaced; 0 for none.
    pub replaced: u64,
}

/// A venue whose recorded market does not react to own orders.
///
/// - An order that crosses the recorded book trades with it at once, at the levels' prices. The quantity stays in
///   the recorded book, so it can be taken again.
/// - Any other order joins the queue of its level, behind the orders that rest there at that time.
/// - It advances when these trade, are reduced or are removed.
/// - It trades when a recorded order behind it trades, when a recorded trade is at a worse price than its own, or
///   when a recorded order joins the opposite side at its price or a better one. It gets at most the quantity of
///   that trade or order; of several own orders the one with priority is first.
#[derive(Debug, Default)]
pub struct QueuePosition {
    /// Own resting orders of each instrument, by id from 1.
    books: Vec<OwnBook>,
    last_order_id: u64,
    last_match_id: u64,
}

/// Own resting orders of one instrument, each side by price and time.
#[derive(Debug)]
struct OwnBook {
    /// The instrument's id in the recorded books.
    recorded: InstrumentId,
    sides: [Vec<Resting>; 2],
}

#[derive(Debug)]
struct Resting {
    order: EnterOrder,
    /// Executed quantity, that of replaced orders included.
    executed: u64,
    /// Quantity that waits for a trade.
    leaves: u64,
    /// Recorded orders with priority at the same price, with their quantities.
    ahead: HashMap<u64, u64, BuildHasherDefault<FxHasher>>,
    /// True if the recorded order that trades now had priority at the same price.
    is_behind: bool,
}

impl QueuePosition {
    /// Creates a venue for the instruments 1 to `instruments`. In the recorded books they have the same ids, unless
    /// [`set_recorded`](Self::set_recorded) sets others.
    #[must_use]
    pub fn new(instruments: u16) -> QueuePosition {
        let book = |id| OwnBook { recorded: InstrumentId(id), sides: [Vec::new(), Vec::new()] };
        QueuePosition { books: (1..=instruments).map(book).collect(), ..QueuePosition::default() }
    }

    /// Sets the id of an instrument in the recorded books.
    pub fn set_recorded(&mut self, instrument: InstrumentId, recorded: InstrumentId) {
        if let Some(book) = self.book(instrument) {
            book.recorded = recorded;
        }
    }

    /// Handles a request at its arrival. `books` have the recorded orders at that time; `answer` receives the
    /// venue's answers.
    pub fn handle_request(
        &mut self,
        request: &OrderRequest,
        books: &impl BooksById,
        answer: &mut impl FnMut(OrderEventKind),
    ) {
        match request {
            OrderRequest::Enter(order) => {
                let order_id = self.next_order_id();
                answer(OrderEventKind::Accepted { order: *order, order_id, state: OrderState::Live });
                self.enter(order, 0, books, answer);
            }
            OrderRequest::Replace(replace) => self.replace(replace, books, answer),
            OrderRequest::Cancel(cancel) => self.cancel(cancel, answer),
            // Strategies send no others.
            OrderRequest::Modify(_) | OrderRequest::MassCancel(_) | OrderRequest::SetOrderEntry(_) => {
                answer(OrderEventKind::Rejected {
                    user_ref: request.user_ref(),
                    reason: RejectReason::OptionNotOffered,
                    client_order_id: Default::default(),
                });
            }
        }
    }

    fn next_order_id(&mut self) -> OrderId {
        self.last_order_id += 1;
        OrderId(self.last_order_id)
    }

    fn book(&mut self, instrument: InstrumentId) -> Option<&mut OwnBook> {
        self.books.get_mut(usize::from(instrument.0).checked_sub(1)?)
    }

    /// Removes the own order with this number.
    fn take(&mut self, user_ref: UserRefNum) -> Option<Resting> {
        let mut sides = self.books.iter_mut().flat_map(|book| &mut book.sides);
        sides.find_map(|side| {
            let place = side.iter().position(|resting| resting.order.user_ref == user_ref)?;
            Some(side.remove(place))
        })
    }

    fn find(&mut self, user_ref: UserRefNum) -> Option<&mut Resting> {
        let mut all = self.books.iter_mut().flat_map(|book| &mut book.sides).flatten();
        all.find(|resting| resting.order.user_ref == user_ref)
    }

    /// Trades an order with the recorded book, and lets the rest join its queue. `executed` is the executed quantity
    /// of the orders that it replaces.
    fn enter(
        &mut self,
        order: &EnterOrder,
        executed: u64,
        books: &impl BooksById,
        answer: &mut impl FnMut(OrderEventKind),
    ) {
        let EnterOrder { user_ref, instrument, side, price, .. } = *order;
        let Some(recorded) = self.book(instrument).map(|book| book.recorded) else { return };
        let is_ioc = !order.time_in_force.may_rest();
        let takes_any_price = is_ioc && price == Price::MARKET;
        let mut leaves = order.qty.0.saturating_sub(executed);
        let cancel = |decrement: u64, reason, answer: &mut dyn FnMut(OrderEventKind)| {
            answer(OrderEventKind::Canceled { user_ref, decrement: Qty(decrement), reason });
        };
        let may_trade = takes_any_price || books.would_trade(recorded, side, price);
        if may_trade && order.post_only {
            return cancel(leaves, CancelReason::PostOnly, answer);
        }
        if may_trade || order.min_qty.0 > 0 {
            let levels = books.levels(recorded, side.opposite());
            let reachable = levels.take_while(|level| takes_any_price || side.crosses(price, level.price));
            let levels: Vec<_> = reachable.map(|level| (level.price, level.qty.0)).collect();
            if levels.iter().map(|(_, qty)| *qty).sum::<u64>() < order.min_qty.0 {
                return cancel(leaves, CancelReason::ImmediateOrCancel, answer);
            }
            for (price, qty) in levels {
                let qty = qty.min(leaves);
                if qty > 0 {
                    leaves -= qty;
                    answer(self.execution(user_ref, qty, price, Liquidity::Removed));
                }
            }
        }
        if leaves == 0 {
            return;
        }
        if is_ioc {
            return cancel(leaves, CancelReason::ImmediateOrCancel, answer);
        }
        let queue = books.queue(recorded, side, price);
        let ahead = queue.map(|recorded| (recorded.id.0, recorded.qty.0)).collect();
        let resting =
            Resting { order: *order, executed: order.qty.0 - leaves, leaves, ahead, is_behind: false };
        if let Some(book) = self.book(instrument) {
            let own = &mut book.sides[side.index()];
            let place = own.iter().position(|other| side.is_better(price, other.order.price));
            own.insert(place.unwrap_or(own.len()), resting);
        }
    }

    fn execution(
        &mut self,
        user_ref: UserRefNum,
        qty: u64,
        price: Price,
        liquidity: Liquidity,
    ) -> OrderEventKind {
        self.last_match_id += 1;
        let match_id = MatchId(self.last_match_id);
        OrderEventKind::Executed { user_ref, qty: Qty(qty), price, liquidity, match_id }
    }

    fn replace(
        &mut self,
        request: &ReplaceOrder,
        books: &impl BooksById,
        answer: &mut impl FnMut(OrderEventKind),
    ) {
        let ReplaceOrder { user_ref, orig_user_ref, client_order_id, .. } = *request;
        let Some(old) = self.take(orig_user_ref) else {
            let reason = RejectReason::UnknownOrder;
            return answer(OrderEventKind::Rejected { user_ref, reason, client_order_id });
        };
        if request.qty.0 <= old.executed {
            // Nothing would be left to trade.
            let (decrement, reason) = (Qty(old.leaves), CancelReason::User);
            return answer(OrderEventKind::Canceled { user_ref: orig_user_ref, decrement, reason });
        }
        let EnterOrder { instrument, side, attributes, .. } = old.order;
        let order = request.entered(instrument, side, attributes.capacity, attributes.cross_type);
        let order_id = self.next_order_id();
        answer(OrderEventKind::Replaced { order, orig_user_ref, order_id, state: OrderState::Live });
        self.enter(&order, old.executed, books, answer);
    }

    /// Cancels or reduces an order. As at an OUCH venue, a request about an order that no longer rests has no answer.
    fn cancel(&mut self, request: &CancelOrder, answer: &mut impl FnMut(OrderEventKind)) {
        let CancelOrder { user_ref, qty } = *request;
        let Some(resting) = self.find(user_ref) else { return };
        let leaves = qty.0.saturating_sub(resting.executed);
        if leaves >= resting.leaves {
            return;
        }
        let decrement = Qty(resting.leaves - leaves);
        resting.leaves = leaves;
        resting.order.qty.0 -= decrement.0;
        if leaves == 0 {
            self.take(user_ref);
        }
        answer(OrderEventKind::Canceled { user_ref, decrement, reason: CancelReason::User });
    }

    /// Handles a recorded message: own orders advance or trade.
    #[inline]
    pub fn handle_change(&mut self, change: &RecordedChange<'_>, answer: &mut impl FnMut(OrderEventKind)) {
        let update = change.update;
        let has_orders = self.book(update.instrument()).is_some_and(|book| {
            let [buys, sells] = &book.sides;
            !buys.is_empty() || !sells.is_empty()
        });
        if has_orders {
            self.advance(change, answer);
        }
    }

    fn advance(&mut self, change: &RecordedChange<'_>, answer: &mut impl FnMut(OrderEventKind)) {
        let RecordedChange { update, replaced } = *change;
        let (price, qty) = (Price(update.price), update.qty);
        let Some(kind) = update.kind() else { return };
        let Some(book) = self.book(update.instrument()) else { return };
        match kind {
            UpdateKind::Reduce | UpdateKind::Delete => {
                for resting in book.sides.iter_mut().flatten() {
                    resting
                        .take_ahead(update.order_id, if kind == UpdateKind::Delete { u64::MAX } else { qty });
                }
            }
            UpdateKind::Replace | UpdateKind::Add => {
                for resting in book.sides.iter_mut().flatten() {
                    resting.take_ahead(replaced, u64::MAX);
                    resting.note_modified(update.order_id, price, qty);
                }
                if let Some(side) = update.side() {
                    self.trade(update.instrument(), side.opposite(), price, qty, |_| true, answer);
                }
            }
            UpdateKind::Trade => {
                for resting in book.sides.iter_mut().flatten() {
                    resting.is_behind = resting.take_ahead(update.order_id, qty);
                }
                match update.side() {
                    // A displayed order at the same price has traded before all that are behind it.
                    Some(side) => {
                        let may_trade = |resting: &Resting| !resting.is_behind;
                        self.trade(update.instrument(), side, price, qty, may_trade, answer);
                    }
                    // A trade of a hidden order of either side. At the same price the recorded displayed orders may
                    // not have traded, so own ones do not either.
                    None => {
                        for side in Side::BOTH {
                            let may_trade = |resting: &Resting| resting.order.price != price;
                            self.trade(update.instrument(), side, price, qty, may_trade, answer);
                        }
                    }
                }
            }
            UpdateKind::Status => {}
        }
    }

    /// Trades own orders of a side at `price` or a better one with a quantity of the market.
    fn trade(
        &mut self,
        instrument: InstrumentId,
        side: Side,
        price: Price,
        mut qty: u64,
        may_trade: impl Fn(&Resting) -> bool,
        answer: &mut impl FnMut(OrderEventKind),
    ) {
        let mut place = 0;
        while qty > 0 {
            let Some(book) = self.book(instrument) else { return };
            let own = &mut book.sides[side.index()];
            let Some(resting) = own.get_mut(place) else { return };
            if side.is_better(price, resting.order.price) {
                return;
            }
            if !may_trade(resting) {
                place += 1;
                continue;
            }
            let traded = qty.min(resting.leaves);
            qty -= traded;
            resting.leaves -= traded;
            resting.executed += traded;
            let EnterOrder { user_ref, price, .. } = resting.order;
            if resting.leaves == 0 {
                own.remove(place);
            } else {
                place += 1;
            }
            answer(self.execution(user_ref, traded, price, Liquidity::Added));
        }
    }
}

impl Resting {
    /// Notes that a recorded order was modified under its id: it keeps its priority unless it has another price or a
    /// larger quantity.
    #[inline]
    fn note_modified(&mut self, id: u64, price: Price, qty: u64) {
        if let Some(left) = self.ahead.get_mut(&id) {
            if price == self.order.price && qty <= *left {
                *left = qty;
            } else {
                self.ahead.remove(&id);
            }
        }
    }

    /// Takes quantity off a recorded order with priority; returns true if there is such an order.
    #[inline]
    fn take_ahead(&mut self, id: u64, qty: u64) -> bool {
        let Some(left) = self.ahead.get_mut(&id) else { return false };
        *left = left.saturating_sub(qty);
        if *left == 0 {
            self.ahead.remove(&id);
        }
        true
    }
}

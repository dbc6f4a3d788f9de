//! All open orders, wherever their quantity is: displayed, undisplayed, or waiting for a stop price.

use tickpath_book::{BookLimits, Order, OrderBooks, OrderHandle, PageIndex, PageLimits};
use tickpath_faults::{failpoint, if_planted};
use tickpath_types::{
    ClientOrderId, EnterOrder, Instrument, InstrumentId, MarketEventKind, OrderId, Price, Qty, RejectReason,
    SessionId, Side, TradingState, UserRefNum,
};

use super::context::Context;
use super::listing::{Listing, Listings};
use super::owner::{Owner, order_key};
use super::sessions::{Session, Sessions};
use super::special::{Layer, SpecialOrder, Specials, is_special, needs_entry, parts_of};
use super::stops::Stops;
use crate::limits::check_instrument;
use crate::{EngineLimits, EventListener};

/// Minimum number of open orders for prefetches: the cache holds the books of fewer, and a prefetch would only
/// add instructions.
const PREFETCHED_ORDERS_MIN: u32 = 2_048;

/// An open order; `leaves` is the open quantity of all of its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenOrder {
    /// Handle of the order in the index.
    pub(super) handle: OrderHandle,
    pub(super) user_ref: UserRefNum,
    pub(super) instrument: InstrumentId,
    pub(super) side: Side,
    pub(super) executed: u64,
    pub(super) leaves: Qty,
    pub(super) capacity: u8,
    pub(super) cross_type: u8,
}

/// An order that was removed from the books.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemovedOrder {
    pub(super) instrument: InstrumentId,
    pub(super) leaves: Qty,
    /// Order id of the displayed part; `None` if no part was displayed.
    pub(super) displayed: Option<OrderId>,
}

/// A part of an order that is carried into the next day.
#[derive(Clone, Copy, Debug)]
pub(super) struct CarriedPart {
    pub(super) layer: Layer,
    /// Handle of the part, in its book.
    pub(super) handle: OrderHandle,
    /// Handle of the order's entry in [`Specials`].
    pub(super) entry: OrderHandle,
}

/// Instruments, sessions, and the books of all open orders with their index by [`order_key`].
#[derive(Clone, Debug)]
pub(super) struct OpenOrders<B> {
    pub(super) limits: EngineLimits,
    pub(super) listings: Listings,
    pub(super) sessions: Sessions,
    /// Displayed orders and displayed parts.
    pub(super) books: B,
    /// Undisplayed quantity that can trade: hidden orders, and the reserves of orders displayed in parts.
    pub(super) hidden: B,
    /// Orders that wait for their stop price.
    pub(super) stops: Stops<B>,
    /// Open orders by [`order_key`].
    pub(super) index: PageIndex,
    pub(super) specials: Specials,
    /// Reusable buffers for lists of orders, and of parts of orders, within a command.
    pub(super) scratch: Vec<(u64, OrderHandle)>,
    pub(super) carried: Vec<CarriedPart>,
}

impl<B: OrderBooks<Owner>> OpenOrders<B> {
    /// Empty books for instrument ids up to `max_instrument`. Does not touch their memory.
    pub(super) fn untouched(max_instrument: InstrumentId, limits: EngineLimits) -> OpenOrders<B> {
        let special = BookLimits::new(max_instrument, limits.max_special_orders);
        let displayed = BookLimits::new(max_instrument, limits.max_resting());
        let index = PageLimits {
            blocks: u32::from(limits.max_sessions),
            max_pages: limits.max_index_pages,
            max_pages_per_block: limits.max_index_pages_per_session,
        };
        let max_special = limits.max_special_orders as usize;
        OpenOrders {
            limits,
            listings: Listings::new(max_instrument),
            sessions: Sessions::new(&limits),
            books: B::untouched(displayed),
            hidden: B::untouched(special),
            stops: Stops::untouched(special, limits.max_special_orders),
            // Pages begin at `UserRefNum` 1, so that a new day's orders occupy as few pages as possible.
            index: PageIndex::untouched(index, order_key(SessionId(0), UserRefNum(1))),
            specials: Specials::new(limits.max_special_orders),
            scratch: Vec::with_capacity(max_special),
            carried: Vec::with_capacity(2 * max_special),
        }
    }

    /// Touches all memory that has not been touched yet.
    pub(super) fn prefault(&mut self) {
        for layer in Layer::ALL {
            self.layer_mut(layer).prefault();
        }
        self.index.prefault();
    }

    pub(super) const fn layer(&self, layer: Layer) -> &B {
        match layer {
            Layer::Displayed => &self.books,
            Layer::Hidden => &self.hidden,
            Layer::Stop => &self.stops.books,
        }
    }

    pub(super) const fn layer_mut(&mut self, layer: Layer) -> &mut B {
        match layer {
            Layer::Displayed => &mut self.books,
            Layer::Hidden => &mut self.hidden,
            Layer::Stop => &mut self.stops.books,
        }
    }

    /// Adds an instrument, halted; false when its definition is invalid, or its id taken or beyond the limit.
    pub(super) fn add_instrument(&mut self, instrument: &Instrument) -> bool {
        check_instrument(instrument, &self.limits).is_ok()
            && self.listings.add(Listing { is_added: true, ..Listing::new(*instrument) })
    }

    /// True if the cache does not hold the books of all open orders, so that prefetches pay.
    #[inline(always)]
    pub(super) fn exceeds_cache(&self) -> bool {
        self.books.order_count() >= PREFETCHED_ORDERS_MIN
    }

    /// Uses up a `UserRefNum` for a request of the command's session, and returns that session. `None` when
    /// the request needs no further work: it was rejected, or dropped as a duplicate because its `UserRefNum`
    /// is not above all earlier ones.
    #[inline]
    pub(super) fn use_number(
        &mut self,
        user_ref: UserRefNum,
        client_order_id: &ClientOrderId,
        context: &mut Context<impl EventListener>,
    ) -> Option<Session> {
        let used = self.sessions.use_number(context.command.session, user_ref);
        if used.is_none() {
            self.reject_number(user_ref, client_order_id, &mut context.reborrow());
        }
        used
    }

    /// Rejects a request of an unknown session, or of one that has used all `UserRefNum`s; counts others as
    /// duplicates. If an open order has the `UserRefNum`, a rejection would seem to end it, so none is sent.
    #[cold]
    #[inline(never)]
    fn reject_number(
        &mut self,
        user_ref: UserRefNum,
        client_order_id: &ClientOrderId,
        context: &mut Context<impl EventListener>,
    ) {
        let id = context.command.session;
        let Some(session) = self.sessions.find(id) else {
            return context.reject(user_ref, RejectReason::NotAuthorised, *client_order_id);
        };
        if session.last_user_ref.0 == u32::MAX && self.index.find(order_key(id, user_ref)).is_none() {
            return context.reject(user_ref, RejectReason::UserRefsExhausted, *client_order_id);
        }
        context.progress.counters.duplicates += 1;
    }

    /// The session's open order `user_ref`.
    #[inline]
    pub(super) fn open_order(&self, session: SessionId, user_ref: UserRefNum) -> Option<OpenOrder> {
        let handle = self.index.find(order_key(session, user_ref))?;
        let (order, leaves) = if is_special(handle) {
            self.special_whole(self.specials.order(handle))
        } else {
            let order = self.books.order(handle)?;
            (order, order.qty)
        };
        let Owner { executed, capacity, cross_type, .. } = order.data;
        let (instrument, side) = (order.instrument, order.side);
        Some(OpenOrder { handle, user_ref, instrument, side, executed, leaves, capacity, cross_type })
    }

    /// Index handle of the open order that a resting part with this owner belongs to.
    pub(super) fn handle_of(&self, owner: &Owner) -> OrderHandle {
        self.index.find(order_key(owner.session, owner.user_ref)).expect("what rests is in the index")
    }

    /// Handle of the displayed part of the session's open order `user_ref`; `None` if no part is displayed.
    pub(super) fn displayed_part(&self, session: SessionId, user_ref: UserRefNum) -> Option<OrderHandle> {
        let handle = self.index.find(order_key(session, user_ref))?;
        if is_special(handle) { self.specials.order(handle).part(Layer::Displayed) } else { Some(handle) }
    }

    /// A special order's first part and the open quantity of all its parts. The first part gets the order's
    /// side, since a part that waits for its stop price is stored on the other side.
    #[cold]
    pub(super) fn special_whole(&self, special: &SpecialOrder) -> (Order<Owner>, Qty) {
        let parts = Layer::ALL.map(|layer| self.layer(layer).order(special.part(layer)?));
        let leaves = parts.iter().flatten().map(|order| order.qty.0).sum();
        let first = parts.into_iter().flatten().next().expect("an open order has a part that rests");
        (Order { side: special.order.side, ..first }, Qty(leaves))
    }

    /// Instrument and side of an open order.
    pub(super) fn instrument_and_side(&self, handle: OrderHandle) -> (InstrumentId, Side) {
        if is_special(handle) {
            let special = self.specials.order(handle);
            return (special.order.instrument, special.order.side);
        }
        let order = self.books.order(handle).expect("the index knows only open orders");
        (order.instrument, order.side)
    }

    /// True when the index and the entries of special orders have capacity for an order, which replaces `old`
    /// if given. The books need no check for a replacement, since `old` leaves them first. The units of
    /// `max_special_orders` that `old` takes count as free.
    pub(super) fn has_capacity(
        &self,
        session: SessionId,
        order: &EnterOrder,
        old: Option<&OpenOrder>,
    ) -> bool {
        let freed = match old {
            Some(old) if is_special(old.handle) => u64::from(self.specials.order(old.handle).parts),
            _ => 0,
        };
        let parts = if needs_entry(order) { parts_of(order) } else { 0 };
        self.index.has_capacity(order_key(session, order.user_ref))
            && self.specials.has_capacity(parts.saturating_sub(freed))
    }

    /// Puts an order into the index, and counts it as open in its session.
    #[inline(always)]
    pub(super) fn enter_index(&mut self, session: SessionId, user_ref: UserRefNum, handle: OrderHandle) {
        self.index
            .insert(order_key(session, user_ref), handle)
            .expect("room in the index was checked on entry, and matching only makes more");
        self.sessions.count_opened(session);
    }

    /// Removes an order from the index and from its session's count of open orders; returns its index handle.
    #[inline]
    pub(super) fn remove_from_index(&mut self, session: SessionId, user_ref: UserRefNum) -> OrderHandle {
        self.sessions.count_closed(session);
        self.index.remove(order_key(session, user_ref)).expect("a resting order is in the index")
    }

    /// Removes an order from the books. The caller updates the index and the session.
    #[inline(always)]
    pub(super) fn remove(&mut self, handle: OrderHandle) -> RemovedOrder {
        if is_special(handle) {
            return self.remove_special(handle);
        }
        let order = self.books.remove(handle);
        RemovedOrder { instrument: order.instrument, leaves: order.qty, displayed: Some(order.id) }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn remove_special(&mut self, handle: OrderHandle) -> RemovedOrder {
        let special = self.specials.remove(handle);
        let parts = Layer::ALL.map(|layer| Some(self.layer_mut(layer).remove(special.part(layer)?)));
        self.update_listing(special.order.instrument);
        RemovedOrder {
            instrument: special.order.instrument,
            leaves: Qty(parts.iter().flatten().map(|order| order.qty.0).sum()),
            displayed: parts[Layer::Displayed as usize].map(|order| order.id),
        }
    }

    /// Triggers the orders with stop prices between `low` and `high`: moves them to `stops.triggered`.
    #[cold]
    #[inline(never)]
    pub(super) fn trigger(&mut self, instrument: InstrumentId, low: Price, high: Price) {
        let OpenOrders { stops, index, specials, .. } = self;
        stops.collect(instrument, low, high, |owner| {
            let handle = index.find(order_key(owner.session, owner.user_ref));
            let special = specials.order_mut(handle.expect("an order that waits is in the index"));
            special.set_part(Layer::Stop, None);
            special.entry
        });
        self.update_listing(instrument);
    }

    /// Recomputes whether an instrument's orders need the slow path, and whether it has stop orders.
    #[cold]
    pub(super) fn update_listing(&mut self, id: InstrumentId) {
        let is_empty = |books: &B| Side::BOTH.iter().all(|side| books.best(id, *side).is_none());
        if let Some(listing) = self.listings.find_mut(id) {
            listing.update(!is_empty(&self.hidden), !is_empty(&self.stops.books));
        }
    }

    /// Changes the state of an instrument, and publishes it.
    pub(super) fn change_state(
        &mut self,
        id: InstrumentId,
        state: TradingState,
        context: &mut Context<impl EventListener>,
    ) {
        if let Some(listing) = self.listings.find_mut(id) {
            listing.state = state;
        }
        self.update_listing(id);
        context.publish(id, MarketEventKind::TradingAction(state));
    }

    /// The resting order of a side that trades next: the best price first, displayed before undisplayed.
    pub(super) fn next(&self, id: InstrumentId, side: Side) -> Option<(Layer, OrderHandle, Order<Owner>)> {
        let displayed = self.books.best_price(id, side);
        let hidden = self.hidden.best_price(id, side);
        failpoint!(HiddenBeforeDisplayed: displayed = displayed.filter(|_| hidden.is_none()));
        let layer = match (displayed, hidden) {
            (Some(displayed), Some(hidden)) if side.is_better(hidden, displayed) => Layer::Hidden,
            (Some(_), _) => Layer::Displayed,
            (None, _) => Layer::Hidden,
        };
        let handle = self.layer(layer).front(id, side)?;
        Some((layer, handle, self.layer(layer).order(handle)?))
    }

    /// Orders of a side in trading order: at each price displayed orders, then the reserves of orders
    /// displayed in parts, then hidden orders. Each has a flag, true for a reserve.
    pub(super) fn in_trading_order(
        &self,
        instrument: InstrumentId,
        side: Side,
    ) -> impl Iterator<Item = (bool, Order<Owner>)> {
        let is_rest = |order: &Order<Owner>| {
            self.specials.order(self.handle_of(&order.data)).part(Layer::Displayed).is_some()
        };
        let mut displayed = self.books.orders(instrument, side).map(|(_, order)| order).peekable();
        let hidden = || self.hidden.orders(instrument, side).map(|(_, order)| order);
        let mut rests = hidden().filter(move |order| is_rest(order)).peekable();
        let mut hidden = hidden().filter(move |order| !is_rest(order)).peekable();
        std::iter::from_fn(move || {
            let fronts = [displayed.peek(), rests.peek(), hidden.peek()];
            let prices = fronts.map(|order| order.map(|order| order.price));
            let best =
                prices.into_iter().flatten().reduce(|a, b| if side.is_better(b, a) { b } else { a })?;
            match prices.iter().position(|price| *price == Some(best))? {
                0 => displayed.next().map(|order| (false, order)),
                1 => rests.next().map(|order| (true, order)),
                _ => hidden.next().map(|order| (false, order)),
            }
        })
    }

    /// Total resting quantity of a side at each price, displayed and undisplayed, from the best price.
    pub(super) fn all_levels(&self, id: InstrumentId, side: Side) -> impl Iterator<Item = (Price, u64)> {
        let mut displayed = self.books.levels(id, side).peekable();
        let mut hidden = self.hidden.levels(id, side).peekable();
        std::iter::from_fn(move || {
            let price = match (displayed.peek(), hidden.peek()) {
                (Some(a), Some(b)) if side.is_better(b.price, a.price) => b.price,
                (Some(a), _) => a.price,
                (None, Some(b)) => b.price,
                (None, None) => return None,
            };
            let a = displayed.next_if(|level| level.price == price).map_or(0, |level| level.qty.0);
            let b = hidden.next_if(|level| level.price == price).map_or(0, |level| level.qty.0);
            Some((price, a + b))
        })
    }

    if_planted! {
        /// Moves a displayed order behind the others of its level.
        #[cold]
        pub(super) fn send_to_tail(&mut self, handle: OrderHandle) {
            let order = self.books.remove(handle);
            let again = self.books.add(order).expect("it was there before");
            let key = order_key(order.data.session, order.data.user_ref);
            match self.index.remove(key) {
                Some(known) if is_special(known) => {
                    self.specials.order_mut(known).set_part(Layer::Displayed, Some(again));
                    self.index.insert(key, known).expect("it was there before");
                }
                _ => self.index.insert(key, again).expect("it was there before"),
            }
        }
    }
}

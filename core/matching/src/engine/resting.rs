//! Orders that rest, wherever their quantity is: displayed, undisplayed, or waiting for a stop price.

use tickpath_book::{Order, OrderBooks, OrderHandle};
use tickpath_faults::{Fault, is_planted};
use tickpath_types::{
    CancelReason, InstrumentId, MarketEventKind, OrderEventKind, OrderId, Price, Qty, SessionId, Side,
    UserRefNum,
};

use super::special::{SpecialOrder, is_special};
use super::{Context, Engine, Owner, order_key};
use crate::EventListener;

/// In which books a part of an order rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Displayed,
    Hidden,
}

/// An open order as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// The index's.
    pub(super) handle: OrderHandle,
    pub(super) user_ref: UserRefNum,
    pub(super) instrument: InstrumentId,
    pub(super) side: Side,
    pub(super) executed: u64,
    pub(super) leaves: Qty,
    pub(super) capacity: u8,
    pub(super) cross_type: u8,
}

/// What went away with an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone {
    pub(super) instrument: InstrumentId,
    pub(super) leaves: Qty,
    /// What the public knew of it.
    pub(super) displayed: Option<OrderId>,
}

impl<B: OrderBooks<Owner>> Engine<B> {
    /// The open order that a session calls by this number.
    #[inline]
    pub(super) fn open_order(&self, session: SessionId, user_ref: UserRefNum) -> Option<Open> {
        let handle = self.index.find(order_key(session, user_ref))?;
        let (order, leaves) = if is_special(handle) {
            self.special_whole(self.specials.order(handle))
        } else {
            let order = self.books.order(handle)?;
            (order, order.qty)
        };
        let Owner { executed, capacity, cross_type, .. } = order.data;
        let (instrument, side) = (order.instrument, order.side);
        Some(Open { handle, user_ref, instrument, side, executed, leaves, capacity, cross_type })
    }

    /// The part that says what was executed, with the order's own side, and what is left of all parts.
    #[cold]
    pub(super) fn special_whole(&self, special: &SpecialOrder) -> (Order<Owner>, Qty) {
        let part = |books: &B, handle: Option<OrderHandle>| handle.and_then(|handle| books.order(handle));
        let parts = [
            part(&self.books, special.displayed),
            part(&self.hidden, special.hidden),
            part(&self.stops, special.stop),
        ];
        let leaves = parts.iter().flatten().map(|order| order.qty.0).sum();
        let first = parts.into_iter().flatten().next().expect("an open order has a part that rests");
        (Order { side: special.side, ..first }, Qty(leaves))
    }

    /// Instrument and side of an open order.
    pub(super) fn place_of(&self, handle: OrderHandle) -> (InstrumentId, Side) {
        if is_special(handle) {
            let special = self.specials.order(handle);
            return (special.instrument, special.side);
        }
        let order = self.books.order(handle).expect("the index knows only open orders");
        (order.instrument, order.side)
    }

    /// Takes an order out of the books. The index and its session are the caller's.
    #[inline(always)]
    pub(super) fn take_away(&mut self, handle: OrderHandle) -> Gone {
        if is_special(handle) {
            return self.take_special_away(handle);
        }
        let order = self.books.remove(handle);
        Gone { instrument: order.instrument, leaves: order.qty, displayed: Some(order.id) }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn take_special_away(&mut self, handle: OrderHandle) -> Gone {
        let special = self.specials.remove(handle);
        let displayed = special.displayed.map(|handle| self.books.remove(handle));
        let hidden = special.hidden.map(|handle| self.hidden.remove(handle));
        let stop = special.stop.map(|handle| self.stops.remove(handle));
        self.update_listing(special.instrument);
        let qty = |order: Option<Order<Owner>>| order.map_or(0, |order| order.qty.0);
        Gone {
            instrument: special.instrument,
            leaves: Qty(qty(displayed) + qty(hidden) + qty(stop)),
            displayed: displayed.map(|order| order.id),
        }
    }

    /// Takes an order away that the index no longer has, and tells its owner and the public.
    #[inline(always)]
    pub(super) fn close(
        &mut self,
        handle: OrderHandle,
        name: (SessionId, UserRefNum),
        is_reply: bool,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        if is_special(handle) {
            return self.close_special(handle, name, is_reply, reason, context);
        }
        let (session, user_ref) = name;
        let order = self.books.remove(handle);
        context.tell(session, is_reply, OrderEventKind::Canceled { user_ref, decrement: order.qty, reason });
        if is_planted(Fault::CancelUnpublished) {
            return;
        }
        self.publish(order.instrument, MarketEventKind::Deleted { order_id: order.id }, context);
    }

    #[cold]
    #[inline(never)]
    fn close_special(
        &mut self,
        handle: OrderHandle,
        (session, user_ref): (SessionId, UserRefNum),
        is_reply: bool,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let gone = self.take_special_away(handle);
        let kind = OrderEventKind::Canceled { user_ref, decrement: gone.leaves, reason };
        context.tell(session, is_reply, kind);
        if let Some(order_id) = gone.displayed {
            self.publish(gone.instrument, MarketEventKind::Deleted { order_id }, context);
        }
    }

    /// Removes what is left of an order and tells its owner and the public.
    #[inline(never)]
    pub(super) fn cancel_whole(
        &mut self,
        (session, user_ref): (SessionId, UserRefNum),
        is_reply: bool,
        reason: CancelReason,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let handle = self.forget(session, user_ref);
        self.close(handle, (session, user_ref), is_reply, reason, context);
    }

    /// Takes less than all off an order: what waits or is not displayed goes first.
    pub(super) fn reduce_open(
        &mut self,
        open: &Open,
        qty: Qty,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let (displayed, visible) = if is_special(open.handle) {
            let (displayed, rest) = self.reduce_unseen(open.handle, qty);
            let Some(displayed) = displayed.filter(|_| !rest.is_zero()) else { return };
            (displayed, rest)
        } else {
            (open.handle, qty)
        };
        let order_id = self.books.order(displayed).expect("it is open").id;
        self.books.reduce(displayed, visible);
        self.publish(open.instrument, MarketEventKind::Reduced { order_id, qty: visible }, context);
        if is_planted(Fault::ReductionLosesPriority) {
            self.send_to_tail(displayed);
        }
    }

    /// Takes `qty` off the parts that nobody sees, as far as it goes; returns the displayed part and what is
    /// left to take.
    #[cold]
    fn reduce_unseen(&mut self, handle: OrderHandle, qty: Qty) -> (Option<OrderHandle>, Qty) {
        let special = self.specials.order_mut(handle);
        let mut rest = qty;
        if let Some(part) = special.hidden {
            let taken = rest.min(self.hidden.order(part).expect("it is open").qty);
            rest = Qty(rest.0 - taken.0);
            if !taken.is_zero() && self.hidden.reduce(part, taken).is_zero() {
                special.hidden = None;
            }
        }
        if let Some(part) = special.stop {
            self.stops.reduce(part, rest);
            rest = Qty::ZERO;
        }
        let (instrument, displayed) = (special.instrument, special.displayed);
        self.update_listing(instrument);
        (displayed, rest)
    }

    /// Who trades next of all that rests on a side: the best price first, what is displayed before what is not.
    pub(super) fn next_resting(
        &self,
        instrument: InstrumentId,
        side: Side,
    ) -> Option<(Layer, OrderHandle, Order<Owner>)> {
        let displayed = self.books.best_price(instrument, side);
        let hidden = self.hidden.best_price(instrument, side);
        let (layer, books) = match (displayed, hidden) {
            (Some(displayed), Some(hidden)) if side.is_better(hidden, displayed) => {
                (Layer::Hidden, &self.hidden)
            }
            (Some(_), Some(_)) if is_planted(Fault::HiddenBeforeDisplayed) => (Layer::Hidden, &self.hidden),
            (Some(_), _) => (Layer::Displayed, &self.books),
            (None, _) => (Layer::Hidden, &self.hidden),
        };
        let handle = books.front(instrument, side)?;
        Some((layer, handle, books.order(handle)?))
    }

    /// Takes off a resting part what of it was executed. A displayed part that is used up is refreshed from the
    /// rest of its order; an order of which nothing is left is forgotten.
    pub(super) fn fill_resting(
        &mut self,
        layer: Layer,
        handle: OrderHandle,
        resting: &Order<Owner>,
        qty: Qty,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let books = match layer {
            Layer::Displayed => &mut self.books,
            Layer::Hidden => &mut self.hidden,
        };
        if qty < resting.qty {
            books.data_mut(handle).executed += qty.0;
            books.reduce(handle, qty);
            return;
        }
        books.remove(handle);
        self.part_is_gone(layer, resting, resting.data.executed + qty.0, context);
    }

    /// What follows when a part of an order has left its book; `executed` is what the order has executed.
    pub(super) fn part_is_gone(
        &mut self,
        layer: Layer,
        part: &Order<Owner>,
        executed: u64,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let Owner { session, user_ref, .. } = part.data;
        let handle = self.index.find(order_key(session, user_ref)).expect("a resting order is in the index");
        if is_special(handle) {
            let special = self.specials.order_mut(handle);
            match layer {
                Layer::Displayed => special.displayed = None,
                Layer::Hidden => special.hidden = None,
            }
            if let (Layer::Displayed, Some(rest)) = (layer, special.hidden) {
                return self.refresh(handle, rest, executed, context);
            }
            debug_assert!(special.displayed.is_none(), "the undisplayed part of an order goes first");
            self.specials.remove(handle);
            self.update_listing(part.instrument);
        }
        self.forget(session, user_ref);
    }

    /// Displays the next part of an order, at the tail of its level and under a new reference.
    fn refresh(
        &mut self,
        handle: OrderHandle,
        rest: OrderHandle,
        executed: u64,
        context: &mut Context<'_, impl EventListener>,
    ) {
        let hidden = self.hidden.order(rest).expect("it is open");
        let id = if is_planted(Fault::ReserveKeepsReference) { hidden.id } else { self.next_order_id() };
        let special = self.specials.order_mut(handle);
        let shows_all = is_planted(Fault::ReserveShowsAll);
        let qty = if shows_all { hidden.qty } else { special.terms.display_qty.min(hidden.qty) };
        if self.hidden.reduce(rest, qty).is_zero() {
            special.hidden = None;
        }
        let Order { instrument, side, price, data, .. } = hidden;
        let shown = Order { id, qty, data: Owner { executed, ..data }, ..hidden };
        special.displayed = Some(self.books.add(shown).expect("the part before it made room"));
        self.update_listing(instrument);
        self.publish(instrument, MarketEventKind::Add { order_id: id, side, price, qty }, context);
        let kind = OrderEventKind::Restated { user_ref: data.user_ref, order_id: id, display_qty: qty };
        context.tell(data.session, false, kind);
    }

    /// A mistake, made only when it is planted: an order of one part goes behind those of its level.
    #[cold]
    pub(super) fn send_to_tail(&mut self, handle: OrderHandle) {
        let order = self.books.remove(handle);
        let again = self.books.add(order).expect("it was there before");
        let key = order_key(order.data.session, order.data.user_ref);
        match self.index.remove(key) {
            Some(known) if is_special(known) => {
                self.specials.order_mut(known).displayed = Some(again);
                self.index.insert(key, known).expect("it was there before");
            }
            _ => self.index.insert(key, again).expect("it was there before"),
        }
    }

    /// Drops what is kept of an order beside the books, and returns what the index had.
    #[inline]
    pub(super) fn forget(&mut self, session: SessionId, user_ref: UserRefNum) -> OrderHandle {
        self.sessions[usize::from(session.0)].open_orders -= 1;
        self.index.remove(order_key(session, user_ref)).expect("a resting order is in the index")
    }

    /// Quantity of all that rests on a side by price, from the best, displayed or not.
    pub(super) fn all_levels(
        &self,
        instrument: InstrumentId,
        side: Side,
    ) -> impl Iterator<Item = (Price, u64)> {
        let mut displayed = self.books.levels(instrument, side).peekable();
        let mut hidden = self.hidden.levels(instrument, side).peekable();
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
}

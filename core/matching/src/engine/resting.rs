//! Orders that rest, wherever their quantity is: displayed, undisplayed, or waiting for a stop price.

use tickpath_book::{BookLimits, IndexLimits, Order, OrderBooks, OrderHandle, OrderIndex};
use tickpath_faults::{failpoint, if_planted};
use tickpath_types::{EnterOrder, InstrumentId, OrderId, Price, Qty, SessionId, Side, UserRefNum};

use super::listing::Listings;
use super::owner::{Owner, order_key};
use super::special::{SpecialOrder, Specials, is_special, needs_entry, parts_of};
use super::stops::Stops;
use crate::EngineLimits;

/// In which books a part of an order rests that can trade.
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

/// An order that was removed from the books.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removed {
    pub(super) instrument: InstrumentId,
    pub(super) leaves: Qty,
    /// The reference under which it was displayed.
    pub(super) displayed: Option<OrderId>,
}

/// The three books that an order can rest in.
#[derive(Clone, Copy, Debug)]
enum Shelf {
    Displayed,
    Hidden,
    Stop,
}

/// A part of an order that is carried into the next day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    shelf: Shelf,
    /// The part's, in its book.
    pub(super) handle: OrderHandle,
    /// The order's.
    pub(super) entry: OrderHandle,
}

impl Carried {
    pub(super) const fn is_displayed(&self) -> bool {
        matches!(self.shelf, Shelf::Displayed)
    }
}

/// The books of all orders that rest, their index by [`order_key`], and the entries of special orders.
#[derive(Clone, Debug)]
pub(super) struct Resting<B> {
    /// Displayed orders and displayed parts.
    pub(super) books: B,
    /// Undisplayed quantity that can trade: hidden orders, and the rest of orders displayed in parts.
    pub(super) hidden: B,
    /// Orders that wait for their stop price.
    pub(super) stops: Stops<B>,
    /// Open orders by [`order_key`].
    pub(super) index: OrderIndex,
    pub(super) specials: Specials,
}

impl<B: OrderBooks<Owner>> Resting<B> {
    /// Empty, with memory that is touched as it comes into use, for instruments up to `max_instrument`.
    pub(super) fn untouched(max_instrument: InstrumentId, limits: &EngineLimits) -> Resting<B> {
        let special = BookLimits::new(max_instrument, limits.max_special_orders);
        let displayed = BookLimits::new(max_instrument, limits.max_resting());
        let index = IndexLimits {
            blocks: u32::from(limits.max_sessions),
            max_pages: limits.max_index_pages,
            max_pages_per_block: limits.max_index_pages_per_session,
            // Clients choose their numbers, and would choose those that collide.
            max_hashed: 0,
        };
        Resting {
            books: B::untouched(displayed),
            hidden: B::untouched(special),
            stops: Stops::untouched(special, limits.max_special_orders),
            // The least number is 1, so the numbers of a new day lie on as few pages as possible.
            index: OrderIndex::untouched(index).with_base(order_key(SessionId(0), UserRefNum(1))),
            specials: Specials::new(limits.max_special_orders),
        }
    }

    /// Touches all memory that is not yet.
    pub(super) fn prefault(&mut self) {
        for books in [&mut self.books, &mut self.hidden, &mut self.stops.books] {
            books.prefault();
        }
        self.index.prefault();
    }

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

    /// The displayed part of the open order that a session calls by this number; `None` when nothing is.
    pub(super) fn displayed_part(&self, session: SessionId, user_ref: UserRefNum) -> Option<OrderHandle> {
        let handle = self.index.find(order_key(session, user_ref))?;
        if is_special(handle) { self.specials.order(handle).displayed } else { Some(handle) }
    }

    /// The part that says what was executed, with the order's own side, and what is left of all parts.
    #[cold]
    pub(super) fn special_whole(&self, special: &SpecialOrder) -> (Order<Owner>, Qty) {
        let part = |books: &B, handle: Option<OrderHandle>| handle.and_then(|handle| books.order(handle));
        let parts = [
            part(&self.books, special.displayed),
            part(&self.hidden, special.hidden),
            part(&self.stops.books, special.stop),
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

    /// True when the index and the entries of special orders have room for an order.
    pub(super) fn has_room(&self, session: SessionId, order: &EnterOrder) -> bool {
        self.index.has_room(order_key(session, order.user_ref))
            && (!needs_entry(order) || self.specials.has_room(parts_of(order)))
    }

    /// The same of an order that takes the place of `old`. The books have room, as an order leaves them first; so has the
    /// limit of special orders for what the old one takes of it.
    pub(super) fn has_room_for_replacement(
        &self,
        session: SessionId,
        old: &Open,
        order: &EnterOrder,
    ) -> bool {
        let freed = match is_special(old.handle) {
            true => u64::from(self.specials.order(old.handle).parts),
            false => 0,
        };
        let parts = if needs_entry(order) { parts_of(order) } else { 0 };
        self.index.has_room(order_key(session, order.user_ref))
            && self.specials.has_room(parts.saturating_sub(freed))
    }

    /// Takes an order out of the books. The index and its session are the caller's.
    #[inline(always)]
    pub(super) fn remove(&mut self, handle: OrderHandle, listings: &mut Listings) -> Removed {
        if is_special(handle) {
            return self.remove_special(handle, listings);
        }
        let order = self.books.remove(handle);
        Removed { instrument: order.instrument, leaves: order.qty, displayed: Some(order.id) }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn remove_special(&mut self, handle: OrderHandle, listings: &mut Listings) -> Removed {
        let special = self.specials.remove(handle);
        let displayed = special.displayed.map(|handle| self.books.remove(handle));
        let hidden = special.hidden.map(|handle| self.hidden.remove(handle));
        let stop = special.stop.map(|handle| self.stops.books.remove(handle));
        self.update_listing(special.instrument, listings);
        let qty = |order: Option<Order<Owner>>| order.map_or(0, |order| order.qty.0);
        Removed {
            instrument: special.instrument,
            leaves: Qty(qty(displayed) + qty(hidden) + qty(stop)),
            displayed: displayed.map(|order| order.id),
        }
    }

    /// Takes `qty` off the undisplayed parts, as far as it goes; returns the displayed part and what is
    /// left to take.
    #[cold]
    pub(super) fn reduce_undisplayed(
        &mut self,
        handle: OrderHandle,
        qty: Qty,
        listings: &mut Listings,
    ) -> (Option<OrderHandle>, Qty) {
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
            self.stops.books.reduce(part, rest);
            rest = Qty::ZERO;
        }
        let (instrument, displayed) = (special.instrument, special.displayed);
        self.update_listing(instrument, listings);
        (displayed, rest)
    }

    /// Takes out the orders that wait for a price from `low` to `high`, to be worked.
    #[cold]
    #[inline(never)]
    pub(super) fn trigger(
        &mut self,
        instrument: InstrumentId,
        low: Price,
        high: Price,
        listings: &mut Listings,
    ) {
        let Resting { stops, index, specials, .. } = self;
        stops.collect(instrument, low, high, |owner| {
            let handle = index.find(order_key(owner.session, owner.user_ref));
            let special = specials.order_mut(handle.expect("an order that waits is in the index"));
            special.stop = None;
            special.entry
        });
        self.update_listing(instrument, listings);
    }

    /// Recomputes whether an instrument's orders need a second look.
    #[cold]
    pub(super) fn update_listing(&self, id: InstrumentId, listings: &mut Listings) {
        let is_empty = |books: &B| Side::BOTH.iter().all(|side| books.best(id, *side).is_none());
        if let Some(listing) = listings.find_mut(id) {
            listing.update(!is_empty(&self.hidden), !is_empty(&self.stops.books));
        }
    }

    /// Who trades next of all that rests on a side: the best price first, what is displayed before what is not.
    pub(super) fn next(
        &self,
        instrument: InstrumentId,
        side: Side,
    ) -> Option<(Layer, OrderHandle, Order<Owner>)> {
        let displayed = self.books.best_price(instrument, side);
        let hidden = self.hidden.best_price(instrument, side);
        failpoint!(HiddenBeforeDisplayed: displayed = displayed.filter(|_| hidden.is_none()));
        let (layer, books) = match (displayed, hidden) {
            (Some(displayed), Some(hidden)) if side.is_better(hidden, displayed) => {
                (Layer::Hidden, &self.hidden)
            }
            (Some(_), _) => (Layer::Displayed, &self.books),
            (None, _) => (Layer::Hidden, &self.hidden),
        };
        let handle = books.front(instrument, side)?;
        Some((layer, handle, books.order(handle)?))
    }

    /// Orders of a side in the order in which they would trade, an order that is shown in parts as far as its parts
    /// come before the hidden orders of its price. The first of a pair is true for what such an order does not show.
    pub(super) fn in_trading_order(
        &self,
        instrument: InstrumentId,
        side: Side,
    ) -> impl Iterator<Item = (bool, Order<Owner>)> {
        let is_rest = |order: &Order<Owner>| {
            let Owner { session, user_ref, .. } = order.data;
            let handle = self.index.find(order_key(session, user_ref)).expect("what rests is in the index");
            self.specials.order(handle).displayed.is_some()
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

    /// Adds the parts of all orders of an instrument that rest, in the order of the books.
    pub(super) fn collect_parts(&self, instrument: InstrumentId, parts: &mut Vec<Carried>) {
        for side in Side::BOTH {
            for (shelf, books) in [
                (Shelf::Displayed, &self.books),
                (Shelf::Hidden, &self.hidden),
                (Shelf::Stop, &self.stops.books),
            ] {
                parts.extend(books.orders(instrument, side).map(|(handle, order)| {
                    let Owner { session, user_ref, .. } = order.data;
                    let entry = self.index.find(order_key(session, user_ref));
                    Carried { shelf, handle, entry: entry.expect("what rests is in the index") }
                }));
            }
        }
    }

    /// Takes a part out and puts it at the tail of its level under its order's new number and reference, and returns it.
    /// All parts are, so they keep their order.
    pub(super) fn put_back(&mut self, carried: Carried, id: OrderId) -> Order<Owner> {
        let Carried { shelf, handle, entry } = carried;
        let special = self.specials.order_mut(entry);
        let (books, place) = match shelf {
            Shelf::Displayed => (&mut self.books, &mut special.displayed),
            Shelf::Hidden => (&mut self.hidden, &mut special.hidden),
            Shelf::Stop => (&mut self.stops.books, &mut special.stop),
        };
        let old = books.remove(handle);
        let new = Order { id, data: Owner { user_ref: special.user_ref, ..old.data }, ..old };
        *place = Some(books.add(new).expect("it was there before"));
        new
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
                    self.specials.order_mut(known).displayed = Some(again);
                    self.index.insert(key, known).expect("it was there before");
                }
                _ => self.index.insert(key, again).expect("it was there before"),
            }
        }
    }
}

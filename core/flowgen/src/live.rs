//! Open orders of the background flow, according to the order events that it received.

use std::fmt;

use tickpath_types::{Price, Qty, Side, UserRefNum};

/// Slots per open order of a full session. With spare slots, few `UserRefNum`s are skipped.
const PLACES_PER_ORDER: usize = 2;
/// Maximum number of open orders of a session, as a multiple of an equal share of all orders.
const SHARES_PER_SESSION: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveOrder {
    pub session: u16,
    pub user_ref: UserRefNum,
    /// Index of the instrument.
    pub instrument: u16,
    pub side: Side,
    pub price: Price,
    /// Order quantity, including the executed part.
    pub qty: Qty,
    pub cum_qty: Qty,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    order: LiveOrder,
    /// Index of the order in its instrument's list.
    listed_at: u32,
}

#[derive(Clone, Debug)]
struct Session {
    /// Slots by the low bits of the `UserRefNum`; `None` without an open order.
    slots: Box<[Option<Slot>]>,
    next_user_ref: u32,
    len: usize,
}

impl Session {
    /// True if a `UserRefNum` is left. `u32::MAX` is never used, so `next_user_ref` cannot overflow.
    const fn has_numbers(&self) -> bool {
        self.next_user_ref != u32::MAX
    }
}

/// Session and slot of an order.
#[derive(Clone, Copy, Debug)]
struct Place {
    session: u16,
    slot: u32,
}

/// Open orders by session and `UserRefNum`, and by instrument. The capacity is fixed and allocated once.
#[derive(Clone)]
pub(crate) struct LiveOrders {
    sessions: Box<[Session]>,
    by_instrument: Box<[Vec<Place>]>,
    max_per_instrument: usize,
    max_per_session: usize,
}

impl fmt::Debug for LiveOrders {
    /// Prints only the number of open orders per instrument: there are thousands of orders.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open: Vec<usize> = self.by_instrument.iter().map(Vec::len).collect();
        f.debug_struct("LiveOrders").field("open", &open).finish_non_exhaustive()
    }
}

impl LiveOrders {
    pub fn new(session_count: u16, instrument_count: usize, max_per_instrument: usize) -> LiveOrders {
        let sessions = usize::from(session_count);
        let total = instrument_count * max_per_instrument;
        let max_per_session = total.div_ceil(sessions) * SHARES_PER_SESSION;
        let places = (max_per_session * PLACES_PER_ORDER).next_power_of_two();
        let session = Session { slots: vec![None; places].into(), next_user_ref: 1, len: 0 };
        LiveOrders {
            sessions: vec![session; sessions].into(),
            by_instrument: (0..instrument_count).map(|_| Vec::with_capacity(max_per_instrument)).collect(),
            max_per_instrument,
            max_per_session,
        }
    }

    pub fn len(&self, instrument: u16) -> usize {
        self.by_instrument[usize::from(instrument)].len()
    }

    pub fn is_full(&self, instrument: u16) -> bool {
        self.len(instrument) >= self.max_per_instrument
    }

    /// Returns order `index` of an instrument; orders with a higher index are mostly newer.
    pub fn at(&self, instrument: u16, index: usize) -> &LiveOrder {
        let place = self.by_instrument[usize::from(instrument)][index];
        let slot = &self.sessions[usize::from(place.session)].slots[place.slot as usize];
        &slot.as_ref().expect("what is listed is open").order
    }

    /// Returns `session` if it has capacity for an open order and `UserRefNum`s left, otherwise the next such
    /// session. Capacity always exists: the sessions can hold twice as many orders as the instruments.
    pub fn session_with_capacity(&self, session: u16) -> u16 {
        self.nearest(session, |session| session.has_numbers() && session.len < self.max_per_session)
    }

    /// Returns `session` if it has `UserRefNum`s left, otherwise the next session that has.
    pub fn session_with_numbers(&self, session: u16) -> u16 {
        self.nearest(session, Session::has_numbers)
    }

    /// Returns the first suitable session from `session` on, cyclically, or `session` if none is suitable.
    fn nearest(&self, session: u16, is_suitable: impl Fn(&Session) -> bool) -> u16 {
        let count = self.sessions.len() as u16;
        let mut round = (session..count).chain(0..session);
        round.find(|session| is_suitable(&self.sessions[usize::from(*session)])).unwrap_or(session)
    }

    /// Takes the next `UserRefNum` of a session, skipping those whose slot has an open order. Returns `None`
    /// once all are used: a venue accepts each `UserRefNum` only once.
    pub fn take_user_ref(&mut self, session: u16) -> Option<UserRefNum> {
        let session = &mut self.sessions[usize::from(session)];
        let mask = session.slots.len() as u32 - 1;
        while session.has_numbers() {
            let number = session.next_user_ref;
            session.next_user_ref += 1;
            if session.slots[(number & mask) as usize].is_none() {
                return Some(UserRefNum(number));
            }
        }
        None
    }

    /// Sets the `UserRefNum` of a session's next order.
    pub fn number_from(&mut self, session: u16, first: UserRefNum) {
        self.sessions[usize::from(session)].next_user_ref = first.0;
    }

    /// Adds an order whose `UserRefNum` was just taken; its instrument must not be full.
    pub fn insert(&mut self, order: LiveOrder) {
        let list = &mut self.by_instrument[usize::from(order.instrument)];
        let session = &mut self.sessions[usize::from(order.session)];
        let slot = order.user_ref.0 & (session.slots.len() as u32 - 1);
        session.slots[slot as usize] = Some(Slot { order, listed_at: list.len() as u32 });
        session.len += 1;
        list.push(Place { session: order.session, slot });
    }

    pub fn find(&mut self, session: u16, user_ref: UserRefNum) -> Option<&mut LiveOrder> {
        let session = self.sessions.get_mut(usize::from(session))?;
        let slot = user_ref.0 & (session.slots.len() as u32 - 1);
        let order = &mut session.slots[slot as usize].as_mut()?.order;
        (order.user_ref == user_ref).then_some(order)
    }

    pub fn remove(&mut self, session: u16, user_ref: UserRefNum) {
        let Some(order) = self.find(session, user_ref).copied() else { return };
        let owner = &mut self.sessions[usize::from(session)];
        let slot = (user_ref.0 & (owner.slots.len() as u32 - 1)) as usize;
        let Some(Slot { listed_at: index, .. }) = owner.slots[slot].take() else { return };
        owner.len -= 1;
        let list = &mut self.by_instrument[usize::from(order.instrument)];
        list.swap_remove(index as usize);
        if let Some(moved) = list.get(index as usize)
            && let Some(moved) = &mut self.sessions[usize::from(moved.session)].slots[moved.slot as usize]
        {
            moved.listed_at = index;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(user_ref: UserRefNum, instrument: u16) -> LiveOrder {
        let (side, price, qty) = (Side::Sell, Price(5), Qty(1));
        LiveOrder { session: 0, user_ref, instrument, side, price, qty, cum_qty: Qty::ZERO }
    }

    #[test]
    fn orders_are_found_until_removed_and_numbers_skip_used_slots() {
        let mut live = LiveOrders::new(1, 1, 2);
        let places = live.sessions[0].slots.len() as u32;
        let old = live.take_user_ref(0).unwrap();
        live.insert(order(old, 0));
        let mut last = old;
        for _ in 0..3 * places {
            let user_ref = live.take_user_ref(0).unwrap();
            assert!(user_ref > last && !(user_ref.0 - old.0).is_multiple_of(places));
            last = user_ref;
        }
        live.insert(order(last, 0));
        assert!(live.is_full(0));
        live.remove(0, old);
        assert_eq!((live.len(0), live.at(0, 0).user_ref), (1, last));
        assert!(live.find(0, old).is_none() && live.find(0, last).is_some() && live.find(9, last).is_none());
        live.remove(0, last);
        live.remove(0, last);
        assert_eq!(live.len(0), 0);
    }

    #[test]
    fn a_full_session_passes_the_order_on() {
        let mut live = LiveOrders::new(2, 4, 2);
        for instrument in 0..4 {
            for _ in 0..2 {
                assert_eq!(live.session_with_capacity(0), 0);
                let user_ref = live.take_user_ref(0).unwrap();
                live.insert(order(user_ref, instrument));
            }
        }
        assert_eq!(live.sessions[0].len, live.max_per_session);
        assert_eq!(live.session_with_capacity(0), 1);
    }

    #[test]
    fn a_session_without_numbers_is_skipped() {
        let mut live = LiveOrders::new(2, 1, 2);
        live.number_from(0, UserRefNum(u32::MAX - 2));
        let last = [0; 2].map(|session| live.take_user_ref(session).map(|user_ref| user_ref.0));
        assert_eq!(last, [Some(u32::MAX - 2), Some(u32::MAX - 1)]);
        assert_eq!((live.take_user_ref(0), live.take_user_ref(0)), (None, None), "none comes twice");
        assert_eq!((live.session_with_capacity(0), live.session_with_numbers(0)), (1, 1));
        live.number_from(1, UserRefNum(u32::MAX));
        assert_eq!((live.session_with_capacity(0), live.take_user_ref(1)), (0, None));
    }
}

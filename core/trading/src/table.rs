//! Storage of own orders: a table indexed by UserRefNum, and linked lists of its slots.

use tickpath_faults::failpoint;
use tickpath_types::{EnterOrder, InstrumentId, Price, Qty, Side, UserRefNum};

use crate::{OwnOrder, OwnState};
use tickpath_lockfree::cpu;

/// Link that marks the end of a list.
pub(crate) const NIL: u32 = u32::MAX;

/// Number of slots per open order that the table can hold. At 4, the slot of the next UserRefNum is nearly
/// always free, and a dead order stays in its slot for a while, so that a late event finds it.
const SLOTS_PER_ORDER: usize = 4;

#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub order: OwnOrder,
    pub next: u32,
    prev: u32,
    /// Quantity that the order adds to the maximum exposure of its side.
    exposure: Qty,
    pub is_accepted: bool,
    pub is_cancel_sent: bool,
    /// Intended size after the pending reduction; zero for a cancel.
    pub cancel_to: Qty,
    /// True if the status of a request is unknown: the connection was lost or the venue dropped a request
    /// before the answer, or a replacement's original was removed. If the venue then accepts the order, it is
    /// open again.
    pub is_unresolved: bool,
    /// UserRefNum of the latest order sent to replace this one; 0 for none.
    pub replacement: UserRefNum,
}

impl Slot {
    /// Creates the slot of an unanswered order at the tail of its list.
    const fn new(order: OwnOrder, prev: u32, exposure: Qty) -> Slot {
        Slot {
            order,
            next: NIL,
            prev,
            exposure,
            is_accepted: false,
            is_cancel_sent: false,
            cancel_to: Qty::ZERO,
            is_unresolved: false,
            replacement: UserRefNum(0),
        }
    }
}

/// A doubly linked list of the open orders of one instrument and side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
    pub len: u32,
    pub exposure: Qty,
}

impl List {
    const EMPTY: List = List { first: NIL, last: NIL, len: 0, exposure: Qty::ZERO };
}

/// Own orders, each in slot `UserRefNum % slots.len()`; lists link the open ones per instrument and side.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Box<[Slot]>,
    lists: Box<[List]>,
    len: usize,
    capacity: usize,
}

impl Table {
    pub fn new(instrument_count: usize, capacity: usize) -> Table {
        let capacity = capacity.max(1);
        let none = EnterOrder::limit(UserRefNum(0), InstrumentId(0), Side::Buy, Qty::ZERO, Price(0));
        let none = OwnOrder { state: OwnState::Dead, ..OwnOrder::sent(&none) };
        Table {
            slots: vec![Slot::new(none, NIL, Qty::ZERO); (capacity * SLOTS_PER_ORDER).next_power_of_two()]
                .into(),
            lists: vec![List::EMPTY; instrument_count * 2].into(),
            len: 0,
            capacity,
        }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    pub const fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    fn slot_index(&self, user_ref: UserRefNum) -> usize {
        user_ref.0 as usize & (self.slots.len() - 1)
    }

    /// Returns the first UserRefNum that is at least `user_ref` and has a free slot. At most a quarter of the
    /// slots are taken, so the search ends within a quarter of the table.
    pub fn free_from(&self, user_ref: u32) -> Option<UserRefNum> {
        (user_ref..=u32::MAX)
            .map(UserRefNum)
            .take(self.slots.len())
            .find(|user_ref| !self.slots[self.slot_index(*user_ref)].order.is_open())
    }

    /// Returns the slot of the open order with this UserRefNum.
    pub fn find(&self, user_ref: UserRefNum) -> Option<&Slot> {
        let slot = &self.slots[self.slot_index(user_ref)];
        (slot.order.user_ref == user_ref && slot.order.is_open()).then_some(slot)
    }

    pub fn find_mut(&mut self, user_ref: UserRefNum) -> Option<&mut Slot> {
        let slot_index = self.slot_index(user_ref);
        let slot = &mut self.slots[slot_index];
        (slot.order.user_ref == user_ref && slot.order.is_open()).then_some(slot)
    }

    pub fn get(&self, user_ref: UserRefNum) -> Option<&OwnOrder> {
        self.find(user_ref).map(|slot| &slot.order)
    }

    pub fn get_mut(&mut self, user_ref: UserRefNum) -> Option<&mut OwnOrder> {
        self.find_mut(user_ref).map(|slot| &mut slot.order)
    }

    /// Returns the slot of the order with this UserRefNum, open or dead; `None` once the slot is reused.
    pub fn last_known(&self, user_ref: UserRefNum) -> Option<&Slot> {
        let slot = &self.slots[self.slot_index(user_ref)];
        (slot.order.user_ref == user_ref).then_some(slot)
    }

    pub fn last_known_mut(&mut self, user_ref: UserRefNum) -> Option<&mut OwnOrder> {
        let order = &mut self.slots[self.slot_index(user_ref)].order;
        (order.user_ref == user_ref).then_some(order)
    }

    pub fn at(&self, slot_index: u32) -> &Slot {
        &self.slots[slot_index as usize]
    }

    pub fn list(&self, instrument: InstrumentId, side: Side) -> Option<&List> {
        self.lists.get(Self::list_index(instrument, side))
    }

    pub fn first(&self, instrument: InstrumentId, side: Side) -> u32 {
        self.list(instrument, side).map_or(NIL, |list| list.first)
    }

    const fn list_index(instrument: InstrumentId, side: Side) -> usize {
        (2 * instrument.0 as usize + side.index()).wrapping_sub(2)
    }

    /// Returns slot and UserRefNum of the first open order at or after slot `from` that `is_chosen` accepts.
    pub fn next_open(&self, from: usize, is_chosen: impl Fn(&Slot) -> bool) -> Option<(usize, UserRefNum)> {
        let rest = self.slots.get(from..)?;
        let offset = rest.iter().position(|slot| slot.order.is_open() && is_chosen(slot))?;
        Some((from + offset, rest[offset].order.user_ref))
    }

    /// Returns every slot with an open order.
    pub fn open_slots_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.slots.iter_mut().filter(|slot| slot.order.is_open())
    }

    /// Prefetches the slot of a future order, which is rarely in the cache.
    pub fn prefetch(&self, user_ref: u32) {
        let slot_index = self.slot_index(UserRefNum(user_ref));
        cpu::prefetch_lines_write(&self.slots[slot_index]);
    }

    /// Marks every order dead and empties the lists.
    pub fn clear(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.order.state = OwnState::Dead);
        self.lists.fill(List::EMPTY);
        self.len = 0;
    }

    /// Adds an order at the tail of its list; its instrument must exist and its slot be free.
    pub fn insert(&mut self, order: OwnOrder, exposure: Qty) {
        let slot_index = self.slot_index(order.user_ref);
        debug_assert!(!self.slots[slot_index].order.is_open(), "the number was chosen for its free place");
        let list = &mut self.lists[Self::list_index(order.instrument, order.side)];
        let prev = list.last;
        let link = u32::try_from(slot_index).expect("the table is no larger than the numbers");
        list.last = link;
        list.len += 1;
        list.exposure.0 = list.exposure.0.saturating_add(exposure.0);
        match prev {
            NIL => list.first = link,
            prev => self.slots[prev as usize].next = link,
        }
        self.slots[slot_index] = Slot::new(order, prev, exposure);
        self.len += 1;
    }

    /// Marks an open order dead and removes it from its list; its data stays in its slot.
    pub fn remove(&mut self, user_ref: UserRefNum) {
        let Some(slot) = self.find_mut(user_ref) else { return };
        slot.order.state = OwnState::Dead;
        let (prev, next, exposure) = (slot.prev, slot.next, slot.exposure);
        let index = Self::list_index(slot.order.instrument, slot.order.side);
        let list = &mut self.lists[index];
        list.len -= 1;
        failpoint!(RiskNotReleased: exposure = Qty::ZERO);
        list.exposure.0 = list.exposure.0.saturating_sub(exposure.0);
        match prev {
            NIL => list.first = next,
            prev => self.slots[prev as usize].next = next,
        }
        match next {
            NIL => self.lists[index].last = prev,
            next => self.slots[next as usize].prev = prev,
        }
        self.len -= 1;
    }

    /// Changes the exposure that an open order adds to its side.
    pub fn set_exposure(&mut self, user_ref: UserRefNum, exposure: Qty) {
        let Some(slot) = self.find_mut(user_ref) else { return };
        let before = std::mem::replace(&mut slot.exposure, exposure);
        let index = Self::list_index(slot.order.instrument, slot.order.side);
        let total = &mut self.lists[index].exposure.0;
        *total = total.saturating_sub(before.0).saturating_add(exposure.0);
    }
}

//! The memory layout of orders and levels: records in flat arrays, linked by index.
//!
//! The orders of a level are a list, so removing one needs no search.

use std::hint::select_unpredictable;

use tickpath_types::{InstrumentId, OrderId, Price, Qty, Side};

use crate::{Level, Order, QueuePosition};

/// The null slot of orders and levels: slot 0 of both arrays. Ends of lists link to it. Its contents have no
/// effect, so the hot path need not check whether there is a neighbour.
pub(crate) const NIL: u32 = 0;

/// Key of a price: the greater key is always the better price of its side. An ask's bits are inverted, which
/// reverses the order of integers without overflow. Branchless, since a CPU cannot predict the side.
#[inline(always)]
pub(crate) const fn key(side: Side, price: Price) -> i64 {
    price.0 ^ -(side as i64)
}

/// Index of a side among those of all instruments.
#[inline(always)]
pub(crate) const fn side_index(instrument: InstrumentId, side: Side) -> u32 {
    instrument.0 as u32 * 2 + side as u32
}

/// An order, or a free record.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct OrderRecord {
    pub(crate) id: u64,
    pub(crate) qty: u64,
    pub(crate) level: u32,
    pub(crate) prev: u32,
    pub(crate) next: u32,
    /// In the first record of a hash table bucket: the bucket's state.
    pub(crate) bucket: u32,
}

/// A level, open while it has orders.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct LevelRecord {
    pub(crate) key: i64,
    pub(crate) qty: u64,
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) order_count: u32,
    pub(crate) instrument: InstrumentId,
    pub(crate) side: Side,
    /// In a cell's record: counts of the levels that belong to this cell but are in the ladder.
    pub(crate) outside: Outside,
}

const _: () = assert!(size_of::<OrderRecord>() == 32 && size_of::<LevelRecord>() == 32);

/// The orders in the queues of levels. Writes to slot NIL have no effect.
pub trait Queues {
    /// The slot of the order behind the one in `slot`; NIL for the last of its level.
    fn next(&self, slot: u32) -> u32;

    /// The quantity of an order.
    fn qty(&self, slot: u32) -> u64;

    /// Sets the order behind the one in `slot`.
    fn set_next(&mut self, slot: u32, next: u32);

    /// Sets the order ahead of the one in `slot`.
    fn set_prev(&mut self, slot: u32, prev: u32);

    /// Sets the level of an order.
    fn set_level(&mut self, slot: u32, level: u32);

    /// Sets the fields of an order that is the last of its level: `prev` is ahead of it, none behind it.
    fn enter_queue(&mut self, slot: u32, qty: Qty, level: u32, prev: u32);
}

impl Queues for [OrderRecord] {
    #[inline(always)]
    fn next(&self, slot: u32) -> u32 {
        self[slot as usize].next
    }

    #[inline(always)]
    fn qty(&self, slot: u32) -> u64 {
        self[slot as usize].qty
    }

    #[inline(always)]
    fn set_next(&mut self, slot: u32, next: u32) {
        self[slot as usize].next = next;
    }

    #[inline(always)]
    fn set_prev(&mut self, slot: u32, prev: u32) {
        self[slot as usize].prev = prev;
    }

    #[inline(always)]
    fn set_level(&mut self, slot: u32, level: u32) {
        self[slot as usize].level = level;
    }

    #[inline(always)]
    fn enter_queue(&mut self, slot: u32, qty: Qty, level: u32, prev: u32) {
        let record = &mut self[slot as usize];
        (record.qty, record.level, record.prev, record.next) = (qty.0, level, prev, NIL);
    }
}

impl OrderRecord {
    pub(crate) const FREE: OrderRecord =
        OrderRecord { id: 0, qty: 0, level: NIL, prev: NIL, next: NIL, bucket: 0 };

    /// The order with the caller's `data`; `level` is its level.
    #[inline(always)]
    pub(crate) const fn view<T: Copy>(&self, level: &LevelRecord, data: T) -> Order<T> {
        Order {
            id: OrderId(self.id),
            instrument: level.instrument,
            side: level.side,
            price: level.price(),
            qty: Qty(self.qty),
            data,
        }
    }
}

impl LevelRecord {
    #[inline(always)]
    pub(crate) const fn closed(instrument: InstrumentId, side: Side) -> LevelRecord {
        let (key, qty, order_count, outside) = (0, 0, 0, Outside::NONE);
        LevelRecord { key, qty, head: NIL, tail: NIL, order_count, instrument, side, outside }
    }

    /// An empty level with this key; `side` is a [`side_index`].
    #[inline(always)]
    pub(crate) const fn opened(side: u32, key: i64) -> LevelRecord {
        let instrument = InstrumentId((side >> 1) as u16);
        Self { key, ..Self::closed(instrument, if side & 1 == 0 { Side::Buy } else { Side::Sell }) }
    }

    #[inline(always)]
    pub(crate) const fn price(&self) -> Price {
        Price(key(self.side, Price(self.key)))
    }

    #[inline(always)]
    pub(crate) const fn side_index(&self) -> u32 {
        side_index(self.instrument, self.side)
    }

    #[inline(always)]
    pub(crate) const fn view(&self) -> Level {
        Level { price: self.price(), qty: Qty(self.qty), order_count: self.order_count }
    }

    /// True if this is the level of a key and a side, and has orders.
    #[inline(always)]
    pub(crate) const fn is_open_for(&self, side: u32, key: i64) -> bool {
        self.order_count > 0 && self.key == key && self.side_index() == side
    }

    /// Zero if this record of a cell has the level of `key`, or is empty and may get it: no level of this wrap
    /// is in the ladder. Branchless: no CPU could predict whether the level is open.
    #[inline(always)]
    pub(crate) fn conflict(&self, key: i64, wrap: u32) -> u64 {
        let outside_levels = u64::from(self.outside.count(wrap));
        let other_key = (self.key ^ key).cast_unsigned();
        select_unpredictable(self.order_count == 0, outside_levels, other_key)
    }

    /// Appends the order in `slot` to this level, which has the index `own` and gets the quantity `total`.
    #[inline(always)]
    pub(crate) fn append(
        &mut self,
        own: u32,
        total: u64,
        orders: &mut (impl Queues + ?Sized),
        slot: u32,
        qty: Qty,
    ) {
        self.qty = total;
        self.order_count += 1;
        let tail = self.tail;
        self.tail = slot;
        self.head = select_unpredictable(tail == NIL, slot, self.head);
        // The tail of an empty level is NIL, whose record has no effect.
        orders.set_next(tail, slot);
        orders.enter_queue(slot, qty, own, tail);
    }

    /// Removes the order in `slot`, which has the contents `record`, from this level.
    #[inline(always)]
    pub(crate) fn unlink(&mut self, orders: &mut (impl Queues + ?Sized), slot: u32, record: &OrderRecord) {
        let OrderRecord { qty, prev, next, .. } = *record;
        self.qty -= qty;
        self.order_count -= 1;
        self.head = select_unpredictable(self.head == slot, next, self.head);
        self.tail = select_unpredictable(self.tail == slot, prev, self.tail);
        // Without a neighbour these write to the NIL record.
        orders.set_next(prev, next);
        orders.set_prev(next, prev);
    }

    /// The slots of the level's orders in time priority.
    pub(crate) fn queue(&self, orders: &(impl Queues + ?Sized)) -> impl Iterator<Item = u32> {
        let known = |slot: u32| Some(slot).filter(|slot| *slot != NIL);
        std::iter::successors(known(self.head), move |slot| known(orders.next(*slot)))
    }

    /// The orders of the level that trade before the one in `slot`.
    pub(crate) fn queue_position(&self, orders: &(impl Queues + ?Sized), slot: u32) -> QueuePosition {
        let ahead = self.queue(orders).take_while(|other| *other != slot);
        ahead.fold(QueuePosition::default(), |position, slot| QueuePosition {
            orders_ahead: position.orders_ahead + 1,
            qty_ahead: Qty(position.qty_ahead.0 + orders.qty(slot)),
        })
    }
}

/// Merges two lists of levels, each from the best, into one from the best.
pub(crate) fn merged(
    levels: &[LevelRecord],
    inside: impl Iterator<Item = u32>,
    outside: impl Iterator<Item = u32>,
) -> impl Iterator<Item = u32> {
    let (mut inside, mut outside) = (inside.peekable(), outside.peekable());
    let key = |index: u32| levels[index as usize].key;
    std::iter::from_fn(move || match (inside.peek(), outside.peek()) {
        (Some(near), Some(far)) if key(*near) < key(*far) => outside.next(),
        (Some(_), _) => inside.next(),
        (None, _) => outside.next(),
    })
}

/// For one cell: counts of the levels that belong to it but are in the ladder, with two bits for each
/// ring wrap modulo 4. A count that reaches three stays there. While it is zero, a level of that wrap may be
/// opened in its cell without a search of the ladder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outside(u8);

impl Outside {
    pub(crate) const NONE: Outside = Outside(0);
    /// Levels of every wrap.
    pub(crate) const ALL: Outside = Outside(u8::MAX);
    const COUNT_MAX: u8 = 3;

    #[inline]
    const fn shift(wrap: u32) -> u32 {
        wrap % 4 * 2
    }

    /// A lower bound of the number of levels with this wrap modulo 4; 0 only if there are none.
    #[inline(always)]
    pub(crate) const fn count(self, wrap: u32) -> u8 {
        self.0 >> Outside::shift(wrap) & Outside::COUNT_MAX
    }

    #[inline]
    pub(crate) const fn note(&mut self, wrap: u32) {
        if self.count(wrap) < Outside::COUNT_MAX {
            self.0 += 1 << Outside::shift(wrap);
        }
    }

    #[inline]
    pub(crate) const fn forget(&mut self, wrap: u32) {
        if self.count(wrap) < Outside::COUNT_MAX {
            self.0 -= 1 << Outside::shift(wrap);
        }
    }
}

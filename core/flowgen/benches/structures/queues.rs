//! Orders in one array; the queue of a level is a linked list in it.

use tickpath_book::OrderHandle;

/// The null index: no order.
pub const NIL: u32 = 0;

/// An order; `home` is the location of its level.
#[derive(Clone, Copy, Default)]
pub struct Record<H> {
    /// Order reference.
    pub id: u64,
    /// Remaining quantity.
    pub qty: u64,
    /// Location of its level.
    pub home: H,
    prev: u32,
    next: u32,
}

/// The orders of one level.
#[derive(Clone, Copy, Default)]
pub struct Queue {
    /// Total quantity.
    pub qty: u64,
    /// Number of orders.
    pub order_count: u32,
    head: u32,
    tail: u32,
}

/// The orders of all levels, in one array.
pub struct Orders<H> {
    records: Vec<Record<H>>,
    /// Free records, linked by `next`.
    free: u32,
}

impl<H: Copy + Default> Orders<H> {
    /// Creates an array with this initial capacity.
    pub fn new(capacity: u32) -> Orders<H> {
        let mut records = Vec::with_capacity(capacity as usize + 1);
        records.push(Record::default());
        Orders { records, free: NIL }
    }

    /// Returns an order.
    #[inline]
    pub fn record(&self, handle: OrderHandle) -> &Record<H> {
        &self.records[handle.slot() as usize]
    }

    /// Adds an order at the tail of a queue.
    #[inline]
    pub fn push(&mut self, queue: &mut Queue, id: u64, qty: u64, home: H) -> OrderHandle {
        let record = Record { id, qty, home, prev: queue.tail, next: NIL };
        let slot = self.allocate(record);
        match queue.tail {
            NIL => queue.head = slot,
            tail => self.records[tail as usize].next = slot,
        }
        queue.tail = slot;
        queue.qty += qty;
        queue.order_count += 1;
        OrderHandle::new(slot).expect("slot 0 is never used")
    }

    /// Reduces an order and its queue by `qty`, and returns the remaining quantity.
    #[inline]
    pub fn reduce(&mut self, queue: &mut Queue, handle: OrderHandle, qty: u64) -> u64 {
        let record = &mut self.records[handle.slot() as usize];
        record.qty -= qty;
        queue.qty -= qty;
        record.qty
    }

    /// Removes an order from its queue.
    #[inline]
    pub fn remove(&mut self, queue: &mut Queue, handle: OrderHandle) {
        let slot = handle.slot();
        let Record { qty, prev, next, .. } = *self.record(handle);
        match prev {
            NIL => queue.head = next,
            prev => self.records[prev as usize].next = next,
        }
        match next {
            NIL => queue.tail = prev,
            next => self.records[next as usize].prev = prev,
        }
        queue.qty -= qty;
        queue.order_count -= 1;
        self.records[slot as usize].next = self.free;
        self.free = slot;
    }

    /// Orders of a queue from its head.
    pub fn iter(&self, queue: &Queue) -> impl Iterator<Item = &Record<H>> {
        let record = |slot: u32| (slot != NIL).then(|| &self.records[slot as usize]);
        std::iter::successors(record(queue.head), move |order| record(order.next))
    }

    #[inline]
    fn allocate(&mut self, record: Record<H>) -> u32 {
        if self.free == NIL {
            self.records.push(record);
            return self.records.len() as u32 - 1;
        }
        let slot = self.free;
        self.free = std::mem::replace(&mut self.records[slot as usize], record).next;
        slot
    }
}

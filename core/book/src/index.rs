//! The index from a venue's order ids to handles.

use tickpath_lockfree::cpu::prefetch_index;

use crate::OrderHandle;
use crate::record::NIL;
use crate::table::{Bucket, Buckets, Spot, Table, free_id};

/// Number of orders in a bucket. As many consecutive ids have the same home bucket and fill it exactly.
const BUCKET_LEN: usize = 4;

/// The id was not inserted, and the index is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InsertError {
    /// A bound of the index is reached: refuse the order, or raise the limits.
    #[error("the index has no room for order {0}: its ids are too scattered, or raise its limits")]
    IndexFull(u64),
    /// Another open order has the id: refuse the order.
    #[error("order {0} is already in the index")]
    Duplicate(u64),
}

/// Index of open orders by the venue's ids: a hash table of 32 to 64 bytes per order, allocated at creation.
///
/// Use a [`PageIndex`](crate::PageIndex) if peers choose the ids: they could choose ids that collide.
#[derive(Clone, Debug)]
pub struct OrderIndex(Table<Vec<HandleBucket>>);

impl OrderIndex {
    /// An empty index for `max_orders` open orders, with all memory touched.
    #[must_use]
    pub fn new(max_orders: u32) -> OrderIndex {
        let count = Table::<Vec<HandleBucket>>::bucket_count(max_orders, 2);
        // `black_box` makes the program write the memory now, so that the first orders cause no page faults.
        let buckets = (0..count).map(|number| std::hint::black_box(HandleBucket::empty(number))).collect();
        OrderIndex(Table::new(buckets, count, max_orders))
    }

    /// Handle of the open order with this id.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, id: u64) -> Option<OrderHandle> {
        let spot = self.0.find(id)?;
        OrderHandle::new(self.0.buckets.bucket(spot.bucket).slot(spot))
    }

    /// Enters an order.
    ///
    /// # Errors
    /// [`InsertError`] when a bound is reached or the id is already present; the index is then unchanged.
    #[inline(always)]
    pub fn insert(&mut self, id: u64, handle: OrderHandle) -> Result<(), InsertError> {
        let Some(spot) = self.0.spot_for(id) else { return self.insert_displaced(id, handle) };
        self.0.enter_at(spot, id).set_slot(spot, handle);
        Ok(())
    }

    #[cold]
    fn insert_displaced(&mut self, id: u64, handle: OrderHandle) -> Result<(), InsertError> {
        if self.find(id).is_some() {
            return Err(InsertError::Duplicate(id));
        }
        if self.0.is_full() {
            return Err(InsertError::IndexFull(id));
        }
        let spot = self.0.enter(id);
        self.0.buckets.bucket_mut(spot.bucket).set_slot(spot, handle);
        Ok(())
    }

    /// Removes an order and returns its handle.
    #[inline(always)]
    pub fn remove(&mut self, id: u64) -> Option<OrderHandle> {
        match self.0.spot_of(id) {
            Some(spot) => OrderHandle::new(self.0.take_from(spot).slot(spot)),
            None => self.remove_displaced(id),
        }
    }

    #[cold]
    fn remove_displaced(&mut self, id: u64) -> Option<OrderHandle> {
        let spot = self.0.find(id)?;
        OrderHandle::new(self.0.take(spot).slot(spot))
    }

    /// Prefetches the bucket that [`OrderIndex::find`] of this id will read; returns the bucket's number.
    #[inline(always)]
    pub(crate) fn prefetch(&self, id: u64) -> u32 {
        self.0.prefetch(id)
    }
}

/// Hash bucket of ids and order slots.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct HandleBucket {
    ids: [u64; BUCKET_LEN],
    slots: [u32; BUCKET_LEN],
    state: u32,
}

const _: () = assert!(size_of::<HandleBucket>() == 64);

impl HandleBucket {
    fn empty(number: u32) -> HandleBucket {
        HandleBucket {
            ids: [free_id::<HandleBucket>(number); BUCKET_LEN],
            slots: [NIL; BUCKET_LEN],
            state: 0,
        }
    }

    #[inline(always)]
    fn slot(&self, spot: Spot) -> u32 {
        self.slots[spot.place() as usize % BUCKET_LEN]
    }

    #[inline(always)]
    fn set_slot(&mut self, spot: Spot, handle: OrderHandle) {
        self.slots[spot.place() as usize % BUCKET_LEN] = handle.slot();
    }
}

impl Bucket for HandleBucket {
    const LEN: u32 = BUCKET_LEN as u32;
    const IDS: u64 = BUCKET_LEN as u64;

    #[inline(always)]
    fn matches(&self, id: u64) -> u32 {
        let is_match = |at: usize| u32::from(self.ids[at] == id) << at;
        is_match(0) | is_match(1) | is_match(2) | is_match(3)
    }

    #[inline(always)]
    fn id(&self, place: u32) -> u64 {
        self.ids[place as usize % BUCKET_LEN]
    }

    #[inline(always)]
    fn set_id(&mut self, place: u32, id: u64) {
        self.ids[place as usize % BUCKET_LEN] = id;
    }

    #[inline(always)]
    fn state(&self) -> u32 {
        self.state
    }

    #[inline(always)]
    fn state_mut(&mut self) -> &mut u32 {
        &mut self.state
    }
}

impl Buckets for Vec<HandleBucket> {
    type Bucket = HandleBucket;

    #[inline(always)]
    fn bucket(&self, number: u32) -> &HandleBucket {
        &self[number as usize]
    }

    #[inline(always)]
    fn bucket_mut(&mut self, number: u32) -> &mut HandleBucket {
        &mut self[number as usize]
    }

    #[inline(always)]
    fn prefetch(&self, number: u32) {
        prefetch_index(self, number as usize);
    }
}

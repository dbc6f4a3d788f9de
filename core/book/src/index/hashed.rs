//! Orders by ids of any kind, in one flat table.

use std::hint::select_unpredictable;

use tickpath_lockfree::cpu::prefetch_index;

use crate::OrderHandle;
use crate::record::NIL;
use crate::table::{Bucket, Buckets, Spot, Table, free_id};

/// Orders in one bucket, and ids that follow each other and belong to the same one: ids without gaps fill a bucket and
/// never more.
const BUCKET_LEN: usize = 4;

/// Where an id is looked for first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    pub(crate) id: u64,
    pub(crate) home: u32,
}

/// Ids, and the slots of their orders.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct HandleBucket {
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

/// Handles by id.
pub(super) type Hashed = Table<Vec<HandleBucket>>;

impl Hashed {
    pub(super) fn of_handles(max: u32) -> Hashed {
        let count = Hashed::bucket_count(max, 2);
        // Zeroes would come from the allocator untouched, and page faults with the first orders.
        let buckets = (0..count).map(|number| std::hint::black_box(HandleBucket::empty(number))).collect();
        Table::new(buckets, count, max)
    }

    #[inline(always)]
    pub(super) fn handle(&self, id: u64) -> Option<OrderHandle> {
        let spot = self.find(id)?;
        OrderHandle::new(self.buckets.bucket(spot.bucket).slot(spot))
    }

    /// Enters an order where that takes no more than the ordinary; false where it does, and nothing changed.
    #[inline(always)]
    pub(super) fn insert_directly(&mut self, id: u64, handle: OrderHandle) -> bool {
        let Some(spot) = self.spot_for(id) else { return false };
        self.enter_at(spot, id).set_slot(spot, handle);
        true
    }

    /// Enters an order that is not there, wherever there is room; the caller has made sure that there is.
    pub(super) fn insert(&mut self, id: u64, handle: OrderHandle) {
        let spot = self.enter(id);
        self.buckets.bucket_mut(spot.bucket).set_slot(spot, handle);
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, id: u64) -> Option<OrderHandle> {
        match self.spot_of(id) {
            Some(spot) => OrderHandle::new(self.take_from(spot).slot(spot)),
            None => self.remove_displaced(id),
        }
    }

    #[cold]
    fn remove_displaced(&mut self, id: u64) -> Option<OrderHandle> {
        let spot = self.find(id)?;
        OrderHandle::new(self.take(spot).slot(spot))
    }

    #[inline(always)]
    pub(super) fn entry(&self, id: u64) -> Entry {
        Entry { id, home: self.prefetch(id) }
    }

    /// The order if it is in its own bucket, where nearly all are.
    #[inline(always)]
    pub(super) fn peek(&self, entry: Entry) -> u32 {
        let spot = self.spot_at(entry.home, entry.id);
        select_unpredictable(spot.bit == 0, NIL, self.buckets.bucket(spot.bucket).slot(spot))
    }
}

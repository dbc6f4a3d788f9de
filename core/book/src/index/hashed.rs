//! Orders by ids of any kind, in one flat table.

use std::hint::select_unpredictable;

use tickpath_lockfree::cpu::prefetch_index;

use crate::OrderHandle;

/// The slot and the page of no order. That page stays empty, so that looking up an unknown id needs no branch.
pub(super) const NIL: u32 = 0;
/// Orders in one bucket, and ids that follow each other and belong to the same one: ids without gaps fill a bucket and
/// never more.
const BUCKET_LEN: usize = 4;

/// Where an id is looked for first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    pub(crate) id: u64,
    pub(crate) home: u32,
}

/// One cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Bucket {
    /// Of a place where no order is: an id that belongs to another bucket, so that it is never found here.
    ids: [u64; BUCKET_LEN],
    slots: [u32; BUCKET_LEN],
    /// One bit for each place that has an order.
    used: u32,
    /// Orders that belong here and found no place.
    displaced: u32,
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl Bucket {
    fn empty(index: usize) -> Bucket {
        Bucket { ids: [nobody(index); BUCKET_LEN], slots: [NIL; BUCKET_LEN], used: 0, displaced: 0 }
    }

    /// One bit for the place of this id, if it is here. No branch, for nobody could foresee which.
    #[inline(always)]
    fn matches(&self, id: u64) -> u32 {
        let is_match = |at: usize| u32::from(self.ids[at] == id) << at;
        is_match(0) | is_match(1) | is_match(2) | is_match(3)
    }

    /// One bit for each place that is free.
    #[inline(always)]
    const fn free(&self) -> u32 {
        self.used ^ ((1 << BUCKET_LEN) - 1)
    }

    #[inline(always)]
    fn enter(&mut self, id: u64, handle: OrderHandle) {
        let free = self.free();
        let place = lowest(free);
        self.ids[place] = id;
        self.slots[place] = handle.slot();
        self.used |= free & free.wrapping_neg();
    }

    /// Takes out what is at the place of a bit.
    #[inline(always)]
    fn take(&mut self, index: usize, bit: u32) -> Option<OrderHandle> {
        let place = lowest(bit);
        self.ids[place] = nobody(index);
        self.used ^= bit;
        OrderHandle::new(self.slots[place])
    }
}

/// An id that belongs to the neighbour of a bucket.
#[inline(always)]
const fn nobody(index: usize) -> u64 {
    ((index ^ 1) * BUCKET_LEN) as u64
}

/// The place of the lowest bit; there is one.
#[inline(always)]
const fn lowest(bits: u32) -> usize {
    bits.trailing_zeros() as usize % BUCKET_LEN
}

/// A hash table of buckets, of which at most half is full.
///
/// Ids that follow each other are neighbours in the table too: a venue gives numbers in order, so orders that come
/// together lie together, and those that leave soon are still in the nearest cache. What lies beyond the table's length
/// is scattered by the upper bits of the id. Nearly every order has a place in its own bucket; the others are in the
/// next one that has room, and are counted where they belong, so that nothing of them stays when they leave.
#[derive(Clone, Debug)]
pub(super) struct Hashed {
    buckets: Vec<Bucket>,
    mask: usize,
    shift: u32,
    len: u32,
    max: u32,
}

impl Hashed {
    pub(super) fn new(max: u32) -> Hashed {
        // Two at least, so that each has a neighbour.
        let count = (max as usize * 2).div_ceil(BUCKET_LEN).next_power_of_two().max(2);
        // Zeroes would come from the allocator untouched, and page faults with the first orders.
        let buckets = (0..count).map(|index| std::hint::black_box(Bucket::empty(index))).collect();
        Hashed { buckets, mask: count - 1, shift: count.ilog2(), len: 0, max }
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    #[inline(always)]
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) const fn is_full(&self) -> bool {
        self.len >= self.max
    }

    #[inline(always)]
    const fn home(&self, id: u64) -> usize {
        const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;
        let group = id / BUCKET_LEN as u64;
        let upper = (group >> self.shift).wrapping_mul(SCATTER) >> (u64::BITS / 2);
        group.wrapping_add(upper) as usize & self.mask
    }

    #[inline(always)]
    fn bucket(&self, index: usize) -> &Bucket {
        &self.buckets[index]
    }

    #[inline(always)]
    pub(super) fn get(&self, id: u64) -> Option<OrderHandle> {
        let bucket = self.bucket(self.home(id));
        match bucket.matches(id) {
            0 if bucket.displaced == 0 => None,
            0 => self.get_displaced(id),
            bit => OrderHandle::new(bucket.slots[lowest(bit)]),
        }
    }

    #[cold]
    fn get_displaced(&self, id: u64) -> Option<OrderHandle> {
        let (index, bit) = self.find_displaced(id)?;
        OrderHandle::new(self.bucket(index).slots[lowest(bit)])
    }

    /// The bucket and the bit of an order that is not where it belongs. Looks at all that was displaced from there.
    fn find_displaced(&self, id: u64) -> Option<(usize, u32)> {
        let home = self.home(id);
        let mut unseen = self.bucket(home).displaced;
        let mut index = home;
        while unseen > 0 {
            index = (index + 1) & self.mask;
            let bucket = self.bucket(index);
            let bit = bucket.matches(id) & bucket.used;
            if bit != 0 {
                return Some((index, bit));
            }
            let from_home = |at: &usize| bucket.used >> at & 1 == 1 && self.home(bucket.ids[*at]) == home;
            unseen = unseen.saturating_sub((0..BUCKET_LEN).filter(from_home).count() as u32);
        }
        None
    }

    /// Enters an order; false when its id is there already. The caller has seen to it that there is room.
    #[inline(always)]
    pub(super) fn insert(&mut self, id: u64, handle: OrderHandle) -> bool {
        let home = self.home(id);
        let bucket = &mut self.buckets[home];
        if bucket.matches(id) != 0 {
            return false;
        }
        if bucket.free() == 0 || bucket.displaced != 0 {
            return self.insert_displaced(id, handle, home);
        }
        bucket.enter(id, handle);
        self.len += 1;
        true
    }

    #[cold]
    fn insert_displaced(&mut self, id: u64, handle: OrderHandle, home: usize) -> bool {
        if self.find_displaced(id).is_some() {
            return false;
        }
        let mut index = home;
        // Ends, since half of the table is free.
        while self.bucket(index).free() == 0 {
            index = (index + 1) & self.mask;
        }
        self.buckets[index].enter(id, handle);
        self.buckets[home].displaced += u32::from(index != home);
        self.len += 1;
        true
    }

    #[inline(always)]
    pub(super) fn remove(&mut self, id: u64) -> Option<OrderHandle> {
        let home = self.home(id);
        let bucket = &mut self.buckets[home];
        match bucket.matches(id) {
            0 if bucket.displaced == 0 => None,
            0 => self.remove_displaced(id, home),
            bit => {
                self.len -= 1;
                bucket.take(home, bit)
            }
        }
    }

    #[cold]
    fn remove_displaced(&mut self, id: u64, home: usize) -> Option<OrderHandle> {
        let (index, bit) = self.find_displaced(id)?;
        self.buckets[home].displaced -= 1;
        self.len -= 1;
        self.buckets[index].take(index, bit)
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, id: u64) -> Entry {
        let home = self.home(id);
        prefetch_index(&self.buckets, home);
        Entry { id, home: home as u32 }
    }

    /// The order if it is in its own bucket, where nearly all are.
    #[inline(always)]
    pub(super) fn peek(&self, entry: Entry) -> u32 {
        let bucket = self.bucket(entry.home as usize & self.mask);
        let bit = bucket.matches(entry.id);
        select_unpredictable(bit == 0, NIL, bucket.slots[lowest(bit)])
    }
}

//! Open orders, each where its id says.

use tickpath_lockfree::cpu::prefetch_index;

/// The slot of no order and of no level: slot 0 of both. Links that lead nowhere lead here, and what is written here is
/// never read, which spares the hot path the question whether there is a neighbour.
pub(super) const NIL: u32 = 0;

/// Orders in one bucket: more would take more than one cache line, of which a CPU fetches only so many at a time.
const BUCKET_LEN: usize = 2;

/// A bucket is this long in memory, one cache line.
const BUCKET_BYTES: usize = BUCKET_LEN * size_of::<OrderRecord>();

/// Buckets for each order that may rest: ids that follow each other have one each, and of those that are scattered over
/// them hardly three meet.
const BUCKETS_PER_ORDER: u32 = 2;

/// Bits of [`OrderRecord::bucket`] that say which places of the bucket have an order.
const USED: u32 = (1 << BUCKET_LEN) - 1;

/// One order that belongs to the bucket and found no place there, in [`OrderRecord::bucket`].
const DISPLACED: u32 = 1 << BUCKET_LEN;

/// Slots are numbers of 32 bits.
const ORDERS_MAX: u32 = 1 << 29;

/// An order, or a free place: those that [`OrderRecord::bucket`] does not name.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct OrderRecord {
    /// Of a free place: an id that belongs to another bucket, so that it is never found here.
    pub(super) id: u64,
    pub(super) qty: u64,
    pub(super) level: u32,
    pub(super) prev: u32,
    pub(super) next: u32,
    /// In the first record of a bucket: which places have an order, and how many orders belong here and are elsewhere.
    bucket: u32,
}

const _: () = assert!(size_of::<OrderRecord>() == 32 && BUCKET_BYTES == 64);

impl OrderRecord {
    const FREE: OrderRecord = OrderRecord { id: 0, qty: 0, level: NIL, prev: NIL, next: NIL, bucket: 0 };
}

/// A place of a bucket: that of an order, or a free one for an order that comes.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub(super) slot: u32,
    home: u32,
    bit: u32,
}

/// A hash table of open orders, of which at most a quarter is full.
///
/// Ids that follow each other are neighbours in the table too: a venue gives numbers in order, so orders that come
/// together lie together, and those that leave soon are still in the nearest cache. What lies beyond the table's length
/// is scattered by the upper bits of the id. Nearly every order has a place in its own bucket; the others are in the
/// next one that has room, and are counted where they belong, so that nothing of them stays when they leave. An order
/// never moves: its slot is its own until it leaves.
#[derive(Clone, Debug)]
pub(super) struct OrderTable {
    /// Nobody's, then the buckets.
    records: Vec<OrderRecord>,
    /// The slot of the first bucket.
    first: u32,
    mask: u32,
    shift: u32,
    len: u32,
    max: u32,
}

impl OrderTable {
    pub(super) fn new(max: u32) -> OrderTable {
        assert!(max <= ORDERS_MAX, "books have room for {ORDERS_MAX} orders at most");
        // Two at least, so that each has a neighbour.
        let count = (max * BUCKETS_PER_ORDER).next_power_of_two().max(2);
        let bound = count as usize * BUCKET_LEN;
        let mut records = Vec::with_capacity(bound + 2 * BUCKET_LEN);
        // Buckets begin where cache lines do, as far as the allocator has it.
        let unaligned = (records.as_ptr() as usize % BUCKET_BYTES) / size_of::<OrderRecord>();
        let first = (2 * BUCKET_LEN - unaligned) as u32;
        // Zeroes would come from the allocator untouched, and page faults with the first orders.
        records.extend((0..first).map(|_| std::hint::black_box(OrderRecord::FREE)));
        let mut table = OrderTable { records, first, mask: count - 1, shift: count.ilog2(), len: 0, max };
        table.records.extend((0..bound).map(|place| {
            let id = nobody((place / BUCKET_LEN) as u32);
            std::hint::black_box(OrderRecord { id, ..OrderRecord::FREE })
        }));
        table
    }

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    pub(super) const fn is_full(&self) -> bool {
        self.len >= self.max
    }

    #[inline(always)]
    pub(super) fn records_mut(&mut self) -> &mut [OrderRecord] {
        &mut self.records
    }

    #[inline(always)]
    pub(super) fn get(&self, slot: u32) -> &OrderRecord {
        &self.records[slot as usize]
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut OrderRecord {
        &mut self.records[slot as usize]
    }

    /// The bucket where an id belongs.
    #[inline(always)]
    const fn home(&self, id: u64) -> u32 {
        const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;
        let upper = (id >> self.shift).wrapping_mul(SCATTER) >> (u64::BITS / 2);
        id.wrapping_add(upper) as u32 & self.mask
    }

    /// The slot of the first record of a bucket.
    #[inline(always)]
    const fn slot_of(&self, bucket: u32) -> u32 {
        self.first + bucket * BUCKET_LEN as u32
    }

    /// One bit for each place of the bucket at `slot` that has this id. No branch, for nobody could foresee which.
    #[inline(always)]
    fn matches(&self, slot: u32, id: u64) -> u32 {
        let bucket = &self.records[slot as usize..][..BUCKET_LEN];
        let is_match = |at: usize| u32::from(bucket[at].id == id) << at;
        is_match(0) | is_match(1)
    }

    /// Where the order of an id is in its own bucket.
    #[inline(always)]
    pub(super) fn spot_of(&self, id: u64) -> Option<Spot> {
        let home = self.slot_of(self.home(id));
        let own = self.matches(home, id);
        (own != 0).then(|| self.spot(home, own))
    }

    /// Where the order of an id may enter its own bucket; `None` where it takes more than one look to know that the id is
    /// not taken, or that there is room.
    #[inline(always)]
    pub(super) fn spot_for(&self, id: u64) -> Option<Spot> {
        let home = self.slot_of(self.home(id));
        let own = self.matches(home, id);
        let bucket = self.get(home).bucket;
        let free = !bucket & USED;
        // One branch for all that hardly ever is.
        let is_ordinary = ((own | (bucket / DISPLACED)) == 0) & (free != 0) & (self.len < self.max);
        is_ordinary.then(|| self.spot(home, free))
    }

    /// The place of the lowest bit.
    #[inline(always)]
    const fn spot(&self, home: u32, bits: u32) -> Spot {
        Spot { slot: home + bits.trailing_zeros(), home, bit: bits & bits.wrapping_neg() }
    }

    #[inline(always)]
    pub(super) fn enter_at(&mut self, spot: Spot, id: u64) {
        self.get_mut(spot.slot).id = id;
        self.get_mut(spot.home).bucket |= spot.bit;
        self.len += 1;
    }

    #[inline(always)]
    pub(super) fn take_from(&mut self, spot: Spot) {
        self.get_mut(spot.slot).id = nobody((spot.home - self.first) / BUCKET_LEN as u32);
        self.get_mut(spot.home).bucket &= !spot.bit;
        self.len -= 1;
    }

    /// The slot of an open order.
    #[inline(always)]
    pub(super) fn find(&self, id: u64) -> Option<u32> {
        match self.spot_of(id) {
            Some(spot) => Some(spot.slot),
            None => Some(self.find_displaced(id)?.slot),
        }
    }

    /// An order that is not where it belongs. Looks at all that was displaced from there.
    #[inline(never)]
    fn find_displaced(&self, id: u64) -> Option<Spot> {
        let home = self.home(id);
        let mut unseen = self.get(self.slot_of(home)).bucket / DISPLACED;
        let mut bucket = home;
        while unseen > 0 {
            bucket = (bucket + 1) & self.mask;
            let first = self.slot_of(bucket);
            let used = self.get(first).bucket & USED;
            let bits = self.matches(first, id) & used;
            if bits != 0 {
                return Some(self.spot(first, bits));
            }
            let from_home =
                |place: &u32| used >> place & 1 == 1 && self.home(self.get(first + place).id) == home;
            unseen = unseen.saturating_sub((0..BUCKET_LEN as u32).filter(from_home).count() as u32);
        }
        None
    }

    /// Enters an order that is not there, wherever there is room; the caller has seen to it that there is. The record
    /// has no level yet.
    pub(super) fn enter(&mut self, id: u64) -> u32 {
        let home = self.home(id);
        let mut bucket = home;
        // Ends, since three quarters of the table are free.
        while self.get(self.slot_of(bucket)).bucket & USED == USED {
            bucket = (bucket + 1) & self.mask;
        }
        if bucket != home {
            self.get_mut(self.slot_of(home)).bucket += DISPLACED;
        }
        let first = self.slot_of(bucket);
        let spot = self.spot(first, !self.get(first).bucket & USED);
        self.enter_at(spot, id);
        spot.slot
    }

    /// Takes an open order out.
    pub(super) fn take(&mut self, slot: u32) {
        let home = slot - (slot - self.first) % BUCKET_LEN as u32;
        let own = self.slot_of(self.home(self.get(slot).id));
        if own != home {
            self.get_mut(own).bucket -= DISPLACED;
        }
        self.take_from(Spot { slot, home, bit: 1 << (slot - home) });
    }

    /// Starts to fetch where the order of an id is or would enter, and returns the slot of that bucket.
    #[inline(always)]
    pub(super) fn prefetch(&self, id: u64) -> u32 {
        let home = self.slot_of(self.home(id));
        prefetch_index(&self.records, home as usize);
        home
    }

    /// Starts to fetch a record.
    #[inline(always)]
    pub(super) fn prefetch_slot(&self, slot: u32) {
        prefetch_index(&self.records, slot as usize);
    }

    /// The slot of the order if it is in its own bucket, where nearly all are, and else nobody's. A bucket that is none
    /// does no harm.
    #[inline(always)]
    pub(super) fn peek(&self, home: u32, id: u64) -> u32 {
        let home = home.min(self.first + self.mask * BUCKET_LEN as u32);
        let bits = self.matches(home, id);
        // A mask where a compiler would make a branch of a choice.
        let mask = u32::from(bits != 0).wrapping_neg();
        home.wrapping_add(bits.trailing_zeros()) & mask
    }
}

/// An id that belongs to the neighbour of a bucket.
#[inline(always)]
const fn nobody(bucket: u32) -> u64 {
    (bucket ^ 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of one bucket, the usual ones first.
    fn ids_of(table: &OrderTable, home: u32, count: usize) -> Vec<u64> {
        (0..).filter(|id| table.home(*id) == home).take(count).collect()
    }

    /// Many more than a bucket has places for come and leave in every order of those that are there. Among them is the id
    /// that stands for a free place of the bucket next to it.
    #[test]
    fn ids_of_one_bucket_are_found_wherever_they_lie() {
        for home in [4, 5, 127] {
            let mut table = OrderTable::new(64);
            let mut ids = ids_of(&table, home, 14);
            ids.rotate_left(4);
            assert!(ids.contains(&nobody(home ^ 1)));
            for leaving in 0..ids.len() {
                let slots: Vec<u32> = ids.iter().map(|id| table.enter(*id)).collect();
                assert!((1..slots.len()).all(|at| !slots[..at].contains(&slots[at])), "{slots:?}");
                ids.rotate_left(leaving);
                for at in 0..ids.len() {
                    let slot = table.find(ids[at]).unwrap();
                    assert!(slots.contains(&slot) && table.get(slot).id == ids[at]);
                    table.take(slot);
                    assert!(ids[..=at].iter().all(|id| table.find(*id).is_none()), "{home} {at}");
                    assert!(ids[at + 1..].iter().all(|id| table.find(*id).is_some()), "{home} {at}");
                }
                assert_eq!(table.len(), 0);
                let bucket = |bucket| table.get(table.slot_of(bucket)).bucket;
                assert!((0..128).all(|index| bucket(index) == 0), "nothing stays of who left");
            }
        }
    }

    #[test]
    fn the_spot_for_an_id_needs_room_in_its_own_bucket() {
        let mut table = OrderTable::new(6);
        let ids = ids_of(&table, 2, 6);
        for (count, id) in ids.iter().enumerate() {
            assert_eq!(table.spot_for(*id).is_some(), count < BUCKET_LEN);
            assert!(table.spot_of(*id).is_none());
            table.enter(*id);
            assert!(table.spot_for(*id).is_none(), "it is taken");
            assert_eq!(table.spot_of(*id).is_some(), count < BUCKET_LEN);
        }
        assert!(table.is_full() && table.spot_for(1 << 20).is_none());
        // One that lies elsewhere is not known to be there at the first look, so none may enter at once.
        table.take(table.find(ids[0]).unwrap());
        assert!(table.spot_for(ids[0]).is_none());
    }
}

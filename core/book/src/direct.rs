//! Plain feed books: each order is one record of 32 bytes.

use tickpath_lockfree::cpu::prefetch_index;
use tickpath_types::Qty;

use crate::feed_books::{FeedBooks, OrderStore};
use crate::record::{NIL, OrderRecord, Queues};
use crate::table::{Bucket, Buckets, Spot, Table, free_id};

/// Feed books without unchecked access and without groups: each message is applied by itself. The model of
/// [`PackedBooks`](crate::PackedBooks) in tests.
///
/// The table takes 128 to 256 bytes for each order of the maximum number. Only a venue may choose the ids: a
/// peer could choose ids that collide, which turns each look-up into a linear search.
pub type DirectBooks = FeedBooks<OrderTable>;

/// Number of orders in one bucket: more would need a second cache line, and a CPU fetches only a few lines at
/// once.
const BUCKET_LEN: usize = 2;

/// Bytes per bucket: one cache line.
const BUCKET_BYTES: usize = BUCKET_LEN * size_of::<OrderRecord>();

const _: () = assert!(BUCKET_BYTES == 64);

/// Number of slots per order when the table has the maximum number of orders. With this many, consecutive ids
/// have a bucket each, and three scattered ids rarely share one.
const PLACES_PER_ORDER: u32 = 2 * BUCKET_LEN as u32;

/// Maximum number of orders, since slots are 32-bit numbers.
const ORDERS_MAX: u32 = 1 << 29;

/// The records of all orders, in buckets of two. The state of a bucket is in its first record.
#[derive(Clone, Debug)]
pub struct OrderBuckets {
    /// The NIL record (slot 0), padding up to a cache line, then the buckets.
    pub(crate) records: Vec<OrderRecord>,
    /// The slot of the first bucket.
    first: u32,
}

impl OrderBuckets {
    fn new(count: u32) -> OrderBuckets {
        let bound = count as usize * BUCKET_LEN;
        let mut records = Vec::with_capacity(bound + 2 * BUCKET_LEN);
        // Buckets begin at cache lines, as far as the allocator's alignment allows.
        let unaligned = (records.as_ptr() as usize % BUCKET_BYTES) / size_of::<OrderRecord>();
        let first = (2 * BUCKET_LEN - unaligned) as u32;
        // `black_box` makes the program write the memory now, so that the first orders cause no page faults.
        records.extend((0..first).map(|_| std::hint::black_box(OrderRecord::FREE)));
        records.extend((0..bound).map(|place| {
            let id = free_id::<[OrderRecord; BUCKET_LEN]>((place / BUCKET_LEN) as u32);
            std::hint::black_box(OrderRecord { id, ..OrderRecord::FREE })
        }));
        OrderBuckets { records, first }
    }

    /// The slot of the first record of a bucket.
    #[inline(always)]
    const fn slot(&self, bucket: u32) -> usize {
        (self.first + bucket * BUCKET_LEN as u32) as usize
    }
}

impl Bucket for [OrderRecord; BUCKET_LEN] {
    const LEN: u32 = BUCKET_LEN as u32;
    const IDS: u64 = 1;

    #[inline(always)]
    fn matches(&self, id: u64) -> u32 {
        let is_match = |at: usize| u32::from(self[at].id == id) << at;
        is_match(0) | is_match(1)
    }

    #[inline(always)]
    fn id(&self, place: u32) -> u64 {
        self[place as usize % BUCKET_LEN].id
    }

    #[inline(always)]
    fn set_id(&mut self, place: u32, id: u64) {
        self[place as usize % BUCKET_LEN].id = id;
    }

    #[inline(always)]
    fn state(&self) -> u32 {
        self[0].bucket
    }

    #[inline(always)]
    fn state_mut(&mut self) -> &mut u32 {
        &mut self[0].bucket
    }
}

impl Buckets for OrderBuckets {
    type Bucket = [OrderRecord; BUCKET_LEN];

    #[inline(always)]
    fn bucket(&self, number: u32) -> &Self::Bucket {
        self.records[self.slot(number)..].first_chunk().expect("the last bucket is whole")
    }

    #[inline(always)]
    fn bucket_mut(&mut self, number: u32) -> &mut Self::Bucket {
        let slot = self.slot(number);
        self.records[slot..].first_chunk_mut().expect("the last bucket is whole")
    }

    #[inline(always)]
    fn prefetch(&self, number: u32) {
        prefetch_index(&self.records, self.slot(number));
    }
}

/// The table of open orders, at most a quarter full. An order keeps its slot until it is removed.
pub type OrderTable = Table<OrderBuckets>;

impl OrderTable {
    #[inline(always)]
    const fn slot_at(&self, spot: Spot) -> u32 {
        self.buckets.slot(spot.bucket) as u32 + spot.place()
    }

    /// The place of the order in a slot.
    const fn spot_in(&self, slot: u32) -> Spot {
        let at = slot - self.buckets.first;
        Spot { bucket: at / BUCKET_LEN as u32, bit: 1 << (at % BUCKET_LEN as u32) }
    }
}

impl Queues for OrderTable {
    #[inline(always)]
    fn next(&self, slot: u32) -> u32 {
        self.buckets.records.next(slot)
    }

    #[inline(always)]
    fn qty(&self, slot: u32) -> u64 {
        self.buckets.records.qty(slot)
    }

    #[inline(always)]
    fn set_next(&mut self, slot: u32, next: u32) {
        self.buckets.records.set_next(slot, next);
    }

    #[inline(always)]
    fn set_prev(&mut self, slot: u32, prev: u32) {
        self.buckets.records.set_prev(slot, prev);
    }

    #[inline(always)]
    fn set_level(&mut self, slot: u32, level: u32) {
        self.buckets.records.set_level(slot, level);
    }

    #[inline(always)]
    fn enter_queue(&mut self, slot: u32, qty: Qty, level: u32, prev: u32) {
        self.buckets.records.enter_queue(slot, qty, level, prev);
    }
}

impl OrderStore for OrderTable {
    fn for_orders(max: u32) -> OrderTable {
        assert!(max <= ORDERS_MAX, "books have room for {ORDERS_MAX} orders at most");
        let count = OrderTable::bucket_count(max, PLACES_PER_ORDER);
        Table::new(OrderBuckets::new(count), count, max)
    }

    fn len(&self) -> u32 {
        Table::len(self)
    }

    fn is_full(&self) -> bool {
        Table::is_full(self)
    }

    #[inline(always)]
    fn find(&self, id: u64) -> u32 {
        Table::find(self, id).map_or(NIL, |spot| self.slot_at(spot))
    }

    #[inline(always)]
    fn record(&self, slot: u32) -> OrderRecord {
        self.buckets.records[slot as usize]
    }

    #[inline(always)]
    fn enter_at_home(&mut self, id: u64, _qty: Qty) -> u32 {
        let Some(spot) = self.spot_for(id) else { return NIL };
        self.enter_at(spot, id);
        self.slot_at(spot)
    }

    fn enter(&mut self, id: u64, _qty: Qty) -> u32 {
        let spot = Table::enter(self, id);
        self.slot_at(spot)
    }

    #[inline(always)]
    fn remove(&mut self, slot: u32) {
        self.take(self.spot_in(slot));
    }

    #[inline(always)]
    fn set_qty(&mut self, slot: u32, qty: u64) {
        self.buckets.records[slot as usize].qty = qty;
    }

    #[inline(always)]
    fn prefetch(&self, id: u64) {
        Table::prefetch(self, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `count` smallest ids whose home bucket is `home`.
    fn ids_of(table: &OrderTable, home: u32, count: usize) -> Vec<u64> {
        (0..).filter(|id| table.home(*id) == home).take(count).collect()
    }

    /// Many more ids of one bucket than it has slots are added and removed, in many sequences. Among them is
    /// the id that marks free slots of the neighbouring bucket.
    #[test]
    fn ids_of_one_bucket_are_found_in_any_bucket() {
        for home in [4, 5, 127] {
            let mut table = OrderTable::for_orders(64);
            let mut ids = ids_of(&table, home, 14);
            ids.rotate_left(4);
            assert!(ids.contains(&free_id::<[OrderRecord; BUCKET_LEN]>(home ^ 1)));
            for leaving in 0..ids.len() {
                let spots: Vec<Spot> = ids.iter().map(|id| Table::enter(&mut table, *id)).collect();
                let slots: Vec<u32> = spots.into_iter().map(|spot| table.slot_at(spot)).collect();
                assert!((1..slots.len()).all(|at| !slots[..at].contains(&slots[at])), "{slots:?}");
                ids.rotate_left(leaving);
                for at in 0..ids.len() {
                    let spot = table.find(ids[at]).unwrap();
                    let slot = table.slot_at(spot);
                    assert!(slots.contains(&slot) && table.record(slot).id == ids[at]);
                    assert_eq!(table.spot_in(slot), spot);
                    table.take(spot);
                    assert!(ids[..=at].iter().all(|id| table.find(*id).is_none()), "{home} {at}");
                    assert!(ids[at + 1..].iter().all(|id| table.find(*id).is_some()), "{home} {at}");
                }
                assert_eq!(table.len(), 0);
                assert!(
                    (0..128).all(|bucket| table.buckets.bucket(bucket).state() == 0),
                    "nothing stays of those that left"
                );
            }
        }
    }

    #[test]
    fn an_id_needs_a_free_spot_in_its_own_bucket() {
        let mut table = OrderTable::for_orders(6);
        let ids = ids_of(&table, 2, 6);
        for (count, id) in ids.iter().enumerate() {
            assert_eq!(table.spot_for(*id).is_some(), count < BUCKET_LEN);
            assert!(table.spot_of(*id).is_none());
            Table::enter(&mut table, *id);
            assert!(table.spot_for(*id).is_none(), "it is taken");
            assert_eq!(table.spot_of(*id).is_some(), count < BUCKET_LEN);
        }
        assert!(table.is_full() && table.spot_for(1 << 20).is_none());
        // The home bucket has displaced orders, so the id may be open in another bucket: the fast path
        // rejects it.
        table.take(table.find(ids[0]).unwrap());
        assert!(table.spot_for(ids[0]).is_none());
    }
}

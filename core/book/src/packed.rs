//! Feed books whose orders take 20 bytes each, three in a cache line.

mod passes;

use tickpath_lockfree::cpu::prefetch_index;
use tickpath_types::Qty;

use crate::feed_books::{FeedBooks, OrderStore};
use crate::group::{OrderGroup, OrderMessages, Step};
use crate::record::{NIL, OrderRecord, Queues};

/// The feed books of the hot path. [`BooksById::prepare`](crate::BooksById::prepare) and
/// [`BooksById::advance`](crate::BooksById::advance) apply a group of messages in passes, so that cache misses
/// overlap; rare changes leave the group and are applied one at a time.
///
/// The table of orders takes 64 to 128 bytes for each order of the maximum number, which is the memory of
/// three to six orders. Ids below about 2^30 times the maximum number of orders, with quantities below 2^32,
/// are fast; others take 16 bytes more and need a look-up outside the group.
///
/// Orders whose ids are neighbours are neighbours in memory. A secret factor scatters ids that are far apart,
/// so a venue cannot choose ids that collide in books of 2^16 orders or more.
pub type PackedBooks = FeedBooks<PackedOrders>;

/// Number of orders in a bucket.
const LANES: u32 = 3;
/// Number of words of a bucket; a slot is the index of a word.
const WORDS: u32 = 16;
/// Number of low bits of an id that do not select its bucket: two neighbouring ids share one.
const NEIGHBOUR_BITS: u32 = 1;
/// Maximum number of orders, since slots are 32-bit numbers and the table has as many buckets as orders.
const ORDERS_MAX: u32 = 1 << 27;

/// Offsets from the slot of an order to its fields, in units of 32 bits. Its tag is at the slot itself.
const QTY: usize = 4;
const LEVEL: usize = 7;
const PREV: usize = 10;
const NEXT: usize = 13;
/// Offset likewise from the first slot of a bucket to two counts of orders whose home it is: of those in the
/// neighbouring bucket, in units of `NEIGHBOUR`, and of those with a wide tag, in any bucket.
const DISPLACED: usize = LANES as usize;
/// The unit of the first of these counts, which is at most `LANES`.
const NEIGHBOUR: u32 = 1 << 30;
/// Distance between the first slots of two neighbouring buckets: each is the other's neighbour.
const NEIGHBOUR_SLOT: u32 = WORDS;

/// Tag of a free place.
const FREE: u32 = 0;
/// Set in a wide tag: the order's id and quantity are in [`PackedOrders::wide`]. The other bits are a hash of
/// the id.
const WIDE: u32 = 1 << 31;
/// Set in an exact tag: the order's home is the neighbouring bucket.
const MOVED: u32 = 1 << 30;

/// Up to three orders in one cache line: the arrays `tag` (and the counts at `DISPLACED`), `qty`, `level`, `prev` and
/// `next`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bucket([u32; WORDS as usize]);

/// Id and quantity of an order with a wide tag.
type WideOrder = [u64; 2];

/// No element of [`PackedOrders::wide`].
const NO_WIDE: u64 = u64::MAX;

/// A hash table of open orders, at most a third full.
///
/// An id selects its home bucket, and its tag there names it exactly, so a bucket holds no ids. If the home is full,
/// the order is in the neighbouring bucket. An order has a wide tag if its id is too large for an exact one, its
/// quantity needs more than 32 bits, or both buckets are full and it is in the next one with a free place. Each
/// bucket counts the orders whose home it is and that are elsewhere or have a wide tag, so a removal leaves no
/// tombstone.
#[derive(Clone, Debug)]
pub struct PackedOrders {
    /// The bucket of NIL and its neighbour, then the buckets of the table: a power of two, at least 2.
    buckets: Vec<Bucket>,
    /// Ids and quantities of the orders with a wide tag, each at the index in its place's `qty`. Grows up to the
    /// maximum number of orders, without an allocation.
    wide: Vec<WideOrder>,
    /// Free elements of `wide`, linked by their first number; `NO_WIDE` for none.
    free_wide: u64,
    bits: u32,
    len: u32,
    max: u32,
    /// Odd factor that scatters ids that are further apart than the table is long.
    scatter: u64,
}

/// The home bucket of an id, and its tag there.
#[derive(Clone, Copy)]
struct Home {
    /// First slot of the bucket.
    slot: u32,
    tag: u32,
    /// False for an id that is too large for its tag to name it.
    is_exact: bool,
}

/// Maximum of an id's upper part for an exact tag.
const UPPER_MAX: u64 = (MOVED as u64 >> NEIGHBOUR_BITS) - 2;

/// Number of buckets ahead of those of the table.
const NIL_BUCKETS: u32 = 2;

impl Home {
    /// The order's place in the neighbour of its home.
    #[inline]
    const fn in_neighbour(self) -> Home {
        Home { slot: self.slot ^ NEIGHBOUR_SLOT, tag: self.tag | MOVED, ..self }
    }
}

impl PackedOrders {
    #[inline(always)]
    fn home(&self, id: u64) -> Home {
        let group = id >> NEIGHBOUR_BITS;
        let upper = group >> self.bits;
        let bucket = (group as u32).wrapping_add(self.offset(upper)) & self.mask();
        let low = id as u32 & ((1 << NEIGHBOUR_BITS) - 1);
        Home {
            slot: (bucket + NIL_BUCKETS) * WORDS,
            tag: ((upper as u32) << NEIGHBOUR_BITS | low).wrapping_add(1),
            is_exact: upper <= UPPER_MAX,
        }
    }

    /// The bucket of the first id with this upper part.
    #[inline(always)]
    const fn offset(&self, upper: u64) -> u32 {
        (upper.wrapping_mul(self.scatter) >> (u64::BITS / 2)) as u32
    }

    #[inline]
    const fn mask(&self) -> u32 {
        (1 << self.bits) - 1
    }

    /// The wide tag of an id.
    #[inline]
    const fn wide_tag(id: u64) -> u32 {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        (id.wrapping_mul(FACTOR) >> (u64::BITS / 2)) as u32 | WIDE
    }

    #[inline(always)]
    fn word(&self, slot: u32, field: usize) -> u32 {
        self.buckets[(slot / WORDS) as usize].0[(slot % WORDS) as usize + field]
    }

    #[inline(always)]
    fn word_mut(&mut self, slot: u32, field: usize) -> &mut u32 {
        &mut self.buckets[(slot / WORDS) as usize].0[(slot % WORDS) as usize + field]
    }

    #[inline]
    fn wide_of(&self, slot: u32) -> WideOrder {
        self.wide[self.word(slot, QTY) as usize]
    }

    #[inline]
    fn is_wide(&self, slot: u32) -> bool {
        self.word(slot, 0) & WIDE != 0
    }

    /// The first slot of the bucket behind this one.
    #[inline]
    const fn next_bucket(&self, bucket: u32) -> u32 {
        (((bucket / WORDS + 1 - NIL_BUCKETS) & self.mask()) + NIL_BUCKETS) * WORDS
    }

    /// The slot of the order with this tag in the bucket that begins at `home`, or NIL.
    #[inline(always)]
    fn with_tag(&self, home: u32, tag: u32) -> u32 {
        let tags = self.buckets[(home / WORDS) as usize].0.first_chunk().expect("a bucket has four words");
        let place = passes::matches(tags, tag);
        // A mask, because the compiler would turn a conditional expression into a branch.
        (home + place.trailing_zeros()) & u32::from(place != 0).wrapping_neg()
    }

    /// The slot of the order with this exact tag, or NIL.
    #[inline(always)]
    fn with_exact_tag(&self, home: Home) -> u32 {
        self.with_tag(home.slot, home.tag) & u32::from(home.is_exact).wrapping_neg()
    }

    /// The slot of an order with this wide tag in the home bucket of its id, or NIL. Another id may have the same tag.
    #[inline]
    fn with_wide_tag(&self, id: u64) -> u32 {
        self.with_tag(self.home(id).slot, PackedOrders::wide_tag(id))
    }

    /// The slot of an order that is in the neighbouring bucket or has a wide tag, or NIL. Checks all orders of the
    /// id's home that have a wide tag.
    #[cold]
    #[inline(never)]
    fn find_displaced(&self, home: Home, id: u64) -> u32 {
        let moved = self.with_exact_tag(home.in_neighbour());
        if moved != NIL {
            return moved;
        }
        let wide = self.with_wide_tag(id);
        if wide != NIL && self.wide_of(wide)[0] == id {
            return wide;
        }
        let home = home.slot;
        let mut left = self.word(home, DISPLACED) % NEIGHBOUR;
        let tag = PackedOrders::wide_tag(id);
        // The home, the neighbour, which may be ahead of it, then the buckets behind them.
        let neighbour = home ^ NEIGHBOUR_SLOT;
        let mut bucket = home;
        while left > 0 {
            for slot in bucket..bucket + LANES {
                if !self.is_wide(slot) {
                    continue;
                }
                let [other, _] = self.wide_of(slot);
                if self.word(slot, 0) == tag && other == id {
                    return slot;
                }
                left -= u32::from(self.home(other).slot == home);
            }
            bucket = match bucket {
                _ if bucket == home => neighbour,
                _ if bucket == neighbour => self.next_bucket(home | NEIGHBOUR_SLOT),
                _ => self.next_bucket(bucket),
            };
        }
        NIL
    }

    /// The contents of the order in a slot, without its id.
    #[inline(always)]
    fn record_without_id(&self, slot: u32) -> OrderRecord {
        OrderRecord {
            id: 0,
            qty: self.qty(slot),
            level: self.word(slot, LEVEL),
            prev: self.word(slot, PREV),
            next: self.word(slot, NEXT),
            bucket: 0,
        }
    }

    #[inline]
    fn id(&self, slot: u32) -> u64 {
        if self.is_wide(slot) {
            return self.wide_of(slot)[0];
        }
        let tag = self.word(slot, 0);
        self.exact_id(if tag & MOVED == 0 { slot } else { slot ^ NEIGHBOUR_SLOT }, tag % MOVED)
    }

    /// The id with this exact tag in the home bucket that has the slot `home`.
    fn exact_id(&self, home: u32, tag: u32) -> u64 {
        let tag = tag.wrapping_sub(1);
        let upper = u64::from(tag >> NEIGHBOUR_BITS);
        let bucket = (home / WORDS).wrapping_sub(NIL_BUCKETS);
        let lower = bucket.wrapping_sub(self.offset(upper)) & self.mask();
        (upper << self.bits | u64::from(lower)) << NEIGHBOUR_BITS
            | u64::from(tag & ((1 << NEIGHBOUR_BITS) - 1))
    }

    /// Enters an order with an exact tag in a free slot of its home or of the neighbour, and returns this slot.
    fn enter_in(&mut self, slot: u32, home: u32, tag: u32, qty: u32) -> u32 {
        let is_home = slot / WORDS == home / WORDS;
        *self.word_mut(slot, 0) = if is_home { tag } else { tag | MOVED };
        *self.word_mut(home, DISPLACED) += if is_home { 0 } else { NEIGHBOUR };
        *self.word_mut(slot, QTY) = qty;
        self.len += 1;
        slot
    }

    /// If the order in a slot has the tag of a moved one, its home does not count it any more.
    #[inline]
    fn forget_moved(&mut self, slot: u32) {
        if self.word(slot, 0) & MOVED != 0 {
            *self.word_mut((slot / WORDS * WORDS) ^ NEIGHBOUR_SLOT, DISPLACED) -= NEIGHBOUR;
        }
    }

    /// Gives the order in a slot a wide tag.
    fn widen(&mut self, slot: u32, id: u64, qty: u64) {
        *self.word_mut(self.home(id).slot, DISPLACED) += 1;
        *self.word_mut(slot, 0) = PackedOrders::wide_tag(id);
        let index = match usize::try_from(self.free_wide) {
            Ok(index) if self.free_wide != NO_WIDE => {
                [self.free_wide, _] = std::mem::replace(&mut self.wide[index], [id, qty]);
                index
            }
            _ => {
                self.wide.push([id, qty]);
                self.wide.len() - 1
            }
        };
        *self.word_mut(slot, QTY) = index as u32;
    }

    /// A factor that a venue cannot know, made from the address of this table.
    fn secret(buckets: &[Bucket]) -> u64 {
        const FACTOR: u64 = 0xd129_0d3a_7a5b_c6f1;
        (buckets.as_ptr().addr() as u64 >> 6).wrapping_mul(FACTOR).rotate_left(31).wrapping_mul(FACTOR) | 1
    }
}

impl Queues for PackedOrders {
    #[inline(always)]
    fn next(&self, slot: u32) -> u32 {
        self.word(slot, NEXT)
    }

    #[inline(always)]
    fn qty(&self, slot: u32) -> u64 {
        if self.is_wide(slot) { self.wide_of(slot)[1] } else { u64::from(self.word(slot, QTY)) }
    }

    #[inline(always)]
    fn set_next(&mut self, slot: u32, next: u32) {
        *self.word_mut(slot, NEXT) = next;
    }

    #[inline(always)]
    fn set_prev(&mut self, slot: u32, prev: u32) {
        *self.word_mut(slot, PREV) = prev;
    }

    #[inline(always)]
    fn set_level(&mut self, slot: u32, level: u32) {
        *self.word_mut(slot, LEVEL) = level;
    }

    #[inline(always)]
    fn enter_queue(&mut self, slot: u32, _qty: Qty, level: u32, prev: u32) {
        // `enter` has set the quantity.
        self.set_level(slot, level);
        self.set_prev(slot, prev);
        self.set_next(slot, NIL);
    }
}

impl OrderStore for PackedOrders {
    fn for_orders(max: u32) -> PackedOrders {
        assert!(max <= ORDERS_MAX, "books have room for {ORDERS_MAX} orders at most");
        let count = max.next_power_of_two().max(2);
        // `black_box` makes the program write the memory now, so that the first orders cause no page faults.
        let mut buckets: Vec<_> =
            (0..count + NIL_BUCKETS).map(|_| std::hint::black_box(Bucket([FREE; WORDS as usize]))).collect();
        // No order can be added to the bucket of NIL.
        buckets[0].0[DISPLACED] = 1;
        // Memory that is touched at its first use.
        let wide = Vec::with_capacity(max as usize);
        let scatter = PackedOrders::secret(&buckets);
        PackedOrders { buckets, wide, free_wide: NO_WIDE, bits: count.ilog2(), len: 0, max, scatter }
    }

    #[inline]
    fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.len >= self.max
    }

    #[inline(always)]
    fn find(&self, id: u64) -> u32 {
        let home = self.home(id);
        let slot = self.with_exact_tag(home);
        if slot != NIL || self.word(home.slot, DISPLACED) == 0 { slot } else { self.find_displaced(home, id) }
    }

    #[inline(always)]
    fn record(&self, slot: u32) -> OrderRecord {
        OrderRecord { id: self.id(slot), ..self.record_without_id(slot) }
    }

    #[inline(always)]
    fn enter_at_home(&mut self, id: u64, qty: Qty) -> u32 {
        let Home { slot: home, tag, is_exact } = self.home(id);
        let free = self.with_tag(home, FREE);
        let is_known = (self.with_tag(home, tag) | self.word(home, DISPLACED)) != 0;
        let is_wide = !is_exact | (qty.0 > u64::from(u32::MAX));
        if is_known | is_wide | (free == NIL) | self.is_full() {
            return NIL;
        }
        *self.word_mut(free, 0) = tag;
        *self.word_mut(free, QTY) = qty.0 as u32;
        self.len += 1;
        free
    }

    fn enter(&mut self, id: u64, qty: Qty) -> u32 {
        let home = self.home(id);
        if let Some(qty) = u32::try_from(qty.0).ok().filter(|_| home.is_exact) {
            for bucket in [home.slot, home.slot ^ NEIGHBOUR_SLOT] {
                let slot = self.with_tag(bucket, FREE);
                if slot != NIL {
                    return self.enter_in(slot, home.slot, home.tag, qty);
                }
            }
        }
        self.len += 1;
        let mut bucket = home.slot;
        // Terminates, since at least two thirds of the table are free.
        let slot = loop {
            match self.with_tag(bucket, FREE) {
                NIL => bucket = self.next_bucket(bucket),
                slot => break slot,
            }
        };
        self.widen(slot, id, qty.0);
        slot
    }

    #[inline(always)]
    fn remove(&mut self, slot: u32) {
        if self.is_wide(slot) {
            let home = self.home(self.wide_of(slot)[0]).slot;
            *self.word_mut(home, DISPLACED) -= 1;
            let index = self.word(slot, QTY);
            self.wide[index as usize] = [self.free_wide, 0];
            self.free_wide = index.into();
        } else {
            self.forget_moved(slot);
        }
        *self.word_mut(slot, 0) = FREE;
        self.len -= 1;
    }

    #[inline(always)]
    fn set_qty(&mut self, slot: u32, qty: u64) {
        if self.is_wide(slot) {
            let index = self.word(slot, QTY) as usize;
            self.wide[index][1] = qty;
        } else if let Ok(qty) = u32::try_from(qty) {
            *self.word_mut(slot, QTY) = qty;
        } else {
            let id = self.id(slot);
            self.forget_moved(slot);
            self.widen(slot, id, qty);
        }
    }

    #[inline(always)]
    fn prefetch(&self, id: u64) {
        prefetch_index(&self.buckets, (self.home(id).slot / WORDS) as usize);
    }

    #[inline(always)]
    fn prepare<M>(
        books: &FeedBooks<PackedOrders>,
        group: &mut OrderGroup,
        messages: impl Iterator<Item = M>,
        protocol: &impl OrderMessages<M>,
        is_large: bool,
    ) {
        passes::prepare(books, group, messages, protocol, is_large);
    }

    #[inline(always)]
    fn advance<const REPORTS: bool>(books: &mut FeedBooks<PackedOrders>, group: &mut OrderGroup) -> Step {
        passes::advance::<REPORTS>(books, group)
    }
}

//! A hash table of orders by id, in buckets of one cache line each.

/// A group of places for orders, in one cache line.
pub trait Bucket {
    /// Number of places per bucket.
    const LEN: u32;
    /// Number of consecutive ids that belong to the same bucket.
    const IDS: u64;

    /// Bit set of the places with this id. Branchless, since no CPU could predict the place.
    fn matches(&self, id: u64) -> u32;

    /// The id at a place.
    fn id(&self, place: u32) -> u64;

    /// Sets the id at a place.
    fn set_id(&mut self, place: u32, id: u64);

    /// The state: a bit for each occupied place, above these the number of orders displaced to other buckets.
    fn state(&self) -> u32;

    /// Mutable access to the state.
    fn state_mut(&mut self) -> &mut u32;
}

/// The buckets of a [`Table`].
pub trait Buckets {
    /// The type of a bucket.
    type Bucket: Bucket;

    /// The bucket with this number.
    fn bucket(&self, number: u32) -> &Self::Bucket;

    /// Mutable access to a bucket.
    fn bucket_mut(&mut self, number: u32) -> &mut Self::Bucket;

    /// Prefetches a bucket.
    fn prefetch(&self, number: u32);
}

/// A hash table of orders, at most half full.
///
/// Consecutive ids are neighbours in the table too. A venue assigns ids in order, so orders that arrive
/// together are stored together, and short-lived ones are still in the nearest cache at their removal. A hash
/// of the upper bits scatters ids beyond the table's length. Nearly every order is in its home bucket. The
/// others are in the next bucket with a free place and counted in their home bucket, so a removal leaves no
/// tombstone. An order never moves. A free place has an id of another bucket, so no look-up finds it.
#[derive(Clone, Debug)]
pub struct Table<B> {
    pub(crate) buckets: B,
    mask: u32,
    shift: u32,
    len: u32,
    max: u32,
}

/// A place of a bucket: occupied by an order, or free for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) bucket: u32,
    /// Bit of the place among those of its bucket, as in [`Bucket::state`].
    pub(crate) bit: u32,
}

impl Spot {
    /// The place of the lowest set bit of `bits`.
    #[inline(always)]
    const fn lowest(bucket: u32, bits: u32) -> Spot {
        Spot { bucket, bit: bits & bits.wrapping_neg() }
    }

    #[inline(always)]
    pub(crate) const fn place(self) -> u32 {
        self.bit.trailing_zeros()
    }
}

/// Id that marks the free places of bucket `number`; its home is the neighbouring bucket.
#[inline(always)]
pub(crate) const fn free_id<B: Bucket>(number: u32) -> u64 {
    (number ^ 1) as u64 * B::IDS
}

impl<B: Buckets> Table<B> {
    const LEN: u32 = <B::Bucket as Bucket>::LEN;
    const USED: u32 = (1 << Self::LEN) - 1;
    /// Unit of [`Bucket::state`]'s count of the bucket's orders that are stored in other buckets.
    const DISPLACED: u32 = 1 << Self::LEN;

    /// Number of buckets for `max` orders with `places` places each: a power of two, and at least 2, so that
    /// each bucket has a neighbour.
    pub(crate) fn bucket_count(max: u32, places: u32) -> u32 {
        u32::try_from(
            (u64::from(max) * u64::from(places)).div_ceil(Self::LEN.into()).next_power_of_two().max(2),
        )
        .expect("a table has fewer than 2^32 buckets")
    }

    /// A table of `count` empty buckets for at most `max` orders.
    pub(crate) const fn new(buckets: B, count: u32, max: u32) -> Table<B> {
        Table { buckets, mask: count - 1, shift: count.ilog2(), len: 0, max }
    }

    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.len >= self.max
    }

    /// The home bucket of an id.
    #[inline(always)]
    pub(crate) const fn home(&self, id: u64) -> u32 {
        const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;
        let group = id / <B::Bucket as Bucket>::IDS;
        let upper = (group >> self.shift).wrapping_mul(SCATTER) >> (u64::BITS / 2);
        group.wrapping_add(upper) as u32 & self.mask
    }

    /// The place of an order in its home bucket, where nearly all are.
    #[inline(always)]
    pub(crate) fn spot_of(&self, id: u64) -> Option<Spot> {
        let spot = self.spot_at(self.home(id), id);
        (spot.bit != 0).then_some(spot)
    }

    /// As `spot_of`, in the bucket `home`, which may be a wrong guess. `bit` is 0 if the order is not there.
    #[inline(always)]
    pub(crate) fn spot_at(&self, home: u32, id: u64) -> Spot {
        let bucket = home & self.mask;
        Spot::lowest(bucket, self.buckets.bucket(bucket).matches(id))
    }

    /// A free place for an id in its home bucket; `None` if bucket or table is full, or the id may be taken.
    #[inline(always)]
    pub(crate) fn spot_for(&self, id: u64) -> Option<Spot> {
        let home = self.home(id);
        let bucket = self.buckets.bucket(home);
        let (own, state) = (bucket.matches(id), bucket.state());
        // One branch for all rare cases. A state of at least USED has no free place, or has displaced orders.
        let is_ordinary = (own == 0) & (state < Self::USED) & (self.len < self.max);
        is_ordinary.then_some(Spot { bucket: home, bit: !state & (state + 1) })
    }

    #[inline(always)]
    pub(crate) fn find(&self, id: u64) -> Option<Spot> {
        match self.spot_of(id) {
            Some(spot) => Some(spot),
            None => self.find_displaced(id),
        }
    }

    /// Finds an order outside its home bucket. Checks all orders displaced from there.
    #[cold]
    #[inline(never)]
    fn find_displaced(&self, id: u64) -> Option<Spot> {
        let home = self.home(id);
        let mut displaced = self.buckets.bucket(home).state() / Self::DISPLACED;
        let mut number = home;
        while displaced > 0 {
            number = (number + 1) & self.mask;
            let bucket = self.buckets.bucket(number);
            let used = bucket.state() & Self::USED;
            let bits = bucket.matches(id) & used;
            if bits != 0 {
                return Some(Spot::lowest(number, bits));
            }
            let from_home = |place: &u32| used >> place & 1 == 1 && self.home(bucket.id(*place)) == home;
            displaced = displaced.saturating_sub((0..Self::LEN).filter(from_home).count() as u32);
        }
        None
    }

    /// Inserts an order at a free place, and returns the place's bucket.
    #[inline(always)]
    pub(crate) fn enter_at(&mut self, spot: Spot, id: u64) -> &mut B::Bucket {
        self.len += 1;
        let bucket = self.buckets.bucket_mut(spot.bucket);
        bucket.set_id(spot.place(), id);
        *bucket.state_mut() |= spot.bit;
        bucket
    }

    /// Inserts a new order into the first bucket with a free place; the caller has ensured that there is one.
    pub(crate) fn enter(&mut self, id: u64) -> Spot {
        let home = self.home(id);
        let mut bucket = home;
        // Terminates, since at least half of the table is free.
        while self.buckets.bucket(bucket).state() & Self::USED == Self::USED {
            bucket = (bucket + 1) & self.mask;
        }
        if bucket != home {
            *self.buckets.bucket_mut(home).state_mut() += Self::DISPLACED;
        }
        let spot = Spot::lowest(bucket, !self.buckets.bucket(bucket).state() & Self::USED);
        self.enter_at(spot, id);
        spot
    }

    /// Frees a place and returns its bucket. For a displaced order use [`take`](Self::take).
    #[inline(always)]
    pub(crate) fn take_from(&mut self, spot: Spot) -> &B::Bucket {
        self.len -= 1;
        let bucket = self.buckets.bucket_mut(spot.bucket);
        bucket.set_id(spot.place(), free_id::<B::Bucket>(spot.bucket));
        *bucket.state_mut() ^= spot.bit;
        bucket
    }

    /// Frees the place of an order in any bucket, and returns this bucket.
    pub(crate) fn take(&mut self, spot: Spot) -> &B::Bucket {
        let home = self.home(self.buckets.bucket(spot.bucket).id(spot.place()));
        if home != spot.bucket {
            *self.buckets.bucket_mut(home).state_mut() -= Self::DISPLACED;
        }
        self.take_from(spot)
    }

    /// Prefetches the home bucket of an id, and returns the bucket's number.
    #[inline(always)]
    pub(crate) fn prefetch(&self, id: u64) -> u32 {
        let home = self.home(id);
        self.buckets.prefetch(home);
        home
    }
}

//! Single-producer, single-consumer ring for small records, with the cheapest possible push.
//!
//! The ring for hop stamps, which record when a message passed an agent: a push must hardly slow that agent;
//! the consumer may lag by milliseconds. Records lie packed, four 16-byte ones to a cache line. The producer
//! publishes them in batches, by [`Producer::flush`] at the end of a duty cycle, or automatically each
//! quarter of the ring. When the ring is full, a push drops the new record and counts it.
//!
//! # Protocol
//!
//! - `published` counts the records the consumer may read, `consumed` those that the producer may overwrite.
//!   Each is stored (release) by one half and loaded (acquire) by the other, and lies on separate cache
//!   lines. The pair release/acquire orders the write of a record before its read, and its read before the
//!   next write of the same place.
//! - The producer writes through a cursor up to a stop. Between the two lie only places (one per record) that
//!   the consumer has finished reading, none beyond the end of the memory, and at most a quarter of the ring.
//!   So a push is a comparison, a store of the record and an increment; all rarer work (wrap, publish, load
//!   of `consumed`, full) happens at the stop.
//!
//! ```
//! use tickpath_lockfree::records;
//!
//! let (mut producer, mut consumer) = records::channel::<[u64; 2]>(4);
//! for tsc in 0..5 {
//!     producer.push([7, tsc]);
//! }
//! assert_eq!(producer.dropped(), 1);
//! producer.flush();
//! let mut seen = Vec::new();
//! assert_eq!(consumer.drain(100, |record| seen.push(record[1])), 4);
//! assert_eq!(seen, [0, 1, 2, 3]);
//! ```

use core::{mem::MaybeUninit, ptr::NonNull};

use crate::{
    CachePadded,
    capacity::ring_capacity,
    cpu,
    debug::debug_with,
    sync::{Arc, AtomicBool, AtomicU64, Ordering, UnsafeCell},
};

type Place<R> = UnsafeCell<MaybeUninit<R>>;

struct Shared<R> {
    /// Number of records published since creation.
    published: CachePadded<AtomicU64>,
    /// Number of records consumed since creation.
    consumed: CachePadded<AtomicU64>,
    /// Number of records dropped since creation.
    dropped: CachePadded<AtomicU64>,
    producer_dropped: AtomicBool,
    consumer_dropped: AtomicBool,
    places: Box<[Place<R>]>,
}

// SAFETY: a place is written by the one producer and read by the one consumer, never at the same time: see
// the protocol in the module's documentation. Records move between threads, hence `R: Send`.
unsafe impl<R: Send> Send for Shared<R> {}
// SAFETY: as above.
unsafe impl<R: Send> Sync for Shared<R> {}

impl<R> Shared<R> {
    fn capacity(&self) -> u64 {
        self.places.len() as u64
    }

    fn index(&self, position: u64) -> usize {
        (position & (self.capacity() - 1)) as usize
    }

    /// Returns a pointer to a position's place, valid for all places from there to the end of the memory.
    fn place(&self, position: u64) -> NonNull<Place<R>> {
        let rest = &self.places[self.index(position)..];
        NonNull::new(rest.as_ptr().cast_mut()).expect("a slice's pointer is not null")
    }
}

/// Creates a ring of at least `capacity` records, rounded up to a power of two.
///
/// Zero-sized records do not compile: there would be nothing to pass.
///
/// # Panics
/// If `capacity` exceeds 2^30.
#[must_use]
pub fn channel<R: Copy + Send>(capacity: usize) -> (Producer<R>, Consumer<R>) {
    const { assert!(size_of::<R>() > 0, "a record has at least one byte") };
    let capacity = ring_capacity(capacity);
    let shared = Arc::new(Shared {
        published: CachePadded::new(AtomicU64::new(0)),
        consumed: CachePadded::new(AtomicU64::new(0)),
        dropped: CachePadded::new(AtomicU64::new(0)),
        producer_dropped: AtomicBool::new(false),
        consumer_dropped: AtomicBool::new(false),
        places: (0..capacity).map(|_| Place::new(MaybeUninit::uninit())).collect(),
    });
    touch(&shared.places);
    let first = shared.place(0);
    let producer = Producer {
        cursor: first,
        stop: first,
        stop_position: 0,
        consumed: 0,
        published: 0,
        dropped: 0,
        shared: Arc::clone(&shared),
    };
    (producer, Consumer { position: 0, shared })
}

/// Writes to every page of the memory, so that the first use of the ring has no page faults.
fn touch<R>(places: &[Place<R>]) {
    const PAGE: usize = 4096;
    for place in places.iter().step_by((PAGE / size_of::<Place<R>>()).max(1)) {
        // SAFETY: the ring is being created: no other thread has it. Any bytes are a valid `MaybeUninit`;
        // volatile keeps the store, whose value is never read.
        place.with_mut(|cell| unsafe { cell.write_volatile(MaybeUninit::zeroed()) });
    }
}

/// The pushing half of a ring. Aligned to a cache line, so that adjacent halves do not share one.
///
/// Dropping it publishes its records.
#[repr(align(64))]
pub struct Producer<R: Copy + Send> {
    /// Place of the next record.
    cursor: NonNull<Place<R>>,
    /// The place after the writable ones; `advance` must move `stop` before a record is written there.
    stop: NonNull<Place<R>>,
    /// Position of `stop`.
    stop_position: u64,
    /// The consumer's position, as last loaded by the producer.
    consumed: u64,
    /// Local copy of `Shared::published`.
    published: u64,
    /// Local copy of `Shared::dropped`.
    dropped: u64,
    shared: Arc<Shared<R>>,
}

// SAFETY: the pointers point into `Shared::places`, which any thread may use.
unsafe impl<R: Copy + Send> Send for Producer<R> {}
// SAFETY: as above; nothing is written through `&Producer`.
unsafe impl<R: Copy + Send> Sync for Producer<R> {}

impl<R: Copy + Send> Producer<R> {
    /// Number of records from the next place to write to the one that is prefetched: eight cache lines.
    const AHEAD: usize = 8 * 64 / size_of::<Place<R>>();

    /// Appends a record. When the ring is full, drops and counts it instead, and returns false.
    ///
    /// The consumer sees the record after [`flush`](Self::flush), or once a quarter of the ring has been
    /// written since the last automatic publication.
    #[inline(always)]
    pub fn push(&mut self, record: R) -> bool {
        if self.cursor == self.stop && !self.advance() {
            return false;
        }
        // SAFETY: `cursor` lies before `stop`, in the memory that `shared` keeps alive.
        let place = unsafe { self.cursor.as_ref() };
        place.with_mut(|cell| {
            // SAFETY: `advance` found that the consumer is done with the places up to `stop`, and the
            // consumer does not read them before they are published.
            unsafe { (*cell).write(record) };
        });
        // SAFETY: at most one past the end of the memory, where `stop` may lie too.
        self.cursor = unsafe { self.cursor.add(1) };
        cpu::prefetch_write_ahead(self.cursor.as_ptr(), Self::AHEAD);
        true
    }

    /// Prefetches the memory of the next record for writing; call this when idle. The consumer on another core
    /// may have read earlier records of the same cache line since the latest [`push`](Self::push).
    #[inline]
    pub fn prefetch(&self) {
        cpu::prefetch_write_ahead(self.cursor.as_ptr(), 0);
    }

    /// Discards the records that the consumer cannot see yet: those since the latest [`flush`](Self::flush),
    /// except records published automatically.
    pub fn discard(&mut self) {
        let hidden = self.position() - self.published;
        // SAFETY: `advance` publishes whenever it moves the cursor to another chunk, so the hidden records
        // all lie right before the cursor.
        self.cursor = unsafe { self.cursor.sub(hidden as usize) };
    }

    /// Makes all records so far visible to the consumer.
    #[inline]
    pub fn flush(&mut self) {
        let position = self.position();
        if position != self.published {
            self.published = position;
            self.shared.published.store(position, Ordering::Release);
        }
    }

    /// Called when the cursor reaches the stop: publishes, and moves the stop by up to a quarter of the ring.
    /// Returns false when the ring is full; the current record then counts as dropped.
    #[cold]
    #[inline(never)]
    fn advance(&mut self) -> bool {
        self.flush();
        let (capacity, position) = (self.shared.capacity(), self.stop_position);
        let chunk = (capacity / 4).max(1);
        // The chunk that contains `position` ends at a multiple of its size, so at the latest at the end of
        // the memory.
        let chunk_end = position - position % chunk + chunk;
        if self.consumed + capacity < chunk_end {
            self.consumed = self.shared.consumed.load(Ordering::Acquire);
        }
        let stop_position = chunk_end.min(self.consumed + capacity);
        if stop_position == position {
            self.dropped += 1;
            self.shared.dropped.store(self.dropped, Ordering::Relaxed);
            return false;
        }
        self.cursor = self.shared.place(position);
        // SAFETY: `stop_position <= chunk_end`: at most one past the end of the memory.
        self.stop = unsafe { self.cursor.add((stop_position - position) as usize) };
        self.stop_position = stop_position;
        true
    }

    /// Number of records pushed since creation, without discarded ones.
    #[inline(always)]
    fn position(&self) -> u64 {
        // SAFETY: both point into, or one past, the same memory, and the cursor never passes the stop.
        self.stop_position - unsafe { self.stop.offset_from_unsigned(self.cursor) } as u64
    }

    /// Number of records dropped since creation, because the ring was full.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Capacity of the ring in records.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.places.len()
    }

    /// Whether the consumer was dropped: records pushed from now on are never read.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.shared.consumer_dropped.load(Ordering::Acquire)
    }
}

impl<R: Copy + Send> Drop for Producer<R> {
    fn drop(&mut self) {
        self.flush();
        self.shared.producer_dropped.store(true, Ordering::Release);
    }
}

/// The draining half of a ring. Aligned to a cache line, so that adjacent halves do not share one.
#[repr(align(64))]
pub struct Consumer<R: Copy + Send> {
    /// Next position to read.
    position: u64,
    shared: Arc<Shared<R>>,
}

impl<R: Copy + Send> Consumer<R> {
    /// Passes up to `max` published records to `on_record` in order, and returns their number.
    ///
    /// Frees the places of these records together, after the last one.
    #[inline]
    pub fn drain(&mut self, max: usize, mut on_record: impl FnMut(&R)) -> usize {
        let published = self.shared.published.load(Ordering::Acquire);
        let end = published.min(self.position.saturating_add(max as u64));
        let count = end - self.position;
        for position in self.position..end {
            let place = &self.shared.places[self.shared.index(position)];
            // SAFETY: the record was written before it was published, and the producer does not
            // write its place again before `consumed` is stored below.
            place.with(|cell| on_record(unsafe { (*cell).assume_init_ref() }));
        }
        if count > 0 {
            self.position = end;
            self.shared.consumed.store(end, Ordering::Release);
        }
        count as usize
    }

    /// Number of published records that were not drained yet.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.shared.published.load(Ordering::Acquire) - self.position) as usize
    }

    /// Whether there is nothing to drain.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of records that the producer has dropped since creation, because the ring was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Capacity of the ring in records.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.places.len()
    }

    /// Whether the producer was dropped. Records pushed before can still be drained.
    ///
    /// If this is true and `drain` then returns 0, there is nothing more to drain.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        self.shared.producer_dropped.load(Ordering::Acquire)
    }
}

impl<R: Copy + Send> Drop for Consumer<R> {
    fn drop(&mut self) {
        self.shared.consumer_dropped.store(true, Ordering::Release);
    }
}

debug_with!(Producer<R: Copy + Send>: "position", it => it.position());
debug_with!(Consumer<R: Copy + Send>: "position", it => it.position);

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(consumer: &mut Consumer<u64>, max: usize) -> Vec<u64> {
        let mut seen = Vec::new();
        let count = consumer.drain(max, |&record| seen.push(record));
        assert_eq!(count, seen.len());
        seen
    }

    #[test]
    fn a_full_ring_drops_and_counts_the_new_record() {
        for (requested, capacity) in [(0, 1), (1, 1), (2, 2), (3, 4), (8, 8), (100, 128)] {
            let (mut producer, mut consumer) = channel::<u64>(requested);
            assert_eq!((producer.capacity(), consumer.capacity()), (capacity, capacity));
            let capacity = capacity as u64;
            assert!((0..capacity).all(|record| producer.push(record)));
            assert!(!producer.push(capacity));
            assert!(!producer.push(capacity + 1));
            assert_eq!((producer.dropped(), consumer.dropped()), (2, 2));
            assert_eq!(drained(&mut consumer, 1), [0]);
            assert!(producer.push(capacity + 2));
            assert!(!producer.push(capacity + 3));
            assert_eq!(producer.dropped(), 3);
            let expected: Vec<u64> = (1..capacity).chain([capacity + 2]).collect();
            assert_eq!(drained(&mut consumer, usize::MAX), expected);
        }
    }

    #[test]
    fn records_appear_on_flush_and_each_quarter_of_the_ring() {
        let (mut producer, mut consumer) = channel::<u64>(16);
        (0..3).for_each(|record| assert!(producer.push(record)));
        assert!(consumer.is_empty());
        producer.flush();
        assert_eq!(consumer.len(), 3);
        (3..9).for_each(|record| assert!(producer.push(record)));
        assert_eq!(consumer.len(), 8);
        producer.flush();
        producer.flush();
        assert_eq!(drained(&mut consumer, 4), [0, 1, 2, 3]);
        assert_eq!(drained(&mut consumer, 100), [4, 5, 6, 7, 8]);
        assert_eq!(drained(&mut consumer, 100), []);
    }

    #[test]
    fn order_holds_over_many_wraps_at_every_fill_and_drain_size() {
        let (mut producer, mut consumer) = channel::<u64>(16);
        let (mut next_in, mut next_out) = (0, 0);
        for round in 0_u64..400 {
            for _ in 0..round % 17 {
                if producer.push(next_in) {
                    next_in += 1;
                }
            }
            if round % 3 != 0 {
                producer.flush();
            }
            for record in drained(&mut consumer, (round % 13) as usize) {
                assert_eq!(record, next_out);
                next_out += 1;
            }
            assert!(next_in - next_out <= 16);
        }
        assert!(next_out > 1000 && producer.dropped() > 0);
    }

    #[test]
    fn discard_drops_unpublished_records_only() {
        let (mut producer, mut consumer) = channel::<u64>(16);
        producer.discard();
        (0..3).for_each(|record| assert!(producer.push(record)));
        producer.discard();
        producer.discard();
        producer.flush();
        assert!(consumer.is_empty(), "all were hidden");

        (10..12).for_each(|record| assert!(producer.push(record)));
        producer.flush();
        (20..22).for_each(|record| assert!(producer.push(record)));
        producer.discard();
        assert!(producer.push(30));
        producer.flush();
        assert_eq!(drained(&mut consumer, 100), [10, 11, 30]);
    }

    /// The ring has chunks of 4 records, and publishes a chunk when the next one is begun.
    #[test]
    fn discard_at_the_ends_of_chunks_wraps_and_capacity() {
        for start in [0, 3, 4, 13, 15] {
            for pushed in 0..=16 {
                let (mut producer, mut consumer) = channel::<u64>(16);
                (0..start).for_each(|record| assert!(producer.push(record)));
                producer.flush();
                assert_eq!(consumer.drain(100, |_| ()), start as usize);
                (0..pushed).for_each(|record| assert!(producer.push(100 + record)));
                let shown = consumer.len() as u64;
                assert!(pushed - shown <= 4);
                producer.discard();
                producer.flush();
                let expected: Vec<_> = (0..shown).map(|record| 100 + record).collect();
                assert_eq!(drained(&mut consumer, 100), expected, "{start} {pushed}");

                // After the discard, the ring still takes 16 records, and returns them in order.
                assert!((0..16).all(|record| producer.push(200 + record)));
                assert!(!producer.push(0));
                assert_eq!(drained(&mut consumer, 100), (200..216).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn records_dropped_by_a_full_ring_cannot_be_discarded() {
        let (mut producer, mut consumer) = channel::<u64>(4);
        (0..5).for_each(|record| _ = producer.push(record));
        producer.discard();
        assert_eq!((producer.dropped(), consumer.len()), (1, 4), "a full ring shows what it has");
        assert!(!producer.push(5));
        assert_eq!(drained(&mut consumer, 100), [0, 1, 2, 3]);
        assert!(producer.push(6));
        drop(producer);
        assert_eq!(drained(&mut consumer, 100), [6]);
    }

    #[test]
    fn each_half_detects_a_disconnect() {
        let (mut producer, mut consumer) = channel::<u64>(8);
        producer.push(5);
        assert!(!consumer.is_disconnected() && !producer.is_abandoned());
        drop(producer);
        assert!(consumer.is_disconnected());
        assert_eq!(drained(&mut consumer, 8), [5]);

        let (mut producer, consumer) = channel::<u64>(1);
        drop(consumer);
        assert!(producer.is_abandoned());
        assert!(producer.push(1));
        assert!(!producer.push(2));
    }

    #[test]
    fn a_record_may_be_larger_than_a_page() {
        let (mut producer, mut consumer) = channel::<[u8; 5000]>(2);
        assert!(producer.push([9; 5000]));
        producer.flush();
        assert_eq!(consumer.drain(9, |record| assert_eq!(record[4999], 9)), 1);
    }
}

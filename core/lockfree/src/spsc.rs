//! Single-producer, single-consumer ring with the sequence number inside the slot.
//!
//! The ring for messages between agents, where the time from push to pop matters most. A slot is
//! a sequence number and the item, aligned to a cache line: for items of up to 56 bytes a message
//! is one line, which crosses from core to core once.
//!
//! # Protocol
//!
//! - Position `p` lives in slot `p mod capacity`. The producer writes the item, then the slot's
//!   sequence := `p` (release). The consumer polls the sequence of the slot of its next position
//!   `p`; once it reads `p` (acquire), the item is visible to it, because the release store and the
//!   acquire load of the same value order the two accesses of the item.
//! - After it has read items the consumer stores `head` := its next position (release). The producer may
//!   write position `p` only while `p < head + capacity`. It keeps the last loaded `head` and loads it again
//!   (acquire) only when the ring seems full, so in normal flow the line of `head` moves between the cores
//!   once per ring wrap. The acquire orders the consumer's reads before the overwrite.
//! - Until position `p` is written, its slot holds `p - capacity`; positions are 64-bit and do not repeat,
//!   so no sequence is mistaken for another wrap's.
//!
//! The consumer never writes a slot: it frees slots by one counter, `head`. Freeing each slot through its
//! sequence would give the same round-trip time (`benches/round_trip.rs`). With the counter,
//! [`Consumer::drain`] frees a whole batch by one store, which halves the time per message of a saturated
//! stream (`benches/stream.rs`), and a backlog can be inspected without taking it ([`Consumer::peek_at`]).
//!
//! ```
//! use tickpath_lockfree::spsc;
//!
//! let (mut producer, mut consumer) = spsc::channel::<u64>(1024);
//! producer.try_push(7).expect("the ring is empty");
//! assert_eq!(consumer.peek(), Some(&7));
//! assert_eq!(consumer.try_pop(), Some(7));
//! assert_eq!(consumer.try_pop(), None);
//! drop(producer);
//! assert!(consumer.is_disconnected());
//! ```

use core::{mem::MaybeUninit, ptr::NonNull};
use std::sync::OnceLock;

use crate::{
    CachePadded, Full,
    capacity::ring_capacity,
    cpu,
    debug::debug_with,
    sync::{Arc, AtomicBool, AtomicU64, Ordering, UnsafeCell},
    wake::Waker,
};

/// Sequence of a slot that was never written. Not zero, so that creation writes to every page.
const NEVER_WRITTEN: u64 = u64::MAX;

/// Number of slots from a written slot to the one that is then prefetched. The consumer polls the slot between
/// them that is written next.
const AHEAD: usize = 3;

#[repr(C, align(64))]
struct Slot<T> {
    sequence: AtomicU64,
    item: UnsafeCell<MaybeUninit<T>>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot<[u64; 7]>>() == 64 && size_of::<Slot<[u64; 8]>>() == 128);

struct Shared<T> {
    /// The consumer's next position.
    head: CachePadded<AtomicU64>,
    producer_dropped: AtomicBool,
    consumer_dropped: AtomicBool,
    /// Waker of the consumer's thread, if that thread sleeps when idle.
    waker: OnceLock<Waker>,
    /// The ring's slots, then [`AHEAD`] slots that are only prefetched, so that the address of a prefetch needs
    /// no mask. The first slots of a lap are written without a prefetch.
    slots: Box<[Slot<T>]>,
}

// SAFETY: an item is written by the one producer and read by the one consumer, never at the same time: see
// the protocol in the module's documentation. Items move between threads, hence `T: Send`.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

/// Creates a ring of at least `capacity` slots, rounded up to a power of two.
///
/// # Panics
/// If `capacity` exceeds 2^30.
#[must_use]
pub fn channel<T: Copy + Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let capacity = ring_capacity(capacity);
    let slots: Box<[Slot<T>]> = (0..capacity + AHEAD)
        .map(|_| Slot {
            sequence: AtomicU64::new(NEVER_WRITTEN),
            item: UnsafeCell::new(MaybeUninit::uninit()),
        })
        .collect();
    let shared = Arc::new(Shared {
        head: CachePadded::new(AtomicU64::new(0)),
        producer_dropped: AtomicBool::new(false),
        consumer_dropped: AtomicBool::new(false),
        waker: OnceLock::new(),
        slots,
    });
    let first = NonNull::new(shared.slots.as_ptr().cast_mut()).expect("a slice's pointer is not null");
    let slots = Slots { first, mask: capacity as u64 - 1 };
    let producer = Producer { slots, position: 0, limit: capacity as u64, shared: Arc::clone(&shared) };
    (producer, Consumer { slots, position: 0, shared })
}

/// Direct access to the slots: going through `Shared` would be one more dependent load per access.
struct Slots<T> {
    first: NonNull<Slot<T>>,
    mask: u64,
}

impl<T> Clone for Slots<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slots<T> {}

// SAFETY: `first` points into `Shared::slots`, which any thread may use.
unsafe impl<T: Send> Send for Slots<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    const fn capacity(self) -> u64 {
        self.mask + 1
    }

    /// Returns the slot of a position.
    ///
    /// # Safety
    /// The `Shared` that owns the slots must outlive `'a`.
    #[inline(always)]
    unsafe fn at<'a>(self, position: u64) -> &'a Slot<T> {
        // SAFETY: the mask keeps the index below the number of slots; they live by the caller's promise.
        unsafe { self.first.add((position & self.mask) as usize).as_ref() }
    }
}

/// The pushing half of a ring. Aligned to a cache line, so that adjacent halves do not share one.
#[repr(align(64))]
pub struct Producer<T> {
    slots: Slots<T>,
    /// Next position to write.
    position: u64,
    /// First position that may not be written yet, as of the last load of `head`.
    limit: u64,
    shared: Arc<Shared<T>>,
}

impl<T: Copy + Send> Producer<T> {
    /// Appends an item; visible to the consumer immediately.
    ///
    /// # Errors
    /// [`Full`] returns the item when the consumer is `capacity` items behind.
    #[inline(always)]
    pub fn try_push(&mut self, item: T) -> Result<(), Full<T>> {
        if self.position == self.limit && !self.refresh_limit() {
            return Err(Full(item));
        }
        // SAFETY: `self.shared` owns the slots and lives as long as `self`.
        let slot = unsafe { self.slots.at(self.position) };
        slot.item.with_mut(|cell| {
            // SAFETY: `position < limit <= head + capacity`: the consumer has read the previous item of this
            // slot and will not access the slot's item before its sequence is stored below.
            unsafe { (*cell).write(item) };
        });
        slot.sequence.store(self.position, Ordering::Release);
        self.position += 1;
        cpu::prefetch_write_ahead(slot, AHEAD);
        if let Some(waker) = self.shared.waker.get() {
            waker.wake_if_asleep();
        }
        Ok(())
    }

    /// Loads the consumer's position. Returns false when the ring is still full.
    #[cold]
    #[inline(never)]
    fn refresh_limit(&mut self) -> bool {
        self.limit = self.shared.head.load(Ordering::Acquire) + self.slots.capacity();
        self.position != self.limit
    }

    /// Loads the consumer's position and returns the number of free slots: that many pushes will succeed.
    #[must_use]
    pub fn free_slots(&mut self) -> usize {
        self.refresh_limit();
        (self.limit - self.position) as usize
    }

    /// Returns the number of slots known to be free since the consumer's position was last loaded: that many
    /// pushes will succeed. More slots may be free, so call [`free_slots`](Self::free_slots) if this is not
    /// enough. Loads nothing that the consumer writes, so it costs no cache miss.
    #[inline(always)]
    #[must_use]
    pub fn free_slots_hint(&self) -> usize {
        (self.limit - self.position) as usize
    }

    /// Upper bound of the number of items in the ring: the consumer may take some meanwhile.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.position - self.shared.head.load(Ordering::Acquire)) as usize
    }

    /// Whether the consumer has taken all items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of slots.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.slots.capacity() as usize
    }

    /// Whether the consumer was dropped: items pushed from now on are never read.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.shared.consumer_dropped.load(Ordering::Acquire)
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.shared.producer_dropped.store(true, Ordering::Release);
    }
}

/// The popping half of a ring. Aligned to a cache line, so that adjacent halves do not share one.
#[repr(align(64))]
pub struct Consumer<T> {
    slots: Slots<T>,
    /// Next position to read.
    position: u64,
    shared: Arc<Shared<T>>,
}

impl<T: Copy + Send> Consumer<T> {
    /// Makes every push wake the thread behind `waker` if it sleeps.
    ///
    /// # Panics
    /// When a waker was set before: a ring has one consumer.
    pub fn wake_by(&self, waker: &Waker) {
        assert!(self.shared.waker.set(waker.clone()).is_ok(), "a ring's one consumer has one thread");
    }

    /// Takes the oldest item; `None` when the ring is empty.
    #[inline(always)]
    pub fn try_pop(&mut self) -> Option<T> {
        let item = *self.peek()?;
        self.position += 1;
        self.publish_head();
        Some(item)
    }

    /// Returns the oldest item without taking it.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<&T> {
        self.peek_at(0)
    }

    /// Returns the item `offset` items after the oldest one, without taking it, for instance to prefetch data
    /// that it refers to; `None` when there are fewer items.
    #[inline(always)]
    pub fn peek_at(&mut self, offset: usize) -> Option<&T> {
        let position = self.position.wrapping_add(offset as u64);
        if offset as u64 > self.slots.mask || !self.is_written(position) {
            return None;
        }
        // SAFETY: `self.shared` owns the slots and lives as long as `self`.
        let slot = unsafe { self.slots.at(position) };
        // SAFETY: the sequence shows that the item was written, and the producer does not write the slot
        // again before `head` passes `position`, which takes `&mut self`.
        Some(slot.item.with(|cell| unsafe { (*cell).assume_init_ref() }))
    }

    /// Prefetches up to `max` waiting items, which are read next, and returns their number. Their cache misses
    /// overlap, unlike those of items that are taken one by one.
    #[inline]
    pub fn prefetch(&mut self, max: usize) -> usize {
        let mut count = 0;
        while count < max && self.is_written(self.position + count as u64) {
            // SAFETY: `self.shared` owns the slots and lives as long as `self`.
            cpu::prefetch_lines_read(unsafe { self.slots.at(self.position + count as u64) });
            count += 1;
        }
        count
    }

    /// Passes up to `max` items to `on_item` in order, without copying them, and returns their number.
    ///
    /// The slots of these items are freed together, after the last one.
    #[inline]
    pub fn drain(&mut self, max: usize, mut on_item: impl FnMut(&T)) -> usize {
        self.drain_while(max, |item| {
            on_item(item);
            true
        })
    }

    /// As [`Consumer::drain`], but stops when `on_item` returns false for an item, which stays in the ring and is
    /// not counted.
    #[inline]
    pub fn drain_while(&mut self, max: usize, mut on_item: impl FnMut(&T) -> bool) -> usize {
        let mut count = 0;
        while count < max && self.peek_at(count).is_some_and(&mut on_item) {
            count += 1;
        }
        if count > 0 {
            self.position += count as u64;
            self.publish_head();
        }
        count
    }

    #[inline(always)]
    fn publish_head(&self) {
        self.shared.head.store(self.position, Ordering::Release);
    }

    #[inline(always)]
    fn is_written(&self, position: u64) -> bool {
        // SAFETY: `self.shared` owns the slots and lives as long as `self`.
        unsafe { self.slots.at(position) }.sequence.load(Ordering::Acquire) == position
    }

    /// Lower bound of the number of items in the ring: the producer may add some meanwhile.
    ///
    /// The producer shares no count, so this is a binary search for the first unwritten slot. It is meant for
    /// counters, not for the hot path.
    #[must_use]
    pub fn len(&self) -> usize {
        let (mut written, mut unwritten) = (0, self.slots.capacity());
        while written < unwritten {
            let middle = written + (unwritten - written) / 2;
            if self.is_written(self.position + middle) {
                written = middle + 1;
            } else {
                unwritten = middle;
            }
        }
        written as usize
    }

    /// Whether there is nothing to pop.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.is_written(self.position)
    }

    /// Number of slots.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.slots.capacity() as usize
    }

    /// Whether the producer was dropped. Items pushed before can still be popped.
    ///
    /// If this is true and `try_pop` then returns `None`, there is nothing more to pop.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        self.shared.producer_dropped.load(Ordering::Acquire)
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.shared.consumer_dropped.store(true, Ordering::Release);
    }
}

debug_with!(Producer<T>: "position", it => it.position);
debug_with!(Consumer<T>: "position", it => it.position);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ring_returns_the_item_until_a_pop() {
        for (requested, capacity) in [(0, 1), (1, 1), (2, 2), (3, 4), (1000, 1024)] {
            let (mut producer, mut consumer) = channel::<u64>(requested);
            assert_eq!((producer.capacity(), consumer.capacity()), (capacity, capacity));
            for item in 0..capacity as u64 {
                assert_eq!(producer.try_push(item), Ok(()));
            }
            assert_eq!(producer.try_push(77), Err(Full(77)));
            assert_eq!(producer.try_push(78), Err(Full(78)));
            assert_eq!(consumer.try_pop(), Some(0));
            assert_eq!(producer.try_push(capacity as u64), Ok(()));
            assert_eq!(producer.try_push(79), Err(Full(79)));
            for item in 1..=capacity as u64 {
                assert_eq!(consumer.try_pop(), Some(item));
            }
            assert_eq!(consumer.try_pop(), None);
        }
    }

    #[test]
    fn order_holds_over_many_wraps_at_every_fill() {
        let (mut producer, mut consumer) = channel::<[u64; 9]>(8);
        let (mut pushed, mut popped) = (0, 0);
        for round in 0..200 {
            for _ in 0..=round % 8 {
                producer.try_push([pushed; 9]).unwrap();
                pushed += 1;
            }
            assert_eq!(consumer.len() as u64, pushed - popped);
            assert_eq!(consumer.prefetch(3) as u64, (pushed - popped).min(3));
            while let Some(item) = consumer.try_pop() {
                assert_eq!(item, [popped; 9]);
                popped += 1;
            }
        }
        assert_eq!(popped, pushed);
    }

    #[test]
    fn peeking_is_limited_to_the_items_and_takes_none() {
        let (mut producer, mut consumer) = channel::<u32>(4);
        assert_eq!(consumer.peek(), None);
        for wrap in 0..3 {
            for item in 0..3 {
                producer.try_push(10 * wrap + item).unwrap();
            }
            assert_eq!(consumer.peek(), Some(&(10 * wrap)));
            assert_eq!(consumer.peek_at(2), Some(&(10 * wrap + 2)));
            for offset in [3, 4, 5, 7, usize::MAX - 3, usize::MAX] {
                assert_eq!(consumer.peek_at(offset), None, "{offset}");
            }
            assert_eq!(consumer.drain(usize::MAX, |_| {}), 3);
        }
    }

    #[test]
    fn drain_stops_at_its_bound_and_frees_the_slots() {
        let (mut producer, mut consumer) = channel::<u32>(4);
        (0..4).for_each(|item| producer.try_push(item).unwrap());
        let mut seen = Vec::new();
        assert_eq!(consumer.drain(0, |_| unreachable!()), 0);
        assert_eq!(consumer.drain(3, |&item| seen.push(item)), 3);
        assert_eq!((producer.free_slots_hint(), producer.free_slots()), (0, 3));
        assert_eq!(consumer.drain(3, |&item| seen.push(item)), 1);
        assert_eq!(consumer.drain(3, |_| unreachable!()), 0);
        assert_eq!(seen, [0, 1, 2, 3]);
    }

    #[test]
    fn a_refused_item_stays_in_the_ring() {
        let (mut producer, mut consumer) = channel::<u32>(4);
        (0..4).for_each(|item| producer.try_push(item).unwrap());
        assert_eq!(consumer.drain_while(9, |item| *item < 2), 2);
        assert_eq!((producer.free_slots(), consumer.peek()), (2, Some(&2)));
        assert_eq!(consumer.drain_while(1, |_| true), 1);
        assert_eq!(consumer.drain_while(9, |_| false), 0);
        assert_eq!(consumer.drain_while(9, |item| *item == 3), 1);
    }

    #[test]
    fn counts_follow_pushes_and_pops() {
        let (mut producer, mut consumer) = channel::<u32>(4);
        assert!(producer.is_empty() && consumer.is_empty());
        for count in 1..=4 {
            producer.try_push(0).unwrap();
            assert_eq!((producer.len(), consumer.len()), (count, count));
            assert_eq!(producer.free_slots(), 4 - count);
        }
        consumer.try_pop().unwrap();
        assert_eq!(producer.free_slots(), 1);
        assert_eq!((producer.len(), consumer.len()), (3, 3));
    }

    #[test]
    fn each_half_detects_a_disconnect() {
        let (mut producer, mut consumer) = channel::<u32>(4);
        producer.try_push(5).unwrap();
        assert!(!consumer.is_disconnected() && !producer.is_abandoned());
        drop(producer);
        assert!(consumer.is_disconnected());
        assert_eq!((consumer.try_pop(), consumer.try_pop()), (Some(5), None));

        let (mut producer, consumer) = channel::<u32>(1);
        drop(consumer);
        assert!(producer.is_abandoned());
        assert_eq!(producer.try_push(1), Ok(()));
        assert_eq!(producer.try_push(2), Err(Full(2)));
    }

    #[test]
    #[should_panic(expected = "exceeds the maximum")]
    fn an_excessive_capacity_is_rejected() {
        let _ = channel::<u8>((1 << 30) + 1);
    }
}

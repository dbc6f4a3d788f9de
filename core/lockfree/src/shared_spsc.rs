//! Single-producer, single-consumer ring of plain data in memory that two processes share.
//!
//! Like [`spsc`](crate::spsc), but for two ends that do not trust each other: items are copied word by word,
//! so that the other end can change them at any moment without harm, and an impossible position of the other
//! end is detected. Whatever the other end does to the memory, an operation terminates, and accesses only the
//! ring.
//!
//! # Protocol
//!
//! Zeroed memory is an empty ring. Three lines come first, with the consumer's next position, a word that is
//! 1 once the producer disconnected, and a word that is 1 once the consumer did. The slots follow: a
//! sequence word and the item, aligned to a line.
//!
//! - Position `p`, from 0, lives in slot `p mod capacity`. The producer stores the words (relaxed), then the
//!   slot's sequence := `p + 1` (release). The consumer at position `p` loads the slot's sequence (relaxed,
//!   then an acquire fence); once it is `p + 1` it loads the words (relaxed).
//! - After it has read items the consumer stores its next position (release). The producer may write position
//!   `p` only while `p` is less than the consumer's position plus the capacity. It keeps the position last
//!   loaded and loads it again (acquire) only when the ring seems full. The acquire orders the consumer's
//!   reads before the overwrite.
//! - Until position `p` is written, its slot holds `p + 1 - capacity`, so no sequence is mistaken for
//!   another wrap's.
//!
//! ```
//! use tickpath_lockfree::SharedLines;
//! use tickpath_lockfree::shared_spsc::{Consumer, Producer, lines_of};
//!
//! let lines = SharedLines::zeroed(lines_of::<u64>(4));
//! let mut producer = Producer::<u64>::over(lines.clone())?;
//! let mut consumer = Consumer::<u64>::over(lines)?;
//! assert_eq!(producer.try_push(7), Ok(()));
//! assert_eq!((consumer.try_pop(), consumer.try_pop()), (Some(7), None));
//! # Ok::<(), tickpath_lockfree::WrongMemory>(())
//! ```

use crate::{
    Full, cpu,
    debug::debug_with,
    lines::{SharedLines, WrongMemory, load_acquire},
    payload::Payload,
    slot_ring::SlotRing,
    sync::{AtomicU64, Ordering},
};

/// Number of lines before the slots.
const HEAD_LINES: usize = 3;
/// Number of slots from the next slot to write, which the consumer polls, to the slot that is prefetched.
const AHEAD: u64 = 2;

/// Number of lines of a ring. `capacity`, in items, is rounded up to a power of two.
///
/// # Panics
/// If `capacity` exceeds 2^30.
#[must_use]
pub fn lines_of<T: Payload>(capacity: usize) -> usize {
    SlotRing::<T, HEAD_LINES>::lines_of(capacity)
}

/// The memory of a ring.
struct Ring<T>(SlotRing<T, HEAD_LINES>);

impl<T> Ring<T> {
    fn over(lines: SharedLines) -> Result<Ring<T>, WrongMemory> {
        if lines.is_writable() { Ok(Ring(SlotRing::over(lines)?)) } else { Err(WrongMemory) }
    }

    /// The word with the consumer's next position.
    #[inline(always)]
    fn head(&self) -> &AtomicU64 {
        self.0.head::<0>()
    }

    /// The word that is 1 once the producer disconnected.
    fn producer_disconnected(&self) -> &AtomicU64 {
        self.0.head::<1>()
    }

    /// The word that is 1 once the consumer disconnected.
    fn consumer_disconnected(&self) -> &AtomicU64 {
        self.0.head::<2>()
    }
}

/// The pushing end of a ring.
pub struct Producer<T> {
    ring: Ring<T>,
    /// Next position to write.
    position: u64,
    /// The consumer's next position, as last loaded.
    head: u64,
    is_broken: bool,
}

impl<T: Payload> Producer<T> {
    /// Creates the producer of a ring in zeroed memory. No producer may have pushed to the ring before.
    ///
    /// # Errors
    /// [`WrongMemory`] when the size is not that of a ring, or the memory is read-only.
    pub fn over(lines: SharedLines) -> Result<Producer<T>, WrongMemory> {
        Ok(Producer { ring: Ring::over(lines)?, position: 0, head: 0, is_broken: false })
    }

    /// Appends an item.
    ///
    /// # Errors
    /// [`Full`] returns the item while the consumer has not freed a slot, or its position [is
    /// impossible](Producer::is_broken).
    #[inline]
    pub fn try_push(&mut self, item: T) -> Result<(), Full<T>> {
        if self.position - self.head > self.ring.0.mask && !self.refresh_head() {
            return Err(Full(item));
        }
        let slot = self.ring.0.slot(self.position);
        slot.store(&item);
        slot.sequence().store(self.position + 1, Ordering::Release);
        self.position += 1;
        cpu::prefetch_write_ahead(&self.ring.0.slot(self.position + AHEAD).0[0], 0);
        Ok(())
    }

    /// Loads the consumer's position. Returns false if the ring is still full or the position impossible.
    fn refresh_head(&mut self) -> bool {
        let Some(head) = self.load_head() else {
            self.is_broken = true;
            return false;
        };
        self.head = head;
        self.position - head <= self.ring.0.mask
    }

    /// Loads the consumer's next position; `None` if it decreased, or exceeds the number of pushed items.
    fn load_head(&self) -> Option<u64> {
        Some(self.ring.head().load(Ordering::Acquire))
            .filter(|head| (self.head..=self.position).contains(head))
    }

    /// Number of items that can be pushed now; 0 if the other end has stored an impossible position.
    #[must_use]
    pub fn free_slots(&self) -> u64 {
        self.load_head().map_or(0, |head| self.ring.0.capacity() - (self.position - head))
    }

    /// Whether a push has found an impossible position of the consumer, which is then damaged or hostile. The
    /// ring is no longer usable.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Whether the consumer has announced its disconnect; a killed consumer does not.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        load_acquire(self.ring.consumer_disconnected()) != 0
    }

    /// Capacity of the ring in items.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.ring.0.capacity() as usize
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.ring.producer_disconnected().store(1, Ordering::Release);
    }
}

/// The popping end of a ring.
pub struct Consumer<T> {
    ring: Ring<T>,
    /// Next position to read.
    position: u64,
}

impl<T: Payload> Consumer<T> {
    /// Creates the consumer of a ring. No consumer may have popped from the ring before.
    ///
    /// # Errors
    /// [`WrongMemory`] when the size is not that of a ring, or the memory is read-only.
    pub fn over(lines: SharedLines) -> Result<Consumer<T>, WrongMemory> {
        Ok(Consumer { ring: Ring::over(lines)?, position: 0 })
    }

    /// Takes the next item; `None` when there is none yet. A hostile producer can store any value in an item.
    #[inline]
    pub fn try_pop(&mut self) -> Option<T> {
        let slot = self.ring.0.slot(self.position);
        if load_acquire(slot.sequence()) != self.position + 1 {
            return None;
        }
        let item = slot.load();
        self.position += 1;
        self.ring.head().store(self.position, Ordering::Release);
        Some(item)
    }

    /// Whether the producer has announced its disconnect; a killed producer does not. Earlier items can still
    /// be popped: if this is true and `try_pop` then returns `None`, there is nothing more to pop.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        load_acquire(self.ring.producer_disconnected()) != 0
    }

    /// Capacity of the ring in items.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.ring.0.capacity() as usize
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.ring.consumer_disconnected().store(1, Ordering::Release);
    }
}

debug_with!(Producer<T>: "position", it => it.position);
debug_with!(Consumer<T>: "position", it => it.position);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn ring(capacity: usize) -> (SharedLines, Producer<[u64; 9]>, Consumer<[u64; 9]>) {
        let lines = SharedLines::zeroed(lines_of::<[u64; 9]>(capacity));
        let producer = Producer::over(lines.clone()).expect("made for it");
        let consumer = Consumer::over(lines.clone()).expect("made for it");
        (lines, producer, consumer)
    }

    #[test]
    fn items_pass_in_order_and_a_full_ring_returns_them() {
        for capacity in [1, 2, 8] {
            let (_, mut producer, mut consumer) = ring(capacity);
            assert_eq!((producer.capacity(), consumer.capacity()), (capacity, capacity));
            for wrap in 0..5 {
                for item in 0..capacity as u64 {
                    assert_eq!(producer.try_push([wrap * 100 + item; 9]), Ok(()));
                }
                assert_eq!((producer.try_push([7; 9]), producer.free_slots()), (Err(Full([7; 9])), 0));
                for item in 0..capacity as u64 {
                    assert_eq!(consumer.try_pop(), Some([wrap * 100 + item; 9]));
                }
                assert_eq!((consumer.try_pop(), producer.free_slots()), (None, capacity as u64));
            }
            assert!(!producer.is_broken());
        }
    }

    #[test]
    fn each_end_detects_a_disconnect() {
        let (_, mut producer, mut consumer) = ring(2);
        assert!(!producer.is_abandoned() && !consumer.is_disconnected());
        producer.try_push([1; 9]).unwrap();
        drop(producer);
        assert!(consumer.is_disconnected());
        assert_eq!((consumer.try_pop(), consumer.try_pop()), (Some([1; 9]), None));
        let (_, producer, consumer) = ring(2);
        drop(consumer);
        assert!(producer.is_abandoned());
    }

    #[test]
    fn writes_of_the_other_end_are_detected_or_harmless() {
        for head in [1, 3, u64::MAX, 1 << 63] {
            let (lines, mut producer, _consumer) = ring(1);
            assert!(lines.store(0, 0, head) && !producer.is_broken());
            let _ = (producer.try_push([1; 9]), producer.try_push([1; 9]), producer.try_push([1; 9]));
            assert!(producer.is_broken() || head == 1);
        }
        let (lines, mut producer, mut consumer) = ring(2);
        for word in [0, 1, 2, 3, u64::MAX] {
            (0..lines.count()).for_each(|line| assert!(lines.store(line, 0, word)));
            for _ in 0..9 {
                let _ = (producer.try_push([1; 9]), consumer.try_pop());
            }
        }
        for count in [0, 2, 3, 6] {
            let lines = SharedLines::zeroed(count);
            assert_eq!(Producer::<u64>::over(lines.clone()).err(), Some(WrongMemory), "{count}");
            assert_eq!(Consumer::<u64>::over(lines).err(), Some(WrongMemory), "{count}");
        }
    }
}

//! Broadcast ring: one producer, any number of consumers, each of which sees every message.
//!
//! The ring for market data from a feed handler to several engines. The producer never waits: when the ring
//! is full, it overwrites the oldest message. A consumer that was overtaken receives the number of lost
//! messages and resumes with the oldest message that is still there.
//!
//! # Protocol
//!
//! A slot is a seqlock: a sequence word and the payload, aligned to a cache line. A consumer may read a slot
//! while the producer writes it, so the payload is stored and loaded as relaxed atomic words, which makes a
//! torn copy harmless, and the sequence shows whether the copy is torn.
//!
//! - For position `p` the producer stores sequence := `2p + 1` (relaxed), a release fence, the words
//!   (relaxed), sequence := `2p + 2` (release), `tail := p + 1` (release).
//! - A consumer at position `p` loads the sequence (relaxed, then an acquire fence, because its memory may be
//!   mapped read-only). Less than `2p + 2`: there is no message yet. More: it was overtaken. Equal: it loads
//!   the words (relaxed), an acquire fence, and the sequence again (relaxed); the copy is good if the
//!   sequence is still `2p + 2`.
//! - The first load reads the release store of `2p + 2`, so the words of `p` are visible before the copy, and
//!   no older word is seen. If the copy saw a newer word, written for `q > p`, the two fences order the
//!   sequence `2q + 1`, which precedes that word, before the second load, which then does not see `2p + 2`.
//! - A consumer that was overtaken reads `tail` to find the oldest message that is still there:
//!   `tail - capacity`. A normal receive does not read `tail`.
//!
//! The ring may lie in memory that processes share: [`lines_of`], [`Sender::over`], [`Receiver::over`].
//!
//! ```
//! use tickpath_lockfree::broadcast::{self, Lagged};
//!
//! let (mut sender, mut first) = broadcast::channel::<u64>(2);
//! let mut second = sender.subscribe();
//! sender.send(10);
//! assert_eq!(first.try_recv(), Ok(Some(10)));
//! sender.send(11);
//! sender.send(12);
//! assert_eq!(first.try_recv(), Ok(Some(11)));
//! assert_eq!(second.try_recv(), Err(Lagged(1)));
//! assert_eq!(second.try_recv(), Ok(Some(11)));
//! assert_eq!(second.try_recv(), Ok(Some(12)));
//! assert_eq!(second.try_recv(), Ok(None));
//! ```

use crate::{
    cpu,
    debug::debug_with,
    lines::{SharedLines, WrongMemory, load_acquire},
    slot_ring::SlotRing,
    sync::{Arc, AtomicU64, Ordering, fence},
    wake::{Waker, Wakers},
};

pub use crate::payload::Payload;

/// Error: the consumer was overtaken and lost this many messages. The next receive resumes with the oldest
/// message that is still there.
///
/// Treat it as a gap in the sequence: rebuild the state from a snapshot, or raise the ring's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lost {0} messages by reading too slowly: rebuild the state, or raise the capacity")]
pub struct Lagged(pub u64);

/// Number of slots from the next slot to write, which receivers poll, to the slot that is prefetched.
const AHEAD: u64 = 3;

/// Number of lines before the slots: one for `tail`, one for the word that is 1 once the sender was dropped.
const HEAD_LINES: usize = 2;

struct Shared<T> {
    ring: SlotRing<T, HEAD_LINES>,
    /// Wakers of the receivers' threads, for receivers in this process.
    wakers: Wakers,
}

/// Number of cache lines of a ring in the caller's memory. `capacity`, in messages, is rounded up to a power
/// of two.
///
/// The lines in order: one whose first word is the position after the last message; one whose first word is
/// 1 once the sender was dropped; the slots. A slot has as many lines as its sequence and the message need:
/// one for a message of up to 56 bytes, two for up to 120.
///
/// # Panics
/// If `capacity` exceeds 2^30.
#[must_use]
pub fn lines_of<T: Payload>(capacity: usize) -> usize {
    SlotRing::<T, HEAD_LINES>::lines_of(capacity)
}

impl<T> Shared<T> {
    fn over(lines: SharedLines) -> Result<Shared<T>, WrongMemory> {
        Ok(Shared { ring: SlotRing::over(lines)?, wakers: Wakers::default() })
    }

    /// The word with the position after the last message.
    #[inline(always)]
    fn tail(&self) -> &AtomicU64 {
        self.ring.head::<0>()
    }

    /// The word that is 1 once the sender was dropped.
    fn sender_dropped(&self) -> &AtomicU64 {
        self.ring.head::<1>()
    }
}

// A position from shared memory may have any value, so this arithmetic wraps; a sender's position never does.

const fn writing(position: u64) -> u64 {
    position.wrapping_mul(2).wrapping_add(1)
}

const fn written(position: u64) -> u64 {
    position.wrapping_mul(2).wrapping_add(2)
}

/// Creates a ring of at least `capacity` messages, rounded up to a power of two, and its first consumer.
///
/// # Panics
/// If `capacity` exceeds 2^30.
#[must_use]
pub fn channel<T: Payload>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::over(SharedLines::zeroed(lines_of::<T>(capacity))).expect("made for it");
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// The sending half of a ring. Aligned to a cache line, so that adjacent halves do not share one.
#[repr(align(64))]
pub struct Sender<T> {
    /// Next position to write.
    position: u64,
    shared: Arc<Shared<T>>,
}

impl<T: Payload> Sender<T> {
    /// Creates a sender into the caller's memory, [`lines_of`] lines long. Zeroed memory is an empty ring; in
    /// a ring that had another sender, this one continues after the last message.
    ///
    /// There must be no other sender into the same memory: receivers would see torn messages.
    ///
    /// # Errors
    /// [`WrongMemory`] when the size is not that of a ring, or the memory is read-only.
    pub fn over(lines: SharedLines) -> Result<Sender<T>, WrongMemory> {
        if !lines.is_writable() {
            return Err(WrongMemory);
        }
        let shared = Shared::over(lines)?;
        shared.sender_dropped().store(0, Ordering::Release);
        let position = shared.tail().load(Ordering::Relaxed);
        Ok(Sender { position, shared: Arc::new(shared) })
    }

    /// Appends a message, and overwrites the oldest one when the ring is full.
    #[inline]
    pub fn send(&mut self, item: T) {
        let slot = self.shared.ring.slot(self.position);
        slot.sequence().store(writing(self.position), Ordering::Relaxed);
        fence(Ordering::Release);
        slot.store(&item);
        slot.sequence().store(written(self.position), Ordering::Release);
        self.position += 1;
        self.shared.tail().store(self.position, Ordering::Release);
        for line in self.shared.ring.slot(self.position + AHEAD).0 {
            cpu::prefetch_write_ahead(line, 0);
        }
        self.shared.wakers.wake_if_asleep();
    }

    /// Adds a consumer, which receives messages sent from now on. Allocates nothing.
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver { position: self.position, shared: Arc::clone(&self.shared) }
    }

    /// Number of messages sent to the ring since it was created, including those of earlier senders.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.position
    }

    /// Capacity of the ring in messages.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.ring.capacity() as usize
    }

    /// Whether the ring has no consumer now. Consumers made by [`Receiver::over`] are not counted.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.shared.sender_dropped().store(1, Ordering::Release);
    }
}

/// A receiving half of a ring. Aligned to a cache line, so that adjacent halves do not share one.
#[repr(align(64))]
pub struct Receiver<T> {
    /// Next position to read.
    position: u64,
    shared: Arc<Shared<T>>,
}

impl<T: Payload> Receiver<T> {
    /// Creates a read-only consumer of a ring in the caller's memory. It receives messages sent from now on.
    ///
    /// A receive terminates whatever the memory contains, but corrupt memory can yield messages never sent.
    ///
    /// # Errors
    /// [`WrongMemory`] when the size is not that of a ring.
    pub fn over(lines: SharedLines) -> Result<Receiver<T>, WrongMemory> {
        let shared = Shared::over(lines)?;
        let position = load_acquire(shared.tail());
        Ok(Receiver { position, shared: Arc::new(shared) })
    }

    /// Makes every message wake the thread behind `waker` if it sleeps. Has no effect for a receiver made by
    /// [`Receiver::over`], which shares no wakers with its sender.
    ///
    /// # Panics
    /// When the ring has the [maximum number](crate::wake::WAKERS_MAX) of wakers already.
    pub fn wake_by(&self, waker: &Waker) {
        self.shared.wakers.add(waker);
    }

    /// Moves back to the oldest message that is still there.
    pub fn rewind(&mut self) {
        self.position = load_acquire(self.shared.tail()).saturating_sub(self.shared.ring.capacity());
    }

    /// Moves to message `position`, counted from 0 for the first one ever sent, but at most past the last
    /// one. If that message was overwritten, the next receive returns the number of lost messages.
    pub fn seek(&mut self, position: u64) {
        self.position = position.min(load_acquire(self.shared.tail()));
    }

    /// Number of messages that were sent before the next one to receive.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Takes the next message; `None` when there is none yet.
    ///
    /// # Errors
    /// [`Lagged`] when the producer has overwritten the message; the next call resumes with the oldest
    /// message that is still there.
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<T>, Lagged> {
        let slot = self.shared.ring.slot(self.position);
        let sequence = load_acquire(slot.sequence());
        if sequence < written(self.position) {
            return Ok(None);
        }
        let item = slot.load();
        fence(Ordering::Acquire);
        // This also detects a first load that saw a later message's sequence: sequences never decrease.
        if slot.sequence().load(Ordering::Relaxed) != written(self.position) {
            return Err(self.skip_to_oldest());
        }
        self.position = self.position.wrapping_add(1);
        Ok(Some(item))
    }

    #[cold]
    #[inline(never)]
    fn skip_to_oldest(&mut self) -> Lagged {
        let tail = load_acquire(self.shared.tail());
        let oldest = tail.saturating_sub(self.shared.ring.capacity());
        // The current message was overwritten even if `tail` does not show it yet.
        let next = oldest.max(self.position.wrapping_add(1));
        let lost = next.wrapping_sub(self.position);
        self.position = next;
        Lagged(lost)
    }

    /// Number of messages not received yet, including lost ones.
    #[must_use]
    pub fn len(&self) -> u64 {
        load_acquire(self.shared.tail()).saturating_sub(self.position)
    }

    /// Whether there is nothing to receive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Capacity of the ring in messages.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.ring.capacity() as usize
    }

    /// Whether the producer was dropped. Messages sent before can still be received.
    ///
    /// If this is true and `try_recv` then returns `Ok(None)`, there is nothing more to receive.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        load_acquire(self.shared.sender_dropped()) != 0
    }
}

impl<T> Clone for Receiver<T> {
    /// Returns another consumer at the same position.
    fn clone(&self) -> Self {
        Self { position: self.position, shared: Arc::clone(&self.shared) }
    }
}

debug_with!(Sender<T>: "position", it => it.position);
debug_with!(Receiver<T>: "position", it => it.position);

#[cfg(test)]
mod tests {
    use tickpath_types::{MarketUpdate, PriceLevel};
    use zerocopy::FromZeros;

    use super::*;

    fn update(sequence: u64) -> MarketUpdate {
        MarketUpdate {
            sequence,
            ask: PriceLevel { price: 0, qty: !sequence },
            kind: 3,
            health: 2,
            ..MarketUpdate::new_zeroed()
        }
    }

    #[test]
    fn a_full_ring_overwrites_the_oldest_and_reports_the_loss() {
        for (requested, capacity) in [(0, 1), (1, 1), (2, 2), (5, 8)] {
            let (mut sender, receiver) = channel::<MarketUpdate>(requested);
            assert_eq!((sender.capacity() as u64, receiver.capacity() as u64), (capacity, capacity));
            for excess in 0..=3 * capacity {
                let mut receiver = receiver.clone();
                while sender.sent() < capacity + excess {
                    sender.send(update(sender.sent()));
                }
                assert_eq!(receiver.len(), capacity + excess);
                if excess > 0 {
                    assert_eq!(receiver.try_recv(), Err(Lagged(excess)));
                }
                for sequence in excess..excess + capacity {
                    assert_eq!(receiver.try_recv(), Ok(Some(update(sequence))));
                }
                assert_eq!(receiver.try_recv(), Ok(None));
                assert!(receiver.is_empty());
            }
        }
    }

    #[test]
    fn each_receiver_sees_everything_from_its_start() {
        let (mut sender, mut first) = channel::<u64>(4);
        sender.send(1);
        let mut late = sender.subscribe();
        sender.send(2);
        let mut copy = first.clone();
        for receiver in [&mut first, &mut copy] {
            assert_eq!(receiver.try_recv(), Ok(Some(1)));
            assert_eq!(receiver.try_recv(), Ok(Some(2)));
            assert_eq!(receiver.try_recv(), Ok(None));
        }
        assert_eq!(late.try_recv(), Ok(Some(2)));
        assert_eq!(late.try_recv(), Ok(None));
    }

    #[test]
    fn a_message_being_written_counts_as_lost_or_not_yet_sent() {
        let (mut sender, mut receiver) = channel::<u64>(2);
        sender.send(1);
        sender.send(2);
        let slot = sender.shared.ring.slot(2);
        slot.sequence().store(writing(2), Ordering::Relaxed);
        let mut waiting = sender.subscribe();
        assert_eq!(waiting.try_recv(), Ok(None));
        assert_eq!(receiver.try_recv(), Err(Lagged(1)));
        assert_eq!(receiver.try_recv(), Ok(Some(2)));
        assert_eq!(receiver.try_recv(), Ok(None));
    }

    #[test]
    fn a_receiver_starts_at_the_given_position() {
        let (mut sender, mut receiver) = channel::<u64>(4);
        (0..6).for_each(|item| sender.send(item));
        receiver.seek(3);
        assert_eq!((receiver.try_recv(), receiver.position()), (Ok(Some(3)), 4));
        receiver.seek(1);
        assert_eq!((receiver.try_recv(), receiver.try_recv()), (Err(Lagged(1)), Ok(Some(2))));
        receiver.seek(u64::MAX);
        assert_eq!((receiver.try_recv(), receiver.position()), (Ok(None), 6));
    }

    fn passes<T: Payload + PartialEq + core::fmt::Debug>(lines: usize, item: T) {
        let (mut sender, mut receiver) = channel::<T>(4);
        assert_eq!(SlotRing::<T, HEAD_LINES>::SLOT_LINES, lines);
        for _ in 0..9 {
            sender.send(item);
            assert_eq!(receiver.try_recv(), Ok(Some(item)));
        }
    }

    #[test]
    fn payloads_of_any_size_pass() {
        passes(1, ());
        passes(1, 200_u8);
        passes(1, [1_u8, 2, 3, 4, 5, 6, 7, 8, 9]);
        passes(1, core::array::from_fn::<u8, 56, _>(|byte| byte as u8));
        passes(2, core::array::from_fn::<u8, 57, _>(|byte| byte as u8));
        passes(2, update(u64::MAX));
        passes(2, core::array::from_fn::<u64, 15, _>(|word| word as u64));
        passes(3, core::array::from_fn::<u64, 16, _>(|word| word as u64));
    }

    #[test]
    fn a_ring_uses_the_given_memory() {
        let lines = SharedLines::zeroed(lines_of::<MarketUpdate>(4));
        let mut receiver = Receiver::<MarketUpdate>::over(lines.clone()).unwrap();
        let mut sender = Sender::<MarketUpdate>::over(lines.clone()).unwrap();
        for sequence in 1..=3 {
            sender.send(update(sequence));
        }
        assert_eq!(receiver.try_recv(), Ok(Some(update(1))));
        drop(sender);
        assert!(receiver.is_disconnected());
        let mut sender = Sender::<MarketUpdate>::over(lines.clone()).unwrap();
        assert!(!receiver.is_disconnected());
        sender.send(update(4));
        receiver.rewind();
        for sequence in 1..=4 {
            assert_eq!(receiver.try_recv(), Ok(Some(update(sequence))));
        }
        assert_eq!((receiver.try_recv(), receiver.position()), (Ok(None), 4));
        for count in [0, 1, 2, 3, 4 * 2 + 1, 3 * 2 + 2] {
            let lines = SharedLines::zeroed(count);
            assert_eq!(Receiver::<MarketUpdate>::over(lines.clone()).err(), Some(WrongMemory), "{count}");
            assert_eq!(Sender::<MarketUpdate>::over(lines).err(), Some(WrongMemory), "{count}");
        }
    }

    #[test]
    fn a_receive_ends_whatever_the_memory_holds() {
        for word in [1, 2, u64::MAX, u64::MAX - 1, 1 << 63] {
            let lines = SharedLines::zeroed(lines_of::<u64>(2));
            let mut early = Receiver::<u64>::over(lines.clone()).unwrap();
            (0..lines.count()).for_each(|line| assert!(lines.store(line, 0, word)));
            let mut late = Receiver::<u64>::over(lines).unwrap();
            for receiver in [&mut early, &mut late] {
                for _ in 0..9 {
                    let _ = (receiver.try_recv(), receiver.len(), receiver.is_disconnected());
                }
                receiver.rewind();
                let _ = receiver.try_recv();
            }
        }
    }

    #[test]
    fn each_side_detects_a_disconnect() {
        let (mut sender, mut receiver) = channel::<u64>(2);
        let other = receiver.clone();
        drop(other);
        assert!(!receiver.is_disconnected() && !sender.is_abandoned());
        sender.send(1);
        drop(sender);
        assert!(receiver.is_disconnected());
        assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(Some(1)), Ok(None)));

        let (mut sender, receiver) = channel::<u64>(2);
        drop(receiver);
        assert!(sender.is_abandoned());
        (0..9).for_each(|item| sender.send(item));
        assert!(!{ sender.subscribe() }.is_disconnected());
    }
}

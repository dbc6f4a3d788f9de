//! Broadcast ring: one producer, any number of consumers, each of which sees every message.
//!
//! The ring for market data from a feed handler to several engines. The producer never waits: at the
//! bound it overwrites the oldest message. A consumer that was overtaken is told how many messages it
//! lost and goes on with the oldest one that is still there.
//!
//! # Protocol
//!
//! A slot is a seqlock: a sequence word and the payload, from the start of a cache line on. A consumer
//! may read a slot while the producer writes it, so the payload is stored and loaded as relaxed atomic
//! words, which makes a torn copy harmless, and the sequence tells whether the copy is torn.
//!
//! - For position `p` the producer stores sequence := `2p + 1` (relaxed), a release fence, the words
//!   (relaxed), sequence := `2p + 2` (release), `tail := p + 1` (release).
//! - A consumer at position `p` loads the sequence (acquire). Less than `2p + 2`: nothing there yet.
//!   More: it was overtaken. Equal: it loads the words (relaxed), an acquire fence, and the sequence
//!   again (relaxed); the copy is good if that is still `2p + 2`.
//! - The first load and the producer's last store order the words of `p` before the copy, so that no
//!   older word is seen. If the copy saw a newer word, written for `q > p`, the two fences order the
//!   sequence `2q + 1`, which precedes that word, before the second load, which then does not see `2p + 2`.
//! - `tail` is read only by a consumer that was overtaken: the oldest message still there is
//!   `tail - capacity`.
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

use core::{fmt, marker::PhantomData};

use crate::{
    CachePadded,
    capacity::ring_capacity,
    cpu, payload,
    sync::{Arc, AtomicBool, AtomicU64, Ordering, fence},
};

pub use crate::payload::Payload;

/// The consumer was overtaken and lost this many messages; the next receive goes on with the oldest
/// message that is still there.
///
/// Treat as a gap in the sequence: rebuild from a snapshot, or raise the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagged(pub u64);

impl fmt::Display for Lagged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lost {} messages by reading too slowly: rebuild the state, or raise the capacity", self.0)
    }
}

impl core::error::Error for Lagged {}

const LINE_WORDS: usize = 8;
/// Slots that the next one to write is fetched ahead of. Not the next itself, which receivers poll.
const AHEAD: u64 = 3;

/// One cache line of a slot.
#[repr(align(64))]
struct Line([AtomicU64; LINE_WORDS]);

/// How the payload `T` lies in the lines of a slot: one word for the sequence, then its own words, the
/// last one filled up with zeros.
struct Layout<T>(PhantomData<T>);

impl<T> Layout<T> {
    const LINES: usize = (1 + payload::words_of::<T>()).div_ceil(LINE_WORDS);
}

struct Shared {
    /// Position after the last message.
    tail: CachePadded<AtomicU64>,
    sender_dropped: AtomicBool,
    /// Capacity - 1.
    mask: u64,
    lines: Box<[Line]>,
}

/// A slot: its sequence, then the words of the payload.
#[derive(Clone, Copy)]
struct Slot<'a>(&'a [Line]);

impl<'a> Slot<'a> {
    fn sequence(self) -> &'a AtomicU64 {
        &self.0[0].0[0]
    }

    #[inline(always)]
    fn word(self, index: usize) -> &'a AtomicU64 {
        &self.0[(1 + index) / LINE_WORDS].0[(1 + index) % LINE_WORDS]
    }

    #[inline(always)]
    fn store<T: Payload>(self, item: &T) {
        payload::store(item, |index| self.word(index));
    }

    #[inline(always)]
    fn load<T: Payload>(self) -> T {
        payload::load(|index| self.word(index))
    }
}

impl Shared {
    #[inline(always)]
    fn slot<T>(&self, position: u64) -> Slot<'_> {
        let first = (position & self.mask) as usize * Layout::<T>::LINES;
        Slot(&self.lines[first..first + Layout::<T>::LINES])
    }

    fn capacity(&self) -> u64 {
        self.mask + 1
    }
}

const fn writing(position: u64) -> u64 {
    2 * position + 1
}

const fn written(position: u64) -> u64 {
    2 * position + 2
}

/// Creates a ring of at least `capacity` messages, rounded up to a power of two, and its first consumer.
///
/// # Panics
/// If `capacity` exceeds 2^30.
#[must_use]
pub fn channel<T: Payload>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let capacity = ring_capacity(capacity);
    let lines = capacity * Layout::<T>::LINES;
    let shared = Arc::new(Shared {
        tail: CachePadded::new(AtomicU64::new(0)),
        sender_dropped: AtomicBool::new(false),
        mask: capacity as u64 - 1,
        lines: (0..lines).map(|_| Line(core::array::from_fn(|_| AtomicU64::new(0)))).collect(),
    });
    // Zeros may come as pages that do not exist yet; storing touches them.
    shared.lines.iter().for_each(|line| line.0[0].store(0, Ordering::Relaxed));
    let sender = Sender { position: 0, shared, payload: PhantomData };
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// The half that sends. Aligned to a cache line, so that halves that lie side by side do not share one.
#[repr(align(64))]
pub struct Sender<T> {
    /// Next position to write.
    position: u64,
    shared: Arc<Shared>,
    payload: PhantomData<T>,
}

impl<T: Payload> Sender<T> {
    /// Appends a message, over the oldest one when the ring is full.
    #[inline]
    pub fn send(&mut self, item: T) {
        let slot = self.shared.slot::<T>(self.position);
        slot.sequence().store(writing(self.position), Ordering::Relaxed);
        fence(Ordering::Release);
        slot.store(&item);
        slot.sequence().store(written(self.position), Ordering::Release);
        self.position += 1;
        self.shared.tail.store(self.position, Ordering::Release);
        for line in self.shared.slot::<T>(self.position + AHEAD).0 {
            cpu::prefetch_write_ahead(line, 0);
        }
    }

    /// Adds a consumer, which receives what is sent from now on. Allocates nothing.
    #[must_use]
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver { position: self.position, shared: Arc::clone(&self.shared), payload: PhantomData }
    }

    /// Number of messages sent since creation.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.position
    }

    /// Number of messages that the ring keeps.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.capacity() as usize
    }

    /// Whether there is no consumer at the moment.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.shared.sender_dropped.store(true, Ordering::Release);
    }
}

/// A half that receives. Aligned to a cache line, so that halves that lie side by side do not share one.
#[repr(align(64))]
pub struct Receiver<T> {
    /// Next position to read.
    position: u64,
    shared: Arc<Shared>,
    payload: PhantomData<T>,
}

impl<T: Payload> Receiver<T> {
    /// Takes the next message; `None` when there is none yet.
    ///
    /// # Errors
    /// [`Lagged`] when the producer has overwritten it; the next call goes on with the oldest message
    /// that is still there.
    #[inline]
    pub fn try_recv(&mut self) -> Result<Option<T>, Lagged> {
        let slot = self.shared.slot::<T>(self.position);
        let sequence = slot.sequence().load(Ordering::Acquire);
        if sequence < written(self.position) {
            return Ok(None);
        }
        let item = slot.load();
        fence(Ordering::Acquire);
        // Also refuses a first load beyond this position: a sequence never goes back.
        if slot.sequence().load(Ordering::Relaxed) != written(self.position) {
            return Err(self.skip_to_oldest());
        }
        self.position += 1;
        Ok(Some(item))
    }

    #[cold]
    #[inline(never)]
    fn skip_to_oldest(&mut self) -> Lagged {
        let tail = self.shared.tail.load(Ordering::Acquire);
        let oldest = tail.saturating_sub(self.shared.capacity());
        // The message at hand is gone even if `tail` does not show it yet.
        let next = oldest.max(self.position + 1);
        let lost = next - self.position;
        self.position = next;
        Lagged(lost)
    }

    /// Number of messages not received yet, lost ones included.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.shared.tail.load(Ordering::Acquire).saturating_sub(self.position)
    }

    /// Whether there is nothing to receive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of messages that the ring keeps.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.shared.capacity() as usize
    }

    /// Whether the producer was dropped; what it sent before can still be received.
    ///
    /// True and then `try_recv() == Ok(None)`, in this order, means that the ring is finished.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        self.shared.sender_dropped.load(Ordering::Acquire)
    }
}

impl<T> Clone for Receiver<T> {
    /// Another consumer at the same position.
    fn clone(&self) -> Self {
        Self { position: self.position, shared: Arc::clone(&self.shared), payload: PhantomData }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("position", &self.position).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("position", &self.position).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::MarketUpdate;
    use zerocopy::FromZeros;

    use super::*;

    fn update(sequence: u64) -> MarketUpdate {
        MarketUpdate { sequence, ask_qty: !sequence, kind: 3, health: 2, ..MarketUpdate::new_zeroed() }
    }

    #[test]
    fn the_bound_overwrites_the_oldest_and_tells_the_loss() {
        for (asked, capacity) in [(0, 1), (1, 1), (2, 2), (5, 8)] {
            let (mut sender, receiver) = channel::<MarketUpdate>(asked);
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
    fn a_message_being_written_counts_as_lost_and_a_new_one_as_not_there() {
        let (mut sender, mut receiver) = channel::<u64>(2);
        sender.send(1);
        sender.send(2);
        let slot = sender.shared.slot::<u64>(2);
        slot.sequence().store(writing(2), Ordering::Relaxed);
        let mut waiting = sender.subscribe();
        assert_eq!(waiting.try_recv(), Ok(None));
        assert_eq!(receiver.try_recv(), Err(Lagged(1)));
        assert_eq!(receiver.try_recv(), Ok(Some(2)));
        assert_eq!(receiver.try_recv(), Ok(None));
    }

    fn passes<T: Payload + PartialEq + fmt::Debug>(lines: usize, item: T) {
        let (mut sender, mut receiver) = channel::<T>(4);
        assert_eq!(Layout::<T>::LINES, lines);
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
    fn either_side_notices_that_the_other_went() {
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

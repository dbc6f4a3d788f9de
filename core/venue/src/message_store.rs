//! Published messages, kept for retransmission.

/// Longest message that is kept: 64 bytes with its length. ITCH's longest has 50.
pub const MAX_STORED_MESSAGE: usize = 62;

const LEN_BYTES: usize = size_of::<u16>();
const SLOT_LEN: usize = LEN_BYTES + MAX_STORED_MESSAGE;
/// Smallest page of memory.
const PAGE_LEN: usize = 4096;

/// The newest messages of the market data session by sequence, in a ring of fixed size.
#[derive(Clone)]
pub struct MessageStore {
    /// Slots of [`SLOT_LEN`] bytes: a message behind its length. Zeroes are slots without one, and come from the allocator
    /// untouched.
    slots: Box<[u8]>,
    /// The first that was appended here.
    first: u64,
    next: u64,
}

impl MessageStore {
    /// Keeps the newest `capacity` messages, rounded up to a power of two, at 64 bytes each.
    #[must_use]
    pub fn new(capacity: usize) -> MessageStore {
        MessageStore::starting_at(1, capacity)
    }

    /// The same, of a session whose messages before `next` are kept no longer.
    #[must_use]
    pub fn starting_at(next: u64, capacity: usize) -> MessageStore {
        let slots = vec![0; capacity.next_power_of_two() * SLOT_LEN].into_boxed_slice();
        MessageStore { slots, first: next, next }
    }

    /// The same messages, as far as there is room for `capacity` of them.
    #[must_use]
    pub fn resized(&self, capacity: usize) -> MessageStore {
        let from = self.oldest().max(self.next.saturating_sub(capacity.next_power_of_two() as u64));
        let mut store = MessageStore::starting_at(from, capacity);
        (from..self.next)
            .filter_map(|sequence| self.message(sequence))
            .for_each(|message| store.append(message));
        store
    }

    /// Touches its memory, which otherwise is as it comes into use.
    pub fn prefault(&mut self) {
        self.slots.iter_mut().step_by(PAGE_LEN).for_each(|byte| *byte = std::hint::black_box(*byte));
    }

    /// Messages that it keeps at most.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.slots.len() / SLOT_LEN
    }

    /// Lowest sequence that is kept, or the next one when none is.
    #[inline]
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.next.saturating_sub(self.capacity() as u64).max(self.first)
    }

    /// Appends the message of the next sequence.
    ///
    /// # Panics
    /// If `message` is longer than 62 bytes, which no ITCH message is.
    #[inline]
    pub fn append(&mut self, message: &[u8]) {
        let index = self.index(self.next);
        let slot = &mut self.slots[index * SLOT_LEN..][..SLOT_LEN];
        slot[LEN_BYTES..][..message.len()].copy_from_slice(message);
        slot[..LEN_BYTES].copy_from_slice(&(message.len() as u16).to_le_bytes());
        self.next += 1;
    }

    /// The message of `sequence`, unless it is overwritten or not published yet.
    #[inline]
    #[must_use]
    pub fn message(&self, sequence: u64) -> Option<&[u8]> {
        if sequence < self.oldest() || sequence >= self.next {
            return None;
        }
        let slot = &self.slots[self.index(sequence) * SLOT_LEN..][..SLOT_LEN];
        let (len, bytes) = slot.split_at(LEN_BYTES);
        Some(&bytes[..usize::from(u16::from_le_bytes([len[0], len[1]]))])
    }

    /// Sequence of the next message to be appended.
    #[inline]
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        self.next
    }

    #[inline]
    fn index(&self, sequence: u64) -> usize {
        sequence as usize & (self.capacity() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_begins_later_or_gets_another_size_keeps_its_numbers() {
        let mut store = MessageStore::starting_at(7, 4);
        assert_eq!((store.oldest(), store.next_sequence(), store.message(6)), (7, 7, None));
        (7..=12_u8).for_each(|byte| store.append(&[byte; 20]));
        for (capacity, oldest) in [(2, 11), (4, 9), (8, 9)] {
            let store = store.resized(capacity);
            assert_eq!((store.oldest(), store.next_sequence(), store.capacity()), (oldest, 13, capacity));
            assert_eq!((store.message(oldest - 1), store.message(12)), (None, Some(&[12; 20][..])));
        }
    }

    #[test]
    fn the_newest_messages_are_kept() {
        let mut store = MessageStore::new(2);
        for byte in 1..=3_u8 {
            store.append(&[byte; 50]);
        }
        assert_eq!(store.message(1), None);
        assert_eq!(store.message(2), Some(&[2; 50][..]));
        assert_eq!(store.message(3), Some(&[3; 50][..]));
        assert_eq!(store.message(4), None);
        assert_eq!(store.next_sequence(), 4);
    }
}

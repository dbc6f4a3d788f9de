//! Numbered messages of one stream, kept so that they can be resent.

use tickpath_nasdaq::ouch50::MESSAGE_LEN_MAX;

/// Maximum length of a market data message: with its length field, it fills 64 bytes. ITCH's longest is 50.
pub const MAX_STORED_MESSAGE: usize = 62;
/// Maximum length of a stored message to a user: OUCH's longest response with all optional fields.
pub const MAX_LOGGED_MESSAGE: usize = MESSAGE_LEN_MAX;

/// The messages of the market data session, kept for retransmission.
pub type MessageStore = MessageLog<MAX_STORED_MESSAGE>;
/// The messages to one user.
///
/// The user's connection sends its messages from this log.
pub type SessionLog = MessageLog<MAX_LOGGED_MESSAGE>;

const LEN_BYTES: usize = size_of::<u16>();
/// Smallest memory page, in bytes.
const PAGE_LEN: usize = 4096;

/// The newest messages of a stream, by sequence number from 1, each of at most `LEN_MAX` bytes.
///
/// A fixed number of messages is kept; older ones are overwritten.
#[derive(Clone)]
pub struct MessageLog<const LEN_MAX: usize> {
    /// Slots of [`MessageLog::SLOT_LEN`] bytes, each with a message after its length; zeroes if unused.
    slots: Box<[u8]>,
    /// Sequence number of the first message appended to this log.
    first: u64,
    next: u64,
}

impl<const LEN_MAX: usize> MessageLog<LEN_MAX> {
    const SLOT_LEN: usize = LEN_BYTES + LEN_MAX;

    /// A log for `capacity` messages, rounded up to a power of two; the first has sequence number 1.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self::starting_at(1, capacity)
    }

    /// Like [`new`](Self::new), but the first message appended has the sequence number `next`.
    #[must_use]
    pub fn starting_at(next: u64, capacity: usize) -> Self {
        let slots = vec![0; capacity.next_power_of_two() * Self::SLOT_LEN].into_boxed_slice();
        MessageLog { slots, first: next, next }
    }

    /// A copy of this log with another capacity; it keeps the newest messages that fit.
    #[must_use]
    pub fn resized(&self, capacity: usize) -> Self {
        let from = self.oldest().max(self.next.saturating_sub(capacity.next_power_of_two() as u64));
        let mut resized = Self::starting_at(from, capacity);
        (from..self.next).filter_map(|it| self.message(it)).for_each(|message| resized.append(message));
        resized
    }

    /// Touches all pages of the log, so that appending causes no page faults.
    pub fn prefault(&mut self) {
        self.slots.iter_mut().step_by(PAGE_LEN).for_each(|byte| *byte = std::hint::black_box(*byte));
    }

    /// Maximum number of kept messages.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.slots.len() / Self::SLOT_LEN
    }

    /// Appends a message under the next sequence number.
    ///
    /// # Panics
    /// If `message` is longer than `LEN_MAX` bytes.
    #[inline]
    pub fn append(&mut self, message: &[u8]) {
        self.append_with(|out| {
            out[..message.len()].copy_from_slice(message);
            message.len()
        });
    }

    /// Appends the message that `encode` writes; `encode` returns its length.
    #[inline]
    pub fn append_with(&mut self, encode: impl FnOnce(&mut [u8]) -> usize) {
        let index = self.index(self.next);
        let slot = &mut self.slots[index * Self::SLOT_LEN..][..Self::SLOT_LEN];
        let len = encode(&mut slot[LEN_BYTES..]);
        slot[..LEN_BYTES].copy_from_slice(&(len as u16).to_le_bytes());
        self.next += 1;
    }

    /// Appends the message in the first `len` bytes of `buffer`. If the buffer is long enough, this copies
    /// `LEN_MAX` bytes, because a copy of constant length takes a few instructions and no call.
    ///
    /// # Panics
    /// If `len` exceeds `LEN_MAX` or the buffer's length.
    #[inline]
    pub fn append_start_of(&mut self, buffer: &[u8], len: usize) {
        self.append_with(|out| {
            match (buffer.first_chunk::<LEN_MAX>(), out.first_chunk_mut()) {
                (Some(start), Some(out)) => *out = *start,
                _ => out[..len].copy_from_slice(&buffer[..len]),
            }
            assert!(len <= LEN_MAX, "a message has at most {LEN_MAX} bytes: {len}");
            len
        });
    }

    /// The message with this sequence number, unless overwritten or not yet appended.
    #[inline]
    #[must_use]
    pub fn message(&self, sequence: u64) -> Option<&[u8]> {
        if !self.holds(sequence) {
            return None;
        }
        let slot = &self.slots[self.index(sequence) * Self::SLOT_LEN..][..Self::SLOT_LEN];
        let (len, bytes) = slot.split_at(LEN_BYTES);
        Some(&bytes[..usize::from(u16::from_le_bytes([len[0], len[1]]))])
    }

    /// True when the message with this sequence number is kept.
    #[inline]
    #[must_use]
    pub fn holds(&self, sequence: u64) -> bool {
        sequence < self.next && sequence >= self.oldest()
    }

    /// Sequence number of the next message to be appended.
    #[inline]
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        self.next
    }

    /// Lowest kept sequence number, or the next one when no message is kept.
    #[inline]
    #[must_use]
    pub fn oldest(&self) -> u64 {
        self.next.saturating_sub(self.capacity() as u64).max(self.first)
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
    fn resized_and_later_logs_keep_their_numbers() {
        let mut log = MessageStore::starting_at(7, 4);
        assert_eq!((log.oldest(), log.next_sequence(), log.message(6)), (7, 7, None));
        (7..=12_u8).for_each(|byte| log.append(&[byte; 20]));
        for (capacity, oldest) in [(2, 11), (4, 9), (8, 9)] {
            let log = log.resized(capacity);
            assert_eq!((log.oldest(), log.next_sequence(), log.capacity()), (oldest, 13, capacity));
            assert_eq!((log.message(oldest - 1), log.message(12)), (None, Some(&[12; 20][..])));
        }
    }

    #[test]
    fn a_message_at_the_start_of_a_buffer_is_appended_without_the_rest() {
        let buffer: Vec<u8> = (0..100).collect();
        for space in [MAX_STORED_MESSAGE, MAX_STORED_MESSAGE - 1, 100, 36] {
            for len in [1, 19, 36] {
                let mut log = MessageStore::new(2);
                log.append(&[9; MAX_STORED_MESSAGE]);
                log.append_start_of(&buffer[..space], len);
                assert_eq!(log.message(2), Some(&buffer[..len]));
                assert_eq!(log.message(1), Some(&[9; MAX_STORED_MESSAGE][..]));
            }
        }
    }

    #[test]
    #[should_panic(expected = "a message has at most 62 bytes: 63")]
    fn a_message_that_is_too_long_is_refused() {
        MessageStore::new(1).append_start_of(&[0; 100], MAX_STORED_MESSAGE + 1);
    }

    #[test]
    fn the_newest_messages_are_kept() {
        let mut log = SessionLog::new(4);
        assert_eq!((log.next_sequence(), log.oldest(), log.message(1)), (1, 1, None));
        for byte in 1..=5 {
            log.append_with(|out| {
                out[0] = byte;
                1
            });
        }
        assert_eq!((log.next_sequence(), log.oldest()), (6, 2));
        assert_eq!(log.message(1), None, "overwritten");
        assert_eq!(log.message(2), Some(&[2][..]));
        assert_eq!(log.message(5), Some(&[5][..]));
        assert_eq!(log.message(6), None, "not there yet");
        let longest = [9; MAX_LOGGED_MESSAGE];
        log.append(&longest);
        assert_eq!(log.message(6), Some(&longest[..]));
    }
}

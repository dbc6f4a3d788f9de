//! Stores published messages for clients that lost them.

use std::collections::VecDeque;

/// Number of bytes of message memory per index entry.
const BYTES_PER_ENTRY: usize = 32;

#[derive(Clone, Copy)]
struct Entry {
    /// `Store::written` before the message was appended; [`MISSING`] if the recording lacks the message.
    at: u64,
    len: u16,
    /// Stream offset for IEX; 0 for other protocols.
    tag: u64,
}

const MISSING: u64 = u64::MAX;

/// Stores the newest messages of one channel by sequence number, in a fixed amount of memory.
pub(crate) struct Store {
    bytes: Box<[u8]>,
    /// Total bytes appended, counting those skipped at the end of `bytes` before each wrap.
    written: u64,
    entries: VecDeque<Entry>,
    entries_max: usize,
    next: u64,
}

impl Store {
    /// Creates a store of `capacity` bytes for messages, and an index of about the same size.
    pub(crate) fn new(capacity: usize) -> Store {
        let capacity = capacity.max(1 << 16);
        let entries_max = capacity / BYTES_PER_ENTRY;
        Store {
            bytes: vec![0; capacity].into_boxed_slice(),
            written: 0,
            entries: VecDeque::with_capacity(entries_max),
            entries_max,
            next: 1,
        }
    }

    /// Clears the store; the next message has sequence number `next`.
    pub(crate) fn restart(&mut self, next: u64) {
        self.entries.clear();
        self.next = next;
    }

    /// Returns the sequence number of the next message.
    pub(crate) const fn next_sequence(&self) -> u64 {
        self.next
    }

    /// Returns the lowest sequence number in the index; the next number if the index is empty.
    pub(crate) fn oldest(&self) -> u64 {
        self.next - self.entries.len() as u64
    }

    /// Appends the message with this sequence number. Messages of skipped numbers count as missing. A message
    /// below the next number is ignored.
    pub(crate) fn append(&mut self, sequence: u64, message: &[u8], tag: u64) {
        if sequence < self.next {
            return;
        }
        if sequence - self.next > self.entries_max as u64 {
            self.restart(sequence);
        }
        while self.next < sequence {
            self.push(Entry { at: MISSING, len: 0, tag: 0 });
        }
        let capacity = self.bytes.len() as u64;
        let place = self.written % capacity;
        if place + message.len() as u64 > capacity {
            self.written += capacity - place;
        }
        let (at, end) = (self.written, self.written + message.len() as u64);
        // Drop the entries of messages that this one overwrites, and missing ones among the oldest entries.
        let is_overwritten = |entry: &Entry| entry.at == MISSING || entry.at + capacity < end;
        while self.entries.front().is_some_and(is_overwritten) {
            self.entries.pop_front();
        }
        let place = (at % capacity) as usize;
        self.bytes[place..place + message.len()].copy_from_slice(message);
        self.written = end;
        self.push(Entry { at, len: message.len() as u16, tag });
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() == self.entries_max {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
        self.next += 1;
    }

    /// Returns the message with this sequence number and its tag, unless it is missing or no longer stored.
    pub(crate) fn message(&self, sequence: u64) -> Option<(&[u8], u64)> {
        let index = sequence.checked_sub(self.oldest())?;
        let Entry { at, len, tag } = *self.entries.get(usize::try_from(index).ok()?)?;
        if at == MISSING {
            return None;
        }
        let place = (at % self.bytes.len() as u64) as usize;
        Some((&self.bytes[place..place + usize::from(len)], tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(sequence: u64) -> Vec<u8> {
        vec![sequence as u8; 1 + (sequence * 37 % 900) as usize]
    }

    #[test]
    fn the_newest_messages_are_stored_up_to_the_capacity() {
        let mut store = Store::new(1 << 16);
        for sequence in 1..=5_000 {
            store.append(sequence, &message(sequence), sequence * 2);
            let oldest = store.oldest();
            for stored in [oldest, (oldest + sequence) / 2, sequence] {
                assert_eq!(store.message(stored), Some((&message(stored)[..], stored * 2)));
            }
            assert_eq!(store.message(oldest - 1), None);
            assert_eq!(store.message(sequence + 1), None);
        }
        let stored: usize = (store.oldest()..=5_000).map(|sequence| message(sequence).len()).sum();
        assert!(stored > 60_000, "{stored}");
    }

    #[test]
    fn missing_messages_are_distinguished_from_their_neighbours() {
        let mut store = Store::new(1);
        store.append(7, b"seven", 0);
        store.append(10, b"ten", 0);
        store.append(8, b"too late", 0);
        let found = [6, 7, 8, 9, 10, 11].map(|sequence| store.message(sequence).map(|(bytes, _)| bytes));
        assert_eq!(found, [None, Some(&b"seven"[..]), None, None, Some(&b"ten"[..]), None]);
        // A sequence number that is too far ahead for the index resets the store.
        store.append(1 << 40, b"far", 0);
        assert_eq!((store.oldest(), store.next_sequence()), (1 << 40, (1 << 40) + 1));
        store.restart(1);
        assert_eq!((store.oldest(), store.message(1)), (1, None));
    }

    #[test]
    fn short_messages_are_bounded_by_the_index() {
        let mut store = Store::new(1 << 16);
        (1..=10_000).for_each(|sequence| store.append(sequence, b"", 0));
        assert_eq!(store.oldest(), 10_001 - (1 << 16) / BYTES_PER_ENTRY as u64);
    }
}

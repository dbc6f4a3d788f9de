//! The queue of published messages from the publisher to the market image, of which snapshots are taken.

use tickpath_lockfree::spsc;

use crate::message_log::{MAX_STORED_MESSAGE, MessageStore};

/// Capacity of the ring in messages; further messages wait in the publisher's store.
const RING_CAPACITY: usize = 1 << 12;
/// Maximum number of messages copied in one duty cycle of the publisher.
const COPIES_PER_CYCLE: usize = 64;
/// Number of messages that may wait for an idle duty cycle; above it, each cycle copies some.
const BACKLOG_MAX: u64 = 1 << 12;

/// A published message with its sequence number.
#[derive(Clone, Copy)]
pub struct PublishedMessage {
    /// Sequence number in the market data session.
    pub sequence: u64,
    len: u16,
    bytes: [u8; MAX_STORED_MESSAGE],
}

impl PublishedMessage {
    /// Bytes of the message.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The publisher's end of the queue: copies messages from the publisher's store to the ring.
///
/// Messages wait in the store, so a stalled reader takes no more memory. If the reader falls behind by more
/// messages than the store keeps, it finds a gap in the sequence numbers.
pub struct MessageCopies {
    ring: spsc::Producer<PublishedMessage>,
    next: u64,
}

impl MessageCopies {
    /// Creates both ends of the queue, for messages from the sequence number `next` on.
    pub fn from(next: u64) -> (MessageCopies, spsc::Consumer<PublishedMessage>) {
        let (ring, reader) = spsc::channel(RING_CAPACITY);
        (MessageCopies { ring, next }, reader)
    }

    /// Copies some messages to the ring, if the publisher is idle or more than `BACKLOG_MAX` are waiting.
    #[inline]
    pub fn forward(&mut self, store: &MessageStore, is_idle: bool) {
        if is_idle || store.next_sequence() - self.next > BACKLOG_MAX {
            self.copy(store);
        }
    }

    /// True when all published messages are copied.
    pub fn is_done(&self, store: &MessageStore) -> bool {
        self.next == store.next_sequence()
    }

    /// Copies as many waiting messages as fit in the ring.
    pub fn finish(&mut self, store: &MessageStore) {
        (0..RING_CAPACITY / COPIES_PER_CYCLE).for_each(|_| self.copy(store));
    }

    fn copy(&mut self, store: &MessageStore) {
        self.next = self.next.max(store.oldest());
        for _ in 0..COPIES_PER_CYCLE {
            let Some(message) = store.message(self.next) else { return };
            let mut bytes = [0; MAX_STORED_MESSAGE];
            bytes[..message.len()].copy_from_slice(message);
            let copy = PublishedMessage { sequence: self.next, len: message.len() as u16, bytes };
            if self.ring.try_push(copy).is_err() {
                return;
            }
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(store: &mut MessageStore, count: u64) {
        (0..count).for_each(|_| {
            let byte = store.next_sequence() as u8;
            store.append(&[byte; 20]);
        });
    }

    fn read(reader: &mut spsc::Consumer<PublishedMessage>) -> Vec<u64> {
        let mut read = vec![];
        reader.drain(usize::MAX, |copy| {
            assert_eq!(copy.message(), [copy.sequence as u8; 20]);
            read.push(copy.sequence);
        });
        read
    }

    #[test]
    fn a_stalled_reader_receives_all_stored_messages() {
        let mut store = MessageStore::starting_at(5, 1 << 14);
        let (mut copies, mut reader) = MessageCopies::from(5);
        let count = RING_CAPACITY as u64 + BACKLOG_MAX + 500;
        append(&mut store, count);
        let mut all = vec![];
        while all.len() < count as usize {
            let before = all.len();
            copies.finish(&store);
            all.extend(read(&mut reader));
            assert!(all.len() > before);
        }
        assert_eq!(all, (5..5 + count).collect::<Vec<_>>());
    }

    #[test]
    fn waiting_messages_are_copied_when_idle_or_above_the_bound() {
        let mut store = MessageStore::new(1 << 14);
        let (mut copies, mut reader) = MessageCopies::from(1);
        append(&mut store, BACKLOG_MAX);
        copies.forward(&store, false);
        assert!(read(&mut reader).is_empty(), "at the bound");
        append(&mut store, 1);
        copies.forward(&store, false);
        assert_eq!(read(&mut reader).len(), COPIES_PER_CYCLE, "one beyond");
        copies.forward(&store, false);
        assert!(read(&mut reader).is_empty());
        copies.forward(&store, true);
        assert_eq!(read(&mut reader).first(), Some(&(COPIES_PER_CYCLE as u64 + 1)));
    }

    #[test]
    fn an_overtaken_reader_finds_a_gap() {
        let mut store = MessageStore::new(16);
        let (mut copies, mut reader) = MessageCopies::from(1);
        append(&mut store, 17);
        copies.forward(&store, true);
        assert_eq!(read(&mut reader), (2..=17).collect::<Vec<_>>());
    }
}

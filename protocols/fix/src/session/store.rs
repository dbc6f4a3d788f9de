//! Stored messages for resending.

use std::collections::VecDeque;

use tickpath_types::Nanos;

/// A sent message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored<'a> {
    /// Sequence number.
    pub sequence: u64,
    /// The whole message as sent.
    pub bytes: &'a [u8],
}

/// Stores application messages to resend when a peer requests them.
pub trait Store {
    /// Stores a message sent at `now`; numbers increase. A resend skips messages that are not stored.
    fn put(&mut self, now: Nanos, sequence: u64, message: &[u8]);

    /// The first stored message from this number on that is still valid at `now`.
    fn next(&self, now: Nanos, sequence: u64) -> Option<Stored<'_>>;

    /// Removes all messages, because numbers restart.
    fn clear(&mut self);
}

/// A store that keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStore;

impl Store for NoStore {
    fn put(&mut self, _: Nanos, _: u64, _: &[u8]) {}

    fn next(&self, _: Nanos, _: u64) -> Option<Stored<'_>> {
        None
    }

    fn clear(&mut self) {}
}

#[derive(Clone, Copy, Debug)]
struct Place {
    sequence: u64,
    sent_at: Nanos,
    start: usize,
    len: usize,
}

/// A store of the latest messages in preallocated memory; when full, it removes the oldest.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    places: VecDeque<Place>,
    count_max: usize,
    bytes: Box<[u8]>,
    /// Position of the next message.
    end: usize,
    age_max: Nanos,
}

impl MemoryStore {
    /// Creates a store for up to `count_max` messages in `byte_count` bytes.
    #[must_use]
    pub fn new(count_max: usize, byte_count: usize) -> MemoryStore {
        MemoryStore {
            places: VecDeque::with_capacity(count_max),
            count_max,
            bytes: vec![0; byte_count].into_boxed_slice(),
            end: 0,
            age_max: Nanos::MAX,
        }
    }

    /// Sets a maximum age: older messages, such as outdated orders, are skipped.
    #[must_use]
    pub fn with_age_max(self, age_max: Nanos) -> MemoryStore {
        MemoryStore { age_max, ..self }
    }

    /// Number of stored messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True if no messages are stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Removes the oldest messages until none overlaps `start..start + len`.
    fn make_room(&mut self, start: usize, len: usize) {
        while let Some(oldest) = self.places.front() {
            let is_apart = oldest.start >= start + len || oldest.start + oldest.len <= start;
            if is_apart && self.places.len() < self.count_max {
                break;
            }
            self.places.pop_front();
        }
    }
}

impl Store for MemoryStore {
    fn put(&mut self, now: Nanos, sequence: u64, message: &[u8]) {
        let len = message.len();
        if len > self.bytes.len() || self.count_max == 0 {
            return;
        }
        let start = if self.end + len <= self.bytes.len() { self.end } else { 0 };
        if start != self.end {
            // Messages between here and the end are older than those at the start.
            self.make_room(self.end, self.bytes.len() - self.end);
        }
        self.make_room(start, len);
        self.bytes[start..start + len].copy_from_slice(message);
        self.end = start + len;
        self.places.push_back(Place { sequence, sent_at: now, start, len });
    }

    fn next(&self, now: Nanos, sequence: u64) -> Option<Stored<'_>> {
        // Messages are in the order of their numbers and times.
        let first = self
            .places
            .partition_point(|place| place.sequence < sequence || now.since(place.sent_at) > self.age_max);
        let place = self.places.get(first)?;
        let bytes = &self.bytes[place.start..place.start + place.len];
        Some(Stored { sequence: place.sequence, bytes })
    }

    fn clear(&mut self) {
        self.places.clear();
        self.end = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(store: &MemoryStore, now: Nanos) -> Vec<(u64, Vec<u8>)> {
        let mut all = Vec::new();
        let mut sequence = 0;
        while let Some(stored) = store.next(now, sequence) {
            all.push((stored.sequence, stored.bytes.to_vec()));
            sequence = stored.sequence + 1;
        }
        all
    }

    #[test]
    fn the_latest_messages_are_kept() {
        let mut store = MemoryStore::new(3, 20);
        let mut sent: Vec<(u64, Vec<u8>)> = Vec::new();
        for sequence in 1..200_u64 {
            let message = vec![sequence as u8; 1 + sequence as usize * 7 % 11];
            store.put(Nanos(sequence), sequence * 2, &message);
            sent.push((sequence * 2, message));
            let kept = kept(&store, Nanos(sequence));
            assert!(!kept.is_empty() && kept.len() <= 3);
            assert_eq!(kept, sent[sent.len() - kept.len()..], "{sequence}");
        }
        store.put(Nanos(1), 1000, &[0; 21]);
        assert_eq!(store.next(Nanos(1), 1000), None);
        store.clear();
        assert!(store.is_empty());
        let mut none = MemoryStore::new(0, 20);
        none.put(Nanos(1), 1, b"x");
        assert!(none.is_empty());
    }

    #[test]
    fn old_messages_are_skipped() {
        let mut store = MemoryStore::new(8, 100).with_age_max(Nanos(10));
        store.put(Nanos(1), 1, b"a");
        store.put(Nanos(5), 2, b"b");
        assert_eq!(kept(&store, Nanos(11)).len(), 2);
        assert_eq!(kept(&store, Nanos(12)), [(2, b"b".to_vec())]);
    }
}

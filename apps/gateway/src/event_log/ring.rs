//! Ring between the duty cycle and the writer thread, for whole records of any length.
//!
//! The words are atomics that are read and written with relaxed ordering, and published by one store; there
//! is no `unsafe` and no extra copy. A record that does not fit is not written at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tickpath_lockfree::CachePadded;

/// State shared by both ends.
struct Shared {
    words: Box<[AtomicU64]>,
    /// Number of words ever written.
    head: CachePadded<AtomicU64>,
    /// Number of words ever read.
    tail: CachePadded<AtomicU64>,
    is_closed: AtomicBool,
}

/// Write end.
pub(super) struct RingWriter {
    shared: Arc<Shared>,
    head: u64,
    /// Cached value of the reader's position.
    tail: u64,
}

/// Read end.
pub(super) struct RingReader {
    shared: Arc<Shared>,
    tail: u64,
}

/// Creates a ring of `bytes`, rounded up to a power of two, and touches all of its memory.
pub(super) fn ring(bytes: usize) -> (RingWriter, RingReader) {
    let capacity = bytes.div_ceil(8).max(8).next_power_of_two();
    let words: Box<[AtomicU64]> = (0..capacity).map(|_| AtomicU64::new(u64::MAX)).collect();
    let shared = Arc::new(Shared {
        words,
        head: CachePadded::new(AtomicU64::new(0)),
        tail: CachePadded::new(AtomicU64::new(0)),
        is_closed: AtomicBool::new(false),
    });
    (RingWriter { shared: Arc::clone(&shared), head: 0, tail: 0 }, RingReader { shared, tail: 0 })
}

impl Shared {
    /// Returns `count` words from `position` on, in two parts because of the wrap.
    #[inline]
    fn parts(&self, position: u64, count: usize) -> (&[AtomicU64], &[AtomicU64]) {
        let place = position as usize & (self.words.len() - 1);
        let first = count.min(self.words.len() - place);
        (&self.words[place..place + first], &self.words[..count - first])
    }
}

impl RingWriter {
    /// Writes a record of a header and a payload; returns false and writes nothing if it does not fit.
    #[inline]
    pub(super) fn push(&mut self, header: &[u64], payload: &[u8]) -> bool {
        let count = header.len() + payload.len().div_ceil(8);
        if self.free() < count {
            self.tail = self.shared.tail.load(Ordering::Acquire);
            if self.free() < count {
                return false;
            }
        }
        let (first, second) = self.shared.parts(self.head, count);
        let mut places = first.iter().chain(second);
        let mut put = |word: u64| {
            if let Some(place) = places.next() {
                place.store(word, Ordering::Relaxed);
            }
        };
        header.iter().for_each(|word| put(*word));
        let (words, rest) = payload.as_chunks::<8>();
        words.iter().for_each(|word| put(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            put(u64::from_le_bytes(last));
        }
        self.head += count as u64;
        self.shared.head.store(self.head, Ordering::Release);
        true
    }

    #[inline]
    fn free(&self) -> usize {
        self.shared.words.len() - (self.head - self.tail) as usize
    }
}

impl Drop for RingWriter {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
    }
}

impl RingReader {
    /// Whether the writer has closed the ring; records left in it can still be read.
    pub(super) fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    /// Number of words available.
    pub(super) fn len(&self) -> usize {
        (self.shared.head.load(Ordering::Acquire) - self.tail) as usize
    }

    /// Returns the word at `offset` from the oldest one.
    pub(super) fn word(&self, offset: usize) -> u64 {
        let (first, second) = self.shared.parts(self.tail + offset as u64, 1);
        first.first().or(second.first()).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Appends the next `count` words to `out` as bytes and frees them; that many must be available.
    pub(super) fn take(&mut self, count: usize, out: &mut Vec<u8>) {
        debug_assert!(count <= self.len(), "a record is published whole");
        let (first, second) = self.shared.parts(self.tail, count);
        for word in first.iter().chain(second) {
            out.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        self.tail += count as u64;
        self.shared.tail.store(self.tail, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_fits_whole_or_not_at_all() {
        let (mut writer, mut reader) = ring(64);
        assert!(writer.push(&[1, 2], b"abc"));
        assert!(writer.push(&[3], &[7; 32]), "eight words, all of them");
        assert!(!writer.push(&[4], b""), "and not one more");
        let mut bytes = vec![];
        reader.take(3, &mut bytes);
        assert_eq!(bytes[16..], *b"abc\0\0\0\0\0");
        assert!(!writer.push(&[4], &[0; 17]), "four words do not fit three");
        assert!(writer.push(&[4], &[9; 16]), "around the end");
        assert_eq!((reader.len(), reader.word(5)), (8, 4));
        bytes.clear();
        reader.take(8, &mut bytes);
        assert_eq!(bytes[48..], [9; 16]);
        assert!(!reader.is_closed());
        drop(writer);
        assert!(reader.is_closed() && reader.len() == 0);
    }

    #[test]
    fn what_crosses_threads_comes_whole_and_in_order() {
        const COUNT: u64 = if cfg!(miri) { 200 } else { 50_000 };
        let (mut writer, mut reader) = ring(1 << 10);
        let thread = std::thread::spawn(move || {
            let mut next = 0;
            while next < COUNT {
                let len = (next % 19) as usize;
                let bytes = vec![next as u8; len];
                if writer.push(&[next, len as u64], &bytes) {
                    next += 1;
                } else {
                    std::thread::yield_now();
                }
            }
        });
        let mut bytes = vec![];
        for next in 0..COUNT {
            while reader.len() < 2 {
                std::thread::yield_now();
            }
            let len = reader.word(1) as usize;
            assert_eq!((reader.word(0), len), (next, (next % 19) as usize));
            bytes.clear();
            reader.take(2 + len.div_ceil(8), &mut bytes);
            assert!(bytes[16..16 + len].iter().all(|byte| *byte == next as u8));
        }
        thread.join().unwrap();
    }
}

//! The history of sent and received messages, in preallocated memory.

use tickpath_types::Nanos;

/// Length of a record's header, in bytes: time, message length, kept length with the direction. Records are
/// aligned to it, so that a header is never split.
const HEADER: usize = 16;
/// Number of equal blocks of the ring; the first message of each block is indexed.
const BLOCKS: usize = 64;
/// The bit that marks a sent message.
const SENT: u32 = 1 << 31;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the venue.
    Sent,
    /// From the venue.
    Received,
}

/// A message of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Time since the start of the program.
    pub at: Nanos,
    /// The direction.
    pub way: Way,
    /// The message, or its beginning.
    pub text: String,
    /// Length of the whole message, in bytes.
    pub len: usize,
}

/// The most recent messages that fit; new ones overwrite the oldest. A message costs one copy. Nothing is
/// allocated, parsed or written until the history is read.
#[derive(Debug)]
pub struct History {
    ring: Box<[u8]>,
    /// Position of the next message, counted from the start; the ring index is the remainder.
    end: u64,
    /// Position of the first message in each block; stale for blocks in which no message begins.
    firsts: [u64; BLOCKS],
    /// Number of the block in which the last message begins, counted from the start.
    block: u64,
    /// Number of position bits within a block.
    block_bits: u32,
}

impl History {
    /// Creates a history of `bytes` bytes, at least 1 KiB, rounded up to a power of two.
    #[must_use]
    pub fn new(bytes: usize) -> History {
        // A nonzero pattern, so that every page is mapped before the first message.
        let ring: Box<[u8]> = vec![1; bytes.max(1 << 10).next_power_of_two()].into();
        let block_bits = (ring.len() / BLOCKS).trailing_zeros();
        History { ring, end: 0, firsts: [u64::MAX; BLOCKS], block: u64::MAX, block_bits }
    }

    /// Adds a message and returns its position; keeps only the start of one above a quarter of the memory.
    #[inline(always)]
    pub fn push(&mut self, at: Nanos, way: Way, message: &str) -> u64 {
        let kept = message.len().min(self.ring.len() / 4);
        let place = self.end;
        self.end += record_len(kept);
        // Readers detect overwritten messages by their positions.
        if place >> self.block_bits != self.block {
            self.block = place >> self.block_bits;
            self.firsts[self.block as usize % BLOCKS] = place;
        }
        // No transport carries messages of 4 GiB.
        let len = message.len() as u64 & u64::from(u32::MAX);
        let mark = if way == Way::Sent { SENT } else { 0 };
        let header = [at.0, len | u64::from(kept as u32 | mark) << 32];
        let bytes = &message.as_bytes()[..kept];
        let start = self.index(place);
        // A record rarely wraps around the end of the ring.
        let room =
            self.ring.get_mut(start..start + HEADER + kept).and_then(|room| room.split_first_chunk_mut());
        match room {
            Some((head, body)) => {
                *head = bytes_of(header);
                body.copy_from_slice(bytes);
            }
            None => self.push_around(start, bytes_of(header), bytes),
        }
        place
    }

    /// Writes a record whose message wraps around the end of the ring.
    #[cold]
    fn push_around(&mut self, start: usize, header: [u8; HEADER], bytes: &[u8]) {
        self.ring[start..start + HEADER].copy_from_slice(&header);
        let (first, rest) = bytes.split_at(self.ring.len() - start - HEADER);
        self.ring[start + HEADER..].copy_from_slice(first);
        self.ring[..rest.len()].copy_from_slice(rest);
    }

    /// The end of the overwritten positions.
    fn overwritten(&self) -> u64 {
        self.end.saturating_sub(self.ring.len() as u64)
    }

    /// The position of the oldest message known to be intact.
    pub(crate) fn oldest(&self) -> u64 {
        let from = self.overwritten();
        let firsts = (from >> self.block_bits..).take(BLOCKS + 1).filter_map(|block| {
            let first = self.firsts[block as usize % BLOCKS];
            (first >> self.block_bits == block && first >= from).then_some(first)
        });
        firsts.min().unwrap_or(self.end)
    }

    /// The messages, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        let mut place = self.oldest();
        std::iter::from_fn(move || {
            let entry = self.entry(place)?;
            place += record_len(self.header(place).kept);
            Some(entry)
        })
    }

    /// Whether a message at this position has been overwritten.
    #[must_use]
    pub(crate) fn is_gone(&self, place: u64) -> bool {
        place < self.overwritten()
    }

    /// The position of the next message.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The position after an existing message.
    pub(crate) fn behind(&self, place: u64) -> u64 {
        place + record_len(self.header(place).kept)
    }

    /// The message at a position returned by [`push`](History::push); `None` if it has been overwritten.
    #[must_use]
    pub fn entry(&self, place: u64) -> Option<Entry> {
        if place < self.overwritten() || place >= self.end {
            return None;
        }
        let Header { at, way, len, kept } = self.header(place);
        let start = self.index(place + HEADER as u64);
        let first = kept.min(self.ring.len() - start);
        let mut text = self.ring[start..start + first].to_vec();
        text.extend_from_slice(&self.ring[..kept - first]);
        // Only the end of a truncated message can be an incomplete character.
        Some(Entry { at, way, text: String::from_utf8_lossy(&text).into_owned(), len })
    }

    #[inline]
    fn header(&self, place: u64) -> Header {
        let start = self.index(place);
        let header = &self.ring[start..start + HEADER];
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 of 16 bytes"));
        let marked = word(12);
        Header {
            at: Nanos(u64::from_le_bytes(header[..8].try_into().expect("8 of 16 bytes"))),
            way: if marked & SENT != 0 { Way::Sent } else { Way::Received },
            len: word(8) as usize,
            kept: (marked & !SENT) as usize,
        }
    }

    #[inline]
    fn index(&self, place: u64) -> usize {
        (place & (self.ring.len() as u64 - 1)) as usize
    }
}

/// The header of a record.
struct Header {
    at: Nanos,
    way: Way,
    len: usize,
    kept: usize,
}

#[inline(always)]
fn bytes_of(header: [u64; 2]) -> [u8; HEADER] {
    (u128::from(header[0]) | u128::from(header[1]) << 64).to_le_bytes()
}

/// Length of a record with its header, in bytes.
#[inline]
fn record_len(kept: usize) -> u64 {
    // Rounded up to the next multiple of a power of two.
    ((kept + 2 * HEADER - 1) & !(HEADER - 1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_messages_are_there_whole() {
        let mut history = History::new(1_024);
        let mut sent = Vec::new();
        for number in 0..500_usize {
            let text = format!("{number} {}", "é".repeat(number % 60));
            let way = if number % 3 == 0 { Way::Sent } else { Way::Received };
            history.push(Nanos(number as u64), way, &text);
            sent.push(Entry { at: Nanos(number as u64), way, len: text.len(), text });
            let kept: Vec<Entry> = history.entries().collect();
            assert_eq!(kept[..], sent[sent.len() - kept.len()..]);
            let bytes: usize = kept.iter().map(|entry| record_len(entry.len) as usize).sum();
            assert!(bytes <= 1_024 && (number < 20 || bytes > 1_024 - 2 * 160), "{bytes}");
        }
    }

    #[test]
    fn of_a_long_message_the_beginning_is_kept_and_a_place_is_good_until_it_is_needed() {
        let mut history = History::new(1_000);
        let place = history.push(Nanos(1), Way::Received, &"x".repeat(5_000));
        let entry = history.entry(place).unwrap();
        assert_eq!((entry.text.len(), entry.len), (256, 5_000));
        for _ in 0..3 {
            assert!(history.entry(place).is_some());
            history.push(Nanos(2), Way::Sent, &"y".repeat(300));
        }
        assert!(history.entry(place).is_none() && history.entry(u64::MAX).is_none());
        assert_eq!(history.entries().count(), 3);
    }
}

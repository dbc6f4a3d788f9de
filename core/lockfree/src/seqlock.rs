//! Seqlock: the latest value of some plain data, from one writer to any number of readers.
//!
//! For state that an agent publishes to observers once per duty cycle. The writer is wait-free and does not
//! depend on readers. A reader copies the value and checks that the copy is not torn. If a write interferes,
//! it repeats the copy a bounded number of times, then returns [`Busy`]; the caller may keep the previous
//! value.
//!
//! A value is a head and a number of rows that is fixed at creation: for example a head of counters and a row
//! for each instrument, or only a head without rows. A reader sees head and rows of the same write.
//!
//! # Protocol
//!
//! The value is stored and loaded as relaxed atomic words, which makes a torn copy harmless; the sequence
//! shows whether the copy is torn.
//!
//! - For its write number `n`, from 1, the writer stores sequence := `2n - 1` (relaxed), a release fence,
//!   the words (relaxed), sequence := `2n` (release).
//! - A reader loads the sequence (acquire); odd means that a write is under way. It loads the words
//!   (relaxed), an acquire fence, and the sequence again (relaxed); the copy is good if both sequences are
//!   equal.
//! - The first load and the writer's last store order the words of write `n` before the copy, so that no
//!   older word is seen. If the copy saw a word of a later write `m`, the two fences order the sequence
//!   `2m - 1`, which precedes that word, before the second load, which then does not see `2n`.
//!
//! ```
//! use tickpath_lockfree::seqlock;
//!
//! let (mut writer, reader) = seqlock::cell(0_u64, &[0_i64; 2]);
//! writer.write(&7, [-3, 3]);
//! let mut rows = [0; 2];
//! assert_eq!(reader.try_read(&mut rows), Ok(7));
//! assert_eq!(rows, [-3, 3]);
//! ```

use core::marker::PhantomData;

use crate::{
    CachePadded, cpu,
    debug::debug_with,
    payload::{self, Payload},
    sync::{Arc, AtomicU64, Ordering, fence},
};

/// Maximum number of copies per read. A write of a few hundred words takes a microsecond. So more than a few
/// consecutive copies fail only if the writer's thread lost its core, or its process died, during a write.
pub(crate) const TRIES_MAX: usize = if cfg!(loom) { 2 } else { 64 };

/// Error: a write was in progress at every attempt. Keep the older value, or read again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is being written: keep the older one, or read again later")]
pub struct Busy;

struct Shared<H, R> {
    sequence: CachePadded<AtomicU64>,
    /// The words of the head, then those of each row.
    words: Box<[AtomicU64]>,
    row_count: usize,
    value: PhantomData<fn() -> (H, R)>,
}

impl<H: Payload, R: Payload> Shared<H, R> {
    fn head_word(&self, index: usize) -> &AtomicU64 {
        &self.words[index]
    }

    fn row_word(&self, row: usize, index: usize) -> &AtomicU64 {
        &self.words[payload::words_of::<H>() + row * payload::words_of::<R>() + index]
    }
}

/// Creates a cell that holds `head` and `rows`; the number of rows is fixed.
#[must_use]
pub fn cell<H: Payload, R: Payload>(head: H, rows: &[R]) -> (Writer<H, R>, Reader<H, R>) {
    let words = payload::words_of::<H>() + rows.len() * payload::words_of::<R>();
    let shared = Arc::new(Shared {
        sequence: CachePadded::new(AtomicU64::new(0)),
        words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        row_count: rows.len(),
        value: PhantomData,
    });
    let reader = Reader { shared: Arc::clone(&shared) };
    let mut writer = Writer { sequence: 0, shared };
    writer.write(&head, rows.iter().copied());
    (writer, reader)
}

/// The writing half of a cell.
pub struct Writer<H, R> {
    /// Last stored sequence; even.
    sequence: u64,
    shared: Arc<Shared<H, R>>,
}

impl<H: Payload, R: Payload> Writer<H, R> {
    /// Replaces the value. Rows beyond the cell's number of rows are ignored; rows that are not given keep
    /// their values. No read succeeds while the iterator computes the rows, so it should be cheap. A panic in
    /// it leaves the cell [`Busy`] until the next write.
    pub fn write(&mut self, head: &H, rows: impl IntoIterator<Item = R>) {
        let shared = &*self.shared;
        shared.sequence.store(self.sequence + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        payload::store(head, |index| shared.head_word(index));
        for (row, place) in rows.into_iter().zip(0..shared.row_count) {
            payload::store(&row, |index| shared.row_word(place, index));
        }
        self.sequence += 2;
        shared.sequence.store(self.sequence, Ordering::Release);
    }
}

/// A reading half of a cell; clones read the same cell. The last value outlives the writer.
pub struct Reader<H, R> {
    shared: Arc<Shared<H, R>>,
}

impl<H: Payload, R: Payload> Reader<H, R> {
    /// Copies the latest value: returns its head and copies its rows into `rows`, as many as fit.
    ///
    /// # Errors
    /// [`Busy`] when a write interfered with every copy; the contents of `rows` are then unspecified.
    pub fn try_read(&self, rows: &mut [R]) -> Result<H, Busy> {
        for _ in 0..TRIES_MAX {
            if let Some(head) = self.copy(rows) {
                return Ok(head);
            }
            cpu::pause();
        }
        Err(Busy)
    }

    /// Copies the value once; `None` when the copy may be torn.
    fn copy(&self, rows: &mut [R]) -> Option<H> {
        let shared = &*self.shared;
        let before = shared.sequence.load(Ordering::Acquire);
        if !before.is_multiple_of(2) {
            return None;
        }
        let head = payload::load(|index| shared.head_word(index));
        for (row, place) in rows.iter_mut().zip(0..shared.row_count) {
            *row = payload::load(|index| shared.row_word(place, index));
        }
        fence(Ordering::Acquire);
        (shared.sequence.load(Ordering::Relaxed) == before).then_some(head)
    }

    /// Number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.shared.row_count
    }
}

impl<H, R> Clone for Reader<H, R> {
    fn clone(&self) -> Self {
        Reader { shared: Arc::clone(&self.shared) }
    }
}

debug_with!(Writer<H, R>: "sequence", it => it.sequence);
debug_with!(Reader<H, R>: "row_count", it => it.shared.row_count);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_value_can_be_read_repeatedly() {
        let (mut writer, reader) = cell([1_u8; 3], &[[0_u64; 2]; 2]);
        let other = reader.clone();
        let mut rows = [[9; 2]; 2];
        assert_eq!((reader.try_read(&mut rows), rows), (Ok([1; 3]), [[0; 2]; 2]));
        for value in 2..200_u8 {
            writer.write(&[value; 3], [[value.into(); 2], [!u64::from(value); 2]]);
        }
        drop(writer);
        for reader in [&reader, &other, &reader] {
            assert_eq!((reader.try_read(&mut rows), rows), (Ok([199; 3]), [[199; 2], [!199; 2]]));
        }
    }

    #[test]
    fn extra_rows_are_ignored_and_missing_ones_are_unchanged() {
        let (mut writer, reader) = cell((), &[1_u32, 2]);
        assert_eq!(reader.row_count(), 2);
        writer.write(&(), [5, 6, 7]);
        let mut rows = [0; 3];
        assert_eq!((reader.try_read(&mut rows), rows), (Ok(()), [5, 6, 0]));
        writer.write(&(), [8]);
        let mut row = [0; 1];
        assert_eq!((reader.try_read(&mut row), row), (Ok(()), [8]));
        assert_eq!((reader.try_read(&mut rows), rows), (Ok(()), [8, 6, 0]));
    }

    #[test]
    fn an_unfinished_write_is_busy_until_the_next_write() {
        let (mut writer, reader) = cell::<u64, u64>(1, &[]);
        writer.shared.sequence.store(writer.sequence + 1, Ordering::Relaxed);
        assert_eq!(reader.try_read(&mut []), Err(Busy));
        writer.write(&2, []);
        assert_eq!(reader.try_read(&mut []), Ok(2));
    }
}

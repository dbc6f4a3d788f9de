//! Table: the latest values of many entries, from one writer to any number of readers.
//!
//! For a feed's state of each instrument. Each entry has a separate cache line, so that a read loads one
//! line and a write to one entry does not slow reads of another. The writer is wait-free and independent of
//! the readers. A reader copies the value and checks that the copy is not torn. If a write interferes, it
//! repeats the copy a bounded number of times, then returns [`Busy`]; the caller may keep the previous value.
//!
//! The table may lie in memory that processes share: [`Writer::over`], [`Reader::over`].
//!
//! # Protocol
//!
//! An entry is a line: a sequence word and seven words of the value, padded with zeros. An entry of zeros was
//! never written.
//!
//! Entries are written and read like the value of a [`seqlock`](crate::seqlock), for the same reasons. The
//! reader's first load is relaxed, then an acquire fence, because its memory may be read-only.
//!
//! ```
//! use tickpath_lockfree::table;
//!
//! let (mut writer, reader) = table::table::<[u64; 7]>(2);
//! writer.write(1, &[7; 7])?;
//! assert_eq!(reader.try_read(1), Ok([7; 7]));
//! assert_eq!(reader.try_read(2), Err(table::ReadError::NoEntry));
//! assert_eq!(writer.write(2, &[7; 7]), Err(table::NoEntry));
//! # Ok::<(), table::NoEntry>(())
//! ```

use core::marker::PhantomData;

use crate::{
    cpu,
    debug::debug_with,
    lines::{LINE_WORDS, Line, SharedLines, WrongMemory, load_acquire},
    payload::{self, Payload},
    seqlock::TRIES_MAX,
    sync::{Ordering, fence},
};

pub use crate::seqlock::Busy;

/// Error: the index is beyond the end of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the index is beyond the table: create the table with more entries")]
pub struct NoEntry;

/// The reason why an entry was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A write was in progress at every attempt: see [`Busy`].
    #[error("{}", Busy)]
    Busy,
    /// The index is beyond the end of the table: see [`NoEntry`].
    #[error("{}", NoEntry)]
    NoEntry,
}

/// Rejects, at compile time, a value type that does not fit into a line beside the sequence word.
const fn check_len<T>() {
    assert!(payload::words_of::<T>() < LINE_WORDS, "a value of a table has at most 56 bytes");
}

/// Creates a table of `entries` unwritten entries on the heap.
#[must_use]
pub fn table<T: Payload>(entries: usize) -> (Writer<T>, Reader<T>) {
    let lines = SharedLines::zeroed(entries);
    let writer = Writer::over(lines.clone()).expect("made to be written");
    (writer, Reader::over(lines))
}

/// The writing half of a table.
pub struct Writer<T> {
    lines: SharedLines,
    value: PhantomData<fn(T)>,
}

impl<T: Payload> Writer<T> {
    /// Creates a writer into the caller's memory, one entry per line.
    ///
    /// There must be no other writer into the same memory: readers would see torn values.
    ///
    /// # Errors
    /// [`WrongMemory`] when the memory is read-only.
    pub fn over(lines: SharedLines) -> Result<Writer<T>, WrongMemory> {
        const { check_len::<T>() };
        if lines.is_writable() { Ok(Writer { lines, value: PhantomData }) } else { Err(WrongMemory) }
    }

    /// Replaces the value of an entry.
    ///
    /// # Errors
    /// [`NoEntry`] when `index` is beyond the end; nothing is written.
    #[inline]
    pub fn write(&mut self, index: usize, value: &T) -> Result<(), NoEntry> {
        store(self.lines.as_slice().get(index).ok_or(NoEntry)?, value);
        Ok(())
    }

    /// Changes the value of an entry by `change`, which receives zeros if the entry was never written.
    /// Concurrent reads retry during the store of the result, but not while `change` runs.
    ///
    /// # Errors
    /// [`NoEntry`] when `index` is beyond the end; nothing is written.
    #[inline]
    pub fn update(&mut self, index: usize, change: impl FnOnce(&mut T)) -> Result<(), NoEntry> {
        let line = self.lines.as_slice().get(index).ok_or(NoEntry)?;
        // Relaxed loads suffice, because this is the only writer.
        let mut value = payload::load(|word| &line.0[1 + word]);
        change(&mut value);
        store(line, &value);
        Ok(())
    }

    /// Number of entries.
    #[must_use]
    pub const fn entries(&self) -> usize {
        self.lines.count()
    }
}

#[inline(always)]
fn store<T: Payload>(Line(words): &Line, value: &T) {
    let sequence = &words[0];
    // The sequence is odd only if an earlier writer died within a write; this write then reuses it.
    let writing = sequence.load(Ordering::Relaxed) | 1;
    sequence.store(writing, Ordering::Relaxed);
    fence(Ordering::Release);
    payload::store(value, |word| &words[1 + word]);
    sequence.store(writing.wrapping_add(1), Ordering::Release);
}

/// A reading half of a table; clones read the same table. The last values outlive the writer.
pub struct Reader<T> {
    lines: SharedLines,
    value: PhantomData<fn() -> T>,
}

impl<T: Payload> Reader<T> {
    /// Creates a reader of the caller's memory, one entry per line. A read always terminates.
    #[must_use]
    pub fn over(lines: SharedLines) -> Reader<T> {
        const { check_len::<T>() };
        Reader { lines, value: PhantomData }
    }

    /// Copies the latest value of one entry; zeros when it was never written.
    ///
    /// # Errors
    /// [`ReadError`] when a write interfered with every copy, or `index` is beyond the end.
    #[inline]
    pub fn try_read(&self, index: usize) -> Result<T, ReadError> {
        self.entry(index).ok_or(ReadError::NoEntry)?.try_read().map_err(|Busy| ReadError::Busy)
    }

    /// Returns the entry at `index`, for repeated reads; `None` when it is beyond the end.
    #[inline]
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<Entry<'_, T>> {
        self.lines.as_slice().get(index).map(|line| Entry { line, value: PhantomData })
    }

    /// Number of entries.
    #[must_use]
    pub const fn entries(&self) -> usize {
        self.lines.count()
    }
}

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        Reader { lines: self.lines.clone(), value: PhantomData }
    }
}

/// One entry of a table, for reading.
#[derive(Clone, Copy)]
pub struct Entry<'a, T> {
    line: &'a Line,
    value: PhantomData<fn() -> T>,
}

impl<T: Payload> Entry<'_, T> {
    /// Copies the latest value; zeros when it was never written.
    ///
    /// # Errors
    /// [`Busy`] when a write interfered with every copy.
    #[inline]
    pub fn try_read(&self) -> Result<T, Busy> {
        match self.copy() {
            Some(value) => Ok(value),
            None => self.retry_read(),
        }
    }

    /// Repeats the copy after a torn one. Not inlined, so that the usual read stays short.
    #[cold]
    #[inline(never)]
    fn retry_read(&self) -> Result<T, Busy> {
        for _ in 1..TRIES_MAX {
            cpu::pause();
            if let Some(value) = self.copy() {
                return Ok(value);
            }
        }
        Err(Busy)
    }

    /// Copies the value once; `None` when the copy may be torn.
    #[inline(always)]
    fn copy(&self) -> Option<T> {
        let Line(words) = self.line;
        let before = load_acquire(&words[0]);
        let value = payload::load(|word| &words[1 + word]);
        fence(Ordering::Acquire);
        let after = words[0].load(Ordering::Relaxed);
        // One test for both conditions: the sequences are equal, and they are even.
        ((before ^ after) | (before & 1) == 0).then_some(value)
    }

    /// Number of completed writes: 0 while the entry was never written. While the count is the same, the
    /// value is the same.
    #[inline]
    #[must_use]
    pub fn writes(&self) -> u64 {
        load_acquire(&self.line.0[0]) / 2
    }
}

debug_with!(Writer<T>: "entries", it => it.lines.count());
debug_with!(Reader<T>: "entries", it => it.lines.count());

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_latest_values_can_be_read_repeatedly() {
        let (mut writer, reader) = table::<[u16; 27]>(3);
        assert_eq!((writer.entries(), reader.entries()), (3, 3));
        assert_eq!((reader.try_read(0), reader.entry(0).unwrap().writes()), (Ok([0; 27]), 0));
        for value in 1..200 {
            writer.write(0, &[value; 27]).unwrap();
            writer.write(2, &[!value; 27]).unwrap();
        }
        writer.update(0, |value| value[0] += 1).unwrap();
        assert_eq!(writer.update(3, |value| value[0] += 1), Err(NoEntry));
        assert_eq!(reader.try_read(0).unwrap()[..2], [200, 199]);
        writer.update(0, |value| value[0] -= 1).unwrap();
        drop(writer);
        for reader in [&reader, &reader.clone()] {
            assert_eq!(reader.try_read(0), Ok([199; 27]));
            assert_eq!(reader.try_read(1), Ok([0; 27]), "its neighbours left it alone");
            assert_eq!(reader.try_read(2), Ok([!199; 27]));
            assert_eq!(reader.entry(2).unwrap().writes(), 199);
        }
    }

    #[test]
    fn indices_beyond_the_end_are_rejected() {
        let (mut writer, reader) = table::<u8>(1);
        assert_eq!(writer.write(1, &5), Err(NoEntry));
        assert_eq!(writer.write(usize::MAX, &5), Err(NoEntry));
        assert_eq!(reader.try_read(1), Err(ReadError::NoEntry));
        assert!(reader.entry(1).is_none());
        let (mut none, reader) = table::<u8>(0);
        assert_eq!((none.write(0, &5), reader.try_read(0)), (Err(NoEntry), Err(ReadError::NoEntry)));
    }

    #[test]
    fn an_unfinished_write_is_busy_until_the_next_write() {
        let lines = SharedLines::zeroed(1);
        let mut writer = Writer::<u64>::over(lines.clone()).unwrap();
        let reader = Reader::<u64>::over(lines.clone());
        writer.write(0, &1).unwrap();
        assert!(lines.store(0, 0, 3));
        assert_eq!(reader.try_read(0), Err(ReadError::Busy));
        writer.write(0, &2).unwrap();
        assert_eq!((reader.try_read(0), lines.load(0, 0)), (Ok(2), Some(4)));
    }

    #[test]
    fn a_read_ends_whatever_the_memory_holds() {
        let lines = SharedLines::zeroed(1);
        let reader = Reader::<u64>::over(lines.clone());
        for word in [1, 2, 1 << 63, u64::MAX - 1, u64::MAX] {
            assert!(lines.store(0, 0, word));
            assert_eq!(reader.try_read(0).is_ok(), word % 2 == 0);
            assert_eq!(reader.entry(0).unwrap().writes(), word / 2);
        }
        assert!(lines.store(0, 0, u64::MAX));
        Writer::over(lines).unwrap().write(0, &7_u64).unwrap();
        assert_eq!(reader.try_read(0), Ok(7));
    }
}

//! Cache lines of atomic words, on the heap or in memory given from outside, such as a mapping that
//! processes share.

use core::any::Any;
use core::fmt;
use core::ptr::NonNull;

use crate::{
    CachePadded,
    sync::{AtomicU64, Ordering, fence},
};

/// Words of a line.
pub(crate) const LINE_WORDS: usize = 8;
/// Bytes of a line.
pub const LINE_LEN: usize = LINE_WORDS * size_of::<u64>();
/// Lines that the adjacent-line prefetcher fetches together.
const PAIR: usize = 2;

/// One cache line: eight atomic words.
#[repr(C, align(64))]
pub struct Line(pub(crate) [AtomicU64; LINE_WORDS]);

const _: () = assert!(cfg!(loom) || (size_of::<Line>() == LINE_LEN && align_of::<Line>() == LINE_LEN));
// Loom's words are longer, and then a pair too must be as long as its lines.
const _: () = assert!(size_of::<CachePadded<[Line; PAIR]>>() == PAIR * size_of::<Line>());

impl Line {
    pub(crate) fn zero() -> Line {
        Line(core::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Loads with acquire ordering also from memory that this process may only read, for which the standard
/// library allows relaxed loads alone.
#[inline(always)]
pub(crate) fn load_acquire(word: &AtomicU64) -> u64 {
    let value = word.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    value
}

/// Lines that several owners share. Clones are the same memory.
#[derive(Clone)]
pub struct SharedLines {
    first: NonNull<Line>,
    count: usize,
    is_writable: bool,
    /// What keeps the memory there; never looked at.
    _owner: std::sync::Arc<dyn Any + Send + Sync>,
}

// SAFETY: the lines are atomic words, which threads may share, and so may they what keeps them there.
unsafe impl Send for SharedLines {}
// SAFETY: as above.
unsafe impl Sync for SharedLines {}

impl SharedLines {
    /// So many lines of zeros on the heap, all of them touched, the first at the start of a pair of lines.
    #[must_use]
    pub fn zeroed(count: usize) -> SharedLines {
        let pair = || CachePadded::new([Line::zero(), Line::zero()]);
        let pairs: Box<[CachePadded<[Line; PAIR]>]> = (0..count.div_ceil(PAIR)).map(|_| pair()).collect();
        // Zeros may come as pages that do not exist yet; storing touches them.
        pairs.iter().flat_map(|pair| pair.iter()).for_each(|line| line.0[0].store(0, Ordering::Relaxed));
        let owner = std::sync::Arc::new(pairs);
        // Pairs follow each other without room between, as the assertion above says.
        let first = NonNull::from(&owner[..]).cast::<Line>();
        SharedLines { first, count, is_writable: true, _owner: owner }
    }

    /// Lines in memory that `owner` keeps there.
    ///
    /// # Safety
    /// From `first` on `count` lines are mapped for as long as `owner` lives: readable, and writable if
    /// `is_writable`. This process accesses them by these lines and their clones alone, or by atomic
    /// operations on the same words. What other processes store there may be anything.
    #[must_use]
    pub unsafe fn from_raw(
        first: NonNull<Line>,
        count: usize,
        is_writable: bool,
        owner: std::sync::Arc<dyn Any + Send + Sync>,
    ) -> SharedLines {
        SharedLines { first, count, is_writable, _owner: owner }
    }

    /// Number of lines.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Whether this process may write to them.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// `count` lines from line `first` on; `None` when they are not all among these.
    #[must_use]
    pub fn part(&self, first: usize, count: usize) -> Option<SharedLines> {
        let _ = self.as_slice().get(first..first.checked_add(count)?)?;
        // SAFETY: the range lies within the lines, by the line above.
        let start = unsafe { self.first.add(first) };
        Some(SharedLines { first: start, count, ..self.clone() })
    }

    /// One word, 0 to 7, of one line, with acquire ordering; `None` when there is no such word.
    #[must_use]
    pub fn load(&self, line: usize, word: usize) -> Option<u64> {
        Some(load_acquire(self.as_slice().get(line)?.0.get(word)?))
    }

    /// Stores one word with release ordering; false when there is no such word, or the lines may only be read.
    pub fn store(&self, line: usize, word: usize, value: u64) -> bool {
        let place = self.as_slice().get(line).and_then(|line| line.0.get(word));
        let Some(place) = place.filter(|_| self.is_writable) else { return false };
        place.store(value, Ordering::Release);
        true
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[Line] {
        // SAFETY: `count` lines are there from `first` on for as long as its owner lives, which `self` keeps;
        // they are atomic words, of which every pattern is a value.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl fmt::Debug for SharedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLines")
            .field("count", &self.count)
            .field("is_writable", &self.is_writable)
            .finish_non_exhaustive()
    }
}

/// The memory has not the size that the structure needs, or may only be read where it is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory has another size than the structure needs, or may not be written: map it anew")]
pub struct WrongMemory;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn lines_are_zero_and_parts_are_the_same_memory() {
        let lines = SharedLines::zeroed(5);
        assert_eq!(lines.first.as_ptr().addr() % 128, 0);
        assert_eq!((lines.count(), lines.is_writable(), lines.load(4, 7)), (5, true, Some(0)));
        let part = lines.part(3, 2).unwrap();
        assert!(part.store(1, 7, 9));
        assert_eq!((lines.load(4, 7), part.load(1, 7)), (Some(9), Some(9)));
        drop(lines);
        assert_eq!(part.load(1, 7), Some(9), "a part keeps the memory");
    }

    #[test]
    fn what_lies_beyond_is_refused() {
        let lines = SharedLines::zeroed(2);
        assert!(lines.part(1, 1).is_some() && lines.part(2, 0).is_some());
        assert!(
            lines.part(1, 2).is_none() && lines.part(3, 0).is_none() && lines.part(1, usize::MAX).is_none()
        );
        assert_eq!((lines.load(2, 0), lines.load(0, 8)), (None, None));
        assert!(!lines.store(2, 0, 1) && !lines.store(0, 8, 1));
        let read_only = SharedLines { is_writable: false, ..lines };
        assert!(!read_only.store(0, 0, 1));
    }
}

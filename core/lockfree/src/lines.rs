//! Cache lines of atomic words, on the heap or in memory given by the caller, such as a mapping shared by
//! processes.

use core::any::Any;
use core::fmt;
use core::ptr::NonNull;

use crate::{
    CachePadded,
    sync::{AtomicU64, Ordering, fence},
};

/// Words per line.
pub(crate) const LINE_WORDS: usize = 8;
/// Bytes per line.
pub const LINE_LEN: usize = LINE_WORDS * size_of::<u64>();
/// Number of lines that the adjacent-line prefetcher fetches together.
const PAIR: usize = 2;

/// One cache line: eight atomic words.
#[repr(C, align(64))]
pub struct Line(pub(crate) [AtomicU64; LINE_WORDS]);

const _: () = assert!(cfg!(loom) || (size_of::<Line>() == LINE_LEN && align_of::<Line>() == LINE_LEN));
// A pair has no padding, even under loom, whose atomic words are larger.
const _: () = assert!(size_of::<CachePadded<[Line; PAIR]>>() == PAIR * size_of::<Line>());

impl Line {
    pub(crate) fn zero() -> Line {
        Line(core::array::from_fn(|_| AtomicU64::new(0)))
    }
}

/// Loads with acquire ordering, also from read-only memory, for which the standard library allows only
/// relaxed loads.
#[inline(always)]
pub(crate) fn load_acquire(word: &AtomicU64) -> u64 {
    let value = word.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    value
}

/// Cache lines in memory with several owners. Clones refer to the same memory.
#[derive(Clone)]
pub struct SharedLines {
    first: NonNull<Line>,
    count: usize,
    is_writable: bool,
    /// Keeps the memory alive; never read.
    _owner: std::sync::Arc<dyn Any + Send + Sync>,
}

// SAFETY: the lines are atomic words, which threads may share, and so may their owner.
unsafe impl Send for SharedLines {}
// SAFETY: as above.
unsafe impl Sync for SharedLines {}

impl SharedLines {
    /// Allocates `count` zeroed lines on the heap and touches them. The first is aligned to a pair of lines.
    #[must_use]
    pub fn zeroed(count: usize) -> SharedLines {
        let pair = || CachePadded::new([Line::zero(), Line::zero()]);
        let pairs: Box<[CachePadded<[Line; PAIR]>]> = (0..count.div_ceil(PAIR)).map(|_| pair()).collect();
        // The kernel may allocate a page of zeros only at the first store to it.
        pairs.iter().flat_map(|pair| pair.iter()).for_each(|line| line.0[0].store(0, Ordering::Relaxed));
        let owner = std::sync::Arc::new(pairs);
        // Pairs are adjacent without padding, as the assertion above checks.
        let first = NonNull::from(&owner[..]).cast::<Line>();
        SharedLines { first, count, is_writable: true, _owner: owner }
    }

    /// Returns lines in memory that `owner` keeps alive.
    ///
    /// # Safety
    /// `count` lines from `first` are mapped while `owner` lives: readable, and writable if `is_writable`.
    /// This process accesses them only through these lines and their clones, or by atomic operations on the
    /// same words. Other processes may store anything there.
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

    /// Whether this process may write to the lines.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Returns `count` of these lines, from line `first` on; `None` when there are not that many.
    #[must_use]
    pub fn part(&self, first: usize, count: usize) -> Option<SharedLines> {
        let _ = self.as_slice().get(first..first.checked_add(count)?)?;
        // SAFETY: the range lies within the lines, by the check above.
        let start = unsafe { self.first.add(first) };
        Some(SharedLines { first: start, count, ..self.clone() })
    }

    /// Loads one word, 0 to 7, of one line with acquire ordering; `None` when there is no such word.
    #[must_use]
    pub fn load(&self, line: usize, word: usize) -> Option<u64> {
        Some(load_acquire(self.as_slice().get(line)?.0.get(word)?))
    }

    /// Stores one word with release ordering; false when there is no such word, or the lines are read-only.
    pub fn store(&self, line: usize, word: usize, value: u64) -> bool {
        let place = self.as_slice().get(line).and_then(|line| line.0.get(word));
        let Some(place) = place.filter(|_| self.is_writable) else { return false };
        place.store(value, Ordering::Release);
        true
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[Line] {
        // SAFETY: `count` lines exist from `first` while their owner lives, which `self` keeps alive; they
        // are atomic words, for which every bit pattern is valid.
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

/// Error: the memory has the wrong size for the structure, or is read-only where writing is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory has the wrong size or is read-only: map it again")]
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
    fn parts_beyond_the_end_are_rejected() {
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

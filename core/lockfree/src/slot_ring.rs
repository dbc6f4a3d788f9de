//! The memory of a ring of plain data: some lines of state, then the slots.

use core::marker::PhantomData;

use crate::{
    capacity::ring_capacity,
    lines::{LINE_WORDS, Line, SharedLines, WrongMemory},
    payload::{self, Payload},
    sync::AtomicU64,
};

/// Memory of `HEAD` lines and the slots of a ring of `T`, with a validated size.
///
/// A slot is a sequence word and the words of an item, aligned to a line.
pub(crate) struct SlotRing<T, const HEAD: usize> {
    pub(crate) lines: SharedLines,
    /// The capacity, a power of two, minus 1.
    pub(crate) mask: u64,
    item: PhantomData<fn(T) -> T>,
}

impl<T, const HEAD: usize> SlotRing<T, HEAD> {
    /// Number of lines of a slot.
    pub(crate) const SLOT_LINES: usize = (1 + payload::words_of::<T>()).div_ceil(LINE_WORDS);

    /// Number of lines of a ring. `capacity`, in items, is rounded up to a power of two.
    pub(crate) fn lines_of(capacity: usize) -> usize {
        HEAD + ring_capacity(capacity) * Self::SLOT_LINES
    }

    pub(crate) fn over(lines: SharedLines) -> Result<SlotRing<T, HEAD>, WrongMemory> {
        let slots = lines.count().checked_sub(HEAD).ok_or(WrongMemory)?;
        let capacity = slots / Self::SLOT_LINES;
        let is_whole = slots == capacity * Self::SLOT_LINES && capacity.is_power_of_two();
        if is_whole {
            Ok(SlotRing { lines, mask: capacity as u64 - 1, item: PhantomData })
        } else {
            Err(WrongMemory)
        }
    }

    /// Returns the first word of a line before the slots.
    #[inline(always)]
    pub(crate) fn head<const LINE: usize>(&self) -> &AtomicU64 {
        const { assert!(LINE < HEAD) };
        // SAFETY: `over` has checked that there are `HEAD` lines.
        unsafe { &self.lines.as_slice().get_unchecked(LINE).0[0] }
    }

    #[inline(always)]
    pub(crate) fn slot(&self, position: u64) -> Slot<'_> {
        let first = HEAD + (position & self.mask) as usize * Self::SLOT_LINES;
        debug_assert!(first + Self::SLOT_LINES <= self.lines.count());
        // SAFETY: the position in the ring is at most `mask`, and `over` has checked that the lines of `mask
        // + 1` slots follow the head.
        Slot(unsafe { self.lines.as_slice().get_unchecked(first..first + Self::SLOT_LINES) })
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.mask + 1
    }
}

/// A slot: its sequence, then the words of the item.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a>(pub(crate) &'a [Line]);

impl<'a> Slot<'a> {
    #[inline(always)]
    pub(crate) fn sequence(self) -> &'a AtomicU64 {
        &self.0[0].0[0]
    }

    #[inline(always)]
    fn word(self, index: usize) -> &'a AtomicU64 {
        &self.0[(1 + index) / LINE_WORDS].0[(1 + index) % LINE_WORDS]
    }

    #[inline(always)]
    pub(crate) fn store<T: Payload>(self, item: &T) {
        payload::store(item, |index| self.word(index));
    }

    #[inline(always)]
    pub(crate) fn load<T: Payload>(self) -> T {
        payload::load(|index| self.word(index))
    }
}

//! The prices of a side in which most happens, found without a search.

use crate::grid::{CELLS, Grids, OpenCells};

/// How much better than the best level of its placing a window begins: most of it lies where most levels are.
const LEAD: i64 = 64;

/// Orders that come to levels outside before a window is moved: twice as many as it may have levels to move.
const OUTSIDE_ADDS_MAX: u16 = 2 * CELLS as u16;

/// And before it is placed at all: with fewer the distance between neighbouring prices could not be known.
const FIRST_ADDS_MAX: u16 = 32;

/// Which prices a window has, and which of them are open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    open: OpenCells,
    /// The key of its first price, its worst.
    base: i64,
    grid: u8,
    /// True while a level outside may be better than one inside.
    pub(super) is_led_from_outside: bool,
    /// Orders that may still come to levels outside before the window is moved.
    outside_adds_left: u16,
}

impl Window {
    /// No price that a venue uses is in it.
    pub(super) const NOWHERE: Window = Window {
        open: OpenCells::NONE,
        base: i64::MIN,
        grid: Grids::NONE,
        is_led_from_outside: true,
        outside_adds_left: FIRST_ADDS_MAX,
    };

    /// The place for the window of a side with the best level `best` and such a step, all of it better than `bound`.
    pub(super) fn around(best: i64, distance: u64, bound: i64, grids: &mut Grids) -> Window {
        let mut place = || {
            let size = i64::try_from(distance).ok()?;
            let fitting = best.saturating_sub(bound).checked_sub(1)? / size;
            let below = fitting.min(CELLS as i64 - LEAD - 1).checked_mul(size)?;
            let base = best.checked_sub(below)?;
            // A window that passed the greatest number would continue with the least ones.
            base.checked_add(size.checked_mul(CELLS as i64)?)?;
            // The window says itself where it begins, so all grids of one distance are the same to it.
            let grid = Some(grids.through(0, distance)).filter(|grid| *grid != Grids::NONE)?;
            let is_led_from_outside = false;
            let outside_adds_left = OUTSIDE_ADDS_MAX;
            Some(Window { base, grid, is_led_from_outside, outside_adds_left, ..Window::NOWHERE })
        };
        place().unwrap_or(Window { outside_adds_left: OUTSIDE_ADDS_MAX, ..Window::NOWHERE })
    }

    /// An order comes to a level outside; true when it is time to move the window.
    #[inline]
    pub(super) fn count_outside_add(&mut self) -> bool {
        self.outside_adds_left = self.outside_adds_left.saturating_sub(1);
        self.outside_adds_left == 0
    }

    /// A level is opened outside.
    #[inline]
    pub(super) fn note_outside_level(&mut self, key: i64) {
        self.is_led_from_outside |= key >= self.base;
    }

    /// The cell of a key, or a very large number when it is outside.
    #[inline(always)]
    pub(super) const fn cell(&self, grids: &Grids, key: i64) -> u64 {
        grids.get(self.grid).steps(self.base, key)
    }

    #[inline(always)]
    pub(super) const fn key(&self, grids: &Grids, cell: usize) -> i64 {
        self.base.wrapping_add((cell as u64).wrapping_mul(grids.get(self.grid).size).cast_signed())
    }

    /// Opens or closes a cell.
    #[inline(always)]
    pub(super) const fn set(&mut self, cell: usize, is_open: bool) {
        self.open.set(cell, is_open);
    }

    #[inline(always)]
    pub(super) fn best(&self) -> Option<usize> {
        self.open.last()
    }

    /// The open cells from the best.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        self.open.down_from(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_its_best_and_what_is_worse_than_its_bound_stays_outside() {
        let mut grids = Grids::new();
        let window = Window::around(10_000, 100, i64::MIN, &mut grids);
        assert_eq!(window.cell(&grids, 10_000), 191);
        assert_eq!(window.key(&grids, 191), 10_000);
        assert_eq!(window.cell(&grids, 10_000 + 64 * 100), 255);
        for outside in [10_000 + 65 * 100, 10_000 - 192 * 100, 10_001, 9_999, i64::MIN, i64::MAX] {
            assert!(window.cell(&grids, outside) >= CELLS as u64, "{outside}");
        }
        let bounded = Window::around(10_000, 100, 9_650, &mut grids);
        assert_eq!((bounded.cell(&grids, 10_000), bounded.key(&grids, 0)), (3, 9_700));
        for (best, size) in [(i64::MAX, 100), (i64::MIN, 100), (0, 1 << 60), (i64::MAX - 100, 1)] {
            let nowhere = Window::around(best, size, i64::MIN, &mut grids);
            let inside = nowhere.cell(&grids, best) < CELLS as u64;
            // Where it fits at all, its last price is within the range of prices.
            assert!(!inside || nowhere.key(&grids, CELLS - 1) >= best, "{best} {size}");
        }
    }
}

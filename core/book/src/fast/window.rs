//! A window of a side's most active prices, which finds their levels without a search.

use crate::grid::{CELLS, Grids, OpenCells};

/// Number of cells that a new window reserves for prices better than the best: most levels are worse.
const LEAD: i64 = 64;

/// As `LEAD`, for a side with levels in all cells below its best.
const LEAD_MIN: i64 = 16;

/// Number of orders added outside a window before it moves: twice its maximum number of levels.
const OUTSIDE_ADDS_MAX: u16 = 2 * CELLS as u16;

/// Number of orders added before a window is first placed: fewer would not show the distance of prices.
const FIRST_ADDS_MAX: u16 = 32;

/// A side's window of prices, and its open levels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    open: OpenCells,
    /// Key of the window's first price, its worst.
    base: i64,
    grid: u8,
    /// True while a level outside the window may be better than those inside.
    pub(super) is_led_from_outside: bool,
    /// Number of orders that can still be added outside the window before it moves.
    outside_adds_left: u16,
}

impl Window {
    /// A window that is not placed: it covers only keys that no venue uses.
    pub(super) const UNPLACED: Window = Window {
        open: OpenCells::NONE,
        base: i64::MIN,
        grid: Grids::NONE,
        is_led_from_outside: true,
        outside_adds_left: FIRST_ADDS_MAX,
    };

    /// The window around the best key `best` for prices `distance` apart, with all its keys above `bound`;
    /// unplaced if there is no such window. `worst` is the key of the side's worst level above `bound`.
    pub(super) fn around(best: i64, worst: i64, distance: u64, bound: i64, grids: &mut Grids) -> Window {
        let mut place = || {
            let size = i64::try_from(distance).ok()?;
            let fitting = best.saturating_sub(bound).checked_sub(1)? / size;
            let levels = best.checked_sub(worst)? / size;
            let below = levels.clamp(CELLS as i64 - LEAD - 1, CELLS as i64 - LEAD_MIN - 1);
            let below = fitting.min(below).checked_mul(size)?;
            let base = best.checked_sub(below)?;
            // The window's keys must not overflow.
            base.checked_add(size.checked_mul(CELLS as i64)?)?;
            // The window has its own base, so any grid with this distance will do.
            let grid = Some(grids.through(0, distance)).filter(|grid| *grid != Grids::NONE)?;
            let is_led_from_outside = false;
            let outside_adds_left = OUTSIDE_ADDS_MAX;
            Some(Window { base, grid, is_led_from_outside, outside_adds_left, ..Window::UNPLACED })
        };
        place().unwrap_or(Window { outside_adds_left: OUTSIDE_ADDS_MAX, ..Window::UNPLACED })
    }

    /// Counts an order added outside the window; true when the window should move.
    #[inline]
    pub(super) fn count_outside_add(&mut self) -> bool {
        self.outside_adds_left = self.outside_adds_left.saturating_sub(1);
        self.outside_adds_left == 0
    }

    /// Records a level opened outside the window.
    #[inline]
    pub(super) fn note_outside_level(&mut self, key: i64) {
        self.is_led_from_outside |= key >= self.base;
    }

    /// The cell of a key; a very large number when the key is outside the window.
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
    fn a_window_holds_its_best_and_excludes_levels_below_its_bound() {
        let mut grids = Grids::new();
        let window = Window::around(10_000, 9_900, 100, i64::MIN, &mut grids);
        assert_eq!(window.cell(&grids, 10_000), 191);
        assert_eq!(window.key(&grids, 191), 10_000);
        assert_eq!(window.cell(&grids, 10_000 + 64 * 100), 255);
        for outside in [10_000 + 65 * 100, 10_000 - 192 * 100, 10_001, 9_999, i64::MIN, i64::MAX] {
            assert!(window.cell(&grids, outside) >= CELLS as u64, "{outside}");
        }
        for (levels, cell) in [(100, 191), (200, 200), (1_000, 239)] {
            let deep = Window::around(0, -100 * levels, 100, i64::MIN, &mut grids);
            assert_eq!(deep.cell(&grids, 0), cell, "{levels} levels below the best");
        }
        let bounded = Window::around(10_000, 9_900, 100, 9_650, &mut grids);
        assert_eq!((bounded.cell(&grids, 10_000), bounded.key(&grids, 0)), (3, 9_700));
        for (best, size) in [(i64::MAX, 100), (i64::MIN, 100), (0, 1 << 60), (i64::MAX - 100, 1)] {
            let unplaced = Window::around(best, best, size, i64::MIN, &mut grids);
            let inside = unplaced.cell(&grids, best) < CELLS as u64;
            // If the window is placed, the key of its last cell does not overflow.
            assert!(!inside || unplaced.key(&grids, CELLS - 1) >= best, "{best} {size}");
        }
    }
}

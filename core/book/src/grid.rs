//! Maps the price levels of a side to cells without a search.

use std::cmp::Reverse;

use tickpath_types::ExactDivisor;

/// Number of cells of a side, a power of two. Enough for the active prices of the widest liquid book, and few
/// enough for one bit each to fit into the side's cache line with its other fields.
pub(crate) const CELLS: usize = 256;

const WORD_BITS: usize = u64::BITS as usize;

/// Maximum number of grids, including the empty one. A side that needs a further one keeps its old grid or
/// uses no cells.
const GRIDS_MAX: usize = u8::MAX as usize + 1;

/// Approximate maximum absolute value of a grid's keys: differences of larger keys could overflow.
const KEYS_FROM_ZERO: u64 = 1 << 62;

/// A grid of equidistant keys, which maps each key to a cell. The 256 cells of a side are a ring, so that no
/// level moves when the prices do.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Grid {
    /// Distance between neighbouring keys.
    pub(crate) size: u64,
    divisor: ExactDivisor,
    /// Least key, from which keys are counted.
    base: i64,
    /// Number of keys on the grid.
    count: u64,
}

impl Grid {
    /// The empty grid: every key is off it.
    const NONE: Grid = Grid { size: 1, divisor: ExactDivisor::new(1), base: 0, count: 0 };

    /// The grid of distance `size` that `key` is on; `None` where its arithmetic would overflow.
    fn through(key: i64, size: u64) -> Option<Grid> {
        let size_of_keys = i64::try_from(size).ok().filter(|size| *size > 0)?;
        let below = (KEYS_FROM_ZERO / size).checked_mul(size)?;
        let base = key.rem_euclid(size_of_keys).checked_sub_unsigned(below)?;
        size.checked_mul(CELLS as u64).filter(|span| *span < KEYS_FROM_ZERO)?;
        let divisor = ExactDivisor::new(size);
        Some(Grid { size, divisor, base, count: (2 * KEYS_FROM_ZERO - 1) / size })
    }

    /// Grid steps from `from` to `key`; a very large number when `key` is below `from`, or off the grid.
    #[inline(always)]
    pub(crate) const fn steps(&self, from: i64, key: i64) -> u64 {
        self.divisor.quotient(key.wrapping_sub(from).cast_unsigned())
    }

    /// The place of a key.
    #[inline(always)]
    pub(crate) const fn place(&self, key: i64) -> Place {
        let number = self.steps(self.base, key);
        Place { number, is_on_grid: number < self.count }
    }
}

/// The place of a key on a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of steps from the grid's least key. Its lower bits are the cell on a ring of cells, the others
    /// the ring wrap.
    pub(crate) number: u64,
    /// False for a key that is off the grid and so has no cell.
    pub(crate) is_on_grid: bool,
}

/// The grids in use by any side.
#[derive(Clone, Debug)]
pub(crate) struct Grids {
    /// One entry for each value of `u8`, so that no index is out of range.
    all: Box<[Grid; GRIDS_MAX]>,
    len: usize,
}

impl Grids {
    /// Index of the empty grid.
    pub(crate) const NONE: u8 = 0;

    pub(crate) fn new() -> Grids {
        Grids { all: Box::new([Grid::NONE; GRIDS_MAX]), len: 1 }
    }

    /// Index of the grid of distance `size` that `key` is on, added if new; `NONE` when there is no such grid
    /// or there are too many grids.
    pub(crate) fn through(&mut self, key: i64, size: u64) -> u8 {
        let Some(grid) = Grid::through(key, size) else { return Grids::NONE };
        let known = self.all[..self.len].iter().position(|it| (it.size, it.base) == (grid.size, grid.base));
        let Ok(number) = u8::try_from(known.unwrap_or(self.len)) else { return Grids::NONE };
        if known.is_none() {
            self.all[self.len] = grid;
            self.len += 1;
        }
        number
    }

    #[inline(always)]
    pub(crate) const fn get(&self, number: u8) -> &Grid {
        &self.all[number as usize]
    }
}

/// One bit for each cell of a side: set while its level is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenCells([u64; CELLS / WORD_BITS]);

impl OpenCells {
    pub(crate) const NONE: OpenCells = OpenCells([0; CELLS / WORD_BITS]);

    /// Opens or closes a cell. Branchless, since no CPU could predict which.
    #[inline(always)]
    pub(crate) const fn set(&mut self, cell: usize, is_open: bool) {
        let (word, bit) = (&mut self.0[cell / WORD_BITS % (CELLS / WORD_BITS)], cell % WORD_BITS);
        *word = *word & !(1 << bit) | (is_open as u64) << bit;
    }

    /// The next open cell below `cell`, continuing at the top after cell 0; `cell` itself is checked last.
    #[inline(always)]
    pub(crate) fn next_below(&self, cell: usize) -> Option<usize> {
        const WORDS: usize = CELLS / WORD_BITS;
        let (first, bit) = (cell / WORD_BITS, cell % WORD_BITS);
        let below = (1 << bit) - 1;
        let mut word = first;
        let mut bits = self.0[first] & below;
        for _ in 0..WORDS {
            if bits != 0 {
                return Some(word * WORD_BITS + bits.ilog2() as usize);
            }
            word = word.wrapping_sub(1) % WORDS;
            bits = self.0[word];
        }
        let bits = self.0[first] & !below;
        (bits != 0).then(|| first * WORD_BITS + bits.ilog2() as usize)
    }

    /// The open cell with the greatest index.
    #[inline(always)]
    pub(crate) fn last(&self) -> Option<usize> {
        self.next_below(0)
    }

    /// Calls `f` with each open cell.
    #[inline(always)]
    pub(crate) fn for_each(self, mut f: impl FnMut(usize)) {
        for (word, bits) in self.0.into_iter().enumerate() {
            let mut rest = bits;
            while rest != 0 {
                f(word * WORD_BITS + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }

    /// The open cells downwards from the one below `cell`, then from the top down to `cell` itself.
    pub(crate) fn down_from(self, cell: usize) -> impl Iterator<Item = usize> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let next = rest.next_below(cell)?;
            rest.set(next, false);
            Some(next)
        })
    }
}

/// Default distance between prices: one cent.
pub(crate) const USUAL_DISTANCE: u64 = 100;

/// Number of a side's best levels from which its grid distance is computed.
pub(crate) const LEVELS_EXAMINED: usize = 16;

/// Returns the grid distance at which as many as possible of `keys`, a side's best keys, have cells within
/// one ring wrap; the smallest of several such distances.
pub(crate) fn distance(keys: &[i64]) -> u64 {
    let gaps = || keys.windows(2).map(|pair| pair[0].abs_diff(pair[1]));
    let common = gaps().fold(0, gcd);
    let fitting = |size: u64| {
        let distances = keys.iter().map(|key| keys[0].abs_diff(*key));
        distances.filter(|distance| distance % size == 0 && distance / size < CELLS as u64).count()
    };
    let sizes = gaps().chain([common]).filter(|size| *size != 0);
    sizes.max_by_key(|size| (fitting(*size), Reverse(*size))).unwrap_or(USUAL_DISTANCE)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_on_the_grid_or_off_it() {
        for size in [1, 2, 7, 50, 100, 2_500, 1 << 40, (1 << 47) - 1] {
            let step = size as i64;
            for origin in [0, 3, -1, -77, 1_000_000_007] {
                let grid = Grid::through(origin, size).unwrap();
                let cell = |place: Place| place.number as usize % CELLS;
                let first = cell(grid.place(origin));
                for count in [-70_000_i64, -257, -256, -1, 0, 1, 63, 255, 256, 70_000] {
                    let Some(key) = step.checked_mul(count).and_then(|far| far.checked_add(origin)) else {
                        continue;
                    };
                    let expected = (first as i64 + count).rem_euclid(CELLS as i64) as usize;
                    let place = grid.place(key);
                    assert_eq!(
                        (cell(place), place.is_on_grid),
                        (expected, true),
                        "{origin} + {count} x {size}"
                    );
                    for off in (1..size.min(60)).chain([size - 1]).filter(|off| *off != 0) {
                        let is_on = grid.place(key.saturating_add_unsigned(off)).is_on_grid;
                        assert!(!is_on, "{origin} + {count} x {size} + {off}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_distance_is_counted_in_whole_steps_or_not_at_all() {
        for size in [1, 2, 7, 50, 100, 2_500, 1 << 40, (1 << 47) - 1] {
            let grid = Grid::through(0, size).unwrap();
            let steps = |distance: u64| grid.steps(-5, distance.cast_signed().wrapping_sub(5));
            for count in [0, 1, 63, 255, 256, 70_000] {
                assert_eq!(steps(size * count), count);
                for off in (1..size.min(60)).chain([size - 1]).filter(|off| *off != 0) {
                    assert!(steps(size * count + off) >= CELLS as u64, "{count} x {size} + {off}");
                }
            }
            assert!(steps(0_u64.wrapping_sub(size)) >= CELLS as u64, "behind the base");
        }
    }

    #[test]
    fn incomparable_keys_are_off_every_grid() {
        for size in [1, 3, 100, 1 << 50] {
            let grid = Grid::through(0, size).unwrap();
            for key in [i64::MIN, i64::MIN + 1, -(1 << 62) - (1 << 52), (1 << 62) + (1 << 52), i64::MAX] {
                assert!(!grid.place(key).is_on_grid, "{key} by {size}");
            }
            assert!(!Grid::NONE.place(0).is_on_grid);
        }
        assert!(Grid::through(0, 0).is_none() && Grid::through(0, 1 << 54).is_none());
        assert!(Grid::through(5, u64::MAX).is_none());
    }

    #[test]
    fn grids_are_distinct_up_to_the_bound() {
        let mut grids = Grids::new();
        let numbers: Vec<_> = (1..GRIDS_MAX as u64).map(|size| grids.through(0, size)).collect();
        assert!(numbers.iter().enumerate().all(|(place, number)| usize::from(*number) == place + 1));
        assert_eq!(grids.through(0, GRIDS_MAX as u64), Grids::NONE);
        assert_eq!((grids.through(14, 7), grids.through(-7, 7)), (7, 7));
        assert_eq!(grids.through(1, 7), Grids::NONE, "another phase is another grid");
    }

    #[test]
    fn open_cells_are_found_downwards_and_around() {
        let mut open = OpenCells::NONE;
        assert_eq!(open.next_below(17), None);
        for cell in [0, 5, 63, 64, 200, 255] {
            open.set(cell, true);
        }
        let found: Vec<_> = open.down_from(64).collect();
        assert_eq!(found, [63, 5, 0, 255, 200, 64]);
        assert_eq!(open.down_from(0).next(), Some(255));
        open.set(255, false);
        assert_eq!(open.next_below(0), Some(200));
    }
}

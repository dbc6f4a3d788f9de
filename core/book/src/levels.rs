//! The price levels of all sides of a feed's books.

use std::hint::select_unpredictable;

use arrayvec::ArrayVec;
use tickpath_types::{InstrumentId, Price, Side};

use crate::BookLimits;
use crate::grid::{CELLS, Grid, Grids, LEVELS_EXAMINED, OpenCells, Place, USUAL_DISTANCE, distance};
use crate::ladder::{self, Ladder, Ladders, Search};
use crate::record::{LevelRecord, NIL, Outside, Queues, key, merged};

/// Number of orders added to levels outside the cells before another grid is considered.
const OUTSIDE_ADDS_MIN: u32 = 32;

/// Maximum number of levels and orders moved to another grid for each order added outside the cells. It bounds the
/// average work per order. Smaller, a side that only grows, as in a snapshot, would keep an unsuitable grid.
const MOVES_PER_ADD: u32 = 4;

/// Maximum number of levels and orders moved to another grid; a side with more keeps its grid.
const MOVES_MAX: u32 = 4_096;

/// Maximum number of orders of a level that is moved into or out of a cell.
const ORDERS_MOVED_MAX: u32 = 8;

/// Minimum number of cells of a side: one word of [`OpenCells`].
const CELLS_MIN: u32 = 64;

/// One side of one book: all fields that each message needs, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct BookSide {
    pub(crate) open: OpenCells,
    /// Key of the best level; `i64::MIN` when there is none.
    pub(crate) best_key: i64,
    /// Key of the best level outside the cells; `i64::MIN` when there is none.
    outside_key: i64,
    pub(crate) best: u32,
    /// The levels outside the cells.
    ladder: Ladder,
    /// Number of orders added to levels outside the cells since the grid was chosen.
    outside_adds: u32,
}

const _: () = assert!(size_of::<BookSide>() == 64);

impl BookSide {
    pub(crate) const EMPTY: BookSide = BookSide {
        open: OpenCells::NONE,
        best_key: i64::MIN,
        outside_key: i64::MIN,
        best: NIL,
        ladder: Ladder::EMPTY,
        outside_adds: 0,
    };

    /// Makes the open level `index` the best one if no other has a better key. The keys are equal only if
    /// `index` is the best level already, or if there is no level.
    #[inline(always)]
    pub(crate) fn update_best(&mut self, index: u32, key: i64) {
        let is_best = key >= self.best_key;
        self.best_key = select_unpredictable(is_best, key, self.best_key);
        self.best = select_unpredictable(is_best, index, self.best);
    }
}

/// The best level of a side after the level of key `closed`, the best, has closed in its cell, with its key.
/// `first` is the side's first cell, `grid` the side's grid. `None` if the next open cell may hold a level of
/// another ring wrap, or if a level outside the cells may be better.
#[inline(always)]
pub(crate) fn next_best(
    book: &BookSide,
    records: &[LevelRecord],
    grid: &Grid,
    bits: u32,
    first: u32,
    closed: i64,
) -> Option<(u32, i64)> {
    let cell = grid.place(closed).number as usize & ((1 << bits) - 1);
    let best = first + book.open.next_below(cell)? as u32;
    let key = records.get(best as usize)?.key;
    (is_near(grid, bits, closed, key) && book.outside_key < key).then_some((best, key))
}

/// True when `worse` is at most `better`, but less than one ring wrap of 2^`bits` cells below it; both are on
/// the grid. Keys that differ by less than a ring wrap have different cells.
#[inline(always)]
const fn is_near(grid: &Grid, bits: u32, better: i64, worse: i64) -> bool {
    better.wrapping_sub(worse).cast_unsigned() < grid.size << bits
}

/// The levels of all sides. Each side has cells for the levels of up to 256 neighbouring prices, so that the
/// price of nearly every level determines its record. The others are in ladders, B+ trees, with records from a
/// pool.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    pub(crate) sides: Vec<BookSide>,
    /// The number of each side's grid, then those of an unknown instrument's sides. Not in the side's own record,
    /// since the first pass over a group needs it, and these stay in a cache.
    pub(crate) side_grids: Vec<u8>,
    /// A row of null records, a row of cells for each side, then the pool of records for the other levels.
    pub(crate) records: Vec<LevelRecord>,
    /// Base-2 logarithm of the number of cells of a side, which is the length of a row.
    pub(crate) bits: u32,
    /// Index in `records` of the first record of the pool.
    pub(crate) pool: u32,
    ladders: Ladders,
    pub(crate) grids: Grids,
    /// Number of changes of any side's grid.
    pub(crate) grid_changes: u32,
    /// Free records of the pool, linked by `head`.
    free: u32,
    pub(crate) max_levels: u32,
    pub(crate) count: u32,
}

/// The cell that belongs to a key, whether or not the key's level is in it.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    /// Index of the cell's record, which may hold the level of another key.
    pub(crate) index: u32,
    /// Lower bits of the number of steps from the grid's least key. Above those of the cell they are the ring
    /// wrap.
    pub(crate) steps: u32,
    pub(crate) is_on_grid: bool,
}

impl Cell {
    /// The cell of a key on the grid of its side, whose row has 2^`bits` cells.
    #[inline(always)]
    pub(crate) const fn on(grid: &Grid, bits: u32, side: u32, key: i64) -> Cell {
        let Place { number, is_on_grid } = grid.place(key);
        let steps = number as u32;
        let cell = steps & ((1 << bits) - 1);
        Cell { index: (side.wrapping_add(1) << bits).wrapping_add(cell), steps, is_on_grid }
    }
}

impl Levels {
    /// Levels of empty books. The cells are touched now, the pool at its first use.
    pub(crate) fn new(limits: BookLimits) -> Levels {
        let max_levels = limits.max_levels as usize;
        let instruments = 0..=limits.max_instrument.0;
        let mut grids = Grids::new();
        let default_grids = Side::BOTH.map(|side| grids.through(key(side, Price(0)), USUAL_DISTANCE));
        let mut side_grids: Vec<_> = instruments.clone().flat_map(|_| default_grids).collect();
        let sides = vec![BookSide::EMPTY; side_grids.len()];
        side_grids.extend([Grids::NONE; Side::BOTH.len()]);
        let row = Levels::row_len(limits, sides.len());
        let pool = (sides.len() + 1) * row;
        let mut records = Vec::with_capacity(pool + max_levels);
        // Record 0 is the null record, `NIL`, which conflicts with every key.
        let null = LevelRecord { outside: Outside::ALL, ..LevelRecord::closed(InstrumentId(0), Side::Buy) };
        records.extend((0..row).map(|_| null));
        for instrument in instruments.map(InstrumentId) {
            for side in Side::BOTH {
                records.extend((0..row).map(|_| LevelRecord::closed(instrument, side)));
            }
        }
        Levels {
            ladders: Ladders::untouched(sides.len(), max_levels),
            sides,
            side_grids,
            records,
            bits: row.ilog2(),
            pool: pool as u32,
            grids,
            grid_changes: 0,
            free: NIL,
            max_levels: limits.max_levels,
            count: 0,
        }
    }

    /// Number of cells of a side: about as many as it can have orders on average, so that the cells of many
    /// books with few orders each do not take more memory than the orders.
    fn row_len(limits: BookLimits, sides: usize) -> usize {
        let orders_per_side = limits.max_orders / sides as u32;
        orders_per_side.clamp(CELLS_MIN, CELLS as u32).next_power_of_two() as usize
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> &LevelRecord {
        &self.records[index as usize]
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut LevelRecord {
        &mut self.records[index as usize]
    }

    #[inline(always)]
    pub(crate) fn side(&self, side: u32) -> &BookSide {
        self.sides.get(side as usize).unwrap_or(&BookSide::EMPTY)
    }

    /// The grid of a side; the empty grid for an unknown side.
    #[inline(always)]
    pub(crate) fn grid_of(&self, side: u32) -> &Grid {
        self.grids.get(self.side_grids.get(side as usize).map_or(Grids::NONE, |grid| *grid))
    }

    /// Index of the first cell of a side.
    #[inline(always)]
    pub(crate) const fn row(&self, side: u32) -> u32 {
        (side + 1) << self.bits
    }

    /// The side of a level in a cell.
    #[inline(always)]
    pub(crate) const fn side_of_cell(&self, index: u32) -> u32 {
        (index >> self.bits).wrapping_sub(1)
    }

    /// The cell for the level of this key. Accepts any side and key; the index is valid for a known side.
    #[inline(always)]
    pub(crate) fn cell(&self, side: u32, key: i64) -> Cell {
        Cell::on(self.grid_of(side), self.bits, side, key)
    }

    /// Marks the cell at `index` of a side as open or empty.
    #[inline(always)]
    fn set_open(&mut self, side: u32, index: u32, is_open: bool) {
        let cell = (index & ((1 << self.bits) - 1)) as usize;
        self.sides[side as usize].open.set(cell, is_open);
    }

    /// True for a level in a cell; false for one outside the cells.
    #[inline(always)]
    pub(crate) const fn is_cell(&self, index: u32) -> bool {
        index < self.pool
    }

    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.count >= self.max_levels
    }

    /// The level of a key. Accepts any side and key.
    pub(crate) fn find_known(&self, side: u32, key: i64) -> Option<u32> {
        Some(side).filter(|side| (*side as usize) < self.sides.len()).and_then(|side| self.find(side, key))
    }

    pub(crate) fn find(&self, side: u32, key: i64) -> Option<u32> {
        let cell = self.cell(side, key);
        let level = self.get(cell.index);
        if cell.is_on_grid && level.order_count > 0 && level.key == key {
            return Some(cell.index);
        }
        self.find_outside(side, key)
    }

    /// The level of a key outside the cells. Accepts any side and key.
    #[inline]
    pub(crate) fn find_outside(&self, side: u32, key: i64) -> Option<u32> {
        let side = self.sides.get(side as usize)?;
        self.ladders.find(side.ladder, key).ok().map(|(level, _)| level)
    }

    /// Begins a search for the level of a key outside the cells. Accepts any side and key.
    pub(crate) fn search_outside(&self, side: u32, key: i64) -> Search {
        self.ladders.search(self.side(side).ladder, key)
    }

    /// Fetches the nodes of the keys' levels.
    pub(crate) fn descend_outside(&self, searches: &mut [Search]) {
        self.ladders.descend(searches);
    }

    /// The level that a search has found, after [`Levels::descend_outside`].
    pub(crate) fn found_outside(&self, search: Search) -> Option<u32> {
        self.ladders.found(search)
    }

    /// Record index of this key's cell if the fast path applies: the key's level is open there, or can be
    /// opened there. Accepts any side and key.
    #[inline(always)]
    pub(crate) fn free_cell(&self, side: u32, key: i64) -> Option<u32> {
        if side as usize >= self.sides.len() {
            return None;
        }
        let Cell { index, steps, is_on_grid } = self.cell(side, key);
        let level = self.get(index);
        (is_on_grid & (level.conflict(key, steps >> self.bits) == 0) & (self.count < self.max_levels))
            .then_some(index)
    }

    /// Records an order added to a level in a cell.
    #[inline(always)]
    pub(crate) fn note_added(&mut self, side: u32, index: u32, key: i64, opens: bool) {
        self.count += u32::from(opens);
        self.set_open(side, index, true);
        self.sides[side as usize].update_best(index, key);
    }

    /// Records an order removed from a level in a cell, with the number of orders left there.
    #[inline(always)]
    pub(crate) fn note_removed(&mut self, side: u32, index: u32, key: i64, orders_left: u32) {
        self.count -= u32::from(orders_left == 0);
        self.set_open(side, index, orders_left != 0);
        // One branch, since `&&` compiles to two and no CPU could predict whether a level closes.
        if orders_left | (self.sides[side as usize].best ^ index) == 0 {
            self.find_best(side, key);
        }
    }

    /// Index of the level of a key, opened if needed; the caller has ensured that there is capacity.
    ///
    /// Of two levels with the same cell, the better one gets it, since most orders are added and removed at
    /// better prices. So this may move the other level out of the cell, if it has few orders.
    ///
    /// `expected` is any record: if it is outside the cells and still has the level, that is not searched for.
    pub(crate) fn find_or_open(
        &mut self,
        side: u32,
        key: i64,
        expected: u32,
        orders: &mut (impl Queues + ?Sized),
    ) -> u32 {
        let cell = self.cell(side, key);
        let level = self.get(cell.index);
        // One branch, since a CPU could not predict each of these.
        if cell.is_on_grid & (level.order_count > 0) & (level.key == key) {
            return cell.index;
        }
        if self.should_change_grid(side) && self.change_grid(side, orders) {
            return self.find_or_open(side, key, NIL, orders);
        }
        let known = match self.get(expected) {
            level if !self.is_cell(expected) && level.is_open_for(side, key) => Ok(expected),
            _ => self.ladders.find(self.side(side).ladder, key).map(|(level, _)| level),
        };
        let may_have_cell = cell.is_on_grid && self.vacate(side, cell, key, orders);
        match known {
            Ok(level) if may_have_cell && self.get(level).order_count <= ORDERS_MOVED_MAX => {
                self.move_inside(side, level, cell, orders)
            }
            Ok(level) => level,
            Err(_) if may_have_cell => {
                self.get_mut(cell.index).key = key;
                self.note_added(side, cell.index, key, true);
                cell.index
            }
            Err(place) => {
                let level = self.take_from_pool(side, key);
                self.put_at(side, level, key, cell, place);
                self.count += 1;
                self.sides[side as usize].update_best(level, key);
                level
            }
        }
    }

    /// Moves a worse level with few orders, if any, out of the cell for `key`. Returns false if the cell
    /// stays occupied.
    fn vacate(&mut self, side: u32, cell: Cell, key: i64, orders: &mut (impl Queues + ?Sized)) -> bool {
        let level = self.get(cell.index);
        if level.order_count == 0 {
            return true;
        }
        if level.key > key || level.order_count > ORDERS_MOVED_MAX {
            return false;
        }
        let index = self.move_to_pool(cell.index, orders);
        self.set_open(side, cell.index, false);
        if self.side(side).best == cell.index {
            self.sides[side as usize].best = index;
        }
        self.put_outside(side, index);
        true
    }

    /// Moves a level from the ladder to its empty cell.
    fn move_inside(&mut self, side: u32, level: u32, cell: Cell, orders: &mut (impl Queues + ?Sized)) -> u32 {
        self.take_inside(side, self.get(level).key);
        self.move_level(level, cell.index, orders);
        self.set_open(side, cell.index, true);
        if self.side(side).best == level {
            self.sides[side as usize].best = cell.index;
        }
        self.return_to_pool(level);
        cell.index
    }

    /// Takes a record from the pool, which has one for each of `max_levels`.
    #[inline]
    fn take_from_pool(&mut self, side: u32, key: i64) -> u32 {
        let mut index = self.free;
        if index == NIL {
            index = self.records.len() as u32;
            self.records.push(LevelRecord::opened(side, key));
        } else {
            self.free = self.get(index).head;
            *self.get_mut(index) = LevelRecord::opened(side, key);
        }
        index
    }

    fn return_to_pool(&mut self, index: u32) {
        self.get_mut(index).head = self.free;
        self.free = index;
    }

    /// Adds a level of the pool to its side's ladder.
    fn put_outside(&mut self, side: u32, level: u32) {
        let key = self.get(level).key;
        let Err(place) = self.ladders.find(self.side(side).ladder, key) else {
            unreachable!("a side has one level of a key")
        };
        self.put_at(side, level, key, self.cell(side, key), place);
    }

    /// Adds a level of the pool to its side's ladder, at the place where a search has not found its key.
    #[inline(always)]
    fn put_at(&mut self, side: u32, level: u32, key: i64, cell: Cell, place: ladder::Place) {
        let book = &mut self.sides[side as usize];
        self.ladders.insert(&mut book.ladder, place, key, level);
        book.outside_key = book.outside_key.max(key);
        let wrap = cell.steps >> self.bits;
        self.outside_of(cell).note(wrap);
    }

    /// Removes the level of a key from its side's ladder.
    fn take_inside(&mut self, side: u32, key: i64) {
        let book = &mut self.sides[side as usize];
        self.ladders.remove(&mut book.ladder, key);
        if book.outside_key == key {
            let best = self.ladders.best(book.ladder);
            book.outside_key = best.map_or(i64::MIN, |best| self.records[best as usize].key);
        }
        let (cell, bits) = (self.cell(side, key), self.bits);
        self.outside_of(cell).forget(cell.steps >> bits);
    }

    /// The counts of levels outside the cells, in the record of a cell. For a key off the grid, those of the null
    /// record, which do not change: a CPU could not predict a branch.
    #[inline(always)]
    fn outside_of(&mut self, cell: Cell) -> &mut Outside {
        &mut self.get_mut(select_unpredictable(cell.is_on_grid, cell.index, NIL)).outside
    }

    /// Closes a level outside the cells that has no orders.
    #[inline(never)]
    pub(crate) fn close_outside(&mut self, side: u32, index: u32, key: i64) {
        self.take_inside(side, key);
        self.return_to_pool(index);
        self.count -= 1;
        if self.side(side).best == index {
            self.find_best_of_all(side);
        }
    }

    /// Finds the new best level after a level in a cell has closed; `closed` was its key.
    #[inline(always)]
    fn find_best(&mut self, side: u32, closed: i64) {
        let book = &self.sides[side as usize];
        match next_best(book, &self.records, self.grid_of(side), self.bits, self.row(side), closed) {
            Some((best, best_key)) => {
                let book = &mut self.sides[side as usize];
                (book.best, book.best_key) = (best, best_key);
            }
            None => self.find_best_of_all(side),
        }
    }

    /// As `find_best`, but considers all ring wraps and the levels outside the cells. Checks each open cell
    /// once.
    #[inline(never)]
    pub(crate) fn find_best_of_all(&mut self, side: u32) {
        let BookSide { open, ladder, outside_key, .. } = *self.side(side);
        let first = self.row(side);
        let cells = &self.records[first as usize..][..1 << self.bits];
        let (mut best, mut best_key) = (NIL, i64::MIN);
        open.for_each(|cell| {
            let key = cells[cell].key;
            // Branchless. The check for NIL admits a level whose key is `i64::MIN`.
            let is_best = (key > best_key) | (best == NIL);
            best = select_unpredictable(is_best, first + cell as u32, best);
            best_key = select_unpredictable(is_best, key, best_key);
        });
        if let Some(outside) = self.ladders.best(ladder)
            && (outside_key > best_key || best == NIL)
        {
            (best, best_key) = (outside, outside_key);
        }
        let book = &mut self.sides[side as usize];
        (book.best, book.best_key) = (best, best_key);
    }

    /// The open cell with a side's best key of at most `bound`, and that key.
    fn best_cell(&self, side: u32, open: OpenCells, bound: i64) -> Option<(usize, i64)> {
        let first = self.row(side) as usize;
        let keys = open.down_from(0).map(|cell| (cell, self.records[first + cell].key));
        keys.filter(|(_, key)| *key <= bound).max_by_key(|(_, key)| *key)
    }

    /// The levels of a side in cells, from the best: one round for each ring wrap that has levels.
    fn in_cells(&self, side: u32) -> impl Iterator<Item = u32> {
        let open = self.side(side).open;
        let grid = *self.grid_of(side);
        let first = self.row(side);
        let wraps = std::iter::successors(self.best_cell(side, open, i64::MAX), move |(_, best)| {
            self.best_cell(side, open, best.checked_sub_unsigned(grid.size << self.bits)?)
        });
        wraps.flat_map(move |(cell, best)| {
            // `down_from` begins one cell below its argument, so that the best cell comes first.
            let around = open.down_from((cell + 1) % CELLS);
            let indices = around.map(move |cell| first + cell as u32);
            indices.filter(move |index| is_near(&grid, self.bits, best, self.get(*index).key))
        })
    }

    /// The open levels of a side from the best.
    pub(crate) fn of_side(&self, side: u32) -> impl Iterator<Item = u32> {
        let known = Some(side).filter(|side| (*side as usize) < self.sides.len());
        let inside = known.into_iter().flat_map(|side| self.in_cells(side));
        merged(&self.records, inside, self.ladders.iter(self.side(side).ladder))
    }

    /// Counts an order added outside the cells. True if a change of grid moves at most [`MOVES_PER_ADD`] levels
    /// and orders for each of these. Checks this only when the count is a power of two.
    #[inline]
    fn should_change_grid(&mut self, side: u32) -> bool {
        let book = &mut self.sides[side as usize];
        book.outside_adds = book.outside_adds.saturating_add(1);
        let adds = book.outside_adds;
        adds >= OUTSIDE_ADDS_MIN
            && adds.is_power_of_two()
            && self.moves_at_most(side, adds.saturating_mul(MOVES_PER_ADD).min(MOVES_MAX))
    }

    /// True when a side has at most `moves` levels and orders together; all move when its grid changes.
    #[cold]
    fn moves_at_most(&self, side: u32, moves: u32) -> bool {
        let mut left = self.of_side(side).scan(moves, |left, level| {
            let needed = self.get(level).order_count.saturating_add(1);
            *left = left.checked_sub(needed).unwrap_or(u32::MAX);
            Some(*left)
        });
        left.all(|left| left != u32::MAX)
    }

    /// Moves a side to the grid of its best levels; false when it keeps its grid.
    #[cold]
    fn change_grid(&mut self, side: u32, orders: &mut (impl Queues + ?Sized)) -> bool {
        let all: ArrayVec<u32, { MOVES_MAX as usize }> = self.of_side(side).collect();
        let keys: ArrayVec<i64, LEVELS_EXAMINED> =
            all.iter().take(LEVELS_EXAMINED).map(|level| self.get(*level).key).collect();
        let Some(best) = keys.first() else { return false };
        let number = self.grids.through(*best, distance(&keys));
        if number == Grids::NONE || number == self.side_grids[side as usize] {
            return false;
        }
        let BookSide { mut ladder, .. } = *self.side(side);
        for level in &all {
            if !self.is_cell(*level) {
                self.ladders.remove(&mut ladder, self.records[*level as usize].key);
            }
        }
        // All levels move to the pool, then to their new places, the best first.
        let pooled: ArrayVec<u32, { MOVES_MAX as usize }> = all
            .iter()
            .map(|level| if self.is_cell(*level) { self.move_to_pool(*level, orders) } else { *level })
            .collect();
        let cells = (self.row(side)) as usize..;
        self.records[cells][..1 << self.bits].iter_mut().for_each(|cell| cell.outside = Outside::NONE);
        self.sides[side as usize] = BookSide { ladder, ..BookSide::EMPTY };
        self.side_grids[side as usize] = number;
        self.grid_changes = self.grid_changes.wrapping_add(1);
        for level in pooled {
            self.place(side, level, orders);
        }
        self.find_best_of_all(side);
        true
    }

    fn move_to_pool(&mut self, cell: u32, orders: &mut (impl Queues + ?Sized)) -> u32 {
        let level = *self.get(cell);
        let index = self.take_from_pool(level.side_index(), level.key);
        self.move_level(cell, index, orders);
        index
    }

    /// Moves a level of the pool to its cell if that is free, otherwise to the ladder.
    fn place(&mut self, side: u32, level: u32, orders: &mut (impl Queues + ?Sized)) {
        let cell = self.cell(side, self.get(level).key);
        if !cell.is_on_grid || self.get(cell.index).order_count > 0 {
            return self.put_outside(side, level);
        }
        self.move_level(level, cell.index, orders);
        self.set_open(side, cell.index, true);
        self.return_to_pool(level);
    }

    fn move_level(&mut self, from: u32, to: u32, orders: &mut (impl Queues + ?Sized)) {
        let level = *self.get(from);
        let outside = self.get(to).outside;
        *self.get_mut(to) = LevelRecord { outside, ..level };
        *self.get_mut(from) =
            LevelRecord { outside: level.outside, ..LevelRecord::closed(level.instrument, level.side) };
        let mut slot = level.head;
        while slot != NIL {
            orders.set_level(slot, to);
            slot = orders.next(slot);
        }
    }
}

//! The passes over a group of changes.
//!
//! The first three passes only prefetch, each what the lines of the pass before it name: the orders' buckets
//! and new orders' levels; the orders' levels and neighbours; the last orders of levels. The last pass applies
//! the changes. Usually a CPU can predict all its branches but two: whether an order is added, and whether it
//! replaces another. A change that is not ordinary leaves it before its first write. `apply_outside` applies most of
//! those; it checks the indices of levels.
//!
//! # Safety
//!
//! This module reads and writes slots, levels and sides without a check of their bounds. These are the
//! invariants behind it. `packed.rs` and `levels.rs` keep them, and no other code changes the fields.
//!
//! - A slot in a record (`prev`, `next`, `head`, `tail`) is NIL or that of a place of the table, so it is the
//!   index of one of the first three words of a bucket. All fields of its order are in the same bucket.
//! - The level of an order in the table is the index of a level's record. The words that are read as the level
//!   of an order that is not there are only prefetched.
//! - The tag of an operation without an order differs from those in the bucket of NIL, its home.
//! - The records of levels below `Levels::pool` are a row for each side, behind the row of null records.
//! - An operation's `home`, `level` and `side` are valid in books of the shape that is stored in the group.
//!   `advance` checks this shape. No table of books shrinks.
//! - No order can be added to the bucket of NIL or to the level NIL, and no order is there.
//!
//! Builds with debug assertions check every index. `DirectBooks` have the same behaviour without such code.
#![allow(unsafe_code)]

use std::hint::select_unpredictable;

use arrayvec::ArrayVec;
use tickpath_lockfree::cpu::prefetch_index;
use tickpath_types::{OrderId, Price, Qty, Side};

use super::{
    Bucket, DISPLACED, FREE, Home, LANES, LEVEL, MOVED, NEIGHBOUR, NEIGHBOUR_SLOT, NEXT, PREV, PackedBooks,
    PackedOrders, QTY, WORDS,
};
use crate::feed_books::{FeedBooks, OrderStore};
use crate::grid::Grid;
use crate::group::{OPERATIONS_MAX, Operation, OrderGroup, OrderMessages, Step};
use crate::levels::{BookSide, Cell, Levels, next_best};
use crate::record::{LevelRecord, NIL, Queues, key};

/// Reads or writes an element without a check of its bounds, which debug builds make.
macro_rules! at {
    ($slice:expr, $index:expr) => {
        // SAFETY: the index is valid by the invariants of this module.
        *unsafe { $slice.get_unchecked($index as usize) }
    };
    (mut $slice:expr, $index:expr) => {
        // SAFETY: the index is valid by the invariants of this module.
        *unsafe { $slice.get_unchecked_mut($index as usize) }
    };
}

/// Bit set of the places of a bucket with this tag. `tags` are the bucket's first four words.
#[inline(always)]
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) fn matches(tags: &[u32; 4], tag: u32) -> u32 {
    use std::arch::x86_64::{
        _mm_castsi128_ps, _mm_cmpeq_epi32, _mm_loadu_si128, _mm_movemask_ps, _mm_set1_epi32,
    };
    // SAFETY: every x86-64 CPU has SSE2, and the load reads the 16 bytes of the array.
    let equal = unsafe {
        let tags = _mm_loadu_si128(tags.as_ptr().cast());
        _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(tags, _mm_set1_epi32(tag.cast_signed()))))
    };
    equal.cast_unsigned() & ((1 << LANES) - 1)
}

/// Bit set of the places of a bucket with this tag. `tags` are the bucket's first four words.
#[inline(always)]
#[cfg(any(not(target_arch = "x86_64"), miri))]
pub(super) fn matches(tags: &[u32; 4], tag: u32) -> u32 {
    let is_match = |place: usize| u32::from(tags[place] == tag) << place;
    is_match(0) | is_match(1) | is_match(2)
}

/// The words of buckets.
#[inline(always)]
fn words(buckets: &[Bucket]) -> &[u32] {
    // SAFETY: a bucket is an array of `WORDS` words without padding.
    unsafe { std::slice::from_raw_parts(buckets.as_ptr().cast(), buckets.len() * WORDS as usize) }
}

/// The words of buckets.
#[inline(always)]
fn words_mut(buckets: &mut [Bucket]) -> &mut [u32] {
    // SAFETY: a bucket is an array of `WORDS` words without padding, and any words are a bucket.
    unsafe { std::slice::from_raw_parts_mut(buckets.as_mut_ptr().cast(), buckets.len() * WORDS as usize) }
}

/// The first four words of the bucket that begins at `home`.
#[inline(always)]
fn tags(words: &[u32], home: u32) -> &[u32; 4] {
    debug_assert!(home as usize + 4 <= words.len());
    // SAFETY: `home` is the first slot of a bucket, which has `WORDS` words.
    unsafe { &*words.as_ptr().add(home as usize).cast() }
}

/// The slot of the place with the least number in the set; that of the last place for the empty set.
#[inline(always)]
const fn slot_of(bucket: u32, places: u32) -> u32 {
    bucket + (places | 1 << (LANES - 1)).trailing_zeros()
}

/// Identifies the tables that operations refer to: their sizes, and the homes of ids.
#[inline]
fn shape(books: &PackedBooks) -> [u64; 4] {
    let PackedOrders { bits, scatter, .. } = books.orders;
    [bits.into(), scatter, books.levels.pool.into(), books.levels.sides.len() as u64]
}

/// The first three passes. Without `is_large` only the first, since the other memory is probably in a cache.
#[inline(always)]
pub(super) fn prepare<M>(
    books: &PackedBooks,
    group: &mut OrderGroup,
    messages: impl Iterator<Item = M>,
    protocol: &impl OrderMessages<M>,
    is_large: bool,
) {
    group.shape = shape(books);
    group.grid_changes = books.levels.grid_changes;
    group.len = decode(books, &mut group.operations, &mut group.ids, messages, protocol);
    group.at = 0;
    if is_large {
        prefetch(books, &mut group.operations[..group.len]);
    }
}

/// The second and the third pass.
#[inline(never)]
fn prefetch(books: &PackedBooks, operations: &mut [Operation]) {
    let (outside, replaces) = prefetch_levels(books, operations);
    prefetch_new_levels(books, operations, replaces);
    if outside != 0 {
        find_outside_levels(&books.levels, operations, outside);
    }
    prefetch_tails(books, operations);
    if outside != 0 {
        find_closing_levels(&books.levels, operations, outside);
    }
}

/// The first pass: turns changes into operations, and returns their number.
///
/// Straight code: a CPU cannot predict the kinds of changes. A change that is not ordinary gets the bucket of
/// NIL as its home, or the level NIL if it adds an order: the last pass finds no such order, and cannot add one.
#[inline(always)]
fn decode<M>(
    books: &PackedBooks,
    operations: &mut [Operation; OPERATIONS_MAX],
    ids: &mut [u64; OPERATIONS_MAX],
    messages: impl Iterator<Item = M>,
    protocol: &impl OrderMessages<M>,
) -> usize {
    let sides = books.levels.sides.len() as u32;
    let orders = words(&books.orders.buckets);
    let Levels { side_grids, records, grids, bits, .. } = &books.levels;
    let mut len = 0;
    for (number, message) in (0..OrderGroup::LEN_MAX as u8).zip(messages) {
        // Each message has two operations at most, so `len` is below their maximum number.
        let place = &mut at!(mut operations, len);
        let Some(change) = protocol.change(&message) else {
            if protocol.is_without_effect(&message) {
                continue;
            }
            *place = Operation { message: number, ..Operation::NONE };
            len += 1;
            continue;
        };
        let fits = change.qty.0 <= u64::from(u32::MAX);
        let kind = change.kind as u8;
        // The sides behind those of the last instrument have the empty grid.
        let instrument = u32::from(change.instrument.0).min(sides / 2);
        let side = instrument * 2 + change.side as u32;
        let key = key(change.side, change.price);
        let cell = Cell::on(grids.get(at!(side_grids, side)), *bits, side, key);
        let level = select_unpredictable(cell.is_on_grid, cell.index, NIL);
        let level = select_unpredictable(kind == Operation::ADDS, level, Operation::NO_LEVEL);
        prefetch_index(records, level as usize);
        let (slot, tag) = match books.orders.home(change.id.0) {
            _ if !fits => (NIL, Operation::NONE.tag),
            Home { slot, tag, is_exact: true } => (slot, tag),
            Home { slot, .. } => not_exact(orders, slot, &mut ids[len], change.id),
        };
        prefetch_index(orders, slot as usize);
        *place = Operation {
            key,
            tag,
            home: slot,
            qty: change.qty.0 as u32,
            level,
            side,
            steps: cell.steps as u16,
            kind,
            message: number,
        };
        len += 1;
        if kind & Operation::REPLACES != 0 {
            let new_id = protocol.new_id(&message);
            let (slot, tag) = match books.orders.home(new_id.0) {
                _ if !fits => (NIL, Operation::NONE.tag),
                Home { slot, tag, is_exact: true } => (slot, tag),
                Home { slot, .. } => not_exact(orders, slot, &mut ids[len], new_id),
            };
            prefetch_index(orders, slot as usize);
            at!(mut operations, len) = Operation {
                key: change.price.0,
                tag,
                home: slot,
                qty: change.qty.0 as u32,
                kind: Operation::ADDS | Operation::IS_NEW,
                message: number,
                ..Operation::NONE
            };
            len += 1;
        }
    }
    len
}

/// The home bucket and the tag in an operation on an order whose id is too large for an exact tag. Stores the id and
/// fetches its home.
// Cold, so that ordinary orders take no time for the choice.
#[cold]
#[inline(never)]
fn not_exact(orders: &[u32], home: u32, place: &mut u64, id: OrderId) -> (u32, u32) {
    prefetch_index(orders, home as usize);
    *place = id.0;
    (NIL, Operation::TAG_OF_ID)
}

/// The second pass: fetches the orders' levels and neighbours, and the sides. Returns two sets of operations: those on
/// levels outside the cells, and those that replace an order.
// Out of line, so that the loop has all CPU registers.
#[inline(never)]
fn prefetch_levels(books: &PackedBooks, operations: &mut [Operation]) -> (u64, u64) {
    const _: () = assert!(OPERATIONS_MAX <= u64::BITS as usize);
    let orders = words(&books.orders.buckets);
    let levels = &books.levels;
    let (mut outside, mut replaces) = (0, 0);
    for (at, place) in operations.iter_mut().enumerate() {
        let op = *place;
        let mut bucket = op.home;
        let mut found = matches(tags(orders, bucket), op.tag);
        // Not if an operation of this group adds the order: the neighbour is in no cache.
        let may_be_moved = at!(orders, bucket as usize + DISPLACED) >= NEIGHBOUR;
        if may_be_moved & ((u32::from(op.kind & Operation::ADDS) | found) == 0) {
            bucket ^= NEIGHBOUR_SLOT;
            found = matches(tags(orders, bucket), op.tag | MOVED);
        }
        let slot = slot_of(bucket, found);
        let level = select_unpredictable(found != 0, at!(orders, slot as usize + LEVEL), op.level);
        let prev = select_unpredictable(found != 0, at!(orders, slot as usize + PREV), NIL);
        let next = select_unpredictable(found != 0, at!(orders, slot as usize + NEXT), NIL);
        prefetch_index(orders, prev as usize);
        prefetch_index(orders, next as usize);
        prefetch_index(&levels.records, level as usize);
        let side = levels.side_of_cell(level);
        prefetch_index(&levels.sides, side as usize);
        // Also true for NIL.
        if level.wrapping_sub(1) >= levels.pool - 1 {
            place.level = level;
            outside |= 1 << at;
        }
        // A CPU could not predict a branch.
        replaces |= u64::from(op.kind & Operation::REPLACES != 0) << at;
    }
    (outside, replaces)
}

/// Part of the second pass: fetches the levels of the new orders of replacements, whose side is that of the old
/// order.
fn prefetch_new_levels(books: &PackedBooks, operations: &mut [Operation], replaces: u64) {
    let levels = &books.levels;
    for at in of_set(replaces) {
        let slot = near(words(&books.orders.buckets), operations[at].home, operations[at].tag);
        let level = books.orders.word(slot, LEVEL);
        if slot == NIL || !levels.is_cell(level) {
            continue;
        }
        let side = levels.side_of_cell(level);
        let new = &mut operations[at + 1];
        // The key stays the price, since the order's side is certain only in the last pass.
        new.level =
            Cell::on(levels.grid_of(side), levels.bits, side, key(side_of(side), Price(new.key))).index;
        prefetch_index(&levels.records, new.level as usize);
    }
}

/// The third pass: fetches the last orders of the levels that new orders enter, since these are linked to the
/// new ones, and a CPU has few buffers for writes.
#[inline(never)]
fn prefetch_tails(books: &PackedBooks, operations: &[Operation]) {
    let orders = words(&books.orders.buckets);
    for op in operations {
        prefetch_index(orders, at!(books.levels.records, op.level).tail as usize);
    }
}

/// The operations of a set.
#[inline]
fn of_set(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(at)
    })
}

/// Searches for the levels outside the cells that new orders enter, and fetches them.
#[cold]
#[inline(never)]
fn find_outside_levels(levels: &Levels, operations: &mut [Operation], outside: u64) {
    let mut numbers = ArrayVec::<_, OPERATIONS_MAX>::new();
    let mut searches = ArrayVec::<_, OPERATIONS_MAX>::new();
    for at in of_set(outside) {
        let op = &operations[at];
        if op.level == NIL {
            numbers.push(at);
            searches.push(levels.search_outside(op.side, op.key));
        }
    }
    levels.descend_outside(&mut searches);
    for (at, search) in numbers.into_iter().zip(searches) {
        let level = levels.found_outside(search).unwrap_or(NIL);
        operations[at].level = level;
        prefetch_index(&levels.records, level as usize);
    }
}

/// Searches for the levels outside the cells that probably close, so that the tree's nodes are in a cache.
#[cold]
#[inline(never)]
fn find_closing_levels(levels: &Levels, operations: &[Operation], outside: u64) {
    let mut searches = ArrayVec::<_, OPERATIONS_MAX>::new();
    for op in of_set(outside).map(|at| &operations[at]) {
        let level = levels.get(op.level);
        if op.kind & Operation::ADDS == 0 && level.order_count == 1 {
            searches.push(levels.search_outside(level.side_index(), level.key));
        }
    }
    levels.descend_outside(&mut searches);
}

/// The operation that adds an order with `key` on `side`, and the order's cell.
#[inline(always)]
fn on_side(op: Operation, side: u32, key: i64, grid: &Grid, bits: u32) -> Operation {
    let cell = Cell::on(grid, bits, side, key);
    let level = select_unpredictable(cell.is_on_grid, cell.index, NIL);
    Operation { side, key, level, steps: cell.steps as u16, ..op }
}

#[inline(always)]
const fn side_of(side: u32) -> Side {
    if side & 1 == 0 { Side::Buy } else { Side::Sell }
}

/// The reason why the last pass stopped.
enum Stop {
    Done,
    Exception,
    /// The next operation may be one for the other function that applies operations, or a grid has changed.
    GoOn,
    Applied(Applied),
    /// The best level of this side has closed, and the next one must be searched for.
    BestClosed {
        side: u32,
    },
}

/// An operation that was applied.
struct Applied {
    side: u32,
    key: i64,
    /// Quantity added or removed.
    qty: u32,
    /// True for a new order that would trade with the best order of the opposite side.
    crosses: bool,
    /// True if the best level of the side has closed, and the next one must be searched for.
    must_search: bool,
    /// True for the removal of a replacement's old order.
    is_half: bool,
}

impl Applied {
    #[inline]
    const fn new(side: u32, key: i64, qty: u32) -> Applied {
        Applied { side, key, qty, crosses: false, must_search: false, is_half: false }
    }
}

/// The last pass: applies operations until something is to be reported or an operation is not ordinary.
#[inline(always)]
pub(super) fn advance<const REPORTS: bool>(books: &mut PackedBooks, group: &mut OrderGroup) -> Step {
    let is_own = group.shape == shape(books);
    loop {
        // A level opened outside the cells may have changed a grid, also since the last turn of this loop.
        if is_own && group.grid_changes != books.levels.grid_changes {
            update_cells(&books.levels, group);
        }
        let left = (group.len - group.at) as u32;
        let has_room = books.orders.len + left <= books.orders.max
            && books.levels.count + left <= books.levels.max_levels;
        let can_apply = is_own && has_room;
        // An operation like the last one is probable.
        let mut stop = match left {
            0 => Stop::Done,
            _ if can_apply && !group.is_outside => apply::<REPORTS>(books, group),
            _ => Stop::Exception,
        };
        if can_apply && matches!(stop, Stop::Exception) {
            stop = apply_outside::<REPORTS>(books, group);
        }
        match stop {
            Stop::Done => return Step::Done,
            Stop::GoOn => {}
            Stop::BestClosed { side } => books.levels.find_best_of_all(side),
            Stop::Applied(Applied { side, key, qty, crosses, must_search, .. }) => {
                if must_search {
                    books.levels.find_best_of_all(side);
                }
                let index = usize::from(group.operations[group.at - 1].message);
                let side = side_of(side);
                let price = Price(crate::record::key(side, Price(key)));
                let is_added = group.operations[group.at - 1].kind & Operation::ADDS != 0;
                return Step::Applied { index, side, price, qty: Qty(qty.into()), is_added, crosses };
            }
            Stop::Exception => {
                let op = group.operations[group.at];
                let index = usize::from(op.message);
                group.at += 1;
                if op.kind & Operation::IS_NEW != 0 {
                    return Step::NewOrderException { index, side: side_of(op.side) };
                }
                group.at += usize::from(op.kind & Operation::REPLACES != 0);
                return Step::Exception { index };
            }
        }
    }
}

/// Computes the cells of the remaining new orders again, after a side has changed its grid.
#[cold]
fn update_cells(levels: &Levels, group: &mut OrderGroup) {
    group.grid_changes = levels.grid_changes;
    for op in &mut group.operations[group.at..group.len] {
        if op.kind == Operation::ADDS && op.home != NIL {
            let grid = levels.grid_of(op.side);
            *op = on_side(*op, op.side, op.key, grid, levels.bits);
        }
    }
}

/// A free place for a new order whose home is full, or has orders in other buckets: its slot there or in the
/// neighbouring bucket. NIL if there is none, or the id is taken or may be.
#[cold]
#[inline(never)]
fn free_place(orders: &[u32], home: u32, tag: u32) -> u32 {
    let neighbour = home ^ NEIGHBOUR_SLOT;
    let (own, others) = (tags(orders, home), tags(orders, neighbour));
    let known = matches(own, tag) | matches(others, tag | MOVED);
    if known | (at!(orders, home as usize + DISPLACED) % NEIGHBOUR) != 0 {
        return NIL;
    }
    match [matches(own, FREE), matches(others, FREE)] {
        [0, 0] => NIL,
        [0, free] => slot_of(neighbour, free),
        [free, _] => slot_of(home, free),
    }
}

/// Applies operations from `group.at` on, as long as their orders are or will be outside: at a level outside the cells,
/// or at a place of the table that its id does not determine.
#[cold]
#[inline(never)]
fn apply_outside<const REPORTS: bool>(books: &mut PackedBooks, group: &mut OrderGroup) -> Stop {
    let FeedBooks { orders, levels, .. } = books;
    let first = group.at;
    while group.at < group.len && group.grid_changes == levels.grid_changes {
        let Some(applied) = apply_one_outside(orders, levels, group) else {
            let is_for_other = group.is_outside || group.at > first;
            group.is_outside = false;
            return if is_for_other { Stop::GoOn } else { Stop::Exception };
        };
        if applied.crosses || REPORTS && !applied.is_half {
            group.is_outside = true;
            return Stop::Applied(applied);
        }
    }
    group.is_outside = true;
    Stop::GoOn
}

/// Applies the next operation, if its order is or will be outside. `None` if the change is another exception; then the
/// books have the same orders as before.
#[inline(always)]
fn apply_one_outside(
    orders: &mut PackedOrders,
    levels: &mut Levels,
    group: &mut OrderGroup,
) -> Option<Applied> {
    let op = group.operations[group.at];
    let is_exact = op.home != NIL;
    if op.side as usize >= levels.sides.len() || !is_exact && op.tag != Operation::TAG_OF_ID {
        return None;
    }
    let id_of = |orders: &PackedOrders| match is_exact {
        true => orders.exact_id(op.home, op.tag),
        false => group.ids[group.at],
    };
    if op.kind & Operation::ADDS != 0 {
        let place = if is_exact { free_place(words(&orders.buckets), op.home, op.tag) } else { NIL };
        if op.qty == 0 || place == NIL && orders.find(id_of(orders)) != NIL {
            return None;
        }
        // A new level cannot overflow, so none stays open without an order.
        let index = levels.find_or_open(op.side, op.key, op.level, orders);
        let total = levels.get(index).qty.checked_add(op.qty.into())?;
        let slot = match place {
            NIL => orders.enter(id_of(orders), Qty(op.qty.into())),
            place => orders.enter_in(place, op.home, op.tag, op.qty),
        };
        append(words_mut(&mut orders.buckets), levels.get_mut(index), (index, total), slot);
        group.at += 1;
        let crosses = levels.side(op.side ^ 1).best_key >= !op.key;
        return Some(Applied { crosses, ..Applied::new(op.side, op.key, op.qty) });
    }
    let near = if is_exact { near(words(&orders.buckets), op.home, op.tag) } else { NIL };
    let is_ordinary = near != NIL;
    let slot = if is_ordinary { near } else { orders.find(id_of(orders)) };
    if slot == NIL {
        return None;
    }
    let index = at!(words(&orders.buckets), slot as usize + LEVEL);
    let order_qty = match is_ordinary {
        true => at!(words(&orders.buckets), slot as usize + QTY).into(),
        false => orders.qty(slot),
    };
    let level = levels.get_mut(index);
    let (side, key) = (level.side_index(), level.key);
    let qty = if op.kind & Operation::REDUCES != 0 { u64::from(op.qty) } else { order_qty };
    let is_cell = levels.is_cell(index);
    let is_usual = order_qty <= u64::from(u32::MAX) && qty <= order_qty && (side ^ op.side) <= 1;
    if is_cell && is_ordinary || !is_usual {
        return None;
    }
    if op.kind & Operation::MODIFIES != 0 {
        let other_side = side ^ op.side;
        if op.kind & Operation::STATES_SIDE != 0 && other_side != 0 {
            return None;
        }
        // The key of the same price on the other side has inverted bits.
        if key == op.key ^ -i64::from(other_side) {
            let less = order_qty.checked_sub(op.qty.into()).filter(|_| op.qty != 0)?;
            orders.set_qty(slot, op.qty.into());
            levels.get_mut(index).qty -= less;
            // No order is added.
            group.operations[group.at + 1].kind = Operation::IS_NEW;
            group.at += 2;
            return Some(Applied::new(side, key, less as u32));
        }
    }
    group.at += 1;
    let level = levels.get_mut(index);
    let applied = Applied::new(side, key, qty as u32);
    if qty < order_qty {
        orders.set_qty(slot, order_qty - qty);
        level.qty -= qty;
        return Some(applied);
    }
    unlink(words_mut(&mut orders.buckets), level, slot, qty);
    let orders_left = level.order_count;
    orders.remove(slot);
    if is_cell {
        levels.note_removed(side, index, key, orders_left);
    } else if orders_left == 0 {
        levels.close_outside(side, index, key);
    }
    let is_half = op.kind & Operation::REPLACES != 0;
    if is_half {
        let new = &mut group.operations[group.at];
        let key = crate::record::key(side_of(side), Price(new.key));
        *new = on_side(*new, side, key, levels.grid_of(side), levels.bits);
    }
    Some(Applied { is_half, ..applied })
}

/// The slot of the order with this exact tag in its home or the neighbouring bucket, or NIL.
#[inline(always)]
fn near(orders: &[u32], home: u32, tag: u32) -> u32 {
    let found = matches(tags(orders, home), tag);
    if found != 0 {
        return slot_of(home, found);
    }
    let found = matches(tags(orders, home ^ NEIGHBOUR_SLOT), tag | MOVED);
    select_unpredictable(found != 0, slot_of(home ^ NEIGHBOUR_SLOT, found), NIL)
}

/// Links the order in `slot` as the last one of a level, which has the index `own` and gets the quantity `total`.
#[inline(always)]
fn append(orders: &mut [u32], level: &mut LevelRecord, (own, total): (u32, u64), slot: u32) {
    let LevelRecord { tail, order_count: others, head, .. } = *level;
    (level.qty, level.order_count) = (total, others + 1);
    (level.tail, level.head) = (slot, select_unpredictable(others == 0, slot, head));
    // The tail of an empty level is NIL, whose bucket has no effect.
    at!(mut orders, tail as usize + NEXT) = slot;
    at!(mut orders, slot as usize + LEVEL) = own;
    at!(mut orders, slot as usize + PREV) = tail;
    at!(mut orders, slot as usize + NEXT) = NIL;
}

/// Removes the order in `slot`, which has the quantity `qty`, from its level.
#[inline(always)]
fn unlink(orders: &mut [u32], level: &mut LevelRecord, slot: u32, qty: u64) {
    let (prev, next) = (at!(orders, slot as usize + PREV), at!(orders, slot as usize + NEXT));
    // Without a neighbour these write to the bucket of NIL.
    at!(mut orders, prev as usize + NEXT) = next;
    at!(mut orders, next as usize + PREV) = prev;
    let LevelRecord { head, tail, .. } = *level;
    level.qty -= qty;
    level.order_count -= 1;
    level.head = select_unpredictable(head == slot, next, head);
    level.tail = select_unpredictable(tail == slot, prev, tail);
}

/// Applies operations from `group.at` on.
#[inline(never)]
fn apply<const REPORTS: bool>(books: &mut PackedBooks, group: &mut OrderGroup) -> Stop {
    let PackedOrders { buckets, .. } = &mut books.orders;
    let Levels { sides, records, bits, pool, grids, side_grids, .. } = &mut books.levels;
    let (orders, levels, bits, pool) = (words_mut(buckets), &mut records[..], *bits, *pool);
    let sides: &mut [BookSide] = sides;
    let place_of = |level: u32| (level & ((1 << bits) - 1)) as usize;
    let operations = &mut group.operations[..group.len];
    let mut at = group.at;
    // Changes of both counts in one register: of orders in the lower half, of levels in the upper one.
    let mut added = 0_u64;
    let stop = loop {
        let Some(&op) = operations.get(at) else { break Stop::Done };
        let found = matches(tags(orders, op.home), op.tag);
        if op.kind & Operation::ADDS != 0 {
            let free = matches(tags(orders, op.home), FREE);
            let level = &mut at!(mut levels, op.level);
            let qty = level.qty.wrapping_add(op.qty.into());
            // Also an order of quantity zero.
            let overflows = qty <= level.qty;
            let may_be_open = found | at!(orders, op.home as usize + DISPLACED);
            let conflict = level.conflict(op.key, u32::from(op.steps) >> bits);
            if (conflict != 0) | overflows | (op.level >= pool) {
                break Stop::Exception;
            }
            let (mut slot, mut tag) = (slot_of(op.home, free), op.tag);
            if (may_be_open != 0) | (free == 0) {
                match free_place(orders, op.home, op.tag) {
                    NIL => break Stop::Exception,
                    place => slot = place,
                }
                if slot & !(WORDS - 1) != op.home {
                    tag |= MOVED;
                    at!(mut orders, op.home as usize + DISPLACED) += NEIGHBOUR;
                }
            }
            added = added.wrapping_add(1 | u64::from(level.order_count == 0) << u32::BITS);
            level.key = op.key;
            append(orders, level, (op.level, qty), slot);
            at!(mut orders, slot) = tag;
            at!(mut orders, slot as usize + QTY) = op.qty;
            // True also for the greatest key on an empty opposite side; the caller checks the book.
            let crosses = at!(sides, op.side ^ 1).best_key >= !op.key;
            let side = &mut at!(mut sides, op.side);
            side.open.set(place_of(op.level), true);
            side.update_best(op.level, op.key);
            at += 1;
            if REPORTS || crosses {
                break Stop::Applied(Applied { crosses, ..Applied::new(op.side, op.key, op.qty) });
            }
            continue;
        }
        let mut slot = slot_of(op.home, found);
        let mut moved = 0;
        if found == 0 {
            let bucket = op.home ^ NEIGHBOUR_SLOT;
            let found = matches(tags(orders, bucket), op.tag | MOVED);
            if found == 0 {
                break Stop::Exception;
            }
            (slot, moved) = (slot_of(bucket, found), NEIGHBOUR);
        }
        let index = at!(orders, slot as usize + LEVEL);
        let side_index = (index >> bits).wrapping_sub(1);
        if (index >= pool) | ((side_index ^ op.side) > 1) {
            break Stop::Exception;
        }
        let level = &mut at!(mut levels, index);
        let qty = at!(orders, slot as usize + QTY);
        let modifies = op.kind & Operation::MODIFIES != 0;
        let other_side = side_index ^ op.side;
        // The key of the same price on the other side has inverted bits.
        let keeps_price = modifies & (level.key == op.key ^ -i64::from(other_side));
        let reduces = (op.kind & Operation::REDUCES != 0) & (op.qty != qty);
        if reduces | modifies {
            let states_side = op.kind & Operation::STATES_SIDE != 0;
            let left = if modifies { op.qty } else { qty.wrapping_sub(op.qty) };
            // An order beyond its quantity, a larger one in its place, none left of it, or on the other side.
            if ((reduces | keeps_price) & ((left > qty) | (left == 0))) | (states_side & (other_side != 0)) {
                break Stop::Exception;
            }
            if reduces | keeps_price {
                at!(mut orders, slot as usize + QTY) = left;
                level.qty -= u64::from(qty - left);
                at += 1;
                if modifies {
                    // No order is added.
                    at!(mut operations, at).kind = Operation::IS_NEW;
                    at += 1;
                }
                if REPORTS {
                    break Stop::Applied(Applied::new(side_index, level.key, qty - left));
                }
                continue;
            }
        }
        unlink(orders, level, slot, qty.into());
        at!(mut orders, slot) = FREE;
        if moved != 0 {
            at!(mut orders, op.home as usize + DISPLACED) -= moved;
        }
        let (key, left) = (level.key, level.order_count);
        added = added.wrapping_sub(1 | u64::from(left == 0) << u32::BITS);
        let side = &mut at!(mut sides, side_index);
        side.open.set(place_of(index), left != 0);
        let is_best_closed = left | (side.best ^ index) == 0;
        let replaces = op.kind & Operation::REPLACES != 0;
        if replaces {
            let new = &mut at!(mut operations, at + 1);
            let key = crate::record::key(side_of(side_index), Price(new.key));
            *new = on_side(*new, side_index, key, grids.get(at!(side_grids, side_index)), bits);
        }
        at += 1;
        let mut must_search = false;
        if is_best_closed {
            match next_best(
                side,
                levels,
                grids.get(at!(side_grids, side_index)),
                bits,
                (side_index + 1) << bits,
                key,
            ) {
                Some((best, best_key)) => (side.best, side.best_key) = (best, best_key),
                None => must_search = true,
            }
        }
        if REPORTS && !replaces {
            break Stop::Applied(Applied { must_search, ..Applied::new(side_index, key, qty) });
        }
        if must_search {
            break Stop::BestClosed { side: side_index };
        }
    };
    group.at = at;
    let orders_added = added as u32;
    // A negative number of orders has borrowed one from the levels.
    let levels_added = (added.wrapping_sub(orders_added.cast_signed() as u64) >> u32::BITS) as u32;
    books.orders.len = books.orders.len.wrapping_add(orders_added);
    books.levels.count = books.levels.count.wrapping_add(levels_added);
    stop
}

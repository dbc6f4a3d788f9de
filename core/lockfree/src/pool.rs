//! Fixed pool of objects addressed by 32-bit slots.
//!
//! For orders, levels and whatever else comes and goes on the hot path and is linked by index. The
//! free slots form a list inside the unused objects; the slot freed last is reused first, while it is
//! still in the cache. The pool never grows: at its bound `allocate` gives the value back.
//!
//! ```
//! use tickpath_lockfree::{Full, pool::Pool};
//!
//! let mut orders = Pool::with_capacity(2);
//! let first = orders.allocate("buy 100")?;
//! let second = orders.allocate("sell 50")?;
//! assert_eq!(orders.allocate("sell 10"), Err(Full("sell 10")));
//! assert_eq!(orders[second], "sell 50");
//! assert_eq!(orders.free(first), "buy 100");
//! assert_eq!(orders.get(first), None);
//! # Ok::<(), Full<&str>>(())
//! ```

use core::{
    fmt,
    ops::{Index, IndexMut},
};

use crate::Full;

/// Where an object of a [`Pool`] lies. Four bytes, to be stored in linked structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Slot(u32);

impl Slot {
    /// No slot: the end of a list. Never returned by [`Pool::allocate`].
    pub const NIL: Self = Self(u32::MAX);

    /// The slot of an index, as [`index`](Self::index) gave it.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Its number, from 0 to the pool's capacity - 1.
    #[inline(always)]
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0
    }

    /// Whether it is [`NIL`](Self::NIL).
    #[inline(always)]
    #[must_use]
    pub const fn is_nil(self) -> bool {
        self.0 == Self::NIL.0
    }
}

enum Entry<T> {
    Free { next: Slot },
    Used(T),
}

/// A fixed number of objects of one type; see the [module's documentation](self).
pub struct Pool<T> {
    entries: Box<[Entry<T>]>,
    /// First free slot.
    free: Slot,
    used: u32,
}

impl<T> Pool<T> {
    /// Creates a pool of `capacity` slots and touches all their memory.
    ///
    /// # Panics
    /// If `capacity` is not below 2^32 - 1.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        assert!(capacity < u32::MAX as usize, "a pool of {capacity} objects exceeds 32-bit slots");
        let capacity = capacity as u32;
        let next = |index| if index + 1 < capacity { Slot(index + 1) } else { Slot::NIL };
        let entries = (0..capacity).map(|index| Entry::Free { next: next(index) }).collect();
        Self { entries, free: if capacity > 0 { Slot(0) } else { Slot::NIL }, used: 0 }
    }

    /// Puts `value` into a free slot, the one freed last.
    ///
    /// # Errors
    /// [`Full`] gives the value back when `capacity` objects are in use.
    #[inline]
    pub fn allocate(&mut self, value: T) -> Result<Slot, Full<T>> {
        let slot = self.free;
        // `NIL` lies beyond every capacity.
        let Some(entry) = self.entries.get_mut(slot.0 as usize) else { return Err(Full(value)) };
        let Entry::Free { next } = *entry else { unreachable!("the free list holds free slots only") };
        *entry = Entry::Used(value);
        self.free = next;
        self.used += 1;
        Ok(slot)
    }

    /// Takes the value out of `slot` and frees it.
    ///
    /// # Panics
    /// If `slot` is not in use: a double free is a broken invariant of the caller.
    #[inline]
    pub fn free(&mut self, slot: Slot) -> T {
        let Some(entry @ Entry::Used(_)) = self.entries.get_mut(slot.0 as usize) else { not_in_use(slot) };
        let Entry::Used(value) = core::mem::replace(entry, Entry::Free { next: self.free }) else {
            unreachable!("it was in use a line ago")
        };
        self.free = slot;
        self.used -= 1;
        value
    }

    /// The object in `slot`; `None` when it is not in use.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: Slot) -> Option<&T> {
        match self.entries.get(slot.0 as usize) {
            Some(Entry::Used(value)) => Some(value),
            _ => None,
        }
    }

    /// The object in `slot`, to be changed; `None` when it is not in use.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        match self.entries.get_mut(slot.0 as usize) {
            Some(Entry::Used(value)) => Some(value),
            _ => None,
        }
    }

    /// Starts to fetch the object in `slot` into the cache; any slot may be given.
    #[inline(always)]
    pub fn prefetch(&self, slot: Slot) {
        crate::cpu::prefetch_index(&self.entries, slot.0 as usize);
    }

    /// Number of objects in use.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.used as usize
    }

    /// Whether no object is in use.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Number of slots.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.entries.len()
    }
}

impl<T> Index<Slot> for Pool<T> {
    type Output = T;

    /// # Panics
    /// If `slot` is not in use.
    #[inline]
    fn index(&self, slot: Slot) -> &T {
        self.get(slot).unwrap_or_else(|| not_in_use(slot))
    }
}

impl<T> IndexMut<Slot> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        self.get_mut(slot).unwrap_or_else(|| not_in_use(slot))
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("used", &self.used)
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

#[cold]
#[inline(never)]
fn not_in_use(slot: Slot) -> ! {
    panic!("slot {} is not in use", slot.0)
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        rc::Rc,
    };

    use super::*;

    #[test]
    fn the_bound_gives_the_value_back_and_one_free_makes_room() {
        for capacity in [0, 1, 2, 7] {
            let mut pool = Pool::with_capacity(capacity);
            let slots: Vec<Slot> = (0..capacity).map(|value| pool.allocate(value).unwrap()).collect();
            assert_eq!(pool.allocate(99), Err(Full(99)));
            assert_eq!((pool.len(), pool.capacity()), (capacity, capacity));
            for (value, &slot) in slots.iter().enumerate() {
                assert_eq!(pool[slot], value);
            }
            if let Some(&slot) = slots.first() {
                assert_eq!(pool.free(slot), 0);
                assert_eq!(pool.allocate(50), Ok(slot));
                assert_eq!(pool.allocate(51), Err(Full(51)));
            }
        }
    }

    #[test]
    fn the_slot_freed_last_is_reused_first() {
        let mut pool = Pool::with_capacity(3);
        let slots = ["a", "b", "c"].map(|value| pool.allocate(value).unwrap());
        pool.free(slots[2]);
        pool.free(slots[0]);
        assert_eq!([pool.allocate("d"), pool.allocate("e")], [Ok(slots[0]), Ok(slots[2])]);
        assert_eq!([pool[slots[0]], pool[slots[1]], pool[slots[2]]], ["d", "b", "e"]);
    }

    #[test]
    fn misuse_panics_and_leaves_the_pool_whole() {
        let mut pool = Pool::with_capacity(3);
        let slot = pool.allocate(1).unwrap();
        let kept = pool.allocate(2).unwrap();
        pool.free(slot);
        for bad in [slot, Slot::new(2), Slot::new(3), Slot::NIL] {
            assert!(catch_unwind(AssertUnwindSafe(|| pool.free(bad))).is_err());
            assert!(catch_unwind(AssertUnwindSafe(|| pool[bad])).is_err());
            assert_eq!(pool.get(bad), None);
            assert_eq!(pool.get_mut(bad), None);
        }
        assert_eq!((pool.len(), pool[kept]), (1, 2));
        let again = [pool.allocate(3).unwrap(), pool.allocate(4).unwrap()];
        assert_eq!(again.map(Slot::index), [0, 2]);
        assert_eq!(pool.allocate(5), Err(Full(5)));
    }

    #[test]
    fn random_use_matches_a_map() {
        let mut pool = Pool::with_capacity(16);
        let mut model = std::collections::BTreeMap::new();
        let mut random = 88_172_645_463_325_252_u64;
        for step in 0..if cfg!(miri) { 300 } else { 20_000 } {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let victim = model.keys().nth(random as usize % 16).copied();
            if let Some(slot) = victim {
                *pool.get_mut(slot).unwrap() += 1_u64;
                assert_eq!(pool.free(slot), model.remove(&slot).unwrap() + 1);
            } else if let Ok(slot) = pool.allocate(step) {
                assert_eq!(model.insert(slot, step), None);
            } else {
                assert_eq!(model.len(), 16);
            }
            assert_eq!(pool.len(), model.len());
        }
        assert!(model.iter().all(|(&slot, value)| pool[slot] == *value));
    }

    #[test]
    fn values_are_dropped_once() {
        let value = Rc::new(());
        let mut pool = Pool::with_capacity(4);
        let slot = pool.allocate(Rc::clone(&value)).unwrap();
        pool.allocate(Rc::clone(&value)).unwrap();
        assert_eq!(Rc::strong_count(&value), 3);
        drop(pool.free(slot));
        assert_eq!(Rc::strong_count(&value), 2);
        drop(pool);
        assert_eq!(Rc::strong_count(&value), 1);
    }

    #[test]
    fn a_slot_takes_four_bytes_and_nil_is_no_slot() {
        assert_eq!(size_of::<Slot>(), 4);
        assert!(Slot::NIL.is_nil() && !Slot::new(0).is_nil());
    }
}

//! Hash maps from an order's reference to its handle, all with room for every live order from the start.

use std::hash::BuildHasher;

use intmap::IntMap;
use tickpath_book::OrderHandle;

use crate::books::{IdMap, Limits};

/// The standard library's map with its own hasher, which resists keys that a peer chooses to collide.
pub type Std = std::collections::HashMap<u64, OrderHandle>;
/// The same table with the hasher of the Rust compiler: one multiplication.
pub type RustcHash = hashbrown::HashMap<u64, OrderHandle, rustc_hash::FxBuildHasher>;
/// The same table with the hasher that hashbrown itself chooses.
pub type Foldhash = hashbrown::HashMap<u64, OrderHandle>;
/// Buckets that are vectors, for keys that are integers.
pub type Chained = IntMap<u64, OrderHandle>;

impl IdMap for Std {
    fn new(limits: Limits) -> Self {
        Std::with_capacity(limits.max_orders as usize)
    }

    #[inline]
    fn find(&self, id: u64) -> Option<OrderHandle> {
        self.get(&id).copied()
    }

    #[inline]
    fn insert(&mut self, id: u64, handle: OrderHandle) {
        Std::insert(self, id, handle);
    }

    #[inline]
    fn remove(&mut self, id: u64) -> Option<OrderHandle> {
        Std::remove(self, &id)
    }
}

impl<H: BuildHasher + Default> IdMap for hashbrown::HashMap<u64, OrderHandle, H> {
    fn new(limits: Limits) -> Self {
        Self::with_capacity_and_hasher(limits.max_orders as usize, H::default())
    }

    #[inline]
    fn find(&self, id: u64) -> Option<OrderHandle> {
        self.get(&id).copied()
    }

    #[inline]
    fn insert(&mut self, id: u64, handle: OrderHandle) {
        hashbrown::HashMap::insert(self, id, handle);
    }

    #[inline]
    fn remove(&mut self, id: u64) -> Option<OrderHandle> {
        hashbrown::HashMap::remove(self, &id)
    }
}

impl IdMap for Chained {
    fn new(limits: Limits) -> Self {
        Chained::with_capacity(limits.max_orders as usize)
    }

    #[inline]
    fn find(&self, id: u64) -> Option<OrderHandle> {
        self.get(id).copied()
    }

    #[inline]
    fn insert(&mut self, id: u64, handle: OrderHandle) {
        IntMap::insert(self, id, handle);
    }

    #[inline]
    fn remove(&mut self, id: u64) -> Option<OrderHandle> {
        IntMap::remove(self, id)
    }
}

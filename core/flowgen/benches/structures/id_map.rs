//! The standard library's hash map from order references to handles, created with full capacity.

use tickpath_book::OrderHandle;

use crate::books::{IdMap, Limits};

/// The standard map. Its default hasher withstands keys that an attacker chose to collide.
pub type Std = std::collections::HashMap<u64, OrderHandle>;

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

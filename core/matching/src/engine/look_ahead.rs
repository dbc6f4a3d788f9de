//! Prefetches the memory that waiting commands need.

use tickpath_book::{OrderBooks, OrderHandle};
use tickpath_types::{OrderRequest, UserRefNum};

use super::orders::OpenOrders;
use super::owner::{Owner, order_key};
use crate::{Command, CommandKind};

/// Number of commands whose orders [`Engine::look_ahead`](super::Engine::look_ahead) prefetches together:
/// enough to overlap the cache misses, and few enough for the fetched lines to stay in the L1 cache until they
/// are used.
pub const LOOK_AHEAD_LEN: usize = 32;

/// Number of commands that [`Engine::apply_batch`](super::Engine::apply_batch) prefetches together while it
/// applies as many others: a larger group would delay these by its cache misses.
pub(super) const GROUP_LEN: usize = 16;

/// A step of a look-ahead. Each reads what the step before prefetched.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Prefetches the index entries of the orders.
    Index,
    /// Prefetches the orders.
    Orders,
    /// Prefetches the orders' queue neighbours and levels.
    Neighbours,
}

/// The open orders that a group of waiting commands names. An order may be removed before its command is
/// applied: then its prefetches are wasted.
#[derive(Debug)]
pub(super) struct LookAhead {
    keys: [u64; LOOK_AHEAD_LEN],
    orders: [Option<OrderHandle>; LOOK_AHEAD_LEN],
    len: usize,
}

impl LookAhead {
    /// No commands.
    pub(super) const NONE: LookAhead =
        LookAhead { keys: [0; LOOK_AHEAD_LEN], orders: [None; LOOK_AHEAD_LEN], len: 0 };

    /// Takes a step for the commands of `group`. Does nothing while few orders are open.
    // Out of line: inlined into a loop it would take registers from `Engine::apply`.
    #[inline(never)]
    pub(super) fn take<B: OrderBooks<Owner>>(
        &mut self,
        step: Step,
        group: &[Command],
        orders: &OpenOrders<B>,
    ) {
        if !orders.exceeds_cache() {
            self.len = 0;
            return;
        }
        match step {
            Step::Index => {
                self.name(group);
                self.keys[..self.len].iter().for_each(|key| orders.index.prefetch(*key));
            }
            Step::Orders => self.find(orders),
            Step::Neighbours => self.prefetch_neighbours(orders),
        }
    }

    /// Takes the keys of the open orders that the first [`LOOK_AHEAD_LEN`] of these commands name.
    pub(super) fn name<'a>(&mut self, commands: impl IntoIterator<Item = &'a Command>) {
        self.len = 0;
        for command in commands.into_iter().take(LOOK_AHEAD_LEN) {
            // Branchless: new orders and cancels arrive in an order that a CPU cannot predict.
            let (key, is_open) = named_order(command);
            // The modulo changes no value and saves a bounds check.
            self.keys[self.len % LOOK_AHEAD_LEN] = key;
            self.len += usize::from(is_open);
        }
    }

    /// Finds the orders and prefetches them.
    pub(super) fn find<B: OrderBooks<Owner>>(&mut self, orders: &OpenOrders<B>) {
        for (order, key) in self.orders.iter_mut().zip(&self.keys[..self.len]) {
            *order = orders.index.find(*key);
            orders.books.prefetch(*order);
        }
    }

    /// Prefetches the neighbours and levels of the found orders.
    pub(super) fn prefetch_neighbours<B: OrderBooks<Owner>>(&self, orders: &OpenOrders<B>) {
        for order in &self.orders[..self.len] {
            orders.books.prefetch_neighbours(*order);
        }
    }
}

/// Returns the key of the order that a command names, and true if that order should already be open.
#[inline(always)]
fn named_order(command: &Command) -> (u64, bool) {
    let (user_ref, is_open) = match &command.kind {
        CommandKind::Order(OrderRequest::Enter(order)) => (order.user_ref, false),
        CommandKind::Order(OrderRequest::Cancel(request)) => (request.user_ref, true),
        CommandKind::Order(OrderRequest::Replace(request)) => (request.orig_user_ref, true),
        CommandKind::Order(OrderRequest::Modify(request)) => (request.user_ref, true),
        _ => (UserRefNum(0), false),
    };
    (order_key(command.session, user_ref), is_open)
}

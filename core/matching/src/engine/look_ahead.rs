//! Fetching what commands that already wait will need.

use tickpath_book::OrderBooks;
use tickpath_types::{OrderRequest, UserRefNum};

use super::Engine;
use super::owner::{Owner, order_key};
use crate::{Command, CommandKind, EventListener};

/// Commands that [`Engine::look_ahead`] looks at together: enough for their cache misses to run side by
/// side, few enough for what was fetched to stay in the nearest cache until its turn comes.
pub const LOOK_AHEAD_LEN: usize = 32;

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Applies commands that wait together, in order; the same as [`Engine::apply`] for each, but the
    /// memory that they need is fetched beforehand.
    pub fn apply_batch(&mut self, commands: &[Command], out: &mut impl EventListener) {
        for group in commands.chunks(LOOK_AHEAD_LEN) {
            self.look_ahead(group);
            for command in group {
                self.apply(command, out);
            }
        }
    }

    /// Starts to fetch the order that this command is about; a hint without effect.
    #[inline]
    pub fn prefetch(&self, command: &Command) {
        let (key, _) = named_order(command);
        self.resting.books.prefetch(self.resting.index.find(key));
    }

    /// Starts to fetch the open orders that the first [`LOOK_AHEAD_LEN`] of these commands are about, and then
    /// their neighbours; a hint without effect, for a caller that has work of its own between commands.
    ///
    /// An order may be gone when its turn comes; then something was fetched in vain.
    // Out of line: within a caller's loop it would take registers from applying, and it is called once for many commands.
    #[inline(never)]
    pub fn look_ahead<'a>(&self, commands: impl IntoIterator<Item = &'a Command>) {
        let mut keys = [0; LOOK_AHEAD_LEN];
        let mut len = 0;
        for command in commands.into_iter().take(LOOK_AHEAD_LEN) {
            // No branch: new orders and cancels come in no order that a CPU could predict.
            let (key, is_open) = named_order(command);
            // The remainder changes nothing, and spares a check of the bound.
            keys[len % LOOK_AHEAD_LEN] = key;
            len += usize::from(is_open);
        }
        let mut orders = [None; LOOK_AHEAD_LEN];
        for (order, key) in orders.iter_mut().zip(&keys[..len]) {
            *order = self.resting.index.find(*key);
            self.resting.books.prefetch(*order);
        }
        for order in &orders[..len] {
            self.resting.books.prefetch_neighbours(*order);
        }
    }
}

/// Key of the order that a command is about, and whether the order should be open already.
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

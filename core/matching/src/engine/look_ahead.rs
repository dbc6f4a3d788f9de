//! Fetching what commands that already wait will need.

use tickpath_book::{OrderBooks, OrderHandle};
use tickpath_types::{OrderRequest, UserRefNum};

use super::{Engine, Owner, order_key};
use crate::{Command, CommandKind, EventListener};

/// Commands between the fetch of an order and that of its neighbours, and between that and its use.
const STRIDE: usize = 6;

/// Orders that are being fetched; a power of two of at least two strides.
const FETCHED_LEN: usize = 16;
const _: () = assert!(FETCHED_LEN.is_power_of_two() && FETCHED_LEN >= 2 * STRIDE);

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Applies commands that wait together, in order; the same as [`Engine::apply`] for each, but while
    /// one is applied the memory that later ones need is fetched.
    pub fn apply_batch(&mut self, commands: &[Command], out: &mut impl EventListener) {
        let mut fetched: [Option<OrderHandle>; FETCHED_LEN] = [None; FETCHED_LEN];
        for step in 0..commands.len() + 2 * STRIDE {
            // An order may be gone when its turn comes; then something was fetched in vain.
            let next = commands.get(step).and_then(|command| self.named_order(command));
            if let Some(handle) = next {
                self.books.prefetch(handle);
            }
            fetched[step % FETCHED_LEN] = next;
            if let Some(handle) = fetched[step.wrapping_sub(STRIDE) % FETCHED_LEN] {
                self.books.prefetch_neighbours(handle);
            }
            if let Some(command) = commands.get(step.wrapping_sub(2 * STRIDE)) {
                self.apply(command, out);
            }
        }
    }

    /// Starts to fetch the order that this command is about; a hint without effect.
    #[inline]
    pub fn prefetch(&self, command: &Command) {
        if let Some(handle) = self.named_order(command) {
            self.books.prefetch(handle);
        }
    }

    /// The open order that a command is about.
    #[inline]
    fn named_order(&self, command: &Command) -> Option<OrderHandle> {
        let user_ref: UserRefNum = match &command.kind {
            CommandKind::Order(OrderRequest::Cancel(request)) => request.user_ref,
            CommandKind::Order(OrderRequest::Replace(request)) => request.orig_user_ref,
            CommandKind::Order(OrderRequest::Modify(request)) => request.user_ref,
            _ => return None,
        };
        self.index.find(order_key(command.session, user_ref))
    }
}

//! Fetching what commands that already wait will need.

use tickpath_book::{OrderBooks, OrderHandle};
use tickpath_types::{OrderRequest, UserRefNum};

use super::{Engine, Owner, order_key};
use crate::{Command, CommandKind, EventListener};

/// Commands that are looked up together.
const GROUP: usize = 32;

impl<B: OrderBooks<Owner>> Engine<B> {
    /// Applies commands that wait together, in order; the same as [`Engine::apply`] for each, but while
    /// one is applied the memory that later ones need is fetched.
    pub fn apply_batch(&mut self, commands: &[Command], out: &mut impl EventListener) {
        for group in commands.chunks(GROUP) {
            self.look_ahead(group);
            for command in group {
                self.apply(command, out);
            }
        }
    }

    #[inline]
    fn look_ahead(&self, group: &[Command]) {
        let mut keys = [0; GROUP];
        let mut len = 0;
        for command in group {
            let (key, is_open) = named_key(command);
            keys[len % GROUP] = key;
            //self.index.prefetch(key);
            len += usize::from(is_open);
        }
        let keys = &keys[..len.min(GROUP)];
        let mut orders = [None; GROUP];
        for (key, order) in keys.iter().zip(&mut orders) {
            *order = self.index.find(*key);
            self.books.prefetch(*order);
        }
        for order in &orders[..keys.len()] {
            self.books.prefetch_neighbours(*order);
        }
    }

    /// Starts to fetch the order that this command is about; a hint without effect.
    #[inline]
    pub fn prefetch(&self, command: &Command) {
        self.books.prefetch(self.index.find(named_key(command).0));
    }
}

#[inline(always)]
fn named_key(command: &Command) -> (u64, bool) {
    let (user_ref, is_open) = match &command.kind {
        CommandKind::Order(OrderRequest::Enter(order)) => (order.user_ref, false),
        CommandKind::Order(OrderRequest::Cancel(request)) => (request.user_ref, true),
        CommandKind::Order(OrderRequest::Replace(request)) => (request.orig_user_ref, true),
        CommandKind::Order(OrderRequest::Modify(request)) => (request.user_ref, true),
        _ => (UserRefNum(0), false),
    };
    (order_key(command.session, user_ref), is_open)
}


//! The command at hand and where its events go.

use tickpath_types::{OrderEvent, OrderEventKind, SessionId};

use crate::{Command, EventListener};

/// The command at hand and where its events go.
pub(super) struct Context<'a, L> {
    pub(super) command: &'a Command,
    pub(super) out: &'a mut L,
}

impl<L: EventListener> Context<'_, L> {
    /// The first answer to the session that sent the command.
    #[inline]
    pub(super) fn reply(&mut self, kind: OrderEventKind) {
        self.tell(self.command.session, true, kind);
    }

    /// Tells any session what happened to its order.
    #[inline]
    pub(super) fn tell(&mut self, session: SessionId, is_reply: bool, kind: OrderEventKind) {
        let Command { sequence, ts, .. } = *self.command;
        self.out.on_order_event(&OrderEvent { command: sequence, session, ts, is_reply, kind });
    }
}

//! Connections that end, and what becomes of the orders behind them.

use tickpath_faults::{Fault, is_planted};
use tickpath_matching::CommandKind;
use tickpath_net::Network;
use tickpath_timing::Tracer;
use tickpath_types::{CancelReason, Nanos};
use tickpath_venue::Arrival;

use super::{LINGER, NEVER, OrderServer};
use crate::soup_link::Hangup;

impl<T: Tracer, N: Network> OrderServer<T, N> {
    /// Closes a connection and counts why.
    #[cold]
    pub(super) fn hang_up(&mut self, place: usize, hangup: Hangup, now: Nanos) {
        match hangup {
            Hangup::Malformed => self.counters.malformed.add(1),
            Hangup::Slow => self.counters.slow_clients.add(1),
            Hangup::Over | Hangup::Silent => {}
        }
        self.close(place, now);
    }

    /// Closes a connection; its user may come back.
    pub(super) fn close(&mut self, place: usize, now: Nanos) {
        let Some(connection) = self.connections[place].take() else { return };
        let _ = connection.link.tcp.unwatch(&self.poller);
        self.pre_login.remove(place as u64);
        if let Some(user) = connection.user {
            self.clients.retain(|client| *client != place);
            self.registry[user].is_connected.set(0);
            let user = self.users.get_mut(user);
            user.connection = None;
            if let Some(grace) = user.cancel_on_disconnect
                && !is_planted(Fault::CancelOnDisconnectForgotten)
            {
                let at = now + grace;
                user.cancel_at = Some(at);
                self.next_cancel = self.next_cancel.min(at);
            }
        }
        self.acceptor.take_back(connection.link.tcp);
        self.counters.disconnects.add(1);
    }

    /// Brings every session nearer to its end; true when all are over.
    pub(super) fn end_sessions(&mut self, now: Nanos) -> bool {
        let open = (0..self.connections.len()).filter(|place| !self.end_session(*place, now));
        open.count() == 0
    }

    /// The rest of the log, then the end of the session, then the client's side of the connection, which it closes
    /// when it has read all that. True when the connection is over.
    fn end_session(&mut self, place: usize, now: Nanos) -> bool {
        if self.connections[place].as_ref().is_some_and(|connection| connection.lingers_until.is_none()) {
            self.transmit_or_close(place, now);
        }
        let Some(connection) = self.connections[place].as_mut() else { return true };
        let is_over = match connection.lingers_until {
            Some(deadline) => connection.link.linger() || now >= deadline,
            None if connection.is_behind || connection.link.tcp.pending_len() > 0 => false,
            None => {
                connection.lingers_until = Some(now + LINGER);
                // A session that goes on with the next start has only its connection end.
                let is_kept = self.config.is_session_kept && connection.link.soup.is_active();
                if !is_kept {
                    connection.link.soup.end_session();
                }
                let len = connection.link.soup.poll_transmit(now, &mut self.send_buffer);
                // Who is not logged in has no session that could end.
                !is_kept && len == 0 || len > 0 && connection.link.send(&self.send_buffer[..len]).is_err()
            }
        };
        if is_over {
            self.close(place, now);
        }
        is_over
    }

    /// Sequences the cancels of users whose connection is gone for as long as they allow; returns how many.
    #[cold]
    pub(super) fn cancel_for_absent_users(&mut self, now: Nanos) -> usize {
        let mut count = 0;
        self.next_cancel = NEVER;
        for user in self.users.iter_mut() {
            let Some(at) = user.cancel_at else { continue };
            if at > now || self.sequencer.room() == 0 {
                self.next_cancel = self.next_cancel.min(at);
                continue;
            }
            user.cancel_at = None;
            let cancel = CommandKind::CancelAll { reason: CancelReason::System };
            self.sequencer.add(Arrival::internal(user.session, cancel));
            count += 1;
        }
        self.counters.cancels_on_disconnect.add(count as u64);
        count
    }

    /// Sequences the cancels of all users who want them when their connection is gone.
    pub(super) fn cancel_at_shutdown(&mut self) {
        for user in self.users.iter().filter(|user| user.cancel_on_disconnect.is_some()) {
            // There are fewer users than a batch, which is empty, has room for.
            let cancel = CommandKind::CancelAll { reason: CancelReason::System };
            self.sequencer.add(Arrival::internal(user.session, cancel));
            self.counters.cancels_on_disconnect.add(1);
        }
    }
}

//! Orders over FIX 4.4 in Deribit's dialect, if `venue.transport` selects it.
//!
//! Each account then has two connections. A FIX session carries orders, changes and cancellations (`D`, `G`,
//! `F`, `q`). The account's WebSocket reports orders, trades, positions and funds, and answers queries. The
//! account is ready when both are. If the session is lost, requests in flight have an unknown result; their
//! orders are queried by label over the WebSocket.
//!
//! Source: Deribit, "FIX API": New Order Single, Order Cancel/Replace Request, Order Cancel Request, Order
//! Mass Cancel Request, Execution Reports.

mod entry;
mod reports;
mod send;

use tickpath_gateway_protocol::ConnectionStatus;
use tickpath_types::Nanos;

pub use self::entry::OrderEntry;
use super::Core;
use super::account::Step;
use super::out::EventSink;

/// Maximum number of unanswered requests given up per call.
const LATE_PER_CYCLE: usize = 32;

impl Core {
    /// Whether a connection speaks FIX.
    #[must_use]
    pub fn speaks_fix(&self, stream: usize) -> bool {
        let is_entry =
            |account: &super::Account| account.entry.as_ref().is_some_and(|entry| entry.stream == stream);
        self.accounts.iter().any(is_entry)
    }

    /// Handles the logon of an account's FIX session.
    pub(super) fn entry_up(&mut self, account: u16, now: Nanos, door: &mut impl EventSink) {
        let Some(entry) = &mut self.accounts[usize::from(account)].entry else { return };
        entry.is_up = true;
        let stream = entry.stream;
        self.set_stream(stream, ConnectionStatus::READY, now, door);
    }

    /// Handles the loss of an account's FIX session: unanswered requests have an unknown result, and
    /// everything is fetched over the WebSocket before the account is ready again.
    pub(super) fn lose_entry(&mut self, account: u16, now: Nanos, door: &mut impl EventSink) {
        let known = &mut self.accounts[usize::from(account)];
        let Some(entry) = &mut known.entry else { return };
        let was_up = std::mem::replace(&mut entry.is_up, false);
        if !was_up && entry.pending().next().is_none() {
            // The session was never up: nothing has changed.
            return;
        }
        let (step, stream) = (known.step, known.stream);
        // Orders in flight may appear only after everything is cancelled.
        known.is_cancel_all_due |= self.policy.is_killed();
        while let Some(pending) =
            self.accounts[usize::from(account)].entry.as_mut().and_then(OrderEntry::take_lost)
        {
            self.unanswered(account, &pending, true, now, door);
        }
        self.forget_fix_news(account);
        if step > Step::Orders {
            self.accounts[usize::from(account)].enter(Step::Orders, now);
            self.set_stream(stream, ConnectionStatus::DOWNLOADING, now, door);
        }
    }

    /// Lets the WebSocket's reports take effect again after the session is lost.
    fn forget_fix_news(&mut self, account: u16) {
        for slot in 0..self.orders.used() {
            if let Some(order) = self.orders.get_mut(slot).filter(|order| order.account == account) {
                order.is_by_fix = false;
            }
        }
    }

    /// Gives up requests whose answer is overdue.
    pub(super) fn poll_entry(&mut self, account: u16, now: Nanos, door: &mut impl EventSink) -> usize {
        let until = Nanos(now.0.saturating_sub(self.settings.request_timeout.0));
        for count in 0..LATE_PER_CYCLE {
            let entry = self.accounts[usize::from(account)].entry.as_mut();
            let Some(pending) = entry.and_then(|entry| entry.take_late(until)) else { return count };
            self.unanswered(account, &pending, false, now, door);
        }
        LATE_PER_CYCLE
    }
}

//! Cancel on disconnect: the orders of disconnected clients, and of users whose clients do not return.

use std::collections::VecDeque;

use tickpath_types::Nanos;

use super::Core;
use super::clients::CLIENTS_MAX;

/// Order slots examined per call, so that a client with thousands of orders delays no one.
const PLACES_PER_CYCLE: u32 = 256;

/// A client or user whose orders are being cancelled.
#[derive(Clone, Copy, Debug)]
struct Leaver {
    /// The disconnected client; none for a user whose clients did not return.
    client: Option<u32>,
    user: u16,
    /// Whether orders of the user without an owner in this instance are included: no trading client remains.
    is_last: bool,
    /// Next slot to examine.
    next: u32,
}

/// Clients and users whose orders are still to be cancelled.
#[derive(Debug)]
pub(super) struct Leavers(VecDeque<Leaver>);

impl Leavers {
    pub(super) fn new() -> Leavers {
        Leavers(VecDeque::with_capacity(CLIENTS_MAX))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Core {
    /// Handles a client's disconnection: the next calls of [`poll`](Core::poll) cancel its orders, unless the
    /// configuration says otherwise. If it was its user's last trading client, orders that an earlier gateway
    /// instance entered for the user are included.
    pub fn handle_leave(&mut self, number: u32) {
        let Some(client) = self.clients.leave(number) else { return };
        let is_last = client.may_trade && !self.has_trader(client.user);
        self.give_up(Leaver { client: Some(number), user: client.user, is_last, next: 0 });
    }

    fn give_up(&mut self, mut leaver: Leaver) {
        if !self.settings.cancels {
            return;
        }
        if self.leavers.0.len() < CLIENTS_MAX {
            self.leavers.0.push_back(leaver);
        } else {
            // The queue is full: cancels the orders at once.
            self.go_on(&mut leaver, u32::MAX);
        }
    }

    pub(super) fn has_trader(&self, user: u16) -> bool {
        self.clients.all().iter().any(|client| client.user == user && client.may_trade)
    }

    /// Continues with the first one in the queue; returns the amount of work done.
    pub(super) fn poll_leavers(&mut self, now: Nanos) -> usize {
        let work = self.poll_absent(now);
        let Some(mut leaver) = self.leavers.0.pop_front() else { return work };
        if !self.go_on(&mut leaver, PLACES_PER_CYCLE) {
            self.leavers.0.push_front(leaver);
        }
        work + 1
    }

    /// Examines the next slots; returns whether they were the last.
    fn go_on(&mut self, leaver: &mut Leaver, places: u32) -> bool {
        let end = self.orders.used().min(leaver.next.saturating_add(places));
        for slot in leaver.next..end {
            let Some(order) = self.orders.get(slot) else { continue };
            let is_own = leaver.client.is_some() && order.owner == leaver.client;
            let is_adopted = leaver.is_last
                && order.user == leaver.user
                && order.owner.is_none()
                && !self.is_elsewhere(order);
            if (is_own || is_adopted) && !order.state.is_over() {
                self.want_cancel(slot);
            }
        }
        leaver.next = end;
        end == self.orders.used()
    }

    /// Starts the waiting time when an earlier instance's order is found whose user has no trading client.
    pub(super) fn note_absent(&mut self, user: u16, now: Nanos) {
        if !self.has_trader(user) {
            self.users[usize::from(user)].absent_since.get_or_insert(now);
            self.has_absent = true;
        }
    }

    /// Cancels the orders of users whose clients did not return in time.
    fn poll_absent(&mut self, now: Nanos) -> usize {
        if !self.has_absent {
            return 0;
        }
        let patience = self.settings.return_patience;
        let is_over = |since: Option<Nanos>| since.is_some_and(|since| now.since(since) >= patience);
        let Some(place) = self.users.iter().position(|user| is_over(user.absent_since)) else { return 0 };
        self.users[place].absent_since = None;
        self.has_absent = self.users.iter().any(|user| user.absent_since.is_some());
        self.give_up(Leaver { client: None, user: place as u16, is_last: true, next: 0 });
        1
    }
}

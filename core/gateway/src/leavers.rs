//! Clients that are gone, and users whose clients did not come back: their orders are cancelled, bit by bit.

use std::collections::VecDeque;

use tickpath_types::Nanos;

use super::Core;
use super::clients::CLIENTS_MAX;

/// Places of orders that one call looks at, so that a client with thousands of orders holds nobody up.
const PLACES_PER_CYCLE: u32 = 256;

/// Whose orders are to be given up.
#[derive(Clone, Copy, Debug)]
struct Leaver {
    /// The client that is gone; none where it is about a user whose clients never came.
    client: Option<u32>,
    user: u16,
    /// The orders of the user that no client of this life entered are meant too: it was the last one that trades.
    is_last: bool,
    /// The next place.
    next: u32,
}

/// Those whose orders are not given up yet.
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
    /// A client is gone: its orders are cancelled in the next calls of [`poll`](Core::poll), unless the configuration says
    /// otherwise. Where it was the last of its user that trades, so are those that an earlier life of the gateway entered for
    /// the user.
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
            // As many as there may be at a time are waiting already.
            self.go_on(&mut leaver, u32::MAX);
        }
    }

    pub(super) fn has_trader(&self, user: u16) -> bool {
        self.clients.all().iter().any(|client| client.user == user && client.may_trade)
    }

    /// Goes on with the one that left first; how much was done.
    pub(super) fn poll_leavers(&mut self, now: Nanos) -> usize {
        let work = self.poll_absent(now);
        let Some(mut leaver) = self.leavers.0.pop_front() else { return work };
        if !self.go_on(&mut leaver, PLACES_PER_CYCLE) {
            self.leavers.0.push_front(leaver);
        }
        work + 1
    }

    /// Looks at the next places; whether that were all.
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

    /// An order of an earlier life was found whose user has no client that trades: it may come back for a while.
    pub(super) fn note_absent(&mut self, user: u16, now: Nanos) {
        if !self.has_trader(user) {
            self.users[usize::from(user)].absent_since.get_or_insert(now);
            self.has_absent = true;
        }
    }

    /// Users whose clients did not come back in time lose their orders, as if they had just gone.
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

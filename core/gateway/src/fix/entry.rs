//! Requests in flight on an account's FIX session.

use std::collections::VecDeque;

use tickpath_types::Nanos;

use crate::account::{PENDING_MAX, Pending, Purpose};

/// The FIX session for an account's orders.
#[derive(Debug)]
pub struct OrderEntry {
    /// Number of the session's connection.
    pub stream: usize,
    /// Whether the session is logged on.
    pub is_up: bool,
    /// Requests in flight, in the order of their MsgSeqNum.
    pending: VecDeque<Pending>,
}

impl OrderEntry {
    /// Creates a session that is not logged on.
    #[must_use]
    pub fn new(stream: usize) -> OrderEntry {
        OrderEntry { stream, is_up: false, pending: VecDeque::with_capacity(PENDING_MAX) }
    }

    /// Records a request that was sent; its id is its MsgSeqNum.
    pub fn push(&mut self, pending: Pending) {
        self.pending.push_back(pending);
    }

    /// Whether there is capacity for another request in flight.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.pending.len() < PENDING_MAX
    }

    /// All requests in flight.
    pub fn pending(&self) -> impl Iterator<Item = &Pending> {
        self.pending.iter()
    }

    /// Removes and returns the request with this MsgSeqNum.
    pub fn take(&mut self, id: i64) -> Option<Pending> {
        let place = self.pending.binary_search_by_key(&id, |pending| pending.id).ok()?;
        self.pending.remove(place)
    }

    /// Removes and returns the oldest request that matches. The venue's answers name orders, not requests;
    /// requests for one order are answered in their order.
    pub fn take_first(&mut self, is_meant: impl Fn(&Pending) -> bool) -> Option<Pending> {
        let place = self.pending.iter().position(is_meant)?;
        self.pending.remove(place)
    }

    /// Removes and returns the oldest request if it was sent at `until` or before.
    pub fn take_late(&mut self, until: Nanos) -> Option<Pending> {
        if self.pending.front()?.sent <= until { self.pending.pop_front() } else { None }
    }

    /// Removes and returns the oldest request after the session is lost.
    pub fn take_lost(&mut self) -> Option<Pending> {
        self.pending.pop_front()
    }
}

/// Whether a request is for the order in a slot and of one of these kinds.
pub(super) fn is_about(
    slot: u32,
    gateway_id: u64,
    is_kind: fn(&Purpose) -> bool,
) -> impl Fn(&Pending) -> bool {
    move |pending| {
        pending.gateway_id == gateway_id
            && pending.purpose.changes() == Some(slot)
            && is_kind(&pending.purpose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Asker;

    #[test]
    fn answers_name_orders_and_requests_are_taken_oldest_first() {
        let mut entry = OrderEntry::new(80);
        let (asker, sent) = (Asker::default(), Nanos(5));
        let purposes = [
            Purpose::Create { slot: 1 },
            Purpose::Modify { slot: 1 },
            Purpose::Modify { slot: 2 },
            Purpose::Cancel { slot: 1, is_by_label: false },
            Purpose::CancelAll,
        ];
        for (id, purpose) in (2..).zip(purposes) {
            let gateway_id = purpose.changes().map_or(0, |slot| 100 + u64::from(slot));
            entry.push(Pending { id, purpose, asker, sent, gateway_id });
        }
        let is_change = |purpose: &Purpose| matches!(purpose, Purpose::Modify { .. });
        assert_eq!(entry.take_first(is_about(1, 101, is_change)).unwrap().id, 3);
        assert_eq!(entry.take_first(is_about(1, 101, is_change)), None);
        assert_eq!(entry.take_first(is_about(2, 999, is_change)), None, "another order at its place");
        assert_eq!((entry.take(5).unwrap().id, entry.take(5)), (5, None));
        assert_eq!((entry.take_late(Nanos(4)), entry.take_late(Nanos(5)).unwrap().id), (None, 2));
        assert_eq!((entry.take_lost().unwrap().id, entry.take_lost().unwrap().id), (4, 6));
        assert!(entry.take_lost().is_none() && entry.has_room());
    }
}

//! Every accepted order of a client is open at the end of the run or was reported closed; quantities add up.

use std::collections::BTreeMap;

use tickpath_types::{EnterOrder, Nanos, OrderEventKind, TimeInForce, UserRefNum};

use super::{Case, client_events};

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenOrder {
    pub(super) executed: u64,
    pub(super) leaves: u64,
    pub(super) time_in_force: TimeInForce,
    /// Time at which the order was accepted, or replaced another order.
    pub(super) since: Nanos,
    /// Time of day at which the order expires; `None` if it does not expire within the day.
    pub(super) expires_at: Option<Nanos>,
}

impl OpenOrder {
    fn new(since: Nanos, order: &EnterOrder, executed: u64) -> OpenOrder {
        let leaves = order.qty.0.saturating_sub(executed);
        let time_in_force = order.time_in_force;
        let seconds = order.special.unwrap_or_default().expire_at;
        let expires_at = (time_in_force == TimeInForce::Gtt).then(|| Nanos::from_secs(seconds.into()));
        OpenOrder { executed, leaves, time_in_force, since, expires_at }
    }
}

pub(super) fn check(case: &Case<'_>) {
    for (place, client) in case.observed.clients.iter().enumerate() {
        let Some(events) = client_events::of_client(case, place) else { continue };
        let name = &case.observed.setup.users[place].name;
        let mut book = Book::default();
        events.iter().for_each(|(ts, kind)| book.on_event(*ts, kind));
        let Book { mut orders, problems } = book;
        problems.into_iter().for_each(|problem| case.fail(|| format!("{name}: {problem}")));
        let open = case.observed.last.open_orders.iter();
        for (&(_, user_ref), (executed, leaves)) in
            open.filter(|((session, _), _)| *session == client.session)
        {
            let actual = Some((executed.0, leaves.0));
            let expected =
                orders.remove(&user_ref).map(|open_order| (open_order.executed, open_order.leaves));
            case.expect(expected == actual, || {
                format!(
                    "order {user_ref}: executed and left are {expected:?} for {name}, {actual:?} at the venue"
                )
            });
        }
        for (user_ref, open_order) in orders {
            case.fail(|| {
                format!("{name} received the acceptance of order {user_ref}, and it is lost: {open_order:?}")
            });
        }
    }
}

/// A client's open orders, according to its received messages.
#[derive(Default)]
pub(super) struct Book {
    pub(super) orders: BTreeMap<UserRefNum, OpenOrder>,
    /// Descriptions of the messages that contradict earlier ones.
    pub(super) problems: Vec<String>,
}

impl Book {
    pub(super) fn on_event(&mut self, ts: Nanos, kind: &OrderEventKind) {
        let user_ref = kind.user_ref();
        match *kind {
            OrderEventKind::Accepted { order, .. } => {
                self.open(user_ref, OpenOrder::new(ts, &order, 0));
            }
            OrderEventKind::Replaced { order, orig_user_ref, .. } => {
                let old = self.orders.remove(&orig_user_ref);
                if old.is_none() {
                    let problem = format!("order {user_ref} replaced {orig_user_ref}, which is not open");
                    self.problems.push(problem);
                }
                let executed = old.map_or(0, |old| old.executed);
                self.open(user_ref, OpenOrder::new(ts, &order, executed));
            }
            OrderEventKind::Executed { qty, .. } => self.take(user_ref, qty.0, qty.0, kind),
            OrderEventKind::Canceled { decrement, .. }
            | OrderEventKind::SelfTradePrevented { decrement, .. } => {
                self.take(user_ref, decrement.0, 0, kind)
            }
            OrderEventKind::Modified { qty, .. } => {
                let whole = self.orders.get(&user_ref).map_or(0, |order| order.executed + order.leaves);
                self.take(user_ref, whole.saturating_sub(qty.0), 0, kind);
            }
            _ => {}
        }
    }

    fn open(&mut self, user_ref: UserRefNum, open_order: OpenOrder) {
        if self.orders.insert(user_ref, open_order).is_some() {
            self.problems.push(format!("order {user_ref} was accepted twice"));
        }
    }

    fn take(&mut self, user_ref: UserRefNum, qty: u64, executed: u64, kind: &OrderEventKind) {
        let Some(order) = self.orders.get_mut(&user_ref) else {
            return self.problems.push(format!("{kind:?} of an order that is not open"));
        };
        if qty > order.leaves {
            self.problems.push(format!("{kind:?} of an order that has {} left", order.leaves));
        }
        order.leaves = order.leaves.saturating_sub(qty);
        order.executed += executed;
        if order.leaves == 0 {
            self.orders.remove(&user_ref);
        }
    }
}

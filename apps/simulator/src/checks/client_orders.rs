//! Every order that a client was told is accepted is open at the end, or its end was told; and its quantities add up.

use std::collections::BTreeMap;

use tickpath_types::{OrderEventKind, UserRefNum};

use super::report::Report;
use super::{Case, statements};

/// What a client knows of its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Standing {
    executed: u64,
    leaves: u64,
}

pub(super) fn check(case: &Case<'_>, report: &mut Report) {
    for (place, client) in case.observed.clients.iter().enumerate() {
        let Some(told) = statements::of_client(case, place) else { continue };
        let name = &case.observed.users[place].name;
        let mut book = Book { name, orders: BTreeMap::new(), report };
        told.iter().for_each(|(_, kind)| book.hear(kind));
        let Book { mut orders, .. } = book;
        let open = case.observed.last.open_orders.iter().filter(|order| order.session == client.session);
        for order in open {
            let is = Standing { executed: order.executed.0, leaves: order.leaves.0 };
            let believed = orders.remove(&order.user_ref);
            report.expect(believed == Some(is), || {
                format!("{name} believes order {} {believed:?}, and the venue has it {is:?}", order.user_ref)
            });
        }
        for (user_ref, standing) in orders {
            report.say(|| {
                format!("{name} was told that order {user_ref} is accepted, and it is lost: {standing:?}")
            });
        }
    }
}

struct Book<'a> {
    name: &'a str,
    orders: BTreeMap<UserRefNum, Standing>,
    report: &'a mut Report,
}

impl Book<'_> {
    fn hear(&mut self, kind: &OrderEventKind) {
        let user_ref = kind.user_ref();
        match *kind {
            OrderEventKind::Accepted { order, .. } => {
                self.open(user_ref, Standing { executed: 0, leaves: order.qty.0 });
            }
            OrderEventKind::Replaced { order, orig_user_ref, .. } => {
                let old = self.orders.remove(&orig_user_ref);
                self.report.expect(old.is_some(), || {
                    format!("{}: order {user_ref} replaced {orig_user_ref}, which is not open", self.name)
                });
                let executed = old.unwrap_or_default().executed;
                self.open(user_ref, Standing { executed, leaves: order.qty.0.saturating_sub(executed) });
            }
            OrderEventKind::Executed { qty, .. } => self.take(user_ref, qty.0, qty.0, kind),
            OrderEventKind::Canceled { decrement, .. }
            | OrderEventKind::SelfTradePrevented { decrement, .. } => {
                self.take(user_ref, decrement.0, 0, kind)
            }
            OrderEventKind::Modified { qty, .. } => {
                let Standing { executed, leaves } = self.orders.get(&user_ref).copied().unwrap_or_default();
                self.take(user_ref, (executed + leaves).saturating_sub(qty.0), 0, kind);
            }
            _ => {}
        }
    }

    fn open(&mut self, user_ref: UserRefNum, standing: Standing) {
        let before = self.orders.insert(user_ref, standing);
        self.report
            .expect(before.is_none(), || format!("{}: order {user_ref} was accepted twice", self.name));
    }

    fn take(&mut self, user_ref: UserRefNum, qty: u64, executed: u64, kind: &OrderEventKind) {
        let Some(order) = self.orders.get_mut(&user_ref) else {
            return self.report.say(|| format!("{}: {kind:?} of an order that is not open", self.name));
        };
        self.report.expect(qty <= order.leaves, || {
            format!("{}: {kind:?} of an order that has {} left", self.name, order.leaves)
        });
        order.leaves = order.leaves.saturating_sub(qty);
        order.executed += executed;
        if order.leaves == 0 {
            self.orders.remove(&user_ref);
        }
    }
}

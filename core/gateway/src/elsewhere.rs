//! Duplicate instance detection: orders labelled by an earlier instance of this gateway but managed by
//! another gateway of this name, or by a human. They are not cancelled when their user's clients disconnect.

use tickpath_types::Nanos;

use super::Core;
use super::label::begun_ms;
use super::news::OrderNews;
use super::orders::Order;

/// Maximum number of other instances that are distinguished. New orders of further ones are counted; their
/// older orders are treated like those of earlier instances.
const LIVES_MAX: usize = 16;
/// Upper bound of the difference between the venue's clock and the gateway's.
const CLOCK_MARGIN: Nanos = Nanos::from_secs(1);

/// Sessions of instances of this gateway that started earlier and still run.
#[derive(Debug)]
pub(super) struct Elsewhere(Vec<u64>);

impl Elsewhere {
    pub(super) fn new() -> Elsewhere {
        Elsewhere(Vec::with_capacity(LIVES_MAX))
    }

    fn note(&mut self, session: u64) {
        if self.0.len() < LIVES_MAX && !self.0.contains(&session) {
            self.0.push(session);
        }
    }
}

impl Core {
    /// Whether an order survives its clients' disconnection: not of this instance, and managed elsewhere.
    pub(super) fn is_elsewhere(&self, order: &Order) -> bool {
        order.owner.is_none() && (order.is_changed_elsewhere || self.elsewhere.0.contains(&order.session))
    }

    /// Marks an order that was changed although no client of this instance has changed it.
    pub(super) fn note_changed(&mut self, slot: u32, old: &Order, news: &OrderNews) {
        let is_found = old.owner.is_none() && (old.is_quote || old.session != self.mark.session());
        let is_other = (old.terms.price, old.terms.quantity) != (news.terms.price, news.terms.quantity);
        // Changes caused by a trigger or a fill are not changes by another party.
        let is_changed = news.is_replaced && is_other && old.state == super::own_orders::state_of(news);
        if !is_found || !is_changed || old.is_changed_here || old.is_changed_elsewhere {
            return;
        }
        if let Some(order) = self.orders.get_mut(slot) {
            order.is_changed_elsewhere = true;
            self.counters.orders_elsewhere += 1;
        }
    }

    /// Whether an order with another instance's label was entered after all requests of earlier instances had
    /// expired: that instance still runs and manages its orders.
    pub(super) fn is_entered_elsewhere(&self, session: u64, news: &OrderNews) -> bool {
        session > self.mark.session() || session < self.mark.session() && self.is_entered_late(news)
    }

    /// Whether an order was created after all requests of earlier instances had expired.
    pub(super) fn is_entered_late(&self, news: &OrderNews) -> bool {
        let margin = self.settings.request_timeout + CLOCK_MARGIN;
        let begun = begun_ms(self.mark.session()).saturating_add_signed(self.venue_ahead_ms);
        // An order created by a trigger has the trigger's time.
        news.trigger_id.is_empty() && news.created_ms > begun.saturating_add(margin.0 / 1_000_000)
    }

    /// Records an order that another party has entered under this gateway's name.
    pub(super) fn note_elsewhere(&mut self, account: u16, session: u64, news: &OrderNews) {
        self.elsewhere.note(session);
        let known = self.counters.foreign_orders;
        self.note_foreign(account, news);
        self.counters.orders_elsewhere += self.counters.foreign_orders - known;
    }
}

//! Orders that carry a label of an earlier life of this gateway, and at which somebody else is at work: another gateway of this
//! name at the same account, or a human. They are not cancelled when the clients of their user are gone.

use tickpath_types::Nanos;

use super::Core;
use super::label::begun_ms;
use super::news::OrderNews;
use super::orders::Order;

/// Lives of other gateways that are told apart; what further ones enter is counted, and their older orders are as those of
/// earlier lives.
const LIVES_MAX: usize = 16;
/// The venue's clock and ours may differ by less.
const CLOCK_MARGIN: Nanos = Nanos::from_secs(1);

/// Lives of gateways of this name that began before this one and have not ended.
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
    /// Whether an order is left alone when clients go: it is none of this life, and somebody else works at it.
    pub(super) fn is_elsewhere(&self, order: &Order) -> bool {
        order.owner.is_none() && (order.is_changed_elsewhere || self.elsewhere.0.contains(&order.session))
    }

    /// Notes whether an order was changed that no client of this life ever changed.
    pub(super) fn note_changed(&mut self, slot: u32, old: &Order, news: &OrderNews) {
        let is_found = old.owner.is_none() && (old.is_quote || old.session != self.mark.session());
        let is_other = (old.terms.price, old.terms.quantity) != (news.terms.price, news.terms.quantity);
        // What a trigger or a fill makes of an order is no change of anybody's.
        let is_changed = news.is_replaced && is_other && old.state == super::own_orders::state_of(news);
        if !is_found || !is_changed || old.is_changed_here || old.is_changed_elsewhere {
            return;
        }
        if let Some(order) = self.orders.get_mut(slot) {
            order.is_changed_elsewhere = true;
            self.counters.orders_elsewhere += 1;
        }
    }

    /// Whether an order with a label of another life was entered when this life had begun and nothing of an earlier one could
    /// still be on its way: that one goes on, and its orders are its own.
    pub(super) fn is_entered_elsewhere(&self, session: u64, news: &OrderNews) -> bool {
        session > self.mark.session() || session < self.mark.session() && self.is_entered_late(news)
    }

    /// Whether an order was created when no request of an earlier life could be on its way any more.
    pub(super) fn is_entered_late(&self, news: &OrderNews) -> bool {
        let margin = self.settings.request_timeout + CLOCK_MARGIN;
        let begun = begun_ms(self.mark.session()).saturating_add_signed(self.venue_ahead_ms);
        // What a trigger made of an order is as young as that.
        news.trigger_id.is_empty() && news.created_ms > begun.saturating_add(margin.0 / 1_000_000)
    }

    /// Takes an order that somebody else has entered under this gateway's name.
    pub(super) fn note_elsewhere(&mut self, account: u16, session: u64, news: &OrderNews) {
        self.elsewhere.note(session);
        let known = self.counters.foreign_orders;
        self.note_foreign(account, news);
        self.counters.orders_elsewhere += self.counters.foreign_orders - known;
    }
}

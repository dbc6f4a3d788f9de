//! Open external orders of an account, which count against the account's limits, and open orders whose owner
//! cannot be decoded.

use std::collections::HashSet;

use rustc_hash::FxBuildHasher;
use tickpath_deribit::field::Field;
use tickpath_deribit::scan::{ScanError, Scanner, Value};
use tickpath_deribit::text::Text;
use tickpath_gateway_protocol::ErrorCode;
use tickpath_types::Nanos;

use super::Core;
use super::news::{LabelText, OrderNews, SymbolText};
use super::orders::{Doubt, ExternalId};
use super::out::EventSink;

/// Maximum number of external orders tracked individually. Further ones are only counted, until the account
/// is reconciled again.
const FOREIGN_MAX: usize = 1 << 13;
/// Maximum number of undecodable orders tracked by instrument; beyond it, the account sends no new orders.
const UNREADABLE_MAX: usize = 64;

/// An undecodable open order that may belong to this gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unreadable {
    /// The venue's id; empty if that cannot be decoded either.
    id: ExternalId,
    /// Number of the instrument; 0 if unknown.
    symbol: u32,
}

/// Open orders of one account that are external or possibly external.
#[derive(Debug, Default)]
pub struct Foreign {
    ids: HashSet<ExternalId, FxBuildHasher>,
    /// Number of external orders beyond the capacity of `ids`.
    more: u32,
    unreadable: Vec<Unreadable>,
}

impl Foreign {
    /// An empty set with capacity for all individually tracked orders.
    #[must_use]
    pub fn new() -> Foreign {
        Foreign {
            ids: HashSet::with_capacity_and_hasher(FOREIGN_MAX, FxBuildHasher),
            more: 0,
            unreadable: Vec::with_capacity(UNREADABLE_MAX),
        }
    }

    /// Number of orders.
    #[must_use]
    pub fn count(&self) -> u32 {
        (self.ids.len() + self.unreadable.len()) as u32 + self.more
    }

    /// Number of undecodable orders.
    #[must_use]
    pub fn unreadable_count(&self) -> u32 {
        self.unreadable.len() as u32
    }

    /// Removes all orders before they are fetched again.
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.unreadable.clear();
        self.more = 0;
    }

    /// Adds an order; returns whether it was unknown. Beyond the capacity, only orders marked as `is_new` are
    /// counted, not each change of one.
    pub(super) fn insert(&mut self, id: ExternalId, is_new: bool) -> bool {
        if self.ids.contains(&id) {
            return false;
        }
        if self.ids.len() < FOREIGN_MAX {
            self.ids.insert(id);
            return true;
        }
        self.more = self.more.saturating_add(is_new.into());
        is_new
    }

    /// Removes an order that has ended.
    pub(super) fn remove(&mut self, id: ExternalId) {
        self.ids.remove(&id);
    }

    /// Removes an order from the undecodable ones.
    #[inline]
    pub(super) fn is_readable(&mut self, id: ExternalId) {
        if !self.unreadable.is_empty() {
            self.unreadable.retain(|order| order.id != id);
        }
    }

    fn insert_unreadable(&mut self, id: ExternalId, symbol: u32) {
        let order = Unreadable { id, symbol };
        if self.unreadable.contains(&order) && !id.is_empty() {
            return;
        }
        if self.unreadable.len() < UNREADABLE_MAX {
            self.unreadable.push(order);
        } else if let Some(last) = self.unreadable.last_mut() {
            last.symbol = 0;
        }
    }

    /// Whether an instrument has an undecodable order that may belong to this gateway.
    #[inline]
    #[must_use]
    pub fn is_unclear(&self, symbol: u32) -> bool {
        self.unreadable.iter().any(|order| order.symbol == symbol || order.symbol == 0)
    }
}

/// The decodable fields of an undecodable order.
#[derive(Clone, Copy, Debug, Default)]
struct Remains {
    id: ExternalId,
    trigger_id: ExternalId,
    symbol: SymbolText,
    /// None if undecodable.
    label: Option<LabelText>,
    is_over: bool,
}

impl<'a> Field<'a> for Remains {
    fn read(scanner: &mut Scanner<'a>) -> Result<Remains, ScanError> {
        let mut found = Remains { label: Some(LabelText::EMPTY), ..Remains::default() };
        scanner.open_object()?;
        while let Some(key) = scanner.next_key()? {
            let value = scanner.value()?;
            let text = value.parse::<Text<'a>>().ok().and_then(|text| text.plain());
            match key {
                "order_id" => found.id = text.and_then(ExternalId::new).unwrap_or_default(),
                "trigger_order_id" => found.trigger_id = text.and_then(ExternalId::new).unwrap_or_default(),
                "instrument_name" => found.symbol = text.and_then(SymbolText::new).unwrap_or_default(),
                // Any other text is another party's label; a value that is not text may be ours.
                "label" => found.label = text.map(|text| LabelText::new(text).unwrap_or_default()),
                "order_state" => {
                    found.is_over = matches!(text, Some("filled" | "cancelled" | "rejected"));
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{}");
    }
}

impl Core {
    /// Handles an update of an external order.
    pub(super) fn note_foreign(&mut self, account: u16, news: &OrderNews) {
        use tickpath_deribit::codes::OrderState;
        let known = &mut self.accounts[usize::from(account)];
        // Each order occurs once in the list of open orders.
        let is_new = known.step == super::account::Step::Orders || news.updated_ms == news.created_ms;
        let foreign = &mut known.foreign;
        if !news.trigger_id.is_empty() && news.trigger_id != news.external_id {
            // The trigger order that became this order.
            foreign.remove(news.trigger_id);
        }
        if news.state.is_terminal() || matches!(news.state, OrderState::Triggered | OrderState::Archive) {
            foreign.remove(news.external_id);
        } else if foreign.insert(news.external_id, is_new) {
            self.counters.foreign_orders += 1;
        }
    }

    /// Handles an undecodable or inexact open order; returns its slot if it is this gateway's. An external
    /// one is counted. If the owner is unclear, no new orders leave for its instrument.
    pub(super) fn take_unreadable(
        &mut self,
        account: u16,
        value: &Value<'_>,
        received: Nanos,
        door: &mut impl EventSink,
    ) -> Option<u32> {
        self.counters.faults += 1;
        let remains = value.parse::<Remains>().unwrap_or_default();
        let Remains { id, trigger_id, symbol, label, is_over } = remains;
        let known = label
            .and_then(|label| self.find_by_label(account, label.as_str()))
            .or_else(|| self.find_by_external_id(account, id))
            .or_else(|| self.find_by_external_id(account, trigger_id));
        if let Some(slot) = known {
            self.doubt(slot, received, door);
            return Some(slot);
        }
        let is_of_others = label.is_some_and(|label| self.mark.read(label.as_str()).is_none());
        let symbol = self.instruments.number(symbol.as_str()).unwrap_or(0);
        let foreign = &mut self.accounts[usize::from(account)].foreign;
        match (is_over, is_of_others && !id.is_empty()) {
            // It is unknown which order has ended: open ones without an id stay.
            (true, _) if id.is_empty() => {}
            (true, _) => {
                foreign.remove(id);
                foreign.is_readable(id);
            }
            (false, true) => {
                self.counters.foreign_orders += u64::from(foreign.insert(id, true));
            }
            (false, false) => {
                self.counters.unreadable_orders += 1;
                foreign.insert_unreadable(id, symbol);
            }
        }
        None
    }

    fn find_by_external_id(&self, account: u16, id: ExternalId) -> Option<u32> {
        if id.is_empty() { None } else { self.orders.by_external_id(account, id.as_str()) }
    }

    /// Handles an undecodable answer to an order status query: the query is repeated from time to time, and
    /// the account does not wait for it.
    pub(super) fn doubt_unreadable(&mut self, slot: u32, now: Nanos) {
        self.counters.faults += 1;
        self.doubt_again(slot, now);
        if let Some(order) = self.orders.get_mut(slot).filter(|order| !order.state.is_over()) {
            order.doubt = Doubt::Unreadable;
        }
    }

    /// Rejects new orders for an instrument whose open orders are unclear.
    pub(super) fn check_clear(&self, account: u16, symbol: u32) -> Result<(), ErrorCode> {
        let is_unclear = self.accounts[usize::from(account)].foreign.is_unclear(symbol)
            && !self.settings.trades_beside_unreadable;
        if is_unclear { Err(ErrorCode::UNREADABLE_ORDER) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> ExternalId {
        ExternalId::cut(&format!("V-{number}"))
    }

    #[test]
    fn each_is_counted_once_and_more_than_are_told_apart_are_counted_too() {
        let mut foreign = Foreign::new();
        assert!(foreign.insert(id(1), true) && !foreign.insert(id(1), true));
        foreign.remove(id(1));
        foreign.remove(id(2));
        assert_eq!(foreign.count(), 0);
        for number in 0..FOREIGN_MAX + 3 {
            foreign.insert(id(number), true);
        }
        // A change of an order beyond the capacity does not count as another order.
        assert!(!foreign.insert(id(FOREIGN_MAX + 1), false));
        assert_eq!(foreign.count() as usize, FOREIGN_MAX + 3);
        foreign.clear();
        assert_eq!(foreign.count(), 0);
    }

    #[test]
    fn with_too_many_that_cannot_be_read_nothing_is_clear() {
        let mut foreign = Foreign::new();
        for number in 0..UNREADABLE_MAX {
            foreign.insert_unreadable(id(number), 1);
        }
        foreign.insert_unreadable(id(0), 1);
        assert!(foreign.is_unclear(1) && !foreign.is_unclear(2));
        foreign.insert_unreadable(id(900), 1);
        assert!(foreign.is_unclear(2));
        (0..UNREADABLE_MAX).for_each(|number| foreign.is_readable(id(number)));
        assert!(!foreign.is_unclear(1));
    }
}

//! Open orders of an account that are none of this gateway's: those that others made, which count against the account's caps,
//! and those of which it cannot be read whose they are.

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
use super::out::Door;

/// Orders of others whose ends are noticed one by one; of more it is known that they were there once, until the account is
/// reconciled again.
const FOREIGN_MAX: usize = 1 << 13;
/// Orders that cannot be read whose instruments are told apart; with more no new order of the account leaves.
const UNREADABLE_MAX: usize = 64;

/// An open order that cannot be read, and may be one of this gateway's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unreadable {
    /// The venue's id; empty where not even that can be read.
    id: ExternalId,
    /// The instrument's number; 0 where it is not known.
    symbol: u32,
}

/// Open orders of one account that are none of this gateway's, or may not be.
#[derive(Debug, Default)]
pub struct Foreign {
    ids: HashSet<ExternalId, FxBuildHasher>,
    /// Further ones.
    more: u32,
    unreadable: Vec<Unreadable>,
}

impl Foreign {
    /// None, with room for all that are told apart.
    #[must_use]
    pub fn new() -> Foreign {
        Foreign {
            ids: HashSet::with_capacity_and_hasher(FOREIGN_MAX, FxBuildHasher),
            more: 0,
            unreadable: Vec::with_capacity(UNREADABLE_MAX),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        (self.ids.len() + self.unreadable.len()) as u32 + self.more
    }

    /// How many of them cannot be read.
    #[must_use]
    pub fn unreadable_count(&self) -> u32 {
        self.unreadable.len() as u32
    }

    /// All are told anew.
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.unreadable.clear();
        self.more = 0;
    }

    /// One is there; whether it was not known yet. Of what does not fit those are counted that are `new`, and not each change
    /// of one.
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

    /// One is over.
    pub(super) fn remove(&mut self, id: ExternalId) {
        self.ids.remove(&id);
    }

    /// One can be read: it is told for itself.
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

    /// Whether an order that cannot be read, and may be one of this gateway's, is in an instrument.
    #[inline]
    #[must_use]
    pub fn is_unclear(&self, symbol: u32) -> bool {
        self.unreadable.iter().any(|order| order.symbol == symbol || order.symbol == 0)
    }
}

/// What can be read of an order that cannot be read.
#[derive(Clone, Copy, Debug, Default)]
struct Remains {
    id: ExternalId,
    trigger_id: ExternalId,
    symbol: SymbolText,
    /// None where it cannot be read.
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
                // A text that is none of ours is some text; what is no text at all may have been one.
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
    /// An order that others made is told.
    pub(super) fn note_foreign(&mut self, account: u16, news: &OrderNews) {
        use tickpath_deribit::codes::OrderState;
        let known = &mut self.accounts[usize::from(account)];
        // In the list of open orders each stands once.
        let is_new = known.step == super::account::Step::Orders || news.updated_ms == news.created_ms;
        let foreign = &mut known.foreign;
        if !news.trigger_id.is_empty() && news.trigger_id != news.external_id {
            // The order that it was before its trigger.
            foreign.remove(news.trigger_id);
        }
        if news.state.is_terminal() || matches!(news.state, OrderState::Triggered | OrderState::Archive) {
            foreign.remove(news.external_id);
        } else if foreign.insert(news.external_id, is_new) {
            self.counters.foreign_orders += 1;
        }
    }

    /// An open order cannot be read, or not be told exactly; its place, if it is one of this gateway. That of another is
    /// counted; where it is not clear whose it is, nothing new leaves for its instrument.
    pub(super) fn take_unreadable(
        &mut self,
        account: u16,
        value: &Value<'_>,
        received: Nanos,
        door: &mut impl Door,
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
            // Which one has ended cannot be told: those without an id that are open hold on.
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

    /// The answer to a question about an order cannot be read: the question is put again from time to time, and the account
    /// does not wait for it.
    pub(super) fn doubt_unreadable(&mut self, slot: u32, now: Nanos) {
        self.counters.faults += 1;
        self.doubt_again(slot, now);
        if let Some(order) = self.orders.get_mut(slot).filter(|order| !order.state.is_over()) {
            order.doubt = Doubt::Unreadable;
        }
    }

    /// Whether nothing new may leave for an instrument, since it is not known what is open there.
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
        // A change of one that there was no room for is not another one.
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

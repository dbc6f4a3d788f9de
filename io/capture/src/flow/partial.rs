//! The orders that a best-levels recording does not announce, and the last event of each order.

use rustc_hash::FxHashMap;
use tickpath_types::Qty;

use super::book::Key;
use crate::{EventKind, Level, RecordedEvent};

/// Maximum number of orders that a survey tracks; with more, the mapper neither synthesises nor evicts any.
pub(crate) const HISTORY_ORDER_COUNT_MAX: usize = 1 << 24;

/// An order that the recording refers to without announcing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissingAdd {
    pub(crate) key: Key,
    pub(crate) level: Level,
    /// Total quantity that the recorded events execute or cancel of this order.
    pub(crate) qty: Qty,
}

/// The missing orders of a partial recording, and the index of each order's last event.
pub(crate) struct History {
    /// Missing orders, ascending by reference, which is the order of arrival.
    pub(crate) missing: Vec<MissingAdd>,
    last_event: FxHashMap<Key, u64>,
}

impl History {
    /// True when no event from `index` on concerns the order.
    pub(crate) fn is_last_seen_before(&self, key: Key, index: u64) -> bool {
        self.last_event.get(&key).is_none_or(|last| *last < index)
    }
}

#[derive(Default)]
pub(crate) struct HistoryBuilder {
    event_count: u64,
    last_event: FxHashMap<Key, u64>,
    /// Unannounced orders so far, with their total quantities.
    missing: FxHashMap<Key, MissingAdd>,
    last_add: u64,
    /// True when references do not ascend in order of arrival; then no missing order is entered.
    is_unordered: bool,
    is_full: bool,
}

impl HistoryBuilder {
    pub(crate) fn handle_event(&mut self, event: &RecordedEvent) {
        let index = self.event_count;
        self.event_count += 1;
        let (order_id, taken, level) = match event.kind {
            EventKind::Add { order_id, .. } => {
                self.is_unordered |= order_id < self.last_add;
                self.last_add = order_id;
                (order_id, None, None)
            }
            EventKind::Delete { order_id, level, qty } => (order_id, qty, level),
            EventKind::Reduce { order_id, by, level } => (order_id, Some(by), level),
            EventKind::Fill { order_id, qty, side, price, in_auction: false } => {
                (order_id, Some(qty), side.zip(price).map(|(side, price)| Level { side, price }))
            }
            _ => return,
        };
        let key = (event.instrument, order_id);
        if self.is_full {
            return;
        }
        let is_new = self.last_event.insert(key, index).is_none();
        self.is_full = self.last_event.len() > HISTORY_ORDER_COUNT_MAX;
        let (Some(taken), Some(level)) = (taken, level) else { return };
        if let Some(missing) = self.missing.get_mut(&key) {
            missing.qty.0 = missing.qty.0.saturating_add(taken.0);
        } else if is_new {
            self.missing.insert(key, MissingAdd { key, level, qty: taken });
        }
    }

    /// Returns the history; `None` when there were more orders than the maximum.
    pub(crate) fn finish(self) -> Option<History> {
        if self.is_full {
            return None;
        }
        let mut missing: Vec<MissingAdd> =
            if self.is_unordered { Vec::new() } else { self.missing.into_values().collect() };
        missing.sort_unstable_by_key(|missing| (missing.key.1, missing.key.0));
        Some(History { missing, last_event: self.last_event })
    }
}

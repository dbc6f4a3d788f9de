//! Trade id deduplication: no trade is sent twice.

use std::collections::VecDeque;

use tickpath_book::{OrderHandle, OrderIndex};

/// The latest trades, by a hash of their ids.
#[derive(Debug)]
pub struct Seen {
    order: VecDeque<u64>,
    index: OrderIndex,
    max: usize,
    seed: u64,
}

impl Seen {
    /// Creates a set that remembers up to `max` trades.
    #[must_use]
    pub fn new(max: u32, seed: u64) -> Seen {
        let index = OrderIndex::new(max.saturating_add(1));
        Seen { order: VecDeque::with_capacity(max as usize + 1), index, max: max as usize, seed }
    }

    /// Records a trade of an account; false if it is known already.
    pub fn insert(&mut self, account: u16, is_buy: bool, trade_id: &str) -> bool {
        // Both sides of a trade within one account have the same id.
        let start = self.seed ^ u64::from(account) << 1 ^ u64::from(is_buy);
        let key = trade_id.bytes().fold(scatter(start), |key, byte| scatter(key ^ u64::from(byte)));
        let handle = OrderHandle::new(1).expect("1 is a slot");
        if self.index.find(key).is_some() {
            return false;
        }
        if self.order.len() >= self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.index.remove(oldest);
        }
        if self.index.insert(key, handle).is_ok() {
            self.order.push_back(key);
        }
        true
    }
}

/// Mixes the bits of a number (the last steps of SplitMix64).
pub(super) const fn scatter(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trade_is_new_once() {
        let mut seen = Seen::new(2, 9);
        assert!(seen.insert(0, true, "ETH-1") && !seen.insert(0, true, "ETH-1"));
        assert!(seen.insert(0, false, "ETH-1"));
        assert!(seen.insert(1, true, "ETH-1"));
        // The oldest is forgotten.
        assert!(seen.insert(0, true, "ETH-1"));
    }
}

//! Option orders priced in dollars or by volatility: their prices follow the index.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

use tickpath_types::{Price, Side, TradingState};

use super::Front;
use super::trading::NewTerms;
use crate::order::{Terms, hundredths};
use crate::pending::{Origin, Work};

/// Maximum number of orders repriced per tenth of a second; the others follow in later passes.
const FOLLOWED_PER_TENTH: usize = 32;
/// Maximum number of orders and requests visited per pass: a margin depends on all orders of the account. A
/// pass over the limit ends after the current order, so one large account does not delay the others.
const WALKED_PER_TENTH: usize = 32_768;
/// Number of passes over all open orders of an account for one change.
const WALKS_PER_CHANGE: usize = 3;

/// The orders that follow the index, by account and number, and the last one visited.
#[derive(Default)]
pub(super) struct Followed {
    orders: BTreeSet<(usize, u64)>,
    last: Option<(usize, u64)>,
}

impl Followed {
    /// Returns the next order in turn; none when no order follows the index.
    fn next(&mut self) -> Option<(usize, u64)> {
        let after = self.last.map_or(Unbounded, Excluded);
        self.last = self.orders.range((after, Unbounded)).next().or_else(|| self.orders.first()).copied();
        self.last
    }
}

impl Front {
    /// Updates which of the changed orders follow the index.
    pub(super) fn note_followed(&mut self, account: usize, changed: &[u64]) {
        for number in changed {
            let order = self.accounts[account].open.get(number);
            if order.is_some_and(|order| order.terms.advanced.is_some()) {
                self.followed.orders.insert((account, *number));
            } else {
                self.followed.orders.remove(&(account, *number));
            }
        }
    }

    /// Reprices orders whose price reaches another tick after an index change. An order keeps its price while
    /// its account lacks funds, its instrument does not trade, or a request on it is in flight.
    pub(super) fn follow_index(&mut self) {
        let mut walked = 0;
        for _ in 0..self.followed.orders.len().min(FOLLOWED_PER_TENTH) {
            if walked >= WALKED_PER_TENTH {
                break;
            }
            let Some((account, number)) = self.followed.next() else { break };
            walked += self.accounts[account].pending.len() + self.unsent.count(account);
            let Some(new) = self.followed_terms(account, number) else { continue };
            walked += WALKS_PER_CHANGE * self.accounts[account].open.len();
            let connection = self.accounts[account].open.get(&number).and_then(|order| order.connection);
            // A rejected change is tried again in the next pass.
            let _ = self.send_change(account, new, Origin { connection, ..Origin::default() });
        }
    }

    /// Returns the new parameters of an order; none where it stays unchanged.
    fn followed_terms(&self, account: usize, number: u64) -> Option<NewTerms> {
        let known = &self.accounts[account];
        let order = known.open.get(&number)?;
        let (listing, market) = self.listed(order.listing);
        let is_meant = |work: &Work| matches!(work, Work::Edit { number: of, .. } | Work::Cancel { number: of, .. } if *of == number);
        let is_busy = known.pending.iter().any(|pending| is_meant(&pending.work));
        if is_busy || self.unsent.has(account, number) || market.state != TradingState::Trading {
            return None;
        }
        let (way, value) = order.terms.advanced?;
        let (price, _) = self.advanced_price(order.listing, order.side, way, hundredths(value)).ok()?;
        let price = listing.parse_price(price).ok()?;
        // The price band applies to every order.
        let (min, max) = market.band(listing, self.settings.band_ppm);
        let price: Price = if order.side == Side::Buy { price.min(max) } else { price.max(min) };
        let terms = Terms { is_auto_replaced: true, ..order.terms };
        (price != order.price).then_some(NewTerms { number, qty: order.qty, price, terms, display: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_turn() {
        let mut followed = Followed::default();
        assert_eq!(followed.next(), None);
        followed.orders.extend((0..600).map(|number| (number as usize % 2, number)));
        for _ in 0..2 {
            let seen: BTreeSet<_> = (0..600).filter_map(|_| followed.next()).collect();
            assert_eq!(seen.len(), 600, "each has one before any has another");
        }
        followed.orders.retain(|(account, number)| (*account, *number) == (1, 5));
        assert_eq!((followed.next(), followed.next()), (Some((1, 5)), Some((1, 5))));
    }
}

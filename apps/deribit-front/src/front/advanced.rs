//! Orders of options that are priced in dollars or by a volatility: their prices follow the index.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

use tickpath_types::{Price, Side, TradingState};

use super::Front;
use super::trading::NewTerms;
use crate::order::{Terms, hundredths};
use crate::pending::{Origin, Work};

/// Orders that one step looks at, as each is reckoned against all that its account holds; the others have their turn with the
/// next steps, ten a second.
const FOLLOWED_PER_STEP: usize = 16;

/// The orders that follow, each by the place of its account and its number, and which had its turn last.
#[derive(Default)]
pub(super) struct Followed {
    orders: BTreeSet<(usize, u64)>,
    last: Option<(usize, u64)>,
}

impl Followed {
    /// Those that have their turn now.
    fn turn(&mut self) -> Vec<(usize, u64)> {
        let after = self.last.map_or(Unbounded, Excluded);
        let rest = self.orders.range((after, Unbounded)).copied();
        let again =
            self.orders.iter().copied().take_while(|order| self.last.is_some_and(|last| *order <= last));
        let turn: Vec<_> = rest.chain(again).take(FOLLOWED_PER_STEP).collect();
        self.last = turn.last().copied().or(self.last);
        turn
    }
}

impl Front {
    /// Orders that an account's command changed: those that follow the index are known, and no others.
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

    /// The index is another: so are prices that follow from it, where they are another tick. An order keeps its price where the
    /// account has no funds for the new one, where its instrument does not trade, and while a request about it is on its way.
    pub(super) fn follow_index(&mut self) {
        for (account, number) in self.followed.turn() {
            let Some(new) = self.followed_terms(account, number) else { continue };
            let connection = self.accounts[account].open.get(&number).and_then(|order| order.connection);
            // What is refused now is looked at again with the next step.
            let _ = self.send_change(account, new, Origin { connection, ..Origin::default() });
        }
    }

    /// What an order is to be now; none where it stays as it is.
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
        // No further than any order may be.
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
    fn each_has_its_turn_and_a_turn_has_an_end() {
        let mut followed = Followed::default();
        assert!(followed.turn().is_empty());
        followed.orders.extend((0..40).map(|number| (number as usize % 2, number)));
        let mut seen = BTreeSet::new();
        for _ in 0..3 {
            let turn = followed.turn();
            assert_eq!(turn.len(), FOLLOWED_PER_STEP);
            seen.extend(turn);
        }
        assert_eq!(seen.len(), 40, "all had one, and some another");
        followed.orders.retain(|(account, number)| (*account, *number) == (1, 5));
        assert_eq!((followed.turn(), followed.turn()), (vec![(1, 5)], vec![(1, 5)]));
    }
}

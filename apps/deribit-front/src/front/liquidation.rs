//! Liquidation of accounts with equity below their maintenance margin: first orders, then positions in parts.

use tickpath_deribit::codes::{CancelReason, OrderState, OrderType, TimeInForce};
use tickpath_derivatives::Money;
use tickpath_types::{Qty, Side};

use super::Front;
use crate::order::Terms;
use crate::pending::{Intent, Origin};

/// Number of parts in which a position is closed.
const PIECES: u64 = 4;
/// Number of units below which a position is closed as a whole.
const WHOLE_BELOW: u64 = 16;

impl Front {
    /// Takes the next liquidation step of each account that is short of margin; once per second.
    pub(super) fn liquidate(&mut self) {
        for account in 0..self.accounts.len() {
            if self.accounts[account].positions.values().all(tickpath_derivatives::Position::is_flat) {
                continue;
            }
            for currency in self.currencies_of(account) {
                if self.is_short_of_margin(account, &currency) {
                    self.liquidate_in(account, &currency);
                }
            }
        }
    }

    /// Returns true while an account's equity in a currency is below its maintenance margin.
    pub(super) fn is_short_of_margin(&self, account: usize, currency: &str) -> bool {
        let figures = self.figures_of(account, currency, None);
        let needed = figures.maintenance_margin;
        needed > Money::ZERO && figures.equity() < needed
    }

    /// Cancels orders first: they hold margin and could trade with the liquidation orders.
    fn liquidate_in(&mut self, account: usize, currency: &str) {
        let known = &self.accounts[account];
        let is_meant = |listing: usize| self.settings.listings[listing].settlement == currency;
        let open: Vec<u64> =
            known.open.values().filter(|order| is_meant(order.listing)).map(|order| order.number).collect();
        let waiting: Vec<u64> = known
            .waiting
            .values()
            .filter(|order| is_meant(order.listing))
            .map(|order| order.number)
            .collect();
        let is_busy = !known.pending.is_empty();
        let reason = CancelReason::Autoliquidation;
        for number in &waiting {
            self.end_trigger(account, *number, OrderState::Cancelled, Some(reason));
        }
        for number in &open {
            if !self.accounts[account].is_cancelling(*number) {
                // If the queue is full, the next call a second later tries again.
                let _ = self.send_cancel(account, *number, None, None, reason);
            }
        }
        if open.is_empty() && !is_busy {
            self.close_some(account, currency);
        }
    }

    /// Closes a part of the position with the largest margin, at any market price within the band.
    fn close_some(&mut self, account: usize, currency: &str) {
        let positions = self.accounts[account].positions.iter();
        let needs = positions.filter_map(|(place, position)| {
            let (listing, market) = self.listed(*place);
            let (_, margin) = listing.contract.margin(position.size, market.mark, market.index);
            (listing.settlement == currency && margin > Money::ZERO).then_some((
                margin,
                *place,
                position.size,
            ))
        });
        let Some((_, listing, size)) = needs.max() else { return };
        let side = if size > 0 { Side::Sell } else { Side::Buy };
        let units = size.unsigned_abs();
        let part = if units < WHOLE_BELOW { units } else { units.div_ceil(PIECES) };
        let qty = Qty(part).min(self.settings.listings[listing].max_qty);
        let Ok(price) = self.price_of(listing, side, OrderType::Market, None) else { return };
        let terms = Terms {
            order_type: OrderType::Liquidation,
            time_in_force: TimeInForce::ImmediateOrCancel,
            is_reduce_only: true,
            ..Terms::default()
        };
        let intent = Intent { listing, side, qty, price, terms, display: Qty::ZERO, moves: 0 };
        if self.enter_as(account, intent, Origin { is_forced: true, ..Origin::default() }).is_ok() {
            self.counters.liquidations.add(1);
        }
    }
}

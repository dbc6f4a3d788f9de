//! Risk figures of an account: option greeks, deltas and liquidation prices.

use tickpath_derivatives::{Money, Style};
use tickpath_types::Qty;

use super::Front;
use super::account::Wanted;

impl Front {
    /// Returns the greeks of the options of a currency, and all deltas by index. They are only displayed.
    pub(super) fn exposures(&self, account: usize, currency: &str) -> ([Money; 4], Vec<(usize, Money)>) {
        let mut greeks = [Money::ZERO; 4];
        let mut deltas: Vec<(usize, Money)> = Vec::new();
        for (place, position) in &self.accounts[account].positions {
            let (listing, market) = self.listed(*place);
            if listing.settlement != currency || position.is_flat() {
                continue;
            }
            let delta = match self.sensitivities(*place) {
                Some(found) => {
                    let all = [found.delta, found.gamma, found.theta, found.vega]
                        .map(|one| self.of_position(*place, position.size, one));
                    greeks.iter_mut().zip(all).for_each(|(sum, one)| *sum += one);
                    all[0]
                }
                None if listing.contract.is_option() => Money::ZERO,
                None => {
                    let value = listing.contract.value(Qty(position.size.unsigned_abs()), market.mark);
                    Money(i128::from(position.size.signum()) * value.0)
                }
            };
            match deltas.iter_mut().find(|(index, _)| *index == listing.index) {
                Some((_, sum)) => *sum += delta,
                None => deltas.push((listing.index, delta)),
            }
        }
        (greeks, deltas)
    }

    /// Returns the mark price at which the account's equity equals its maintenance margin, all else
    /// unchanged; none if there is no such price.
    pub(super) fn liquidation_price(&self, account: usize, place: usize) -> Option<Money> {
        let (listing, market) = self.listed(place);
        let (position, contract) = (self.accounts[account].position(place), &listing.contract);
        if !listing.is_future() || position.is_flat() || market.mark.0 <= 0 {
            return None;
        }
        let figures = self.figures_of(account, &listing.settlement, None);
        let qty = Qty(position.size.unsigned_abs());
        let value = contract.value(qty, market.mark);
        let own = contract.margin(position.size, market.mark, market.index).1;
        let others = figures.maintenance_margin - own;
        // Equity and margin are linear in the value of the position, so one division finds the intersection.
        let is_inverse = contract.style == Style::Inverse;
        let sign = i128::from(position.size.signum());
        let direction = if is_inverse { -sign } else { sign };
        let distance = value.scaled(direction, 1) + others - figures.equity();
        let slope = direction * 1_000_000 - i128::from(contract.maintenance_margin_ppm);
        let value = distance.scaled(1_000_000, slope.abs().max(1));
        let value = Money(value.0 * slope.signum());
        (value.0 > 0).then(|| contract.mean_price(qty, value))
    }

    /// Returns the amount that open spot orders hold of a currency.
    pub(super) fn spot_reserve(&self, account: usize, currency: &str) -> Money {
        let orders = self.accounts[account].open.values();
        let is_pair = |place: usize| self.settings.listings[place].contract.style == Style::Spot;
        let of_pairs = orders.filter(|order| is_pair(order.listing));
        of_pairs.map(|order| self.held_for(currency, &Wanted::open(order))).sum()
    }
}

//! Positions, and their exact profit and loss.

use tickpath_faults::failpoint;
use tickpath_types::{InstrumentId, Price, Qty, Side};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Bbo, Money};

/// The price at which an open position is valued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkTo {
    /// Half-way between best bid and ask, rounded down to the price unit.
    #[default]
    Mid,
    /// The price at which the position could be closed now: the bid if it is long, the ask if short.
    Bbo,
}

/// The position in one instrument: net quantity, cost, and profit and loss.
///
/// The total cost is kept, never an average: `total_pnl` is always exactly the cash flow of all fills plus
/// the position at its mark. A fill that closes part of a position releases its share of the cost, rounded
/// towards zero to 10^-4. The rounding error stays in the cost of the remaining position. It moves profit
/// between realised and unrealised, and is zero when the position is flat.
///
/// Plain data without padding, so that a seqlock cell can publish it to other threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Position {
    open_cost: Money,
    realised: Money,
    bought: TradedTotals,
    sold: TradedTotals,
    net_qty: i64,
    bid: LastPrice,
    ask: LastPrice,
    last_px: LastPrice,
    reserved: u64,
}

/// The latest price of a market side or of an own fill; not known before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct LastPrice {
    price: i64,
    is_known: u64,
}

impl LastPrice {
    const fn of(price: Price) -> LastPrice {
        LastPrice { price: price.0, is_known: 1 }
    }

    fn get(self) -> Option<Price> {
        (self.is_known != 0).then_some(Price(self.price))
    }
}

/// Totals of all fills of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct TradedTotals {
    /// Sum of the fills' notional values.
    pub notional: Money,
    /// Sum of the fills' quantities.
    pub qty: Qty,
    /// Number of fills.
    pub fill_count: u64,
}

impl Position {
    /// Applies one fill of an own order.
    ///
    /// The position saturates if the quantities of a session's fills add up to more than 2^63 - 1.
    pub fn apply_fill(&mut self, side: Side, price: Price, qty: Qty) {
        let notional = Money::notional(price, qty);
        let traded = match side {
            Side::Buy => &mut self.bought,
            Side::Sell => &mut self.sold,
        };
        traded.qty.0 = traded.qty.0.saturating_add(qty.0);
        traded.notional += notional;
        traded.fill_count += 1;
        self.last_px = LastPrice::of(price);
        self.take(side, price, qty);
    }

    /// Reverses one fill that the venue broke: net quantity and cash flow no longer include it.
    ///
    /// Profit is calculated as if an opposite fill at the same price came now. Fills after the reversed one
    /// are not recalculated, so the total may be split differently between realised and unrealised.
    pub fn reverse_fill(&mut self, side: Side, price: Price, qty: Qty) {
        let traded = match side {
            Side::Buy => &mut self.bought,
            Side::Sell => &mut self.sold,
        };
        traded.qty.0 = traded.qty.0.saturating_sub(qty.0);
        traded.notional -= Money::notional(price, qty);
        traded.fill_count = traded.fill_count.saturating_sub(1);
        self.take(side.opposite(), price, qty);
    }

    /// Applies a fill to net quantity, cost and realised profit, but not to the traded totals.
    fn take(&mut self, side: Side, price: Price, qty: Qty) {
        let closed = self.closed_by(side, qty);
        let opened = Qty(qty.0 - closed.0);
        self.close(side, price, closed);
        self.net_qty = self.net_qty.saturating_add(signed(side, opened));
        self.open_cost += Money(i128::from(side.sign()) * Money::notional(price, opened).0);
    }

    /// Returns the part of a fill that closes the open position.
    fn closed_by(&self, side: Side, qty: Qty) -> Qty {
        let closes = self.net_qty.signum() == -side.sign();
        if closes { Qty(qty.0.min(self.net_qty.unsigned_abs())) } else { Qty::ZERO }
    }

    fn close(&mut self, side: Side, price: Price, qty: Qty) {
        if qty.is_zero() {
            return;
        }
        let released = self.share_of_cost(qty);
        let proceeds = Money(-i128::from(side.sign()) * Money::notional(price, qty).0);
        failpoint!(CostNotReleased: released = Money::ZERO);
        self.realised += proceeds - released;
        self.open_cost -= released;
        self.net_qty += signed(side, qty);
    }

    fn share_of_cost(&self, qty: Qty) -> Money {
        let open = i128::from(self.net_qty.unsigned_abs());
        let (cost, part) = (self.open_cost.0, i128::from(qty.0));
        // Divide first, so that no product exceeds the cost or `open * part`.
        Money(cost / open * part + cost % open * part / open)
    }

    /// Records the market prices for valuation; a side without orders keeps its last price.
    pub fn mark(&mut self, bbo: &Bbo) {
        if let Some((price, _)) = bbo.bid {
            self.bid = LastPrice::of(price);
        }
        if let Some((price, _)) = bbo.ask {
            self.ask = LastPrice::of(price);
        }
    }

    /// Returns the net quantity: positive when long, negative when short.
    #[must_use]
    pub const fn net_qty(&self) -> i64 {
        self.net_qty
    }

    /// Returns the cost of the open position; negative when short.
    #[must_use]
    pub const fn open_cost(&self) -> Money {
        self.open_cost
    }

    /// Returns the profit or loss of the quantity that was closed.
    #[must_use]
    pub const fn realised_pnl(&self) -> Money {
        self.realised
    }

    /// Returns the profit or loss of closing the position at its mark price; zero when flat.
    #[must_use]
    pub fn unrealised_pnl(&self, mark_to: MarkTo) -> Money {
        match self.mark_price(mark_to) {
            Some(mark) => Money(i128::from(mark.0) * i128::from(self.net_qty)) - self.open_cost,
            None => Money::ZERO,
        }
    }

    /// Returns the sum of realised and unrealised profit and loss.
    #[must_use]
    pub fn total_pnl(&self, mark_to: MarkTo) -> Money {
        self.realised + self.unrealised_pnl(mark_to)
    }

    /// Returns the price at which the position is valued: the market price, else that of the latest own fill,
    /// if any.
    #[must_use]
    pub fn mark_price(&self, mark_to: MarkTo) -> Option<Price> {
        let market = match (mark_to, self.net_qty >= 0) {
            (MarkTo::Mid, _) => self.bid.get().zip(self.ask.get()).map(|(bid, ask)| {
                let twice = i128::from(bid.0) + i128::from(ask.0);
                Price(i64::try_from(twice.div_euclid(2)).expect("a mean lies between its two terms"))
            }),
            (MarkTo::Bbo, true) => self.bid.get(),
            (MarkTo::Bbo, false) => self.ask.get(),
        };
        market.or(self.last_px.get())
    }

    /// Returns the totals of all purchases.
    #[must_use]
    pub const fn bought(&self) -> &TradedTotals {
        &self.bought
    }

    /// Returns the totals of all sales.
    #[must_use]
    pub const fn sold(&self) -> &TradedTotals {
        &self.sold
    }

    /// Returns the quantity bought plus the quantity sold.
    #[must_use]
    pub const fn volume(&self) -> Qty {
        Qty(self.bought.qty.0.saturating_add(self.sold.qty.0))
    }
}

fn signed(side: Side, qty: Qty) -> i64 {
    side.sign().saturating_mul(i64::try_from(qty.0).unwrap_or(i64::MAX))
}

/// The positions in all instruments of a venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Positions {
    by_instrument: Box<[Position]>,
    mark_to: MarkTo,
}

/// Totals of the positions in all instruments; meaningful only if all have the same currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Profit or loss of the quantities that were closed.
    pub realised: Money,
    /// Profit or loss of closing every position at its mark price.
    pub unrealised: Money,
    /// Quantity bought plus quantity sold.
    pub volume: Qty,
    /// Number of fills.
    pub fill_count: u64,
}

impl Totals {
    /// Returns the sum of realised and unrealised profit or loss.
    #[must_use]
    pub fn pnl(&self) -> Money {
        self.realised + self.unrealised
    }
}

impl Positions {
    /// Creates flat positions in the instruments 1 to `instrument_count`.
    #[must_use]
    pub fn new(instrument_count: usize, mark_to: MarkTo) -> Positions {
        Positions { by_instrument: vec![Position::default(); instrument_count].into(), mark_to }
    }

    /// Returns the position in an instrument; `None` when there is no such instrument.
    #[must_use]
    pub fn get(&self, instrument: InstrumentId) -> Option<&Position> {
        self.by_instrument.get(usize::from(instrument.0).wrapping_sub(1))
    }

    pub(crate) fn get_mut(&mut self, instrument: InstrumentId) -> Option<&mut Position> {
        self.by_instrument.get_mut(usize::from(instrument.0).wrapping_sub(1))
    }

    /// Returns every instrument with its position.
    pub fn iter(&self) -> impl Iterator<Item = (InstrumentId, &Position)> {
        (1_u16..).map(InstrumentId).zip(&self.by_instrument)
    }

    /// Returns the total profit or loss in one instrument; zero when there is no such instrument.
    #[must_use]
    pub fn pnl(&self, instrument: InstrumentId) -> Money {
        self.get(instrument).map_or(Money::ZERO, |position| position.total_pnl(self.mark_to))
    }

    /// Returns the kind of price at which open positions are valued.
    #[must_use]
    pub const fn mark_to(&self) -> MarkTo {
        self.mark_to
    }

    /// Returns the totals of all instruments.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.by_instrument.iter().fold(Totals::default(), |sum, position| Totals {
            realised: sum.realised + position.realised,
            unrealised: sum.unrealised + position.unrealised_pnl(self.mark_to),
            volume: Qty(sum.volume.0.saturating_add(position.volume().0)),
            fill_count: sum.fill_count + position.bought.fill_count + position.sold.fill_count,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bbo(bid: i64, ask: i64) -> Bbo {
        Bbo { bid: Some((Price(bid), Qty(1))), ask: Some((Price(ask), Qty(1))) }
    }

    fn after(fills: &[(Side, i64, u64)]) -> Position {
        let mut position = Position::default();
        for (side, price, qty) in fills {
            position.apply_fill(*side, Price(*price), Qty(*qty));
        }
        position
    }

    #[test]
    fn fills_close_at_cost_and_the_rest_opens_at_its_price() {
        use Side::{Buy, Sell};
        for (fills, net_qty, realised, open_cost) in [
            (&[(Buy, 100, 10), (Sell, 110, 4)][..], 6, 40, 600),
            (&[(Buy, 100, 10), (Sell, 110, 4), (Sell, 90, 6)], 0, -20, 0),
            // From long to short, and from short to long.
            (&[(Buy, 100, 10), (Sell, 120, 15)], -5, 200, -600),
            (&[(Sell, 100, 10), (Buy, 90, 12)], 2, 100, 180),
            // Cost 301 for 3: closing 1 releases 100 (100.33 rounded), and 201 stay for the other 2.
            (&[(Buy, 100, 2), (Buy, 101, 1), (Sell, 100, 1)], 2, 0, 201),
            (&[(Buy, 100, 2), (Buy, 101, 1), (Sell, 100, 1), (Sell, 100, 2)], 0, -1, 0),
        ] {
            let position = after(fills);
            let found = (position.net_qty(), position.realised_pnl(), position.open_cost());
            assert_eq!(found, (net_qty, Money(realised), Money(open_cost)), "{fills:?}");
        }
        let flat = after(&[(Buy, 100, 10), (Sell, 110, 4), (Sell, 90, 6)]);
        assert_eq!((flat.unrealised_pnl(MarkTo::Mid), flat.volume()), (Money::ZERO, Qty(20)));
        assert_eq!(flat.sold().notional, Money(980));
    }

    #[test]
    fn marks_keep_the_last_price_of_an_empty_side() {
        let mut long = after(&[(Side::Buy, 100, 2)]);
        assert_eq!(long.unrealised_pnl(MarkTo::Mid), Money::ZERO, "the own fill is the only price known");
        long.mark(&bbo(103, 106));
        assert_eq!(long.mark_price(MarkTo::Mid), Some(Price(104)));
        assert_eq!(long.unrealised_pnl(MarkTo::Mid), Money(8));
        assert_eq!(long.unrealised_pnl(MarkTo::Bbo), Money(6));
        long.mark(&Bbo { bid: None, ..bbo(0, 110) });
        assert_eq!(long.unrealised_pnl(MarkTo::Bbo), Money(6));
        assert_eq!(long.unrealised_pnl(MarkTo::Mid), Money(12));

        let mut short = after(&[(Side::Sell, 100, 2)]);
        short.mark(&bbo(103, 106));
        assert_eq!(short.total_pnl(MarkTo::Bbo), Money(-12));
    }

    #[test]
    fn positions_are_found_by_instrument_and_add_up() {
        let mut positions = Positions::new(2, MarkTo::Mid);
        assert!(positions.get(InstrumentId(0)).is_none() && positions.get(InstrumentId(3)).is_none());
        positions.get_mut(InstrumentId(1)).unwrap().apply_fill(Side::Buy, Price(100), Qty(1));
        positions.get_mut(InstrumentId(1)).unwrap().apply_fill(Side::Sell, Price(104), Qty(1));
        positions.get_mut(InstrumentId(2)).unwrap().apply_fill(Side::Buy, Price(50), Qty(3));
        positions.get_mut(InstrumentId(2)).unwrap().mark(&bbo(48, 50));
        let totals = positions.totals();
        assert_eq!((totals.realised, totals.unrealised, totals.pnl()), (Money(4), Money(-3), Money(1)));
        assert_eq!((totals.volume, totals.fill_count), (Qty(5), 3));
        assert_eq!(positions.pnl(InstrumentId(2)), Money(-3));
    }

    fn fills() -> impl Strategy<Value = Vec<(bool, i64, u64)>> {
        prop::collection::vec((any::<bool>(), 1_i64..2_000_000, 1_u64..10_000), 1..200)
    }

    proptest! {
        /// Compares with a reference model without cost basis: the cash flow and the sum of the signed fills.
        #[test]
        fn total_pnl_is_cash_flow_plus_position_at_mark(
            fills in fills(), bid in 1_i64..2_000_000, spread in 0_i64..500,
        ) {
            let (mut position, mut cash, mut net_qty) = (Position::default(), 0_i128, 0_i128);
            for (is_buy, price, qty) in fills {
                let side = if is_buy { Side::Buy } else { Side::Sell };
                position.apply_fill(side, Price(price), Qty(qty));
                net_qty += i128::from(side.sign()) * i128::from(qty);
                cash -= i128::from(side.sign()) * i128::from(price) * i128::from(qty);

                prop_assert_eq!(i128::from(position.net_qty()), net_qty);
                prop_assert_eq!(position.realised_pnl().0 - position.open_cost().0, cash);
                prop_assert!(net_qty != 0 || position.open_cost() == Money::ZERO);
                prop_assert!(net_qty.signum() * position.open_cost().0.signum() >= 0);
            }
            position.mark(&bbo(bid, bid + spread));
            for mark_to in [MarkTo::Mid, MarkTo::Bbo] {
                let mark = i128::from(position.mark_price(mark_to).unwrap().0);
                prop_assert_eq!(position.total_pnl(mark_to).0, cash + net_qty * mark);
            }
        }

        /// After any reversals, the position has the cash flow and net quantity of the remaining fills.
        #[test]
        fn a_reversed_fill_leaves_no_trace(fills in fills(), void in any::<u64>(), mark in 1_i64..2_000_000) {
            let (mut position, mut expected) = (Position::default(), Position::default());
            let is_void = |at: usize| void >> (at % 64) & 1 == 1;
            let side = |is_buy| if is_buy { Side::Buy } else { Side::Sell };
            for (at, (is_buy, price, qty)) in fills.iter().enumerate() {
                position.apply_fill(side(*is_buy), Price(*price), Qty(*qty));
                if at >= 3 && is_void(at - 3) {
                    let (is_buy, price, qty) = fills[at - 3];
                    position.reverse_fill(side(is_buy), Price(price), Qty(qty));
                }
            }
            for (at, (is_buy, price, qty)) in fills.iter().enumerate() {
                if !is_void(at) || at + 3 >= fills.len() {
                    expected.apply_fill(side(*is_buy), Price(*price), Qty(*qty));
                }
            }
            for position in [&mut position, &mut expected] {
                position.mark(&bbo(mark, mark));
            }
            prop_assert_eq!(position.net_qty(), expected.net_qty());
            prop_assert_eq!(position.total_pnl(MarkTo::Mid), expected.total_pnl(MarkTo::Mid));
            prop_assert_eq!((position.bought(), position.sold()), (expected.bought(), expected.sold()));
        }

        /// Compares realised profit with a reference model at average cost, within the rounding error.
        #[test]
        fn realised_pnl_is_that_of_the_average_cost_within_one_unit_a_fill(fills in fills()) {
            let (mut position, mut net_qty, mut average, mut realised) = (Position::default(), 0.0, 0.0, 0.0);
            let count = fills.len() as f64;
            for (is_buy, price, qty) in fills {
                let side = if is_buy { Side::Buy } else { Side::Sell };
                position.apply_fill(side, Price(price), Qty(qty));
                let (sign, price, qty) = (side.sign() as f64, price as f64, qty as f64);
                let closed = if net_qty * sign < 0.0 { qty.min(f64::abs(net_qty)) } else { 0.0 };
                realised += closed * (price - average) * -sign;
                let opened = qty - closed;
                let rest = f64::abs(net_qty) - closed;
                if opened > 0.0 {
                    average = (average * rest + price * opened) / (rest + opened);
                }
                net_qty += sign * qty;
            }
            let error = position.realised_pnl().0 as f64 - realised;
            prop_assert!(error.abs() <= count + realised.abs() * 1e-9 + 1.0, "off by {error}");
        }
    }
}

//! Pre-trade risk checks.

use tickpath_faults::failpoint;
use tickpath_types::{Instrument, InstrumentId, Qty, Side, Symbol};

use crate::Money;

/// The risk limits of one instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of the orders that a strategy enters; not checked here.
    pub clip: Qty,
    /// Threshold at which the strategy acts, in a unit that the strategy defines; not checked here.
    pub threshold: u64,
    /// Maximum quantity of one order.
    pub max_order_qty: Qty,
    /// Maximum position, long or short, if the order and all open orders of its side trade.
    pub max_position: Qty,
    /// Maximum loss, realised plus unrealised. Beyond it only orders that reduce the position pass.
    pub max_loss: Money,
    /// Maximum number of open orders.
    pub max_open_orders: u32,
}

impl Default for Limits {
    /// Returns limits for a market maker in the demonstration's instruments: prices near 100 and order sizes
    /// of a few hundred.
    fn default() -> Self {
        Limits {
            clip: Qty(100),
            threshold: 40,
            max_order_qty: Qty(1_000),
            max_position: Qty(5_000),
            max_loss: Money(50_000 * 10_000),
            max_open_orders: 16,
        }
    }
}

tickpath_types::enumerated! {
    /// The result of an order check.
    pub enum RiskResult {
        /// The order passes.
        Allowed,
        /// The quantity is above [`Limits::max_order_qty`].
        OrderTooLarge,
        /// Together with all open orders of its side, the order could exceed [`Limits::max_position`].
        PositionTooLarge,
        /// The loss is above [`Limits::max_loss`] and the order could do more than reduce the position.
        LossTooLarge,
        /// The number of open orders has reached [`Limits::max_open_orders`].
        TooManyOpenOrders,
        /// The instrument's book is not live, or has no market data yet.
        BookNotLive,
    }
}

impl RiskResult {
    /// Returns the name for counters, e.g. `"position_too_large"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RiskResult::Allowed => "allowed",
            RiskResult::OrderTooLarge => "order_too_large",
            RiskResult::PositionTooLarge => "position_too_large",
            RiskResult::LossTooLarge => "loss_too_large",
            RiskResult::TooManyOpenOrders => "too_many_open_orders",
            RiskResult::BookNotLive => "book_not_live",
        }
    }
}

/// The state of an instrument that an order check uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// True if the book can be trusted.
    pub is_book_live: bool,
    /// Net quantity; positive when long.
    pub net_qty: i64,
    /// Realised plus unrealised profit or loss.
    pub pnl: Money,
    /// Quantity that the open orders of the order's side could still trade.
    pub open_qty: Qty,
    /// Number of open orders, both sides.
    pub open_orders: u32,
}

/// An order to check, and the exposure that it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProposedOrder {
    /// Buy or sell.
    pub side: Side,
    /// Quantity that the order could trade.
    pub qty: Qty,
    /// Quantity added to the exposure of its side: `qty`, or for a replacement only the excess over the order
    /// that it replaces.
    pub added_qty: Qty,
    /// Number of additional open orders: 1, or 0 for a replacement.
    pub added_orders: u32,
}

/// A quantity limit of less than one lot: set at least a lot, or 0 to allow nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "limits of {symbol}: {name} = {qty} is less than the instrument's lot of {lot}: set at least a lot, or 0 to allow \
     nothing"
)]
pub struct LimitBelowLot {
    symbol: Symbol,
    name: &'static str,
    qty: Qty,
    lot: Qty,
}

impl Limits {
    /// Returns limits for a taker in the demonstration's instruments.
    #[must_use]
    pub fn taker() -> Limits {
        Limits { threshold: 700_000, ..Limits::default() }
    }

    /// Checks that these limits suit an instrument: a quantity other than 0 is at least a lot.
    ///
    /// # Errors
    /// [`LimitBelowLot`] with the limit's name.
    pub fn check_lots(&self, instrument: &Instrument) -> Result<(), LimitBelowLot> {
        let (symbol, lot) = (instrument.symbol, instrument.lot_size);
        let quantities =
            [("clip", self.clip), ("max_order", self.max_order_qty), ("max_position", self.max_position)];
        let below = quantities.into_iter().find(|(_, qty)| !qty.is_zero() && *qty < lot);
        below.map_or(Ok(()), |(name, qty)| Err(LimitBelowLot { symbol, name, qty, lot }))
    }

    /// Returns these limits, rounded down to whole lots; the clip is at most the instrument's `max_qty`.
    #[must_use]
    pub fn in_lots(self, instrument: &Instrument) -> Limits {
        let lot = instrument.lot_size.0;
        let in_lots = |qty: Qty| Qty(qty.0 / lot * lot);
        Limits {
            clip: in_lots(self.clip.min(instrument.max_qty)),
            max_order_qty: in_lots(self.max_order_qty),
            max_position: in_lots(self.max_position),
            ..self
        }
    }

    /// Checks one order. Returns the first check that fails, else `Allowed`: the book's health is checked
    /// first, then the limits in the order of [`RiskResult`].
    #[must_use]
    pub fn check(&self, order: &ProposedOrder, now: &Exposure) -> RiskResult {
        let open_qty = now.open_qty.0;
        failpoint!(OpenOrdersUnrisked: open_qty = 0);
        let max_open_orders = self.max_open_orders.max(now.open_orders);
        failpoint!(OrderCountUnlimited: max_open_orders = u32::MAX);
        let worst = i128::from(now.net_qty) * i128::from(order.side.sign())
            + i128::from(open_qty)
            + i128::from(order.added_qty.0);
        if !now.is_book_live {
            RiskResult::BookNotLive
        } else if order.qty > self.max_order_qty {
            RiskResult::OrderTooLarge
        } else if worst > i128::from(self.max_position.0) {
            RiskResult::PositionTooLarge
        } else if now.pnl < -self.max_loss && worst > 0 {
            RiskResult::LossTooLarge
        } else if now.open_orders.saturating_add(order.added_orders) > max_open_orders {
            RiskResult::TooManyOpenOrders
        } else {
            RiskResult::Allowed
        }
    }
}

/// The limits of every instrument, and a counter for each check result.
#[derive(Clone, Debug)]
pub struct Risk {
    limits: Box<[Limits]>,
    counts: [u64; RiskResult::COUNT],
}

impl Risk {
    /// Creates the checks; `limits` are those of instrument 1, 2 and so on.
    #[must_use]
    pub fn new(limits: &[Limits]) -> Risk {
        Risk { limits: limits.into(), counts: [0; RiskResult::COUNT] }
    }

    /// Returns the limits of an instrument; `None` when there is no such instrument.
    #[must_use]
    pub fn limits(&self, instrument: InstrumentId) -> Option<&Limits> {
        self.limits.get(usize::from(instrument.0).wrapping_sub(1))
    }

    /// Checks an order and counts the result; an instrument without limits is refused as `BookNotLive`.
    pub fn check(&mut self, instrument: InstrumentId, order: &ProposedOrder, now: &Exposure) -> RiskResult {
        let result = match self.limits(instrument) {
            Some(limits) => limits.check(order, now),
            None => RiskResult::BookNotLive,
        };
        self.counts[result.index()] += 1;
        result
    }

    /// Returns the number of checks with this result.
    #[must_use]
    pub const fn count(&self, result: RiskResult) -> u64 {
        self.counts[result.index()]
    }
}

#[cfg(test)]
mod tests {
    use tickpath_types::Price;

    use super::*;

    const LIMITS: Limits = Limits {
        clip: Qty(10),
        threshold: 0,
        max_order_qty: Qty(50),
        max_position: Qty(100),
        max_loss: Money(1_000),
        max_open_orders: 3,
    };
    const IDLE: Exposure =
        Exposure { is_book_live: true, net_qty: 0, pnl: Money::ZERO, open_qty: Qty::ZERO, open_orders: 0 };

    fn enter(side: Side, qty: u64, now: Exposure) -> RiskResult {
        LIMITS.check(&ProposedOrder { side, qty: Qty(qty), added_qty: Qty(qty), added_orders: 1 }, &now)
    }

    #[test]
    fn each_limit_holds_at_the_bound_and_refuses_one_beyond() {
        for side in Side::BOTH {
            let sign = side.sign();
            assert_eq!(enter(side, 50, IDLE), RiskResult::Allowed);
            assert_eq!(enter(side, 51, IDLE), RiskResult::OrderTooLarge);

            let held = Exposure { net_qty: 40 * sign, open_qty: Qty(50), ..IDLE };
            assert_eq!(enter(side, 10, held), RiskResult::Allowed);
            assert_eq!(enter(side, 11, held), RiskResult::PositionTooLarge);
            let opposite = Exposure { net_qty: -100 * sign, open_qty: Qty(150), ..IDLE };
            assert_eq!(enter(side, 50, opposite), RiskResult::Allowed);
            assert_eq!(
                enter(side, 50, Exposure { open_qty: Qty(151), ..opposite }),
                RiskResult::PositionTooLarge
            );

            assert_eq!(enter(side, 1, Exposure { open_orders: 2, ..IDLE }), RiskResult::Allowed);
            assert_eq!(enter(side, 1, Exposure { open_orders: 3, ..IDLE }), RiskResult::TooManyOpenOrders);

            assert_eq!(enter(side, 1, Exposure { pnl: Money(-1_000), ..IDLE }), RiskResult::Allowed);
            assert_eq!(enter(side, 1, Exposure { pnl: Money(-1_001), ..IDLE }), RiskResult::LossTooLarge);
        }
        assert_eq!(enter(Side::Buy, 1, Exposure { is_book_live: false, ..IDLE }), RiskResult::BookNotLive);
    }

    #[test]
    fn after_the_largest_loss_only_reducing_passes() {
        let losing = Exposure { net_qty: 20, pnl: Money(-2_000), ..IDLE };
        assert_eq!(enter(Side::Sell, 20, losing), RiskResult::Allowed);
        assert_eq!(enter(Side::Sell, 21, losing), RiskResult::LossTooLarge);
        assert_eq!(enter(Side::Sell, 1, Exposure { open_qty: Qty(20), ..losing }), RiskResult::LossTooLarge);
        assert_eq!(enter(Side::Buy, 1, losing), RiskResult::LossTooLarge);
    }

    #[test]
    fn a_replacement_adds_only_what_exceeds_the_old_order() {
        let full = Exposure { open_qty: Qty(100), open_orders: 3, ..IDLE };
        let same = ProposedOrder { side: Side::Buy, qty: Qty(50), added_qty: Qty::ZERO, added_orders: 0 };
        assert_eq!(LIMITS.check(&same, &full), RiskResult::Allowed);
        let more = ProposedOrder { added_qty: Qty(1), ..same };
        assert_eq!(LIMITS.check(&more, &full), RiskResult::PositionTooLarge);
    }

    #[test]
    fn results_are_counted() {
        let mut risk = Risk::new(&[LIMITS]);
        let order = ProposedOrder { side: Side::Buy, qty: Qty(51), added_qty: Qty(51), added_orders: 1 };
        assert_eq!(risk.check(InstrumentId(1), &order, &IDLE), RiskResult::OrderTooLarge);
        assert_eq!(risk.check(InstrumentId(2), &order, &IDLE), RiskResult::BookNotLive);
        assert_eq!(risk.count(RiskResult::OrderTooLarge), 1);
        assert_eq!(risk.count(RiskResult::BookNotLive), 1);
        assert_eq!(risk.count(RiskResult::Allowed), 0);
    }

    fn lots_of_100() -> Instrument {
        let instrument = Instrument::in_cents(InstrumentId(1), Symbol(*b"A       "), Price(100));
        Instrument { lot_size: Qty(100), max_qty: Qty(950), ..instrument }
    }

    #[test]
    fn limits_are_rounded_down_to_lots_and_never_up() {
        let limits = |clip, max_order_qty, max_position| {
            let limits = Limits { clip: Qty(clip), max_order_qty: Qty(max_order_qty), ..LIMITS };
            Limits { max_position: Qty(max_position), ..limits }.in_lots(&lots_of_100())
        };
        let rounded = limits(1_000, 250, 5_050);
        assert_eq!(rounded.clip, Qty(900), "whole lots of what the instrument allows");
        assert_eq!((rounded.max_order_qty, rounded.max_position), (Qty(200), Qty(5_000)));
        let none = limits(0, 0, 0);
        assert_eq!((none.clip, none.max_order_qty, none.max_position), (Qty(0), Qty(0), Qty(0)));
    }

    #[test]
    fn a_limit_of_less_than_a_lot_is_refused() {
        let maker = Limits::default();
        let none = Limits { clip: Qty(0), max_order_qty: Qty(0), max_position: Qty(0), ..maker };
        assert!([maker, none].iter().all(|limits| limits.check_lots(&lots_of_100()).is_ok()));
        for (name, limits) in [
            ("clip", Limits { clip: Qty(99), ..maker }),
            ("max_order", Limits { max_order_qty: Qty(1), ..maker }),
            ("max_position", Limits { max_position: Qty(99), ..maker }),
        ] {
            let error = limits.check_lots(&lots_of_100()).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("lot of 100"), "{error}");
        }
    }
}

//! Best prices, and features computed from market data, for strategies.

use tickpath_types::{BookHealth, MarketUpdate, Nanos, Price, Qty, Sequence, Side, UpdateKind};

/// A ratio of 1, in parts per million.
pub const PPM: u64 = 1_000_000;

/// Best bid and ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bbo {
    /// Best bid price and the total quantity at it; `None` without bids.
    pub bid: Option<(Price, Qty)>,
    /// Best ask price and the total quantity at it; `None` without asks.
    pub ask: Option<(Price, Qty)>,
}

impl Bbo {
    /// Returns the best price and its quantity on a side.
    #[must_use]
    pub const fn best(&self, side: Side) -> Option<(Price, Qty)> {
        match side {
            Side::Buy => self.bid,
            Side::Sell => self.ask,
        }
    }

    /// True if the bid is at or above the ask, as before an auction.
    #[inline]
    #[must_use]
    pub const fn is_crossed(&self) -> bool {
        matches!((self.bid, self.ask), (Some((bid, _)), Some((ask, _))) if bid.0 >= ask.0)
    }

    /// Returns the price between best bid and ask, weighted towards the side with less quantity:
    /// `(bid * ask_qty + ask * bid_qty) / (bid_qty + ask_qty)`.
    ///
    /// Calculated exactly in integers and rounded to the nearest price unit, halves up. `None` if a side is
    /// empty, or if the calculation overflows 128 bits, which no real market causes.
    #[must_use]
    pub fn fair_price(&self) -> Option<Price> {
        let ((bid, bid_qty), (ask, ask_qty)) = (self.bid?, self.ask?);
        // Equals bid + (ask - bid) * bid_qty / total, which keeps the numbers small.
        let total = i128::from(bid_qty.0) + i128::from(ask_qty.0);
        let spread = i128::from(ask.0) - i128::from(bid.0);
        let twice = spread.checked_mul(2 * i128::from(bid_qty.0))?.checked_add(total)?;
        let above_bid = match (i64::try_from(twice), i64::try_from(2 * total)) {
            (Ok(twice), Ok(divisor)) => i128::from(twice.div_euclid(divisor)),
            _ => twice.div_euclid(2 * total),
        };
        i64::try_from(i128::from(bid.0) + above_bid).ok().map(Price)
    }
}

/// The executions of one incoming order, and the quantity at the best price before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggressiveTrade {
    /// Side of the incoming order.
    pub aggressor: Side,
    /// Quantity traded so far. Every execution of one incoming order has the same venue time, so executions
    /// of one side and one time count together.
    pub qty: Qty,
    /// Quantity at the best price of the side that the order hit, before the order's first execution.
    pub best_qty: Qty,
    /// The venue's time of the trade, since midnight.
    pub ts_event: Nanos,
}

impl AggressiveTrade {
    /// Returns the traded quantity in parts per million of the quantity at the best price; saturates.
    #[must_use]
    pub fn ratio_ppm(&self) -> u64 {
        let ratio = u128::from(self.qty.0) * u128::from(PPM) / u128::from(self.best_qty.0.max(1));
        u64::try_from(ratio).unwrap_or(u64::MAX)
    }
}

/// The market state of one instrument and its computed features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Features {
    bbo: Bbo,
    health: BookHealth,
    aggressive_trade: Option<AggressiveTrade>,
    is_known: bool,
    has_changed: bool,
    /// True from the instrument's first update of a packet until the end of the packet.
    is_in_packet: bool,
    /// Sequence number of the instrument's latest message in the packet; 0 for none.
    message: Sequence,
}

impl Features {
    /// Applies the next update of the instrument. Returns true if it is the instrument's first one since
    /// [`end_packet`](Self::end_packet).
    pub fn apply(&mut self, update: &MarketUpdate) -> bool {
        let is_first = !std::mem::replace(&mut self.is_in_packet, true);
        if is_first {
            (self.has_changed, self.message) = (false, Sequence(0));
        }
        let kind = update.kind();
        if kind == Some(UpdateKind::Trade) {
            self.apply_trade(update);
        }
        // No message of the venue causes a `Status` update.
        if kind != Some(UpdateKind::Status) {
            self.message = Sequence(update.sequence);
        }
        let (bbo, health) = (Bbo { bid: update.bid(), ask: update.ask() }, update.health());
        self.has_changed |= bbo != self.bbo || health != self.health || !self.is_known;
        self.bbo = bbo;
        self.health = health;
        self.is_known = true;
        is_first
    }

    /// Ends the current packet. Returns the sequence number of its latest message about the instrument;
    /// `None` if only the book's status changed.
    pub fn end_packet(&mut self) -> Option<Sequence> {
        self.is_in_packet = false;
        (self.message != Sequence(0)).then_some(self.message)
    }

    /// Records a trade; `self.bbo` must still hold the best prices before it. A trade without a stated
    /// aggressor is ignored.
    fn apply_trade(&mut self, update: &MarketUpdate) {
        let (Some(resting), ts_event) = (update.side(), Nanos(update.ts_event)) else { return };
        let aggressor = resting.opposite();
        match &mut self.aggressive_trade {
            Some(trade) if trade.aggressor == aggressor && trade.ts_event == ts_event => {
                trade.qty.0 = trade.qty.0.saturating_add(update.qty);
            }
            latest => {
                *latest = self.bbo.best(resting).map(|(_, best_qty)| AggressiveTrade {
                    aggressor,
                    qty: Qty(update.qty),
                    best_qty,
                    ts_event,
                });
            }
        }
    }

    /// Returns best bid and ask after the latest update.
    #[must_use]
    pub const fn bbo(&self) -> &Bbo {
        &self.bbo
    }

    /// Returns true if an update of the latest packet changed the best prices, their quantities or the book's
    /// health, or was the first. Most packets change none of these.
    #[must_use]
    pub const fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Returns the latest aggressive trade; `None` before the first, or if the best price of the side that it
    /// hit was unknown.
    #[must_use]
    pub const fn aggressive_trade(&self) -> Option<&AggressiveTrade> {
        self.aggressive_trade.as_ref()
    }

    /// Returns true if at least one update arrived and the book can be trusted as of the latest update.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.is_known && self.health == BookHealth::Live
    }

    /// Returns the health of the book as of the latest update.
    #[must_use]
    pub const fn health(&self) -> BookHealth {
        self.health
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tickpath_types::{PriceLevel, SIDE_NOT_STATED};

    use super::*;
    use crate::testing::{quote, trade};

    fn bbo(bid: i64, bid_qty: u64, ask: i64, ask_qty: u64) -> Bbo {
        Bbo { bid: Some((Price(bid), Qty(bid_qty))), ask: Some((Price(ask), Qty(ask_qty))) }
    }

    #[test]
    fn the_fair_price_leans_away_from_the_larger_side_and_rounds_halves_up() {
        for (market, fair) in [
            (bbo(100, 1, 200, 1), 150),
            (bbo(100, 3, 200, 1), 175),
            (bbo(100, 1, 200, 3), 125),
            (bbo(100, 1, 101, 1), 101),
            (bbo(100, 1, 101, 2), 100),
            (bbo(-101, 1, -100, 1), -100),
            (bbo(200, 1, 100, 1), 150),
        ] {
            assert_eq!(market.fair_price(), Some(Price(fair)), "{market:?}");
        }
        assert_eq!(Bbo { ask: None, ..bbo(1, 1, 2, 1) }.fair_price(), None);
        assert_eq!(bbo(i64::MIN, u64::MAX, i64::MAX, u64::MAX).fair_price(), None);
    }

    proptest! {
        #[test]
        fn the_fair_price_is_the_weighted_mean(
            bid in -1_000_000_000_i64..1_000_000_000, spread in -1000_i64..100_000,
            bid_qty in 1_u64..1 << 40, ask_qty in 1_u64..1 << 40,
        ) {
            let ask = bid + spread;
            let (weight_bid, weight_ask) = (i128::from(ask_qty), i128::from(bid_qty));
            let numerator = i128::from(bid) * weight_bid + i128::from(ask) * weight_ask;
            let total = weight_bid + weight_ask;
            let fair = i128::from(bbo(bid, bid_qty, ask, ask_qty).fair_price().unwrap().0);
            // Rounded to nearest, halves up: -1/2 < fair - exact <= 1/2.
            let twice_error = 2 * (fair * total - numerator);
            prop_assert!(-total < twice_error && twice_error <= total);
        }
    }

    #[test]
    fn a_trade_whose_aggressor_is_not_stated_is_no_aggressive_trade() {
        let mut features = Features::default();
        let market = quote(1, (100, 50), (101, 200));
        features.apply(&market);
        let trade = MarketUpdate { kind: UpdateKind::Trade as u8, side: 1, price: 101, qty: 5, ..market };
        features.apply(&MarketUpdate { side: SIDE_NOT_STATED, ..trade });
        assert_eq!(features.aggressive_trade(), None);
        features.apply(&trade);
        assert_eq!(features.aggressive_trade().map(|trade| trade.aggressor), Some(Side::Buy));
    }

    #[test]
    fn has_changed_compares_prices_quantities_and_health() {
        let market = quote(1, (100, 50), (101, 200));
        let has_changed = |after: MarketUpdate| {
            let mut features = Features::default();
            features.apply(&market);
            features.end_packet();
            features.apply(&after);
            features.has_changed()
        };
        let unchanged = MarketUpdate { sequence: 2, ts_event: 2, order_id: 7, price: 90, qty: 5, ..market };
        assert!(!has_changed(unchanged), "an order behind the best");
        assert!(!has_changed(MarketUpdate { kind: UpdateKind::Trade as u8, ..unchanged }));
        for (bid, ask) in [
            ((99, 50), (101, 200)),
            ((100, 49), (101, 200)),
            ((100, 50), (102, 200)),
            ((100, 50), (101, 201)),
        ] {
            assert!(has_changed(quote(1, bid, ask)), "{bid:?} {ask:?}");
        }
        assert!(has_changed(MarketUpdate { bid: PriceLevel::default(), ..market }), "the last bid went");
        for health in [BookHealth::Recovering, BookHealth::Stale, BookHealth::Suspect] {
            assert!(has_changed(MarketUpdate { health: health as u8, ..market }), "{health:?}");
        }

        let mut features = Features::default();
        assert!(!features.has_changed(), "nothing was received");
        features.apply(&quote(1, (0, 0), (0, 0)));
        assert!(features.has_changed(), "an empty live book is known now");
        features.end_packet();
        features.apply(&quote(1, (0, 0), (0, 0)));
        assert!(!features.has_changed());
    }

    #[test]
    fn a_packet_has_changed_if_one_of_its_updates_did() {
        let mut features = Features::default();
        assert!(features.apply(&MarketUpdate { sequence: 1, ..quote(1, (100, 50), (101, 200)) }));
        assert_eq!(features.end_packet(), Some(Sequence(1)));
        let status = MarketUpdate { kind: UpdateKind::Status as u8, ..quote(1, (100, 50), (101, 200)) };
        assert!(features.apply(&MarketUpdate { sequence: 2, ..quote(1, (99, 50), (101, 200)) }));
        assert!(!features.apply(&MarketUpdate { sequence: 3, ..quote(1, (99, 50), (101, 200)) }));
        assert!(!features.apply(&MarketUpdate { sequence: 4, ..status }), "the health changed");
        assert!(features.has_changed());
        assert_eq!(features.end_packet(), Some(Sequence(3)));
        assert!(features.has_changed(), "until the next packet");
        assert!(features.apply(&status));
        assert_eq!(features.end_packet(), None);
    }

    #[test]
    fn a_trade_is_measured_against_the_best_before_it() {
        let mut features = Features::default();
        assert!(!features.is_live());
        features.apply(&trade(1, Side::Buy, 100, 40, 7));
        assert_eq!(features.aggressive_trade(), None, "what it met is unknown");

        features.apply(&quote(1, (100, 50), (101, 200)));
        assert!(features.is_live());
        let ask = |qty| PriceLevel { price: 101, qty };
        features.apply(&MarketUpdate { ask: ask(150), ..trade(1, Side::Buy, 101, 50, 8) });
        assert_eq!(features.aggressive_trade().unwrap().ratio_ppm(), 250_000);
        features.apply(&MarketUpdate { ask: ask(100), ..trade(1, Side::Buy, 101, 50, 8) });
        let same_order = features.aggressive_trade().unwrap();
        assert_eq!((same_order.qty, same_order.ratio_ppm()), (Qty(100), 500_000));
        features.apply(&MarketUpdate { ask: ask(50), ..trade(1, Side::Buy, 101, 50, 9) });
        assert_eq!(features.aggressive_trade().unwrap().ratio_ppm(), 500_000, "50 of the 100 left");
    }
}

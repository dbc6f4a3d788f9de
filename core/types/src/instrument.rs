//! What is traded.

use crate::{InstrumentId, Price, Qty, Symbol};

/// The definition of one instrument, fixed for the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Dense from 1; also its ITCH stock locate.
    pub id: InstrumentId,
    /// Its ticker.
    pub symbol: Symbol,
    /// Prices are multiples of this.
    pub tick_size: Price,
    /// Quantities are multiples of this.
    pub lot_size: Qty,
    /// Largest quantity of one order.
    pub max_qty: Qty,
    /// Where the session starts; what a newcomer quotes around before there is a market.
    pub reference_price: Price,
    /// Lowest price an order may have.
    pub collar_low: Price,
    /// Highest price an order may have.
    pub collar_high: Price,
}

impl Instrument {
    /// True when `price` is a multiple of the tick size.
    #[must_use]
    pub const fn is_on_tick(&self, price: Price) -> bool {
        price.0 % self.tick_size.0 == 0
    }

    /// True when `price` lies within the collar, both ends included.
    #[must_use]
    pub const fn is_within_collar(&self, price: Price) -> bool {
        price.0 >= self.collar_low.0 && price.0 <= self.collar_high.0
    }

    /// True when `qty` is a positive multiple of the lot size and not above the largest allowed.
    #[must_use]
    pub const fn is_tradable_qty(&self, qty: Qty) -> bool {
        qty.0 != 0 && qty.0.is_multiple_of(self.lot_size.0) && qty.0 <= self.max_qty.0
    }
}

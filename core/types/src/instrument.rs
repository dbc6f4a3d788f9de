//! What is traded.

use std::sync::Arc;

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

/// The instruments of a session by id and by symbol; cheap to clone.
#[derive(Clone, Debug)]
pub struct InstrumentTable {
    instruments: Arc<[Instrument]>,
    /// Symbols with the positions of their instruments, sorted.
    by_symbol: Arc<[(u64, u16)]>,
}

impl InstrumentTable {
    /// A table of instruments whose ids are dense from 1, in order, and whose symbols differ.
    ///
    /// # Panics
    /// When an id is not its place in the list plus 1.
    #[must_use]
    pub fn new(instruments: &[Instrument]) -> InstrumentTable {
        for (place, instrument) in instruments.iter().enumerate() {
            assert_eq!(usize::from(instrument.id.0), place + 1, "instrument ids are dense from 1");
        }
        let mut by_symbol: Vec<_> = instruments.iter().map(|i| (symbol_key(i.symbol), i.id.0)).collect();
        by_symbol.sort_unstable();
        InstrumentTable { instruments: instruments.into(), by_symbol: by_symbol.into() }
    }

    /// The instrument of an id.
    #[inline]
    #[must_use]
    pub fn get(&self, id: InstrumentId) -> Option<&Instrument> {
        self.instruments.get(usize::from(id.0).checked_sub(1)?)
    }

    /// The id of a symbol.
    #[inline]
    #[must_use]
    pub fn find(&self, symbol: Symbol) -> Option<InstrumentId> {
        let key = symbol_key(symbol);
        let place = self.by_symbol.binary_search_by_key(&key, |(symbol, _)| *symbol).ok()?;
        Some(InstrumentId(self.by_symbol[place].1))
    }

    /// The symbol of an id.
    #[inline]
    #[must_use]
    pub fn symbol(&self, id: InstrumentId) -> Option<Symbol> {
        self.get(id).map(|instrument| instrument.symbol)
    }

    /// All instruments in the order of their ids.
    #[must_use]
    pub fn as_slice(&self) -> &[Instrument] {
        &self.instruments
    }

    /// The greatest id; 0 for an empty table.
    #[must_use]
    pub fn max_id(&self) -> InstrumentId {
        InstrumentId(self.instruments.len() as u16)
    }
}

fn symbol_key(symbol: Symbol) -> u64 {
    u64::from_be_bytes(symbol.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instrument(id: u16, symbol: &str) -> Instrument {
        Instrument {
            id: InstrumentId(id),
            symbol: Symbol::new(symbol).unwrap(),
            tick_size: Price(5),
            lot_size: Qty(10),
            max_qty: Qty(100),
            reference_price: Price(50),
            collar_low: Price(40),
            collar_high: Price(60),
        }
    }

    #[test]
    fn a_table_finds_by_id_and_by_symbol() {
        let table = InstrumentTable::new(&[instrument(1, "ZULU"), instrument(2, "ALPHA")]);
        assert_eq!(table.find(Symbol::new("ALPHA").unwrap()), Some(InstrumentId(2)));
        assert_eq!(table.find(Symbol::new("BRAVO").unwrap()), None);
        assert_eq!(table.symbol(InstrumentId(1)), Symbol::new("ZULU").ok());
        assert!(table.get(InstrumentId(0)).is_none() && table.get(InstrumentId(3)).is_none());
        assert_eq!(table.max_id(), InstrumentId(2));
    }

    #[test]
    fn ticks_lots_and_collars_have_ends() {
        let instrument = instrument(1, "A");
        assert!(instrument.is_on_tick(Price(55)) && !instrument.is_on_tick(Price(54)));
        assert!(instrument.is_within_collar(Price(40)) && !instrument.is_within_collar(Price(39)));
        assert!(instrument.is_within_collar(Price(60)) && !instrument.is_within_collar(Price(61)));
        for (qty, is_tradable) in [(0, false), (10, true), (15, false), (100, true), (110, false)] {
            assert_eq!(instrument.is_tradable_qty(Qty(qty)), is_tradable, "{qty}");
        }
    }
}

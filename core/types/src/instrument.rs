//! Definitions of traded instruments.

use std::sync::{Arc, OnceLock};

use crate::{InstrumentId, Price, Qty, Symbol};

/// The definition of one instrument, fixed for the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Instrument id, dense from 1; also the ITCH stock locate.
    pub id: InstrumentId,
    /// Ticker.
    pub symbol: Symbol,
    /// Tick size: order prices are multiples of it.
    pub tick_size: Price,
    /// Lot size: order quantities are multiples of it.
    pub lot_size: Qty,
    /// Maximum quantity of one order.
    pub max_qty: Qty,
    /// Price at the start of the session. The first quotes centre on it, while the book is still empty.
    pub reference_price: Price,
    /// Lowest price an order may have.
    pub collar_low: Price,
    /// Highest price an order may have.
    pub collar_high: Price,
}

impl Instrument {
    /// Creates an instrument with a tick of one cent, a lot of one, a maximum quantity of 1,000,000, and a
    /// collar of 10% of the reference price on either side.
    #[must_use]
    pub const fn in_cents(id: InstrumentId, symbol: Symbol, reference_price: Price) -> Instrument {
        let (tick_size, lot_size, max_qty) = (Price(100), Qty(1), Qty(1_000_000));
        let (collar_low, collar_high) =
            (Price(reference_price.0 / 10 * 9), Price(reference_price.0 / 10 * 11));
        Instrument { id, symbol, tick_size, lot_size, max_qty, reference_price, collar_low, collar_high }
    }

    /// True when `price` is a multiple of the tick size.
    #[must_use]
    #[inline]
    pub const fn is_on_tick(&self, price: Price) -> bool {
        price.0 % self.tick_size.0 == 0
    }

    /// True when `price` lies within the collar, both ends included.
    #[must_use]
    #[inline]
    pub const fn is_within_collar(&self, price: Price) -> bool {
        price.0 >= self.collar_low.0 && price.0 <= self.collar_high.0
    }

    /// True when `qty` is a positive multiple of the lot size and at most the maximum quantity.
    #[must_use]
    #[inline]
    pub const fn is_tradable_qty(&self, qty: Qty) -> bool {
        qty.0 != 0 && qty.0.is_multiple_of(self.lot_size.0) && qty.0 <= self.max_qty.0
    }
}

/// The instruments of a session by id and by symbol. Clones are cheap and share one table.
///
/// A table can reserve capacity to [add](InstrumentTable::add) instruments while other threads read it. A
/// reader that receives an id from the adding thread, for example through a ring, finds the instrument here.
#[derive(Clone, Debug)]
pub struct InstrumentTable {
    instruments: Arc<[Instrument]>,
    /// Symbol keys and ids of the initial instruments, sorted by key for a binary search.
    by_symbol: Arc<[(u64, u16)]>,
    /// Instruments added at runtime, in order; unused slots at the end are empty.
    added: Arc<[OnceLock<Instrument>]>,
}

/// Reason why an instrument was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddInstrumentError {
    /// The id is not the [next id](InstrumentTable::next_id).
    #[error("instrument {id} does not follow the others: the next id is {next}")]
    Id {
        /// Id of the instrument.
        id: InstrumentId,
        /// Id that the instrument must have.
        next: InstrumentId,
    },
    /// The symbol is already in use.
    #[error("there is an instrument '{symbol}' already: choose another symbol")]
    Symbol {
        /// Symbol of both instruments.
        symbol: Symbol,
    },
    /// The table is full. Reserve a larger capacity when creating it.
    #[error("the instrument table is full at {max} instruments: reserve more")]
    Full {
        /// Highest id that the table can hold.
        max: InstrumentId,
    },
}

impl InstrumentTable {
    /// Creates a table of instruments with distinct symbols and with ids that are dense from 1, in order.
    ///
    /// # Panics
    /// If an id is not the position in the list plus 1.
    #[must_use]
    pub fn new(instruments: &[Instrument]) -> InstrumentTable {
        InstrumentTable::with_capacity(instruments, InstrumentId(0))
    }

    /// Creates a table with capacity for further instruments, with ids up to `max_id`.
    ///
    /// # Panics
    /// As [`InstrumentTable::new`].
    #[must_use]
    pub fn with_capacity(instruments: &[Instrument], max_id: InstrumentId) -> InstrumentTable {
        for (place, instrument) in instruments.iter().enumerate() {
            assert_eq!(usize::from(instrument.id.0), place + 1, "instrument ids are dense from 1");
        }
        let mut by_symbol: Vec<_> = instruments.iter().map(|i| (symbol_key(i.symbol), i.id.0)).collect();
        by_symbol.sort_unstable();
        let capacity = usize::from(max_id.0).saturating_sub(instruments.len());
        InstrumentTable {
            instruments: instruments.into(),
            by_symbol: by_symbol.into(),
            added: (0..capacity).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Adds an instrument to all clones, without blocking or allocating. Only one thread may add.
    ///
    /// # Errors
    /// [`AddInstrumentError`] if the id is not the next one, the symbol is in use, or the table is full.
    pub fn add(&self, instrument: Instrument) -> Result<(), AddInstrumentError> {
        let (id, symbol, next) = (instrument.id, instrument.symbol, self.next_id());
        if self.find(symbol).is_some() {
            return Err(AddInstrumentError::Symbol { symbol });
        }
        let Some(free) = self.added.get(self.added().count()) else {
            return Err(AddInstrumentError::Full { max: self.max_id() });
        };
        if id != next || free.set(instrument).is_err() {
            return Err(AddInstrumentError::Id { id, next: self.next_id() });
        }
        Ok(())
    }

    /// Id that the next added instrument must have.
    #[must_use]
    pub fn next_id(&self) -> InstrumentId {
        let count = self.instruments.len() + self.added().count();
        // If all ids are in use, the result is the last id, under which no instrument can be added.
        InstrumentId((count as u16).saturating_add(1))
    }

    /// The instrument with this id.
    #[inline]
    #[must_use]
    pub fn get(&self, id: InstrumentId) -> Option<&Instrument> {
        let place = usize::from(id.0).checked_sub(1)?;
        match self.instruments.get(place) {
            None => self.added.get(place - self.instruments.len())?.get(),
            first => first,
        }
    }

    /// Id of the instrument with this symbol.
    #[inline]
    #[must_use]
    pub fn find(&self, symbol: Symbol) -> Option<InstrumentId> {
        let key = symbol_key(symbol);
        match self.by_symbol.binary_search_by_key(&key, |(symbol, _)| *symbol) {
            Ok(place) => Some(InstrumentId(self.by_symbol[place].1)),
            Err(_) => self.added().find(|added| added.symbol == symbol).map(|added| added.id),
        }
    }

    /// Symbol of the instrument with this id.
    #[inline]
    #[must_use]
    pub fn symbol(&self, id: InstrumentId) -> Option<Symbol> {
        self.get(id).map(|instrument| instrument.symbol)
    }

    /// The initial instruments, in the order of their ids.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[Instrument] {
        &self.instruments
    }

    /// All instruments in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Instrument> {
        self.instruments.iter().chain(self.added())
    }

    fn added(&self) -> impl Iterator<Item = &Instrument> {
        self.added.iter().map_while(OnceLock::get)
    }

    /// Highest id that the table can hold; 0 for an empty table.
    #[must_use]
    #[inline]
    pub fn max_id(&self) -> InstrumentId {
        InstrumentId((self.instruments.len() + self.added.len()) as u16)
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
    fn an_instrument_in_cents_takes_orders_at_its_reference_price_and_a_tenth_around_it() {
        let symbol = Symbol::new("ALPHA").unwrap();
        let instrument = Instrument::in_cents(InstrumentId(1), symbol, Price(1_000_000));
        for (price, is_allowed) in
            [(899_900, false), (900_000, true), (1_000_000, true), (1_100_000, true), (1_100_100, false)]
        {
            assert!(instrument.is_on_tick(Price(price)));
            assert_eq!(instrument.is_within_collar(Price(price)), is_allowed, "{price}");
        }
        assert!(instrument.is_tradable_qty(Qty(1)) && !instrument.is_on_tick(Price(1_000_050)));
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
    fn an_added_instrument_is_visible_to_all_clones() {
        let table = InstrumentTable::with_capacity(&[instrument(1, "ZULU")], InstrumentId(3));
        let reader = table.clone();
        assert_eq!((reader.next_id(), reader.max_id()), (InstrumentId(2), InstrumentId(3)));
        assert_eq!(reader.get(InstrumentId(2)), None);
        table.add(instrument(2, "ALPHA")).unwrap();
        assert_eq!(reader.find(Symbol::new("ALPHA").unwrap()), Some(InstrumentId(2)));
        assert_eq!(reader.get(InstrumentId(2)), Some(&instrument(2, "ALPHA")));
        let again = AddInstrumentError::Symbol { symbol: Symbol::new("ZULU").unwrap() };
        assert_eq!(table.add(instrument(3, "ZULU")), Err(again));
        let wrong = AddInstrumentError::Id { id: InstrumentId(9), next: InstrumentId(3) };
        assert_eq!(table.add(instrument(9, "BRAVO")), Err(wrong));
        table.add(instrument(3, "BRAVO")).unwrap();
        let full = Err(AddInstrumentError::Full { max: InstrumentId(3) });
        assert_eq!(table.add(instrument(4, "CHARLIE")), full);
        let symbols: Vec<_> = reader.iter().map(|instrument| instrument.id.0).collect();
        assert_eq!((symbols, reader.as_slice().len()), (vec![1, 2, 3], 1));
    }

    #[test]
    fn a_table_of_all_ids_is_full() {
        let all: Vec<Instrument> = (1..=u16::MAX).map(|id| instrument(id, &format!("S{id}"))).collect();
        let table = InstrumentTable::with_capacity(&all, InstrumentId(u16::MAX));
        let full = Err(AddInstrumentError::Full { max: InstrumentId(u16::MAX) });
        assert_eq!(table.add(instrument(u16::MAX, "MORE")), full);
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

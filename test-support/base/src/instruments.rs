//! Instruments.

use tickpath_types::{Instrument, InstrumentId, InstrumentTable, Price, Qty, Symbol};

/// An instrument with reference price 100.00, tick size 0.01, lot size 1, at most 100,000 per order, and a
/// collar of 10.00 on either side.
#[must_use]
pub fn instrument(id: u16, symbol: &str) -> Instrument {
    let symbol = Symbol::new(symbol).unwrap();
    let in_cents = Instrument::in_cents(InstrumentId(id), symbol, Price(1_000_000));
    Instrument { max_qty: Qty(100_000), ..in_cents }
}

/// A table of such [instruments](instrument), with ids from 1.
#[must_use]
pub fn instruments(symbols: &[&str]) -> InstrumentTable {
    let numbered = (1..).zip(symbols).map(|(id, symbol)| instrument(id, symbol));
    InstrumentTable::new(&numbered.collect::<Vec<_>>())
}

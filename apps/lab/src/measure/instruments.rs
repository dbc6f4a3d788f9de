//! What is traded in the measurements that need a venue.

use tickpath_types::{Instrument, InstrumentId, InstrumentTable, Price, Qty, Symbol};

/// Tick size: one hundredth.
pub(super) const TICK: i64 = 100;
/// Where trading is: 100.00.
pub(super) const REFERENCE: Price = Price(1_000_000);

/// So many instruments around 100.00, with a collar of 20.00 on either side.
pub(super) fn instruments(count: u16) -> InstrumentTable {
    let instrument = |id| Instrument {
        id: InstrumentId(id),
        symbol: Symbol::new(&format!("LAB{id}")).expect("at most 8 characters"),
        tick_size: Price(TICK),
        lot_size: Qty(1),
        max_qty: Qty(100_000),
        reference_price: REFERENCE,
        collar_low: Price(800_000),
        collar_high: Price(1_200_000),
    };
    InstrumentTable::new(&(1..=count).map(instrument).collect::<Vec<_>>())
}

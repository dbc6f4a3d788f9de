//! Over all clients, purchases equal sales: in quantity for each instrument, and in money.

use std::collections::BTreeMap;

use tickpath_types::InstrumentId;

use super::{Case, trades};

pub(super) fn check(case: &Case<'_>) {
    let Some(trades) = trades::of_all(case) else { return };
    let mut positions: BTreeMap<InstrumentId, i128> = BTreeMap::new();
    let mut cash = 0_i128;
    for part in trades.values().flatten() {
        let signed = i128::from(part.side.sign()) * i128::from(part.qty.0);
        *positions.entry(part.instrument).or_default() += signed;
        cash -= signed * i128::from(part.price.0);
    }
    for (instrument, position) in positions {
        case.expect(position == 0, || {
            format!("the positions of all clients sum to {position} in instrument {instrument}, not to 0")
        });
    }
    case.expect(cash == 0, || format!("the cash of all clients sums to {cash}, not to 0"));
}
